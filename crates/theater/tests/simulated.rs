//! Theaters under many seeds: links that break, actors that move, theaters that are killed or evacuated.
//!
//! What is counted over all seeds shows that the faults did happen. A failing seed is printed; it fails again each time.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use playhouse_actor::wire::WireForm;
use playhouse_actor::*;
use playhouse_executor::Choices;
use playhouse_theater::{Happened, Simulation, Theater};
use serde::{Deserialize, Serialize};

/// Seeds of each test.
const SEEDS: u64 = 1_000;
/// Each so many messages of a writer to a ledger, one is urgent: those have an order of their own, ...
const URGENT_EVERY: u64 = 4;
/// ... and are from a writer with this added.
const URGENT: u32 = 1_000;
/// So long connections break by chance.
const STORM: Duration = Duration::from_millis(500);
/// Longer than chance keeps two theaters apart.
const LOST_AFTER: Duration = Duration::from_secs(10);

macro_rules! remote_message {
    ($name:ident -> $reply:ty) => {
        impl Message for $name {
            type Reply = $reply;
            const WIRE: Option<WireForm<$name>> = Some(WireForm::of());
        }
    };
}

// -- who lives where ----------------------------------------------------------------------------------------------------

/// Where the ledgers are, as they say themselves. A simulation is one thread.
#[derive(Default)]
struct Census {
    /// By ledger: the systems in which it lives. More than one is one too many.
    lives: BTreeMap<u32, BTreeSet<u16>>,
    /// By ledger: the system that it was in before it went.
    left: BTreeMap<u32, u16>,
    moves: u64,
    stays: u64,
    twice: Vec<u32>,
}

thread_local! {
    static CENSUS: RefCell<Census> = RefCell::default();
}

fn here() -> u16 {
    playhouse_executor::current_system().expect("in an actor").id()
}

impl Census {
    fn lives(&mut self, ledger: u32) {
        let lives = self.lives.entry(ledger).or_default();
        lives.insert(here());
        if lives.len() > 1 {
            self.twice.push(ledger);
        }
    }
}

// -- actors -------------------------------------------------------------------------------------------------------------

/// Keeps what it was told, by whom, in order; and goes elsewhere now and then.
#[derive(Clone, Serialize, Deserialize)]
struct Ledger {
    id: u32,
    last: BTreeMap<u32, u64>,
    wrong: Vec<(u32, u64, u64)>,
    /// Numbers that were left out may be lost, not late.
    gaps: u64,
    tour: Vec<SocketAddr>,
    seed: u64,
    ticks: u64,
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

#[derive(Clone, Serialize, Deserialize)]
struct Tick;
remote_message!(Tick -> ());

impl Ledger {
    fn new(id: u32, tour: Vec<SocketAddr>) -> Ledger {
        Ledger { id, last: BTreeMap::new(), wrong: Vec::new(), gaps: 0, tour, seed: u64::from(id), ticks: 0 }
    }
}

impl Actor for Ledger {
    fn started(&mut self, ctx: &mut Context<Self>) {
        CENSUS.with_borrow_mut(|census| census.lives(self.id));
        ctx.send_after(Duration::from_millis(5), Tick);
    }

    fn departing(&mut self, _: &mut Context<Self>) {
        CENSUS.with_borrow_mut(|census| {
            census.lives.entry(self.id).or_default().remove(&here());
            census.left.insert(self.id, here());
        });
    }

    fn arrived(&mut self, _: &mut Context<Self>) {
        CENSUS.with_borrow_mut(|census| {
            census.left.remove(&self.id);
            census.moves += 1;
            census.lives(self.id);
        });
    }

    fn stayed(&mut self, _: MigrateError, _: &mut Context<Self>) {
        CENSUS.with_borrow_mut(|census| {
            census.left.remove(&self.id);
            census.stays += 1;
            census.lives(self.id);
        });
    }
}
impl Handler<Entry> for Ledger {
    fn handle(&mut self, entry: Entry, ctx: &mut Context<Self>) -> u64 {
        let last = self.last.entry(entry.from).or_default();
        if entry.number <= *last {
            self.wrong.push((entry.from, *last, entry.number));
        } else {
            self.gaps += entry.number - *last - 1;
        }
        *last = entry.number;
        let mut choices = Choices::new(self.seed);
        self.seed = choices.next();
        if !self.tour.is_empty() && choices.one_in(6) {
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
impl Handler<Tick> for Ledger {
    fn handle(&mut self, _: Tick, _: &mut Context<Self>) {
        self.ticks += 1;
    }
}
remote!(mobile Ledger: Entry, Read, Tick);

/// Writes into ledgers, now and then as a question.
struct Writer {
    number: u32,
    ledgers: Vec<ActorRef<Ledger>>,
    sent: Vec<u64>,
    total: u64,
    choices: Choices,
    asked: u64,
    answered: u64,
    failed: Vec<AskError>,
    lost: Vec<StopReason>,
}

impl Actor for Writer {
    fn started(&mut self, ctx: &mut Context<Self>) {
        for ledger in self.ledgers.clone() {
            ctx.watch(ledger);
        }
    }

    fn terminated(&mut self, down: Down, _: &mut Context<Self>) {
        self.lost.push(down.reason);
    }
}

struct Write;
impl Message for Write {
    type Reply = ();
}

/// Asked, answered, and what went wrong.
struct Report;
type Reported = (u64, u64, Vec<AskError>, Vec<StopReason>);
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
            let sent = self.sent[at];
            if sent.is_multiple_of(URGENT_EVERY) {
                let from = URGENT + self.number;
                self.ledgers[at].tell_urgent(Entry { from, number: sent / URGENT_EVERY });
                continue;
            }
            let entry = Entry { from: self.number, number: sent - sent / URGENT_EVERY };
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
        (self.asked, self.answered, self.failed.clone(), self.lost.clone())
    }
}

// -- three theaters -------------------------------------------------------------------------------------------------------

/// Tells which seed it was.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.0);
        }
    }
}

/// Three theaters with ledgers and writers: each writer writes into each ledger.
struct Play {
    net: Simulation,
    theaters: Vec<Theater>,
    /// As each theater knows them.
    ledgers: Vec<Vec<ActorRef<Ledger>>>,
    writers: Vec<ActorRef<Writer>>,
    total: u64,
    _seed: Seed,
}

impl Play {
    /// With so many ledgers and writers in each theater. The ledgers stay where they are, or roam.
    fn new(seed: u64, (ledgers, writers, total): (u32, u32, u64), roam: bool) -> Play {
        CENSUS.take();
        let net = Simulation::new(seed);
        let theater = || {
            let system = System::builder().workers(2).stages(8);
            let builder = Theater::builder().listen("127.0.0.1:0").system(system);
            net.theater(builder.lost_after(LOST_AFTER)).unwrap()
        };
        let theaters: Vec<Theater> = (0..3).map(|_| theater()).collect();
        let tour: Vec<SocketAddr> = match roam {
            true => theaters.iter().filter_map(Theater::address).collect(),
            false => Vec::new(),
        };
        let mut known = vec![Vec::new(); 3];
        for (at, home) in theaters.iter().enumerate() {
            for nth in 0..ledgers {
                let id = at as u32 * ledgers + nth;
                let ledger = home.system().spawn(Ledger::new(id, tour.clone()));
                home.publish(format!("ledger {id}"), ledger);
                for (theater, known) in theaters.iter().zip(&mut known) {
                    let name = format!("playhouse://{}/ledger {id}", home.address().unwrap());
                    known.push(theater.find::<Ledger>(&name).wait().unwrap());
                }
            }
        }
        let mut all = Vec::new();
        for (at, theater) in theaters.iter().enumerate() {
            for nth in 0..writers {
                let number = at as u32 * writers + nth;
                let writer = Writer {
                    number,
                    ledgers: known[at].clone(),
                    sent: vec![0; known[at].len()],
                    total,
                    choices: Choices::new(seed ^ u64::from(number)),
                    asked: 0,
                    answered: 0,
                    failed: Vec::new(),
                    lost: Vec::new(),
                };
                let writer = theater.system().spawn(writer);
                writer.tell(Write);
                all.push(writer);
            }
        }
        Play { net, theaters, ledgers: known, writers: all, total, _seed: Seed(seed) }
    }

    /// Connections break for some time, and then no more.
    fn storm(&self) {
        self.net.break_by_chance(Duration::from_millis(10));
        self.net.run_for(STORM);
        self.net.calm();
        self.net.run_until_idle();
    }

    /// What the ledgers have been told, each asked from one theater.
    fn read(&self, from: usize) -> Vec<Result<Ledger, AskError>> {
        self.ledgers[from].iter().map(|ledger| ledger.ask(Read).wait()).collect()
    }

    fn reports(&self) -> Vec<Reported> {
        self.writers.iter().map(|writer| writer.ask(Report).wait().unwrap()).collect()
    }

    /// Each message was handled once, in order; each question was answered; each ledger is alive once.
    fn check_all(&self, from: usize) {
        for ledger in self.read(from) {
            let ledger = ledger.unwrap();
            assert_eq!(ledger.wrong, vec![], "ledger {}", ledger.id);
            let urgent = self.total / URGENT_EVERY;
            let each = |writer| [(writer, self.total - urgent), (URGENT + writer, urgent)];
            let all: BTreeMap<u32, u64> = (0..self.writers.len() as u32).flat_map(each).collect();
            assert_eq!((&ledger.last, ledger.gaps), (&all, 0), "ledger {}", ledger.id);
            assert_eq!(ledger.ticks, 1, "ledger {}", ledger.id);
        }
        for (asked, answered, failed, lost) in self.reports() {
            assert_eq!((asked, failed, lost), (answered, vec![], vec![]));
        }
        self.check_census(|_| 1);
    }

    /// Each ledger is alive so often.
    fn check_census(&self, expected: impl Fn(u32) -> usize) {
        CENSUS.with_borrow(|census| {
            assert_eq!(census.twice, Vec::<u32>::new());
            for (ledger, lives) in &census.lives {
                assert_eq!(lives.len(), expected(*ledger), "ledger {ledger}: {lives:?}");
            }
        });
    }
}

/// What has happened over all seeds.
#[derive(Debug, Default)]
struct Sum {
    happened: Happened,
    moves: u64,
    stays: u64,
}

impl Sum {
    fn add(&mut self, play: &Play) {
        let happened = play.net.happened();
        self.happened.connections += happened.connections;
        self.happened.cuts += happened.cuts;
        self.happened.refused += happened.refused;
        self.happened.kills += happened.kills;
        CENSUS.with_borrow(|census| {
            self.moves += census.moves;
            self.stays += census.stays;
        });
    }
}

#[test]
fn broken_connections_lose_repeat_and_reorder_nothing_under_every_seed() {
    let mut sum = Sum::default();
    for seed in 0..SEEDS {
        let play = Play::new(seed, (1, 2, 40), false);
        play.storm();
        play.check_all(seed as usize % 3);
        sum.add(&play);
        println!("DBG {seed} {:?}", play.net);
    }
    assert!(sum.happened.cuts > 2 * SEEDS && sum.happened.refused > SEEDS / 10, "{sum:?}");
    println!("{sum:?}");
}

#[test]
fn actors_that_move_over_broken_connections_live_once_and_get_each_message_once_under_every_seed() {
    let mut sum = Sum::default();
    for seed in 0..SEEDS {
        let play = Play::new(seed, (1, 2, 25), true);
        play.storm();
        play.check_all(seed as usize % 3);
        sum.add(&play);
    }
    assert!(sum.happened.cuts > SEEDS && sum.moves > 10 * SEEDS, "{sum:?}");
    println!("{sum:?}");
}
