//! The steps of the machine, and their effects.

use std::collections::VecDeque;
use std::sync::Arc;

use playhouse_actor::Context;

use super::letters::Content;
use super::member::{Life, MemberActor};
use super::report::report;
use crate::membership::{Effect, End, Input, Message, Outcome, ReadError};
use crate::view::{MemberId, Status, View};

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
        let Some(Life { me, machine, peers }) = &mut self.life else { return };
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
        if is_new || effects.iter().any(|effect| matches!(effect, Effect::Open { .. } | Effect::Ended(_))) {
            let slots = view.map_or(0, |view| view.slots.len());
            let mut open = 0;
            for slot in 0..slots {
                // The earliest time: the lease is checked at each use.
                let epoch = machine.runs(slot, Default::default()).unwrap_or(0);
                self.shared.set_epoch(slot, epoch);
                open += usize::from(epoch != 0);
            }
            self.shared.change(|state| state.open = open);
        }
        if is_new || effects.iter().any(|effect| !matches!(effect, Effect::Send { .. } | Effect::Read { .. })) {
            self.watchers.iter_mut().for_each(|(_, is_behind)| *is_behind = true);
        }
    }

    /// Carries out an effect. Returns the events that follow at once.
    fn carry_out(&mut self, effect: Effect, now: crate::membership::Time, ctx: &mut Context<Self>) -> Vec<Input> {
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
            // `publish` has opened it.
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
            Effect::Ended(end) => self.ended(end, ctx),
        }
    }

    /// Closes a slot that nobody uses any more. The next step tells the machine of it.
    pub(super) fn closed(&mut self, slot: usize, epoch: u64) {
        let Some(life) = &mut self.life else { return };
        // A cancelled hand-over may have opened the slot again, at another epoch.
        if life.machine.runs(slot, Default::default()) == Some(epoch) {
            self.shared.set_epoch(slot, 0);
            self.shared.change(|state| state.open = state.open.saturating_sub(1));
        }
        life.machine.closed(slot, epoch);
        self.has_closed = true;
    }

    /// Ends the life. Begins another one, unless the program wants to leave.
    fn ended(&mut self, end: End, ctx: &mut Context<Self>) -> Vec<Input> {
        self.shared.stop();
        self.shared.change(|state| state.end = Some(end));
        self.slot_users.end(end);
        let me = self.life.take().map(|life| life.me);
        let id = me.map_or(0, |me| me.0);
        if self.is_leaving {
            tracing::info!("this member ({id:016x}) has left");
            self.left.drain(..).for_each(|reply| reply.send(()));
            self.slot_users.tell();
            ctx.stop();
            return Vec::new();
        }
        tracing::warn!("this member ({id:016x}) has ended: {end:?}; it joins as another one");
        // The options were checked at the first life.
        let _ = self.begin(ctx);
        vec![Input::Tick]
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
