//! The scenarios of the categories of *Run, Actor, Run* (§5.1): their parallelism.
//!
//! No clock is read. A smaller form of each scenario is played on as many processors as it has actors. Each message is handled as
//! soon as it has arrived and its actor is free: a handler takes one unit of time, and a move takes the time of its work in
//! addition, at [`STEPS_PER_UNIT`]. The sum of the handlers' time is the *work*, the time of the last one the *span*, and their
//! quotient the *parallelism*: no number of workers makes a run faster than that. It is the same on every machine.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playhouse::System;
use playhouse_bench::chatapp::{BuiltIn, Options, Report, Scenario, run, run_in};
use playhouse_executor::{Deliveries, Delivery, Driver, RawAddress};

/// Steps of busy work that take as long as a handler that only sends messages: about 50 ns.
const STEPS_PER_UNIT: u64 = 50;

/// A message that was handled.
#[derive(Clone, Copy)]
struct Handled {
    from: u64,
    until: u64,
    actor: usize,
    message: &'static str,
    /// Turns that had ended: negative in the set-up.
    after: i64,
    /// The number of messages that its handler has sent.
    sent: usize,
}

/// Everything runs as soon as it can.
struct Unlimited {
    deliveries: Deliveries,
    /// The time of a move.
    move_units: u64,
    /// Turns that have ended.
    ended: Arc<AtomicI64>,
    actors: HashMap<RawAddress, usize>,
    parts: Vec<Part>,
    /// The times at which actors can begin with messages. Outdated entries are skipped.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    handled: Vec<Handled>,
}

struct Part {
    kind: &'static str,
    /// The creator of each actor.
    creator: Option<usize>,
    free: u64,
    /// By time of arrival, and then by number.
    mail: BinaryHeap<Reverse<(u64, u64, Mail)>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Mail {
    message: &'static str,
}

/// The last part of the path of a type.
fn short(path: &'static str) -> &'static str {
    path.rsplit("::").next().unwrap_or(path)
}

impl Unlimited {
    /// Takes the messages that `sender` has sent until `now`, and their number. Started actors exist at once.
    fn take_in(&mut self, sender: Option<usize>, now: u64) -> usize {
        let mut sent = 0;
        loop {
            let new = self.deliveries.collect();
            if new.is_empty() {
                return sent;
            }
            for Delivery { number, to, is_control, message, actor, .. } in new {
                let parts = &mut self.parts;
                let at = *self.actors.entry(to).or_insert_with(|| {
                    parts.push(Part { kind: short(actor), creator: sender, free: now, mail: BinaryHeap::new() });
                    parts.len() - 1
                });
                if is_control {
                    self.deliveries.deliver(number);
                } else {
                    sent += 1;
                    let part = &mut self.parts[at];
                    part.mail.push(Reverse((now, number, Mail { message: short(message) })));
                    self.due.push(Reverse((now.max(part.free), at)));
                }
            }
        }
    }

    /// Returns the time at which the actor can begin with its first message.
    fn due(&self, actor: usize) -> Option<u64> {
        let Reverse((come, ..)) = self.parts[actor].mail.peek()?;
        Some((*come).max(self.parts[actor].free))
    }

    fn run(&mut self, done: &mut dyn FnMut() -> bool) {
        let now = self.handled.iter().map(|handled| handled.until).max().unwrap_or(0);
        self.take_in(None, now);
        while !done() {
            let Some(Reverse((from, actor))) = self.due.pop() else { return };
            if self.due(actor) != Some(from) {
                continue;
            }
            let Some(Reverse((_, number, Mail { message }))) = self.parts[actor].mail.pop() else { continue };
            let after = self.ended.load(Relaxed);
            self.deliveries.deliver(number);
            let until = from + if message == "MakeMove" { self.move_units } else { 1 };
            self.parts[actor].free = until;
            let sent = self.take_in(Some(actor), until);
            self.handled.push(Handled { from, until, actor, message, after, sent });
            if let Some(due) = self.due(actor) {
                self.due.push(Reverse((due, actor)));
            }
        }
    }
}

struct Conductor(Mutex<Unlimited>);

impl Driver for Conductor {
    fn run(&self, time: Option<Duration>, done: &mut dyn FnMut() -> bool) {
        assert_eq!(time, None, "no program here lets a time pass");
        self.0.lock().unwrap().run(done);
    }
}

/// The parallelism of a scenario on as many processors as it has actors, in its turns.
struct Shape {
    report: Report,
    kinds: Vec<&'static str>,
    creators: Vec<Option<usize>>,
    handled: Vec<Handled>,
}

impl Shape {
    fn of(scenario: &Scenario) -> Shape {
        let system = System::builder().workers(1).stages(1).simulated(0).start().unwrap();
        let ended = Arc::new(AtomicI64::new(-1));
        let mean: f64 = scenario.work.iter().map(|work| work.share / 100.0 * f64::from(work.amount)).sum();
        let conductor = Arc::new(Conductor(Mutex::new(Unlimited {
            deliveries: system.core().deliveries().unwrap(),
            move_units: 1 + mean as u64 / STEPS_PER_UNIT,
            ended: Arc::clone(&ended),
            actors: HashMap::new(),
            parts: Vec::new(),
            due: BinaryHeap::new(),
            handled: Vec::new(),
        })));
        system.core().set_driver(Arc::clone(&conductor) as Arc<dyn Driver>);
        // The time of the work of moves is counted, and the work is not done.
        let idle = Scenario { work: Vec::new(), ..scenario.clone() };
        let report = run_in(&system, &idle, move |progress| ended.store(progress.turn.into(), Relaxed)).unwrap();
        assert!(report.check.passed && report.turns == scenario.turns, "{:?}", report.check.problems);
        let all = conductor.0.lock().unwrap();
        let in_turns = |handled: &&Handled| (0..i64::from(scenario.turns)).contains(&handled.after);
        let handled: Vec<Handled> = all.handled.iter().filter(in_turns).copied().collect();
        assert!(handled.len() as u64 >= report.messages_in_turns - u64::from(scenario.turns), "all are looked at");
        Shape {
            report,
            kinds: all.parts.iter().map(|part| part.kind).collect(),
            creators: all.parts.iter().map(|part| part.creator).collect(),
            handled,
        }
    }

    /// Returns the largest number of handlers at one time.
    fn at_once(&self, which: impl Fn(&Handled) -> bool) -> usize {
        let mut edges: Vec<(u64, i64)> = Vec::new();
        for handled in self.handled.iter().filter(|handled| which(handled)) {
            edges.extend([(handled.from, 1), (handled.until, -1)]);
        }
        // A handler that ends makes room for one that begins at the same time.
        edges.sort_unstable();
        let (mut now, mut most) = (0, 0);
        for (_, edge) in edges {
            now += edge;
            most = most.max(now);
        }
        most as usize
    }

    /// Returns the largest number of clients with a move at one time.
    fn moving(&self) -> usize {
        self.at_once(|handled| handled.message == "MakeMove")
    }

    fn work(&self) -> u64 {
        self.handled.iter().map(|handled| handled.until - handled.from).sum()
    }

    fn span(&self) -> u64 {
        let begins = self.handled.iter().map(|handled| handled.from).min().unwrap();
        self.handled.iter().map(|handled| handled.until).max().unwrap() - begins
    }

    fn parallelism(&self) -> f64 {
        self.work() as f64 / self.span() as f64
    }

    /// Returns the share of the messages of the busiest sender.
    fn master_share(&self) -> f64 {
        let mut sent: HashMap<usize, usize> = HashMap::new();
        self.handled.iter().for_each(|handled| *sent.entry(handled.actor).or_default() += handled.sent);
        *sent.values().max().unwrap() as f64 / sent.values().sum::<usize>() as f64
    }

    /// Returns the number of actors with this number of ancestors.
    fn generations(&self) -> Vec<usize> {
        let mut sizes = Vec::new();
        for mut actor in 0..self.kinds.len() {
            let mut generation = 0;
            while let Some(creator) = self.creators[actor] {
                (actor, generation) = (creator, generation + 1);
            }
            sizes.resize(sizes.len().max(generation + 1), 0);
            sizes[generation] += 1;
        }
        sizes
    }
}

fn built_in(name: &str) -> Scenario {
    BuiltIn::find(name).unwrap().scenario().unwrap()
}

// GUARANTEE: ChatApp's categories
#[test]
fn in_sequential_one_actor_is_runnable_at_any_instant() {
    let mut scenario = built_in("sequential");
    // The client has a chat to post to sooner than in one of ten thousand turns.
    (scenario.turns, scenario.behaviour.new_chat, scenario.behaviour.post) = (400, 1.0, 99.0);
    let shape = Shape::of(&scenario);
    assert!(shape.report.moves.post > 200, "{:?}", shape.report.moves);
    assert_eq!(shape.at_once(|_| true), 1);
    assert_eq!(shape.work(), shape.span());
}

// GUARANTEE: ChatApp's categories
#[test]
fn in_constant_a_fixed_number_of_actors_works_however_long_it_goes_on() {
    let scenario = built_in("constant");
    let clients = scenario.clients as usize;
    assert_eq!(clients, 8);
    for turns in [30, 60, 240] {
        let shape = Shape::of(&Scenario { turns, ..scenario.clone() });
        assert_eq!(shape.moving(), clients, "{turns} turns");
        // Idle clients count, too: each client has at most one busy chat, and the directory and the world are busy.
        assert!(shape.at_once(|_| true) <= 2 * clients + 2, "{turns} turns");
        let parallelism = shape.parallelism();
        assert!(parallelism > 7.9 && parallelism <= 8.0, "{turns} turns: {parallelism}");
    }
}

// GUARANTEE: ChatApp's categories
#[test]
fn in_master_worker_one_actor_deals_out_work_with_the_set_parallelism() {
    let scenario = built_in("master-worker");
    let of = |clients, amount| {
        let mut scenario = Scenario { clients, turns: 4, ..scenario.clone() };
        scenario.work[0].amount = amount;
        Shape::of(&scenario)
    };
    let mut reached = Vec::new();
    for clients in [50, 100, 400] {
        let shape = of(clients, 1_000_000);
        assert_eq!(shape.moving(), clients as usize);
        let parallelism = shape.parallelism() / f64::from(clients);
        assert!(parallelism > 0.95, "{clients} clients with much work: {parallelism} of them");
        // World, one directory, its clients; no other actor ever.
        assert_eq!(shape.generations(), [1, 1, clients as usize]);
        // Clients say that they are done, and nothing to each other: every other message is the master's.
        let master = shape.master_share();
        assert!((0.49..0.52).contains(&master), "{master}");
        let dull = |handled: &Handled| ["Begin", "MakeMove", "Done", "PhaseDone"].contains(&handled.message);
        assert!(shape.handled.iter().all(dull));
        reached.push(of(clients, 1_000).parallelism());
    }
    // With the scenario's amount the master is the limit: its parallelism is the number of jobs of 21 units per unit of the
    // master's handler.
    assert!(reached[2] > reached[0] && reached[2] < 23.0, "{reached:?}");
    // Without work there is hardly any parallelism.
    assert!(of(400, 0).parallelism() < 3.0);
}

// GUARANTEE: ChatApp's categories
#[test]
fn in_divide_and_conquer_work_spreads_over_a_tree_that_grows_downwards() {
    let of = |clients: u32| {
        let mut scenario = built_in("divide-and-conquer");
        // As many friends and clients per directory as in the large one.
        scenario.connectedness.befriend *= f64::from(scenario.clients) / f64::from(clients);
        scenario.directories = clients / 20;
        (scenario.clients, scenario.turns) = (clients, 8);
        Shape::of(&scenario)
    };
    let shape = of(400);
    // World, directories, clients, chats: each generation is larger than the one before, and no actor distributes all of the
    // work.
    let generations = shape.generations();
    assert_eq!(generations[..3], [1, 20, 400]);
    assert!(generations.len() == 4 && generations[3] > 2 * 400, "{generations:?}");
    assert!(shape.master_share() < 0.05, "{}", shape.master_share());
    // Most chats end while others are started: as many leave as start one.
    let growth = shape.report.growth;
    assert!(growth.chats_closed * 10 > growth.chats_started * 4 && growth.leaves >= growth.chats_started, "{growth:?}");
    // All actors of a generation run at once; parallelism grows with the tree.
    assert_eq!(shape.moving(), 400);
    let (small, large) = (of(100).parallelism(), shape.parallelism());
    assert!(large > 2.5 * small, "{small}, {large}");
}

#[test]
fn in_growing_nothing_ever_ends() {
    let of = |turns| {
        let mut scenario = built_in("growing");
        (scenario.clients, scenario.connectedness.befriend, scenario.turns) = (100, 20.0, turns);
        run(&scenario, &Options { workers: Some(2), ..Options::default() }, |_| ()).unwrap()
    };
    let (short, long) = (of(40), of(80));
    assert_eq!((long.growth.chats_closed, long.growth.leaves), (0, 0));
    assert!(long.growth.memberships > short.growth.memberships * 3 / 2, "{:?}, {:?}", short.growth, long.growth);
    let per_turn = |report: &Report| report.messages_in_turns / u64::from(report.turns);
    assert!(per_turn(&long) > per_turn(&short), "{} {}", per_turn(&short), per_turn(&long));
}
