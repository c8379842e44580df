//! Markers: a marker goes behind the mail to an actor that has moved, and its answer shows that all mail before it has arrived.

use std::sync::Arc;

use playhouse_actor::away::{ActorLocation, Marker, Origin, TakeAnswer};
use playhouse_actor::wire::Codec;
use playhouse_actor::{ActorId, AskError};
use playhouse_executor::Lane;

use crate::link::frame::{HOPS_MAX, Handle, Head};
use crate::link::{Link, Unanswered};
use crate::naming::RemoteActorId;
use crate::node::core::TheaterCore;

impl TheaterCore {
    /// Returns a marker behind the mail that was sent to the stub `id`. `waits` is dropped when the marker was answered, or is lost.
    pub(crate) fn fence_marker(self: &Arc<Self>, id: ActorId, waits: impl Send + 'static) -> Marker {
        let (slot, incarnation) = self.directory.stub_of(id);
        let reroute = self.directory.next_number();
        let capability = self.directory.capability_of_reroute(slot, incarnation, reroute);
        let answer = Box::new(move |_: Result<(Codec, &[u8]), AskError>| drop(waits));
        self.marker_with((Origin { theater: self.incarnation, slot, incarnation, reroute, capability }, 0), answer)
    }

    /// Returns a marker that came from another theater over `hops` links, and goes on.
    pub(crate) fn marker_with(self: &Arc<Self>, (origin, hops): (Origin, u16), answer: TakeAnswer) -> Marker {
        let theater_core = Arc::downgrade(self);
        let here = Box::new(move |id: ActorId, answer: TakeAnswer| match theater_core.upgrade() {
            Some(theater_core) => theater_core.say_settled(id, answer),
            None => answer(Err(AskError::Shutdown)),
        });
        Marker { origin, hops, here, answer }
    }

    /// Returns a marker for the mail of the stub `id`, for its reroute of this number.
    pub(crate) fn marker(self: &Arc<Self>, id: ActorId, reroute: u64) -> Marker {
        let (slot, incarnation) = self.directory.stub_of(id);
        let theater_core = Arc::downgrade(self);
        let answer = Box::new(move |answer: Result<(Codec, &[u8]), AskError>| {
            let location = answer.ok().and_then(|(codec, bytes)| codec.read::<ActorLocation>(bytes).ok());
            if let Some(theater_core) = theater_core.upgrade() {
                theater_core.rerouted(id, reroute, location.map(RemoteActorId::from));
            }
        });
        let capability = self.directory.capability_of_reroute(slot, incarnation, reroute);
        self.marker_with((Origin { theater: self.incarnation, slot, incarnation, reroute, capability }, 0), answer)
    }

    /// Returns the stub that has sent this marker, if the actor has come to it since and waits for the marker.
    pub(crate) fn rerouting_at(&self, origin: &Origin) -> Option<ActorId> {
        let id = self.directory.find(origin.slot, origin.incarnation)?;
        let view = self.directory.view(id);
        (view.is_arriving() && view.reroute() == Some(origin.reroute)).then_some(id)
    }
}

impl Link {
    pub(crate) fn take_marker(&self, theater_core: &Arc<TheaterCore>, to: Handle, ask: u64, origin: Origin, hops: u16) {
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
            theater_core.answer_marker(id, answer);
            return theater_core.rerouted(id, origin.reroute, theater_core.location(id).map(RemoteActorId::from));
        }
        let target = self.meaning(to);
        let moves = target.and_then(|target| Some((target, self.registry.migration_vtable(target.id)?.0)));
        match moves {
            None => answer(Err(AskError::Stopped)),
            // Mail before the marker comes before all that waits for the actor.
            Some((target, _)) if target.arrival_buffer.is_some() => theater_core.answer_marker(target.id, answer),
            Some((target, moves)) => (moves.pass_marker)(target.id, theater_core.marker_with((origin, hops), answer)),
        }
    }

    pub(crate) fn take_moved(&self, theater_core: &Arc<TheaterCore>, handle: Handle) {
        let id = self.stub_of_handle(handle);
        if let Some(id) = id {
            theater_core.reroute(id, self.incarnation);
        }
    }
}
