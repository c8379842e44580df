//! The files of a store: those that it opens, those that it refuses and leaves alone, and two connections to one.

mod common;

use std::fs;

use playhouse::durable::{Saved, Store, StoreError};
use playhouse_sqlite::{OpenError, SqliteStore};
use rusqlite::Connection;

use self::common::Folder;

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
    let mut bytes = fs::read(&path).unwrap();
    // Everything behind the page with the header and the schema.
    let page = 4096;
    assert!(bytes.len() > 20 * page);
    bytes[page..].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    for error in [store.load("key").map(drop).unwrap_err(), store.save("key", 0, b"").map(drop).unwrap_err()] {
        assert!(matches!(&error, StoreError::Damaged { key, .. } if key == "key"), "{error}");
    }
    assert!(matches!(store.keys(""), Err(StoreError::Damaged { .. })));
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
