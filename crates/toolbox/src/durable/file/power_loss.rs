//! Tests of a shard after a power failure, a killed process, or a disk error, at each step of each operation.

use std::path::PathBuf;

use playhouse_executor::Choices;

use super::faulty_disk::{Failures, FaultyDisk};
use super::shard_dir::ShardDir;
use crate::durable::store::{Saved, StoreError};
use crate::panics::lock;

fn shard_dir(disk: &FaultyDisk) -> ShardDir<FaultyDisk> {
    ShardDir { disk: disk.clone(), folder: PathBuf::from("shard_dir") }
}

/// The state that the store must have under the key. After a failed operation, either of two states is right.
#[derive(Clone, Debug)]
struct Expected {
    /// The acknowledged state.
    saved: Option<Saved>,
    /// The bytes of a failed save, or `None` in a failed removal.
    tried: Option<Option<Vec<u8>>>,
    /// The largest revision that was ever returned.
    told: u64,
}

/// Saves and removes as `steps` say, until an operation fails.
fn run_steps(shard_dir: &ShardDir<FaultyDisk>, mut expected_state: Expected, steps: &[bool]) -> Expected {
    for (number, saves) in steps.iter().enumerate() {
        let expected = expected_state.saved.as_ref().map_or(0, |saved| saved.revision);
        let bytes = format!("state {number} upon {expected}").repeat(1 + number % 3).into_bytes();
        let done = if *saves {
            shard_dir.save("key", expected, &bytes).map(|revision| Some(Saved { revision, bytes: bytes.clone() }))
        } else {
            shard_dir.remove("key", expected).map(|()| None)
        };
        match done {
            Ok(saved) => {
                let revision = saved.as_ref().map_or(expected_state.told + 1, |saved| saved.revision);
                assert!(revision > expected_state.told, "revision {revision} comes again: {expected_state:?}");
                expected_state.told = expected_state.told.max(saved.as_ref().map_or(0, |saved| saved.revision));
                expected_state.saved = saved;
            }
            Err(StoreError::Io { key, .. }) => {
                assert_eq!(key, "key");
                expected_state.tried = Some(saves.then_some(bytes));
                return expected_state;
            }
            Err(other) => panic!("{other}"),
        }
    }
    expected_state
}

/// Opens the shard again, checks that its state is a right one, and expects that state from now on.
fn reopen(shard_dir: &ShardDir<FaultyDisk>, mut expected_state: Expected) -> Expected {
    shard_dir.tidy().unwrap();
    let found = shard_dir.load("key").unwrap_or_else(|error| panic!("{error}: {expected_state:?}"));
    let is_new =
        expected_state.tried.as_ref().is_some_and(|tried| *tried == found.as_ref().map(|saved| saved.bytes.clone()));
    assert!(found == expected_state.saved || is_new, "{found:?} is there: {expected_state:?}");
    if is_new && let Some(new) = &found {
        assert!(
            found == expected_state.saved || new.revision > expected_state.told,
            "{found:?} is there: {expected_state:?}"
        );
    }
    expected_state.told = expected_state.told.max(found.as_ref().map_or(0, |saved| saved.revision));
    (expected_state.saved, expected_state.tried) = (found, None);
    assert!(shard_dir.keys("").unwrap().len() == usize::from(expected_state.saved.is_some()));
    expected_state
}

const STEPS: [bool; 8] = [true, true, false, true, false, true, true, false];
const INITIAL: Expected = Expected { saved: None, tried: None, told: 0 };

/// Returns the number of disk steps in [`STEPS`].
fn steps() -> usize {
    let disk = FaultyDisk::default();
    disk.fails(Failures::Ever, usize::MAX);
    run_steps(&shard_dir(&disk), INITIAL, &STEPS);
    usize::MAX - lock(&disk.0).left
}

// GUARANTEE: Saved states are durable
#[test]
fn after_a_power_failure_the_former_or_the_new_state_is_complete() {
    let mut outcomes = [0, 0];
    for step in 0..=steps() {
        for seed in 0..60 {
            let mut choices = Choices::new(seed);
            let disk = FaultyDisk::default();
            disk.fails(Failures::Ever, step);
            let expected_state = run_steps(&shard_dir(&disk), INITIAL, &STEPS);
            let found = disk.after_power_cut(&mut choices);
            let (before, tried) = (expected_state.saved.clone(), expected_state.tried.is_some());
            let expected_state = reopen(&shard_dir(&found), expected_state);
            if tried {
                outcomes[usize::from(expected_state.saved != before)] += 1;
            }
            // The shard goes on, and fails again.
            found.fails(Failures::Ever, choices.below(30));
            let expected_state = run_steps(&shard_dir(&found), expected_state, &STEPS);
            reopen(&shard_dir(&found.after_power_cut(&mut choices)), expected_state);
        }
    }
    assert!(outcomes.iter().all(|outcome| *outcome > 100), "{outcomes:?}");
}

// GUARANTEE: Saved states are durable
#[test]
fn a_loaded_state_survives_a_power_cut_after_its_writer_was_killed() {
    for step in 0..=steps() {
        for seed in 0..20 {
            let disk = FaultyDisk::default();
            disk.fails(Failures::Ever, step);
            let expected_state = run_steps(&shard_dir(&disk), INITIAL, &STEPS);
            // The process is killed, and the disk has lost nothing.
            disk.fails(Failures::Never, 0);
            let expected_state = reopen(&shard_dir(&disk), expected_state);
            reopen(&shard_dir(&disk.after_power_cut(&mut Choices::new(seed))), expected_state);
        }
    }
}

// GUARANTEE: A state is intact or reported as damaged
#[test]
fn an_error_of_the_disk_leaves_the_former_or_the_new_state_and_the_next_save_works() {
    for step in 0..steps() {
        let disk = FaultyDisk::default();
        disk.fails(Failures::Once, step);
        let expected_state = run_steps(&shard_dir(&disk), INITIAL, &STEPS);
        assert!(expected_state.tried.is_some(), "step {step}: the error was not told");
        assert!(!lock(&disk.0).names.contains_key("new"), "step {step}: something is left over");
        let expected_state = reopen(&shard_dir(&disk), expected_state);
        let expected_state = run_steps(&shard_dir(&disk), expected_state, &STEPS);
        reopen(&shard_dir(&disk), expected_state);
    }
}

#[test]
fn no_revision_is_reused_after_its_remover_was_killed() {
    for step in 0..=steps() {
        for (cut, seed) in (0..8).flat_map(|cut| (0..10).map(move |seed| (cut, seed))) {
            let disk = FaultyDisk::default();
            disk.fails(Failures::Ever, step);
            let mut expected_state = run_steps(&shard_dir(&disk), INITIAL, &STEPS);
            // Another process has loaded the state before. It removes the state without a load, which would sync the
            // first process's work.
            let Some(Saved { revision, .. }) = expected_state.saved else { continue };
            disk.fails(Failures::Ever, cut);
            let removed = shard_dir(&disk).remove("key", revision);
            let disk = disk.after_power_cut(&mut Choices::new(seed));
            let left = shard_dir(&disk).load("key").unwrap();
            assert!(removed.is_err() || left.is_none(), "{left:?}");
            expected_state.told = expected_state.told.max(left.as_ref().map_or(0, |saved| saved.revision));
            expected_state.saved = left;
            expected_state.tried = None;
            run_steps(&shard_dir(&disk), expected_state, &STEPS);
        }
    }
}
