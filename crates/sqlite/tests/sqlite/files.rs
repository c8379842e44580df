//! The files of a store: those that it opens, those that it refuses and leaves alone, and two connections to one.

use std::fs;

use playhouse::durable::{Ledger, Saved, Store, StoreError};
use playhouse_sqlite::{OpenError, SqliteStore};
use rusqlite::Connection;

use crate::folder::Folder;

#[test]
fn a_closed_store_is_one_file() {
    let folder = Folder::new("closed");
    let path = folder.path("states.db");
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.path(), path);
    let revision = store.save("key", 0, b"state").unwrap();
    drop(store);
    let files: Vec<_> = fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, ["states.db"]);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.load("key").unwrap(), Some(Saved { revision, bytes: b"state".to_vec() }));
}

#[test]
fn files_of_others_are_refused_and_left_alone() {
    let folder = Folder::new("foreign");
    let refused = |file: &str| {
        let path = folder.path(file);
        let before = fs::read(&path).unwrap();
        let error = SqliteStore::open(&path).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), before, "{file} was changed");
        let text = error.to_string();
        assert!(text.starts_with(&path.display().to_string()), "{text}");
        (error, text)
    };

    fs::write(folder.path("text"), "no database, but a text that is longer than the header of one: ".repeat(20))
        .unwrap();
    let (error, text) = refused("text");
    assert!(matches!(error, OpenError::Sqlite { .. }) && text.ends_with("file is not a database"), "{text}");

    let other = Connection::open(folder.path("other.db")).unwrap();
    other.execute_batch("CREATE TABLE state (key TEXT)").unwrap();
    drop(other);
    let (error, text) = refused("other.db");
    assert!(matches!(error, OpenError::Foreign { .. }) && text.contains("another program"), "{text}");

    // An empty database that another program has marked as its own.
    let marked = Connection::open(folder.path("marked.db")).unwrap();
    marked.pragma_update(None, "application_id", 7).unwrap();
    drop(marked);
    assert!(matches!(refused("marked.db").0, OpenError::Foreign { .. }));

    fs::write(folder.path("short"), "a note").unwrap();
    assert!(matches!(refused("short").0, OpenError::Foreign { .. }));

    drop(SqliteStore::open(folder.path("newer.db")).unwrap());
    Connection::open(folder.path("newer.db")).unwrap().pragma_update(None, "user_version", 2).unwrap();
    let (error, text) = refused("newer.db");
    assert!(matches!(error, OpenError::Format { found: 2, known: 1, .. }) && text.contains("has format 2"), "{text}");

    for missing in [folder.path(""), folder.path("no/such/folder/states.db")] {
        let error = SqliteStore::open(&missing).unwrap_err();
        assert!(matches!(&error, OpenError::Sqlite { .. }), "{error}");
    }
    assert!(!folder.path("no").exists());
}

#[test]
fn an_empty_file_becomes_a_store() {
    let folder = Folder::new("empty");
    fs::write(folder.path("states.db"), "").unwrap();
    let store = SqliteStore::open(folder.path("states.db")).unwrap();
    assert_eq!(store.keys("").unwrap(), [""; 0]);
}

#[test]
fn a_damaged_page_is_told() {
    let folder = Folder::new("damaged");
    let path = folder.path("states.db");
    let store = SqliteStore::open(&path).unwrap();
    store.save("key", 0, &[7; 100_000]).unwrap();
    drop(store);
    let whole = fs::read(&path).unwrap();
    let page = 4096;
    assert!(whole.len() > 20 * page);
    // The pages of the state, behind those of the tables.
    let mut bytes = whole.clone();
    bytes[10 * page..].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    let error = store.load("key").map(drop).unwrap_err();
    assert!(matches!(&error, StoreError::Damaged { key, .. } if key == "key"), "{error}");
    drop(store);
    // All pages behind the header and the schema.
    let mut bytes = whole;
    bytes[page..].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let error = SqliteStore::open(&path).unwrap_err();
    assert!(error.to_string().ends_with("database disk image is malformed"), "{error}");
}

#[test]
fn readers_do_not_wait_for_a_writer_and_see_what_it_has_committed() {
    let folder = Folder::new("readers");
    let path = folder.path("states.db");
    let store = SqliteStore::open(&path).unwrap();
    let first = store.save("key", 0, b"first").unwrap();
    let writer = Connection::open(&path).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE; UPDATE state SET bytes = x'00', revision = 99").unwrap();
    assert_eq!(store.load("key").unwrap(), Some(Saved { revision: first, bytes: b"first".to_vec() }));
    assert_eq!(store.keys("").unwrap(), ["key"]);
    writer.execute_batch("COMMIT").unwrap();
    assert_eq!(store.load("key").unwrap(), Some(Saved { revision: 99, bytes: vec![0] }));
    // The save of another program counts as a revision, too.
    assert!(matches!(store.save("key", first, b""), Err(StoreError::Conflict { found: 99, .. })));
}

#[test]
fn a_path_is_a_path() {
    let folder = Folder::new("paths");
    assert!(matches!(SqliteStore::open(""), Err(OpenError::Io { .. })));
    for name in [":memory:", "file:x%41.db?mode=memory", "file::memory:"] {
        let store = SqliteStore::open(folder.path(name)).unwrap();
        store.save("key", 0, b"").unwrap();
        drop(store);
        assert!(folder.path(name).exists(), "{name}");
        assert_eq!(SqliteStore::open(folder.path(name)).unwrap().keys("").unwrap(), ["key"], "{name}");
    }
}

#[test]
fn threads_that_open_a_new_file_at_one_time_all_succeed() {
    let folder = Folder::new("races");
    for round in 0..20 {
        let path = folder.path(&format!("{round}.db"));
        std::thread::scope(|scope| {
            let opened: Vec<_> = (0..6).map(|_| scope.spawn(|| SqliteStore::open(&path).map(drop))).collect();
            for opened in opened {
                opened.join().unwrap().unwrap();
            }
        });
    }
}

#[test]
fn clones_do_not_wait_for_a_writer_either() {
    let folder = Folder::new("clones");
    let store = SqliteStore::open(folder.path("states.db")).unwrap();
    store.save("key", 0, b"first").unwrap();
    let writer = Connection::open(folder.path("states.db")).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let saving = store.clone();
    std::thread::scope(|scope| {
        let saves = scope.spawn(move || saving.save("other", 0, b""));
        // The save waits for the writer, which ends when the load has come.
        assert!(store.load("key").unwrap().is_some());
        writer.execute_batch("COMMIT").unwrap();
        saves.join().unwrap().unwrap();
    });
}

#[test]
fn a_watch_of_a_replaced_file_is_refused() {
    let folder = Folder::new("replaced");
    let store = SqliteStore::open(folder.path("states.db")).unwrap();
    drop(SqliteStore::open(folder.path("other.db")).unwrap());
    fs::rename(folder.path("states.db"), folder.path("moved.db")).unwrap();
    let error = store.watch("", Box::new(|| {})).map(drop).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    assert!(!folder.path("states.db").exists());
    fs::rename(folder.path("other.db"), folder.path("states.db")).unwrap();
    let error = store.watch("", Box::new(|| {})).map(drop).unwrap_err();
    assert!(error.to_string().contains("was replaced"), "{error}");
}

#[test]
fn many_large_states_do_not_slow_small_ones() {
    let folder = Folder::new("large");
    let path = folder.path("states.db");
    let store = SqliteStore::open(&path).unwrap();
    let large = vec![7; 200_000];
    for number in 0..40 {
        store.save(&format!("large/{number}"), 0, &large).unwrap();
    }
    // The search for a key reads no state: it is answered by the index alone.
    let plan = Connection::open(&path).unwrap();
    let mut plan = plan.prepare("EXPLAIN QUERY PLAN SELECT key FROM state WHERE key >= x'61' AND key < x'62'").unwrap();
    let detail: String = plan.query_row([], |row| row.get("detail")).unwrap();
    assert!(detail.contains("USING COVERING INDEX") && detail.contains("key>? AND key<?"), "{detail}");
    assert_eq!(store.keys("large/1").unwrap().len(), 11);
}
