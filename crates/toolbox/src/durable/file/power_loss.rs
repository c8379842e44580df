//! What is left of a drawer when the power fails, its process is killed, or its disk has an error: at each step of what is done.

use std::path::PathBuf;

use playhouse_executor::Choices;

use super::faulty_disk::{Fails, Platter};
use super::shard_dir::Drawer;
use crate::durable::store::{Saved, StoreError};
use crate::panics::lock;

fn drawer(disk: &Platter) -> Drawer<Platter> {
    Drawer { disk: disk.clone(), folder: PathBuf::from("drawer") }
}

/// What is under the key, or was tried and failed: in the latter case, the one or the other.
#[derive(Clone, Debug)]
struct Believed {
    /// What was acknowledged.
    saved: Option<Saved>,
    /// Bytes, or none where it was to be removed.
    tried: Option<Option<Vec<u8>>>,
    /// The largest revision that somebody was told.
    told: u64,
}

/// Saves some times, removes, and begins anew, until something fails.
fn live(drawer: &Drawer<Platter>, mut believed: Believed, steps: &[bool]) -> Believed {
    for (number, saves) in steps.iter().enumerate() {
        let expected = believed.saved.as_ref().map_or(0, |saved| saved.revision);
        let bytes = format!("state {number} upon {expected}").repeat(1 + number % 3).into_bytes();
        let done = if *saves {
            drawer.save("key", expected, &bytes).map(|revision| Some(Saved { revision, bytes: bytes.clone() }))
        } else {
            drawer.remove("key", expected).map(|()| None)
        };
        match done {
            Ok(saved) => {
                let revision = saved.as_ref().map_or(believed.told + 1, |saved| saved.revision);
                assert!(revision > believed.told, "revision {revision} comes again: {believed:?}");
                believed.told = believed.told.max(saved.as_ref().map_or(0, |saved| saved.revision));
                believed.saved = saved;
            }
            Err(StoreError::Io { key, .. }) => {
                assert_eq!(key, "key");
                believed.tried = Some(saves.then_some(bytes));
                return believed;
            }
            Err(other) => panic!("{other}"),
        }
    }
    believed
}

/// Opens it anew: what is there is one of what may be, and is what is believed from now on.
fn look(drawer: &Drawer<Platter>, mut believed: Believed) -> Believed {
    drawer.tidy().unwrap();
    let found = drawer.load("key").unwrap_or_else(|error| panic!("{error}: {believed:?}"));
    let is_new = believed.tried.as_ref().is_some_and(|tried| *tried == found.as_ref().map(|saved| saved.bytes.clone()));
    assert!(found == believed.saved || is_new, "{found:?} is there: {believed:?}");
    if is_new && let Some(new) = &found {
        assert!(found == believed.saved || new.revision > believed.told, "{found:?} is there: {believed:?}");
    }
    believed.told = believed.told.max(found.as_ref().map_or(0, |saved| saved.revision));
    (believed.saved, believed.tried) = (found, None);
    assert!(drawer.keys("").unwrap().len() == usize::from(believed.saved.is_some()));
    believed
}

const LIFE: [bool; 8] = [true, true, false, true, false, true, true, false];
const BORN: Believed = Believed { saved: None, tried: None, told: 0 };

/// How many steps such a life has.
fn steps() -> usize {
    let disk = Platter::default();
    disk.fails(Fails::Ever, usize::MAX);
    live(&drawer(&disk), BORN, &LIFE);
    usize::MAX - lock(&disk.0).left
}

#[test]
fn whenever_the_power_fails_the_former_or_the_new_state_is_there_and_whole() {
    let mut outcomes = [0, 0];
    for step in 0..=steps() {
        for seed in 0..60 {
            let mut choices = Choices::new(seed);
            let disk = Platter::default();
            disk.fails(Fails::Ever, step);
            let believed = live(&drawer(&disk), BORN, &LIFE);
            let found = disk.after_power_cut(&mut choices);
            let (before, tried) = (believed.saved.clone(), believed.tried.is_some());
            let believed = look(&drawer(&found), believed);
            if tried {
                outcomes[usize::from(believed.saved != before)] += 1;
            }
            // It goes on, and fails again.
            found.fails(Fails::Ever, choices.below(30));
            let believed = live(&drawer(&found), believed, &LIFE);
            look(&drawer(&found.after_power_cut(&mut choices)), believed);
        }
    }
    assert!(outcomes.iter().all(|outcome| *outcome > 100), "{outcomes:?}");
}

#[test]
fn what_was_loaded_is_there_after_a_power_cut_though_who_saved_it_was_killed() {
    for step in 0..=steps() {
        for seed in 0..20 {
            let disk = Platter::default();
            disk.fails(Fails::Ever, step);
            let believed = live(&drawer(&disk), BORN, &LIFE);
            // Nothing is lost yet.
            disk.fails(Fails::Never, 0);
            let believed = look(&drawer(&disk), believed);
            look(&drawer(&disk.after_power_cut(&mut Choices::new(seed))), believed);
        }
    }
}

#[test]
fn an_error_of_the_disk_leaves_the_former_or_the_new_state_and_the_next_save_works() {
    for step in 0..steps() {
        let disk = Platter::default();
        disk.fails(Fails::Once, step);
        let believed = live(&drawer(&disk), BORN, &LIFE);
        assert!(believed.tried.is_some(), "step {step}: the error was not told");
        assert!(!lock(&disk.0).names.contains_key("new"), "step {step}: something is left over");
        let believed = look(&drawer(&disk), believed);
        let believed = live(&drawer(&disk), believed, &LIFE);
        look(&drawer(&disk), believed);
    }
}

#[test]
fn no_revision_comes_twice_where_who_removed_before_was_killed() {
    for step in 0..=steps() {
        for (cut, seed) in (0..8).flat_map(|cut| (0..10).map(move |seed| (cut, seed))) {
            let disk = Platter::default();
            disk.fails(Fails::Ever, step);
            let mut believed = live(&drawer(&disk), BORN, &LIFE);
            // Another one has loaded it before, and removes without a look, which would sync what the first one has done.
            let Some(Saved { revision, .. }) = believed.saved else { continue };
            disk.fails(Fails::Ever, cut);
            let removed = drawer(&disk).remove("key", revision);
            let disk = disk.after_power_cut(&mut Choices::new(seed));
            let left = drawer(&disk).load("key").unwrap();
            assert!(removed.is_err() || left.is_none(), "{left:?}");
            believed.told = believed.told.max(left.as_ref().map_or(0, |saved| saved.revision));
            believed.saved = left;
            believed.tried = None;
            live(&drawer(&disk), believed, &LIFE);
        }
    }
}
