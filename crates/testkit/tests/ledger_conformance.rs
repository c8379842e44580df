//! The suite for ledgers accepts correct ledgers, and finds the flaws of others.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playhouse::durable::{Changed, Ledger, LedgerWatch, MemoryStore, Saved, Store, StoreError};
use playhouse_testkit::conformance::{Report, ledger};

// GUARANTEE: Watches miss no change
#[test]
fn a_ledger_in_memory_keeps_all_rules() {
    let report = ledger::check(|| {
        let storage = MemoryStore::new();
        move || storage.clone()
    });
    report.assert_all_kept();
    assert_eq!(report.to_string(), format!("ledger: all {} rules are kept", ledger::RULES.len()));
}

/// A flaw of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    ForgetsRemovals,
    TellsOfItsOwn,
    EndsWithTheHandle,
    BeginsLate,
    IsNotCalledAtWholeKeys,
    HasOneWatch,
    CallsBefore,
    CallsAtFirst,
    NeverEnds,
    EndsAll,
    DropsTheFunction,
}

use Flaw::*;

/// Each flaw, with the rule that it breaks above all.
const FLAWS: [(Flaw, &str); 11] = [
    (ForgetsRemovals, "each kind of change"),
    (DropsTheFunction, "each kind of change"),
    (TellsOfItsOwn, "other handles"),
    (EndsWithTheHandle, "other handles"),
    (BeginsLate, "from the beginning"),
    (IsNotCalledAtWholeKeys, "prefixes and watches"),
    (HasOneWatch, "prefixes and watches"),
    (CallsBefore, "after the change"),
    (CallsAtFirst, "none is missed"),
    (NeverEnds, "a watch ends alone"),
    (EndsAll, "a watch ends alone"),
];

/// A handle on a ledger with a flaw.
struct Flawed {
    flaw: Flaw,
    handle: u64,
    store: MemoryStore,
    watches: Arc<Mutex<Watches>>,
    /// The number of loads by any handle.
    loads: Arc<AtomicU64>,
}

#[derive(Default)]
struct Watches {
    open: Vec<Watched>,
    /// The number of watches that have begun.
    begun: u64,
}

struct Watched {
    number: u64,
    handle: u64,
    prefix: String,
    changed: Changed,
    /// The number of changes since the beginning.
    changes: u64,
}

impl Flawed {
    fn tell_of(&self, key: &str) {
        for watched in self.watches.lock().unwrap().open.iter_mut() {
            watched.changes += 1;
            let skips = match self.flaw {
                TellsOfItsOwn => watched.handle != self.handle,
                BeginsLate => watched.changes == 1 && watched.number > 3,
                IsNotCalledAtWholeKeys => watched.prefix == key && key.contains('/'),
                CallsAtFirst => watched.changes > 6,
                _ => false,
            };
            if key.starts_with(&watched.prefix) && !skips {
                (watched.changed)();
            }
        }
    }
}

impl Drop for Flawed {
    fn drop(&mut self) {
        if self.flaw == EndsWithTheHandle {
            self.watches.lock().unwrap().open.retain(|watched| watched.handle != self.handle);
        }
    }
}

impl Store for Flawed {
    fn load(&self, key: &str) -> Result<Option<Saved>, StoreError> {
        let found = self.store.load(key);
        self.loads.fetch_add(1, Ordering::Relaxed);
        found
    }

    fn save(&self, key: &str, expected: u64, bytes: &[u8]) -> Result<u64, StoreError> {
        if self.flaw == CallsBefore {
            self.tell_of(key);
            // The loop ends after a load, or after 10,000 rounds.
            let before = self.loads.load(Ordering::Relaxed);
            (0..10_000)
                .take_while(|_| self.loads.load(Ordering::Relaxed) == before)
                .for_each(|_| std::thread::yield_now());
            return self.store.save(key, expected, bytes);
        }
        let saved = self.store.save(key, expected, bytes)?;
        self.tell_of(key);
        Ok(saved)
    }

    fn remove(&self, key: &str, expected: u64) -> Result<(), StoreError> {
        self.store.remove(key, expected)?;
        if self.flaw != ForgetsRemovals {
            self.tell_of(key);
        }
        Ok(())
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.store.keys(prefix)
    }
}

impl Ledger for Flawed {
    fn watch(&self, prefix: &str, changed: Changed) -> Result<LedgerWatch, StoreError> {
        if self.flaw == DropsTheFunction {
            return Ok(LedgerWatch::new(()));
        }
        let mut watches = self.watches.lock().unwrap();
        if self.flaw == HasOneWatch {
            watches.open.clear();
        }
        watches.begun += 1;
        let number = watches.begun;
        watches.open.push(Watched { number, handle: self.handle, prefix: prefix.to_owned(), changed, changes: 0 });
        drop(watches);
        let (flaw, watches) = (self.flaw, Arc::clone(&self.watches));
        Ok(LedgerWatch::new(AtEnd(Some(Box::new(move || match flaw {
            NeverEnds => {}
            EndsAll => watches.lock().unwrap().open.clear(),
            _ => watches.lock().unwrap().open.retain(|watched| watched.number != number),
        })))))
    }
}

/// Calls a function when it is dropped.
struct AtEnd(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        if let Some(end) = self.0.take() {
            end();
        }
    }
}

fn check(flaw: Flaw) -> Report {
    // A correct call comes at once.
    ledger::check_within(Duration::from_millis(700), move || {
        let (store, watches) = (MemoryStore::new(), Arc::<Mutex<Watches>>::default());
        let (handles, loads) = (AtomicU64::new(0), Arc::<AtomicU64>::default());
        move || Flawed {
            flaw,
            handle: handles.fetch_add(1, Ordering::Relaxed),
            store: store.clone(),
            watches: Arc::clone(&watches),
            loads: Arc::clone(&loads),
        }
    })
}

// GUARANTEE: The suite for ledgers finds flaws
#[test]
fn each_flaw_breaks_its_rule_and_each_rule_is_broken_by_a_flaw() {
    let mut unbroken: BTreeSet<&str> = ledger::RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(unbroken.len(), ledger::RULES.len(), "two rules have one name");
    // Their checks mostly wait.
    let reports = FLAWS.map(|(flaw, rule)| (flaw, rule, std::thread::spawn(move || check(flaw))));
    for (flaw, rule, report) in reports {
        let report = report.join().unwrap();
        assert!(report.broken().iter().any(|broken| broken.rule == rule), "{flaw:?} did not break {rule:?}: {report}");
        assert_eq!(report.broken().len() + report.kept().len(), ledger::RULES.len());
        unbroken.remove(rule);
    }
    assert!(unbroken.is_empty(), "no flaw is for {unbroken:?}");
}

// GUARANTEE: The suite for ledgers finds flaws
#[test]
fn a_report_says_which_call_is_missing() {
    let report = check(ForgetsRemovals);
    let expected = "- each kind of change: a call follows each state that is created, replaced or removed, and each that \
                    is created again\n  but after a state was removed, no call came within 700ms with which the change is visible";
    assert!(report.to_string().contains(expected), "{report}");
    let report = check(NeverEnds);
    let expected = "\n  but a watch was dropped, and is still called for the changes after 700ms";
    assert!(report.to_string().contains(expected), "{report}");
}
