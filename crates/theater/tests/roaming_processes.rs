//! Actors that gossip and roam between three processes, of which one pauses, one leaves and one is killed. The other processes
//! are this program, started again. They write the events of their actors to this one, line by line, to keep them through a kill.
#![cfg(unix)]

#[macro_use]
mod messages;
#[allow(dead_code, reason = "other tests use all of it")]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use playhouse_actor::*;
use playhouse_executor::Choices;
use playhouse_theater::TheaterBuilder;
use serde::{Deserialize, Serialize};
use support::LIMIT;

/// Set in the other processes, to their numbers. The first process has the number 0.
const OTHER: &str = "PLAYHOUSE_TEST_ROAMS_AT";
/// The prefix of lines about actors.
const MARK: &str = "roams: ";
const NODES: u32 = 12;
/// The peers of each actor.
const PEERS: u32 = 3;
/// Longer than any pause in this test.
const LOST_AFTER: Duration = Duration::from_secs(3);

fn builder() -> TheaterBuilder {
    support::builder().lost_after(LOST_AFTER)
}

/// Returns true for every fourth actor, which stays in the theater of its birth.
fn stays(node: u32) -> bool {
    node.is_multiple_of(4)
}

fn process() -> u32 {
    std::env::var(OTHER).map_or(0, |number| number.parse().unwrap())
}

// -- the journal --------------------------------------------------------------------------------------------------------

/// A sender and a receiver.
type Pair = (u32, u32);

/// The events of the actors in all processes.
#[derive(Default)]
struct Journal {
    /// The number of messages of each pair.
    sent: BTreeMap<Pair, u64>,
    handled: BTreeMap<Pair, BTreeSet<u64>>,
    /// Messages that were handled again, or after a later one of an immobile sender.
    wrong: Vec<String>,
    dead: Vec<String>,
    /// The number of migrations of each actor, and the process that it lives in since the last one.
    lives: BTreeMap<u32, (u32, u32)>,
    /// The number of processes in which each actor has lived after each number of migrations.
    arrivals: BTreeMap<(u32, u32), u32>,
    /// The number of begin orders to all actors, and the number of begins of each actor.
    begins: u64,
    begun: BTreeMap<u32, u64>,
    ended: Vec<(u32, StopReason)>,
}

static JOURNAL: Mutex<Journal> = Mutex::new(Journal {
    sent: BTreeMap::new(),
    handled: BTreeMap::new(),
    wrong: Vec::new(),
    dead: Vec::new(),
    lives: BTreeMap::new(),
    arrivals: BTreeMap::new(),
    begins: 0,
    begun: BTreeMap::new(),
    ended: Vec::new(),
});
static CHANGED: Condvar = Condvar::new();

fn journal() -> MutexGuard<'static, Journal> {
    JOURNAL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes an event of this process; in the first process, enters it into the journal.
fn note(line: &str) {
    if process() == 0 {
        enter(line);
    } else {
        writeln!(std::io::stdout().lock(), "{MARK}{line}").expect("the first process reads it");
    }
}

fn enter(line: &str) {
    let mut journal = journal();
    let words: Vec<&str> = line.split(' ').collect();
    let number = |at: usize| words[at].parse::<u32>().unwrap();
    match words[0] {
        "sends" => *journal.sent.entry((number(1), number(2))).or_default() += 1,
        "handles" => {
            let new = journal.handled.entry((number(1), number(2))).or_default().insert(number(3).into());
            if !new {
                journal.wrong.push(format!("again: {line}"));
            }
        }
        "lives" => {
            // The lines of two processes may come in another order.
            let lives = journal.lives.entry(number(1)).or_default();
            *lives = (number(2), number(3)).max(*lives);
            if journal.arrivals.insert((number(1), number(2)), number(3)).is_some() {
                journal.wrong.push(format!("twice: {line}"));
            }
        }
        "begins" => *journal.begun.entry(number(1)).or_default() += 1,
        "late" => journal.wrong.push(line.to_owned()),
        "dead" => journal.dead.push(line.to_owned()),
        _ => panic!("{line}"),
    }
    CHANGED.notify_all();
}

impl Journal {
    fn is_at(&self, actor: u32, process: u32) -> bool {
        self.lives[&actor].1 == process
    }

    fn moves(&self) -> u32 {
        self.lives.values().map(|(moves, _)| moves).sum()
    }

    fn total(&self) -> usize {
        self.handled.values().map(BTreeSet::len).sum()
    }

    /// Returns whether these actors have begun each time, and each message between them has been handled.
    fn is_settled(&self, among: impl Fn(u32) -> bool) -> bool {
        let all = |(pair, sent): (&Pair, &u64)| self.handled.get(pair).map_or(0, BTreeSet::len) as u64 == *sent;
        let pairs = self.sent.iter().filter(|((from, to), _)| among(*from) && among(*to));
        let unheard_of = self.handled.keys().any(|pair| !self.sent.contains_key(pair));
        let has_begun = |id| self.begun.get(&id) == Some(&self.begins);
        (0..NODES).filter(|id| among(*id)).all(has_begun) && pairs.into_iter().all(all) && !unheard_of
    }
}

/// Waits until the journal satisfies `done`.
fn wait(what: &str, done: impl Fn(&Journal) -> bool) {
    let until = Instant::now() + LIMIT;
    let mut journal = journal();
    while !done(&journal) {
        let left = until.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "{what}: sent {:?}, handled {:?}, {:?}", journal.sent, journal.handled, journal.dead);
        journal = CHANGED.wait_timeout(journal, left).unwrap_or_else(PoisonError::into_inner).0;
    }
}

// -- actors -------------------------------------------------------------------------------------------------------------

#[derive(Serialize, Deserialize)]
struct Node {
    id: u32,
    peers: Vec<(u32, ActorRef<Node>)>,
    sent: BTreeMap<u32, u64>,
    last: BTreeMap<u32, u64>,
    theaters: Vec<SocketAddr>,
    moves: u32,
    roams: bool,
    dice: u64,
}

#[derive(Serialize, Deserialize)]
struct Meet(Vec<(u32, ActorRef<Node>)>);
remote_message!(Meet -> ());

/// Begins to gossip. `roams` decides whether the actor roams or stays.
#[derive(Serialize, Deserialize)]
struct Begin {
    ttl: u32,
    roams: bool,
}
remote_message!(Begin -> ());

#[derive(Serialize, Deserialize)]
struct Gossip {
    from: u32,
    number: u64,
    ttl: u32,
}
remote_message!(Gossip -> ());

#[derive(Serialize, Deserialize)]
struct GoTo(SocketAddr);
remote_message!(GoTo -> ());

#[derive(Serialize, Deserialize)]
struct Which;
remote_message!(Which -> u32);

impl Node {
    fn roll(&mut self, sides: usize) -> usize {
        let mut choices = Choices::new(self.dice);
        self.dice = choices.next();
        choices.below(sides)
    }

    fn gossip(&mut self, ttl: u32) {
        let at = self.roll(self.peers.len());
        let (to, actor) = self.peers[at];
        for ttl in [ttl, 0] {
            let number = self.sent.entry(to).or_default();
            *number += 1;
            note(&format!("sends {} {to}", self.id));
            actor.tell(Gossip { from: self.id, number: *number, ttl });
        }
    }
}

impl Actor for Node {
    fn started(&mut self, _: &mut Context<Self>) {
        note(&format!("lives {} {} {}", self.id, self.moves, process()));
    }

    fn migrated(&mut self, _: &mut Context<Self>) {
        self.moves += 1;
        note(&format!("lives {} {} {}", self.id, self.moves, process()));
    }
}

impl Handler<Meet> for Node {
    fn handle(&mut self, Meet(peers): Meet, _: &mut Context<Self>) {
        self.peers = peers;
    }
}
impl Handler<Begin> for Node {
    fn handle(&mut self, Begin { ttl, roams }: Begin, _: &mut Context<Self>) {
        self.roams = roams && !stays(self.id);
        self.gossip(ttl);
        note(&format!("begins {}", self.id));
    }
}
impl Handler<Gossip> for Node {
    fn handle(&mut self, Gossip { from, number, ttl }: Gossip, ctx: &mut Context<Self>) {
        let last = self.last.entry(from).or_default();
        if number < *last && stays(from) {
            note(&format!("late {from} {} {number} behind {last}", self.id));
        }
        *last = number.max(*last);
        if ttl > 0 {
            self.gossip(ttl - 1);
        }
        if self.roams && self.roll(6) == 0 {
            let to = self.roll(self.theaters.len());
            ctx.migrate_to(self.theaters[to]);
        }
        // This note comes last: once all sent messages are handled, no handler is about to send more.
        note(&format!("handles {from} {} {number}", self.id));
    }
}
impl Handler<GoTo> for Node {
    fn handle(&mut self, GoTo(theater): GoTo, ctx: &mut Context<Self>) {
        ctx.migrate_to(theater);
    }
}
impl Handler<Which> for Node {
    fn handle(&mut self, _: Which, _: &mut Context<Self>) -> u32 {
        self.id
    }
}
remote!(mobile Node: Meet, Begin, Gossip, GoTo, Which);

/// Writes down the ends that it is notified of.
struct Witness(Vec<ActorRef<Node>>);
impl Actor for Witness {
    fn started(&mut self, ctx: &mut Context<Self>) {
        self.0.iter().for_each(|node| ctx.watch(*node));
    }
    fn terminated(&mut self, terminated: Terminated, _: &mut Context<Self>) {
        let id = self.0.iter().position(|node| node.id() == terminated.who).expect("it is watched");
        journal().ended.push((id as u32, terminated.reason));
        CHANGED.notify_all();
    }
}

// -- processes ----------------------------------------------------------------------------------------------------------

/// No test: another process, if this program is started as one.
#[test]
fn another_process() {
    if process() == 0 {
        return;
    }
    let theater = builder().start().unwrap();
    theater.system().on_dead_letter(|letter| note(&format!("dead {letter}")));
    println!("\nlistening at {}", theater.address().unwrap());
    // It runs until the first process ends, or it is killed.
    if let Some(Ok(line)) = std::io::stdin().lines().next() {
        let peer = theater.connect(line).unwrap();
        let evacuation = theater.evacuate(&[peer]);
        assert_eq!(evacuation.stayed, vec![]);
        theater.shutdown().unwrap();
    }
    std::process::exit(0);
}

struct Other {
    process: Child,
    address: SocketAddr,
    input: Option<ChildStdin>,
}

impl Other {
    fn start(number: u32) -> Other {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "another_process", "--nocapture"]).env(OTHER, number.to_string());
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.strip_prefix("listening at ").map(|address| address.parse().unwrap()));
        std::thread::spawn(move || lines.for_each(|line| line.strip_prefix(MARK).into_iter().for_each(enter)));
        Other { process, address: address.expect("it says where it listens"), input }
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([name, &self.process.id().to_string()]).status().unwrap();
        assert!(status.success(), "{name} was not sent");
    }

    /// Lets its actors go to the theater at `to`, and ends it.
    fn leave(&mut self, to: SocketAddr) {
        writeln!(self.input.take().unwrap(), "{to}").unwrap();
        assert!(self.process.wait().unwrap().success());
    }

    /// Sends a signal; `kill` is SIGKILL.
    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _it_has_ended = self.process.kill();
        let _ = self.process.wait();
    }
}

// GUARANTEE: Order holds while actors migrate
#[test]
fn actors_roam_between_processes_that_pause_leave_and_are_killed() {
    let here = builder().start().unwrap();
    here.system().on_dead_letter(|letter| note(&format!("dead {letter}")));
    let home = here.address().unwrap();
    let (mut leaves, mut dies) = (Other::start(1), Other::start(2));
    let theaters = vec![home, leaves.address, dies.address];
    let nodes: Vec<ActorRef<Node>> = (0..NODES)
        .map(|id| {
            let (peers, sent, last) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
            let dice = u64::from(id) + 1;
            here.system().spawn(Node {
                id,
                peers,
                sent,
                last,
                theaters: theaters.clone(),
                moves: 0,
                roams: false,
                dice,
            })
        })
        .collect();
    for id in 0..NODES {
        let peer = |by: u32| ((id + by) % NODES, nodes[((id + by) % NODES) as usize]);
        nodes[id as usize].ask(Meet((1..=PEERS).map(|by| peer(2 * by - 1)).collect())).wait().unwrap();
    }
    let begin = |ttl, roams| {
        journal().begins += 1;
        nodes.iter().for_each(|node| node.tell(Begin { ttl, roams }));
    };
    let nothing_is_wrong = || {
        let journal = journal();
        assert_eq!((&journal.wrong, &journal.dead), (&vec![], &vec![]));
    };

    // Some processes pause, for a shorter time than the one after which they are lost.
    for round in 0..4 {
        let before = journal().total();
        begin(40, true);
        wait("gossip begins", |journal| journal.total() > before + 50);
        let pauses = if round % 2 == 0 { &leaves } else { &dies };
        pauses.signal("-STOP");
        let until = Instant::now() + LOST_AFTER / 10;
        let mut journal = journal();
        while let left = until.saturating_duration_since(Instant::now())
            && !left.is_zero()
        {
            journal = CHANGED.wait_timeout(journal, left).unwrap().0;
        }
        drop(journal);
        pauses.signal("-CONT");
    }
    wait("after pauses", |journal| journal.is_settled(|_| true));
    nothing_is_wrong();
    let moves = journal().moves();
    assert!(moves > 50, "{moves} moves");

    // One process leaves while all actors gossip: its actors continue.
    let before = journal().total();
    begin(200, false);
    wait("gossip goes on", |journal| journal.total() > before + 50);
    leaves.leave(home);
    wait("after one has left", |journal| journal.is_settled(|_| true));
    nothing_is_wrong();
    assert!((0..NODES).all(|id| !journal().is_at(id, 1)), "{:?}", journal().lives);

    // One process is killed: its actors die with it and their watchers are notified; the others continue.
    for id in [1, 2, 3] {
        nodes[id].tell(GoTo(dies.address));
    }
    wait("some are where it is killed", |journal| [1, 2, 3].iter().all(|id| journal.is_at(*id, 2)));
    here.system().spawn(Witness(nodes.clone()));
    let lost: BTreeSet<u32> = (0..NODES).filter(|id| journal().is_at(*id, 2)).collect();
    let before = journal().total();
    begin(2_000, false);
    wait("gossip goes on", |journal| journal.total() > before + 50);
    dies.kill();
    wait("the ends are told", |journal| journal.ended.len() >= lost.len());
    begin(40, false);
    wait("after one was killed", |journal| journal.is_settled(|id| !lost.contains(&id)));
    for id in 0..NODES {
        let answer = nodes[id as usize].ask(Which).wait();
        assert!(if lost.contains(&id) { answer.is_err() } else { answer == Ok(id) }, "{id} of {lost:?}: {answer:?}");
    }
    let journal = journal();
    let told: BTreeMap<u32, StopReason> = journal.ended.iter().cloned().collect();
    assert_eq!(told, lost.iter().map(|id| (*id, StopReason::TheaterLost)).collect());
    assert_eq!((journal.ended.len(), &journal.wrong), (lost.len(), &vec![]));
    assert!(!journal.dead.is_empty(), "nothing is reported");
    drop(journal);
    here.shutdown().unwrap();
}
