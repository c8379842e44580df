//! The known actors of other theaters, with their names: one stub for each, by whichever route its name came.
//!
//! # Names
//!
//! An actor is known by its birth name: theater, slot, incarnation and capability. Theaters believe a peer about the peer's own actors. The
//! capability of such an actor is noted, and a name with another capability is refused from then on. Of an actor of a third theater, two names with
//! different capabilities may come, before its own theater has told one. This theater treats them as two actors: neither hides the other, and the
//! owner admits only messages to the true one.

pub(crate) mod capability;
pub(crate) mod locate;
pub(crate) mod name_server;

mod apart;
mod departures;
mod directory;
mod ends;
mod known;
mod names;

pub(crate) use self::directory::{Directory, Identity, Settling, SettlingStub};
pub(crate) use self::names::{BadName, Epoch, Host, Key, RemoteActorId};
#[cfg(test)]
pub(crate) use self::{apart::APART_MAX, names::NAMES_MAX};
