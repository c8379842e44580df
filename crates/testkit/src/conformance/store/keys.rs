//! Rules of many keys.

use playhouse::durable::{KEY_BYTES_MAX, StoreError};

use super::Storage;
use super::handle::{StoreHandle, expect};
use crate::conformance::Rule;

type StoreRule = Rule<Storage>;

/// Returns keys that a store might confuse with each other, or with something else.
fn odd_keys() -> Vec<String> {
    let odd = [
        "a",
        "A",
        "a ",
        " a",
        " ",
        "a.",
        ".",
        "..",
        "...",
        "/",
        "//",
        "a/",
        "/a",
        "a/b",
        "a/../b",
        "b",
        "a\\b",
        "a%2fb",
        "a%2Fb",
        "%",
        "%25",
        "a_b",
        "a-b",
        "a*b",
        "a?b",
        "a:b",
        "a;b",
        "a'b",
        "a\"b",
        "a`b",
        "$a",
        "~",
        "-a",
        "a=b&c",
        "<a>",
        "key",
        "KEY",
        "null",
        "0",
        "00",
        "1",
        "\u{e9}",
        "e\u{301}",
        "\u{df}",
        "ss",
        "\u{1f3ad}",
        "\u{65e5}\u{672c}",
        "\u{202e}a",
        "lock",
        "new",
        "mark",
        "a.state",
        "a.tmp",
    ];
    let long = [
        "x".repeat(KEY_BYTES_MAX),
        "x".repeat(KEY_BYTES_MAX - 1),
        "/".repeat(KEY_BYTES_MAX),
        "\u{e9}".repeat(KEY_BYTES_MAX / 2),
    ];
    odd.iter().map(|key| (*key).to_owned()).chain(long).collect()
}

pub(super) const KEYS_ARE_APART: StoreRule = Rule {
    name: "keys are apart",
    says: "each key that `check_key` allows is accepted, and differs from all others byte by byte",
    check: |storage| {
        let open = (storage.fresh)();
        let store = StoreHandle::of(open());
        let mut keys = odd_keys();
        let mut revisions = Vec::new();
        for key in &keys {
            store.has(key, None, "before it was saved")?;
            revisions.push(store.save(key, 0, key.as_bytes())?);
        }
        let reopened = StoreHandle::of(open());
        for (key, revision) in keys.iter().zip(&revisions) {
            store.has(key, Some((*revision, key.as_bytes())), "after others were saved")?;
            reopened.has(key, Some((*revision, key.as_bytes())), "after others were saved, opened again")?;
        }
        // Every other key is removed, and the others stay.
        for (key, revision) in keys.iter().zip(&revisions).step_by(2) {
            store.remove(key, *revision)?;
        }
        for (key, revision) in keys.iter().zip(&revisions).skip(1).step_by(2) {
            store.has(key, Some((*revision, key.as_bytes())), "after others were removed")?;
        }
        let mut number = 0;
        keys.retain(|_| {
            number += 1;
            number % 2 == 0
        });
        keys.sort_unstable();
        let listed = store.keys("")?;
        expect(&listed, &keys, || format!("the keys are listed as {listed:?}, not {keys:?}"))
    },
};

pub(super) const WRONG_KEYS: StoreRule = Rule {
    name: "wrong keys are refused",
    says: "a key that `check_key` refuses is refused by all calls with `StoreError::Key`",
    check: |storage| {
        let store = storage.store();
        let long = "x".repeat(KEY_BYTES_MAX + 1);
        let accents = "\u{e9}".repeat(KEY_BYTES_MAX / 2 + 1);
        for wrong in ["", "a\0b", "\n", "tab\t", "\u{7f}", "\u{85}", &long, &accents] {
            let calls = [
                ("load", store.store.load(wrong).map(drop)),
                ("save", store.store.save(wrong, 0, b"state").map(drop)),
                ("remove", store.store.remove(wrong, 0)),
            ];
            for (call, outcome) in calls {
                match outcome {
                    Err(StoreError::Key { key, .. }) if key == wrong => {}
                    other => return Err(format!("{call} has not refused the key {wrong:?}, but returned {other:?}")),
                }
            }
        }
        let keys = store.keys("")?;
        expect(&keys, &Vec::new(), || format!("keys that were refused are there: {keys:?}"))
    },
};

pub(super) const PREFIXES: StoreRule = Rule {
    name: "prefixes",
    says: "the keys that begin with a prefix are listed once each, in the order of their bytes",
    check: |storage| {
        let store = storage.store();
        let mut keys = odd_keys();
        keys.extend(
            ["account/1", "account/10", "account/2", "account", "accounts/1", "Account/1", "acco_nt", "a%"]
                .map(str::to_owned),
        );
        for key in &keys {
            store.save(key, 0, b"")?;
        }
        keys.sort_unstable();
        let mut prefixes = vec![String::new(), "account/".to_owned(), "acco_nt".to_owned(), "nowhere".to_owned()];
        prefixes.push("x".repeat(KEY_BYTES_MAX + 1));
        for key in &keys {
            prefixes.extend(key.char_indices().take(5).map(|(at, c)| key[..at + c.len_utf8()].to_owned()));
        }
        for prefix in prefixes {
            let expected: Vec<_> = keys.iter().filter(|key| key.starts_with(&prefix)).cloned().collect();
            let listed = store.keys(&prefix)?;
            let say = || format!("with the prefix {prefix:?}, {listed:?} are listed, not {expected:?}");
            expect(&listed, &expected, say)?;
        }
        Ok(())
    },
};
