//! The ways of mail to actors that are elsewhere, and how they change: see `moves.rs` of `playhouse-theater`.
//!
//! Whatever changes the way from a place is a request to its cell, and is sent there by whichever thread has found out what is to
//! change. Requests of several threads come in any order. So each looks at what it finds: a turn has a number, and what was found
//! by an earlier one does not end a later one, nor opens a way that was closed; who begins waits until it has arrived; who has another way take the place of one
//! that leads nowhere looks whether it is that one.

use std::sync::Arc;

use playhouse_executor::{Address, AwayCx, Control, ControlCx, Undelivered};

use crate::actor::{Actor, ActorId, ActorState, Extra, Notify, ReleaseStub, Watch, Watcher};
use crate::ask::AskError;
use crate::migration::Mobile;
use crate::remote::stub::{ForwardedMessage, Forwarder, Marker};

/// How the mail of a place goes on that has waited.
pub enum Settled {
    /// The marker of this turn has come through, or is lost; or none turned, and the way was closed.
    Turned {
        /// Which.
        number: Option<u64>,
        /// It goes by this now. By the same as before, if there is none.
        forwarder: Option<Arc<dyn Forwarder>>,
    },
    /// The actor has come, or is coming, and begins.
    Begins {
        /// What came there comes first.
        arrival_buffer: Option<ActorId>,
    },
}

/// Is dropped when the mail of a place goes on.
pub type Settling = Box<dyn Settle>;

/// Is dropped when the mail of a place goes on, and holds the watchers until then.
pub trait Settle: Send {
    /// Returns the watchers that the old way had. The caller notes them on the new way before the mail goes on, because an `unwatch` may be in that mail.
    /// Watchers that are not taken are told that the actor is not alive.
    fn take_watchers(&mut self) -> Vec<(Watcher, Notify)>;
}

/// What there is at a place.
pub enum StubContent<'a> {
    /// An actor that lives elsewhere: the way of its mail.
    Way(&'a mut Arc<dyn Forwarder>),
    /// The actor itself, or it is about to be here.
    Here,
    /// The place was given up.
    Nobody,
}

/// Does something to the way from a place. Returns who is to be told of the actor's end, if it is here.
pub type Reroute = Box<dyn FnOnce(StubContent<'_>) -> Vec<(Watcher, Notify)> + Send>;

/// Sends a marker the way of the mail.
pub(crate) fn send_marker<A: Actor>(marker: Marker, extra: &Extra<A>) {
    match extra.forwarder() {
        // Where it cannot be carried, the carrier says so.
        Ok(forwarder) => drop(forwarder.carry(ForwardedMessage::Marker(marker))),
        Err(_) => (marker.answer)(Err(AskError::Stopped)),
    }
}

pub(crate) struct BeginReroute {
    pub(crate) number: u64,
    pub(crate) marker: Marker,
}

impl<A: Mobile> Control<ActorState<A>> for BeginReroute {
    fn passes(&self) -> bool {
        true
    }

    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        if cx.is_frozen() {
            // The actor has come, and waits for it.
            send_marker(self.marker, cx.extra());
        } else {
            (self.marker.answer)(Err(AskError::Stopped));
        }
    }

    fn bounce(self, _: Undelivered) {
        (self.marker.answer)(Err(AskError::Stopped));
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        cx.freeze();
        cx.extra().reroute = Some(self.number);
        send_marker(self.marker, cx.extra());
    }
}

pub(crate) struct EndReroute {
    pub(crate) number: Option<u64>,
    pub(crate) forwarder: Option<Arc<dyn Forwarder>>,
    pub(crate) settling: Settling,
}

impl<A: Mobile> Control<ActorState<A>> for EndReroute {
    fn passes(&self) -> bool {
        true
    }

    fn run(mut self, cx: &mut ControlCx<ActorState<A>>) {
        // The actor has come in the meantime, and another turn sees to what waits.
        cx.extra().watched_by(self.settling.take_watchers());
    }

    fn send_on(mut self, cx: &mut AwayCx<ActorState<A>>) {
        let present = cx.extra().reroute;
        cx.extra().watched_by(self.settling.take_watchers());
        if self.number.is_some() && cx.is_closed() {
            // The actor is about to be here, and what waits waits for it.
            cx.extra().reroute = None;
            return;
        }
        let who = ActorId(cx.address().raw());
        let extra = cx.extra();
        // Another one has ended since, or the actor has left since: that way is better.
        if self.number <= present
            && let Some(forwarder) = self.forwarder
        {
            extra.away = Some(forwarder);
        }
        if let Some(forwarder) = &extra.away {
            forwarder.is_route_from(who);
            // If another turn has begun, the watchers wait for its end, as the mail does.
            let another_reroute = self.number.is_some() && present.is_some() && self.number != present;
            let watchers = if another_reroute { Vec::new() } else { std::mem::take(&mut extra.watchers) };
            for (watcher, notify) in watchers {
                let _ = forwarder.carry(ForwardedMessage::Watch { watcher, notify: Watch::telling(who, notify) });
            }
        }
        // The marker of a later one has gone the old way, which was as good: what waits for that goes the new one.
        if self.number.is_none() || self.number == present {
            cx.reroute();
            cx.extra().reroute = None;
            cx.thaw();
            // The mail that has waited is sent on after this request, and before later mail.
            cx.address().send_control_behind(Went(self.settling));
        }
    }
}

/// The mail that had waited at a place is sent on.
struct Went(Settling);

impl<A: Mobile> Control<ActorState<A>> for Went {
    fn passes(&self) -> bool {
        true
    }

    fn run(self, _: &mut ControlCx<ActorState<A>>) {
        drop(self.0);
    }

    fn send_on(self, _: &mut AwayCx<ActorState<A>>) {
        drop(self.0);
    }
}

pub(crate) struct Begins<A: Actor> {
    arrival_buffer: Option<Address<ActorState<A>>>,
    /// How often it has let others go first.
    deferred: u8,
    settling: Settling,
}

impl<A: Actor> Begins<A> {
    pub(crate) fn new(arrival_buffer: Option<Address<ActorState<A>>>, settling: Settling) -> Begins<A> {
        Begins { arrival_buffer, deferred: 0, settling }
    }

    /// What has come there is for nobody.
    pub(crate) fn forget_arrival_buffer(&self) {
        if let Some(arrival_buffer) = self.arrival_buffer {
            arrival_buffer.send_control(ReleaseStub);
        }
    }
}

impl<A: Mobile> Control<ActorState<A>> for Begins<A> {
    fn passes(&self) -> bool {
        true
    }

    fn run(mut self, cx: &mut ControlCx<ActorState<A>>) {
        if !cx.is_frozen() {
            // Something at its cell has panicked, and it was given another state.
            cx.extra().watched_by(self.settling.take_watchers());
            self.forget_arrival_buffer();
        } else {
            if let Some(arrival_buffer) = self.arrival_buffer {
                let deferred = self.deferred + 1;
                match deferred {
                    // If the place was turning already, this may have been queued before the actor arrived, and so before
                    // the actor's own beginning.
                    1 => return cx.address().send_control_behind(Begins { deferred, ..self }),
                    // What was sent to the antechamber before this in a higher lane (a watch, a stop, an urgent message) may
                    // not have come out of the inbox yet, and would find nobody there.
                    2 => return cx.address().send_control_urgently(Begins { deferred, ..self }),
                    _ => cx.admit(arrival_buffer),
                }
            }
            let extra = cx.extra();
            extra.watched_by(self.settling.take_watchers());
            extra.away = None;
            match extra.decided.take() {
                Some(decided) => cx.carry_out(decided),
                None => cx.thaw(),
            }
        }
    }

    fn bounce(self, _: Undelivered) {
        // It has come, and has ended.
        self.forget_arrival_buffer();
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        // The actor has been sent to this cell, and is not here yet.
        cx.address().send_control_behind(self);
    }
}

pub(crate) struct Rerouted(pub(crate) Reroute);

impl<A: Actor> Control<ActorState<A>> for Rerouted {
    fn passes(&self) -> bool {
        true
    }

    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        cx.extra().watched_by((self.0)(StubContent::Here));
    }

    fn bounce(self, _: Undelivered) {
        (self.0)(StubContent::Nobody);
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        let is_coming = cx.is_closed();
        let extra = cx.extra();
        let present = match &mut extra.away {
            Some(forwarder) if !is_coming => StubContent::Way(forwarder),
            _ => StubContent::Here,
        };
        let watchers = (self.0)(present);
        extra.watched_by(watchers);
    }
}

/// A marker that goes on. It does not wait for an actor that is frozen: what came before it is in the actor's mailbox.
pub(crate) struct Pass {
    marker: Marker,
    again: bool,
}

impl Pass {
    pub(crate) fn new(marker: Marker) -> Pass {
        Pass { marker, again: false }
    }
}

impl<A: Mobile> Control<ActorState<A>> for Pass {
    fn passes(&self) -> bool {
        true
    }

    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        (self.marker.here)(ActorId(cx.address().raw()), self.marker.answer);
    }

    fn bounce(self, _: Undelivered) {
        (self.marker.answer)(Err(AskError::Stopped));
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        if !self.again {
            // Urgent messages that came before it may not have come out of the inbox yet: they go on before it.
            return cx.address().send_control_urgently(Pass { again: true, ..self });
        }
        if cx.is_frozen() {
            return cx.address().send_control_behind(PassBehind(self.marker));
        }
        send_marker(self.marker, cx.extra());
    }
}

/// A marker at a place that turns: it goes on behind what waits there.
struct PassBehind(Marker);

impl<A: Mobile> Control<ActorState<A>> for PassBehind {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        (self.0.here)(ActorId(cx.address().raw()), self.0.answer);
    }

    fn bounce(self, _: Undelivered) {
        (self.0.answer)(Err(AskError::Stopped));
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        send_marker(self.0, cx.extra());
    }
}
