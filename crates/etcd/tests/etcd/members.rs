//! Members that are killed, paused or refused.

use std::io::ErrorKind;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use playhouse::durable::{Ledger, Store, StoreError};
use playhouse_etcd::{ConnectError, EtcdOptions, EtcdStore, STATE_BYTES_MAX};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::server::{self, Cluster, HASTE};

#[test]
fn wrong_options_are_named() {
    for (options, fault) in [
        (EtcdOptions::new([""; 0]), "the list of endpoints is empty"),
        (EtcdOptions::new(["localhost:2379"]), "\"localhost:2379\" is not like"),
        (EtcdOptions::new(["http://localhost:2379/v3"]), "is not like"),
        (EtcdOptions::new(["http://"]), "is not like"),
        (EtcdOptions::new(["http://localhost:etcd"]), "is not like"),
        (EtcdOptions::new(["http://localhost:2379?x=1"]), "is not like"),
        (EtcdOptions::new(["http://localhost:2379#part"]), "is not like"),
        (EtcdOptions::new(["ftp://localhost:2379"]), "is not like"),
        (EtcdOptions::new(["http://root:secret@localhost:2379"]), "\"localhost:2379\" is not like"),
        (EtcdOptions::new(["https://a:1"]).root_certificates("no PEM"), "no certificate in PEM"),
        (EtcdOptions::new(["https://a:1"]).identity("no PEM", "").user("u", "secret"), "certificate of the client"),
    ] {
        let error = EtcdStore::connect(&options).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, ConnectError::Options { .. }) && text.contains(fault), "{options:?}: {text}");
        assert!(!format!("{options:?} {text}").contains("secret"));
    }
}

#[test]
fn a_cluster_that_is_not_there_is_an_error() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let endpoint = format!("http://127.0.0.1:{port}");
    let ConnectError::Io { error } = EtcdStore::connect(&EtcdOptions::new([&*endpoint])).unwrap_err() else { panic!() };
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
    assert!(error.to_string().contains(&endpoint), "{error}");
}

#[test]
fn many_keys_come_in_several_answers() {
    const KEYS: usize = 10_050;
    let Some(cluster) = server::shared() else { return };
    let store = cluster.store();
    std::thread::scope(|scope| {
        for part in 0..8 {
            let store = &store;
            scope.spawn(move || {
                for number in (part..KEYS).step_by(8) {
                    store.save(&format!("key/{number:05}"), 0, b"").unwrap();
                }
            });
        }
    });
    let expected: Vec<_> = (0..KEYS).map(|number| format!("key/{number:05}")).collect();
    assert_eq!(store.keys("").unwrap(), expected);
    assert_eq!(store.keys("key/1000").unwrap().len(), 10);
}

#[test]
fn stores_of_two_namespaces_do_not_see_each_other() {
    let Some(cluster) = server::shared() else { return };
    let (one, other) = (cluster.store(), cluster.store());
    one.save("key", 0, b"one").unwrap();
    assert_eq!(other.load("key").unwrap(), None);
    other.save("key", 0, b"other").unwrap();
    assert_eq!((one.keys("").unwrap(), one.load("key").unwrap().unwrap().bytes), (vec!["key".into()], b"one".to_vec()));
    // No namespace at all is that of all keys.
    let all = EtcdStore::connect(&cluster.options("")).unwrap();
    assert!(all.keys("test").unwrap().len() >= 2);
    assert!(all.keys("").unwrap().len() >= 2);
    let (tell, told) = channel();
    let _watch = all.watch("", Box::new(move || _ = tell.send(()))).unwrap();
    other.save("another key", 0, b"").unwrap();
    told.recv_timeout(Duration::from_secs(30)).unwrap();
    let error = one.save("key", 0, &vec![0; STATE_BYTES_MAX + 1]).unwrap_err();
    assert!(error.to_string().contains("at most 1048576 can be saved"), "{error}");
}

#[test]
fn a_cluster_that_loses_a_member_is_used_through_the_others() {
    let Some(mut cluster) = Cluster::start(3) else { return };
    let store = cluster.store();
    let (tell, told) = channel();
    let _watch = store.watch("n", Box::new(move || _ = tell.send(()))).unwrap();
    let mut revision = 0;
    for killed in 0..3 {
        revision = saved(&store, revision, b"before");
        cluster.kill(killed);
        revision = saved(&store, revision, b"after");
        while told.try_recv().is_ok() {}
        // The watch goes on through another member.
        let other = EtcdStore::connect(&cluster.options("other/")).unwrap();
        saved(&other, 0, b"");
        told.recv_timeout(Duration::from_secs(30)).unwrap();
        other.remove("n", other.load("n").unwrap().unwrap().revision).unwrap();
        cluster.restart(killed);
    }
}

/// Saves the state of `n`, also if the cluster has no leader for some seconds. Only this thread saves it.
fn saved(store: &EtcdStore, mut expected: u64, bytes: &[u8]) -> u64 {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match store.save("n", expected, bytes) {
            Ok(revision) => return revision,
            // The save before has taken effect, although it has failed.
            Err(StoreError::Conflict { found, .. }) => expected = found,
            Err(StoreError::Io { error, .. }) => assert!(Instant::now() < deadline, "{error}"),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn requests_to_a_paused_member_end_and_it_is_used_again_later() {
    let Some(cluster) = Cluster::start(1) else { return };
    let store = cluster.hasty_store();
    let revision = store.save("key", 0, b"one").unwrap();
    cluster.signal(0, "STOP");
    let begin = Instant::now();
    let StoreError::Io { error, .. } = store.save("key", revision, b"two").unwrap_err() else { panic!() };
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert!((HASTE..3 * HASTE).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    cluster.signal(0, "CONT");
    let saved = store.load("key").unwrap().unwrap();
    assert!((saved.revision == revision) == (saved.bytes == b"one"), "{saved:?}");
    assert!([&b"one"[..], b"two"].contains(&&*saved.bytes));
}

#[test]
fn a_save_after_one_to_a_paused_member_goes_to_another_one() {
    let Some(cluster) = Cluster::start(3) else { return };
    let store = cluster.hasty_store();
    let revision = saved(&store, 0, b"one");
    cluster.signal(0, "STOP");
    // A load would find another member, too.
    assert!(saved(&store, revision, b"two") > revision);
}

#[test]
fn a_full_database_is_told_and_changes_nothing() {
    let Some(cluster) = Cluster::start_with(1, |_| vec!["--quota-backend-bytes=2000000".to_owned()]) else { return };
    let store = cluster.store();
    let large = vec![7; 500_000];
    let mut last = 0;
    let error = (0..20).find_map(|_| store.save("large", last, &large).map(|revision| last = revision).err());
    let Some(StoreError::Io { error, .. }) = error else { panic!("{error:?}") };
    assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
    assert_eq!(store.load("large").unwrap().unwrap().revision, last);
}

#[test]
fn a_user_authenticates_and_again_after_the_token_was_lost() {
    let Some(mut cluster) = Cluster::start(1) else { return };
    cluster.require_users();
    let options = cluster.options("test/");
    let ConnectError::Io { error } = EtcdStore::connect(&options).unwrap_err() else { panic!() };
    assert!(error.to_string().contains("user name is empty"), "{error}");
    let ConnectError::Io { error } = EtcdStore::connect(&options.clone().user("root", "wrong")).unwrap_err() else {
        panic!()
    };
    assert!(
        error.to_string().contains("invalid user ID or password") && !error.to_string().contains("wrong"),
        "{error}"
    );
    let store = EtcdStore::connect(&options.user("root", "secret")).unwrap();
    let revision = saved(&store, 0, b"one");
    // A member forgets its tokens when it ends.
    cluster.kill(0);
    cluster.restart(0);
    assert!(saved(&store, revision, b"two") > revision);
}

#[test]
fn a_user_authenticates_again_after_a_signed_token_was_outdated() {
    let signed = |folder: &std::path::Path| {
        let key = folder.join("token.key");
        std::fs::write(&key, "the key of the tokens of this test").unwrap();
        vec![format!("--auth-token=jwt,sign-method=HS256,priv-key={},ttl=1h", key.display())]
    };
    let Some(cluster) = Cluster::start_with(1, signed) else { return };
    cluster.require_users();
    let store = EtcdStore::connect(&cluster.options("test/").user("root", "secret")).unwrap();
    let revision = saved(&store, 0, b"one");
    cluster.post("/v3/auth/role/add", r#"{"name":"other"}"#, &cluster.token());
    store.save("n", revision, b"two").unwrap();
}

#[test]
fn encrypted_connections_verify_the_member_and_show_the_certificate_of_the_client() {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::from_params(&authority, &authority_key);
    let member_key = KeyPair::generate().unwrap();
    // The gateway of a member is a client of the same member, with the same certificate.
    let member = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let member = member.signed_by(&member_key, &issuer).unwrap();
    let client_key = KeyPair::generate().unwrap();
    let client = CertificateParams::new([]).unwrap().signed_by(&client_key, &issuer).unwrap();
    let cluster = Cluster::start_with(1, |folder| {
        let write = |name: &str, text: String| {
            std::fs::write(folder.join(name), text).unwrap();
            folder.join(name).display().to_string()
        };
        vec![
            format!("--cert-file={}", write("member.pem", member.pem())),
            format!("--key-file={}", write("member.key", member_key.serialize_pem())),
            format!("--trusted-ca-file={}", write("ca.pem", ca.clone())),
            "--client-cert-auth".to_owned(),
        ]
    });
    let Some(cluster) = cluster else { return };
    let options = cluster.options("test/").identity(client.pem(), client_key.serialize_pem());
    let store = EtcdStore::connect(&options.clone().root_certificates(ca.clone())).unwrap();
    saved(&store, 0, b"");
    let other = CertificateParams::new([]).unwrap().self_signed(&KeyPair::generate().unwrap()).unwrap();
    let ConnectError::Io { error } = EtcdStore::connect(&options.root_certificates(other.pem())).unwrap_err() else {
        panic!()
    };
    assert!(error.to_string().contains("certificate"), "{error}");
    let without = cluster.options("test/").root_certificates(ca);
    assert!(matches!(EtcdStore::connect(&without), Err(ConnectError::Io { .. })));
}
