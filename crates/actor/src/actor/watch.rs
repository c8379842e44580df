//! Watches: actors, theaters and threads that are notified of an actor's end.

use std::sync::atomic::{AtomicU64, Ordering};

use playhouse_executor::{Address, AwayCx, Control, ControlCx, MailKind, Port, Undelivered};

use crate::actor::migration_host::forget_watch;
use crate::actor::{Actor, ActorId, ActorState, StopReason, Terminated};
use crate::message::forward::{self, ForwardedMessage};

/// The watches on an actor.
#[derive(Default)]
pub(crate) struct Watches {
    pub(crate) watchers: Vec<(Watcher, Notify)>,
    /// The number of [watches that queue behind](Behind) other mail: later watches queue behind them, too.
    behind: usize,
}

impl Watches {
    /// Counts one watch less that queues behind other mail. The watchers of such watches are notified of the actor's
    /// end, too.
    fn one_less_behind(&mut self) {
        self.behind = self.behind.saturating_sub(1);
    }

    pub(crate) fn watched_by(&mut self, watchers: Vec<(Watcher, Notify)>) {
        for (watcher, notify) in watchers {
            watcher.begin(&mut self.watchers, notify);
        }
    }
}

/// The state of a cell, as watches need it.
pub(crate) trait HasWatches {
    fn watches(&mut self) -> &mut Watches;
    /// Returns whether the actor can migrate to other theaters.
    fn is_mobile(&self) -> bool;
}

/// The identity of a watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Watcher {
    /// An actor of this system. Its later watches have higher numbers.
    Here(ActorId, u64),
    /// A watcher in the theater behind the link with the first number. The second number is the watcher's own.
    There(u64, u64),
    /// The theater of the actor. This watch does not migrate with the actor.
    Theater,
    /// A thread or a task, which has this number.
    Outside(u64),
}

/// The last number that was given to a watch of a local actor.
static LAST_WATCH: AtomicU64 = AtomicU64::new(0);

impl Watcher {
    /// Returns the next watch of the local actor `watcher`.
    pub(crate) fn next(watcher: ActorId) -> Watcher {
        // Relaxed: the handlers of an actor run one after the other, so the actor sees all numbers that were given to
        // it before.
        Watcher::Here(watcher, LAST_WATCH.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Returns a watcher that covers all watches of the local actor `watcher` up to now.
    pub(crate) fn last(watcher: ActorId) -> Watcher {
        Watcher::Here(watcher, LAST_WATCH.load(Ordering::Relaxed))
    }

    /// Adds a watch with its `value`. An existing watch of the same watcher continues under the later number.
    ///
    /// Returns whether the watch is new.
    pub fn begin<T>(self, watchers: &mut Vec<(Watcher, T)>, value: T) -> bool {
        if let Watcher::Outside(_) = self {
            // The number of a new watch is higher than all earlier ones.
            watchers.push((self, value));
            return true;
        }
        let known = watchers.iter_mut().map(|(known, _)| known).find(|known| self.is_of(known));
        let is_new = known.is_none();
        match (self, known) {
            (_, None) => watchers.push((self, value)),
            (Watcher::Here(_, later), Some(Watcher::Here(_, number))) => *number = later.max(*number),
            (_, Some(_)) => {}
        }
        is_new
    }

    /// Returns whether the end of this watch ends the watch `known`. It does not end a watch that the same watcher
    /// began later.
    pub fn ends(&self, known: &Watcher) -> bool {
        match (self, known) {
            (Watcher::Here(_, last), Watcher::Here(_, number)) => self.is_of(known) && number <= last,
            _ => self == known,
        }
    }

    fn is_of(&self, known: &Watcher) -> bool {
        match (self, known) {
            (Watcher::Here(watcher, _), Watcher::Here(other, _)) => watcher == other,
            _ => self == known,
        }
    }
}

/// The route of a notice to its watcher.
pub enum Notify {
    /// The notice is a message.
    Port(Port<Terminated>),
    /// The notice is a call.
    Call(Tell),
}

/// The function called when an actor has ended.
pub type Tell = Box<dyn FnOnce(Ended) + Send>;

/// The end of an actor: its name and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The name given to the actor, if it is known.
    pub name: Option<String>,
    /// The reason for the end.
    pub reason: StopReason,
}

impl From<StopReason> for Ended {
    /// Returns the end of an actor of unknown name.
    fn from(reason: StopReason) -> Ended {
        Ended { name: None, reason }
    }
}

impl Notify {
    pub(crate) fn tell(self, Terminated { who, name, reason }: Terminated) {
        match self {
            Notify::Port(port) => port.send(Terminated { who, name, reason }),
            Notify::Call(call) => call(Ended { name, reason }),
        }
    }
}

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
