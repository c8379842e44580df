//! Many clients of one key.

use std::thread;
use std::time::{Duration, Instant};

use playhouse::durable::{Store, StoreError};
use playhouse_postgres::PostgresStore;

use crate::server::{self, Server};

// GUARANTEE: Two incarnations do not overwrite each other
#[test]
fn stores_that_count_together_lose_no_update() {
    const STORES: u64 = 4;
    const EACH: u64 = 50;
    let Some(server) = server::shared() else { return };
    let parameters = server.parameters(&server.schema());
    thread::scope(|scope| {
        for _ in 0..STORES {
            // All of them create the tables.
            scope.spawn(|| {
                let store = PostgresStore::connect(&parameters).unwrap();
                (0..EACH).for_each(|_| count(&store));
            });
        }
    });
    let store = PostgresStore::connect(&parameters).unwrap();
    assert_eq!(store.load("n").unwrap().unwrap().bytes, (STORES * EACH).to_le_bytes());
}

fn count(store: &PostgresStore) {
    loop {
        let (revision, n) = store
            .load("n")
            .unwrap()
            .map_or((0, 0), |saved| (saved.revision, u64::from_le_bytes(saved.bytes.try_into().unwrap())));
        match store.save("n", revision, &(n + 1).to_le_bytes()) {
            Ok(_) => return,
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Creations, saves and removals of one key race. Each creation that follows a removal has a higher revision.
#[test]
fn the_revisions_of_a_key_only_go_up_while_it_is_removed_and_created() {
    const ROUNDS: usize = 60;
    let Some(server) = server::shared() else { return };
    let parameters = server.parameters(&server.schema());
    let stores: Vec<_> = (0..3).map(|_| PostgresStore::connect(&parameters).unwrap()).collect();
    let seen = std::sync::Mutex::new(Vec::new());
    thread::scope(|scope| {
        for store in &stores {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    let expected = store.load("key").unwrap().map_or(0, |saved| saved.revision);
                    let changed = match (expected, round % 3) {
                        (0, _) => store.save("key", 0, b"").map(|revision| (0, revision)),
                        (_, 0) => store.remove("key", expected).map(|()| (expected, 0)),
                        _ => store.save("key", expected, b"").map(|revision| (expected, revision)),
                    };
                    match changed {
                        Ok(change) => seen.lock().unwrap().push(change),
                        Err(StoreError::Conflict { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    // Every change has the former revision of its own, so they form one chain between creations and removals.
    let seen = seen.into_inner().unwrap();
    let mut revisions: Vec<_> = seen.iter().map(|&(_, revision)| revision).filter(|&revision| revision != 0).collect();
    let count = revisions.len();
    revisions.sort_unstable();
    revisions.dedup();
    assert_eq!(revisions.len(), count, "a revision was given twice");
    for &(before, after) in seen.iter().filter(|(before, after)| *before != 0 && *after != 0) {
        assert!(after > before, "{before} was followed by {after}");
    }
    let mut followed: Vec<_> = seen.iter().map(|&(before, _)| before).filter(|&before| before != 0).collect();
    let count = followed.len();
    followed.sort_unstable();
    followed.dedup();
    assert_eq!(followed.len(), count, "a revision was replaced twice");
}

/// Each writer counts in its own place of one state, and reads after an unknown outcome whether it took effect.
// GUARANTEE: Two incarnations do not overwrite each other
#[test]
fn each_acknowledged_save_counts_once_while_the_server_is_killed() {
    const WRITERS: usize = 3;
    const KILLS: u64 = 3;
    const EACH: u64 = 40;
    let Some(mut server) = Server::start() else { return };
    let parameters = server.parameters(&server.schema());
    let stores: Vec<_> = (0..WRITERS).map(|_| PostgresStore::connect(&parameters).unwrap()).collect();
    stores[0].save("counts", 0, &[0; 8 * WRITERS]).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        for (writer, store) in stores.iter().enumerate() {
            let tell = tell.clone();
            scope.spawn(move || {
                let place = 8 * writer..8 * writer + 8;
                let deadline = Instant::now() + Duration::from_secs(90);
                let mut own = 0_u64;
                while own < EACH {
                    let outcome = store.load("counts").and_then(|saved| {
                        let mut saved = saved.expect("no writer removes it");
                        let found = u64::from_le_bytes(saved.bytes[place.clone()].try_into().unwrap());
                        // A save with an unknown outcome may have taken effect.
                        assert!(found == own || found == own + 1, "{found} after {own}");
                        own = found;
                        if own == EACH {
                            return Ok(None);
                        }
                        saved.bytes[place.clone()].copy_from_slice(&(own + 1).to_le_bytes());
                        store.save("counts", saved.revision, &saved.bytes).map(Some)
                    });
                    match outcome {
                        Ok(Some(_)) => own += 1,
                        Ok(None) | Err(StoreError::Conflict { .. }) => {}
                        Err(StoreError::Io { error, .. }) => assert!(Instant::now() < deadline, "{error}"),
                        Err(error) => panic!("{error}"),
                    }
                    let _the_test_has_ended = tell.send(());
                }
            });
        }
        for _ in 0..KILLS {
            told.iter().take(20).count();
            server.kill_and_restart();
        }
    });
    let counts = PostgresStore::connect(&parameters).unwrap().load("counts").unwrap().unwrap().bytes;
    assert_eq!(counts, EACH.to_le_bytes().repeat(WRITERS));
}
