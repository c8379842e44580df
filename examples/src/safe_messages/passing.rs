//! The ways to pass an argument in a message, and their counters.
//!
//! A send site says `receiver.tell(Sort(pass(list)))`. In a counted run, each site records the kind of its argument. In a run
//! with deep copies, `pass` copies the argument with all it owns, and drops the original. A runtime must do that if it cannot
//! tell whether the sender still uses the argument. Otherwise `pass` is the identity, and `share` a clone of an `Arc`.

use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use playhouse::prelude::*;

/// A value that can be an argument: it can copy itself with all it owns.
pub trait Payload {
    /// `true` for a few bytes that own nothing: a number, a colour, a reference to an actor.
    const SCALAR: bool = false;

    /// Returns a copy that shares nothing with the original.
    fn deep_copy(&self) -> Self;
}

/// The kinds of passing an argument.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A few bytes that own nothing.
    Scalar,
    /// Owned data that the sender gave away.
    Moved,
    /// Immutable data that the sender keeps too.
    Shared,
    /// Data that was copied for the receiver.
    Copied,
}

/// The treatment of arguments in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Mode {
    /// Arguments are moved and shared.
    Moved,
    /// Arguments are moved, shared and counted.
    Counted,
    /// Each argument is copied deeply, and its original is dropped.
    Copied,
}

/// The arguments that one run has sent.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Account {
    /// The number of arguments of each kind at each place in the code.
    sites: BTreeMap<(Kind, &'static str, u32, u32), u64>,
    /// Copies by [`write()`], made because another actor could still read the data.
    pub copies_on_write: u64,
}

impl Account {
    /// Returns the number of places in the code that pass arguments of `kind`.
    pub fn sites(&self, kind: Kind) -> usize {
        self.sites.keys().filter(|site| site.0 == kind).count()
    }

    /// Returns the number of arguments of `kind` that were sent.
    pub fn sent(&self, kind: Kind) -> u64 {
        self.sites.iter().filter(|(site, _)| site.0 == kind).map(|(_, sent)| sent).sum()
    }

    /// Returns the number of places in the code that pass arguments.
    pub fn all_sites(&self) -> usize {
        self.sites.len()
    }

    /// Returns the number of places in the code that copy nothing.
    pub fn sites_without_copy(&self) -> usize {
        self.all_sites() - self.sites(Kind::Copied)
    }

    /// Adds the arguments of another run.
    pub fn add(&mut self, other: &Account) {
        for (site, sent) in &other.sites {
            *self.sites.entry(*site).or_default() += sent;
        }
        self.copies_on_write += other.copies_on_write;
    }

    /// Returns the number of arguments that were sent.
    pub fn all_sent(&self) -> u64 {
        self.sites.values().sum()
    }
}

static MODE: AtomicU8 = AtomicU8::new(Mode::Moved as u8);
static ACCOUNT: Mutex<Account> = Mutex::new(Account { sites: BTreeMap::new(), copies_on_write: 0 });
/// Held while a program runs, because mode and account belong to one run.
static RUN: Mutex<()> = Mutex::new(());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether the mode is `mode`. Relaxed: the mode changes only while no system runs.
fn is(mode: Mode) -> bool {
    MODE.load(Relaxed) == mode as u8
}

/// Calls `run` in `mode`, after other such runs have ended. Returns the account, which is empty unless the run was
/// counted.
pub(super) fn in_mode<T>(mode: Mode, run: impl FnOnce() -> T) -> (T, Account) {
    let _running = lock(&RUN);
    std::mem::take(&mut *lock(&ACCOUNT));
    MODE.store(mode as u8, Relaxed);
    let result = run();
    MODE.store(Mode::Moved as u8, Relaxed);
    (result, std::mem::take(&mut *lock(&ACCOUNT)))
}

fn note(kind: Kind, site: &'static Location<'static>) {
    if is(Mode::Counted) {
        *lock(&ACCOUNT).sites.entry((kind, site.file(), site.line(), site.column())).or_default() += 1;
    }
}

/// Passes an argument that the sender needs no longer.
#[track_caller]
pub fn pass<T: Payload>(argument: T) -> T {
    note(if T::SCALAR { Kind::Scalar } else { Kind::Moved }, Location::caller());
    if is(Mode::Copied) { argument.deep_copy() } else { argument }
}

/// Passes an argument that the sender goes on reading.
#[track_caller]
pub fn share<T: ?Sized>(argument: &Arc<T>) -> Arc<T>
where
    Arc<T>: Payload,
{
    note(Kind::Shared, Location::caller());
    if is(Mode::Copied) { argument.deep_copy() } else { Arc::clone(argument) }
}

/// Passes a copy. No program has to do so. The function exists to make such a copy visible in the tables.
#[track_caller]
pub fn copy<T: Payload>(argument: &T) -> T {
    note(Kind::Copied, Location::caller());
    argument.deep_copy()
}

/// Changes shared data. Like [`Arc::make_mut`], it copies the data if another actor can still read it.
pub fn write<T: Clone>(shared: &mut Arc<T>) -> &mut T {
    let before = Arc::as_ptr(shared);
    Arc::make_mut(shared);
    if Arc::as_ptr(shared) != before && is(Mode::Counted) {
        lock(&ACCOUNT).copies_on_write += 1;
    }
    Arc::make_mut(shared)
}

/// Makes payloads of types that own nothing.
macro_rules! scalars {
    ($($scalar:ty),*) => {
        $(impl $crate::safe_messages::passing::Payload for $scalar {
            const SCALAR: bool = true;

            fn deep_copy(&self) -> Self {
                *self
            }
        })*
    };
}
pub(super) use scalars;

scalars!(bool, u32, u64, usize, i64, f64);

impl<A: Actor> Payload for ActorRef<A> {
    const SCALAR: bool = true;

    fn deep_copy(&self) -> Self {
        *self
    }
}

impl<T: Payload> Payload for Option<T> {
    const SCALAR: bool = T::SCALAR;

    fn deep_copy(&self) -> Self {
        self.as_ref().map(T::deep_copy)
    }
}

impl<A: Payload, B: Payload> Payload for (A, B) {
    const SCALAR: bool = A::SCALAR && B::SCALAR;

    fn deep_copy(&self) -> Self {
        (self.0.deep_copy(), self.1.deep_copy())
    }
}

impl Payload for String {
    fn deep_copy(&self) -> Self {
        self.clone()
    }
}

impl<T: Payload> Payload for Vec<T> {
    fn deep_copy(&self) -> Self {
        self.iter().map(T::deep_copy).collect()
    }
}

impl<K: Payload + Ord, V: Payload> Payload for BTreeMap<K, V> {
    fn deep_copy(&self) -> Self {
        self.iter().map(|(key, value)| (key.deep_copy(), value.deep_copy())).collect()
    }
}

impl<T: Payload> Payload for Arc<T> {
    fn deep_copy(&self) -> Self {
        Arc::new(T::deep_copy(self))
    }
}

impl<T: Payload> Payload for Arc<[T]> {
    fn deep_copy(&self) -> Self {
        self.iter().map(T::deep_copy).collect()
    }
}

impl Payload for Arc<str> {
    fn deep_copy(&self) -> Self {
        Arc::from(&**self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_tells_the_kinds_apart() {
        let shared: Arc<[u64]> = Arc::from([1, 2]);
        let ((), account) = in_mode(Mode::Counted, || {
            for _ in 0..3 {
                pass(vec![1_u64]);
            }
            pass((1_u64, true));
            pass(Some("text".to_owned()));
            share(&shared);
            copy(&shared);
        });
        let of = |kind| (account.sites(kind), account.sent(kind));
        assert_eq!([Kind::Scalar, Kind::Moved, Kind::Shared, Kind::Copied].map(of), [(1, 1), (2, 4), (1, 1), (1, 1)]);
        assert_eq!((account.all_sites(), account.sites_without_copy(), account.all_sent()), (5, 4, 7));
    }

    #[test]
    fn nothing_moves_where_all_is_copied() {
        let (shared, list): (Arc<str>, Vec<u64>) = (Arc::from("text"), vec![1, 2]);
        let at = list.as_ptr();
        let ((), account) = in_mode(Mode::Copied, || {
            assert!(!Arc::ptr_eq(&shared, &share(&shared)));
            let copied = pass(list);
            assert_eq!(copied, [1, 2]);
            assert_ne!(copied.as_ptr(), at);
        });
        assert_eq!(account, Account::default());
        let list = vec![1_u64, 2];
        let at = list.as_ptr();
        let (moved, _) = in_mode(Mode::Moved, || pass(list));
        assert_eq!(moved.as_ptr(), at);
    }

    #[test]
    fn a_copy_on_write_is_counted_only_if_it_happens() {
        let mut first = Arc::new(String::from("a"));
        let (second, account) = in_mode(Mode::Counted, || {
            write(&mut first).push('b');
            let second = share(&first);
            write(&mut first).push('c');
            write(&mut first).push('d');
            second
        });
        assert_eq!((account.copies_on_write, first.as_str(), second.as_str()), (1, "abcd", "ab"));
    }
}
