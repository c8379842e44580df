//! A process is killed at each step of a migration: a migrating actor lives once afterwards, or has died with the process.
//!
//! The killed process is this program, started again. Actors go to it, on from it, and home again. Its links pass through this
//! process, which counts their pieces, and kills it after a given number.
#![cfg(unix)]

#[allow(dead_code, reason = "other tests use all of it")]
mod faulty;
#[macro_use]
mod messages;
#[allow(dead_code, reason = "other tests use all of it")]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use faulty::{Between, Fault, eventually};
use playhouse_actor::*;
use playhouse_theater::{Peer, Theater};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use support::LIMIT;

/// Set in the process that is killed.
const OTHER: &str = "PLAYHOUSE_TEST_IS_KILLED";

/// The lives of each traveller in this process.
static LIVES: Mutex<BTreeMap<u64, BTreeSet<u64>>> = Mutex::new(BTreeMap::new());

/// The travellers of this process that have ended their tours.
static ARRIVED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// One life of a traveller. Another one begins where its state is read.
struct Life {
    of: u64,
    number: u64,
}

impl Life {
    fn begin(of: u64) -> Life {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        LIVES.lock().unwrap().entry(of).or_default().insert(number);
        Life { of, number }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        LIVES.lock().unwrap().get_mut(&self.of).unwrap().remove(&self.number);
    }
}

impl Serialize for Life {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.of.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Life {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Life, D::Error> {
        u64::deserialize(deserializer).map(Life::begin)
    }
}

/// Goes from theater to theater, and keeps its messages.
#[derive(Serialize, Deserialize)]
struct Traveller {
    incarnation: Life,
    last: BTreeMap<u8, u64>,
    /// Messages that came twice, or too late.
    wrong: Vec<(u8, u64)>,
    tour: Vec<SocketAddr>,
    begun: bool,
}

impl Traveller {
    fn new(number: u64, tour: Vec<SocketAddr>) -> Traveller {
        Traveller { incarnation: Life::begin(number), last: BTreeMap::new(), wrong: Vec::new(), tour, begun: false }
    }

    fn go_on(&mut self, ctx: &mut Context<Self>) {
        if self.tour.is_empty() {
            ARRIVED.lock().unwrap().insert(self.incarnation.of);
        } else if self.begun {
            ctx.migrate_to(self.tour.remove(0));
        }
    }
}

/// Begins its tour.
#[derive(Serialize, Deserialize)]
struct Go;
remote_message!(Go -> ());

#[derive(Serialize, Deserialize)]
struct GoTo(SocketAddr);
remote_message!(GoTo -> ());

#[derive(Serialize, Deserialize)]
struct Note {
    by: u8,
    number: u64,
}
remote_message!(Note -> ());

/// Answered with the number of its life, and the messages that came twice or too late.
#[derive(Serialize, Deserialize)]
struct Read;
remote_message!(Read -> (u64, Vec<(u8, u64)>));

impl Actor for Traveller {
    fn migrated(&mut self, ctx: &mut Context<Self>) {
        self.go_on(ctx);
    }
}
impl Handler<Go> for Traveller {
    fn handle(&mut self, _: Go, ctx: &mut Context<Self>) {
        self.begun = true;
        self.go_on(ctx);
    }
}
impl Handler<GoTo> for Traveller {
    fn handle(&mut self, GoTo(theater): GoTo, ctx: &mut Context<Self>) {
        self.tour.clear();
        ctx.migrate_to(theater);
    }
}
impl Handler<Note> for Traveller {
    fn handle(&mut self, Note { by, number }: Note, _: &mut Context<Self>) {
        let last = self.last.entry(by).or_default();
        if number <= *last {
            self.wrong.push((by, number));
        }
        *last = number;
    }
}
impl Handler<Read> for Traveller {
    fn handle(&mut self, _: Read, _: &mut Context<Self>) -> (u64, Vec<(u8, u64)>) {
        (self.incarnation.number, self.wrong.clone())
    }
}
remote!(mobile Traveller: Go, GoTo, Note, Read);

/// Writes notes to a traveller, each after the answer to the last one, and watches it.
struct Writer {
    number: u8,
    to: ActorRef<Traveller>,
    sent: u64,
    ended: u64,
}
struct Next;
impl Message for Next {
    type Reply = ();
}
/// Answered with the numbers of its notes with an outcome and of notifications that the traveller has ended.
struct Told;
impl Message for Told {
    type Reply = (u64, u64);
}

impl Actor for Writer {
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.watch(self.to);
    }
    fn terminated(&mut self, _: Terminated, _: &mut Context<Self>) {
        self.ended += 1;
    }
}
impl Handler<Next> for Writer {
    fn handle(&mut self, _: Next, ctx: &mut Context<Self>) {
        if self.ended > 0 {
            return;
        }
        self.sent += 1;
        let note = || Note { by: self.number, number: self.sent };
        ctx.ask(self.to, note()).then(|_, _, ctx| ctx.this().tell(Next));
    }
}
impl Handler<Told> for Writer {
    fn handle(&mut self, _: Told, _: &mut Context<Self>) -> (u64, u64) {
        (self.sent, self.ended)
    }
}

/// No test: the process to be killed, if this program is started as one.
#[test]
fn the_other_process() {
    if std::env::var(OTHER).is_err() {
        return;
    }
    let theater = support::builder().start().unwrap();
    println!("\nlistening at {}", theater.address().unwrap());
    // It runs until the parent ends, or it is killed.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    std::process::exit(0);
}

/// The process to be killed, and the step of the kill.
struct Victim {
    process: Mutex<Child>,
    address: SocketAddr,
    counting: AtomicBool,
    /// Number of pieces on its links until it is killed.
    left: AtomicUsize,
    /// The last piece passes.
    last_passes: bool,
}

impl Victim {
    fn start(left: usize, last_passes: bool) -> Arc<Victim> {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "the_other_process", "--nocapture"]).env(OTHER, "");
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let address = lines.find_map(|line| line.unwrap().strip_prefix("listening at ").map(str::to_owned));
        let address = address.expect("it says where it listens").parse().unwrap();
        let (counting, left) = (AtomicBool::new(false), AtomicUsize::new(left));
        Arc::new(Victim { process: Mutex::new(process), address, counting, left, last_passes })
    }

    /// Returns a proxy through which it is called.
    fn between(self: &Arc<Self>) -> Between {
        let victim = Arc::clone(self);
        Between::new(self.address, 0, Fault::Asked(Arc::new(move || victim.passes())))
    }

    fn passes(&self) -> bool {
        if !self.counting.load(Ordering::Relaxed) {
            return true;
        }
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
            Ok(1) => {
                self.kill();
                self.last_passes
            }
            Ok(_) => true,
            Err(_) => false,
        }
    }

    fn is_killed(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Sends SIGKILL.
    fn kill(&self) {
        let mut process = self.process.lock().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let process = self.process.get_mut().unwrap();
        let _it_has_ended = process.kill();
        let _ = process.wait();
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stop {
    First,
    Second,
    Victim,
}

/// The theater in which a traveller is born, and its further stops.
type Tour = (Stop, &'static [Stop]);

const TOURS: [Tour; 5] = [
    (Stop::First, &[Stop::Victim, Stop::First]),
    (Stop::First, &[Stop::Victim, Stop::Second, Stop::First]),
    (Stop::First, &[Stop::Victim, Stop::Second, Stop::Victim, Stop::First]),
    (Stop::First, &[Stop::Second, Stop::Victim, Stop::First, Stop::Victim, Stop::Second]),
    (Stop::Victim, &[Stop::First, Stop::Second, Stop::Victim, Stop::Second]),
];

/// The two theaters that survive.
struct Survivors {
    theaters: [Theater; 2],
}

#[derive(Default, Debug)]
struct Outcomes {
    alive: usize,
    dead: usize,
}

impl Survivors {
    fn start() -> Survivors {
        // Longer than a pause on a busy machine, because no other theater is to be lost.
        let theater = || support::builder().lost_after(Duration::from_millis(600)).start().unwrap();
        let theaters = [theater(), theater()];
        theaters[1].connect(theaters[0].address().unwrap()).unwrap();
        Survivors { theaters }
    }

    /// Kills the victim at this step of a tour. Returns false if the tour has fewer steps.
    fn travel(
        &self,
        (born, tour): Tour,
        (step, passes): (usize, bool),
        written_to: bool,
        outcomes: &Mutex<Outcomes>,
    ) -> bool {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let what = || format!("from {born:?} to {tour:?}, killed at step {step}, which passes: {passes}");
        let victim = Victim::start(step, passes);
        let between = [victim.between(), victim.between()];
        let [first, second] = &self.theaters;
        let peers: [Peer; 2] = [0, 1].map(|at| self.theaters[at].connect(between[at].address()).unwrap());
        let mut from = born;
        let stops = tour.iter().map(|to| {
            let address = match (from, to) {
                (_, Stop::First) => first.address().unwrap(),
                (_, Stop::Second) => second.address().unwrap(),
                (Stop::First, Stop::Victim) => between[0].address().parse().unwrap(),
                (_, Stop::Victim) => between[1].address().parse().unwrap(),
            };
            from = *to;
            address
        });
        let traveller = Traveller::new(number, stops.collect());
        let traveller = match born {
            Stop::Victim => {
                let born = first.spawn_at(&peers[0], &traveller).unwrap();
                drop(traveller);
                born
            }
            _ => first.system().spawn(traveller),
        };
        traveller.ask(Read).within(LIMIT).wait().unwrap();
        let name = format!("traveller-{number}");
        first.publish(&name, traveller).unwrap();
        let name = format!("playhouse://{}/{name}", first.address().unwrap());
        let known = [traveller, second.find(&name).wait().unwrap()];
        known[1].ask(Read).within(LIMIT).wait().unwrap();
        let writers = [0, 1].map(|at| {
            let writer = Writer { number: at as u8, to: known[at], sent: 0, ended: 0 };
            self.theaters[at].system().spawn(writer)
        });
        if written_to {
            writers.iter().for_each(|writer| writer.tell(Next));
        }
        // The messages before this are no steps.
        for known in known {
            let read = known.ask(Read).within(LIMIT).wait();
            read.unwrap_or_else(|error| {
                panic!("{}, before: {error:?}; {:?}, {:?}", what(), first.peers(), second.peers())
            });
        }
        victim.counting.store(true, Ordering::Relaxed);
        known[0].tell(Go);
        let arrived = eventually(|| {
            let has_arrived = ARRIVED.lock().unwrap().contains(&number);
            (victim.is_killed() || has_arrived).then(|| !victim.is_killed())
        });
        if arrived {
            victim.kill();
        }
        let mut writers = Vec::from(writers);
        for (at, peer) in peers.iter().enumerate() {
            eventually(|| peer.is_lost().then_some(()));
            // A writer that begins to watch it only now.
            let late = Writer { number: 2 + at as u8, to: known[at], sent: 0, ended: 0 };
            writers.push(self.theaters[at].system().spawn(late));
        }

        // Both survivors learn the same location, and it is true. Until then a traveller may be migrating: into later lives, and
        // never into an earlier one.
        let mut latest = 0;
        let alive = eventually(|| {
            let read = known.map(|known| {
                let (incarnation, _) = match known.ask(Read).within(LIMIT).wait() {
                    Ok(read) => read,
                    Err(AskError::Deadline { .. }) => {
                        panic!("{}: not told; {:?}, {:?}", what(), first.peers(), second.peers())
                    }
                    Err(_) => return None,
                };
                assert!(incarnation >= latest, "{}: it lives twice, {incarnation} and {latest}", what());
                latest = incarnation;
                Some(incarnation)
            });
            let lives: Vec<u64> = LIVES.lock().unwrap()[&number].iter().copied().collect();
            match read {
                [Some(one), Some(other)] => (one == other && lives == [one]).then_some(true),
                [None, None] => lives.is_empty().then_some(false),
                _ => None,
            }
        });
        if alive {
            outcomes.lock().unwrap().alive += 1;
            // The traveller is unharmed: it goes to the other theater, and home.
            for theater in [second, first, second] {
                known[0].ask(GoTo(theater.address().unwrap())).within(LIMIT).wait().unwrap();
                let read = known[1].ask(Read).within(LIMIT).wait();
                let (_, wrong) = read.unwrap_or_else(|error| {
                    panic!("{}, then to {theater:?}: {error:?}; {:?}, {:?}", what(), first.peers(), second.peers())
                });
                assert_eq!(wrong, [], "{}", what());
            }
        } else {
            outcomes.lock().unwrap().dead += 1;
        }
        for (writer, theater) in writers.iter().zip(self.theaters.iter().cycle()) {
            let told = eventually(|| {
                let (_, told) = writer.ask(Told).wait().unwrap();
                (alive || told > 0).then_some(told)
            });
            assert_eq!(told, u64::from(!alive), "{}: a watcher in {:?}", what(), theater.address());
            writer.stop();
        }
        for known in known {
            known.kill();
        }
        !arrived
    }
}

/// Runs all steps of all tours, several at a time, because most of the time passes until the theater counts as lost.
fn all_steps(written_to: bool, steps: impl Fn(usize) -> bool + Sync) -> Outcomes {
    let outcomes = Mutex::default();
    let next = AtomicUsize::new(0);
    let work = || {
        let survivors = Survivors::start();
        loop {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            let Some(tour) = TOURS.get(turn / 2) else { break };
            let passes = turn.is_multiple_of(2);
            let mut step = 1;
            while step < 200 && (!steps(step) || survivors.travel(*tour, (step, passes), written_to, &outcomes)) {
                step += 1;
            }
        }
        survivors.theaters.into_iter().for_each(|theater| drop(theater.shutdown().unwrap()));
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(work);
        }
    });
    outcomes.into_inner().unwrap()
}

// GUARANTEE: Alive once
#[test]
fn an_actor_that_migrates_while_a_theater_is_killed_lives_at_most_once() {
    // The other half of the steps runs with delays at the seams.
    let outcomes = all_steps(false, |step| step.is_multiple_of(2) == playhouse_executor::jitter::is_on());
    assert!(outcomes.alive > 10 && outcomes.dead > 10, "{outcomes:?}");
}

// GUARANTEE: Alive once
#[test]
fn a_sender_to_an_actor_that_migrates_while_a_theater_is_killed_is_told() {
    let outcomes = all_steps(true, |step| step % 8 == 1);
    assert!(outcomes.alive > 5 && outcomes.dead > 0, "{outcomes:?}");
}
