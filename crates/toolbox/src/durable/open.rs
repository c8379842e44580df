//! Loading a value.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use playhouse_actor::wire::Codec;
use playhouse_actor::{Actor, Context, ShortType};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::DurableError;
use super::store::Store;
use super::value::{Current, Durable, Shared};
use crate::resource::{JobError, ResourcePool};
use crate::wait::{block_on, pipe_in_incarnation};

/// A value that is being loaded: see [`Durable::open`]. Use `.await`, `.wait()`, or `.then(ctx, ..)`.
///
/// # Cancel safety
/// Dropping the future changes nothing.
///
/// # Examples
///
/// ```
/// use playhouse::durable::{Durable, MemoryStore};
/// use playhouse::prelude::*;
/// use playhouse::resource::ResourcePool;
///
/// let system = System::start()?;
/// let pool = ResourcePool::start(&system, 1, 10)?;
/// let opened = Durable::open(&pool, MemoryStore::new(), "key", vec![1, 2]).wait()?;
/// assert_eq!((opened.get().len(), opened.revision()), (2, 0)); // nothing was saved yet
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is loaded until it is awaited"]
pub struct Open<T> {
    pub(super) pool: ResourcePool,
    pub(super) store: Arc<dyn Store>,
    pub(super) key: String,
    pub(super) empty: T,
}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Open<T> {
    pub(super) async fn run(self) -> Result<Durable<T>, DurableError> {
        let Open { pool, store, key, empty } = self;
        let (source, name) = (Arc::clone(&store), key.clone());
        let load = move |_: &_| {
            let Some(saved) = source.load(&name).map_err(DurableError::Store)? else { return Ok(None) };
            let unreadable = |why| {
                let why = format!("the saved state is no {}: {why}", ShortType(std::any::type_name::<T>()));
                DurableError::Form { key: name.clone(), why }
            };
            Codec::Named.read(&saved.bytes).map(|value| Some((saved.revision, value))).map_err(unreadable)
        };
        let loaded =
            pool.run(load).await.unwrap_or_else(|error| Err(DurableError::Pool { key: key.clone(), error }))?;
        let (revision, value) = loaded.unwrap_or((0, empty));
        let current = Mutex::new(Current { revision, value: Arc::new(value), saving: false });
        Ok(Durable { shared: Arc::new(Shared { pool, store, key, current }) })
    }

    /// Blocks this thread until the value is loaded.
    ///
    /// # Errors
    /// The value was not loaded: see [`DurableError`].
    ///
    /// # Panics
    /// The call is made inside an actor, because it would block the worker.
    #[track_caller]
    pub fn wait(self) -> Result<Durable<T>, DurableError> {
        let (pool, key) = (self.pool.clone(), self.key.clone());
        let loaded = block_on(pool.core(), self.run());
        loaded.unwrap_or(Err(DurableError::Pool { key, error: JobError::Stopped }))
    }

    /// Calls `then` with the value as a message of this actor, which handles other messages in the meantime. Put a
    /// guard on messages that need the value.
    ///
    /// The call is omitted if the actor was restarted, because its next incarnation opens the value itself. The call
    /// is also omitted if the actor has migrated. It opens the value in [`migrated`](Actor::migrated) at its new
    /// theater.
    pub fn then<A: Actor>(
        self,
        ctx: &mut Context<A>,
        then: impl FnOnce(&mut A, Result<Durable<T>, DurableError>, &mut Context<A>) + Send + 'static,
    ) {
        pipe_in_incarnation(ctx, self.run(), |opened| opened, then);
    }
}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> IntoFuture for Open<T> {
    type Output = Result<Durable<T>, DurableError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<T> fmt::Debug for Open<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Open({:?})", self.key)
    }
}
