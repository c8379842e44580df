//! How actors have ended that had come from other theaters, and what is done to actors some milliseconds later, because their places have not heard yet
//! where they are.

use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard};

use playhouse_actor::wire::Controls;
use playhouse_actor::{ActorId, Ended, Notify, StopReason, Tell, Watcher};
use rustc_hash::FxHashMap;

use super::{Directory, lock};

/// How the latest actors have ended that had come from other theaters, or were lost with those: as many as [`ENDS_MAX`].
#[derive(Default)]
pub(super) struct Ends {
    by_actor: FxHashMap<ActorId, Ended>,
    in_order: VecDeque<ActorId>,
}

/// Who watches an actor over another way needs to find its end here for as long as a request takes from theater to theater.
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

/// An actor, and what is done to it.
pub(crate) type Again = (ActorId, Act);

/// Does something to an actor. It has no controls if it has no place.
type Later = Box<dyn FnOnce(ActorId, Option<&Controls>) + Send>;

/// An act on an actor that is carried out later.
pub(crate) enum Act {
    /// It is watched.
    Watch(Watcher, Tell),
    /// Something else.
    Other(Later),
}

impl Act {
    /// Does it.
    pub(crate) fn run(self, id: ActorId, controls: Option<&Controls>) {
        match (self, controls) {
            (Act::Watch(watcher, tell), Some(controls)) => (controls.watch)(id, watcher, Notify::Call(tell)),
            (Act::Watch(_, tell), None) => tell(StopReason::TheaterLost.into()),
            (Act::Other(act), controls) => act(id, controls),
        }
    }
}

impl Directory {
    /// Returns who is told when an actor that has come to this place ends there.
    pub(crate) fn note_end_of(self: &Arc<Self>, id: ActorId) -> Tell {
        let directory = Arc::downgrade(self);
        Box::new(move |ended| {
            if let Some(directory) = directory.upgrade() {
                directory.ends().note(id, ended);
            }
        })
    }

    /// Returns who is told of the end of the actor `id`, for `tell`. Who has watched it over another way, and watches it here instead, may come
    /// when it has just ended, or was just lost.
    pub(crate) fn telling_end(self: &Arc<Self>, id: ActorId, tell: Tell) -> Tell {
        let directory = Arc::downgrade(self);
        Box::new(move |ended| {
            let late = ended.reason == StopReason::NotAlive;
            let directory = directory.upgrade().filter(|_| late);
            let known = directory.and_then(|directory| directory.ends().by_actor.get(&id).cloned());
            tell(known.unwrap_or(ended));
        })
    }

    /// The actor of this place is lost with its theater.
    pub(crate) fn note_lost(&self, id: ActorId) {
        self.ends().note(id, StopReason::TheaterLost.into());
    }

    /// Whether the actor of this place was lost with its theater, among the last that have ended.
    pub(crate) fn was_lost(&self, id: ActorId) -> bool {
        self.ends().by_actor.get(&id).is_some_and(|ended| ended.reason == StopReason::TheaterLost)
    }

    fn ends(&self) -> MutexGuard<'_, Ends> {
        lock(&self.ends)
    }

    /// Has the actor watched some milliseconds later, whatever the way from its place is then. If there is none any more, it was
    /// lost with its theater.
    pub(crate) fn watch_again(&self, id: ActorId, watcher: Watcher, notify: Tell) {
        lock(&self.again).push((id, Act::Watch(watcher, notify)));
    }

    /// The watcher does not watch the actor any more. Returns whether it did, and the place was not told so yet: it is about to be, by the request that
    /// tells it of the new way of the actor's mail, or some milliseconds later.
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
        // A dropped notice notifies nobody. It is dropped after the locks, because its drop may run other code.
        !forgotten.is_empty() || !again.is_empty()
    }

    /// Has the actor watched no more some milliseconds later, whatever the way from its place is then.
    pub(crate) fn unwatch_again(&self, id: ActorId, watcher: Watcher) {
        self.again(id, move |id, controls| {
            if let Some(controls) = controls {
                (controls.unwatch)(id, watcher);
            }
        });
    }

    /// Does this to the actor some milliseconds later, if it has a place then.
    pub(crate) fn again(&self, id: ActorId, act: impl FnOnce(ActorId, Option<&Controls>) + Send + 'static) {
        lock(&self.again).push((id, Act::Other(Box::new(act))));
    }

    /// What is to be done again.
    pub(crate) fn take_again(&self) -> Vec<Again> {
        std::mem::take(&mut *lock(&self.again))
    }
}
