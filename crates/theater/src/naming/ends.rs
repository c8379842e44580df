//! The ends of actors that had come from other theaters, and acts on actors some milliseconds later, because their stubs have not learned their
//! locations yet.

use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard};

use playhouse_actor::wire::Controls;
use playhouse_actor::{ActorId, Ended, Notify, StopReason, Tell, Watcher};
use rustc_hash::FxHashMap;

use crate::lock::lock;
use crate::naming::directory::Directory;

/// The reasons of the latest ends of actors that had come from other theaters, or were lost with those: at most [`ENDS_MAX`].
#[derive(Default)]
pub(super) struct Ends {
    by_actor: FxHashMap<ActorId, Ended>,
    in_order: VecDeque<ActorId>,
}

/// Most ends that are kept. A watcher over another route needs to find the end of an actor for as long as a request takes from theater to theater.
const ENDS_MAX: usize = 4 * 1024;

impl Ends {
    fn note(&mut self, id: ActorId, ended: Ended) {
        if self.by_actor.insert(id, ended).is_none() {
            self.in_order.push_back(id);
        }
        if self.in_order.len() > ENDS_MAX
            && let Some(first) = self.in_order.pop_front()
        {
            self.by_actor.remove(&first);
        }
    }
}

/// An actor, and the act on it.
pub(crate) type Again = (ActorId, Act);

/// A function that acts on an actor. It gets no controls if the actor has no stub.
type Later = Box<dyn FnOnce(ActorId, Option<&Controls>) + Send>;

/// An act on an actor that is carried out later.
pub(crate) enum Act {
    /// The actor is watched.
    Watch(Watcher, Tell),
    /// Another act.
    Other(Later),
}

impl Act {
    /// Carries out the act.
    pub(crate) fn run(self, id: ActorId, controls: Option<&Controls>) {
        match (self, controls) {
            (Act::Watch(watcher, tell), Some(controls)) => (controls.watch)(id, watcher, Notify::Call(tell)),
            (Act::Watch(_, tell), None) => tell(StopReason::TheaterLost.into()),
            (Act::Other(act), controls) => act(id, controls),
        }
    }
}

impl Directory {
    /// Returns the callback for the end of an actor that has come to this stub.
    pub(crate) fn note_end_of(self: &Arc<Self>, id: ActorId) -> Tell {
        let directory = Arc::downgrade(self);
        Box::new(move |ended| {
            if let Some(directory) = directory.upgrade() {
                directory.ends().note(id, ended);
            }
        })
    }

    /// Returns the callback for the end of the actor `id`, for `tell`. A watcher that changes from another route to this theater may come when the
    /// actor has just ended, or was just lost.
    pub(crate) fn telling_end(self: &Arc<Self>, id: ActorId, tell: Tell) -> Tell {
        let directory = Arc::downgrade(self);
        Box::new(move |ended| {
            let late = ended.reason == StopReason::NotAlive;
            let directory = directory.upgrade().filter(|_| late);
            let known = directory.and_then(|directory| directory.ends().by_actor.get(&id).cloned());
            tell(known.unwrap_or(ended));
        })
    }

    /// Notes that the actor of this stub is lost with its theater.
    pub(crate) fn note_lost(&self, id: ActorId) {
        self.ends().note(id, StopReason::TheaterLost.into());
    }

    /// Returns whether the actor of this stub was lost with its theater, among the latest ends.
    pub(crate) fn was_lost(&self, id: ActorId) -> bool {
        self.ends().by_actor.get(&id).is_some_and(|ended| ended.reason == StopReason::TheaterLost)
    }

    fn ends(&self) -> MutexGuard<'_, Ends> {
        lock(&self.ends)
    }

    /// Has the actor watched some milliseconds later, over the route that its stub has then. If there is none any more, it was lost with its theater.
    pub(crate) fn watch_again(&self, id: ActorId, watcher: Watcher, notify: Tell) {
        lock(&self.again).push((id, Act::Watch(watcher, notify)));
    }

    /// Ends the watch of the watcher. Returns whether there was one that the stub had not learned yet. The stub is about to learn it, by the request
    /// with the new route of the actor's mail, or some milliseconds later.
    pub(crate) fn forget_watch(&self, id: ActorId, watcher: Watcher) -> bool {
        let stubs: Vec<_> = {
            let settling = lock(&self.settling);
            let stubs = settling.stubs.values().filter(|stub| stub.id == id);
            stubs.map(|stub| Arc::clone(&stub.watchers)).collect()
        };
        let mut forgotten = Vec::new();
        for stub in stubs {
            forgotten.extend(lock(&stub).extract_if(.., |(known, _)| watcher.ends(known)).map(|(_, tell)| tell));
        }
        let is_meant = |(of, act): &mut Again| *of == id && matches!(act, Act::Watch(known, _) if watcher.ends(known));
        let again: Vec<Again> = lock(&self.again).extract_if(.., is_meant).collect();
        // A dropped notice notifies no watcher. It is dropped after the locks, because its drop may run other code.
        !forgotten.is_empty() || !again.is_empty()
    }

    /// Has the watch of the actor ended some milliseconds later, over the route that its stub has then.
    pub(crate) fn unwatch_again(&self, id: ActorId, watcher: Watcher) {
        self.again(id, move |id, controls| {
            if let Some(controls) = controls {
                (controls.unwatch)(id, watcher);
            }
        });
    }

    /// Acts on the actor some milliseconds later, if it has a stub then.
    pub(crate) fn again(&self, id: ActorId, act: impl FnOnce(ActorId, Option<&Controls>) + Send + 'static) {
        lock(&self.again).push((id, Act::Other(Box::new(act))));
    }

    /// Takes the acts that are due.
    pub(crate) fn take_again(&self) -> Vec<Again> {
        std::mem::take(&mut *lock(&self.again))
    }
}
