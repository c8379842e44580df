//! Trees of actors that are larger than the number that one handler starts.

mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playhouse::prelude::*;
use support::{Do, Gate, LIMIT, Puppet, Turnstile, finishes, lock, simulated, threads};

const DEGREE: u64 = 10;

/// The events in a tree.
#[derive(Default)]
struct Seen {
    sent: AtomicU64,
    handled: AtomicU64,
    most_waiting: AtomicU64,
    sum: AtomicU64,
    done: AtomicBool,
    made: AtomicU64,
    dropped: AtomicU64,
}

struct Node {
    parent: Option<ActorRef<Node>>,
    /// Its number among its parent's children.
    number: u64,
    leaves: u64,
    /// The next value expected from each child: its sum, and then the end.
    next: [u64; DEGREE as usize],
    sum: u64,
    seen: Arc<Seen>,
}

impl Node {
    fn new(parent: Option<ActorRef<Node>>, number: u64, leaves: u64, seen: &Arc<Seen>) -> Node {
        seen.made.fetch_add(1, Ordering::Relaxed);
        Node { parent, number, leaves, next: [0; DEGREE as usize], sum: 0, seen: Arc::clone(seen) }
    }

    fn end(&mut self, ctx: &mut Context<Self>) {
        match &self.parent {
            Some(parent) => {
                for part in [self.sum, 0] {
                    self.seen.sent.fetch_add(1, Ordering::Relaxed);
                    parent.tell(Part { from: self.number, part, is_last: part == 0 });
                }
            }
            None => {
                self.seen.sum.store(self.sum, Ordering::Relaxed);
                self.seen.done.store(true, Ordering::Relaxed);
            }
        }
        ctx.stop();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.seen.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Actor for Node {
    fn started(&mut self, ctx: &mut Context<Self>) {
        if self.leaves == 1 {
            self.sum = 1;
            return self.end(ctx);
        }
        for number in 0..DEGREE {
            ctx.spawn(Node::new(Some(ctx.this()), number, self.leaves / DEGREE, &self.seen));
        }
    }
}

#[derive(Message)]
struct Part {
    from: u64,
    part: u64,
    is_last: bool,
}

impl Handler<Part> for Node {
    fn handle(&mut self, Part { from, part, is_last }: Part, ctx: &mut Context<Self>) {
        let handled = self.seen.handled.fetch_add(1, Ordering::Relaxed);
        self.seen
            .most_waiting
            .fetch_max(self.seen.sent.load(Ordering::Relaxed).saturating_sub(handled), Ordering::Relaxed);
        let next = &mut self.next[from as usize];
        assert_eq!(*next, u64::from(is_last), "what one sends to another comes in the order of sending");
        *next += 1;
        self.sum += part;
        if self.next == [2; DEGREE as usize] {
            self.end(ctx);
        }
    }
}

/// Does something in its `started`, which runs within the handler of another actor. A family is the set of actors
/// started below such a start.
struct Parent(Option<Deed>);

type Deed = Box<dyn FnOnce(&mut Context<Parent>) + Send>;

impl Actor for Parent {
    fn started(&mut self, ctx: &mut Context<Self>) {
        self.0.take().expect("it starts once")(ctx);
    }
}

fn start_parent(system: &System, deed: impl FnOnce(&mut Context<Parent>) + Send + 'static) {
    let parent = Parent(Some(Box::new(deed)));
    system.spawn(Puppet).tell(Do::this(move |ctx| {
        ctx.spawn(parent);
    }));
}

fn plant(system: &System, leaves: u64) -> Arc<Seen> {
    let seen = Arc::new(Seen::default());
    let root = Node::new(None, 0, leaves, &seen);
    system.spawn(Puppet).tell(Do::this(move |ctx| {
        ctx.spawn(root);
    }));
    seen
}

/// Without deferred starts, all leaves of the tree would have answered before the first of their answers is handled.
#[test]
fn of_a_large_tree_little_waits_at_any_time() {
    const LEAVES: u64 = 100_000;
    finishes(|| {
        let system = threads(1);
        let seen = plant(&system, LEAVES);
        system.run_until_idle();
        assert_eq!(seen.sum.load(Ordering::Relaxed), LEAVES);
        let most_waiting = seen.most_waiting.load(Ordering::Relaxed);
        let stats = system.stats().total;
        assert!(stats.starts_put_off > 0);
        // If every handler seems stuck, starts go on with the ticks of the monitor, and with each new thread.
        let is_slow = std::env::var_os("PLAYHOUSE_JITTER").is_some() || stats.takeovers > 0;
        assert!(most_waiting < LEAVES / 2 || is_slow, "{most_waiting} messages waited");
        system.shutdown().unwrap();
        assert_eq!(seen.made.load(Ordering::Relaxed), seen.dropped.load(Ordering::Relaxed));
    });
}

#[test]
fn a_tree_adds_up_on_threads_and_under_every_seed() {
    finishes(|| {
        for workers in 1..=3 {
            let system = threads(workers);
            let trees = [100_000, 1_000, 10_000].map(|leaves| (plant(&system, leaves), leaves));
            system.run_until_idle();
            for (seen, leaves) in trees {
                assert_eq!(seen.sum.load(Ordering::Relaxed), leaves);
            }
            system.shutdown().unwrap();
        }
        for seed in 0..20 {
            let system = simulated(seed);
            let seen = plant(&system, 10_000);
            system.run_until_idle();
            assert_eq!(seen.sum.load(Ordering::Relaxed), 10_000, "seed {seed}");
            system.shutdown().unwrap();
        }
    });
}

#[derive(Message)]
struct Again;

/// Sends to itself until the tree is complete.
struct Busy(Arc<Seen>);

impl Actor for Busy {}

impl Handler<Again> for Busy {
    fn handle(&mut self, _: Again, ctx: &mut Context<Self>) {
        if !self.0.done.load(Ordering::Relaxed) {
            ctx.this().tell(Again);
        }
    }
}

#[derive(Message)]
struct AgainUrgently;

impl Handler<AgainUrgently> for Busy {
    fn handle(&mut self, _: AgainUrgently, ctx: &mut Context<Self>) {
        if !self.0.done.load(Ordering::Relaxed) {
            ctx.this().tell_urgent(AgainUrgently);
        }
    }
}

// GUARANTEE: No actor starves
#[test]
fn a_tree_is_built_beside_actors_that_write_to_themselves_for_ever() {
    finishes(|| {
        for urgent in [false, true] {
            let system = threads(1);
            let seen = plant(&system, 100_000);
            let busy = system.spawn(Busy(Arc::clone(&seen)));
            for _ in 0..if urgent { 1 } else { 2_000 } {
                if urgent { busy.tell_urgent(AgainUrgently) } else { busy.tell(Again) }
            }
            system.run_until_idle();
            assert_eq!(seen.sum.load(Ordering::Relaxed), 100_000, "urgent: {urgent}");
            system.shutdown().unwrap();
        }
    });
}

/// Has children without end. Child number 100,000 reports that it exists.
struct Endless {
    seen: Arc<Seen>,
    reached: Sender<()>,
}

impl Endless {
    fn new(seen: &Arc<Seen>, reached: &Sender<()>) -> Endless {
        if seen.made.fetch_add(1, Ordering::Relaxed) + 1 == 100_000 {
            reached.send(()).unwrap();
        }
        Endless { seen: Arc::clone(seen), reached: reached.clone() }
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.seen.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Actor for Endless {
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.spawn(Endless::new(&self.seen, &self.reached));
        ctx.spawn(Endless::new(&self.seen, &self.reached));
        ctx.stop();
    }
}

#[test]
fn actors_with_a_deferred_start_end_with_their_system() {
    finishes(|| {
        for workers in [1, 2] {
            let system = threads(workers);
            let seen = Arc::new(Seen::default());
            let (reached, many) = channel::<()>();
            let first = Endless::new(&seen, &reached);
            system.spawn(Puppet).tell(Do::this(move |ctx| {
                ctx.spawn(first);
            }));
            many.recv_timeout(LIMIT).unwrap();
            system.shutdown_within(Duration::ZERO).unwrap();
            assert_eq!(seen.made.load(Ordering::Relaxed), seen.dropped.load(Ordering::Relaxed));
        }
    });
}

#[derive(Message)]
struct Note(u64);

/// The number of actors of a family that have started, and that got each of 3 notes. The last field: how many had
/// started when half of them had the first note.
type Steps = Arc<[AtomicU64; 5]>;

/// Expects its start, and then three notes.
struct Child {
    next: Option<u64>,
    steps: Steps,
}

impl Actor for Child {
    fn started(&mut self, _: &mut Context<Self>) {
        self.next = Some(0);
        self.steps[0].fetch_add(1, Ordering::Relaxed);
    }
}

const FAMILIES: usize = 25;
const CHILDREN: u64 = 2_000;

impl Handler<Note> for Child {
    fn handle(&mut self, Note(n): Note, ctx: &mut Context<Self>) {
        assert_eq!(self.next, Some(n), "its start comes first, and then each note once, in order");
        self.next = Some(n + 1);
        let told = self.steps[n as usize + 1].fetch_add(1, Ordering::Relaxed) + 1;
        if (n, told) == (0, CHILDREN / 2) {
            self.steps[4].store(self.steps[0].load(Ordering::Relaxed), Ordering::Relaxed);
        }
        if n == 2 {
            ctx.stop();
        }
    }
}

/// A worker defers the start of a child with mail only until it sees the mail, because otherwise each note would wait
/// in a list of its own.
#[test]
fn children_that_are_sent_to_have_started_and_miss_nothing() {
    finishes(|| {
        for (workers, at_once) in [(1, false), (1, true), (2, false), (2, true)] {
            let (system, families) = (threads(workers), [(); FAMILIES].map(|()| Steps::default()));
            for steps in families.clone() {
                start_parent(&system, move |ctx| {
                    let mut children = Vec::new();
                    for _ in 0..CHILDREN {
                        let child = ctx.spawn(Child { next: None, steps: Arc::clone(&steps) });
                        if at_once {
                            child.tell(Note(0));
                        }
                        children.push(child);
                    }
                    for n in u64::from(at_once)..3 {
                        for child in &children {
                            child.tell(Note(n));
                        }
                    }
                });
            }
            system.run_until_idle();
            for steps in &families {
                assert!(steps[..4].iter().all(|step| step.load(Ordering::Relaxed) == CHILDREN));
            }
            let stats = system.stats().total;
            if workers == 1 && stats.takeovers == 0 {
                assert!(stats.gulps < FAMILIES as u64 * CHILDREN / 8, "{} gulps", stats.gulps);
                let all_had = families.iter().filter(|steps| steps[4].load(Ordering::Relaxed) == CHILDREN).count();
                assert!(
                    at_once || all_had > FAMILIES / 2,
                    "in {all_had} families, all had started before most were told"
                );
            }
            system.shutdown().unwrap();
        }
    });
}

/// Counts its start. The first one that does not run within its parent's start stays in its `started`.
struct Starter {
    race: Arc<Race>,
    enough: Sender<()>,
}

struct Race {
    gate: Mutex<Option<Turnstile>>,
    parents: AtomicU64,
    started: AtomicU64,
}

impl Actor for Starter {
    fn started(&mut self, ctx: &mut Context<Self>) {
        if self.race.parents.load(Ordering::Relaxed) == 0 {
            let gate = lock(&self.race.gate).take();
            if let Some(gate) = gate {
                gate.pass();
            }
        }
        self.race.started.fetch_add(1, Ordering::Relaxed);
        // The receiver may be gone at the end.
        let _ = self.enough.send(());
        ctx.stop();
    }
}

#[test]
fn a_stuck_start_delays_no_other_deferred_start() {
    const STARTERS: u64 = 20_000;
    finishes(|| {
        let system = System::builder().workers(1).stages(8).start().unwrap();
        let ((enough, started), (gate, turnstile)) = (channel(), Gate::new());
        let race = Arc::new(Race {
            gate: Mutex::new(Some(turnstile)),
            parents: AtomicU64::new(1),
            started: AtomicU64::new(0),
        });
        let seen = Arc::clone(&race);
        start_parent(&system, move |ctx| {
            for _ in 0..20 {
                let (race, enough) = (Arc::clone(&race), enough.clone());
                let some: Deed = Box::new(move |ctx| {
                    for _ in 0..STARTERS / 20 {
                        ctx.spawn(Starter { race: Arc::clone(&race), enough: enough.clone() });
                    }
                });
                ctx.spawn(Parent(Some(some)));
            }
            race.parents.store(0, Ordering::Relaxed);
        });
        gate.wait_entered();
        // Not all start: some, and perhaps some of their parents, are on stages that the gate holds up.
        for _ in 0..STARTERS / 10 {
            started.recv_timeout(LIMIT).unwrap();
        }
        gate.open();
        system.run_until_idle();
        assert_eq!(seen.started.load(Ordering::Relaxed), STARTERS);
        system.shutdown().unwrap();
    });
}
