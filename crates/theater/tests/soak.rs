//! Actors that gossip, ask and roam, and others that are started, watched, migrate and end, for any length of time. Nothing is
//! lost, doubled or reordered, and the memory does not grow.
//!
//! `PLAYHOUSE_SOAK_SECONDS=3600 cargo test --release -p playhouse-theater-tests --test soak -- --nocapture` takes an hour and prints a
//! line for each thirtieth of it. Without the variable it takes some seconds and does not check the memory, which grows until the
//! program has warmed up.

#[macro_use]
mod messages;
#[allow(dead_code, reason = "other tests use all of it")]
mod gossips;
mod support;

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use gossips::{Gossip, Hush, Look, Meet};
use playhouse_actor::*;
use playhouse_theater::Theater;
use serde::{Deserialize, Serialize};
use support::LIMIT;

const THEATERS: usize = 3;
/// Number of actors that live for the whole test.
const GOSSIPS: u32 = 30;
/// Number of actors that are started at one time in each theater.
const MAYFLIES: usize = 5;
/// Number of further migrations of each of them before it ends.
const FLIGHTS: u32 = 3;
const STARTED_EVERY: Duration = Duration::from_millis(25);
/// Number of reports of one run.
const REPORTS: u32 = 30;

/// Migrates, and ends.
#[derive(Serialize, Deserialize)]
struct Mayfly {
    theaters: Vec<SocketAddr>,
    /// The number of the theater that it is in, or is about to enter.
    at: usize,
    flights: u32,
}

#[derive(Serialize, Deserialize)]
struct Fly;
remote_message!(Fly -> ());

impl Mayfly {
    fn go(&mut self, ctx: &mut Context<Self>) {
        self.at = (self.at + 1) % self.theaters.len();
        ctx.migrate_to(self.theaters[self.at]);
    }
}
impl Actor for Mayfly {
    fn migrated(&mut self, ctx: &mut Context<Self>) {
        match self.flights.checked_sub(1) {
            Some(left) => {
                self.flights = left;
                self.go(ctx);
            }
            None => ctx.stop(),
        }
    }
}
impl Handler<Fly> for Mayfly {
    fn handle(&mut self, _: Fly, ctx: &mut Context<Self>) {
        self.go(ctx);
    }
}
remote!(mobile Mayfly: Fly);

/// Watches the actors that are to end.
#[derive(Default)]
struct Watcher {
    watched: u64,
    ended: u64,
    /// Ends with another reason than a stop.
    wrong: Vec<String>,
}

struct Watch(ActorRef<Mayfly>);
impl Message for Watch {
    type Reply = ();
}

/// Answered with the number of watched actors, the number of ended ones, and the wrong ends.
struct Count;
impl Message for Count {
    type Reply = (u64, u64, Vec<String>);
}

impl Actor for Watcher {
    fn terminated(&mut self, terminated: Terminated, _: &mut Context<Self>) {
        self.ended += 1;
        if terminated.reason != StopReason::Stopped {
            self.wrong.push(format!("{:?}", terminated.reason));
        }
    }
}
impl Handler<Watch> for Watcher {
    fn handle(&mut self, Watch(mayfly): Watch, ctx: &mut Context<Self>) {
        self.watched += 1;
        ctx.watch(mayfly);
        mayfly.tell(Fly);
    }
}
impl Handler<Count> for Watcher {
    fn handle(&mut self, _: Count, _: &mut Context<Self>) -> (u64, u64, Vec<String>) {
        (self.watched, self.ended, self.wrong.clone())
    }
}

/// Returns the memory of this program in KiB if the operating system reports it.
fn memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

// GUARANTEE: Ended actors are forgotten
#[test]
fn a_program_that_runs_for_long_loses_repeats_and_reorders_nothing_and_does_not_grow() {
    let told = std::env::var("PLAYHOUSE_SOAK_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let time = Duration::from_secs(told.unwrap_or(5));
    let theaters: Vec<Theater> = (0..THEATERS).map(|_| support::theater()).collect();
    let addresses: Vec<SocketAddr> = theaters.iter().filter_map(Theater::address).collect();
    let gossips: Vec<ActorRef<Gossip>> =
        (0..GOSSIPS).map(|id| theaters[0].system().spawn(Gossip::new(id, 1))).collect();
    gossips.iter().for_each(|gossip| gossip.tell(Meet(gossips.clone(), addresses.clone())));
    let watchers: Vec<ActorRef<Watcher>> =
        theaters.iter().map(|theater| theater.system().spawn(Watcher::default())).collect();
    let look = || -> Vec<Gossip> { gossips.iter().map(|one| one.ask(Look).within(LIMIT).wait().unwrap()).collect() };
    let count = || -> Vec<(u64, u64, Vec<String>)> {
        watchers.iter().map(|watcher| watcher.ask(Count).within(LIMIT).wait().unwrap()).collect()
    };

    let start = Instant::now();
    let mut memories = Vec::new();
    for report in 1..=REPORTS {
        while start.elapsed() < time * report / REPORTS {
            for (at, (theater, watcher)) in theaters.iter().zip(&watchers).enumerate() {
                for _ in 0..MAYFLIES {
                    let mayfly = Mayfly { theaters: addresses.clone(), at, flights: FLIGHTS };
                    watcher.tell(Watch(theater.system().spawn(mayfly)));
                }
            }
            thread::park_timeout(STARTED_EVERY);
        }
        let (all, counts) = (look(), count());
        let moves: u64 = all.iter().map(|one| one.moves).sum();
        let told: u64 = all.iter().flat_map(|one| one.heard.values()).sum();
        let asked: u64 = all.iter().map(|one| one.asked).sum();
        let ended: u64 = counts.iter().map(|(_, ended, _)| ended).sum();
        memories.extend(memory());
        println!(
            "{} s: {told} messages, {asked} asks, {moves} moves of {GOSSIPS} actors, {ended} others have moved and ended, {:?} KiB",
            start.elapsed().as_secs(),
            memories.last()
        );
    }

    gossips.iter().for_each(|gossip| gossip.tell(Hush));
    let until = Instant::now() + LIMIT;
    let (mut all, mut counts) = (look(), count());
    let is_done = |all: &[Gossip], counts: &[(u64, u64, Vec<String>)]| {
        Gossip::is_settled(all) && counts.iter().all(|(watched, ended, _)| watched == ended)
    };
    while !is_done(&all, &counts) && Instant::now() < until {
        (all, counts) = (look(), count());
    }
    for one in &all {
        assert_eq!((&one.wrong[..], one.asked), (&[] as &[String], one.answered), "{}", one.id);
        assert!(one.moves > 0);
    }
    for (watched, ended, wrong) in counts {
        assert_eq!((ended, wrong), (watched, Vec::new()));
    }
    let dead: u64 = theaters.iter().map(|theater| theater.system().stats().total.dead_letters).sum();
    assert!(Gossip::is_settled(&all) && dead == 0, "messages are missing; {dead} dead letters");
    theaters.into_iter().for_each(|theater| drop(theater.shutdown().unwrap()));
    // Compares the last third with the second one. Bursts on a busy machine leave some memory with the allocator.
    if told.is_some() && memories.len() == REPORTS as usize {
        let highest = |of: &[u64]| of.iter().copied().max().unwrap_or_default();
        let (second, third) = memories[memories.len() / 3..].split_at(memories.len() / 3);
        let allowed = highest(second) + highest(second) / 10;
        assert!(highest(third) <= allowed, "{memories:?} KiB");
    }
}
