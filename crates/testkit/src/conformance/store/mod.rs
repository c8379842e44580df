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
//! The suite cannot see what a failed machine leaves in the storage. It takes some seconds if each save takes some
//! milliseconds.

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

/// The time after which an undecided rule is broken. Some rules save a thousand times.
const RULE_TIME_MAX: Duration = Duration::from_secs(300);

/// A function that opens a storage. Each handle that it returns is on the same storage.
type OpenStore = Box<dyn Fn() -> Arc<dyn Store> + Send + Sync>;

/// A source of new storage, which the rules try.
///
/// # Examples
///
/// ```
/// use playhouse_testkit::conformance::Rule;
/// use playhouse_testkit::conformance::store::{RULES, Storage};
///
/// let rules: &[Rule<Storage>] = &RULES;
/// assert!(rules.iter().any(|rule| rule.name == "large states"));
/// ```
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

/// Tries all rules. `fresh` makes new, empty storage, and returns a function that opens it. The handles of that
/// function are on the same storage, several at a time. The storage may go when the function is dropped.
///
/// A rule that is undecided after 5 minutes is broken, and its test is left behind on its thread.
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
    /// Opens a new, empty store.
    fn store(&self) -> StoreHandle {
        let open = (self.fresh)();
        StoreHandle { store: open(), _storage: Some(open) }
    }
}
