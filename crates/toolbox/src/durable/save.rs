//! Saving a value.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use playhouse_actor::wire::Codec;
use playhouse_actor::{Actor, Context, ShortType};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::DurableError;
use super::value::Shared;
use crate::panics::lock;
use crate::resource::JobError;
use crate::wait::{block_on, pipe_in_incarnation};

/// A save: see [`Durable::save`](super::Durable::save). Use `.await`, `.wait()`, or `.then(ctx, ..)`.
///
/// # Cancel safety
/// Dropping a running save leaves its outcome unknown: see [`Durable::save`](super::Durable::save). Another save may begin.
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
/// let value = Durable::open(&pool, MemoryStore::new(), "key", 1).wait()?;
/// value.save(2).wait()?;
/// assert_eq!(*value.get(), 2);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is saved until it is awaited"]
pub struct Save<T> {
    pub(super) shared: Arc<Shared<T>>,
    /// The guard of this save, or `None` if another save is running.
    pub(super) guard: Option<SaveGuard<T>>,
    pub(super) new: Arc<T>,
}

/// A guard that marks a running save.
pub(super) struct SaveGuard<T>(pub(super) Arc<Shared<T>>);

impl<T> Drop for SaveGuard<T> {
    fn drop(&mut self) {
        lock(&self.0.current).saving = false;
    }
}

/// A save that the store has done, and that the value does not show yet.
pub(super) struct CompletedSave<T> {
    pub(super) guard: SaveGuard<T>,
    pub(super) revision: u64,
    pub(super) new: Arc<T>,
}

impl<T> CompletedSave<T> {
    pub(super) fn settle(self) {
        let mut current = lock(&self.guard.0.current);
        (current.revision, current.value) = (self.revision, self.new);
    }
}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Save<T> {
    pub(super) async fn run(self) -> Result<CompletedSave<T>, DurableError> {
        let Save { shared, guard, new } = self;
        let key = shared.key.clone();
        let Some(guard) = guard else { return Err(DurableError::Busy { key }) };
        let (expected, store, value, name) =
            (lock(&shared.current).revision, Arc::clone(&shared.store), Arc::clone(&new), key.clone());
        let save = move |_: &_| {
            let mut bytes = Vec::new();
            Codec::Named.write(&*value, &mut bytes).map_err(|why| {
                let why = format!("a {} cannot be saved: {why}", ShortType(std::any::type_name::<T>()));
                DurableError::Form { key: name.clone(), why }
            })?;
            store.save(&name, expected, &bytes).map_err(DurableError::Store)
        };
        let revision = shared.pool.run(save).await.unwrap_or_else(|error| Err(DurableError::Pool { key, error }))?;
        Ok(CompletedSave { guard, revision, new })
    }

    /// Blocks this thread until the value is saved.
    ///
    /// # Errors
    /// The value was not saved: see [`DurableError`].
    ///
    /// # Panics
    /// The call is made inside an actor, because it would block the worker.
    #[track_caller]
    pub fn wait(self) -> Result<(), DurableError> {
        let (shared, run) = (Arc::clone(&self.shared), self.run());
        let saved = block_on(shared.pool.core(), run);
        let stopped = || Err(DurableError::Pool { key: shared.key.clone(), error: JobError::Stopped });
        saved.unwrap_or_else(stopped).map(CompletedSave::settle)
    }

    /// Calls `then` after the save as a message of this actor, which handles other messages in the meantime. Those
    /// messages find the former value, and cannot save ([`DurableError::Busy`]).
    ///
    /// The call is omitted if the actor was restarted or has migrated. The next incarnation opens the value, and
    /// finds the outcome.
    pub fn then<A: Actor>(
        self,
        ctx: &mut Context<A>,
        then: impl FnOnce(&mut A, Result<(), DurableError>, &mut Context<A>) + Send + 'static,
    ) {
        pipe_in_incarnation(ctx, self.run(), |saved| saved.map(CompletedSave::settle), then);
    }
}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> IntoFuture for Save<T> {
    type Output = Result<(), DurableError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async { self.run().await.map(CompletedSave::settle) })
    }
}

impl<T> fmt::Debug for Save<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Save({:?})", self.shared.key)
    }
}
