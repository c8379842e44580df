//! A flood slows its senders: memory stays bounded, nothing is lost, nothing deadlocks, others go on.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use playhouse::prelude::*;
use support::{Adder, Increment, LIMIT, finishes, on_stage};

/// In-flight messages, counted by the test.
#[derive(Clone, Default)]
struct InFlight(Arc<(AtomicU64, AtomicU64)>);

impl InFlight {
    fn sent(&self, n: u64) {
        let now = self.0.0.fetch_add(n, Ordering::Relaxed) + n;
        self.0.1.fetch_max(now, Ordering::Relaxed);
    }

    fn handled(&self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        self.0.0.load(Ordering::Relaxed)
    }

    fn peak(&self) -> u64 {
        self.0.1.load(Ordering::Relaxed)
    }
}

/// The messages of 2 workers at the high-water mark, with some 40 bytes each, and the messages sent before a sender
/// notices.
const BOUND: u64 = 400_000;

fn spin(microseconds: u64) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(microseconds) {
        std::hint::spin_loop();
    }
}

struct Consumer {
    work_us: u64,
    flow: InFlight,
    next: u64,
    handled: Arc<AtomicU64>,
    /// The next consumer, if there is one.
    to: Option<(ActorRef<Consumer>, InFlight)>,
}

impl Actor for Consumer {}

#[derive(Message, Clone, Copy)]
struct Item(u64);

impl Handler<Item> for Consumer {
    fn handle(&mut self, Item(n): Item, _: &mut Context<Self>) {
        assert_eq!(n, self.next, "in order, none lost");
        self.next += 1;
        if self.work_us > 0 {
            spin(self.work_us);
        }
        self.flow.handled();
        self.handled.fetch_add(1, Ordering::Relaxed);
        if let Some((to, flow)) = &self.to {
            flow.sent(1);
            to.tell(Item(n));
        }
    }
}

struct Producer {
    to: ActorRef<Consumer>,
    flow: InFlight,
    next: u64,
    end: u64,
    /// Items sent by each handler.
    batch: u64,
    stop: Arc<AtomicBool>,
}

impl Actor for Producer {}

#[derive(Message, Clone, Copy)]
struct Produce;

impl Handler<Produce> for Producer {
    fn handle(&mut self, _: Produce, ctx: &mut Context<Self>) {
        if self.next >= self.end || self.stop.load(Ordering::Relaxed) {
            return;
        }
        self.flow.sent(self.batch);
        for _ in 0..self.batch {
            self.to.tell(Item(self.next));
            self.next += 1;
        }
        ctx.this().tell(Produce);
    }
}

fn pinned(workers: usize) -> System {
    System::builder().workers(workers).stages(4 * workers).stealing(Stealing::None).start().unwrap()
}

struct Flood {
    flow: InFlight,
    handled: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

/// A producer on stage 1 (worker 1), a consumer on stage 0 (worker 0).
fn flood(system: &System, work_us: u64, end: u64) -> Flood {
    flood_by(system, work_us, end, 100)
}

fn flood_by(system: &System, work_us: u64, end: u64, batch: u64) -> Flood {
    let (flow, handled, stop) = (InFlight::default(), Arc::default(), Arc::default());
    let consumer = Consumer { work_us, flow: flow.clone(), next: 0, handled: Arc::clone(&handled), to: None };
    let to = system.spawn_with(on_stage(0), consumer);
    let producer = Producer { to, flow: flow.clone(), next: 0, end, batch, stop: Arc::clone(&stop) };
    system.spawn_with(on_stage(1), producer).tell(Produce);
    Flood { flow, handled, stop }
}

// GUARANTEE: Bounded backlog
#[test]
fn a_flood_keeps_the_backlog_bounded_and_loses_nothing() {
    finishes(|| {
        let system = pinned(2);
        let flood = flood(&system, 2, 1_000_000);
        system.run_until_idle();
        assert_eq!(flood.handled.load(Ordering::Relaxed), 1_000_000);
        assert!(flood.flow.peak() < BOUND, "{} messages at one time", flood.flow.peak());
        assert!(system.stats().total.mutes > 0);
        system.shutdown().unwrap();
    });
}

#[test]
fn the_backlog_of_a_consumer_that_blocks_stays_bounded() {
    finishes(|| {
        let system = pinned(2);
        let flow = InFlight::default();
        let (gate, turnstile) = support::Gate::new();
        let blocker = system.spawn_with(on_stage(0), support::Puppet);
        let handled = Arc::default();
        let consumer = Consumer { work_us: 0, flow: flow.clone(), next: 0, handled: Arc::clone(&handled), to: None };
        let to = system.spawn_with(on_stage(0), consumer);
        // The consumer's stage is blocked for longer than a takeover takes.
        blocker.tell(support::Do::this(move |_| turnstile.pass()));
        gate.wait_entered();
        let stop = Arc::default();
        let producer = Producer { to, flow: flow.clone(), next: 0, end: 4_000_000, batch: 100, stop };
        system.spawn_with(on_stage(1), producer).tell(Produce);
        // Until nothing more is sent, for the time of many asks.
        let adder = system.spawn_with(on_stage(2), Adder);
        let (mut quiet, mut last) = (0, 0);
        let start = Instant::now();
        while quiet < 2_000 && start.elapsed() < LIMIT / 24 {
            assert_eq!(adder.ask(Increment(1)).wait(), Ok(2));
            quiet = if flow.now() == last && last > 0 { quiet + 1 } else { 0 };
            last = flow.now();
        }
        let peak = flow.peak();
        gate.open();
        system.run_until_idle();
        assert_eq!(handled.load(Ordering::Relaxed), 4_000_000);
        assert!(peak < BOUND, "{peak} messages waited for a consumer that was blocked");
        system.shutdown().unwrap();
    });
}

/// Tells itself and another actor of each item that comes.
struct Echoing {
    other: Option<ActorRef<Echoing>>,
    items: Arc<AtomicU64>,
    echoes: Arc<AtomicU64>,
}

impl Actor for Echoing {}

#[derive(Message)]
struct Other(ActorRef<Echoing>);

#[derive(Message)]
struct Echo;

impl Handler<Other> for Echoing {
    fn handle(&mut self, Other(other): Other, _: &mut Context<Self>) {
        self.other = Some(other);
    }
}

impl Handler<Item> for Echoing {
    fn handle(&mut self, _: Item, ctx: &mut Context<Self>) {
        self.items.fetch_add(1, Ordering::Relaxed);
        ctx.this().tell(Echo);
        self.other.unwrap().tell(Echo);
    }
}

impl Handler<Echo> for Echoing {
    fn handle(&mut self, _: Echo, _: &mut Context<Self>) {
        self.echoes.fetch_add(1, Ordering::Relaxed);
    }
}

/// Sends items until it gets the end message.
struct Feeder {
    to: ActorRef<Echoing>,
    left: u64,
    sent: Arc<AtomicU64>,
}

impl Actor for Feeder {}

impl Handler<Push> for Feeder {
    fn handle(&mut self, _: Push, ctx: &mut Context<Self>) {
        for _ in 0..100 {
            self.to.tell(Item(0));
        }
        self.sent.fetch_add(100, Ordering::Relaxed);
        self.left -= 100;
        if self.left > 0 {
            ctx.this().tell(Push);
        }
    }
}

/// Blocks the stage until the gate is opened.
fn block(system: &System, stage: u16) -> support::Gate {
    let (gate, turnstile) = support::Gate::new();
    let blocker = system.spawn_with(on_stage(stage), support::Puppet);
    blocker.tell(support::Do::this(move |_| turnstile.pass()));
    gate.wait_entered();
    gate
}

/// Waits until `count` has not changed for a while.
fn settles(count: &AtomicU64) {
    let (mut last, mut since) = (0, Instant::now());
    while last == 0 || since.elapsed() < Duration::from_millis(100) {
        let now = count.load(Ordering::Relaxed);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        std::thread::yield_now();
    }
}

// GUARANTEE: No deadlock by backpressure
#[test]
fn overloaded_actors_go_on_though_they_send_to_each_other_and_themselves() {
    const ITEMS: u64 = 300_000;
    finishes(|| {
        for stages in [[0, 4], [0, 1]] {
            let system = pinned(2);
            let gates = stages.map(|stage| block(&system, stage));
            let [items, echoes, sent]: [Arc<AtomicU64>; 3] = Default::default();
            let both = stages.map(|stage| {
                let (items, echoes) = (Arc::clone(&items), Arc::clone(&echoes));
                system.spawn_with(on_stage(stage), Echoing { other: None, items, echoes })
            });
            both[0].tell(Other(both[1]));
            both[1].tell(Other(both[0]));
            for (to, stage) in both.into_iter().zip([2, 3]) {
                let feeder = Feeder { to, left: ITEMS, sent: Arc::clone(&sent) };
                system.spawn_with(on_stage(stage), feeder).tell(Push);
            }
            settles(&sent);
            assert!(sent.load(Ordering::Relaxed) < 2 * ITEMS, "nobody was muted");
            gates.iter().for_each(support::Gate::open);
            system.run_until_idle();
            assert_eq!(items.load(Ordering::Relaxed), 2 * ITEMS);
            assert_eq!(echoes.load(Ordering::Relaxed), 4 * ITEMS);
            system.shutdown().unwrap();
        }
    });
}

// GUARANTEE: No deadlock by backpressure
#[test]
fn actors_that_flood_each_other_go_on_beside_one_that_waits_for_a_stuck_handler() {
    finishes(|| {
        let system = pinned(3);
        let gate = block(&system, 2);
        let [items, echoes, sent]: [Arc<AtomicU64>; 3] = Default::default();
        let stuck = system.spawn_with(on_stage(2), Echoing { other: None, items, echoes });
        stuck.tell(Other(stuck));
        // The third actor is on the worker of one of them.
        let feeder = Feeder { to: stuck, left: 300_000, sent: Arc::clone(&sent) };
        system.spawn_with(on_stage(3), feeder).tell(Push);
        settles(&sent);
        assert!(sent.load(Ordering::Relaxed) < 300_000, "nobody was muted");
        let [_, got] = mutual(&system, &[0, 1], 1000, 2);
        while got.load(Ordering::Relaxed) < 200_000 {
            std::thread::yield_now();
        }
        gate.open();
        system.run_until_idle();
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Bounded backlog
#[test]
fn a_pipeline_is_slowed_from_its_slow_end_to_its_start() {
    // The producer has a worker of its own, or shares the worker of the middle.
    for producer in [2, 4] {
        finishes(move || pipeline(producer));
    }
}

fn pipeline(producer_stage: u16) {
    let system = pinned(3);
    let flows: [InFlight; 2] = Default::default();
    let handled: Arc<AtomicU64> = Arc::default();
    let slow = Consumer { work_us: 4, flow: flows[1].clone(), next: 0, handled: Arc::clone(&handled), to: None };
    let slow = system.spawn_with(on_stage(0), slow);
    let middle = Consumer {
        work_us: 0,
        flow: flows[0].clone(),
        next: 0,
        handled: Arc::default(),
        to: Some((slow, flows[1].clone())),
    };
    let to = system.spawn_with(on_stage(1), middle);
    let producer = Producer { to, flow: flows[0].clone(), next: 0, end: 1_000_000, batch: 100, stop: Arc::default() };
    system.spawn_with(on_stage(producer_stage), producer).tell(Produce);
    system.run_until_idle();
    assert_eq!(handled.load(Ordering::Relaxed), 1_000_000);
    for (flow, what) in flows.iter().zip(["before the middle", "before the slow end"]) {
        assert!(flow.peak() < BOUND, "{} messages {what}", flow.peak());
    }
    system.shutdown().unwrap();
}

// GUARANTEE: Bounded backlog
#[test]
fn a_flood_that_is_passed_on_within_the_slow_worker_stays_bounded() {
    finishes(|| {
        let system = pinned(2);
        let flow = InFlight::default();
        let handled: Arc<AtomicU64> = Arc::default();
        let end = Consumer { work_us: 2, flow: flow.clone(), next: 0, handled: Arc::clone(&handled), to: None };
        // All actors are on worker 0. Passed-on items are no backlog that the worker makes itself.
        let mut to = system.spawn_with(on_stage(0), end);
        for stage in [2, 4, 6] {
            let next = Some((to, flow.clone()));
            let relay = Consumer { work_us: 0, flow: flow.clone(), next: 0, handled: Arc::default(), to: next };
            to = system.spawn_with(on_stage(stage), relay);
        }
        let producer = Producer { to, flow: flow.clone(), next: 0, end: 1_000_000, batch: 100, stop: Arc::default() };
        system.spawn_with(on_stage(1), producer).tell(Produce);
        system.run_until_idle();
        assert_eq!(handled.load(Ordering::Relaxed), 1_000_000);
        assert!(flow.peak() < BOUND, "{} messages at one time", flow.peak());
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Bounded backlog
#[test]
fn a_flood_that_two_workers_pass_on_to_each_other_many_times_stays_bounded() {
    // The bound does not depend on the number sent. Some 270,000 messages wait on the 2 workers for any number, and 410,000 on a
    // busy machine. Without the bound, nearly all wait. 600,000 take 24 MB.
    const WAITING: u64 = 600_000;
    // With delays at the seams, each takes some 30 us.
    let items: u64 = if std::env::var_os("PLAYHOUSE_JITTER").is_some() { 500_000 } else { 1_000_000 };
    finishes(move || {
        let system = pinned(2);
        let flow = InFlight::default();
        let handled: Arc<AtomicU64> = Arc::default();
        let end = Consumer { work_us: 0, flow: flow.clone(), next: 0, handled: Arc::clone(&handled), to: None };
        let mut to = system.spawn_with(on_stage(0), end);
        // Each pass is mail that a worker runs. The workers therefore run 60 times as much as the outside thread sends.
        for relay in 1..60 {
            let next = Some((to, flow.clone()));
            let stage = relay % 4;
            let relay = Consumer { work_us: 0, flow: flow.clone(), next: 0, handled: Arc::default(), to: next };
            to = system.spawn_with(on_stage(stage), relay);
        }
        for number in 0..items {
            flow.sent(1);
            to.tell(Item(number));
        }
        system.run_until_idle();
        assert_eq!(handled.load(Ordering::Relaxed), items);
        assert!(flow.peak() < WAITING, "{} messages at one time", flow.peak());
        system.shutdown().unwrap();
    });
}

/// Sends an item at each tick of a timer.
struct Ticker {
    to: ActorRef<Adder>,
    flow: InFlight,
    handled: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Actor for Ticker {
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.send_every(Duration::from_millis(1), Produce);
    }
}

impl Handler<Produce> for Ticker {
    fn handle(&mut self, _: Produce, ctx: &mut Context<Self>) {
        if self.stop.load(Ordering::Relaxed) {
            return ctx.stop();
        }
        self.flow.sent(1);
        self.to.tell(Slow { flow: self.flow.clone(), handled: Arc::clone(&self.handled) });
    }
}

/// An item that takes 3 us.
#[derive(Message)]
struct Slow {
    flow: InFlight,
    handled: Arc<AtomicU64>,
}

impl Handler<Slow> for Adder {
    fn handle(&mut self, slow: Slow, _: &mut Context<Self>) {
        spin(3);
        slow.flow.handled();
        slow.handled.fetch_add(1, Ordering::Relaxed);
    }
}

// GUARANTEE: Bounded backlog
#[test]
fn actors_that_send_at_each_tick_of_a_timer_are_slowed() {
    finishes(|| {
        let system = pinned(2);
        let flow = InFlight::default();
        let (handled, stop): (Arc<AtomicU64>, Arc<AtomicBool>) = Default::default();
        let to = system.spawn_with(on_stage(0), Adder);
        for _ in 0..1_500 {
            let (flow, handled, stop) = (flow.clone(), Arc::clone(&handled), Arc::clone(&stop));
            system.spawn_with(on_stage(1), Ticker { to, flow, handled, stop });
        }
        while handled.load(Ordering::Relaxed) < 400_000 {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
        system.run_until_idle();
        assert!(flow.peak() < BOUND / 4, "{} messages at one time", flow.peak());
        system.shutdown().unwrap();
    });
}

/// Sends each ball to the other juggler, until it gets the end message.
struct Juggler {
    work_us: u64,
    other: Option<ActorRef<Juggler>>,
    balls: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Actor for Juggler {}

#[derive(Message)]
struct Partner(ActorRef<Juggler>);

impl Handler<Partner> for Juggler {
    fn handle(&mut self, Partner(other): Partner, _: &mut Context<Self>) {
        self.other = Some(other);
    }
}

/// A message with the size of a ball.
#[derive(Message)]
struct Note([u64; 28]);

impl Handler<Note> for Juggler {
    fn handle(&mut self, note: Note, _: &mut Context<Self>) {
        std::hint::black_box(note.0);
    }
}

impl Handler<Ball> for Juggler {
    fn handle(&mut self, ball: Ball, _: &mut Context<Self>) {
        self.balls.fetch_add(1, Ordering::Relaxed);
        spin(self.work_us);
        if let (Some(other), false) = (self.other, self.stop.load(Ordering::Relaxed)) {
            other.tell(ball);
        }
    }
}

// GUARANTEE: A standing backlog is not a flood
#[test]
fn a_backlog_that_no_source_has_sent_presses_nobody_after_a_while() {
    const BALLS: u64 = 2_000;
    const LOOKS: u32 = 20;
    // More than a pressed worker admits from sources at once.
    const BURST: u32 = 2_500;
    finishes(|| {
        let system = pinned(2);
        let (balls, stop): (Arc<AtomicU64>, Arc<AtomicBool>) = Default::default();
        let jugglers = jugglers(&system, [5, 5], &balls, &stop);
        // Some 5 ms of work for each worker, which go to and fro.
        for ball in 0..BALLS {
            jugglers[(ball % 2) as usize].tell(Ball([0; 28]));
        }
        let (mut seen, mut looks) = (0, 0);
        while looks < LOOKS {
            let handled = balls.load(Ordering::Relaxed);
            // A refused send is a sign of a source. The backlog must stand for some turnovers first.
            if handled < seen + 8 * BALLS {
                std::thread::yield_now();
                continue;
            }
            seen = handled;
            let is_free = (0..BURST).all(|_| jugglers[1].try_tell(Partner(jugglers[0])).is_ok());
            looks = if is_free { looks + 1 } else { 0 };
        }
        stop.store(true, Ordering::Relaxed);
        system.run_until_idle();
        system.shutdown().unwrap();
    });
}

/// Two actors of different workers that throw all balls to each other. Each keeps a ball for the given microseconds.
fn jugglers(
    system: &System,
    work_us: [u64; 2],
    balls: &Arc<AtomicU64>,
    stop: &Arc<AtomicBool>,
) -> [ActorRef<Juggler>; 2] {
    let juggler = |stage: u16| {
        let work_us = work_us[usize::from(stage)];
        let juggler = Juggler { work_us, other: None, balls: Arc::clone(balls), stop: Arc::clone(stop) };
        system.spawn_with(on_stage(stage), juggler)
    };
    let jugglers = [0, 1].map(juggler);
    jugglers[0].tell(Partner(jugglers[1]));
    jugglers[1].tell(Partner(jugglers[0]));
    jugglers
}

// GUARANTEE: A standing backlog is not a flood
#[test]
fn sources_go_on_beside_a_backlog_that_never_ends() {
    const BALLS: u64 = 2_000;
    const ITEMS: u64 = 20_000;
    finishes(|| {
        let system = pinned(2);
        let (balls, stop): (Arc<AtomicU64>, Arc<AtomicBool>) = Default::default();
        let jugglers = jugglers(&system, [5, 5], &balls, &stop);
        // Some 5 ms of work for each worker, which go to and fro.
        for ball in 0..BALLS {
            jugglers[(ball % 2) as usize].tell(Ball([0; 28]));
        }
        // The second source owes more with each handler than a worker ever saves for sources.
        let floods = [100, 10_000].map(|batch| flood_by(&system, 0, ITEMS, batch));
        let adder = system.spawn_with(on_stage(2), Adder);
        while floods.iter().any(|flood| flood.handled.load(Ordering::Relaxed) < ITEMS) {
            assert_eq!(adder.ask(Increment(1)).wait(), Ok(2));
        }
        // Each batch of 100 items waits behind the balls of one worker. Without admission, 10 times as many balls are
        // in front of it.
        let balls = balls.load(Ordering::Relaxed);
        assert!(balls < 300 * ITEMS, "{balls} balls were handled meanwhile");
        stop.store(true, Ordering::Relaxed);
        system.run_until_idle();
        system.shutdown().unwrap();
    });
}

// GUARANTEE: A standing backlog is not a flood
#[test]
fn a_refused_source_goes_on_beside_a_backlog_that_never_ends() {
    const BALLS: u64 = 2_000;
    const NOTES: u64 = 5_000;
    finishes(|| {
        let system = pinned(2);
        let (balls, stop): (Arc<AtomicU64>, Arc<AtomicBool>) = Default::default();
        // All balls always wait for the first juggler: 20 ms of work.
        let jugglers = jugglers(&system, [10, 0], &balls, &stop);
        for _ in 0..BALLS {
            jugglers[0].tell(Ball([0; 28]));
        }
        let note = || jugglers[0].try_tell(Note([0; 28])).is_ok();
        while note() {}
        for _ in 0..NOTES {
            while !note() {
                std::thread::yield_now();
            }
        }
        let balls = balls.load(Ordering::Relaxed);
        assert!(balls < 20 * NOTES, "{balls} balls were handled meanwhile");
        stop.store(true, Ordering::Relaxed);
        system.run_until_idle();
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Other actors answer during a flood
#[test]
fn asks_to_others_are_answered_during_a_flood() {
    finishes(|| {
        let system = pinned(2);
        let flood = flood(&system, 2, u64::MAX);
        // One clerk is beside the consumer, one beside the producer.
        let others = [2, 3].map(|stage| system.spawn_with(on_stage(stage), Adder));
        for n in 0..50 {
            for other in others {
                assert_eq!(other.ask(Increment(n)).wait(), Ok(n + 1));
            }
        }
        flood.stop.store(true, Ordering::Relaxed);
        system.run_until_idle();
        assert!(flood.flow.peak() < BOUND);
        system.shutdown().unwrap();
    });
}

/// Answers each item with one of its own, and is flooded itself.
struct Mutual {
    peer: Option<ActorRef<Mutual>>,
    left: u64,
    work_us: u64,
    sent: Arc<AtomicU64>,
    got: Arc<AtomicU64>,
}

impl Actor for Mutual {}

#[derive(Message)]
struct Peer(ActorRef<Mutual>);

/// A message that just fits into an envelope. A few thousand of them are therefore too many.
#[derive(Message)]
struct Ball(#[expect(dead_code, reason = "only its size counts")] [u64; 28]);

#[derive(Message)]
struct Push;

impl Handler<Peer> for Mutual {
    fn handle(&mut self, Peer(peer): Peer, ctx: &mut Context<Self>) {
        self.peer = Some(peer);
        ctx.this().tell(Push);
    }
}

impl Handler<Ball> for Mutual {
    fn handle(&mut self, Ball(_): Ball, _: &mut Context<Self>) {
        self.got.fetch_add(1, Ordering::Relaxed);
        spin(self.work_us);
    }
}

impl Handler<Push> for Mutual {
    fn handle(&mut self, _: Push, ctx: &mut Context<Self>) {
        let (Some(peer), true) = (self.peer, self.left > 0) else { return };
        self.left -= 1;
        for _ in 0..100 {
            peer.tell(Ball([0; 28]));
        }
        self.sent.fetch_add(100, Ordering::Relaxed);
        ctx.this().tell(Push);
    }
}

fn mutual(system: &System, stages: &[u16], left: u64, work_us: u64) -> [Arc<AtomicU64>; 2] {
    let counts: [Arc<AtomicU64>; 2] = Default::default();
    let all: Vec<_> = stages
        .iter()
        .map(|stage| {
            let [sent, got] = counts.clone();
            system.spawn_with(on_stage(*stage), Mutual { peer: None, left, work_us, sent, got })
        })
        .collect();
    for (i, actor) in all.iter().enumerate() {
        actor.tell(Peer(all[(i + 1) % all.len()]));
    }
    counts
}

// GUARANTEE: No deadlock by backpressure
#[test]
fn actors_that_flood_each_other_do_not_deadlock() {
    finishes(|| {
        for stages in [&[0, 1][..], &[0, 1, 2, 5]] {
            let system = pinned(3);
            let [sent, got] = mutual(&system, stages, 3000, 1);
            system.run_until_idle();
            assert_eq!(sent.load(Ordering::Relaxed), stages.len() as u64 * 300_000);
            assert_eq!(got.load(Ordering::Relaxed), sent.load(Ordering::Relaxed));
            system.shutdown().unwrap();
        }
    });
}

/// Keeps its worker awake until the test ends it.
struct Bystander(Arc<AtomicBool>);

impl Actor for Bystander {}

impl Handler<Push> for Bystander {
    fn handle(&mut self, _: Push, ctx: &mut Context<Self>) {
        if !self.0.load(Ordering::Relaxed) {
            ctx.this().tell(Push);
        }
    }
}

// GUARANTEE: No deadlock by backpressure
#[test]
fn a_mute_deadlock_is_broken_beside_an_actor_that_is_never_idle() {
    finishes(|| {
        for at in [0, 2] {
            let (system, stop) = (pinned(3), Arc::default());
            system.spawn_with(on_stage(at), Bystander(Arc::clone(&stop))).tell(Push);
            let [_, got] = mutual(&system, &[0, 1], 1000, 2);
            while got.load(Ordering::Relaxed) < 200_000 {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
            system.shutdown().unwrap();
        }
    });
}

// GUARANTEE: No deadlock by backpressure
#[test]
fn a_mute_deadlock_is_broken_for_every_order_of_idle_workers() {
    for seed in 0..20 {
        let builder = System::builder().workers(3).stages(12).stealing(Stealing::None);
        let system = builder.simulated(seed).start().unwrap();
        let [sent, got] = mutual(&system, &[0, 1], 300, 0);
        system.run_until_idle();
        assert_eq!(sent.load(Ordering::Relaxed), 60_000, "seed {seed}");
        assert_eq!(got.load(Ordering::Relaxed), 60_000, "seed {seed}");
        assert!(system.stats().total.mutes > 0, "seed {seed}: nobody was muted");
        system.shutdown().unwrap();
    }
}

// GUARANTEE: Delivery
#[test]
fn floods_with_stealing_lose_nothing() {
    finishes(|| {
        let system = System::builder().workers(3).stages(12).start().unwrap();
        let [sent, got] = mutual(&system, &[0, 1, 2, 3, 4], 3000, 1);
        system.run_until_idle();
        assert_eq!(got.load(Ordering::Relaxed), 5 * 300_000);
        assert_eq!(sent.load(Ordering::Relaxed), 5 * 300_000);
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Bounded backlog
#[test]
fn outside_threads_are_slowed_and_try_tell_says_full() {
    finishes(|| {
        let system = pinned(1);
        let (flow, handled) = (InFlight::default(), Arc::<AtomicU64>::default());
        let consumer = Consumer { work_us: 2, flow: flow.clone(), next: 0, handled: Arc::clone(&handled), to: None };
        let to = system.spawn_with(on_stage(0), consumer);
        let recipient: Recipient<Item> = to.recipient();
        let mut full = 0;
        for n in 0..300_000 {
            flow.sent(1);
            match if n % 2 == 0 { to.try_tell(Item(n)) } else { recipient.try_tell(Item(n)) } {
                Ok(()) => {}
                Err(error) => {
                    assert!(matches!(error, TrySendError::Full(_)), "{error}");
                    full += 1;
                    // This send waits until the receiver has room.
                    to.tell(error.into_message());
                }
            }
        }
        system.run_until_idle();
        assert_eq!(handled.load(Ordering::Relaxed), 300_000);
        assert!(full > 0, "never full, with {} messages at one time", flow.peak());
        assert!(flow.peak() < BOUND, "{} messages at one time", flow.peak());
        system.shutdown().unwrap();
    });
}
