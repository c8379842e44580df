//! Watchers: actors, theaters and threads that are notified of an actor's end.

use std::sync::atomic::{AtomicU64, Ordering};

use playhouse_executor::Port;

use crate::actor::{ActorId, StopReason, Terminated};

/// The watches on an actor.
#[derive(Default)]
pub(crate) struct Watches {
    pub(crate) watchers: Vec<(Watcher, Notify)>,
    /// The number of watches that queue behind other mail: later watches queue behind them, too.
    pub(crate) behind: usize,
}

impl Watches {
    /// Counts one watch less that queues behind other mail. The watchers of such watches are notified of the actor's
    /// end, too.
    pub(crate) fn one_less_behind(&mut self) {
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
