//! Who of other theaters is known here, and under which name: one place for each, whichever way its name came.

use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use playhouse_actor::ActorId;
use playhouse_actor::away::RefName;
use playhouse_actor::wire::WireError;
use playhouse_executor::SystemCore;
use rustc_hash::FxHashMap;

use crate::house::House;
use crate::link::Link;
use crate::seal::Seal;

/// The name of an actor of another theater.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Far {
    pub(crate) theater: u64,
    /// Where that can be called, if it can.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) slot: u64,
    pub(crate) life: u64,
    pub(crate) seal: u64,
}

impl Far {
    fn key(&self) -> (u64, u64, u64) {
        (self.theater, self.slot, self.life)
    }
}

/// What the links of a theater share.
pub(crate) struct Directory {
    pub(crate) core: Arc<SystemCore>,
    /// This theater, in which of its lives.
    pub(crate) incarnation: u64,
    seal: Seal,
    house: OnceLock<Weak<House>>,
    known: Mutex<Known>,
    links: Mutex<FxHashMap<u64, Weak<Link>>>,
    /// How often room was made on a link whose window was full.
    pub(crate) room_made: AtomicU64,
}

#[derive(Default)]
struct Known {
    met: FxHashMap<(u64, u64, u64), ActorId>,
    names: FxHashMap<ActorId, Far>,
}

impl Directory {
    pub(crate) fn new(core: &Arc<SystemCore>, incarnation: u64) -> Directory {
        Directory {
            core: Arc::clone(core),
            incarnation,
            seal: Seal::random(),
            house: OnceLock::new(),
            known: Mutex::default(),
            links: Mutex::default(),
            room_made: AtomicU64::new(0),
        }
    }

    pub(crate) fn belongs_to(&self, house: &Arc<House>) {
        // Once, by the house itself.
        let _ = self.house.set(Arc::downgrade(house));
    }

    pub(crate) fn house(&self) -> Option<Arc<House>> {
        self.house.get()?.upgrade()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn links(&self) -> MutexGuard<'_, FxHashMap<u64, Weak<Link>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A link with `theater` was made.
    pub(crate) fn add_link(&self, theater: u64, link: &Arc<Link>) {
        self.links().insert(theater, Arc::downgrade(link));
    }

    /// The link with `theater`, if there is one.
    pub(crate) fn link(&self, theater: u64) -> Option<Arc<Link>> {
        self.links().get(&theater)?.upgrade().filter(|link| !link.is_lost())
    }

    /// `theater` is lost, and all that was known of it.
    pub(crate) fn forget(&self, theater: u64) {
        self.links().remove(&theater);
        let mut known = self.known();
        known.met.retain(|key, _| key.0 != theater);
        known.names.retain(|_, far| far.theater != theater);
    }

    /// The place of the actor with this name.
    pub(crate) fn met(&self, far: &Far) -> Option<ActorId> {
        self.known().met.get(&far.key()).copied()
    }

    /// `id` is the place of the actor with this name.
    pub(crate) fn note(&self, id: ActorId, far: Far) {
        let mut known = self.known();
        known.met.entry(far.key()).or_insert(id);
        known.names.insert(id, far);
    }

    /// The name of the actor whose place `id` is.
    pub(crate) fn far_name(&self, id: ActorId) -> Option<Far> {
        self.known().names.get(&id).copied()
    }

    /// The actor of this theater that a name is of.
    pub(crate) fn own(&self, slot: u64, life: u64, seal: u64) -> Option<ActorId> {
        self.seal.is_right(slot, life, seal).then(|| self.core.find(slot, life).map(ActorId::of)).flatten()
    }

    /// Place, life and seal of an actor of this theater (or of the place of one that is elsewhere).
    pub(crate) fn sealed(&self, id: ActorId) -> Result<(u64, u64, u64), WireError> {
        let address = id.address();
        if address.system() != self.core.id() {
            return Err(WireError::new(format!(
                "{id} belongs to another system of this process, not to this theater's"
            )));
        }
        let (slot, life) = (address.slot(), address.life());
        Ok((slot, life, self.seal.of(slot, life)))
    }

    /// The name of `id` for any other theater.
    ///
    /// Where the actor is elsewhere and cannot be called there, it is the name of its place here, from where what is sent to
    /// it is sent on.
    pub(crate) fn name_for_others(&self, id: ActorId) -> Result<RefName, WireError> {
        match self.far_name(id) {
            Some(Far { theater, address: Some(address), slot, life, seal }) => {
                Ok(RefName::Other { theater, address, slot, life, seal })
            }
            _ => self.sealed(id).map(|(slot, life, seal)| RefName::Mine { slot, life, seal }),
        }
    }
}
