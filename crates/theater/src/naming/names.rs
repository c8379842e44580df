//! Names of actors of other theaters.

use std::fmt;
use std::net::SocketAddr;

use playhouse_actor::away::ActorLocation;
use playhouse_actor::wire::WireError;

use crate::migration::view::Site;

/// Most actors of other theaters that are known because one theater has told their names: each takes about half a KiB.
pub(crate) const NAMES_MAX: usize = if cfg!(test) { 2_048 } else { 4 * 1024 * 1024 };

/// The name of an actor of another theater.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteActorId {
    pub(crate) theater: u64,
    /// The address at which the theater can be called, if it can.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) slot: u64,
    pub(crate) incarnation: u64,
    pub(crate) capability: u64,
}

impl From<ActorLocation> for RemoteActorId {
    fn from(ActorLocation { theater, address, slot, incarnation, capability }: ActorLocation) -> RemoteActorId {
        RemoteActorId { theater, address, slot, incarnation, capability }
    }
}

/// Theater, slot, incarnation and capability of an actor's birth: an actor is known by all of them.
pub(crate) type Key = (u64, u64, u64, u64);

/// Theater, slot and incarnation of an actor's birth: a key without the capability.
pub(crate) type Birth = (u64, u64, u64);

/// The reason for which a name from another theater is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadName {
    /// Its capability differs from the known one.
    Invented(Birth),
    /// The actor has another name.
    Renamed(Birth),
    /// The theater has told as many names as are kept.
    TooMany,
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadName::Invented((theater, slot, incarnation)) => {
                write!(
                    f,
                    "the name of actor {slot}.{incarnation} of theater {theater} has another capability than that theater gave it"
                )
            }
            BadName::Renamed((theater, slot, incarnation)) => {
                write!(
                    f,
                    "actor {slot}.{incarnation} of theater {theater} is named like an actor that has another name"
                )
            }
            BadName::TooMany => {
                write!(f, "a theater has told the names of {NAMES_MAX} actors, and must not tell more")
            }
        }
    }
}

impl From<BadName> for WireError {
    fn from(why: BadName) -> WireError {
        WireError::new(why.to_string())
    }
}

impl Site for RemoteActorId {
    fn theater(&self) -> u64 {
        self.theater
    }
}

impl RemoteActorId {
    pub(crate) fn key(&self) -> Key {
        (self.theater, self.slot, self.incarnation, self.capability)
    }

    pub(crate) fn birth(&self) -> Birth {
        (self.theater, self.slot, self.incarnation)
    }

    /// Returns the name of a stub in this theater that is not known yet.
    pub(super) fn somewhere_in(theater: u64) -> RemoteActorId {
        RemoteActorId { theater, address: None, slot: 0, incarnation: 0, capability: 0 }
    }

    /// Returns whether it names a stub.
    pub(crate) fn is_stub(&self) -> bool {
        (self.slot, self.incarnation, self.capability) != (0, 0, 0)
    }
}
