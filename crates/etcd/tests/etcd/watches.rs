//! Watches of members that are restarted or far away.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use playhouse::durable::{Ledger, LedgerWatch, Store};
use playhouse_etcd::{EtcdOptions, EtcdStore};

use crate::server::{self, Cluster};

#[test]
fn a_watch_begins_and_goes_on_after_the_token_was_refused() {
    let Some(mut cluster) = Cluster::start(1) else { return };
    cluster.require_users();
    let options = cluster.options("test/").user("root", "secret");
    let (store, watched_later) = (EtcdStore::connect(&options).unwrap(), EtcdStore::connect(&options).unwrap());
    // Nothing but the watch uses this store.
    let (_watch, told) = watch(&store);
    cluster.post("/v3/auth/user/changepw", r#"{"name":"root","password":"secret"}"#, &cluster.token());
    // No token is valid any longer, and the watch ends before it has asked.
    cluster.kill(0);
    cluster.restart(0);
    let other = loop {
        // A member that was started has no leader for some time.
        if let Ok(other) = EtcdStore::connect(&options) {
            break other;
        }
    };
    are_told(&other, &told);
    let (_watch, told) = watch(&watched_later);
    are_told(&other, &told);
}

#[test]
fn a_watch_of_a_distant_member_begins() {
    let Some(cluster) = server::shared() else { return };
    let namespace = server::namespace();
    let near = EtcdStore::connect(&cluster.options(&namespace)).unwrap();
    let distant = at_a_distance(&cluster.endpoint(0));
    let distant = EtcdStore::connect(&EtcdOptions::new([distant]).namespace(namespace)).unwrap();
    let (_watch, told) = watch(&distant);
    are_told(&near, &told);
}

fn watch(store: &EtcdStore) -> (LedgerWatch, Receiver<()>) {
    let (tell, told) = channel();
    (store.watch("", Box::new(move || _ = tell.send(()))).unwrap(), told)
}

/// Checks that several changes by a store are told of.
fn are_told(other: &EtcdStore, told: &Receiver<()>) {
    let mut revision = other.load("key").unwrap().map_or(0, |saved| saved.revision);
    for _ in 0..5 {
        while told.try_recv().is_ok() {}
        revision = other.save("key", revision, b"").unwrap();
        told.recv_timeout(Duration::from_secs(30)).unwrap();
    }
}

/// Returns an endpoint whose bytes take some time to another endpoint, and back.
fn at_a_distance(endpoint: &str) -> String {
    const WAY: Duration = Duration::from_millis(200);
    fn carry(mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            thread::sleep(WAY);
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let there = endpoint.strip_prefix("http://").unwrap().to_owned();
    thread::spawn(move || {
        for here in listener.incoming() {
            let (here, there) = (here.unwrap(), TcpStream::connect(&there).unwrap());
            let (from, to) = (here.try_clone().unwrap(), there.try_clone().unwrap());
            thread::spawn(|| carry(from, to));
            thread::spawn(|| carry(there, here));
        }
    });
    format!("http://127.0.0.1:{port}")
}
