//! A value in a store.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use playhouse_actor::wire::Codec;
use playhouse_actor::{Actor, Context, ShortType};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::store::{Store, StoreError};
use crate::block::{block_on, lock};
use crate::pipe::pipe_in_this_life;
use crate::resource::{JobError, ResourcePool};

/// A value in a store: as it was saved last, by this one or before it was opened.
///
/// It is written with the names of its fields: what an earlier version of a program has saved is read where the fields that were
/// added since have a `#[serde(default)]`.
///
/// One save at a time is under way. An actor that awaits it handles nothing else meanwhile, so each message finds the value that the
/// messages before it have left. An actor that goes on ([`Save::then`]) finds the former value until it is told of the save.
///
/// Two of them for one key, in two lives of an actor or two processes, do not see each other's saves. But only one can save: the
/// other one is told [`StoreError::Conflict`]. It is out of date then, and so best crashes, and opens the value again in its next
/// life.
pub struct Durable<T> {
    place: Arc<Place<T>>,
}

struct Place<T> {
    pool: ResourcePool,
    store: Arc<dyn Store>,
    key: String,
    current: Mutex<Current<T>>,
}

struct Current<T> {
    revision: u64,
    value: Arc<T>,
    saving: bool,
}

/// Why a value was not loaded or saved.
#[derive(Debug)]
#[non_exhaustive]
pub enum DurableError {
    /// What the store says.
    Store(StoreError),
    /// What is there cannot be read as a value of the type, or the value cannot be written.
    Form {
        /// Whose.
        key: String,
        /// Which type, and why not.
        why: String,
    },
    /// The resource pool has not done it. If it has panicked in the middle, the value may be saved or not.
    Pool {
        /// Whose.
        key: String,
        /// Why not.
        error: JobError,
    },
    /// The save before this one is not done yet. Nothing was done.
    Busy {
        /// Whose.
        key: String,
    },
}

impl DurableError {
    /// Whether somebody else has saved or removed the value, so that what is here is out of date; or an earlier save was done after
    /// all, of which it was not known.
    pub fn is_conflict(&self) -> bool {
        matches!(self, DurableError::Store(StoreError::Conflict { .. }))
    }
}

impl fmt::Display for DurableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DurableError::Store(error) => error.fmt(f),
            DurableError::Form { key, why } => write!(f, "{key:?}: {why}"),
            DurableError::Pool { key, error } => write!(f, "{key:?} was not loaded or saved: {error}"),
            DurableError::Busy { key } => {
                write!(f, "{key:?} is being saved: another save can begin when this one is done")
            }
        }
    }
}

impl std::error::Error for DurableError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DurableError::Store(error) => Some(error),
            DurableError::Pool { error, .. } => Some(error),
            DurableError::Form { .. } | DurableError::Busy { .. } => None,
        }
    }
}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Durable<T> {
    /// Loads what was saved under `key`, by a thread of `pool`; where there is nothing, it is `empty`, and nothing is saved yet.
    pub fn open(pool: &ResourcePool, store: impl Store, key: impl Into<String>, empty: T) -> Open<T> {
        Open { pool: pool.clone(), store: Arc::new(store), key: key.into(), empty }
    }

    /// The value as it was saved last.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&lock(&self.place.current).value)
    }

    /// Its revision in the store. 0: it was never saved.
    pub fn revision(&self) -> u64 {
        lock(&self.place.current).revision
    }

    /// Saves `new` in the place of the value. If that fails, the value is the former one here.
    ///
    /// After [`StoreError::Io`], or where the save was dropped in the middle, it is not known which of them is in the store: if it is
    /// `new`, the next save is a [`StoreError::Conflict`]. To open it again tells.
    pub fn save(&self, new: T) -> Save<T> {
        Save { place: Arc::clone(&self.place), turn: self.turn(), new: Arc::new(new) }
    }

    /// None: another save is under way.
    fn turn(&self) -> Option<Turn<T>> {
        let turn = !std::mem::replace(&mut lock(&self.place.current).saving, true);
        turn.then(|| Turn(Arc::clone(&self.place)))
    }

    /// Saves the value as `change` leaves a copy of it: as [`save`](Durable::save). If another save is under way, `change` is not called, and this one fails
    /// with [`DurableError::Busy`].
    ///
    /// ```
    /// use playhouse_toolbox::durable::{Durable, MemoryStore};
    /// use playhouse_toolbox::resource::ResourcePool;
    /// # let system = playhouse_actor::System::start()?;
    ///
    /// let pool = ResourcePool::start(&system, 1, 10)?;
    /// let visits: Durable<Vec<String>> = Durable::open(&pool, MemoryStore::default(), "visits", Vec::new()).wait()?;
    /// visits.update(|visits| visits.push("Ann".to_owned())).wait()?;
    /// assert_eq!(*visits.get(), ["Ann"]);
    /// # system.shutdown()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update(&self, change: impl FnOnce(&mut T)) -> Save<T>
    where
        T: Clone,
    {
        // The turn comes first: no other save ends between the copy and this one.
        let turn = self.turn();
        let mut new = self.get();
        if turn.is_some() {
            change(Arc::make_mut(&mut new));
        }
        Save { place: Arc::clone(&self.place), turn, new }
    }
}

impl<T> fmt::Debug for Durable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let revision = lock(&self.place.current).revision;
        f.debug_struct("Durable").field("key", &self.place.key).field("revision", &revision).finish()
    }
}

/// A value that is to be loaded: see [`Durable::open`]. `.await` it, or `.wait()`, or `.then(ctx, ..)`.
///
/// # Cancel safety
/// Dropping it leaves all as it is.
#[must_use = "nothing is loaded before it is awaited"]
pub struct Open<T> {
    pool: ResourcePool,
    store: Arc<dyn Store>,
    key: String,
    empty: T,
}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Open<T> {
    async fn run(self) -> Result<Durable<T>, DurableError> {
        let Open { pool, store, key, empty } = self;
        let (source, name) = (Arc::clone(&store), key.clone());
        let load = move |_: &_| {
            let Some(saved) = source.load(&name).map_err(DurableError::Store)? else { return Ok(None) };
            let unreadable = |why| {
                let why = format!("what was saved is no {}: {why}", ShortType(std::any::type_name::<T>()));
                DurableError::Form { key: name.clone(), why }
            };
            Codec::Named.read(&saved.bytes).map(|value| Some((saved.revision, value))).map_err(unreadable)
        };
        let loaded =
            pool.run(load).await.unwrap_or_else(|error| Err(DurableError::Pool { key: key.clone(), error }))?;
        let (revision, value) = loaded.unwrap_or((0, empty));
        let current = Mutex::new(Current { revision, value: Arc::new(value), saving: false });
        Ok(Durable { place: Arc::new(Place { pool, store, key, current }) })
    }

    /// Blocks this thread until it is loaded.
    ///
    /// # Errors
    /// Why it was not.
    ///
    /// # Panics
    /// Inside an actor: it would hold the worker.
    #[track_caller]
    pub fn wait(self) -> Result<Durable<T>, DurableError> {
        let (pool, key) = (self.pool.clone(), self.key.clone());
        let loaded = block_on(pool.core(), self.run());
        loaded.unwrap_or(Err(DurableError::Pool { key, error: JobError::Stopped }))
    }

    /// Has the value handled by `then`, as a message of this actor, which goes on with others meanwhile: those that need the value
    /// wait for it behind a guard. If the actor is restarted meanwhile, `then` is not called: its next life opens the value
    /// itself, and may have saved it since. Nor is it called where the actor has gone to another theater: there it opens the value in
    /// [`arrived`](Actor::arrived).
    pub fn then<A: Actor>(
        self,
        ctx: &mut Context<A>,
        then: impl FnOnce(&mut A, Result<Durable<T>, DurableError>, &mut Context<A>) + Send + 'static,
    ) {
        pipe_in_this_life(ctx, self.run(), |opened| opened, then);
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

/// A save: see [`Durable::save`]. `.await` it, or `.wait()`, or `.then(ctx, ..)`.
///
/// # Cancel safety
/// Dropping it while it is under way leaves it open whether it is done: see [`Durable::save`]. Another save may begin.
#[must_use = "nothing is saved before it is awaited"]
pub struct Save<T> {
    place: Arc<Place<T>>,
    /// None: another save has it.
    turn: Option<Turn<T>>,
    new: Arc<T>,
}

/// Says that a save is under way.
struct Turn<T>(Arc<Place<T>>);

impl<T> Drop for Turn<T> {
    fn drop(&mut self) {
        lock(&self.0.current).saving = false;
    }
}

/// A save that was done, of which the value does not know yet.
struct Done<T> {
    turn: Turn<T>,
    revision: u64,
    new: Arc<T>,
}

impl<T> Done<T> {
    fn settle(self) {
        let mut current = lock(&self.turn.0.current);
        (current.revision, current.value) = (self.revision, self.new);
    }
}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Save<T> {
    async fn run(self) -> Result<Done<T>, DurableError> {
        let Save { place, turn, new } = self;
        let key = place.key.clone();
        let Some(turn) = turn else { return Err(DurableError::Busy { key }) };
        let (expected, store, value, name) =
            (lock(&place.current).revision, Arc::clone(&place.store), Arc::clone(&new), key.clone());
        let save = move |_: &_| {
            let mut bytes = Vec::new();
            Codec::Named.write(&*value, &mut bytes).map_err(|why| {
                let why = format!("a {} cannot be saved: {why}", ShortType(std::any::type_name::<T>()));
                DurableError::Form { key: name.clone(), why }
            })?;
            store.save(&name, expected, &bytes).map_err(DurableError::Store)
        };
        let revision = place.pool.run(save).await.unwrap_or_else(|error| Err(DurableError::Pool { key, error }))?;
        Ok(Done { turn, revision, new })
    }

    /// Blocks this thread until it is saved.
    ///
    /// # Errors
    /// Why it was not.
    ///
    /// # Panics
    /// Inside an actor: it would hold the worker.
    #[track_caller]
    pub fn wait(self) -> Result<(), DurableError> {
        let (place, run) = (Arc::clone(&self.place), self.run());
        let saved = block_on(place.pool.core(), run);
        let stopped = || Err(DurableError::Pool { key: place.key.clone(), error: JobError::Stopped });
        saved.unwrap_or_else(stopped).map(Done::settle)
    }

    /// Has `then` called when it is saved, as a message of this actor, which goes on with others meanwhile. They find the former
    /// value, and cannot save ([`DurableError::Busy`]). If the actor is restarted meanwhile, or has gone to another theater, `then` is
    /// not called: the next life opens the value, and finds what has come of it.
    pub fn then<A: Actor>(
        self,
        ctx: &mut Context<A>,
        then: impl FnOnce(&mut A, Result<(), DurableError>, &mut Context<A>) + Send + 'static,
    ) {
        pipe_in_this_life(ctx, self.run(), |saved| saved.map(Done::settle), then);
    }
}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> IntoFuture for Save<T> {
    type Output = Result<(), DurableError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async { self.run().await.map(Done::settle) })
    }
}

impl<T> fmt::Debug for Save<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Save({:?})", self.place.key)
    }
}
