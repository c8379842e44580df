//! Frames whose answers show that all before them has arrived: fences for all that was sent over a link, and markers for mail to an actor that has
//! moved.

use playhouse_actor::away::Origin;

use super::receive::Unanswered;
use super::targets::Target;
use super::*;
use crate::link::frame::HOPS_MAX;
use crate::naming::RemoteActorId;

/// Answers a fence when the last reference is dropped.
struct Fenced {
    link: Arc<Link>,
    ask: u64,
}

impl Drop for Fenced {
    fn drop(&mut self) {
        let head = Head::Answer { ask: self.ask, codec: Codec::Positional.into() };
        let _ = self.link.send(Lane::Normal, |out| head.write(out));
    }
}

impl Link {
    /// Drops `rest` when all that was sent over this link is in mailboxes, or is lost.
    pub(crate) fn fence(self: &Arc<Self>, rest: Arc<DrainGuard>) {
        {
            let mut fences = lock(&self.fences);
            if !self.is_unfenced.load(Ordering::Acquire) {
                if let Some(last) = fences.waiting.back_mut() {
                    last.waits.push(rest);
                }
                return;
            }
        }
        let link = Arc::clone(self);
        // They wait in the order in which they are written, because this runs under the lock of `out`.
        let answer = |number| -> TakeAnswer {
            let mut fences = lock(&self.fences);
            self.is_unfenced.store(false, Ordering::Release);
            fences.waiting.push_back(FenceSent { number, is_answered: false, waits: vec![rest] });
            Box::new(move |_| {
                let ended = lock(&link.fences).answered(number);
                drop(ended);
            })
        };
        // On an error the answer says it.
        let _ = self.ask_numbered(answer, Lane::Normal, |ask, out| Head::Fence { ask }.write(out));
    }

    pub(super) fn take_fence(&self, ask: u64) {
        let fenced = Arc::new(Fenced { link: self.this(), ask });
        let Some(theater_core) = self.theater_core() else { return };
        for id in TARGETS.with_borrow_mut(Targets::take_reached) {
            if let Some((moves, _)) = self.registry.migration_vtable(id) {
                (moves.pass_marker)(id, theater_core.fence_marker(id, Arc::clone(&fenced)));
            }
        }
    }

    pub(super) fn take_marker(&self, to: Handle, ask: u64, origin: Origin, hops: u16) {
        let link = self.this();
        // It may be kept for long: a peer that sends more in that time is read no further.
        let unanswered = Unanswered::new(self.this(), size_of::<Marker>());
        let answer: TakeAnswer = Box::new(move |answer| match answer {
            Ok((codec, bytes)) => {
                let _unanswered = unanswered;
                let _ = link.send(Lane::Normal, |out| {
                    Head::Answer { ask, codec: codec.into() }.write(out)?;
                    out.extend_from_slice(bytes);
                    Ok(())
                });
            }
            Err(error) => link.fail(ask, &error),
        });
        let Some(theater_core) = self.theater_core() else { return answer(Err(AskError::Shutdown)) };
        let hops = hops.saturating_add(1);
        if hops > HOPS_MAX {
            return answer(Err(AskError::Unreachable(format!("a marker has come over more than {HOPS_MAX} links"))));
        }
        let is_own = origin.theater == self.directory.incarnation;
        if is_own
            && origin.capability
                != self.directory.capability_of_reroute(origin.slot, origin.incarnation, origin.reroute)
        {
            return answer(Err(AskError::Unreachable("a marker that this theater has not sent".to_owned())));
        }
        if is_own && let Some(id) = theater_core.rerouting_at(&origin) {
            // It has come round to the stub that sent it, and the actor has arrived at that stub. All mail before the marker is in the arrival
            // buffer.
            theater_core.say_here(id, answer);
            return theater_core.rerouted(id, origin.reroute, theater_core.location(id).map(RemoteActorId::from));
        }
        let target = self.meaning(to);
        let moves = target.and_then(|target| Some((target, self.registry.migration_vtable(target.id)?.0)));
        match moves {
            None => answer(Err(AskError::Stopped)),
            // Mail before the marker comes before all that waits for the actor.
            Some((target, _)) if target.arrival_buffer.is_some() => theater_core.say_here(target.id, answer),
            Some((target, moves)) => (moves.pass_marker)(target.id, theater_core.marker_with((origin, hops), answer)),
        }
    }

    /// Tells the other end that the actor that it calls `handle` has moved. Returns false if it has come, and its cell has not learned that yet.
    pub(super) fn tell_moved(&self, handle: Handle, target: &Target) -> bool {
        if self.registry.migration_vtable(target.id).is_none() {
            return true;
        }
        if !self.directory.is_remote(target.id) {
            return false;
        }
        if target.told == 1 {
            // Relaxed: it is a counter only.
            self.directory.told_moved.fetch_add(1, Ordering::Relaxed);
        }
        let _ = self.send(Lane::Normal, |out| Head::Moved { handle }.write(out));
        true
    }

    pub(super) fn take_moved(&self, handle: Handle) {
        let id = {
            let stubs = lock(&self.stubs);
            let id = stubs.by_handle.get(handle as usize).copied();
            id.filter(|id| stubs.handles.get(id) == Some(&handle))
        };
        if let (Some(id), Some(theater_core)) = (id, self.theater_core()) {
            theater_core.reroute(id, self.incarnation);
        }
    }
}
