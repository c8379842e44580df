//! Services of a system, which its actors find by their types, and the system's theater.

use std::any::{Any, TypeId};
use std::sync::Arc;

use playhouse_executor::contained;

use crate::actor::migration_host::MigrationHost;
use crate::actor::of_system::OfSystem;
use crate::system::System;

impl System {
    /// Provides `service` to all actors of this system, which find it by its type: a connection pool, a thread pool, a
    /// client, a configuration. Returns the former service of the same type.
    ///
    /// An actor that has migrated finds the service of its present theater ([`migrated`](crate::Actor::migrated)).
    /// Services that actors need at their arrival are provided in
    /// [`SystemBuilder::on_start`](crate::SystemBuilder::on_start).
    ///
    /// The services are dropped at the end of the shutdown, after all actors. A system that was shut down takes no
    /// service: it is dropped at once.
    ///
    /// ```
    /// # use playhouse_actor::*;
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
        // A refused service is dropped without the lock, because its drop may look for another service.
        let (former, refused) = OfSystem::get(self.core()).with_services(|services| {
            if services.closed {
                (None, Some(service))
            } else {
                (services.by_type.insert(TypeId::of::<T>(), service), None)
            }
        });
        drop(refused);
        former.and_then(|former| former.downcast().ok())
    }

    /// Returns the service of type `T`, if one was [provided](System::provide) and the system was not shut down.
    ///
    /// The call takes a lock: an actor that needs the service for each message keeps the `Arc`.
    pub fn service<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let service =
            OfSystem::get(self.core()).with_services(|services| services.by_type.get(&TypeId::of::<T>()).cloned());
        service.and_then(|service| service.downcast().ok())
    }

    /// Drops the services of a system that has ended.
    #[doc(hidden)]
    pub fn drop_services(&self) {
        // The services are dropped without the lock, because a drop may look for another service.
        let services = OfSystem::get(self.core()).with_services(|services| {
            services.closed = true;
            std::mem::take(&mut services.by_type)
        });
        for (_, service) in services {
            // The panic hook has reported a drop that panics, and the other services are dropped all the same.
            let _dropped = contained(|| drop(service));
        }
    }

    /// Sets the theater that the system is part of, once.
    #[doc(hidden)]
    pub fn belongs_to(&self, theater: Arc<dyn MigrationHost>) {
        let _former = OfSystem::get(self.core()).migration_host.set(theater);
    }
}
