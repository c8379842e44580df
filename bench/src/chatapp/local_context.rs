//! What the actors of a world know from their birth, in each theater that the world is played in.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use playhouse::prelude::*;

use super::Fault;
use super::dice::MoveDice;
use super::directory::Directory;
use super::scenario::Scenario;

/// What every actor of the world knows from its birth: the immutable plan, and where the directories are.
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

    /// So many clients and chats came to be here, or are gone.
    pub fn counts(&self, more: i64) {
        self.present.fetch_add(more, Relaxed);
    }
}

/// The context of this process. Actors that come from another theater find it here instead of bringing it along: it is the
/// same for all of them, but for the theater that it is in.
static CONTEXT: RwLock<Option<Arc<LocalContext>>> = RwLock::new(None);

/// From now on, actors that come from other theaters live in this context.
pub(super) fn install(context: &Arc<LocalContext>) {
    *CONTEXT.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(context));
}

/// A context on the wire: nothing, for the other end has it.
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
