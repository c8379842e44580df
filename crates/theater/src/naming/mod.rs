//! Names of actors, and the knowledge of a theater about their residences.
//!
//! This folder uses no other one. [`Directory`] has the known actors of other theaters, with their names: one stub for each, by whichever route its
//! name came. Each actor that migrates has a [`View`](migration_protocol::View). The view decides the steps of a migration, and `migration` carries them out.
//!
//! # Names
//!
//! An actor is known by its birth name: theater, slot, incarnation and capability. Theaters believe a peer about the peer's own actors. The
//! capability of such an actor is noted, and a name with another capability is refused from then on. Of an actor of a third theater, two names with
//! different capabilities may come, before its own theater has told one. This theater treats them as two actors: neither hides the other, and the
//! owner admits only messages to the true one.

pub(crate) mod arrivals;
pub(crate) mod capability;
pub(crate) mod groups;
pub(crate) mod migration_protocol;
pub(crate) mod name_server;

mod departures;
mod directory;
mod ends;
#[cfg(test)]
mod explored;
mod identities;
mod known;

pub(crate) use self::directory::{Directory, Identity, Seen, Settling, SettlingStub};
#[cfg(test)]
pub(crate) use self::identities::NAMES_MAX;
pub(crate) use self::identities::{BadName, Birth, BirthName, Epoch, Host, RemoteActorId, SlotName};
