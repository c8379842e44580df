//! Durable state: what an actor is, saved as a whole under a key, and there again in its next life.
//!
//! - A [`Store`] keeps bytes under keys, each with a revision: [`FileStore`] in files, [`MemoryStore`] for tests, and what others
//!   write, for which `playhouse_testkit::conformance::store` has the tests.
//! - A [`Durable`] is one value in a store. An actor has it as a field; it is loaded and saved by the threads of a
//!   [`ResourcePool`](crate::resource::ResourcePool), so that a slow disk holds no worker.
//!
//! Who saves says which revision it has seen. If another one is there, nothing is changed, and it is told so
//! ([`StoreError::Conflict`]). That keeps two lives of one actor apart: one that is thought dead and the one that has taken its
//! place, in one process or in two. At most one of them goes on.

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
pub use self::store::{KEY_BYTES_MAX, MemoryStore, STATE_BYTES_MAX, Saved, Store, StoreError, check_key, check_state};
pub use self::value::Durable;
