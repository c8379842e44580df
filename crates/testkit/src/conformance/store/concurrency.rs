//! Rules of concurrent threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use playhouse::durable::{Saved, Store, StoreError};

use super::Storage;
use super::handle::{StoreHandle, expect};
use crate::conformance::Rule;
use crate::run::panic_message;

type StoreRule = Rule<Storage>;

const THREADS: usize = 4;

/// Runs `call`, and turns a panic into an error, because the other threads must not wait for it.
fn guarded<R>(call: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|thrown| format!("it has panicked: {}", panic_message(&*thrown)))
}

/// Calls `each` in [`THREADS`] threads, each with a handle of its own, and returns the results.
fn in_threads<R: Send>(
    open: &(dyn Fn() -> Arc<dyn Store> + Send + Sync),
    each: impl Fn(usize, StoreHandle) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
    let each = &each;
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..THREADS).map(|_| StoreHandle::of(open())).collect();
        let handles = handles.into_iter().enumerate();
        let threads: Vec<_> =
            handles.map(|(number, store)| scope.spawn(move || guarded(|| each(number, store))?)).collect();
        threads.into_iter().map(|thread| thread.join().expect("its panic was caught")).collect()
    })
}

pub(super) const ONE_WINS: StoreRule = Rule {
    name: "one wins each revision",
    says: "of several concurrent saves or removals with one expected revision, one succeeds and the others get a conflict",
    check: |storage| {
        const ROUNDS: u64 = 60;
        let open = (storage.fresh)();
        let together = Barrier::new(THREADS);
        // All threads expect the same revision, because none goes on before all have loaded.
        let won = in_threads(&*open, |number, store| {
            let mut won: Vec<(u64, Option<u64>)> = Vec::new();
            let mut failed = None;
            for round in 0..ROUNDS {
                let seen = guarded(|| store.load("key")).and_then(|seen| seen);
                together.wait();
                let expected = match seen {
                    Ok(seen) => seen.map_or(0, |saved| saved.revision),
                    // The thread goes on, because the others wait for it.
                    Err(why) => {
                        failed = Some(why);
                        0
                    }
                };
                let removes = expected > 0 && round % 5 == 4 && number == 0;
                let bytes = format!("{number} in round {round}");
                let outcome = guarded(|| match removes {
                    true => store.store.remove("key", expected).map(|()| None),
                    false => store.store.save("key", expected, bytes.as_bytes()).map(Some),
                });
                match outcome {
                    Ok(Ok(revision)) => won.push((round, revision)),
                    Ok(Err(StoreError::Conflict { .. })) => {}
                    Ok(Err(other)) => failed = Some(format!("in a contest: {other}")),
                    Err(why) => failed = Some(why),
                }
                together.wait();
                if let (Some((at, Some(revision))), None) = (won.last(), &failed)
                    && *at == round
                {
                    let expected = Some((*revision, bytes.as_bytes()));
                    let found = guarded(|| store.has("key", expected, "after it was acknowledged to one of many"));
                    failed = found.and_then(|found| found).err();
                }
                together.wait();
            }
            failed.map_or(Ok(won), Err)
        })?;
        let mut last = 0;
        for round in 0..ROUNDS {
            let winners: Vec<_> = won.iter().flatten().filter(|(at, _)| *at == round).collect();
            let say = || format!("{} of {THREADS} were told that they have won, in round {round}", winners.len());
            expect(&winners.len(), &1, say)?;
            if let Some(revision) = winners[0].1 {
                expect(&(revision > last), &true, || format!("revision {revision} was given after {last}"))?;
                last = revision;
            }
        }
        Ok(())
    },
};

pub(super) const KEYS_AT_ONE_TIME: StoreRule = Rule {
    name: "keys at one time",
    says: "concurrent saves under different keys all take effect, and so does each addition to one key that is retried until it succeeds",
    check: |storage| {
        const EACH: u64 = 40;
        let open = (storage.fresh)();
        in_threads(&*open, |number, store| {
            let own = format!("own {number}");
            let (mut revision, mut conflicts) = (0, 0);
            for count in 0..EACH {
                revision = store.save(&own, revision, &count.to_le_bytes())?;
                loop {
                    let seen = store.load("sum")?;
                    let sum = seen.as_ref().map_or(0, |saved| number_in(&saved.bytes));
                    let expected = seen.map_or(0, |saved| saved.revision);
                    match store.store.save("sum", expected, &(sum + 1).to_le_bytes()) {
                        Ok(_) => break,
                        Err(StoreError::Conflict { .. }) if conflicts < EACH * THREADS as u64 => conflicts += 1,
                        Err(StoreError::Conflict { .. }) => {
                            return Err(format!(
                                "{conflicts} saves were conflicts, more than there were others to lose against"
                            ));
                        }
                        Err(other) => return Err(format!("a sum was not saved: {other}")),
                    }
                }
            }
            Ok(())
        })?;
        let store = StoreHandle::of(open());
        let sum = store.load("sum")?.map_or(0, |saved| number_in(&saved.bytes));
        let all = EACH * THREADS as u64;
        expect(&sum, &all, || format!("{all} additions of 1 were acknowledged, and the sum is {sum}"))?;
        for number in 0..THREADS {
            let own = store.load(&format!("own {number}"))?.map(|saved| number_in(&saved.bytes));
            let say = || format!("a thread has saved {} last under a key of its own, and {own:?} is there", EACH - 1);
            expect(&own, &Some(EACH - 1), say)?;
        }
        Ok(())
    },
};

fn number_in(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

pub(super) const STATES_ARE_WHOLE: StoreRule = Rule {
    name: "states are whole",
    says: "a load during saves returns one of the saved states, complete and never earlier than the last load",
    check: |storage| {
        const SAVES: u8 = 40;
        let open = (storage.fresh)();
        let over = AtomicBool::new(false);
        let begun = Barrier::new(THREADS);
        in_threads(&*open, |thread, store| {
            begun.wait();
            if thread > 0 {
                let mut last = 0;
                while !over.load(Ordering::Relaxed) {
                    let Some(Saved { revision, bytes }) = store.load("key")? else { continue };
                    let is_whole = !bytes.is_empty() && bytes.len() == 1000 * (1 + usize::from(bytes[0] % 7) * 10);
                    if !is_whole || bytes.iter().any(|byte| *byte != bytes[0]) {
                        return Err(format!("parts of different states were loaded with revision {revision}"));
                    }
                    expect(&(revision >= last), &true, || format!("revision {revision} was loaded after {last}"))?;
                    last = revision;
                }
                return Ok(());
            }
            let save_all = || {
                (1..=SAVES).try_fold(0, |revision, number| {
                    store.save("key", revision, &vec![number; 1000 * (1 + usize::from(number % 7) * 10)])
                })
            };
            let saved = guarded(save_all);
            over.store(true, Ordering::Relaxed);
            saved?.map(drop)
        })
        .map(drop)
    },
};
