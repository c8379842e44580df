//! The handles by which this end calls actors of the other end: they are given up, released, and given again.

use playhouse_actor::away::TakeAnswer;
use playhouse_actor::{ActorId, StopReason, Tell, Watcher};
use playhouse_executor::Lane;
use rustc_hash::FxHashMap;

use crate::link::frame::{Handle, Head};
use crate::link::{Link, Taken};
use crate::lock::lock;

/// The actors that this end's handles mean.
#[derive(Default)]
pub(super) struct StubHandles {
    pub(super) handles: FxHashMap<ActorId, Handle>,
    pub(super) by_handle: Vec<ActorId>,
}

impl StubHandles {
    /// Returns the actors that the valid handles mean, in the order of the handles.
    pub(super) fn in_order(&self) -> Vec<ActorId> {
        let present = |(id, handle): (&ActorId, Handle)| (self.handles.get(id) == Some(&handle)).then_some(*id);
        self.by_handle.iter().zip(0..).filter_map(present).collect()
    }
}

impl Link {
    /// Gives up a number by which no actor of this theater calls another any more.
    pub(crate) fn give_up(&self, handle: Handle) {
        /// The number of handles that are told together; [`Link::tidy`] tells fewer.
        const TOGETHER: usize = 64;
        if self.is_lost() {
            return;
        }
        {
            let mut stubs = lock(&self.stubs);
            if let Some(id) = stubs.by_handle.get(handle as usize).copied()
                && stubs.handles.get(&id) == Some(&handle)
            {
                stubs.handles.remove(&id);
            }
        }
        let (many, watched) = {
            let mut out = lock(&self.out);
            let of = out.watching.remove(&handle).unwrap_or_default();
            let watched: Vec<_> = of.into_iter().filter_map(|(_, watch)| out.watches.remove(&watch)).collect();
            out.given_up.push(handle);
            (out.given_up.len() >= TOGETHER, watched)
        };
        for (_, notify) in watched {
            notify(StopReason::NotAlive.into());
        }
        if many {
            self.release_handles();
        }
    }

    /// Releases handles, behind all frames in which they were used.
    fn release_handles(&self) {
        let handles = std::mem::take(&mut lock(&self.out).given_up);
        if handles.is_empty() {
            return;
        }
        let (link, free) = (self.this(), handles.clone());
        let answer: TakeAnswer = Box::new(move |answer| {
            if answer.is_ok() {
                lock(&link.out).free_handles.extend(free);
            }
        });
        // If it cannot be sent, no handle is in use any more.
        let _ = self.ask_with(answer, Lane::Normal, |ask, out| Head::Release { ask, handles }.write(out));
    }

    /// Tells the other end the free numbers and the ended actors. Called at intervals.
    pub(crate) fn tidy(&self) {
        self.release_handles();
        // If another thread reads, a later call does it.
        let Ok(mut inn) = self.inn.try_lock() else { return };
        let ended = inn.targets.ended();
        if !ended.is_empty() {
            // With the lock held, because it goes out before the answer to a release of these numbers, which may be given again then.
            let _ = self.send(Lane::Normal, |out| Head::Ended { handles: ended }.write(out));
        }
    }

    /// Drops the stubs of the other end's actors with these handles: they have ended.
    pub(super) fn take_ended(&self, handles: &[Handle]) {
        let ended: Vec<(Handle, ActorId)> = {
            let stubs = lock(&self.stubs);
            let known = handles.iter().filter_map(|handle| Some((*handle, *stubs.by_handle.get(*handle as usize)?)));
            known.filter(|(handle, id)| stubs.handles.get(id) == Some(handle)).collect()
        };
        ended.into_iter().for_each(|(handle, id)| self.forget_ended(handle, id));
    }

    /// Drops the stub `id`. Its actor has ended in the other theater, where `handle` means it.
    fn forget_ended(&self, handle: Handle, id: ActorId) {
        if self.directory.forget_actor(id) {
            if let Some(controls) = self.registry.controls(id) {
                (controls.forget)(id);
            }
        } else if self.directory.is_remote(id) {
            // The stub reroutes or locates its actor. When that is over, its route may be another one, and the number may mean another actor.
            let link = self.this();
            self.directory.again(id, move |id, _| {
                if link.handle_of(id) == Some(handle) {
                    link.forget_ended(handle, id);
                }
            });
        }
    }

    /// Removes the actor from this link, which is not its route any more. Returns its handle, and its watchers over that route. The other end does
    /// not [know](Link::unwatch) yet that they stop watching.
    pub(crate) fn release(&self, id: ActorId) -> Option<(Handle, Taken)> {
        // Most links are no route to it. The release does not wait for threads that write to them.
        self.handle_of(id)?;
        let mut out = lock(&self.out);
        let handle = lock(&self.stubs).handles.remove(&id)?;
        Some((handle, out.take_watching(handle)))
    }

    /// Returns the stub of the other end's actor with this handle, if this link is its route.
    pub(crate) fn stub_of_handle(&self, handle: Handle) -> Option<ActorId> {
        let stubs = lock(&self.stubs);
        let id = stubs.by_handle.get(handle as usize).copied();
        id.filter(|id| stubs.handles.get(id) == Some(&handle))
    }

    /// Returns the handle of the actor, if this link is its route.
    pub(crate) fn handle_of(&self, id: ActorId) -> Option<Handle> {
        lock(&self.stubs).handles.get(&id).copied()
    }

    /// Does the work of [`Link::release`] for an actor that may have another handle by now.
    pub(crate) fn release_handle(&self, id: ActorId, handle: Handle) -> Taken {
        let mut out = lock(&self.out);
        {
            let handles = &mut lock(&self.stubs).handles;
            if handles.get(&id) == Some(&handle) {
                handles.remove(&id);
            }
        }
        out.take_watching(handle)
    }

    /// Takes all watches of the actor with this handle over this link. Returns its former watchers.
    pub(crate) fn take_watches(&self, handle: Handle) -> Vec<(Watcher, Tell)> {
        let watched = lock(&self.out).take_watching(handle);
        let unwatched = |(watcher, watch, tell)| {
            self.unwatch(handle, watch);
            (watcher, tell)
        };
        watched.into_iter().map(unwatched).collect()
    }

    /// Tells the other end of a watch that this end has removed.
    pub(crate) fn unwatch(&self, handle: Handle, watch: u64) {
        // A failure does not matter: then the other end is lost.
        let _ = self.send(Lane::System, |out| Head::Unwatch { to: handle, watch }.write(out));
    }
}
