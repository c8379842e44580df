//! Rules of the calls that follow a change.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::{Calls, SharedStorage, done};
use crate::conformance::Rule;

type LedgerRule = Rule<SharedStorage>;

pub(super) const EACH_KIND_OF_CHANGE: LedgerRule = Rule {
    name: "each kind of change",
    says: "a call follows each state that is created, replaced or removed, and each that is created again",
    check: |storage| {
        let open = (storage.fresh)();
        let ledger = open();
        let calls = storage.watch(&*ledger, "key")?;
        let mut expected = done("a save", ledger.save("key", 0, b"one"))?;
        calls.wait("after a state was created")?;
        // Calls of the changes before may come late. Each change is made some times, and each time it is waited for.
        for _ in 0..3 {
            calls.clear();
            expected = done("a save", ledger.save("key", expected, b"two"))?;
            calls.wait("after a state was replaced")?;
            calls.clear();
            done("a removal", ledger.remove("key", expected))?;
            calls.wait("after a state was removed")?;
            calls.clear();
            expected = done("a save", ledger.save("key", 0, b"three"))?;
            calls.wait("after a state was created again")?;
        }
        Ok(())
    },
};

pub(super) const OTHER_HANDLES: LedgerRule = Rule {
    name: "other handles",
    says: "a call follows the changes of other handles on the same storage, also after the watching handle was dropped",
    check: |storage| {
        let open = (storage.fresh)();
        let (watched, other) = (open(), open());
        let calls = storage.watch(&*watched, "")?;
        let mut expected = 0;
        for round in 0..5_u8 {
            calls.clear();
            expected = done("a save of another handle", other.save("key", expected, &[round]))?;
            calls.wait("after another handle has saved")?;
        }
        drop(watched);
        calls.clear();
        done("a removal of another handle", other.remove("key", expected))?;
        calls.wait("after the watching handle was dropped, and another one has removed a state")
    },
};

pub(super) const FROM_THE_BEGINNING: LedgerRule = Rule {
    name: "from the beginning",
    says: "a call follows a change that begins as soon as `watch` has returned",
    check: |storage| {
        let open = (storage.fresh)();
        let (watched, other) = (open(), open());
        let mut expected = 0;
        for round in 0..20_u8 {
            let calls = storage.watch(&*watched, "key")?;
            expected = done("a save of another handle", other.save("key", expected, &[round]))?;
            calls.wait("after a change that followed `watch` at once")?;
        }
        Ok(())
    },
};

pub(super) const PREFIXES_AND_WATCHES: LedgerRule = Rule {
    name: "prefixes and watches",
    says: "each of several watches is called for the keys that begin with its prefix, which may be a whole key or empty",
    check: |storage| {
        let open = (storage.fresh)();
        let ledger = open();
        let watches = ["", "a", "a/", "a/1", "ü"];
        let calls = watches.iter().map(|prefix| storage.watch(&*ledger, prefix)).collect::<Result<Vec<_>, _>>()?;
        for key in ["a/1", "a/2", "a", "ü/1", "b"] {
            calls.iter().for_each(Calls::clear);
            done("a save", ledger.save(key, 0, b""))?;
            for (prefix, calls) in watches.iter().zip(&calls).filter(|(prefix, _)| key.starts_with(**prefix)) {
                calls.wait(&format!("after {key:?} was saved, for the watch of {prefix:?}"))?;
            }
        }
        Ok(())
    },
};

pub(super) const AFTER_THE_CHANGE: LedgerRule = Rule {
    name: "after the change",
    says: "a call comes after each change, so that a reader who reads at each call only sees every last change",
    check: |storage| {
        const CHANGES: u8 = 30;
        let open = (storage.fresh)();
        let (watched, other) = (open(), open());
        let calls = storage.watch(&*watched, "key")?;
        // The writer goes on when the reader has seen the change. The reader waits for a call before each look.
        let (tell, told) = channel::<()>();
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                let mut expected = 0;
                for round in 0..CHANGES {
                    expected = done("a save of another handle", other.save("key", expected, &[round]))?;
                    if told.recv().is_err() {
                        break;
                    }
                }
                Ok::<(), String>(())
            });
            let read = (0..CHANGES).try_for_each(|round| {
                calls.wait_for("after another handle has saved", || {
                    let is_seen = done("a load", watched.load("key"))?.is_some_and(|found| found.bytes == [round]);
                    Ok(is_seen || writer.is_finished() && round + 1 < CHANGES)
                })?;
                let _the_writer_has_failed = tell.send(());
                Ok(())
            });
            drop(tell);
            writer.join().map_err(|_| "a save has panicked".to_owned())??;
            read
        })
    },
};

pub(super) const NONE_IS_MISSED: LedgerRule = Rule {
    name: "none is missed",
    says: "a reader who reads at each call only sees the last of many changes that come while it reads",
    check: |storage| {
        const CHANGES_MIN: u64 = 20;
        const LOOKS_MIN: u64 = 10;
        let open = (storage.fresh)();
        for _ in 0..3 {
            let (watched, other) = (open(), open());
            let calls = storage.watch(&*watched, "number")?;
            let (looks, ended) = (AtomicU64::new(0), AtomicBool::new(false));
            std::thread::scope(|scope| {
                let writer = scope.spawn(|| {
                    // The reader must not wait for a writer that has failed.
                    let _ended = AtEnd(&ended);
                    let begin = Instant::now();
                    let (mut number, mut expected) = (0_u64, 0);
                    while number < CHANGES_MIN
                        || looks.load(Ordering::Relaxed) < LOOKS_MIN && begin.elapsed() < storage.call_limit / 2
                    {
                        number += 1;
                        expected = done("a save", other.save("number", expected, &number.to_le_bytes()))?;
                    }
                    done("a removal", other.remove("number", expected))
                });
                let mut begun = false;
                let mut is_seen = || {
                    looks.fetch_add(1, Ordering::Relaxed);
                    let is_there = done("a load", watched.load("number"))?.is_some();
                    begun |= is_there;
                    Ok(begun && !is_there)
                };
                // While the writer writes, and then for as long as a call may take.
                let mut seen = false;
                while !seen && !ended.load(Ordering::Acquire) {
                    seen = calls.next_within(POLL) && is_seen()?;
                }
                writer.join().map_err(|_| "a save has panicked".to_owned())??;
                if seen { Ok(()) } else { calls.wait_for("after the last of many changes", is_seen) }
            })?;
        }
        Ok(())
    },
};

/// The time after which a reader looks whether the writer has ended.
const POLL: Duration = Duration::from_millis(10);

/// Raises a flag when it is dropped.
struct AtEnd<'a>(&'a AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
