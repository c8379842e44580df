//! What a system keeps for its actors beside their own states: values that they find by their types, and the theater that it is part of.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use playhouse_executor::{SystemCore, contained};

use crate::mobile::Agency;
use crate::system::System;

/// Set once in each system, before it has actors.
#[derive(Default)]
pub(crate) struct Kept {
    services: Mutex<Services>,
    agency: OnceLock<Arc<dyn Agency>>,
}

/// By type.
type Services = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

impl Kept {
    fn of(system: &SystemCore) -> &Kept {
        system.above().expect("it is set where a system is started")
    }

    fn with_services<R>(&self, act: impl FnOnce(&mut Services) -> R) -> R {
        act(&mut self.services.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Drops the services of a system that has ended.
    pub(crate) fn drop_services(system: &SystemCore) {
        // A drop may look for another service, so this is done without the lock. One that panics is no reason to keep the others.
        let services = Kept::of(system).with_services(std::mem::take);
        for (_, service) in services {
            contained(|| drop(service)).unwrap_or(());
        }
    }
}

/// The theater that the system is part of.
pub(crate) fn agency_of(system: &SystemCore) -> Option<&Arc<dyn Agency>> {
    Kept::of(system).agency.get()
}

impl System {
    /// Keeps `service` for all actors of this system, which find it by its type: a pool of connections or of threads, a client, a configuration.
    /// Returns the one of the same type that was there before.
    ///
    /// An actor that has come from another theater finds the service of the theater that it is in now ([`arrived`](crate::Actor::arrived)). For services
    /// that are to be there before actors arrive, see [`SystemBuilder::on_start`](crate::SystemBuilder::on_start).
    ///
    /// The services are dropped at the end of the shutdown, after all actors.
    ///
    /// ```
    /// use playhouse_actor::*;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// struct Orders(AtomicU64);
    ///
    /// struct Clerk;
    /// impl Actor for Clerk {}
    ///
    /// struct Order;
    /// impl Message for Order {
    ///     type Reply = u64;
    /// }
    /// impl Handler<Order> for Clerk {
    ///     fn handle(&mut self, _: Order, ctx: &mut Context<Self>) -> u64 {
    ///         let orders = ctx.system().service::<Orders>().expect("it is provided at the start");
    ///         orders.0.fetch_add(1, Ordering::Relaxed)
    ///     }
    /// }
    ///
    /// let system = System::start()?;
    /// system.provide(Orders(AtomicU64::new(7)));
    /// assert_eq!(system.spawn(Clerk).ask(Order).wait()?, 7);
    /// # system.shutdown()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn provide<T: Send + Sync + 'static>(&self, service: T) -> Option<Arc<T>> {
        let service: Arc<dyn Any + Send + Sync> = Arc::new(service);
        let former = Kept::of(self.core()).with_services(|services| services.insert(TypeId::of::<T>(), service));
        former.and_then(|former| former.downcast().ok())
    }

    /// Returns the service of type `T`, if one was [provided](System::provide) and the system was not shut down.
    ///
    /// An actor that needs it for each message keeps the `Arc`: this takes a lock.
    pub fn service<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let service = Kept::of(self.core()).with_services(|services| services.get(&TypeId::of::<T>()).cloned());
        service.and_then(|service| service.downcast().ok())
    }

    /// Says which theater the system is part of, once.
    #[doc(hidden)]
    pub fn belongs_to(&self, theater: Arc<dyn Agency>) {
        let _former = Kept::of(self.core()).agency.set(theater);
    }
}
