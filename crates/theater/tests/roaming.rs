//! Actors that gossip and roam between theaters on threads, with many more threads than cores.

#[macro_use]
mod messages;
#[allow(dead_code, reason = "other tests use all of it")]
mod gossips;
#[allow(dead_code, reason = "other tests use all of it")]
mod roamers;
mod support;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gossips::{Gossip, Hush, Look, Meet};
use playhouse_actor::*;
use playhouse_executor::Choices;
use playhouse_theater::{Peer, Theater};
use roamers::{Play, Size};
use support::LIMIT;

/// Number of concurrent programs.
const COPIES: u64 = 4;
/// Number of threads for each core that only take time.
const BUSY: usize = 8;
/// New runs begin within this time.
const TIME: Duration = Duration::from_secs(12);

/// Waits until all messages have been handled or are dead letters. At the limit, it reports the missing ones.
fn wait_for_the_end(play: &Play, theaters: &[Theater]) {
    let until = Instant::now() + LIMIT;
    let mut settled = None;
    while Instant::now() < until {
        // A handler may be about to send. The count is therefore final only once all handlers have returned.
        let now = play.journal(|journal| journal.settled().filter(|_| !journal.is_any_ask_open()));
        if now.is_some() && now == settled {
            return;
        }
        settled = now;
        theaters.iter().for_each(|theater| theater.system().run_until_idle());
        thread::yield_now();
    }
}

/// Runs one program from its start to its end. Returns the number of migrations.
fn run(number: u64) -> u64 {
    let theaters: Vec<Theater> = (0..3).map(|_| support::theater()).collect();
    let size = Size { actors: 30, ttl: 60, moves_every: 6 };
    let play = Play::new(number, &theaters, &size, &mut Choices::new(number));
    play.begin();
    wait_for_the_end(&play, &theaters);
    play.greet();
    wait_for_the_end(&play, &theaters);
    let ids: Vec<u16> = theaters.iter().map(|theater| theater.system().core().id()).collect();
    let living = play.journal(|journal| journal.living(&ids));
    let moves = play.journal(|journal| {
        journal.check_lives();
        journal.check_each_once();
        journal.check_no_ask_waits(&living);
        journal.check_order();
        journal.moves()
    });
    play.check_answers(&living);
    theaters.into_iter().for_each(|theater| drop(theater.shutdown().unwrap()));
    moves
}

// -- first contact --------------------------------------------------------------------------------------------------------

/// Lets actors begin to roam and to gossip in theaters that do not know each other.
fn first_contact(run: u64) {
    const THEATERS: usize = 4;
    const ACTORS: u32 = 120;
    let theaters: Vec<Theater> = (0..THEATERS).map(|_| support::theater()).collect();
    let home = support::theater();
    let peers: Vec<Peer> = theaters.iter().map(|to| home.connect(to.address().unwrap()).unwrap()).collect();
    let start = |id: u32| home.spawn_at(&peers[id as usize % THEATERS], &Gossip::new(id, run)).unwrap();
    let actors: Vec<ActorRef<Gossip>> = (0..ACTORS).map(start).collect();
    let addresses: Vec<SocketAddr> = theaters.iter().filter_map(Theater::address).collect();
    for actor in &actors {
        actor.tell(Meet(actors.clone(), addresses.clone()));
    }
    let look = || -> Vec<Gossip> { actors.iter().map(|actor| actor.ask(Look).within(LIMIT).wait().unwrap()).collect() };
    // Until they have sent a first message to most of the others.
    let until = Instant::now() + LIMIT;
    while look().iter().any(|one| one.sent.len() < ACTORS as usize / 4) && Instant::now() < until {
        thread::yield_now();
    }
    actors.iter().for_each(|actor| actor.tell(Hush));
    let until = Instant::now() + LIMIT;
    let mut all = look();
    while !Gossip::is_settled(&all) && Instant::now() < until {
        all = look();
    }
    let dead: u64 = theaters.iter().chain([&home]).map(|theater| theater.system().stats().total.dead_letters).sum();
    for one in &all {
        assert_eq!((&one.wrong[..], one.asked), (&[] as &[String], one.answered), "{} of run {run}", one.id);
    }
    assert!(Gossip::is_settled(&all) && dead == 0, "messages are missing in run {run}; {dead} dead letters");
    theaters.into_iter().chain([home]).for_each(|theater| drop(theater.shutdown().unwrap()));
}

// GUARANTEE: Order holds while actors migrate
#[test]
fn theaters_that_meet_by_references_that_are_passed_on_lose_repeat_and_reorder_nothing() {
    let usual = if playhouse_executor::jitter::is_on() { 2 } else { 10 };
    let runs = std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(usual);
    (0..runs).for_each(first_contact);
}

// -- many messages --------------------------------------------------------------------------------------------------------

// GUARANTEE: Order holds while actors migrate
#[test]
fn actors_that_roam_on_few_cores_live_once_and_lose_repeat_and_reorder_nothing() {
    static DONE: AtomicBool = AtomicBool::new(false);
    let cores = thread::available_parallelism().map_or(2, usize::from);
    let until = Instant::now() + TIME;
    let moves: u64 = thread::scope(|scope| {
        for _ in 0..BUSY * cores {
            scope.spawn(|| {
                while !DONE.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let copies = (0..COPIES).map(|copy| {
            scope.spawn(move || {
                let mut moves = 0;
                for round in 0.. {
                    moves += run(round * COPIES + copy);
                    if Instant::now() > until {
                        break;
                    }
                }
                moves
            })
        });
        let copies: Vec<_> = copies.collect();
        let ended: Vec<_> = copies.into_iter().map(|copy| copy.join()).collect();
        DONE.store(true, Ordering::Relaxed);
        ended.into_iter().map(|moves| moves.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).sum()
    });
    assert!(moves > 100, "{moves} moves");
}
