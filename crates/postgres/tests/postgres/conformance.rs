//! A store in PostgreSQL keeps the rules of stores and of ledgers.

use playhouse_postgres::PostgresStore;
use playhouse_testkit::conformance::{ledger, store};

use crate::server;

// GUARANTEE: Two incarnations do not overwrite each other
#[test]
fn a_store_in_postgres_keeps_all_rules() {
    let Some(server) = server::shared() else { return };
    let report = store::check(|| {
        let parameters = server.parameters(&server.schema());
        move || PostgresStore::connect(&parameters).unwrap()
    });
    report.assert_all_kept();
}

// GUARANTEE: Watches miss no change
#[test]
fn a_ledger_in_postgres_keeps_all_rules() {
    let Some(server) = server::shared() else { return };
    let report = ledger::check(|| {
        let parameters = server.parameters(&server.schema());
        move || PostgresStore::connect(&parameters).unwrap()
    });
    report.assert_all_kept();
}

#[test]
fn clones_of_a_store_keep_all_rules() {
    let Some(server) = server::shared() else { return };
    let fresh = || {
        let opened = server.store();
        move || opened.clone()
    };
    store::check(fresh).assert_all_kept();
    ledger::check(fresh).assert_all_kept();
}
