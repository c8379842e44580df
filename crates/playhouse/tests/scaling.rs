//! Work reaches every worker, and a standing backlog slows no sender down.

mod support;

use std::future::poll_fn;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;

use playhouse::prelude::*;
use support::finishes;

/// Runs `steps` steps of about 1 ns each.
fn work(steps: u64) {
    let mut x = steps;
    for step in 0..steps {
        x = black_box(x.wrapping_mul(31).wrapping_add(step));
    }
}

/// Passes tokens on along a fixed pseudo-random walk.
struct Walker {
    others: Vec<ActorRef<Walker>>,
    next: usize,
    handled: u64,
    steps: u64,
}

#[actor]
impl Walker {
    #[message]
    fn meet(&mut self, others: Vec<ActorRef<Walker>>) {
        self.others = others;
    }

    #[message]
    fn token(&mut self, hops_left: u32) {
        self.handled += 1;
        work(self.steps);
        if hops_left > 0 {
            self.next = (self.next * 5 + 3) % self.others.len();
            self.others[self.next].tell(Token(hops_left - 1));
        }
    }

    #[message]
    fn handled(&self) -> u64 {
        self.handled
    }
}

// GUARANTEE: A standing backlog is not a flood
#[test]
fn a_program_with_a_fixed_number_of_messages_is_never_muted() {
    // 3 ms of work for each worker, and more than 6 MiB.
    for (tokens, hops, steps) in [(3_000, 20, 2_000), (300_000, 10, 0)] {
        finishes(move || walk(tokens, hops, steps));
    }
}

fn walk(tokens: usize, hops: u32, steps: u64) {
    // Without stealing, half of the messages go to the other worker until the end.
    let system = System::builder().workers(2).stealing(Stealing::None).start().unwrap();
    let walker = |number| Walker { others: Vec::new(), next: number, handled: 0, steps };
    let walkers: Vec<_> = (0..512).map(|number| system.spawn(walker(number))).collect();
    for walker in &walkers {
        walker.tell(Meet(walkers.clone()));
    }
    system.run_until_idle();
    for token in 0..tokens {
        walkers[token % walkers.len()].tell(Token(hops));
    }
    system.run_until_idle();
    let handled: u64 = walkers.iter().map(|walker| walker.ask(Handled).wait().unwrap()).sum();
    assert_eq!(handled, tokens as u64 * u64::from(hops + 1));
    assert_eq!(system.stats().total.mutes, 0);
    system.shutdown().unwrap();
}

struct Servant;

#[actor]
impl Servant {
    #[message]
    fn job(&mut self) -> u64 {
        work(20_000);
        1
    }
}

/// Asks all servants, and begins the next round when all have answered.
struct Master {
    servants: Vec<ActorRef<Servant>>,
    rounds_left: u64,
    open: usize,
    answers: u64,
}

#[actor]
impl Master {
    #[message]
    fn begin(&mut self, rounds: u64, ctx: &mut Context<Self>) {
        self.rounds_left = rounds;
        self.round(ctx);
    }

    #[message]
    fn answers(&self) -> u64 {
        self.answers
    }
}

impl Master {
    fn round(&mut self, ctx: &mut Context<Self>) {
        if self.rounds_left == 0 {
            return;
        }
        self.rounds_left -= 1;
        self.open = self.servants.len();
        for servant in self.servants.clone() {
            ctx.ask(servant, Job).then(|master: &mut Master, answer, ctx| {
                master.answers += answer.unwrap();
                master.open -= 1;
                if master.open == 0 {
                    master.round(ctx);
                }
            });
        }
    }
}

// GUARANTEE: Work reaches idle workers
#[test]
fn rounds_of_a_few_hundred_microseconds_are_shared_by_two_workers() {
    const ROUNDS: u64 = 100;
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        // Without a second core, a second worker would only displace the first one.
        return;
    }
    finishes(|| {
        let system = System::builder().workers(2).start().unwrap();
        // At first, all servants are on stages of one worker.
        let spawn = |number: u16| system.spawn_with(support::on_stage(2 * (number % 16)), Servant);
        let servants: Vec<_> = (0..64).map(spawn).collect();
        let master = Master { servants, rounds_left: 0, open: 0, answers: 0 };
        let master = system.spawn_with(support::on_stage(0), master);
        master.tell(Begin(ROUNDS));
        system.run_until_idle();
        assert_eq!(master.ask(Answers).wait(), Ok(ROUNDS * 64));
        let handled: Vec<u64> = system.stats().per_worker.iter().map(|counters| counters.received).collect();
        assert!(handled.iter().all(|&messages| messages > ROUNDS * 64 / 10), "{handled:?}");
        system.shutdown().unwrap();
    });
}

struct Node;

#[actor]
impl Node {
    /// Counts the leaves of its subtree. Asks both children at the same time.
    #[message]
    async fn leaves(&mut self, depth: u32, ctx: &mut Context<Self>) -> u64 {
        work(20_000);
        ctx.stop();
        if depth == 0 {
            return 1;
        }
        let mut asks = [(), ()].map(|()| ctx.spawn(Node).ask(Leaves(depth - 1)));
        let mut counts = [None, None];
        poll_fn(|cx| {
            for (ask, count) in asks.iter_mut().zip(&mut counts) {
                if count.is_none()
                    && let Poll::Ready(answer) = Pin::new(ask).poll(cx)
                {
                    *count = Some(answer.unwrap());
                }
            }
            if counts.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        counts.into_iter().flatten().sum()
    }
}

// GUARANTEE: Work reaches idle workers
#[test]
fn a_tree_of_asks_is_shared_by_two_workers() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return;
    }
    finishes(|| {
        let system = System::builder().workers(2).start().unwrap();
        assert_eq!(system.spawn(Node).ask(Leaves(11)).wait(), Ok(2_048));
        system.run_until_idle();
        let spawned: Vec<u64> = system.stats().per_worker.iter().map(|counters| counters.spawned).collect();
        assert!(spawned.iter().all(|&actors| actors > 4_096 / 10), "{spawned:?}");
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Work reaches idle workers
#[test]
fn bursts_for_sixty_four_workers_that_sleep_reach_all_of_them() {
    const WORKERS: u64 = 64;
    const BURSTS: u64 = 50;
    finishes(|| {
        let system = System::builder().workers(WORKERS as usize).start().unwrap();
        let servants: Vec<_> =
            (0..10 * WORKERS).map(|number| system.spawn_with(support::on_stage(number as u16), Servant)).collect();
        let master = Master { servants, rounds_left: 0, open: 0, answers: 0 };
        let master = system.spawn_with(support::on_stage(0), master);
        for burst in 1..=BURSTS {
            master.tell(Begin(1));
            system.run_until_idle();
            assert_eq!(master.ask(Answers).wait(), Ok(burst * 10 * WORKERS));
            system.run_until_idle();
        }
        system.shutdown().unwrap();
    });
}

/// Passes tokens on at random, and checks that its messages come in order and one at a time.
struct Roamer {
    number: usize,
    others: Vec<ActorRef<Roamer>>,
    dice: u64,
    /// The numbers of the next messages to and from each other roamer.
    next: Vec<u64>,
    expected: Vec<u64>,
    runs: Arc<AtomicBool>,
    faults: Arc<AtomicU64>,
    handled: Arc<AtomicU64>,
}

#[actor]
impl Roamer {
    #[message]
    fn join(&mut self, others: Vec<ActorRef<Roamer>>) {
        (self.next, self.expected) = (vec![0; others.len()], vec![0; others.len()]);
        self.others = others;
    }

    #[message]
    fn hop(&mut self, from: usize, number: u64, left: u32) {
        let alone = !self.runs.swap(true, Ordering::SeqCst);
        let in_order = from == self.number || std::mem::replace(&mut self.expected[from], number + 1) == number;
        self.faults.fetch_add(u64::from(!alone || !in_order), Ordering::Relaxed);
        work(300);
        if left > 0 {
            self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let to = (self.number + 1 + (self.dice >> 33) as usize % (self.others.len() - 1)) % self.others.len();
            self.others[to].tell(Hop(self.number, self.next[to], left - 1));
            self.next[to] += 1;
        }
        self.handled.fetch_add(1, Ordering::Relaxed);
        self.runs.store(false, Ordering::SeqCst);
    }
}

#[test]
fn stages_that_go_from_one_of_three_workers_to_another_keep_their_order() {
    const HOPS: u32 = 2_000;
    finishes(|| {
        let system = System::builder().workers(3).stages(12).start().unwrap();
        let (faults, handled) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let roamer = |number| Roamer {
            number,
            others: Vec::new(),
            dice: number as u64,
            next: Vec::new(),
            expected: Vec::new(),
            runs: Arc::default(),
            faults: Arc::clone(&faults),
            handled: Arc::clone(&handled),
        };
        let roamers: Vec<_> = (0..24).map(|number| system.spawn(roamer(number))).collect();
        for roamer in &roamers {
            roamer.tell(Join(roamers.clone()));
        }
        let mut sent = 0;
        // Many tokens keep all workers busy. With few, workers become idle, and others adopt their stages.
        for tokens in [100, 2, 60, 1, 100, 3] {
            for token in 0..tokens {
                let at = token % roamers.len();
                roamers[at].tell(Hop(at, 0, HOPS));
            }
            system.run_until_idle();
            sent += tokens as u64 * u64::from(HOPS + 1);
            assert_eq!((handled.load(Ordering::Relaxed), faults.load(Ordering::Relaxed)), (sent, 0));
        }
        let moved = system.stats().total;
        assert!(moved.steals > 0 && moved.adoptions > 0, "{} steals, {} adoptions", moved.steals, moved.adoptions);
        system.shutdown().unwrap();
    });
}
