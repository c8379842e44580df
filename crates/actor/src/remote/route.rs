//! The routes of mail to remote actors, and their changes: see `migration/mod.rs` of `playhouse-theater`.
//!
//! Each change of a stub's route is a request to its cell. Any thread that finds out about the change sends the
//! request, so requests of several threads come in any order. Each request therefore checks the state that it finds:
//! - a reroute has a number: the result of an earlier reroute does not end a later one, and does not open a closed
//!   route;
//! - a beginning actor waits until it has arrived;
//! - a request that replaces a dead route checks that the route is still that one.

use std::sync::Arc;

use playhouse_executor::{Address, AwayCx, Control, ControlCx, Undelivered};

use crate::actor::watcher::HasWatches;
use crate::actor::{Actor, ActorId, ActorState, Notify, ReleaseStub, Watcher};
use crate::answer::error::AskError;
use crate::message::forward::{ForwardedMessage, Forwarder, HasForwarder, Marker};
use crate::remote::registry::Mobile;
use crate::remote::slot::HasRemote;
use crate::watch::Watch;

/// The condition under which the waiting mail of a stub continues.
pub enum Settled {
    /// The marker of this reroute has come through, or is lost; or there was no reroute, and the route was closed.
    Turned {
        /// The number of the reroute.
        number: Option<u64>,
        /// The new forwarder of the mail. `None` keeps the present one.
        forwarder: Option<Arc<dyn Forwarder>>,
    },
    /// The actor has arrived, or is arriving, and begins.
    Begins {
        /// The arrival buffer, whose mail comes first.
        arrival_buffer: Option<ActorId>,
    },
}

/// A value that is dropped when the mail of a stub continues.
pub type Settling = Box<dyn Settle>;

/// A value that is dropped when the mail of a stub continues, and holds the watchers until then.
pub trait Settle: Send {
    /// Returns the watchers of the old route. The caller records them on the new route before the mail continues,
    /// because an `unwatch` may be in that mail. Watchers that are not taken are notified that the actor is not alive.
    fn take_watchers(&mut self) -> Vec<(Watcher, Notify)>;
}

/// The content of a stub.
pub enum StubContent<'a> {
    /// The route to a remote actor.
    Way(&'a mut Arc<dyn Forwarder>),
    /// The actor itself, or it is about to arrive.
    Here,
    /// Nothing: the stub was released.
    Nobody,
}

/// Changes the route of a stub. Returns the watchers to notify of the actor's end, if it is in this theater.
pub type Reroute = Box<dyn FnOnce(StubContent<'_>) -> Vec<(Watcher, Notify)> + Send>;

/// Sends a marker along the route of the mail.
pub(crate) fn send_marker(marker: Marker, extra: &mut impl HasForwarder) {
    match extra.forwarder() {
        // If the marker cannot be forwarded, the forwarder reports it.
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
            // The actor has arrived, and waits for the marker.
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
        cx.extra().remote().reroute = Some(self.number);
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
        // The actor has arrived in the meantime, and another reroute handles the waiting mail.
        cx.extra().watches().watched_by(self.settling.take_watchers());
    }

    fn send_on(mut self, cx: &mut AwayCx<ActorState<A>>) {
        let present = cx.extra().remote().reroute;
        cx.extra().watches().watched_by(self.settling.take_watchers());
        if self.number.is_some() && cx.is_closed() {
            // The actor is about to arrive, and the waiting mail waits for it.
            cx.extra().remote().reroute = None;
            return;
        }
        let who = ActorId(cx.address().raw());
        let extra = cx.extra();
        // Another reroute has ended since, or the actor has left since: that route is better.
        if self.number <= present
            && let Some(forwarder) = self.forwarder
        {
            *extra.away() = Some(forwarder);
        }
        if let Some(forwarder) = extra.away().clone() {
            forwarder.is_route_from(who);
            // If another reroute has begun, the watchers wait for its end, as the mail does.
            let another_reroute = self.number.is_some() && present.is_some() && self.number != present;
            let watchers = if another_reroute { Vec::new() } else { std::mem::take(&mut extra.watches().watchers) };
            for (watcher, notify) in watchers {
                let _ = forwarder.carry(ForwardedMessage::Watch { watcher, notify: Watch::telling(who, notify) });
            }
        }
        // The marker of a later reroute has taken the old route, which was as good. Mail that waits for that marker
        // takes the new route.
        if self.number.is_none() || self.number == present {
            cx.reroute();
            cx.extra().remote().reroute = None;
            cx.thaw();
            // The waiting mail is sent after this request, and before later mail.
            cx.address().send_control_behind(AfterWaiting(self.settling));
        }
    }
}

/// A request that follows the mail that had waited at a stub.
struct AfterWaiting(Settling);

impl<A: Mobile> Control<ActorState<A>> for AfterWaiting {
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
    /// The number of times that this request was queued again behind others.
    deferred: u8,
    settling: Settling,
}

impl<A: Actor> Begins<A> {
    pub(crate) fn new(arrival_buffer: Option<Address<ActorState<A>>>, settling: Settling) -> Begins<A> {
        Begins { arrival_buffer, deferred: 0, settling }
    }

    /// Releases the arrival buffer: its mail becomes dead letters.
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
            // A request to the cell has panicked, and the cell has another state now.
            cx.extra().watches().watched_by(self.settling.take_watchers());
            self.forget_arrival_buffer();
        } else {
            if let Some(arrival_buffer) = self.arrival_buffer {
                let deferred = self.deferred + 1;
                match deferred {
                    // If the stub was rerouting already, this request may have been queued before the actor arrived,
                    // and so before the actor's own beginning.
                    1 => return cx.address().send_control_behind(Begins { deferred, ..self }),
                    // Mail to the arrival buffer in a higher lane (a watch, a stop, an urgent message) may have been
                    // sent before this request, and still be in the inbox. It would find no actor at the buffer
                    // afterwards.
                    2 => return cx.address().send_control_urgently(Begins { deferred, ..self }),
                    _ => cx.admit(arrival_buffer),
                }
            }
            let extra = cx.extra();
            extra.watches().watched_by(self.settling.take_watchers());
            *extra.away() = None;
            match extra.remote().decided.take() {
                Some(decided) => cx.carry_out(decided),
                None => cx.thaw(),
            }
        }
    }

    fn bounce(self, _: Undelivered) {
        // The actor has arrived, and has ended.
        self.forget_arrival_buffer();
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        // The actor has been sent to this cell, and has not arrived yet.
        cx.address().send_control_behind(self);
    }
}

pub(crate) struct Rerouted(pub(crate) Reroute);

impl<A: Actor> Control<ActorState<A>> for Rerouted {
    fn passes(&self) -> bool {
        true
    }

    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        cx.extra().watches().watched_by((self.0)(StubContent::Here));
    }

    fn bounce(self, _: Undelivered) {
        (self.0)(StubContent::Nobody);
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        let is_coming = cx.is_closed();
        let extra = cx.extra();
        let present = match extra.away() {
            Some(forwarder) if !is_coming => StubContent::Way(forwarder),
            _ => StubContent::Here,
        };
        let watchers = (self.0)(present);
        extra.watches().watched_by(watchers);
    }
}

/// A marker that is passed on. It does not wait for a frozen actor, because the mail before it is in the actor's
/// mailbox.
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
            // Urgent messages that came before it may still be in the inbox. They are forwarded before it.
            return cx.address().send_control_urgently(Pass { again: true, ..self });
        }
        if cx.is_frozen() {
            return cx.address().send_control_behind(PassBehind(self.marker));
        }
        send_marker(self.marker, cx.extra());
    }
}

/// A marker at a stub that is rerouting: it follows the mail that waits at the stub.
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
