//! Rules of one key and one thread.

use playhouse::durable::{STATE_BYTES_MAX, StoreError};

use super::Storage;
use super::handle::{StoreHandle, expect, shown};
use crate::conformance::Rule;

type StoreRule = Rule<Storage>;

pub(super) const EMPTY_AT_FIRST: StoreRule = Rule {
    name: "empty at first",
    says: "new storage is empty, and removing nothing from it succeeds",
    check: |storage| {
        let store = storage.store();
        store.has("key", None, "at first")?;
        let keys = store.keys("")?;
        expect(&keys, &Vec::new(), || format!("the keys {keys:?} are there at first"))?;
        store.remove("key", 0)?;
        store.has("key", None, "after nothing was removed")
    },
};

pub(super) const SAVED_IS_LOADED: StoreRule = Rule {
    name: "saved is loaded",
    says: "a saved state is loaded byte by byte, with the revision that the save has returned",
    check: |storage| {
        let store = storage.store();
        let bytes: Vec<u8> = (0..=255).chain((0..=255).rev()).chain([0, 0, b'\r', b'\n', b' ']).collect();
        let revision = store.save("key", 0, &bytes)?;
        store.has("key", Some((revision, &bytes)), "after a save")?;
        store.has("key", Some((revision, &bytes)), "loaded again")?;
        // The second state is shorter than the first.
        let second = store.save("key", revision, b"short")?;
        store.has("key", Some((second, b"short")), "after a second save")
    },
};

pub(super) const EMPTY_IS_A_STATE: StoreRule = Rule {
    name: "empty is a state",
    says: "a state without bytes differs from no state",
    check: |storage| {
        let store = storage.store();
        let revision = store.save("key", 0, b"")?;
        store.has("key", Some((revision, b"")), "after a state without bytes was saved")?;
        let keys = store.keys("")?;
        expect(&keys, &vec!["key".to_owned()], || format!("the keys are {keys:?}, not [\"key\"]"))?;
        store.is_conflict("a save", store.store.save("key", 0, b"new"), ("key", 0, revision))
    },
};

pub(super) const LARGE_STATES: StoreRule = Rule {
    name: "large states",
    says: "a state has at most `state_bytes_max` bytes, and this limit is at most `STATE_BYTES_MAX`",
    check: |storage| {
        let store = storage.store();
        let bytes_max = store.store.state_bytes_max();
        expect(&(1..=STATE_BYTES_MAX).contains(&bytes_max), &true, || {
            format!("the limit of a state is {bytes_max} bytes")
        })?;
        let mut bytes: Vec<u8> = (0..bytes_max).map(|at| (at % 251) as u8).collect();
        let revision = store.save("key", 0, &bytes)?;
        store.has("key", Some((revision, &bytes)), "after a large state was saved")?;
        bytes.push(0);
        match store.store.save("key", revision, &bytes) {
            Err(StoreError::TooLarge { key, bytes, max })
                if (&*key, bytes, max) == ("key", bytes_max + 1, bytes_max) => {}
            Err(other) => return Err(format!("a state that is too large was not refused as such, but: {other:?}")),
            Ok(_) => return Err("a state of one byte too many was saved".to_owned()),
        }
        store.has("key", Some((revision, &bytes[..bytes_max])), "after a state that is too large was refused")
    },
};

pub(super) const REVISIONS_GROW: StoreRule = Rule {
    name: "revisions grow",
    says: "the revision that a save returns is above 0, and above all earlier revisions of the key",
    check: |storage| {
        let store = storage.store();
        let mut last = 0;
        for number in 0..20_u8 {
            let revision = store.save("key", last, &[number])?;
            expect(&(revision > last), &true, || format!("revision {revision} came after {last}"))?;
            last = revision;
            store.save(&format!("other {number}"), 0, b"")?;
        }
        Ok(())
    },
};

/// Returns revisions other than this one.
fn wrong(revision: u64) -> Vec<u64> {
    let mut wrong = vec![0, revision - 1, revision + 1, u64::MAX];
    wrong.retain(|wrong| *wrong != revision);
    wrong.dedup();
    wrong
}

pub(super) const CONFLICTS_ARE_TOLD: StoreRule = Rule {
    name: "conflicts are told",
    says: "a caller that expects a wrong revision gets a conflict with the key, the expected and the found revision",
    check: |storage| {
        let store = storage.store();
        for expected in [1, 2, u64::MAX] {
            let saved = store.store.save("key", expected, b"state");
            store.is_conflict("a save where nothing is", saved, ("key", expected, 0))?;
            let removed = store.store.remove("key", expected);
            store.is_conflict("a removal where nothing is", removed, ("key", expected, 0))?;
        }
        let mut revision = 0;
        for _ in 0..3 {
            revision = store.save("key", revision, b"state")?;
            for expected in wrong(revision) {
                store.is_conflict(
                    "a save",
                    store.store.save("key", expected, b"other"),
                    ("key", expected, revision),
                )?;
                store.is_conflict("a removal", store.store.remove("key", expected), ("key", expected, revision))?;
            }
        }
        Ok(())
    },
};

pub(super) const CONFLICTS_CHANGE_NOTHING: StoreRule = Rule {
    name: "conflicts change nothing",
    says: "after a conflict, the same state is there with the same revision",
    check: |storage| {
        let store = storage.store();
        drop(store.store.save("key", 7, b"lost"));
        store.has("key", None, "after a conflict where nothing was")?;
        let first = store.save("key", 0, b"first")?;
        let second = store.save("key", first, b"second")?;
        for expected in wrong(second).into_iter().chain([first]) {
            drop(store.store.save("key", expected, b"lost"));
            store.has("key", Some((second, b"second")), "after a save that was a conflict")?;
            drop(store.store.remove("key", expected));
            store.has("key", Some((second, b"second")), "after a removal that was a conflict")?;
        }
        store.save("key", second, b"third").map(drop)
    },
};

pub(super) const REMOVED_IS_GONE: StoreRule = Rule {
    name: "removed is gone",
    says: "a removed state is neither loaded nor listed, and other states are",
    check: |storage| {
        let store = storage.store();
        let (first, other) = (store.save("key", 0, b"state")?, store.save("other", 0, b"other")?);
        store.remove("key", first)?;
        store.has("key", None, "after its removal")?;
        store.has("other", Some((other, b"other")), "after the removal of \"key\"")?;
        let keys = store.keys("")?;
        expect(&keys, &vec!["other".to_owned()], || {
            format!("after the removal, the keys are {keys:?}, not [\"other\"]")
        })?;
        let removed = store.store.remove("key", first);
        store.is_conflict("a second removal", removed, ("key", first, 0))?;
        let anew = store.save("key", 0, b"anew")?;
        store.has("key", Some((anew, b"anew")), "made anew")
    },
};

pub(super) const NO_REVISION_TWICE: StoreRule = Rule {
    name: "no revision twice",
    says: "a state that is created after a removal has a revision above all earlier ones, so that a stale caller overwrites nothing",
    check: |storage| {
        let open = (storage.fresh)();
        let mut revisions: Vec<u64> = Vec::new();
        for round in 0..4 {
            // The store is opened again each time, because the storage itself must remember removals.
            let store = StoreHandle::of(open());
            let mut revision = 0;
            for _ in 0..=(round % 3) {
                revision = store.save("key", revision, b"state")?;
                let last = revisions.last().copied().unwrap_or(0);
                let say = || format!("revision {revision} came after {last}, with a removal between them");
                expect(&(revision > last), &true, say)?;
                revisions.push(revision);
            }
            for stale in revisions.iter().filter(|stale| **stale != revision) {
                let saved = store.store.save("key", *stale, b"stale");
                store.is_conflict("a save with a stale revision", saved, ("key", *stale, revision))?;
            }
            // The removal of another key is independent.
            let other = store.save("other", 0, b"")?;
            store.remove("key", revision)?;
            store.remove("other", other)?;
        }
        Ok(())
    },
};

pub(super) const REOPENED: StoreRule = Rule {
    name: "saved is there when reopened",
    says: "a handle that is opened after all others were closed sees their saves and removals",
    check: |storage| {
        let open = (storage.fresh)();
        let store = StoreHandle::of(open());
        let (first, gone) = (store.save("key", 0, b"first")?, store.save("gone", 0, b"gone")?);
        let second = store.save("key", first, b"second")?;
        store.remove("gone", gone)?;
        drop(store);
        let store = StoreHandle::of(open());
        store.has("key", Some((second, b"second")), "opened again")?;
        store.has("gone", None, "opened again after its removal")?;
        let keys = store.keys("")?;
        expect(&keys, &vec!["key".to_owned()], || format!("opened again, the keys are {keys:?}, not [\"key\"]"))?;
        store.is_conflict("a save", store.store.save("key", first, b"lost"), ("key", first, second))?;
        let third = store.save("key", second, b"third")?;
        drop(store);
        StoreHandle::of(open()).has("key", Some((third, b"third")), "opened a third time")
    },
};

pub(super) const HANDLES_AGREE: StoreRule = Rule {
    name: "handles agree",
    says: "a save or removal by one handle is visible to the others at once",
    check: |storage| {
        let open = (storage.fresh)();
        let (one, two) = (StoreHandle::of(open()), StoreHandle::of(open()));
        two.has("key", None, "in the second handle")?;
        let first = one.save("key", 0, b"first")?;
        two.has("key", Some((first, b"first")), "in the second handle")?;
        two.is_conflict("a save by the second handle", two.store.save("key", 0, b"lost"), ("key", 0, first))?;
        let second = two.save("key", first, b"second")?;
        one.is_conflict("a save by the first handle", one.store.save("key", first, b"lost"), ("key", first, second))?;
        let found = one.load("key")?;
        let say = || format!("the first handle has {} where the second one has saved", shown(found.as_ref()));
        expect(&found.as_ref().map(|saved| saved.revision), &Some(second), say)?;
        one.remove("key", second)?;
        two.has("key", None, "in the second handle, after the first one has removed it")?;
        two.is_conflict("a save by the second handle", two.store.save("key", second, b"lost"), ("key", second, 0))
    },
};
