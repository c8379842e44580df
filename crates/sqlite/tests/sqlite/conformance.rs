//! A store in SQLite keeps the rules of stores and of ledgers.

use playhouse_sqlite::SqliteStore;
use playhouse_testkit::conformance::{ledger, store};

use crate::folder::Folder;

// GUARANTEE: Two incarnations do not overwrite each other
#[test]
fn a_store_in_sqlite_keeps_all_rules() {
    let report = store::check(|| {
        let folder = Folder::new("store");
        move || SqliteStore::open(folder.path("states.db")).unwrap()
    });
    report.assert_all_kept();
}

// GUARANTEE: Watches miss no change
#[test]
fn a_ledger_in_sqlite_keeps_all_rules() {
    let report = ledger::check(|| {
        let folder = Folder::new("ledger");
        move || SqliteStore::open(folder.path("states.db")).unwrap()
    });
    report.assert_all_kept();
}

#[test]
fn clones_of_a_store_keep_all_rules() {
    let fresh = || {
        let folder = Folder::new("clones");
        let opened = SqliteStore::open(folder.path("states.db")).unwrap();
        move || {
            let _it_is_there_as_long = &folder;
            opened.clone()
        }
    };
    store::check(fresh).assert_all_kept();
    ledger::check(fresh).assert_all_kept();
}
