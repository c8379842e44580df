//! Theaters under many seeds: links that break, actors that migrate, theaters that are killed or evacuated.
//!
//! Counts over all seeds show that the faults did happen. A failing seed is printed; it fails again each time.

mod evacuated;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::seeds::Seed;
use playhouse_actor::*;
use playhouse_executor::Choices;
use playhouse_theater::{NetworkStats, Simulation, Theater};
use serde::{Deserialize, Serialize};

/// Returns the number of seeds of each test.
fn seeds() -> u64 {
    crate::seeds::or(250)
}

/// One in this number of messages of a writer to a ledger is urgent. Urgent messages have an order of their own.
const URGENT_EVERY: u64 = 4;
/// Added to the writer's number in urgent messages.
const URGENT: u32 = 1_000;
/// The time for which connections break by chance.
const STORM: Duration = Duration::from_millis(500);
/// Longer than chance separates two theaters.
const LOST_AFTER: Duration = Duration::from_secs(10);

// -- the census of ledgers ------------------------------------------------------------------------------------------------

/// The locations of the ledgers, by their own reports. A simulation is one thread.
#[derive(Default)]
struct Census {
    /// The systems in which each ledger lives. More than one system is one too many.
    lives: BTreeMap<u32, BTreeSet<u16>>,
    /// The system that each ledger was in before it left.
    left: BTreeMap<u32, u16>,
    /// The theaters that each ledger has wanted to go to since its arrival.
    queued: BTreeMap<u32, BTreeSet<SocketAddr>>,
    moves: u64,
    stays: u64,
    twice: Vec<u32>,
    /// The state that each child has started with last, as its number in the order of creation.
    started: BTreeMap<u32, u64>,
    /// Children that have started with a state older than their last one, and the two states.
    outdated: Vec<(u32, [u64; 2])>,
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

/// Keeps its messages by their senders, in order, and migrates now and then.
#[derive(Clone, Serialize, Deserialize)]
struct Ledger {
    id: u32,
    last: BTreeMap<u32, u64>,
    seen: BTreeSet<(u32, u64)>,
    /// Messages that came after a later one, or again.
    late: Vec<(u32, u64)>,
    again: Vec<(u32, u64)>,
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
        Ledger {
            id,
            last: BTreeMap::new(),
            seen: BTreeSet::new(),
            late: Vec::new(),
            again: Vec::new(),
            gaps: 0,
            tour,
            seed: u64::from(id),
            ticks: 0,
        }
    }
}

impl Actor for Ledger {
    fn started(&mut self, ctx: &mut Context<Self>) {
        CENSUS.with_borrow_mut(|census| census.lives(self.id));
        ctx.send_after(Duration::from_millis(5), Tick);
    }

    fn migrating(&mut self, _: &mut Context<Self>) {
        CENSUS.with_borrow_mut(|census| {
            census.lives.entry(self.id).or_default().remove(&here());
            census.left.insert(self.id, here());
        });
    }

    fn migrated(&mut self, _: &mut Context<Self>) {
        CENSUS.with_borrow_mut(|census| {
            census.left.remove(&self.id);
            census.queued.remove(&self.id);
            census.moves += 1;
            census.lives(self.id);
        });
    }

    fn migration_failed(&mut self, _: MigrateError, _: &mut Context<Self>) {
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
        if !self.seen.insert((entry.from, entry.number)) {
            self.again.push((entry.from, entry.number));
        } else if entry.number < *last {
            self.late.push((entry.from, entry.number));
        } else {
            self.gaps += entry.number - *last - 1;
            *last = entry.number;
        }
        let mut choices = Choices::new(self.seed);
        self.seed = choices.next();
        if !self.tour.is_empty() && choices.one_in(6) {
            let to = self.tour[choices.below(self.tour.len())];
            CENSUS.with_borrow_mut(|census| census.queued.entry(self.id).or_default().insert(to));
            ctx.migrate_to(to);
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
    /// The ends that it was notified of.
    lost: Vec<(u32, StopReason)>,
}

impl Actor for Writer {
    fn started(&mut self, ctx: &mut Context<Self>) {
        for ledger in self.ledgers.clone() {
            ctx.watch(ledger);
        }
    }

    fn terminated(&mut self, terminated: Terminated, _: &mut Context<Self>) {
        let who = self.ledgers.iter().position(|ledger| ledger.id() == terminated.who);
        self.lost.push((who.expect("it is watched") as u32, terminated.reason));
    }
}

struct Write;
impl Message for Write {
    type Reply = ();
}

/// Answered with: asked, answered, and errors.
struct Report;
type Reported = (u64, u64, Vec<AskError>, Vec<(u32, StopReason)>);
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

fn start(net: &Simulation, address: impl ToString) -> Theater {
    let system = System::builder().workers(2).stages(8);
    let builder = Theater::builder().listen(address.to_string()).system(system);
    net.theater(builder.lost_after(LOST_AFTER)).unwrap()
}

/// Three theaters with ledgers and writers: each writer writes into each ledger.
struct Play {
    net: Simulation,
    theaters: Vec<Theater>,
    /// The references of each theater.
    ledgers: Vec<Vec<ActorRef<Ledger>>>,
    writers: Vec<ActorRef<Writer>>,
    total: u64,
    _seed: Seed,
}

impl Play {
    /// Starts the given numbers of roaming ledgers, immobile ledgers, and writers in each theater.
    fn new(seed: u64, (roam, stay, writers): (u32, u32, u32), total: u64) -> Play {
        CENSUS.take();
        let net = Simulation::new(seed);
        let theaters: Vec<Theater> = (0..3).map(|_| start(&net, "127.0.0.1:0")).collect();
        let tour: Vec<SocketAddr> = theaters.iter().filter_map(Theater::address).collect();
        let ledgers = roam + stay;
        let mut known = vec![Vec::new(); 3];
        for (at, home) in theaters.iter().enumerate() {
            for nth in 0..ledgers {
                let id = at as u32 * ledgers + nth;
                let ledger = home.system().spawn(Ledger::new(id, if nth < roam { tour.clone() } else { Vec::new() }));
                home.publish(format!("ledger {id}"), ledger).unwrap();
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

    /// Breaks connections for some time, and heals them.
    fn storm(&self) {
        self.net.break_by_chance(Duration::from_millis(10));
        self.net.run_for(STORM);
        self.net.calm();
        self.net.run_until_idle();
    }

    /// Returns the messages of the ledgers, each asked from one theater.
    fn read(&self, from: usize) -> Vec<Result<Ledger, AskError>> {
        self.ledgers[from].iter().map(|ledger| ledger.ask(Read).wait()).collect()
    }

    fn reports(&self) -> Vec<Reported> {
        self.writers.iter().map(|writer| writer.ask(Report).wait().unwrap()).collect()
    }

    /// Checks that each message was handled once, in order, each question was answered, and each ledger is alive once.
    fn check_all(&self, from: usize) {
        for ledger in self.read(from) {
            let ledger = ledger.unwrap();
            assert_eq!((&ledger.late, &ledger.again), (&vec![], &vec![]), "ledger {}", ledger.id);
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

    /// Checks the number of lives of each ledger.
    fn check_census(&self, expected: impl Fn(u32) -> usize) {
        CENSUS.with_borrow(|census| {
            assert_eq!(census.twice, Vec::<u32>::new());
            for (ledger, lives) in &census.lives {
                assert_eq!(lives.len(), expected(*ledger), "ledger {ledger}: {lives:?}");
            }
        });
    }
}

/// The events of all seeds.
#[derive(Debug, Default)]
struct Sum {
    happened: NetworkStats,
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

// GUARANTEE: Order and delivery over broken connections
// GUARANTEE: A network failure is a broken connection
#[test]
fn broken_connections_lose_repeat_and_reorder_nothing_under_every_seed() {
    let mut sum = Sum::default();
    for seed in 0..seeds() {
        let play = Play::new(seed, (0, 1, 2), 40);
        play.storm();
        play.check_all(seed as usize % 3);
        sum.add(&play);
    }
    assert!(sum.happened.cuts > 2 * seeds() && sum.happened.refused > seeds() / 10, "{sum:?}");
}

// GUARANTEE: Order holds while actors migrate
// GUARANTEE: Alive once
#[test]
fn actors_that_move_over_broken_connections_live_once_and_get_each_message_once_under_every_seed() {
    let mut sum = Sum::default();
    for seed in 0..seeds() {
        let play = Play::new(seed, (1, 0, 2), 25);
        play.storm();
        play.check_all(seed as usize % 3);
        sum.add(&play);
    }
    assert!(sum.happened.cuts > seeds() && sum.moves > 10 * seeds(), "{sum:?}");
}

// GUARANTEE: A paused process does not declare its peers lost
#[test]
fn clocks_that_jump_have_nobody_given_up_under_every_seed() {
    let mut sum = Sum::default();
    for seed in 0..seeds() {
        let play = Play::new(seed, (1, 0, 2), 25);
        play.net.break_by_chance(Duration::from_millis(10));
        for _ in 0..20 {
            play.net.run_for(Duration::from_micros(play.net.choose(50_000) as u64));
            let jump = Duration::from_millis(play.net.choose(3 * LOST_AFTER.as_millis() as usize) as u64);
            play.net.jump(&play.theaters[play.net.choose(3)], jump);
        }
        play.net.calm();
        play.net.run_until_idle();
        play.check_all(seed as usize % 3);
        sum.add(&play);
    }
    assert!(sum.happened.cuts > seeds() && sum.moves > 10 * seeds(), "{sum:?}");
}

// GUARANTEE: A lost theater is reported
// GUARANTEE: Alive once
#[test]
fn a_killed_theater_takes_only_its_own_actors_under_every_seed() {
    let mut sum = Sum::default();
    let (mut lost, mut went_on) = (0, 0);
    let (mut handled, mut late) = (0, 0);
    for seed in 0..seeds() {
        let play = Play::new(seed, (2, 1, 1), 24);
        let net = &play.net;
        net.break_by_chance(Duration::from_millis(20));
        net.run_for(Duration::from_micros(net.choose(60_000) as u64));
        let killed = net.choose(3);
        let system = play.theaters[killed].system().core().id();
        let address = play.theaters[killed].address().unwrap();
        let (there, on_the_way) = CENSUS.with_borrow_mut(|census| {
            let there = census.lives.iter_mut().filter_map(|(ledger, lives)| lives.remove(&system).then_some(*ledger));
            let there: BTreeSet<u32> = there.collect();
            let was_to_come = |ledger| census.queued.get(ledger).is_some_and(|queued| queued.contains(&address));
            let left = census.left.iter().filter(|(ledger, from)| **from == system || was_to_come(*ledger));
            (there, left.map(|(ledger, _)| *ledger).collect::<BTreeSet<u32>>())
        });
        net.kill(&play.theaters[killed]);
        if net.choose(2) == 0 {
            // Its successor is another theater.
            start(net, address);
        }
        net.run_for(STORM);
        net.calm();
        net.run_until_idle();

        // An actor that was migrating to or from the killed theater may have stayed or arrived.
        let (alive, dead): (Vec<u32>, Vec<u32>) = CENSUS.with_borrow(|census| {
            assert_eq!(census.twice, Vec::<u32>::new());
            census.lives.keys().partition(|ledger| !census.lives[ledger].is_empty())
        });
        for ledger in &dead {
            assert!(there.contains(ledger) || on_the_way.contains(ledger), "ledger {ledger} was elsewhere");
        }
        lost += dead.len();
        went_on += alive.iter().filter(|ledger| there.contains(ledger) || on_the_way.contains(ledger)).count();

        let survivors: Vec<usize> = (0..3).filter(|at| *at != killed).collect();
        for at in &survivors {
            let (asked, answered, failed, terminated) = play.writers[*at].ask(Report).wait().unwrap();
            assert_eq!(asked, answered + failed.len() as u64, "a question is open");
            for ledger in alive.iter().chain(&dead) {
                let told = terminated.iter().filter(|(who, _)| who == ledger).count();
                assert_eq!(
                    told,
                    usize::from(dead.contains(ledger)),
                    "of ledger {ledger} in theater {at}: {terminated:?}"
                );
            }
        }
        for (at, theater) in survivors.iter().map(|at| (*at, &play.theaters[*at])) {
            for ledger in &alive {
                let lives_in_this_theater =
                    |census: &mut Census| census.lives[ledger].contains(&theater.system().core().id());
                if !CENSUS.with_borrow_mut(lives_in_this_theater) {
                    continue;
                }
                let known = play.ledgers[at][*ledger as usize];
                let read = known.ask(Read).wait().unwrap();
                assert_eq!(read.again, vec![], "ledger {ledger}");
                handled += read.seen.len();
                late += read.late.len();
                // Messages over the killed theater are lost with it. Messages that had passed it come late if the route behind it
                // is broken at that time.
                if read.tour.is_empty() {
                    assert_eq!((read.gaps, read.late), (0, vec![]), "ledger {ledger}");
                    for writer in survivors.iter().map(|writer| *writer as u32) {
                        let urgent = play.total / URGENT_EVERY;
                        let all = (Some(&(play.total - urgent)), Some(&urgent));
                        assert_eq!((read.last.get(&writer), read.last.get(&(URGENT + writer))), all, "ledger {ledger}");
                    }
                }
            }
        }
        sum.add(&play);
    }
    assert!(sum.happened.kills == seeds() && lost > seeds() as usize && went_on > 0 && sum.stays > 0, "{sum:?}");
    assert!(handled > 1_000 * late, "{late} of {handled}");
}

// GUARANTEE: Replay of theaters
#[test]
fn the_same_seed_gives_the_same_run_to_the_last_byte_and_moment() {
    let run = |seed| {
        let play = Play::new(seed, (1, 1, 1), 10);
        // Its messages do not depend on the number of children that other actors have had in this process.
        let [home, there] = [0, 1].map(|at| &play.theaters[at]);
        let supervisor = home.system().spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
        let tour = vec![there.address().unwrap()];
        let roamer = move || Roamer { id: 0, incarnation: 1, tour: tour.clone(), seed, steps: 0 };
        supervisor.ask(ChildSpec::new("child", roamer)).wait().unwrap().unwrap();
        play.storm();
        (play.net.trace(), play.net.now(), play.net.happened())
    };
    let first: Vec<_> = (0..100).map(run).collect();
    let again: Vec<_> = (0..100).rev().map(run).collect();
    assert_eq!(first, again.into_iter().rev().collect::<Vec<_>>());
    let different: BTreeSet<u64> = first.iter().map(|(trace, ..)| *trace).collect();
    assert_eq!(different.len(), first.len());
}

/// Knows a ledger.
struct Knows(ActorRef<Ledger>);

#[derive(Serialize, Deserialize)]
struct Whom;
remote_message!(Whom -> ActorRef<Ledger>);

impl Actor for Knows {}
impl Handler<Whom> for Knows {
    fn handle(&mut self, _: Whom, _: &mut Context<Self>) -> ActorRef<Ledger> {
        self.0
    }
}
remote!(Knows: Whom);

// -- supervised actors that roam --------------------------------------------------------------------------------------------

/// Migrates and fails now and then.
#[derive(Serialize, Deserialize)]
struct Roamer {
    id: u32,
    incarnation: u64,
    tour: Vec<SocketAddr>,
    seed: u64,
    steps: u32,
}

#[derive(Clone, Serialize, Deserialize)]
struct Step;
remote_message!(Step -> ());

/// Answered with the number of its incarnation.
#[derive(Serialize, Deserialize)]
struct WhichLife;
remote_message!(WhichLife -> u64);

/// Number of its steps in one incarnation.
const STEPS: u32 = 12;

impl Roamer {
    fn lives(&self) {
        CENSUS.with_borrow_mut(|census| census.lives(self.id));
    }
}

impl Actor for Roamer {
    fn started(&mut self, ctx: &mut Context<Self>) {
        self.lives();
        CENSUS.with_borrow_mut(|census| {
            let last = census.started.entry(self.id).or_default();
            if self.incarnation < *last {
                census.outdated.push((self.id, [*last, self.incarnation]));
            }
            *last = self.incarnation;
        });
        ctx.send_after(Duration::from_millis(3), Step);
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        CENSUS.with_borrow_mut(|census| census.lives.entry(self.id).or_default().remove(&here()));
    }

    fn migrating(&mut self, _: &mut Context<Self>) {
        CENSUS.with_borrow_mut(|census| census.lives.entry(self.id).or_default().remove(&here()));
    }

    fn migrated(&mut self, _: &mut Context<Self>) {
        CENSUS.with_borrow_mut(|census| census.moves += 1);
        self.lives();
    }

    fn migration_failed(&mut self, _: MigrateError, _: &mut Context<Self>) {
        CENSUS.with_borrow_mut(|census| census.stays += 1);
        self.lives();
    }
}
impl Handler<Step> for Roamer {
    fn handle(&mut self, _: Step, ctx: &mut Context<Self>) {
        let mut choices = Choices::new(self.seed);
        self.seed = choices.next();
        self.steps += 1;
        if self.steps < STEPS {
            ctx.send_after(Duration::from_millis(3), Step);
        }
        if choices.one_in(4) {
            ctx.migrate_to(self.tour[choices.below(self.tour.len())]);
        } else if choices.one_in(6) {
            ctx.fail(std::io::Error::other("on purpose"));
        }
    }
}
impl Handler<WhichLife> for Roamer {
    fn handle(&mut self, _: WhichLife, _: &mut Context<Self>) -> u64 {
        self.incarnation
    }
}
remote!(mobile Roamer: Step, WhichLife);

// GUARANTEE: Children migrate
#[test]
fn supervised_actors_that_move_live_once_and_are_restarted_wherever_they_are_under_every_seed() {
    const CHILDREN: u32 = 3;
    let (mut restarts, mut moves, mut stays, mut lost) = (0, 0, 0, 0);
    for seed in 0..seeds() {
        CENSUS.take();
        let _seed = Seed(seed);
        let net = Simulation::new(seed);
        let theaters: Vec<Theater> = (0..3).map(|_| start(&net, "127.0.0.1:0")).collect();
        let tour: Vec<SocketAddr> = theaters.iter().filter_map(Theater::address).collect();
        let policy =
            if seed.is_multiple_of(2) { SupervisionPolicy::one_for_one() } else { SupervisionPolicy::one_for_all() };
        let policy = policy.max_restarts(usize::MAX, Duration::from_secs(1));
        let supervisor = theaters[0].system().spawn(Supervisor::new(policy));
        let made = Arc::new(Mutex::new([0; CHILDREN as usize]));
        let first: Vec<ActorRef<Roamer>> = (0..CHILDREN)
            .map(|id| {
                let (made, tour) = (Arc::clone(&made), tour.clone());
                let child = ChildSpec::new(id.to_string(), move || {
                    let mut made = made.lock().unwrap();
                    let incarnation = &mut made[id as usize];
                    *incarnation += 1;
                    Roamer {
                        id,
                        incarnation: *incarnation,
                        tour: tour.clone(),
                        seed: seed ^ u64::from(id) << 32 ^ *incarnation,
                        steps: 0,
                    }
                });
                supervisor.ask(child).wait().unwrap().unwrap()
            })
            .collect();
        net.break_by_chance(Duration::from_millis(20));
        let killed = (net.choose(2) == 0).then(|| 1 + net.choose(2));
        if let Some(killed) = killed {
            net.run_for(Duration::from_micros(net.choose(80_000) as u64));
            let system = theaters[killed].system().core().id();
            CENSUS
                .with_borrow_mut(|census| census.lives.values_mut().for_each(|lives| lives.retain(|at| *at != system)));
            net.kill(&theaters[killed]);
        }
        net.run_for(STORM);
        net.calm();
        net.run_for(3 * LOST_AFTER);
        let made = made.lock().unwrap().map(|made: u64| made);
        for (id, first) in (0..CHILDREN).zip(first) {
            let child = supervisor.ask(FindChild::<Roamer>::new(id.to_string())).wait().unwrap();
            let child = child.unwrap_or_else(|| panic!("child {id} is no more"));
            // A new state may have been made and lost in transit, with a theater.
            let incarnation = child.ask(WhichLife).wait();
            assert!(
                incarnation.as_ref().is_ok_and(|incarnation| *incarnation <= made[id as usize]),
                "child {id}: {incarnation:?} of {made:?}"
            );
            restarts += made[id as usize] - 1;
            if killed.is_none() {
                assert_eq!(child, first, "child {id}");
            }
            lost += u64::from(child != first);
        }
        CENSUS.with_borrow(|census| {
            assert_eq!((&census.twice[..], &census.outdated[..]), (&[][..], &[][..]));
            for (child, lives) in &census.lives {
                assert_eq!(lives.len(), 1, "child {child}: {lives:?}");
            }
            moves += census.moves;
            stays += census.stays;
        });
        supervisor.stop();
        net.run_for(LOST_AFTER);
        CENSUS.with_borrow(|census| {
            assert!(
                census.lives.values().all(BTreeSet::is_empty),
                "killed {killed:?}: {:?} of {:?}",
                census.lives,
                theaters.iter().map(|theater| theater.system().core().id()).collect::<Vec<_>>()
            )
        });
    }
    assert!(
        restarts > 5 * seeds() && moves > 5 * seeds() && stays > 0 && lost > seeds() / 10,
        "{restarts} {moves} {stays} {lost}"
    );
}
