//! The suite for watches of [ledgers](Ledger). A ledger is a store, and keeps the rules of [the suite for
//! stores](super::store), too.
//!
//! ```
//! use playhouse::durable::MemoryStore;
//! use playhouse_testkit::conformance::{ledger, store};
//!
//! // New storage each time it is called, with a way to open it.
//! let fresh = || {
//!     let storage = MemoryStore::new();
//!     move || storage.clone()
//! };
//! store::check(fresh).assert_all_kept();
//! ledger::check(fresh).assert_all_kept();
//! ```

mod calls;
mod ends;

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use playhouse::durable::{Ledger, LedgerWatch};

use super::{Report, Rule};

/// The time after which an undecided rule is broken.
const RULE_TIME_MAX: Duration = Duration::from_secs(120);

/// The time after which a call is missing, for [`check`].
const CALL_TIME_MAX: Duration = Duration::from_secs(10);

/// A function that opens a storage. Each handle that it returns is on the same storage.
type OpenLedger = Box<dyn Fn() -> Arc<dyn Ledger> + Send + Sync>;

/// A source of new storage, which the rules try.
///
/// # Examples
///
/// ```
/// use playhouse_testkit::conformance::Rule;
/// use playhouse_testkit::conformance::ledger::{RULES, SharedStorage};
///
/// let rules: &[Rule<SharedStorage>] = &RULES;
/// assert!(rules.iter().any(|rule| rule.name == "other handles"));
/// ```
pub struct SharedStorage {
    fresh: Box<dyn Fn() -> OpenLedger + Send + Sync>,
    /// The time after which a call is missing.
    call_limit: Duration,
}

/// The rules, in the order in which they are tried.
pub const RULES: [Rule<SharedStorage>; 7] = [
    calls::EACH_KIND_OF_CHANGE,
    calls::OTHER_HANDLES,
    calls::FROM_THE_BEGINNING,
    calls::PREFIXES_AND_WATCHES,
    calls::AFTER_THE_CHANGE,
    calls::NONE_IS_MISSED,
    ends::ENDS_ALONE,
];

/// Tries all rules. `fresh` makes new, empty storage, and returns a function that opens it. The handles of that
/// function are on the same storage, several at a time. The storage may go when the function is dropped.
///
/// A call that has not come 10 seconds after the change is missing. A rule that is undecided after 2 minutes is broken,
/// and its test is left behind on its thread.
pub fn check<L, Open>(fresh: impl Fn() -> Open + Send + Sync + 'static) -> Report
where
    L: Ledger,
    Open: Fn() -> L + Send + Sync + 'static,
{
    check_within(CALL_TIME_MAX, fresh)
}

/// Tries all rules like [`check`]. A call that has not come `call_limit` after the change is missing.
pub fn check_within<L, Open>(call_limit: Duration, fresh: impl Fn() -> Open + Send + Sync + 'static) -> Report
where
    L: Ledger,
    Open: Fn() -> L + Send + Sync + 'static,
{
    let fresh = move || -> OpenLedger {
        let open = fresh();
        Box::new(move || Arc::new(open()))
    };
    Report::of("ledger", &RULES, SharedStorage { fresh: Box::new(fresh), call_limit }, RULE_TIME_MAX)
}

impl fmt::Debug for SharedStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedStorage(..)")
    }
}

impl SharedStorage {
    /// Begins to watch.
    fn watch(&self, ledger: &dyn Ledger, prefix: &str) -> Result<Calls, String> {
        let (tell, calls) = channel();
        let watch = ledger.watch(prefix, Box::new(move || _ = tell.send(())));
        let watch = watch.map_err(|error| format!("{prefix:?} was not watched: {error}"))?;
        Ok(Calls { calls, limit: self.call_limit, watch })
    }
}

/// The calls of a watch, in a test.
struct Calls {
    calls: Receiver<()>,
    limit: Duration,
    watch: LedgerWatch,
}

impl Calls {
    /// Waits for calls until `is_seen` holds, and looks after each call only.
    fn wait_for(&self, when: &str, mut is_seen: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
        let deadline = Instant::now() + self.limit;
        loop {
            match self.calls.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(()) if is_seen()? => return Ok(()),
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => {
                    let limit = self.limit;
                    return Err(format!("{when}, no call came within {limit:?} with which the change is visible"));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(format!("{when}, the ledger has dropped the function of the watch"));
                }
            }
        }
    }

    /// Waits for a call.
    fn wait(&self, when: &str) -> Result<(), String> {
        self.wait_for(when, || Ok(true))
    }

    /// Returns whether a call came within this time.
    fn next_within(&self, time: Duration) -> bool {
        self.calls.recv_timeout(time).is_ok()
    }

    /// Takes the calls that have come.
    fn clear(&self) {
        while self.calls.try_recv().is_ok() {}
    }
}

/// Names the operation in its error.
fn done<T, E: fmt::Display>(what: &str, outcome: Result<T, E>) -> Result<T, String> {
    outcome.map_err(|error| format!("{what} failed: {error}"))
}
