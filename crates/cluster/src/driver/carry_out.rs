//! The steps of the machine, and their effects.

use std::collections::VecDeque;
use std::sync::Arc;

use playhouse_actor::Context;

use super::letters::{Content, NAME};
use super::member::{Event, Life, MemberActor};
use super::report::report;
use super::state::Run;
use crate::membership::{Effect, End, Input, Message, Outcome, ReadError, Time};
use crate::view::{MemberId, Status, View};

/// The shortest time between the beginnings of two lives, in leases. Without it, a member at whose address nothing listens would be declared dead and
/// join again 40 times per second, and each life writes 3 views.
const LEASES_PER_LIFE: u32 = 3;

impl MemberActor {
    /// Gives the machine an event, and does everything that follows.
    pub(super) fn step(&mut self, input: Input, ctx: &mut Context<Self>) {
        self.step_for(input, None, ctx);
    }

    /// Gives the machine a message. Returns whether the machine has answered it.
    pub(super) fn receive(&mut self, from: MemberId, message: Message, ctx: &mut Context<Self>) -> bool {
        self.step_for(Input::Received { from, message }, Some(from), ctx)
    }

    /// Returns whether a letter went to `asker`.
    fn step_for(&mut self, input: Input, asker: Option<MemberId>, ctx: &mut Context<Self>) -> bool {
        let mut inputs = VecDeque::from([input]);
        let mut has_answered = false;
        while let Some(input) = inputs.pop_front() {
            let now = self.shared.clock.now();
            let Some(life) = &mut self.life else { break };
            let former = life.machine.view().cloned();
            let effects = life.machine.step(now, input);
            self.publish(former.as_ref(), &effects);
            for effect in effects {
                has_answered |= matches!(&effect, Effect::Send { to, .. } if Some(*to) == asker);
                inputs.extend(self.carry_out(effect, now, ctx));
            }
            if std::mem::take(&mut self.has_closed) {
                inputs.push_back(Input::Tick);
            }
        }
        self.answer_activated();
        self.tell_watchers();
        self.slot_users.tell();
        self.set_timer(ctx);
        has_answered
    }

    /// Lets other threads see the lease, the slots and the view. This comes before the effects, because a letter may let another member open a slot.
    fn publish(&mut self, former: Option<&Arc<View>>, effects: &[Effect]) {
        let Some(Life { me, machine, peers, .. }) = &mut self.life else { return };
        let had_lease = self.shared.has_lease();
        // The lease comes before the slots: a slot that opens has one.
        self.shared.set_lease_end(machine.lease_end());
        if !had_lease && self.shared.has_lease() {
            self.slot_users.note_lease();
        }
        let view = machine.view();
        let is_new = former.map(|view| view.version) != view.map(|view| view.version);
        if is_new && let Some(view) = view {
            peers.follow(view);
            report(former.map(|view| &**view), view, *me);
            self.shared.change(|state| state.view = Some(Arc::clone(view)));
            self.slot_users.note_view(*me, view);
            self.shared.set_version(view.version);
        }
        if is_new
            || effects
                .iter()
                .any(|effect| matches!(effect, Effect::Own { .. } | Effect::Open { .. } | Effect::Ended(_)))
        {
            let slots = view.map_or(0, |view| view.slots.len());
            let mut open = 0;
            for slot in 0..slots {
                // The lease is checked at each use. A member without one has its slots again when the lease comes back.
                let run = machine.running(slot);
                self.shared.set_run(slot, run.map_or(Run::NONE, |(epoch, is_exclusive)| Run::new(epoch, is_exclusive)));
                open += usize::from(run.is_some_and(|(_, is_exclusive)| is_exclusive));
            }
            self.shared.change(|state| state.open = open);
        }
        let is_frozen = machine.is_frozen();
        let is_changed = self.shared.change(|state| std::mem::replace(&mut state.is_frozen, is_frozen) != is_frozen);
        let is_news = |effect: &Effect| !matches!(effect, Effect::Send { .. } | Effect::Read { .. });
        if is_new || is_changed || effects.iter().any(is_news) {
            self.watchers.iter_mut().for_each(|(_, is_behind)| *is_behind = true);
        }
    }

    /// Carries out an effect. Returns the events that follow at once.
    fn carry_out(&mut self, effect: Effect, now: Time, ctx: &mut Context<Self>) -> Vec<Input> {
        let Some(life) = &mut self.life else { return Vec::new() };
        match effect {
            Effect::Read { id } => {
                let is_sent = self.ledger.read(life.me, id, ctx.this());
                if is_sent { Vec::new() } else { vec![Input::Read { id, result: Err(ReadError) }] }
            }
            Effect::Write { id, expected, view } => {
                let is_sent = self.ledger.write(life.me, id, expected, view, ctx.this());
                if is_sent { Vec::new() } else { vec![Input::Wrote { id, outcome: Outcome::Unknown }] }
            }
            Effect::Send { to, message } => {
                let is_ask = matches!(message, Message::Ask { .. });
                let suspected = if is_ask { life.peers.asked(to, now) } else { None };
                let gone = life.peers.send(to, Content::of(&message));
                suspected.into_iter().chain(gone).collect()
            }
            // `publish` has opened the slots.
            // The users of slots do not use the runs that only epochs protect.
            Effect::Own { .. } => Vec::new(),
            Effect::Open { slot, epoch } => {
                self.slot_users.open(slot, epoch);
                Vec::new()
            }
            Effect::Close { slot, epoch, .. } => {
                if self.slot_users.close(slot, epoch) {
                    self.closed(slot, epoch);
                }
                Vec::new()
            }
            Effect::Refused { .. } => Vec::new(),
            Effect::Frozen => {
                tracing::error!(
                    "the ledger has lost or replaced views: this member changes nothing until they are back"
                );
                Vec::new()
            }
            Effect::Ended(end) => {
                self.ended(end, now, ctx);
                Vec::new()
            }
        }
    }

    /// Closes a slot that nobody uses any more. The next step tells the machine of it.
    pub(super) fn closed(&mut self, slot: usize, epoch: u64) {
        let Some(life) = &mut self.life else { return };
        // A cancelled hand-over may have opened the slot again, at another epoch.
        if life.machine.running(slot) == Some((epoch, true)) {
            self.shared.set_run(slot, Run::NONE);
            self.shared.change(|state| state.open = state.open.saturating_sub(1));
        }
        life.machine.closed(slot, epoch);
        self.has_closed = true;
    }

    /// Ends the life. Another one begins later, unless the program wants to leave.
    fn ended(&mut self, end: End, now: Time, ctx: &mut Context<Self>) {
        self.shared.stop();
        self.shared.change(|state| state.end = Some(end));
        let Some(Life { me, machine, begun, .. }) = self.life.take() else { return };
        if self.is_leaving {
            return self.has_left(ctx);
        }
        self.slot_users.end(end);
        let pause = begun.saturating_add(machine.timing().lease.saturating_mul(LEASES_PER_LIFE)).saturating_sub(now);
        tracing::warn!("this member ({:016x}) has ended: {end:?}; it joins as another one in {pause:?}", me.0);
        ctx.send_after(pause, Event::Begin);
    }

    /// Ends the actor of a member that has left.
    pub(super) fn has_left(&mut self, ctx: &mut Context<Self>) {
        tracing::info!("this member ({:016x}) has left", self.shared.state().me.0);
        // The theater may join again before this actor has ended.
        self.theater.unpublish(NAME);
        self.slot_users.end(End::Left);
        self.slot_users.tell();
        self.left.drain(..).for_each(|reply| reply.send(()));
        ctx.stop();
    }

    /// Answers those that wait until this member is active and has a lease. Its vacant slots are open by then.
    pub(super) fn answer_activated(&mut self) {
        let Some(life) = &self.life else { return };
        let status = life.machine.view().and_then(|view| view.members.get(&life.me)).map(|member| member.status);
        let has_lease = life.machine.lease_end().is_some_and(|end| self.shared.clock.now() < end);
        if status == Some(Status::Active) && has_lease {
            self.activated.drain(..).for_each(|reply| reply.send(life.me));
        }
    }

    /// Sends the state to the watchers that lack it. A watcher that has no room gets a later state.
    pub(super) fn tell_watchers(&mut self) {
        self.watchers.retain(|(watcher, _)| !watcher.is_stopped());
        for (watcher, is_behind) in self.watchers.iter_mut().filter(|(_, is_behind)| *is_behind) {
            *is_behind = watcher.try_tell(self.shared.state()).is_err();
        }
    }
}
