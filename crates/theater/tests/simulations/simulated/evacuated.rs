//! Theaters that are evacuated.

use super::*;

// GUARANTEE: A theater can be evacuated
#[test]
fn a_theater_that_is_evacuated_under_load_ends_and_loses_nothing_under_every_seed() {
    let mut sum = Sum::default();
    for seed in 0..seeds() {
        let mut play = Play::new(seed, (0, 2, 1), 20);
        play.net.break_by_chance(Duration::from_millis(20));
        play.net.run_for(Duration::from_micros(play.net.choose(20_000) as u64));
        let leaves = play.theaters[0].clone();
        let peers: Vec<_> =
            play.theaters[1..].iter().map(|to| leaves.connect(to.address().unwrap()).unwrap()).collect();
        let evacuation = leaves.evacuate(&peers);
        assert_eq!((evacuation.moved, evacuation.stayed), (2, vec![]));
        play.storm();
        play.check_all(seed as usize % 3);
        leaves.shutdown().unwrap();
        play.writers.remove(0);
        for at in [1, 2] {
            play.read(at).into_iter().for_each(|ledger| drop(ledger.unwrap()));
        }
        sum.add(&play);
    }
    assert!(sum.happened.cuts > seeds() && sum.moves == 2 * seeds(), "{sum:?}");
}

// GUARANTEE: A theater can be evacuated
/// The other theaters send nothing until the last theater has the ledgers.
#[test]
fn a_silent_holder_finds_all_actors_after_evacuations_under_every_seed() {
    let (mut ends, mut cuts) = (0, 0);
    for seed in 0..seeds() {
        CENSUS.take();
        let _seed = Seed(seed);
        let net = Simulation::new(seed);
        let [holder, mut last] = [(); 2].map(|()| start(&net, "127.0.0.1:0"));
        let known = [0, 1].map(|id| {
            last.publish(format!("ledger {id}"), last.system().spawn(Ledger::new(id, Vec::new()))).unwrap();
            holder.find::<Ledger>(&format!("playhouse://{}/ledger {id}", last.address().unwrap())).wait().unwrap()
        });
        for _ in 0..2 + net.choose(2) {
            let next = start(&net, "127.0.0.1:0");
            let peer = last.connect(next.address().unwrap()).unwrap();
            net.break_by_chance(Duration::from_millis(5));
            let evacuation = last.evacuate(&[peer]);
            assert_eq!((evacuation.moved, evacuation.stayed), (2, vec![]));
            net.calm();
            last.shutdown().unwrap();
            if net.choose(2) == 0 {
                net.run_until_idle();
            }
            last = next;
            ends += 1;
        }
        for ledger in known {
            ledger.ask(Read).wait().unwrap();
        }
        CENSUS.with_borrow(|census| assert_eq!(census.twice, Vec::<u32>::new()));
        cuts += net.happened().cuts;
    }
    assert!(ends > 2 * seeds() && cuts > seeds() / 10, "{ends} ends, {cuts} cuts");
}

// GUARANTEE: A theater can be evacuated
/// The holder's theater has never had a link with that theater, which does not listen any more.
#[test]
fn a_sender_soon_stops_calling_an_evacuated_theater_that_has_ended() {
    for seed in 0..seeds().div_ceil(10) {
        CENSUS.take();
        let _seed = Seed(seed);
        let net = Simulation::new(seed);
        let [holder, teller, last, next] = [(); 4].map(|()| start(&net, "127.0.0.1:0"));
        last.publish("ledger", last.system().spawn(Ledger::new(0, Vec::new()))).unwrap();
        let ledger = teller.find::<Ledger>(&format!("playhouse://{}/ledger", last.address().unwrap())).wait().unwrap();
        teller.publish("knows", teller.system().spawn(Knows(ledger))).unwrap();
        let knows = holder.find::<Knows>(&format!("playhouse://{}/knows", teller.address().unwrap())).wait().unwrap();
        let known = knows.ask(Whom).wait().unwrap();
        let peer = last.connect(next.address().unwrap()).unwrap();
        assert_eq!(last.evacuate(&[peer]).moved, 1);
        last.shutdown().unwrap();
        let begin = net.now();
        known.ask(Read).wait().unwrap();
        let took = net.now() - begin;
        assert!(took < Duration::from_secs(2), "it took {took:?}");
    }
}

/// The holder's theater keeps the route to a theater that it cannot call for now, and the evacuation does not wait for that.
#[test]
fn a_theater_is_evacuated_in_time_to_one_that_the_others_cannot_call_for_now() {
    for seed in 0..seeds().div_ceil(10) {
        CENSUS.take();
        let _seed = Seed(seed);
        let net = Simulation::new(seed);
        let [holder, last, next] = [(); 3].map(|()| start(&net, "127.0.0.1:0"));
        last.publish("ledger", last.system().spawn(Ledger::new(0, Vec::new()))).unwrap();
        let known = holder.find::<Ledger>(&format!("playhouse://{}/ledger", last.address().unwrap())).wait().unwrap();
        let peer = last.connect(next.address().unwrap()).unwrap();
        net.cut(&holder, &next);
        let begin = net.now();
        let evacuation = last.evacuate(&[peer]);
        assert_eq!((evacuation.moved, evacuation.stayed), (1, vec![]));
        assert!(net.now() - begin < LOST_AFTER, "it took {:?}", net.now() - begin);
        last.shutdown().unwrap();
        net.heal(&holder, &next);
        known.ask(Read).wait().unwrap();
    }
}
