//! The local context: the data that every actor of a world has from its creation, in each theater of the world.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use playhouse::prelude::*;

use super::Fault;
use super::dice::MoveDice;
use super::directory::Directory;
use super::scenario::Scenario;

/// The immutable plan, and the references of the directories.
pub(super) struct LocalContext {
    pub scenario: Scenario,
    pub move_dice: MoveDice,
    pub fault: Option<Fault>,
    pub directories: Vec<ActorRef<Directory>>,
    /// The theater that this is, if the world is spread over several.
    pub here: Option<SocketAddr>,
    /// Clients and chats that are in this theater, if the world is spread over several. Relaxed: a figure for people.
    pub present: AtomicI64,
}

impl LocalContext {
    pub fn new(
        scenario: &Scenario,
        fault: Option<Fault>,
        directories: Vec<ActorRef<Directory>>,
        here: Option<SocketAddr>,
    ) -> LocalContext {
        let (scenario, move_dice) = (scenario.clone(), MoveDice::of(scenario));
        LocalContext { scenario, move_dice, fault, directories, here, present: AtomicI64::new(0) }
    }

    /// The directory that owns a client id.
    #[inline]
    pub fn directory_of(&self, id: u32) -> ActorRef<Directory> {
        self.directories[id as usize % self.directories.len()]
    }

    /// Adds clients and chats that arrived in this theater, or subtracts those that left it.
    pub fn counts(&self, more: i64) {
        self.present.fetch_add(more, Relaxed);
    }
}

/// The context of this process. An actor that arrives from another theater takes it instead of carrying one: it is the same for
/// all of them, except for the address of the theater.
static CONTEXT: RwLock<Option<Arc<LocalContext>>> = RwLock::new(None);

/// Makes `context` that of the actors that arrive from other theaters.
pub(super) fn install(context: &Arc<LocalContext>) {
    *CONTEXT.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(context));
}

/// The wire form of a context: nothing, because the target theater has its own.
pub(super) mod in_place {
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::{Serialize, Serializer};

    use super::*;

    pub fn serialize<S: Serializer>(_: &Arc<LocalContext>, serializer: S) -> Result<S::Ok, S::Error> {
        ().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<LocalContext>, D::Error> {
        <()>::deserialize(deserializer)?;
        let context = CONTEXT.read().unwrap_or_else(PoisonError::into_inner).clone();
        context.ok_or_else(|| D::Error::custom("no world is played in this theater yet"))
    }
}
