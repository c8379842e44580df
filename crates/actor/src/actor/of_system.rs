//! The data of this crate in each system: services, the theater of the system, and the number of its handles.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use playhouse_executor::SystemCore;

use crate::actor::migration_host::MigrationHost;
use crate::lock::lock;

/// The data of this crate in each system, set before the system has actors.
#[derive(Default)]
pub(crate) struct OfSystem {
    services: Mutex<Services>,
    pub(crate) migration_host: OnceLock<Arc<dyn MigrationHost>>,
    /// The number of the system's handles ([`System`](crate::System)).
    handles: AtomicUsize,
}

#[derive(Default)]
pub(crate) struct Services {
    pub(crate) by_type: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    /// `true` if the system has ended, and takes no more services.
    pub(crate) closed: bool,
}

impl OfSystem {
    pub(crate) fn get(system: &SystemCore) -> &OfSystem {
        system.above().expect("it is set where a system is started")
    }

    /// Counts one more handle.
    pub(crate) fn handle_more(system: &SystemCore) {
        OfSystem::get(system).handles.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one handle less. Returns whether it was the last one.
    pub(crate) fn handle_less(system: &SystemCore) -> bool {
        // AcqRel: the thread that drops the last handle sees what others did with theirs.
        OfSystem::get(system).handles.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Returns whether the system has no handles.
    pub(crate) fn is_without_handles(system: &SystemCore) -> bool {
        OfSystem::get(system).handles.load(Ordering::Acquire) == 0
    }

    pub(crate) fn with_services<R>(&self, act: impl FnOnce(&mut Services) -> R) -> R {
        act(&mut lock(&self.services))
    }
}

/// Returns the theater that the system is part of.
pub(crate) fn migration_host_of(system: &SystemCore) -> Option<&Arc<dyn MigrationHost>> {
    OfSystem::get(system).migration_host.get()
}
