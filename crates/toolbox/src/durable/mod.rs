//! Durable state: the state of an actor, saved as a whole under a key, and loaded by its next incarnation.
//!
//! - A [`Store`] keeps bytes under keys, each with a revision. [`FileStore`] keeps them in files, and [`MemoryStore`]
//!   in memory for tests. The suite `playhouse_testkit::conformance::store` tests other stores.
//! - A [`Ledger`] is a store that several processes share, and that tells of changes.
//! - A [`Durable`] is one value in a store, and a field of an actor. The threads of a
//!   [`ResourcePool`](crate::resource::ResourcePool) load and save it, because a slow disk must not block a worker.
//!
//! A save names the revision that it replaces. If the store has another revision, the save changes nothing and fails
//! with [`StoreError::Conflict`]. Two incarnations of one actor are thereby fenced, in one process or in two: at most
//! one of them can continue to save.
//!
//! # Examples
//!
//! ```
//! use playhouse::durable::{Durable, MemoryStore};
//! use playhouse::prelude::*;
//! use playhouse::resource::ResourcePool;
//!
//! struct Account {
//!     sum: Durable<u64>,
//! }
//!
//! #[actor]
//! impl Account {
//!     #[message]
//!     async fn deposit(&mut self, amount: u64) -> Result<u64, String> {
//!         self.sum.update(|sum| *sum += amount).await.map_err(|error| error.to_string())?;
//!         Ok(*self.sum.get())
//!     }
//! }
//!
//! let system = System::start()?;
//! let pool = ResourcePool::start(&system, 2, 100)?;
//! let store = MemoryStore::new();
//!
//! let sum = Durable::open(&pool, store.clone(), "account/7", 0).wait()?;
//! let account = system.spawn(Account { sum });
//! assert_eq!(account.ask(Deposit(5)).wait()?, Ok(5));
//!
//! let loaded: Durable<u64> = Durable::open(&pool, store, "account/7", 0).wait()?;
//! assert_eq!(*loaded.get(), 5);
//! # system.shutdown()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod file;
mod open;
mod save;
mod store;
mod value;

pub use self::error::DurableError;
pub use self::file::FileStore;
pub use self::open::Open;
pub use self::save::Save;
pub use self::store::{
    Changed, KEY_BYTES_MAX, Ledger, LedgerWatch, MemoryStore, STATE_BYTES_MAX, Saved, Store, StoreError, check_key,
    check_revision, check_state,
};
pub use self::value::Durable;
