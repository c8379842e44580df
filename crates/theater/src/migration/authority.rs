//! The authority for where a mobile actor is: told before the actor leaves a theater, and asked when the way to it is lost.
//!
//! An actor leaves only when its authority has noted that the actor may be in the target, too ([`migration`](crate::migration)). So a theater
//! that is lost takes with it no knowledge of where its actors went.
//!
//! *The birth theater* is the authority while it lives. Its record of an actor names two theaters at most: the one that the actor was to leave
//! last, and the target of that. Each record has an [`Epoch`], and one with a lower epoch changes nothing: it has come late, over a link that its
//! sender holds for lost. If the birth theater is lost to the source, or does not answer a call, the actor leaves without a note. Then the other
//! theaters know where it is only by the ways that they have. A theater that did not answer is not called again for `lost_after`, so actors whose
//! birth theaters are no more are not frozen for long.
//!
//! *A search* ([`search`](crate::naming::locate)) asks all theaters that the seeker is linked with. The authority adds those that may have the actor. A
//! link with each of them is made first.
//!
//! The noted theaters are asked, and the record alone is never believed: an actor may have stayed, ended, or not begun yet.
//!
//! A cluster implements [`Authority`] with the owners of its slots instead: it writes the exception of an actor that leaves its home, and a
//! search asks the owner of the actor's slot. No authority lets an actor begin anew under its name. A supervisor starts another actor in place of
//! a lost one, and a child whose supervisor is lost ends, so neither needs to be allowed.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use playhouse_actor::ActorId;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use crate::link::Link;
use crate::naming::RemoteActorId;
use crate::node::core::{Callee, TheaterCore};

/// Most actors that one frame notes.
pub(crate) const NOTED_MAX: usize = 1_024;
/// A theater that there is no link with is called once, and each step of that has the limit of a call whose failure is no more than a delay.
const PATIENCE: Duration = Duration::from_millis(1);

/// How often an actor has left a theater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Epoch {
    /// Its last departure from its birth theater, by a number that only theaters know which have had the actor since.
    pub(crate) departure: u64,
    /// The number of attempts to leave other theaters since.
    pub(crate) hops: u64,
}

/// A theater that an actor may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Host {
    pub(crate) theater: u64,
    /// The address at which others call it, if they can.
    pub(crate) address: Option<SocketAddr>,
}

/// An actor that is about to leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departing {
    /// The name that it was born with.
    pub(crate) born: RemoteActorId,
    pub(crate) epoch: Epoch,
}

/// Called when all that was begun with it has ended.
pub(crate) type Ended = Box<dyn FnOnce() + Send>;

/// Knows which theaters an actor may be in. Neither method blocks, and each calls `ended` exactly once, also where a theater is lost or cannot be
/// called.
pub(crate) trait Authority: Send + Sync {
    /// Returns whether the authority of this actor of `theater_core` has to be told when the actor leaves for the theater `to`.
    fn is_to_note(&self, theater_core: &TheaterCore, born: &RemoteActorId, to: u64) -> bool;

    /// Notes that these actors of `theater_core` may be in the theater `to`, too. They stay in `theater_core` until `ended`.
    fn note(&self, theater_core: &Arc<TheaterCore>, actors: Vec<Departing>, to: Host, ended: Ended);

    /// Has links made with the theaters that are to be asked where these actors are, by their places here, if they are not `known` ones: those are
    /// lost, or asked anyway.
    fn reach(&self, theater_core: &Arc<TheaterCore>, actors: &[ActorId], known: &FxHashSet<u64>, ended: Ended);
}

/// The theaters that the actors were born in.
pub(crate) struct BirthTheaters;

/// Calls when the last reference is dropped.
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

impl BirthTheaters {
    /// Gives the link with this theater to `then`, if there is one, or one can be made.
    fn with_link(theater_core: &Arc<TheaterCore>, host: Host, then: impl FnOnce(&Arc<Link>) + Send + 'static) {
        let Host { theater, address } = host;
        if let Some(link) = theater_core.directory.link(theater) {
            return then(&link);
        }
        let Some(address) = address.filter(|_| theater_core.directory.may_be_reached(host, theater_core.now())) else {
            return;
        };
        let here = Arc::clone(theater_core);
        let take = move |link: Result<Arc<Link>, _>| match link {
            Ok(link) if link.incarnation == theater => then(&link),
            // Another one is there, or nobody.
            Ok(_) | Err(_) => here.directory.note_unreached(host, here.now().saturating_add(here.settings.lost_after)),
        };
        theater_core.reach_later(Callee { address, theater: Some(theater) }, PATIENCE, Box::new(take));
    }
}

impl Authority for BirthTheaters {
    fn is_to_note(&self, theater_core: &TheaterCore, born: &RemoteActorId, to: u64) -> bool {
        // An actor that leaves the theater that it was born in, or goes there, is known there.
        ![theater_core.incarnation, to].contains(&born.theater)
    }

    fn note(&self, theater_core: &Arc<TheaterCore>, mut actors: Vec<Departing>, to: Host, ended: Ended) {
        let at_end = AtEnd::new(ended);
        actors.retain(|actor| self.is_to_note(theater_core, &actor.born, to.theater));
        actors.sort_by_key(|actor| actor.born.theater);
        for actors in actors.chunk_by(|one, other| one.born.theater == other.born.theater) {
            for actors in actors.chunks(NOTED_MAX) {
                let RemoteActorId { theater, address, .. } = actors[0].born;
                let names = actors
                    .iter()
                    .map(|Departing { born, epoch }| (born.slot, born.incarnation, born.capability, *epoch));
                let (names, at_end) = (names.collect(), Arc::clone(&at_end));
                Self::with_link(theater_core, Host { theater, address }, move |link| {
                    link.say_departs(to, names, Box::new(move |_| drop(at_end)));
                });
            }
        }
    }

    fn reach(&self, theater_core: &Arc<TheaterCore>, actors: &[ActorId], known: &FxHashSet<u64>, ended: Ended) {
        let at_end = AtEnd::new(ended);
        let births = actors.iter().filter_map(|id| theater_core.directory.far_name(*id));
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
