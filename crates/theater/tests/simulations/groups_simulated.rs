//! Groups that migrate, under many seeds: links that break, theaters that are killed or evacuated.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use crate::census::{CENSUS, Census};
use crate::seeds::Seed;
use playhouse_actor::*;
use playhouse_executor::Choices;
use playhouse_theater::{Simulation, Theater};
use serde::{Deserialize, Serialize};

/// Returns the number of seeds of each test.
fn seeds() -> u64 {
    crate::seeds::or(250)
}

/// The time for which connections break by chance.
const STORM: Duration = Duration::from_millis(500);
/// Longer than chance separates two theaters.
const LOST_AFTER: Duration = Duration::from_secs(10);
/// Number of members that each group begins with.
const MEMBERS: u32 = 3;
/// The sender number in the messages of each group's first member to the member that it has started.
const PARENT: u32 = 1_000;
/// Number of entries after which the first member of each group starts another one.
const CHILD_AFTER: u64 = 5;

thread_local! {
    /// Number of children that were started in another theater than the one in which their group had begun.
    static BORN_AWAY: Cell<u64> = const { Cell::new(0) };
}

// -- actors -------------------------------------------------------------------------------------------------------------

/// A member of a group: keeps its messages by their senders, in order, and makes the group migrate now and then.
#[derive(Clone, Serialize, Deserialize)]
struct Ledger {
    who: (u32, u32),
    last: BTreeMap<u32, u64>,
    wrong: Vec<(u32, u64, u64)>,
    taken: u64,
    tour: Vec<SocketAddr>,
    seed: u64,
    /// It has migrated since its start.
    moved: bool,
    child: Option<ActorRef<Ledger>>,
    told_child: u64,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    from: u32,
    number: u64,
}
remote_message!(Entry -> u64);

#[derive(Serialize, Deserialize)]
struct Read;
remote_message!(Read -> Ledger);

impl Ledger {
    fn new(who: (u32, u32), tour: Vec<SocketAddr>, seed: u64) -> Ledger {
        let (last, wrong) = (BTreeMap::new(), Vec::new());
        Ledger { who, last, wrong, taken: 0, tour, seed, moved: false, child: None, told_child: 0 }
    }
}

impl Actor for Ledger {
    fn started(&mut self, ctx: &mut Context<Self>) {
        crate::census::lives(self.who, ctx);
    }

    fn migrating(&mut self, ctx: &mut Context<Self>) {
        crate::census::departs(self.who, ctx);
    }

    fn migrated(&mut self, ctx: &mut Context<Self>) {
        self.moved = true;
        crate::census::has_arrived(self.who, ctx);
    }

    fn migration_failed(&mut self, _: MigrateError, ctx: &mut Context<Self>) {
        crate::census::stays(self.who, ctx);
    }
}
impl Handler<Entry> for Ledger {
    fn handle(&mut self, entry: Entry, ctx: &mut Context<Self>) -> u64 {
        let last = self.last.entry(entry.from).or_default();
        if entry.number != *last + 1 {
            self.wrong.push((entry.from, *last, entry.number));
        }
        *last = entry.number;
        self.taken += 1;
        if self.who.1 == 0 && self.taken == CHILD_AFTER {
            BORN_AWAY.set(BORN_AWAY.get() + u64::from(self.moved));
            let options = SpawnOptions::new().placement(Placement::Group(ctx.group()));
            let child = Ledger::new((self.who.0, MEMBERS), self.tour.clone(), self.seed ^ 1);
            self.child = Some(ctx.spawn_with(options, child));
        }
        if let Some(child) = self.child {
            self.told_child += 1;
            child.tell(Entry { from: PARENT, number: self.told_child });
        }
        let mut choices = Choices::new(self.seed);
        self.seed = choices.next();
        if !self.tour.is_empty() && choices.one_in(12) {
            ctx.migrate_to(self.tour[choices.below(self.tour.len())]);
        }
        entry.number
    }
}
impl Handler<Read> for Ledger {
    fn handle(&mut self, _: Read, _: &mut Context<Self>) -> Ledger {
        self.clone()
    }
}
remote!(mobile Ledger: Entry, Read);

/// Writes to members, now and then as a question, and watches them.
struct Writer {
    number: u32,
    ledgers: Vec<ActorRef<Ledger>>,
    sent: Vec<u64>,
    total: u64,
    choices: Choices,
    asked: u64,
    answered: u64,
    failed: Vec<AskError>,
    lost: Vec<ActorId>,
}

impl Actor for Writer {
    fn started(&mut self, ctx: &mut Context<Self>) {
        for ledger in self.ledgers.clone() {
            ctx.watch(ledger);
        }
    }

    fn terminated(&mut self, terminated: Terminated, _: &mut Context<Self>) {
        self.lost.push(terminated.who);
    }
}

struct Write;
impl Message for Write {
    type Reply = ();
}

/// Answered with: asked, answered, errors, and number of ended members.
struct Report;
type Reported = (u64, u64, Vec<AskError>, usize);
impl Message for Report {
    type Reply = Reported;
}

impl Handler<Write> for Writer {
    fn handle(&mut self, _: Write, ctx: &mut Context<Self>) {
        let open: Vec<usize> = (0..self.sent.len()).filter(|at| self.sent[*at] < self.total).collect();
        if open.is_empty() {
            return;
        }
        let at = open[self.choices.below(open.len())];
        for _ in 0..1 + self.choices.below(4) {
            if self.sent[at] == self.total {
                break;
            }
            self.sent[at] += 1;
            let entry = Entry { from: self.number, number: self.sent[at] };
            if self.choices.one_in(4) {
                self.asked += 1;
                ctx.ask(self.ledgers[at], entry).then(|writer, answer, _| match answer {
                    Ok(_) => writer.answered += 1,
                    Err(why) => writer.failed.push(why),
                });
            } else {
                self.ledgers[at].tell(entry);
            }
        }
        if self.choices.one_in(2) {
            ctx.this().tell(Write);
        } else {
            ctx.send_after(Duration::from_micros(self.choices.below(4_000) as u64), Write);
        }
    }
}
impl Handler<Report> for Writer {
    fn handle(&mut self, _: Report, _: &mut Context<Self>) -> Reported {
        (self.asked, self.answered, self.failed.clone(), self.lost.len())
    }
}

// -- three theaters -------------------------------------------------------------------------------------------------------

fn start(net: &Simulation) -> Theater {
    let system = System::builder().workers(2).stages(8);
    net.theater(Theater::builder().listen("127.0.0.1:0").system(system).lost_after(LOST_AFTER)).unwrap()
}

/// Three theaters, with a group and a writer in each: each writer writes to each member of each group.
struct Play {
    net: Simulation,
    theaters: Vec<Theater>,
    groups: Vec<Group>,
    /// The references of each theater.
    ledgers: Vec<Vec<ActorRef<Ledger>>>,
    writers: Vec<ActorRef<Writer>>,
    total: u64,
    _seed: Seed,
}

impl Play {
    fn new(seed: u64, roams: bool, total: u64) -> Play {
        CENSUS.take();
        BORN_AWAY.take();
        let net = Simulation::new(seed);
        let theaters: Vec<Theater> = (0..3).map(|_| start(&net)).collect();
        let tour: Vec<SocketAddr> = theaters.iter().filter_map(Theater::address).filter(|_| roams).collect();
        let mut ledgers = vec![Vec::new(); 3];
        let mut groups = Vec::new();
        for (home, number) in theaters.iter().zip(0..) {
            let group = Group::new(home.system());
            groups.push(group);
            for nth in 0..MEMBERS {
                let member = Ledger::new((number, nth), tour.clone(), seed ^ u64::from(nth) << 40);
                let options = SpawnOptions::new().placement(Placement::Group(group));
                let member = home.system().spawn_with(options, member);
                home.publish(format!("{number}.{nth}"), member).unwrap();
                for (theater, known) in theaters.iter().zip(&mut ledgers) {
                    let name = format!("playhouse://{}/{number}.{nth}", home.address().unwrap());
                    known.push(theater.find::<Ledger>(&name).wait().unwrap());
                }
            }
        }
        let mut writers = Vec::new();
        for (theater, number) in theaters.iter().zip(0..) {
            let known = ledgers[number as usize].clone();
            let writer = Writer {
                number,
                sent: vec![0; known.len()],
                ledgers: known,
                total,
                choices: Choices::new(seed ^ u64::from(number)),
                asked: 0,
                answered: 0,
                failed: Vec::new(),
                lost: Vec::new(),
            };
            let writer = theater.system().spawn(writer);
            writer.tell(Write);
            writers.push(writer);
        }
        Play { net, theaters, groups, ledgers, writers, total, _seed: Seed(seed) }
    }

    /// Breaks connections for some time, and heals them.
    fn storm(&self) {
        self.net.break_by_chance(Duration::from_millis(10));
        self.net.run_for(STORM);
        self.net.calm();
        self.net.run_until_idle();
    }

    /// Checks that each message was handled once, in order, each question was answered, and each group is together.
    fn check_all(&self, from: usize) {
        for ledger in &self.ledgers[from] {
            let ledger = ledger.ask(Read).wait().unwrap();
            let all: BTreeMap<u32, u64> = (0..self.theaters.len() as u32).map(|writer| (writer, self.total)).collect();
            assert_eq!((&ledger.wrong, &ledger.last), (&vec![], &all), "member {:?}", ledger.who);
            if let Some(child) = ledger.child {
                let child = child.ask(Read).wait().unwrap();
                let all = BTreeMap::from([(PARENT, ledger.told_child)]);
                assert_eq!((&child.wrong, &child.last), (&vec![], &all), "member {:?}", child.who);
            }
        }
        for writer in &self.writers {
            let (asked, answered, failed, lost) = writer.ask(Report).wait().unwrap();
            assert_eq!((asked, failed, lost), (answered, vec![], 0));
        }
        self.check_together();
    }

    /// Checks that each group has been on one stage of each theater, and is in one theater, where each member lives once. No
    /// member has migrated more often than the others.
    fn check_together(&self) {
        CENSUS.with_borrow(|census| {
            let groups = 0..self.groups.len() as u32;
            census.check_together(groups.clone());
            for group in groups {
                let moves = |nth| census.moves.get(&(group, nth)).copied().unwrap_or_default();
                let moves: BTreeSet<u64> = (0..MEMBERS).map(moves).collect();
                assert_eq!(moves.len(), 1, "members of group {group} have moved {moves:?} times");
            }
        });
    }
}

/// The events of all seeds.
#[derive(Debug, Default)]
struct Sum {
    cuts: u64,
    moves: u64,
    stays: u64,
    children: u64,
    born_away: u64,
}

impl Sum {
    fn add(&mut self, play: &Play) {
        self.cuts += play.net.happened().cuts;
        CENSUS.with_borrow(|census| {
            self.moves += census.moves.values().sum::<u64>();
            self.stays += census.stays;
            self.children += census.lives.keys().filter(|(_, nth)| *nth == MEMBERS).count() as u64;
        });
        self.born_away += BORN_AWAY.get();
    }
}

// GUARANTEE: A group migrates as one
// GUARANTEE: Order holds while a group migrates
#[test]
fn groups_that_move_over_broken_connections_stay_together_and_get_each_message_once_under_every_seed() {
    let mut sum = Sum::default();
    for seed in crate::seeds::range(250) {
        let play = Play::new(seed, true, 20);
        play.storm();
        play.check_all(seed as usize % 3);
        sum.add(&play);
    }
    assert!(sum.cuts > seeds() && sum.moves > 20 * seeds(), "{sum:?}");
    assert!(sum.children == 3 * seeds() && sum.born_away > seeds() / 10, "{sum:?}");
}

// GUARANTEE: A group is lost as one
#[test]
fn a_killed_theater_takes_whole_groups_or_none_of_their_members() {
    let (mut lost, mut alive) = (0, 0);
    let mut sum = Sum::default();
    for seed in crate::seeds::range(250) {
        let play = Play::new(seed, true, 20);
        let net = &play.net;
        net.break_by_chance(Duration::from_millis(20));
        net.run_for(Duration::from_micros(net.choose(60_000) as u64));
        let killed = net.choose(3);
        let system = play.theaters[killed].system().core().id();
        CENSUS.with_borrow_mut(|census| {
            census.lives.values_mut().for_each(|lives| lives.retain(|(at, _)| *at != system));
        });
        net.kill(&play.theaters[killed]);
        net.run_for(STORM);
        net.calm();
        net.run_until_idle();
        CENSUS.with_borrow(|census| {
            assert_eq!(census.twice, vec![]);
            for group in 0..3 {
                let members: Vec<_> = census.lives.iter().filter(|((of, _), _)| *of == group).collect();
                let locations: BTreeSet<_> = members.iter().flat_map(|(_, lives)| *lives).collect();
                assert!(locations.len() <= 1, "group {group}: {members:?}");
                let alike = members.iter().all(|(_, lives)| lives.len() == locations.len());
                assert!(alike, "group {group}: {members:?}");
                lost += 1 - locations.len();
                alive += locations.len();
            }
        });
        sum.add(&play);
    }
    assert!(lost > seeds() as usize / 2 && alive > seeds() as usize && sum.stays > 0, "{lost} {alive} {sum:?}");
}

// GUARANTEE: A group migrates as one
#[test]
fn a_theater_is_evacuated_of_whole_groups_under_every_seed() {
    let mut sum = Sum::default();
    for seed in crate::seeds::range(250) {
        let play = Play::new(seed, false, 20);
        play.net.break_by_chance(Duration::from_millis(20));
        play.net.run_for(Duration::from_micros(play.net.choose(20_000) as u64));
        let leaves = &play.theaters[0];
        let peers: Vec<_> =
            play.theaters[1..].iter().map(|to| leaves.connect(to.address().unwrap()).unwrap()).collect();
        let evacuation = leaves.evacuate(&peers);
        assert_eq!(evacuation.stayed, vec![]);
        assert!(evacuation.moved >= MEMBERS as usize, "{evacuation:?}");
        play.storm();
        play.check_all(seed as usize % 3);
        let system = leaves.system().core().id();
        let left = |census: &Census| census.lives.values().flatten().filter(|(at, _)| *at == system).count();
        assert_eq!(CENSUS.with_borrow(left), 0, "they live in the theater that was evacuated");
        sum.add(&play);
    }
    assert!(sum.cuts > seeds() && sum.moves >= 3 * seeds(), "{sum:?}");
}

// GUARANTEE: A group migrates as one
#[test]
fn a_group_that_is_sent_to_and_fro_by_its_theaters_stays_together_under_every_seed() {
    let (mut moved, mut refused) = (0, 0);
    for seed in crate::seeds::range(250) {
        let play = Play::new(seed, false, 20);
        play.net.break_by_chance(Duration::from_millis(10));
        for _ in 0..6 {
            let (from, group) = (play.net.choose(3), play.net.choose(3));
            let to = (from + 1 + play.net.choose(2)) % 3;
            let peer = play.theaters[from].connect(play.theaters[to].address().unwrap());
            let Ok(peer) = peer else { continue };
            match play.theaters[from].migrate_group(play.groups[group], &peer).wait() {
                Ok(()) => moved += 1,
                Err(MigrateError::Elsewhere) => refused += 1,
                Err(why) => panic!("{why}"),
            }
        }
        play.storm();
        play.check_all(seed as usize % 3);
    }
    assert!(moved > seeds() && refused > seeds(), "{moved} {refused}");
}

// -- large groups ---------------------------------------------------------------------------------------------------------

thread_local! {
    /// Number of large members that have arrived.
    static HEAVY_CAME: Cell<usize> = const { Cell::new(0) };
}

/// A member of a group with a large state.
#[derive(Serialize, Deserialize)]
struct Heavy(Vec<u8>);

#[derive(Serialize, Deserialize)]
struct Weigh;
remote_message!(Weigh -> usize);

impl Actor for Heavy {
    fn migrated(&mut self, _: &mut Context<Self>) {
        HEAVY_CAME.set(HEAVY_CAME.get() + 1);
    }
}
impl Handler<Weigh> for Heavy {
    fn handle(&mut self, _: Weigh, _: &mut Context<Self>) -> usize {
        self.0.len()
    }
}
remote!(mobile Heavy: Weigh);

// GUARANTEE: Mail that waits for a theater is bounded
#[test]
fn a_large_group_is_sent_as_there_is_room_in_the_window() {
    const WINDOW_BYTES: usize = 64 * 1024;
    const STATE_BYTES: usize = 32 * 1024;
    const MEMBERS: usize = 64;
    HEAVY_CAME.take();
    let net = Simulation::new(1);
    let [here, there] = [(); 2].map(|()| {
        let system = System::builder().workers(2).stages(8);
        net.theater(Theater::builder().listen("127.0.0.1:0").system(system).window(WINDOW_BYTES)).unwrap()
    });
    let peer = here.connect(there.address().unwrap()).unwrap();
    let group = Group::new(here.system());
    let options = || SpawnOptions::new().placement(Placement::Group(group));
    let heavies: Vec<_> =
        (0..MEMBERS).map(|_| here.system().spawn_with(options(), Heavy(vec![7; STATE_BYTES]))).collect();
    net.run_until_idle();
    let migration = here.migrate_group(group, &peer);
    let mut most = 0;
    let all_came = net.run_until(|| {
        most = most.max(peer.state().bytes);
        HEAVY_CAME.get() == MEMBERS
    });
    assert!(all_came);
    migration.wait().unwrap();
    assert!(most > STATE_BYTES && most < WINDOW_BYTES + 3 * STATE_BYTES, "{most} bytes were under way");
    for heavy in heavies {
        assert_eq!(heavy.ask(Weigh).wait(), Ok(STATE_BYTES));
    }
}
