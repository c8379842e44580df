//! Stores that tell of changes.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::{Store, StoreError};

/// A store that tells of changes, for states that several processes share: the members of a cluster, for example.
///
/// # Rules for implementations
/// The rules of [`Store`] hold. Three more hold for a watch:
/// - The ledger calls `changed` after each change of a state whose key begins with the prefix, by any handle or process,
///   if the change begins after [`watch`](Ledger::watch) has returned. One call may stand for several changes, and a call
///   may come without a change. A call carries no data: the owner reads.
/// - A load that begins after the call, by any handle, finds the change.
/// - The calls end soon after the [`LedgerWatch`] was dropped. A call that has begun may still run. The watch goes on if
///   the handle is dropped.
///
/// A call comes within some seconds. Ledgers that ask their storage at intervals do so at least once a second.
///
/// The suite `playhouse_testkit::conformance::ledger` checks these rules, as far as they can be seen from outside.
///
/// # Examples
///
/// A reader begins to watch before it reads, so that it misses no change:
///
/// ```
/// use playhouse::durable::{Ledger, MemoryStore, Store};
/// use std::sync::mpsc;
///
/// let ledger = MemoryStore::new();
/// let (tell, told) = mpsc::channel();
/// let watch = ledger.watch("members/", Box::new(move || _ = tell.send(())))?;
/// assert_eq!(ledger.keys("members/")?.len(), 0);
///
/// ledger.save("members/a", 0, b"127.0.0.1:7000")?;
/// told.recv()?;
/// assert_eq!(ledger.keys("members/")?, ["members/a"]);
/// drop(watch);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Ledger: Store {
    /// Calls `changed` after changes of states whose keys begin with `prefix`, until the returned watch is dropped.
    ///
    /// `changed` is called on the thread that has made the change, or on a thread of the ledger. It returns soon, does
    /// not panic, and does not use the ledger. Another thread does the reading.
    ///
    /// # Errors
    /// [`StoreError::Io`], with the prefix as the key.
    fn watch(&self, prefix: &str, changed: Changed) -> Result<LedgerWatch, StoreError>;
}

/// A function that a [`Ledger`] calls after changes.
///
/// # Examples
///
/// ```
/// use playhouse::durable::Changed;
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// let is_stale = Arc::new(AtomicBool::new(false));
/// let mark = Arc::clone(&is_stale);
/// let changed: Changed = Box::new(move || mark.store(true, Ordering::Release));
/// changed();
/// assert!(is_stale.load(Ordering::Acquire));
/// ```
pub type Changed = Box<dyn Fn() + Send + Sync>;

impl<L: Ledger + ?Sized> Ledger for Arc<L> {
    fn watch(&self, prefix: &str, changed: Changed) -> Result<LedgerWatch, StoreError> {
        (**self).watch(prefix, changed)
    }
}

/// A watch of a [`Ledger`], which ends when this value is dropped.
///
/// # Examples
///
/// ```
/// use playhouse::durable::{Ledger, LedgerWatch, MemoryStore};
///
/// let watch: LedgerWatch = MemoryStore::new().watch("", Box::new(|| println!("changed")))?;
/// drop(watch);
/// # Ok::<(), playhouse::durable::StoreError>(())
/// ```
#[must_use = "the watch ends when this value is dropped"]
pub struct LedgerWatch {
    _end: Box<dyn Any + Send + Sync>,
}

impl LedgerWatch {
    /// Creates the watch of an implementation. Dropping `end` ends it.
    pub fn new(end: impl Send + Sync + 'static) -> LedgerWatch {
        LedgerWatch { _end: Box::new(end) }
    }
}

impl fmt::Debug for LedgerWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LedgerWatch(..)")
    }
}
