//! Theaters that are evacuated, and end.

use super::*;

// GUARANTEE: A theater can be evacuated
#[test]
fn a_theater_is_evacuated_while_its_actors_work() {
    let (mut theaters, mut peers) = theaters(3);
    let addresses: Vec<_> = theaters.iter().map(|theater| theater.address().unwrap()).collect();
    let (done, finished) = mpsc::channel();
    let ledgers: Vec<_> = (0..2_000).map(|_| theaters[0].system().spawn(Ledger::default())).collect();
    for (number, ledger) in ledgers.iter().enumerate().take(30) {
        let name = number.to_string();
        theaters[0].publish(name.clone(), *ledger).unwrap();
        for theater in &theaters[1..] {
            let known = theater.find::<Ledger>(&format!("playhouse://{}/{name}", addresses[0])).wait().unwrap();
            let clerk = Clerk {
                to: known,
                number: theater.address().unwrap().port().into(),
                sent: 0,
                total: 501,
                done: done.clone(),
            };
            theater.system().spawn(clerk).tell(Write);
        }
    }
    let known = known_in(&theaters[1], &theaters[0], "3");
    let to: Vec<Peer> = peers[0].drain(1..).flatten().collect();
    let evacuation = theaters[0].evacuate(&to);
    assert_eq!((evacuation.moved, evacuation.stayed.len()), (2_000, 0));
    for _ in 0..60 {
        finished.recv_timeout(LIMIT).unwrap();
    }
    for ledger in &ledgers[..30] {
        eventually(|| (ask(*ledger, Sum).0 >= 1_002).then_some(()));
        assert_eq!(ask(*ledger, Sum), (1_002, vec![], 1));
    }
    peers.clear();
    theaters.remove(0).shutdown().unwrap();
    assert_eq!(ask(known, Sum), (1_002, vec![], 1));
}

// GUARANTEE: A theater can be evacuated
/// Each theater refuses the actors of the other one, and gets none from other theaters any more.
#[test]
fn two_theaters_are_evacuated_at_the_same_time_while_their_actors_work() {
    const LEDGERS: usize = 12;
    let rounds = std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(2);
    for _ in 0..rounds {
        let (mut theaters, mut peers) = theaters(4);
        let (done, finished) = mpsc::channel();
        let mut ledgers = Vec::new();
        for leaves in [0, 1] {
            for number in 0..LEDGERS {
                let (name, ledger) = (number.to_string(), theaters[leaves].system().spawn(Ledger::default()));
                theaters[leaves].publish(name.clone(), ledger).unwrap();
                let known =
                    |at: usize| if at == leaves { ledger } else { known_in(&theaters[at], &theaters[leaves], &name) };
                for (at, theater) in theaters.iter().enumerate() {
                    let clerk = Clerk { to: known(at), number: at as u32, sent: 0, total: 300, done: done.clone() };
                    theater.system().spawn(clerk).tell(Write);
                }
                ledgers.push((known(2), known(3)));
            }
        }
        let begin = std::time::Instant::now();
        let moved: usize = std::thread::scope(|scope| {
            let evacuations: Vec<_> = [0, 1]
                .map(|leaves| {
                    let to: Vec<Peer> = peers[leaves].iter().flatten().cloned().collect();
                    let theater = theaters[leaves].clone();
                    scope.spawn(move || theater.evacuate(&to))
                })
                .into();
            evacuations
                .into_iter()
                .map(|evacuation| {
                    let evacuation = evacuation.join().unwrap();
                    assert_eq!(evacuation.stayed, vec![]);
                    evacuation.moved
                })
                .sum()
        });
        assert!(moved >= 2 * LEDGERS && begin.elapsed() < LIMIT / 10, "{moved} in {:?}", begin.elapsed());
        for _ in 0..8 * LEDGERS {
            finished.recv_timeout(LIMIT).unwrap();
        }
        peers.drain(..2);
        for leaves in theaters.drain(..2) {
            leaves.shutdown().unwrap();
        }
        for (one, other) in ledgers {
            for known in [one, other] {
                let (taken, wrong, _) = ask(known, Sum);
                assert_eq!((taken, wrong), (1_200, vec![]));
            }
        }
        for theater in theaters {
            theater.shutdown().unwrap();
        }
    }
}

// GUARANTEE: A theater can be evacuated
/// Other theaters know an actor, and have never sent anything to it. They continue to know it after the theater of its birth,
/// which it has left, has ended.
#[test]
fn a_silent_holder_finds_an_actor_after_the_theater_that_it_left_has_ended() {
    let (mut theaters, mut peers) = theaters(3);
    let ledgers: Vec<_> = (0..50).map(|_| theaters[0].system().spawn(Ledger::default())).collect();
    let mut known = Vec::new();
    for (number, ledger) in ledgers.iter().enumerate() {
        let name = number.to_string();
        theaters[0].publish(name.clone(), *ledger).unwrap();
        known.push([known_in(&theaters[1], &theaters[0], &name), known_in(&theaters[2], &theaters[0], &name)]);
    }
    let to: Vec<Peer> = peers[0].drain(1..).flatten().collect();
    let evacuation = theaters[0].evacuate(&to);
    assert_eq!((evacuation.moved, evacuation.stayed.len()), (50, 0));
    peers.clear();
    theaters.remove(0).shutdown().unwrap();
    for known in known.into_iter().flatten() {
        assert_eq!(ask(known, Sum), (0, vec![], 1));
    }
}

/// Moves the actors of theaters into new ones, and ends the old ones, one after the other. Other theaters know the actors, and
/// send nothing until the end.
fn knows_where_they_are_after(ends: u32) {
    const LEDGERS: usize = 10;
    let mut last = theater();
    // One theater has asked for the ledgers, and the keeper has passed the references to the others. One of those got its
    // reference before it had a link with the ledgers' theater. Another one got a reference to one ledger, never has a link,
    // and first calls for a while.
    let [finder, keeper, told] = [theater(), theater(), theater()];
    let apart = crate::support::builder().lost_after(Duration::from_secs(1)).start().unwrap();
    let mut known = Vec::new();
    for number in 0..LEDGERS {
        let name = number.to_string();
        last.publish(name.clone(), last.system().spawn(Ledger::default())).unwrap();
        known.push(known_in(&finder, &last, &name));
        keeper.publish(name.clone(), keeper.system().spawn(Holder(known_in(&keeper, &last, &name)))).unwrap();
        for theater in if number == 0 { vec![&told, &apart] } else { vec![&told] } {
            let holder = theater.find::<Holder>(&format!("playhouse://{}/{name}", keeper.address().unwrap()));
            known.push(ask(holder.wait().unwrap(), Held));
        }
    }
    told.connect(last.address().unwrap()).unwrap();
    for _ in 0..ends {
        let next = theater();
        let evacuation = last.evacuate(&[last.connect(next.address().unwrap()).unwrap()]);
        assert_eq!((evacuation.moved, evacuation.stayed.len()), (LEDGERS, 0));
        last.shutdown().unwrap();
        last = next;
    }
    for ledger in known {
        assert_eq!(ask(ledger, Sum), (0, vec![], ends));
    }
}

// GUARANTEE: A theater can be evacuated
#[test]
fn a_silent_holder_finds_an_actor_after_two_theaters_were_evacuated() {
    knows_where_they_are_after(2);
}

// GUARANTEE: A theater can be evacuated
#[test]
fn a_silent_holder_finds_an_actor_after_three_theaters_were_evacuated() {
    knows_where_they_are_after(3);
}
