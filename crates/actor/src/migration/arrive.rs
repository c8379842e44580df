//! The requests to the cell of an actor that arrives: its state is read, and it begins.

use std::sync::Arc;

use playhouse_executor::{AwayCx, Control, ControlCx, MailKind, SystemCore, Undelivered};

use crate::actor::reference::ActorRef;
use crate::actor::spawn::{Placement, spawn_at};
use crate::actor::watcher::HasWatches;
use crate::actor::{ActorId, ActorState};
use crate::codec::{Codec, WireError};
use crate::message::forward::HasForwarder;
use crate::migration::hooks::MigratedHook;
use crate::migration::offer::ActorMetadata;
use crate::migration::steps::{Arrival, ArrivalRoute, Install, to};
use crate::remote::registry::Mobile;
use crate::remote::route::send_marker;
use crate::remote::slot::HasRemote;
use crate::watch::Watch;

pub(super) fn read<A: Mobile>(state: &[u8], codec: Codec, metadata: ActorMetadata) -> Result<Install, WireError> {
    Ok(install::<A>(codec.read(state)?, metadata))
}

pub(super) fn install<A: Mobile>(actor: A, metadata: ActorMetadata) -> Install {
    Box::new(move |stub, coming| {
        match to::<A>(stub) {
            Some(address) => address.send_control_behind(Arrive { actor, metadata, coming }),
            None => return Some(coming),
        }
        None
    })
}

fn start<A: Mobile>(system: &Arc<SystemCore>, actor: A, metadata: ActorMetadata) -> Result<ActorRef<A>, WireError> {
    spawn_at(system, Placement::Spread, None, actor, MigratedHook(metadata)).map_err(WireError::new)
}

struct Arrive<A> {
    actor: A,
    metadata: ActorMetadata,
    coming: Arrival,
}

impl<A: Mobile> Control<ActorState<A>> for Arrive<A> {
    fn passes(&self) -> bool {
        true
    }

    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        if cx.is_frozen() {
            // The actor has left and returned before this cell has learned that it left.
            return cx.address().send_control_behind(self);
        }
        // An actor arrives once. A message of such a name is dropped, because no actor expects it.
        debug_assert!(false, "{:?} has arrived twice", cx.address().raw());
    }

    fn bounce(mut self, _: Undelivered) {
        // The stub was released in the meantime, together with the route of its mail.
        playhouse_executor::with_current_system(|system| {
            let started = system.and_then(|system| start(system, self.actor, self.metadata).ok());
            for (watcher, notify) in self.coming.settling.take_watchers() {
                let who = started.map_or_else(ActorId::nobody, ActorRef::id);
                let watch = Watch::Begin { watcher, notify, who };
                match started {
                    Some(started) => started.address.send_control(watch),
                    None => watch.refuse(),
                }
            }
        });
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        cx.extra().remote().reroute = None;
        cx.arrive(ActorState { actor: self.actor });
        let Arrival { mut settling, route } = self.coming;
        let at_once = matches!(route, ArrivalRoute::Freely { is_settled: false });
        cx.address().send_control_behind(Begin { metadata: self.metadata, at_once });
        let extra = cx.extra();
        extra.watches().watched_by(settling.take_watchers());
        match route {
            ArrivalRoute::Behind(marker) => {
                if let Some(marker) = marker {
                    send_marker(marker, extra);
                }
            }
            ArrivalRoute::Freely { .. } => {
                // The actor may have left this stub only a moment ago. Its watchers were not found then, when it was
                // admitted.
                let late = extra.away().take().map(|forwarder| forwarder.take_watchers());
                extra.watches().watched_by(late.unwrap_or_default());
            }
        }
    }
}

/// The first request to the cell of an actor that has arrived. It is sent before the request that thaws the cell, or
/// thaws the cell itself (`at_once`).
struct Begin {
    metadata: ActorMetadata,
    at_once: bool,
}

impl<A: Mobile> Control<ActorState<A>> for Begin {
    fn passes(&self) -> bool {
        true
    }

    fn describe(&self) -> (MailKind, &'static str) {
        if self.metadata.is_new { (MailKind::Start, "start") } else { (MailKind::Control, "migrated") }
    }

    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        if self.at_once {
            cx.run(MigratedHook(self.metadata));
            cx.thaw();
        } else {
            // If the hook ends or crashes the actor, that is carried out when the mail before the waiting mail has
            // come.
            let decided = cx.run_ahead(MigratedHook(self.metadata));
            cx.extra().remote().decided = decided;
        }
    }
}
