//! The authority for the location of a mobile actor: told before the actor leaves a theater, and asked when the route to it is lost.
//!
//! An actor leaves only when its authority has noted that the actor may be in the target, too ([`migration`](crate::migration)). Therefore the loss
//! of a theater loses no knowledge of the targets of its actors.
//!
//! *The birth theater* is the authority while it lives. Its record of an actor names two theaters at most: the last source of the actor, and the
//! target of that migration. Each record has an [`Epoch`], and one with a lower epoch changes nothing. Such a record is late, because it came over a
//! link that its sender regards as lost. If the birth theater is lost to the source, or does not answer a call, the actor leaves without a note. Then
//! the other theaters can locate the actor only by their routes. A theater that did not answer is not called again for `lost_after`. Therefore actors
//! whose birth theaters have ended are not frozen for long.
//!
//! *A search* ([`locate`](crate::proxy::locate)) asks all theaters that the locating theater is linked with. The authority adds the theaters that
//! may have the actor. A link with each of them is made first.
//!
//! The noted theaters are asked, and the record alone is never believed: an actor may have stayed, ended, or not begun yet.
//!
//! A cluster implements [`Authority`] with the owners of its slots instead. It writes an exception when an actor leaves its home, and a search asks
//! the owner of the actor's slot. No authority lets an actor begin anew under its name. A supervisor starts another actor in place of a lost one, and
//! a child whose supervisor is lost ends, so neither needs a permission.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use playhouse_actor::ActorId;
use rustc_hash::FxHashSet;

use crate::link::Link;
use crate::link::frame::NOTED_MAX;
use crate::link::node::Callee;
use crate::lock::lock;
use crate::naming::{Epoch, Host, RemoteActorId};
use crate::node::core::TheaterCore;

/// A theater without a link is called once. Each step of the call has the limit of a call whose failure is no more than a delay.
const HOST_CALL_MAX: Duration = Duration::from_millis(1);

/// Most theaters that are not called again for a while.
const UNREACHED_MAX: usize = 256;

/// An actor that is about to leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departing {
    /// The name that it was born with.
    pub(crate) born: RemoteActorId,
    pub(crate) epoch: Epoch,
}

/// Called when all the work begun with it has ended.
pub(crate) type Ended = Box<dyn FnOnce() + Send>;

/// A record of the theaters that an actor may be in. Neither method blocks, and each calls `ended` exactly once, also if a theater is lost or cannot
/// be called.
pub(crate) trait Authority: Send + Sync {
    /// Returns whether the authority of this actor of `theater_core` has to be told when the actor leaves for the theater `to`.
    fn is_to_note(&self, theater_core: &TheaterCore, born: &RemoteActorId, to: u64) -> bool;

    /// Notes that these actors of `theater_core` may be in the theater `to`, too. They stay in `theater_core` until `ended`.
    fn note(&self, theater_core: &Arc<TheaterCore>, actors: Vec<Departing>, to: Host, ended: Ended);

    /// Has links made with the theaters that are to be asked for these actors, given by their stubs in this theater. It leaves out `known` theaters,
    /// which are lost, or asked anyway.
    fn reach(&self, theater_core: &Arc<TheaterCore>, actors: &[ActorId], known: &FxHashSet<u64>, ended: Ended);
}

/// The birth theaters of the actors, as their authority.
pub(crate) struct BirthTheaters;

/// Calls its function when the last reference is dropped.
struct AtEnd(Mutex<Option<Ended>>);

impl AtEnd {
    fn new(ended: Ended) -> Arc<AtEnd> {
        Arc::new(AtEnd(Mutex::new(Some(ended))))
    }
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        let ended = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ended) = ended {
            ended();
        }
    }
}

impl TheaterCore {
    /// Notes that a theater could not be called: until this time it is not called again.
    fn note_unreached(&self, host: Host, until: Duration) {
        let mut unreached = lock(&self.migrations().unreached);
        unreached.retain(|(other, _)| *other != host);
        unreached.truncate(UNREACHED_MAX - 1);
        unreached.push_front((host, until));
    }

    /// Returns whether a theater without a link may be one that can be called now.
    fn may_be_reached(&self, host: Host, now: Duration) -> bool {
        let mut unreached = lock(&self.migrations().unreached);
        unreached.retain(|(_, until)| *until > now);
        !unreached.iter().any(|(other, _)| *other == host) && !self.link_table.lost().contains(&host.theater)
    }
}

impl BirthTheaters {
    /// Gives the link with this theater to `then`, if there is one, or one can be made.
    fn with_link(theater_core: &Arc<TheaterCore>, host: Host, then: impl FnOnce(&Arc<Link>) + Send + 'static) {
        let Host { theater, address } = host;
        if let Some(link) = theater_core.link_table.link(theater) {
            return then(&link);
        }
        let Some(address) = address.filter(|_| theater_core.may_be_reached(host, theater_core.now())) else {
            return;
        };
        let here = Arc::clone(theater_core);
        let take = move |link: Result<Arc<Link>, _>| match link {
            Ok(link) if link.incarnation == theater => then(&link),
            // Another theater has this address, or none.
            Ok(_) | Err(_) => here.note_unreached(host, here.now().saturating_add(here.settings.lost_after)),
        };
        theater_core.reach_later(Callee::of(address, theater), HOST_CALL_MAX, Box::new(take));
    }
}

impl Authority for BirthTheaters {
    fn is_to_note(&self, theater_core: &TheaterCore, born: &RemoteActorId, to: u64) -> bool {
        // The birth theater knows an actor that leaves it, or comes to it.
        ![theater_core.incarnation, to].contains(&born.theater)
    }

    fn note(&self, theater_core: &Arc<TheaterCore>, mut actors: Vec<Departing>, to: Host, ended: Ended) {
        let at_end = AtEnd::new(ended);
        actors.retain(|actor| self.is_to_note(theater_core, &actor.born, to.theater));
        actors.sort_by_key(|actor| actor.born.theater);
        for actors in actors.chunk_by(|one, other| one.born.theater == other.born.theater) {
            for actors in actors.chunks(NOTED_MAX) {
                let RemoteActorId { theater, address, .. } = actors[0].born;
                let names = actors.iter().map(|Departing { born, epoch }| (born.slot_name(), *epoch));
                let (names, at_end) = (names.collect(), Arc::clone(&at_end));
                Self::with_link(theater_core, Host { theater, address }, move |link| {
                    link.say_departs(to, names, Box::new(move |_| drop(at_end)));
                });
            }
        }
    }

    fn reach(&self, theater_core: &Arc<TheaterCore>, actors: &[ActorId], known: &FxHashSet<u64>, ended: Ended) {
        let at_end = AtEnd::new(ended);
        let births = actors.iter().filter_map(|id| theater_core.directory.remote_name(*id));
        let births = births.map(|RemoteActorId { theater, address, .. }| Host { theater, address });
        let hosts = actors.iter().flat_map(|id| theater_core.directory.hosts(*id)).chain(births);
        let is_new = |host: &Host| host.theater != theater_core.incarnation && !known.contains(&host.theater);
        let hosts: FxHashSet<Host> = hosts.filter(is_new).collect();
        let mut hosts: Vec<Host> = hosts.into_iter().collect();
        hosts.sort_by_key(|host| (host.theater, host.address));
        for host in hosts {
            let at_end = Arc::clone(&at_end);
            Self::with_link(theater_core, host, move |_| drop(at_end));
        }
    }
}
