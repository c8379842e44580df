//! A store in etcd keeps the rules of stores and of ledgers.

use playhouse_etcd::EtcdStore;
use playhouse_testkit::conformance::{ledger, store};

use crate::server;

// GUARANTEE: Two incarnations do not overwrite each other
#[test]
fn a_store_in_etcd_keeps_all_rules() {
    let Some(cluster) = server::shared() else { return };
    let report = store::check(|| {
        let options = cluster.options(&server::namespace());
        move || EtcdStore::connect(&options).unwrap()
    });
    report.assert_all_kept();
}

// GUARANTEE: Watches miss no change
#[test]
fn a_ledger_in_etcd_keeps_all_rules() {
    let Some(cluster) = server::shared() else { return };
    let report = ledger::check(|| {
        let options = cluster.options(&server::namespace());
        move || EtcdStore::connect(&options).unwrap()
    });
    report.assert_all_kept();
}

#[test]
fn clones_of_a_store_keep_all_rules() {
    let Some(cluster) = server::shared() else { return };
    let fresh = || {
        let opened = cluster.store();
        move || opened.clone()
    };
    store::check(fresh).assert_all_kept();
    ledger::check(fresh).assert_all_kept();
}
