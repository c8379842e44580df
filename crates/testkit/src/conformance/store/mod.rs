//! The suite for [stores](Store).
//!
//! ```
//! use playhouse::durable::MemoryStore;
//! use playhouse_testkit::conformance::store;
//!
//! // New storage each time it is called, with a way to open it.
//! let fresh = || {
//!     let storage = MemoryStore::new();
//!     move || storage.clone()
//! };
//! store::check(fresh).assert_all_kept();
//! ```
//!
//! What a machine leaves of the storage when it fails, it cannot see. It takes some seconds where each save takes some milliseconds.

mod concurrency;
mod handle;
mod keys;
mod single_key;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use playhouse::durable::Store;

use self::handle::StoreHandle;
use super::{Report, Rule};

/// A rule that is not decided after so long is broken. Some save a thousand times.
const RULE_TIME_MAX: Duration = Duration::from_secs(300);

/// OpenStore storage: each handle that it returns is one on the same storage.
type OpenStore = Box<dyn Fn() -> Arc<dyn Store> + Send + Sync>;

/// What is tried: makes new storage.
pub struct Storage {
    fresh: Box<dyn Fn() -> OpenStore + Send + Sync>,
}

/// The rules, in the order in which they are tried.
pub const RULES: [Rule<Storage>; 17] = [
    single_key::EMPTY_AT_FIRST,
    single_key::SAVED_IS_LOADED,
    single_key::EMPTY_IS_A_STATE,
    single_key::LARGE_STATES,
    single_key::REVISIONS_GROW,
    single_key::CONFLICTS_ARE_TOLD,
    single_key::CONFLICTS_CHANGE_NOTHING,
    single_key::REMOVED_IS_GONE,
    single_key::NO_REVISION_TWICE,
    single_key::REOPENED,
    single_key::HANDLES_AGREE,
    keys::KEYS_ARE_APART,
    keys::WRONG_KEYS,
    keys::PREFIXES,
    concurrency::ONE_WINS,
    concurrency::KEYS_AT_ONE_TIME,
    concurrency::STATES_ARE_WHOLE,
];

/// Tries all rules. `fresh` makes new, empty storage each time it is called, and returns what opens it: the handles that this
/// returns, one or several at one time, are on the same storage, which may go when it is dropped. A rule of which nothing has come
/// after five minutes is broken; what it waits for is left behind.
pub fn check<S, Open>(fresh: impl Fn() -> Open + Send + Sync + 'static) -> Report
where
    S: Store,
    Open: Fn() -> S + Send + Sync + 'static,
{
    let fresh = move || -> OpenStore {
        let open = fresh();
        Box::new(move || Arc::new(open()))
    };
    let storage = Storage { fresh: Box::new(fresh) };
    Report::of("store", &RULES, storage, RULE_TIME_MAX)
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Storage(..)")
    }
}

impl Storage {
    /// A store with nothing in it.
    fn store(&self) -> StoreHandle {
        let open = (self.fresh)();
        StoreHandle { store: open(), _storage: Some(open) }
    }
}
