//! Watches on an actor: the requests that begin and end them, and the wait of a thread or a task for an end.

pub(crate) mod ended;

use playhouse_executor::{Address, AwayCx, Control, ControlCx, MailKind, Undelivered};

use crate::actor::migration_host::forget_watch;
use crate::actor::watcher::{HasWatches, Watches};
use crate::actor::{Actor, ActorId, ActorState, Ended, Notify, StopReason, Tell, Terminated, Watcher};
use crate::message::forward::{self, ForwardedMessage};

/// The beginning or the end of a watch on this actor.
pub(crate) enum Watch {
    Begin { watcher: Watcher, notify: Notify, who: ActorId },
    End { watcher: Watcher },
}

impl Watch {
    /// Returns a call that notifies the watcher of the end of `who`.
    pub(crate) fn telling(who: ActorId, notify: Notify) -> Tell {
        // A notice that was forwarded before is not wrapped again, because it would grow with each migration.
        let notify = match notify {
            Notify::Call(tell) => return tell,
            port @ Notify::Port(_) => port,
        };
        Box::new(move |Ended { name, reason }| notify.tell(Terminated { who, name, reason }))
    }

    #[inline(never)]
    fn note(self, who: ActorId, extra: &mut impl HasWatches) {
        match self {
            Watch::Begin { watcher, notify, .. } => drop(watcher.begin(&mut extra.watches().watchers, notify)),
            Watch::End { watcher } => {
                // A notice that is dropped uncalled notifies no watcher.
                let ended = extra.watches().watchers.extract_if(.., |(known, _)| watcher.ends(known)).count();
                if ended == 0 && extra.is_mobile() {
                    forget_watch(who, watcher);
                }
            }
        }
    }

    /// Returns the watcher if this end of a watch may have overtaken the watch's beginning, which is `deferred` with
    /// other mail.
    ///
    /// Watches are numbered, so the end may be handled a second time later. A supervisor may watch again under the same
    /// key, so the end of its watch may not be repeated.
    fn is_early(&self, deferred: bool) -> Option<Watcher> {
        match self {
            Watch::End { watcher } if deferred && !matches!(watcher, Watcher::There(u64::MAX, _)) => Some(*watcher),
            Watch::End { .. } | Watch::Begin { .. } => None,
        }
    }

    #[inline(never)]
    pub(crate) fn refuse(self) {
        if let Watch::Begin { notify, who, .. } = self {
            notify.tell(Terminated { who, name: None, reason: StopReason::NotAlive });
        }
    }

    #[inline(never)]
    fn forwarded(self) -> ForwardedMessage<'static> {
        match self {
            Watch::Begin { watcher, notify, who } => {
                ForwardedMessage::Watch { watcher, notify: Watch::telling(who, notify) }
            }
            Watch::End { watcher } => ForwardedMessage::Unwatch { watcher },
        }
    }
}

impl<A: Actor> Control<ActorState<A>> for Watch {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        if cx.extra().watches().behind > 0 {
            let to = cx.address();
            return Behind::put(self, cx.extra().watches(), to);
        }
        if let Some(watcher) = self.is_early(cx.has_deferred()) {
            cx.address().send_control_in_order(LateEnd(watcher));
        }
        self.note(ActorId(cx.address().raw()), cx.extra());
    }

    fn bounce(self, _: Undelivered) {
        self.refuse();
    }

    fn describe(&self) -> (MailKind, &'static str) {
        (MailKind::Control, if matches!(self, Watch::Begin { .. }) { "watch" } else { "unwatch" })
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        if cx.is_closed() || cx.extra().watches().behind > 0 {
            let to = cx.address();
            return Behind::put(self, cx.extra().watches(), to);
        }
        if let Some(watcher) = self.is_early(cx.has_deferred()) {
            cx.address().send_control_in_order(LateEnd(watcher));
        }
        // If the request cannot be forwarded, the forwarder notifies the watcher.
        let _ = forward::carry(self.forwarded(), cx);
    }
}

/// A watch that queues behind an actor about to arrive, because the incoming actor brings its watchers along. It also
/// queues behind earlier watches of this kind.
struct Behind(Watch);

impl Behind {
    fn put<A: Actor>(watch: Watch, watches: &mut Watches, to: Address<ActorState<A>>) {
        watches.behind += 1;
        to.send_control_behind(Behind(watch));
    }
}

impl<A: Actor> Control<ActorState<A>> for Behind {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        cx.extra().watches().one_less_behind();
        self.0.note(ActorId(cx.address().raw()), cx.extra());
    }

    fn bounce(self, _: Undelivered) {
        self.0.refuse();
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        if cx.is_closed() {
            return cx.address().send_control_behind(self);
        }
        cx.extra().watches().one_less_behind();
        let _ = forward::carry(self.0.forwarded(), cx);
    }
}

/// A [`Watch::End`] that queues behind all mail sent to the actor before, including deferred mail.
struct LateEnd(Watcher);

impl<A: Actor> Control<ActorState<A>> for LateEnd {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        Watch::End { watcher: self.0 }.note(ActorId(cx.address().raw()), cx.extra());
    }

    fn bounce(self, _: Undelivered) {}

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        if cx.is_closed() {
            return cx.address().send_control_behind(self);
        }
        let _ = forward::carry(Watch::End { watcher: self.0 }.forwarded(), cx);
    }
}
