//! Connections that fail, servers that are killed or paused, and servers that are refused.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use playhouse::durable::{Ledger, Store, StoreError};
use playhouse_postgres::{ConnectError, PostgresStore};

use crate::server::{self, HASTE, Server};

#[test]
fn wrong_parameters_are_named() {
    for (parameters, fault) in [
        ("", "`host` is missing"),
        ("port=http host=a", "port"),
        ("hosst=a", "hosst"),
        ("host=a sslmode=sometimes", "sslmode"),
        ("password=secret hosst=a", "hosst"),
    ] {
        let error = PostgresStore::connect(parameters).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, ConnectError::Parameters { .. }) && text.contains(fault), "{parameters}: {text}");
        assert!(!text.contains("secret"), "{text}");
    }
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    let folder = std::env::temp_dir().join("playhouse-pg-nobody");
    let error = PostgresStore::connect(&format!("host={} user=test", folder.display())).unwrap_err();
    let ConnectError::Io { error } = error else { panic!("{error}") };
    assert!(error.to_string().contains("No such file"), "{error}");
}

#[test]
fn tables_of_another_format_are_refused() {
    let Some(server) = server::shared() else { return };
    let schema = server.schema();
    drop(PostgresStore::connect(&server.parameters(&schema)).unwrap());
    server.sql(&format!("UPDATE {schema}.playhouse_format SET format = 2"));
    let error = PostgresStore::connect(&server.parameters(&schema)).unwrap_err();
    assert!(matches!(error, ConnectError::Format { found: 2, known: 1 }), "{error}");
}

#[test]
fn a_store_connects_again_after_its_connections_were_ended() {
    let Some(server) = server::shared() else { return };
    let schema = server.schema();
    let store = PostgresStore::connect(&format!("{} application_name={schema}", server.parameters(&schema))).unwrap();
    let (tell, told) = channel();
    let _watch = store.watch("", Box::new(move || _ = tell.send(()))).unwrap();
    let mut revision = store.save("key", 0, b"one").unwrap();
    told.recv().unwrap();
    server.sql(&format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{schema}'"));
    // A request that has met the end of the connection fails, and the next one connects again.
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match store.save("key", revision, b"two") {
            Ok(saved) => {
                revision = saved;
                break;
            }
            Err(StoreError::Io { error, .. }) => assert!(Instant::now() < deadline, "{error}"),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(store.load("key").unwrap().unwrap().revision, revision);
    // The watch connects again, too, and tells of what was changed after that.
    let other = PostgresStore::connect(&server.parameters(&schema)).unwrap();
    while store.load("other").unwrap().is_none() {
        other.save("other", 0, b"").unwrap();
        told.recv_timeout(Duration::from_secs(30)).unwrap();
    }
}

#[test]
fn an_acknowledged_save_survives_the_kill_of_the_server() {
    let Some(mut server) = Server::start() else { return };
    let store = server.store();
    let revision = store.save("key", 0, b"saved").unwrap();
    server.kill_and_restart();
    let deadline = Instant::now() + Duration::from_secs(30);
    let saved = loop {
        match store.load("key") {
            Ok(saved) => break saved.unwrap(),
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
    };
    assert_eq!((saved.revision, &*saved.bytes), (revision, &b"saved"[..]));
    assert!(store.save("other", 0, b"").unwrap() > revision);
}

#[test]
fn requests_to_a_paused_server_end_and_it_is_used_again_later() {
    let Some(server) = Server::start() else { return };
    let store = server.hasty_store();
    let revision = store.save("key", 0, b"one").unwrap();
    server.signal("STOP");
    let begin = Instant::now();
    let error = store.save("key", revision, b"two").unwrap_err();
    let StoreError::Io { error, .. } = error else { panic!("{error}") };
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert!((HASTE..3 * HASTE).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    server.signal("CONT");
    // The save may have taken effect, with the whole new state.
    let saved = store.load("key").unwrap().unwrap();
    assert!([&b"one"[..], b"two"].contains(&&*saved.bytes));
    assert!((saved.revision == revision) == (saved.bytes == b"one"));
}

#[test]
fn requests_that_wait_for_one_connection_end_together() {
    let Some(server) = Server::start() else { return };
    let store = server.hasty_store();
    server.signal("STOP");
    store.load("key").unwrap_err();
    let begin = Instant::now();
    thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| store.load("key").unwrap_err());
        }
    });
    assert!(begin.elapsed() < 3 * HASTE, "{:?}", begin.elapsed());
    server.signal("CONT");
    assert_eq!(store.load("key").unwrap(), None);
}

#[test]
fn a_host_that_answers_nothing_is_passed_over() {
    let Some(server) = server::shared() else { return };
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let parameters = server.parameters(&server.schema()).replace("host=", "host=127.0.0.1,");
    let parameters = parameters.replace("port=", &format!("port={},", mute.local_addr().unwrap().port()));
    let store = PostgresStore::connect(&format!("{parameters} connect_timeout=1")).unwrap();
    store.save("key", 0, b"").unwrap();
}

#[test]
fn a_connection_without_an_answer_is_closed() {
    let Some(server) = server::shared() else { return };
    let parameters = server.parameters(&server.schema());
    let (port, is_cut, ended) = relay(server.socket());
    let parameters = parameters.split_once(" user=").unwrap().1;
    let parameters = format!("host=127.0.0.1 port={port} user={parameters}");
    let store = PostgresStore::connect_within(&parameters, HASTE).unwrap();
    let revision = store.save("key", 0, b"one").unwrap();
    is_cut.store(true, Ordering::Release);
    let StoreError::Io { error, .. } = store.save("key", revision, b"two").unwrap_err() else { panic!() };
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    ended.recv_timeout(Duration::from_secs(30)).unwrap();
}

/// Carries bytes between a port and a socket, until they are cut. Tells when a client has closed its connection.
fn relay(socket: PathBuf) -> (u16, Arc<AtomicBool>, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let is_cut = Arc::new(AtomicBool::new(false));
    let (tell, ended) = channel();
    let cut = Arc::clone(&is_cut);
    thread::spawn(move || {
        let carry = |mut from: Box<dyn Read + Send>, mut to: Box<dyn Write + Send>, end: Option<Sender<()>>| {
            let cut = Arc::clone(&cut);
            thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = from.read(&mut bytes) {
                    if !cut.load(Ordering::Acquire) {
                        to.write_all(&bytes[..count]).unwrap();
                    }
                }
                end.map(|end| end.send(()))
            });
        };
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), UnixStream::connect(&socket).unwrap());
            carry(Box::new(client.try_clone().unwrap()), Box::new(server.try_clone().unwrap()), Some(tell.clone()));
            carry(Box::new(server), Box::new(client), None);
        }
    });
    (port, is_cut, ended)
}

#[test]
fn a_role_that_may_not_create_the_tables_is_told_so() {
    let Some(server) = server::shared() else { return };
    let schema = server.schema();
    server.sql(&format!("CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA {schema} TO reader"));
    let parameters = server.parameters(&schema).replace("user=test", "user=reader");
    let error = PostgresStore::connect(&parameters).unwrap_err();
    let ConnectError::Io { error } = error else { panic!("{error}") };
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert!(error.to_string().contains("permission denied for schema"), "{error}");
}

#[test]
fn settings_that_would_lose_saves_are_overridden() {
    let Some(server) = server::shared() else { return };
    let schema = server.schema();
    server.sql(
        "CREATE ROLE careful LOGIN SUPERUSER; ALTER ROLE careful SET synchronous_commit = remote_apply;
         CREATE ROLE hasty LOGIN SUPERUSER; ALTER ROLE hasty SET synchronous_commit = off;
         ALTER ROLE hasty SET default_transaction_isolation = serializable;
         ALTER ROLE hasty SET default_transaction_read_only = on",
    );
    let as_role = |role: &str| server.parameters(&schema).replace("user=test", &format!("user={role}"));
    let (hasty, careful) = (PostgresStore::connect(&as_role("hasty")), PostgresStore::connect(&as_role("careful")));
    // The statement of a removal tells in its own session which settings it has.
    server.sql(&format!(
        "CREATE TABLE {schema}.settings (text text);
         CREATE FUNCTION {schema}.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO {schema}.settings VALUES (current_setting('synchronous_commit') || ' ' || current_setting('transaction_isolation'));
             RETURN OLD;
         END $$;
         CREATE TRIGGER note BEFORE DELETE ON {schema}.playhouse_state FOR EACH ROW EXECUTE FUNCTION {schema}.note()"
    ));
    let settings = [hasty, careful].map(|store| {
        let store = store.unwrap();
        let revision = store.save("key", 0, b"").unwrap();
        store.remove("key", revision).unwrap();
        server.sql(&format!("SELECT text FROM {schema}.settings; DELETE FROM {schema}.settings"))
    });
    assert_eq!(settings, ["on read committed", "remote_apply read committed"]);
}

#[test]
fn tables_that_are_gone_are_not_created_again() {
    let Some(server) = server::shared() else { return };
    let schema = server.schema();
    let store = PostgresStore::connect(&format!("{} application_name={schema}", server.parameters(&schema))).unwrap();
    store.save("key", 0, b"").unwrap();
    server.sql(&format!("DROP SCHEMA {schema} CASCADE; CREATE SCHEMA {schema}"));
    server.sql(&format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{schema}'"));
    for _ in 0..3 {
        let error = store.load("key").unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
    }
    assert!(store.load("key").unwrap_err().to_string().contains("playhouse_format"));
}
