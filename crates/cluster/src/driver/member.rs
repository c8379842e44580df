//! The actor that runs a theater's part in the membership.

use std::hash::Hasher;
use std::sync::Arc;

use playhouse_actor::{
    Actor, Context, DeferredHandler, Handler, Message as ActorMessage, Recipient, Reply, TimerKey, remote,
};
use playhouse_theater::Theater;
use playhouse_toolbox::durable::LedgerWatch;
use siphasher::sip::SipHasher13;

use super::ledger_port::{Failure, LedgerPort};
use super::letters::{Content, Letter};
use super::options::ClusterOptions;
use super::peers::Peers;
use super::requests::{Activated, Leave, Watch};
use super::slot_users::{EndUse, Released, SlotUsers, UseSlots};
use super::state::{ClusterState, Shared};
use crate::membership::{ConfigError, Input, Membership, RequestId, Stored, Time};
use crate::view::{MemberId, Timing};

/// The number of looks at the peers in each period.
const LOOKS: u32 = 5;

/// An event of the actor's own parts.
pub(super) enum Event {
    /// A life begins. The actor was published before.
    Begin,
    /// The machine wants to be stepped.
    Tick,
    /// The peers are to be looked after.
    Look,
    /// The ledger has changed.
    Changed,
    Read {
        /// The life that has asked. The numbers of the requests begin anew with each life.
        by: MemberId,
        id: RequestId,
        result: Result<Option<Stored>, Failure>,
    },
    Wrote {
        by: MemberId,
        id: RequestId,
        result: Result<u64, Failure>,
    },
    /// The ledger is watched, or cannot be watched.
    Watches(Result<LedgerWatch, Failure>),
    /// The look-up of a member has its result.
    Found(MemberId),
    /// The address of a silent member was called.
    Called {
        id: MemberId,
        /// Whether no theater listens at the address.
        is_refused: bool,
    },
}

impl ActorMessage for Event {
    type Reply = ();
}

/// The actor of a member.
pub(crate) struct MemberActor {
    pub(super) theater: Theater,
    options: ClusterOptions,
    pub(super) shared: Arc<Shared>,
    pub(super) ledger: LedgerPort,
    pub(super) life: Option<Life>,
    pub(super) is_leaving: bool,
    /// Whether slots were closed since the last step.
    pub(super) has_closed: bool,
    /// The time of the next tick, and its timer.
    tick: Option<(Time, TimerKey)>,
    pub(super) activated: Vec<Reply<MemberId>>,
    pub(super) left: Vec<Reply<()>>,
    /// The actors that watch, and whether they lack the last state.
    pub(super) watchers: Vec<(Recipient<ClusterState>, bool)>,
    pub(super) slot_users: SlotUsers,
}

/// One life of a member: from its join until it has left or was declared dead.
pub(super) struct Life {
    pub(super) me: MemberId,
    pub(super) machine: Membership,
    pub(super) peers: Peers,
    pub(super) begun: Time,
    /// The last version at which another member was asked back, and the time until which its answer is awaited.
    asked_back: Option<(u64, Time)>,
}

impl MemberActor {
    pub(super) fn new(
        theater: &Theater,
        options: ClusterOptions,
        shared: Arc<Shared>,
        ledger: LedgerPort,
    ) -> MemberActor {
        MemberActor {
            theater: theater.clone(),
            options,
            shared,
            ledger,
            life: None,
            is_leaving: false,
            has_closed: false,
            tick: None,
            activated: Vec::new(),
            left: Vec::new(),
            watchers: Vec::new(),
            slot_users: SlotUsers::default(),
        }
    }

    /// Begins a life with an id of its own.
    fn begin(&mut self, ctx: &mut Context<Self>) -> Result<(), ConfigError> {
        let mut hasher = SipHasher13::new();
        // The time tells apart the lives of one theater.
        let begun = self.shared.clock.now();
        for part in [self.theater.incarnation(), begun.as_nanos() as u64] {
            hasher.write_u64(part);
        }
        let me = MemberId(hasher.finish());
        let address = self.theater.address().map(|address| address.to_string()).unwrap_or_default();
        let machine = Membership::new(me, address, self.options.version(), self.options.config(me.0))?;
        let peers = Peers::new(self.theater.clone(), ctx.this(), me, machine.timing().renew);
        self.life = Some(Life { me, machine, peers, begun, asked_back: None });
        self.shared.change(|state| (state.me, state.view) = (me, None));
        Ok(())
    }

    /// Lets the timer of the machine fire when its next tick is due. A timer that fires too early does no harm.
    pub(super) fn set_timer(&mut self, ctx: &mut Context<Self>) {
        let next = self.life.as_ref().and_then(|life| life.machine.next_tick());
        let Some(next) = next.filter(|next| self.tick.as_ref().is_none_or(|(due, _)| next < due)) else { return };
        if let Some((_, timer)) = self.tick.take() {
            ctx.cancel(timer);
        }
        let delay = next.saturating_sub(self.shared.clock.now());
        self.tick = Some((next, ctx.send_after(delay, Event::Tick)));
    }
}

impl Drop for MemberActor {
    /// Nothing renews the lease any more, also after a crash.
    fn drop(&mut self) {
        self.shared.stop();
        self.watchers.iter_mut().for_each(|(_, is_behind)| *is_behind = true);
        self.tell_watchers();
    }
}

impl Actor for MemberActor {
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.this().tell(Event::Look);
    }
}

impl Handler<Event> for MemberActor {
    fn handle(&mut self, event: Event, ctx: &mut Context<Self>) {
        match event {
            Event::Begin => {
                self.ledger.watch(ctx.this());
                // `Cluster::join` has checked the options.
                let _ = self.begin(ctx);
                self.step(Input::Tick, ctx);
            }
            Event::Tick => {
                self.tick = None;
                self.step(Input::Tick, ctx);
            }
            Event::Look => {
                let inputs = self.life.as_mut().map(|life| life.peers.look()).unwrap_or_default();
                inputs.into_iter().for_each(|input| self.step(input, ctx));
                self.tell_watchers();
                self.slot_users.tell();
                let timing = self.life.as_ref().map(|life| life.machine.timing());
                let Timing { renew, .. } = timing.unwrap_or_else(|| self.options.config(0).timing);
                ctx.send_after(renew / LOOKS, Event::Look);
            }
            Event::Changed => self.step(Input::Changed, ctx),
            Event::Read { by, id, result } => {
                let result = self.ledger.has_read(result);
                if result.is_ok() {
                    self.ledger.watch(ctx.this());
                }
                self.step_of(by, Input::Read { id, result }, ctx);
            }
            Event::Wrote { by, id, result } => {
                let outcome = self.ledger.has_written(result);
                self.step_of(by, Input::Wrote { id, outcome }, ctx);
            }
            Event::Watches(watch) => {
                self.ledger.watches(watch);
                // A change before the watch was not told.
                self.step(Input::Changed, ctx);
            }
            Event::Found(id) => {
                let input = self.life.as_mut().and_then(|life| life.peers.found(id));
                input.into_iter().for_each(|input| self.step(input, ctx));
            }
            Event::Called { id, is_refused } => {
                let input = self.life.as_mut().and_then(|life| life.peers.called(id, is_refused));
                input.into_iter().for_each(|input| self.step(input, ctx));
            }
        }
    }
}

impl MemberActor {
    /// Passes on a result, if the life that has asked for it goes on.
    fn step_of(&mut self, by: MemberId, input: Input, ctx: &mut Context<Self>) {
        if self.life.as_ref().is_some_and(|life| life.me == by) {
            self.step(input, ctx);
        }
    }

    /// Asks a member that has asked at a later version. Its answer is the view, and this member follows it without the ledger. Without the ask, a
    /// member that joins would take those that do not reach the ledger for silent ones.
    ///
    /// All members ask at a new version at once, and a view is large: one of them is asked.
    fn ask_back(&mut self, from: MemberId, newer: u64) {
        let at = self.shared.clock.now();
        let Some(Life { machine, peers, asked_back, .. }) = &mut self.life else { return };
        let is_asked = |(version, until): (u64, Time)| newer <= version && at < until;
        if asked_back.is_some_and(is_asked) {
            return;
        }
        if let Some(view) = machine.view() {
            let ask = Content::Ask { version: view.version, fingerprint: view.fingerprint(), at };
            *asked_back = Some((newer, at.saturating_add(view.timing.renew / 2)));
            peers.send(from, ask);
        }
    }

    fn gone(&mut self, id: MemberId, ctx: &mut Context<Self>) {
        let input = self.life.as_mut().and_then(|life| life.peers.gone(id));
        input.into_iter().for_each(|input| self.step(input, ctx));
    }
}

impl Handler<Letter> for MemberActor {
    fn handle(&mut self, letter: Letter, ctx: &mut Context<Self>) {
        let Letter { from, to, sender, content } = letter;
        let Some(life) = &mut self.life else {
            // Between two lives. The view may still have the former one.
            if let Content::Ask { .. } = content {
                let content = Content::Ended(to);
                sender.tell_urgent(Letter { from: to, to: from, sender: ctx.this(), content });
            }
            return;
        };
        let heard = life.peers.heard(from, sender);
        heard.into_iter().for_each(|input| self.step(input, ctx));
        let asked = if let Content::Ask { version, .. } = content { Some(version) } else { None };
        match content {
            Content::Ended(id) => self.gone(id, ctx),
            _ if self.life.as_ref().is_none_or(|life| life.me != to) => {
                if asked.is_some()
                    && let Some(life) = &mut self.life
                {
                    life.peers.send(from, Content::Ended(to));
                }
            }
            content => {
                let message = content.into_message();
                let has_answered = message.is_some_and(|message| self.receive(from, message, ctx));
                if let Some(version) = asked.filter(|_| !has_answered) {
                    self.ask_back(from, version);
                }
            }
        }
    }
}

impl DeferredHandler<Activated> for MemberActor {
    fn handle(&mut self, _: Activated, reply: Reply<MemberId>, _: &mut Context<Self>) {
        self.activated.push(reply);
        self.answer_activated();
    }
}

impl DeferredHandler<Leave> for MemberActor {
    fn handle(&mut self, _: Leave, reply: Reply<()>, ctx: &mut Context<Self>) {
        self.left.push(reply);
        self.is_leaving = true;
        if self.life.is_none() {
            // The others have removed the former life.
            return self.has_left(ctx);
        }
        self.step(Input::Leave, ctx);
    }
}

impl Handler<Watch> for MemberActor {
    fn handle(&mut self, Watch(watcher): Watch, _: &mut Context<Self>) {
        self.watchers.push((watcher, true));
        self.tell_watchers();
    }
}

impl Handler<UseSlots> for MemberActor {
    fn handle(&mut self, UseSlots(user): UseSlots, _: &mut Context<Self>) {
        let life = self.life.as_ref();
        let view = life.and_then(|life| Some((life.me, life.machine.view()?)));
        // The slots that close are unused by a user that has not begun.
        let open = |slot| life.and_then(|life| life.machine.running(slot)).filter(|run| run.1).map(|run| run.0);
        self.slot_users.begin(user, view, open);
    }
}

impl Handler<EndUse> for MemberActor {
    fn handle(&mut self, EndUse { user }: EndUse, ctx: &mut Context<Self>) {
        let unused = self.slot_users.remove(user);
        unused.into_iter().for_each(|(slot, epoch)| self.closed(slot, epoch));
        if std::mem::take(&mut self.has_closed) {
            self.step(Input::Tick, ctx);
        }
    }
}

impl Handler<Released> for MemberActor {
    fn handle(&mut self, released: Released, ctx: &mut Context<Self>) {
        let Released { slot, epoch, .. } = released;
        if self.slot_users.release(&released) {
            self.closed(slot, epoch);
            self.has_closed = false;
            self.step(Input::Tick, ctx);
        }
    }
}

remote!(MemberActor: Letter);
