//! Floods between systems of one process.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use playhouse::DeadLetter;
use playhouse::prelude::*;
use support::{Adder, Do, Gate, Increment, LIMIT, Puppet, finishes, on_stage, shut_down, threads};

/// In-flight messages, and their maximum at one time.
#[derive(Clone, Default)]
struct UnderWay(Arc<(AtomicU64, AtomicU64)>);

impl UnderWay {
    fn sent(&self, n: u64) {
        let now = self.0.0.fetch_add(n, Ordering::Relaxed) + n;
        self.0.1.fetch_max(now, Ordering::Relaxed);
    }

    fn handled(&self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn peak(&self) -> u64 {
        self.0.1.load(Ordering::Relaxed)
    }
}

#[derive(Message, Clone, Copy)]
struct Item(u64);

/// Handles items in order, and passes them on to another consumer.
struct Consumer {
    flow: UnderWay,
    next: u64,
    work: Duration,
    handled: Arc<AtomicU64>,
    to: Option<(ActorRef<Consumer>, UnderWay)>,
}

impl Actor for Consumer {}

impl Handler<Item> for Consumer {
    fn handle(&mut self, Item(number): Item, _: &mut Context<Self>) {
        assert_eq!(number, self.next, "in order, none lost");
        self.next += 1;
        let start = Instant::now();
        while start.elapsed() < self.work {
            std::hint::spin_loop();
        }
        self.flow.handled();
        self.handled.fetch_add(1, Ordering::Relaxed);
        if let Some((to, flow)) = &self.to {
            flow.sent(1);
            to.tell(Item(number));
        }
    }
}

/// Tells a consumer items, 100 in each handler.
struct Producer {
    to: ActorRef<Consumer>,
    flow: UnderWay,
    next: u64,
    end: u64,
}

impl Actor for Producer {}

#[derive(Message, Clone, Copy)]
struct Produce;

impl Handler<Produce> for Producer {
    fn handle(&mut self, _: Produce, ctx: &mut Context<Self>) {
        if self.next < self.end {
            self.flow.sent(100);
            for _ in 0..100 {
                self.to.tell(Item(self.next));
                self.next += 1;
            }
            ctx.this().tell(Produce);
        }
    }
}

/// A bound of the messages of 40 bytes that a flood sends before its sender is muted.
const PEAK_MAX: u64 = 200_000;

struct Flood {
    flow: UnderWay,
    handled: Arc<AtomicU64>,
    to: ActorRef<Consumer>,
}

fn consumer(system: &System, work_us: u64, to: Option<(ActorRef<Consumer>, UnderWay)>) -> Flood {
    let (flow, handled) = (UnderWay::default(), Arc::<AtomicU64>::default());
    let work = Duration::from_micros(work_us);
    let consumer = Consumer { flow: flow.clone(), next: 0, work, handled: Arc::clone(&handled), to };
    Flood { flow, handled, to: system.spawn_with(on_stage(0), consumer) }
}

impl Flood {
    fn begin(&self, system: &System, end: u64) {
        let producer = Producer { to: self.to, flow: self.flow.clone(), next: 0, end };
        system.spawn_with(on_stage(0), producer).tell(Produce);
    }

    fn check(&self, end: u64) {
        assert_eq!(self.handled.load(Ordering::Relaxed), end);
        assert!(self.flow.peak() < PEAK_MAX, "{} messages at one time", self.flow.peak());
    }
}

// GUARANTEE: Bounded backlog
#[test]
fn a_flood_from_another_system_stays_bounded_and_others_of_the_sender_go_on() {
    const ITEMS: u64 = if cfg!(miri) { 1_000 } else { 500_000 };
    finishes(|| {
        let (from, to) = (threads(1), threads(1));
        let adder = from.spawn_with(on_stage(1), Adder);
        let flood = consumer(&to, 2, None);
        flood.begin(&from, ITEMS);
        while flood.handled.load(Ordering::Relaxed) < ITEMS {
            assert!(adder.ask(Increment(1)).within(LIMIT).wait().is_ok());
        }
        from.run_until_idle();
        to.run_until_idle();
        flood.check(ITEMS);
        assert!(from.stats().total.mutes > 0);
        shut_down(from);
        shut_down(to);
    });
}

// GUARANTEE: Bounded backlog
#[test]
fn a_flood_that_is_passed_on_over_systems_stays_bounded() {
    const ITEMS: u64 = if cfg!(miri) { 200 } else { 300_000 };
    finishes(|| {
        let [first, second, third] = [(); 3].map(|()| threads(1));
        let last = consumer(&third, 4, None);
        let middle = consumer(&second, 0, Some((last.to, last.flow.clone())));
        middle.begin(&first, ITEMS);
        while last.handled.load(Ordering::Relaxed) < ITEMS {
            third.run_until_idle();
        }
        middle.check(ITEMS);
        last.check(ITEMS);
        for system in [first, second, third] {
            shut_down(system);
        }
    });
}

// GUARANTEE: No deadlock by backpressure
#[test]
fn systems_that_flood_each_other_go_on_and_stay_bounded() {
    const ITEMS: u64 = if cfg!(miri) { 200 } else { 300_000 };
    finishes(|| {
        let (one, other) = (threads(1), threads(1));
        let floods = [(&one, &other), (&other, &one)].map(|(from, to)| {
            let flood = consumer(to, 1, None);
            flood.begin(from, ITEMS);
            flood
        });
        for flood in &floods {
            while flood.handled.load(Ordering::Relaxed) < ITEMS {
                one.run_until_idle();
                other.run_until_idle();
            }
            flood.check(ITEMS);
        }
        shut_down(one);
        shut_down(other);
    });
}

// GUARANTEE: No deadlock by backpressure
#[test]
fn parked_messages_do_not_block_systems_that_flood_each_other() {
    const LEVELS: u32 = if cfg!(miri) { 7 } else { 17 };
    /// Sends two items for each that it gets. It is a source, and its parked messages press its worker.
    struct Doubles(Option<ActorRef<Doubles>>, Arc<AtomicU64>);
    impl Actor for Doubles {}
    #[derive(Message)]
    struct Meet(ActorRef<Doubles>);
    impl Handler<Meet> for Doubles {
        fn handle(&mut self, Meet(other): Meet, _: &mut Context<Self>) {
            self.0 = Some(other);
        }
    }
    #[derive(Message)]
    struct Level(u32);
    impl Handler<Level> for Doubles {
        fn handle(&mut self, Level(level): Level, _: &mut Context<Self>) {
            self.1.fetch_add(1, Ordering::Relaxed);
            if level > 0 {
                let other = self.0.unwrap();
                other.tell(Level(level - 1));
                other.tell(Level(level - 1));
            }
        }
    }
    finishes(|| {
        let handled = Arc::<AtomicU64>::default();
        let systems = [threads(1), threads(1)];
        let [one, other] = [0, 1].map(|at: usize| systems[at].spawn(Doubles(None, Arc::clone(&handled))));
        one.tell(Meet(other));
        other.tell(Meet(one));
        systems.iter().for_each(System::run_until_idle);
        one.tell(Level(LEVELS));
        while handled.load(Ordering::Relaxed) < (1 << (LEVELS + 1)) - 1 {
            systems.iter().for_each(System::run_until_idle);
        }
        for system in systems {
            shut_down(system);
        }
    });
}

// GUARANTEE: No deadlock by backpressure
#[test]
fn the_flooder_of_a_shut_down_system_goes_on_and_the_rest_are_dead_letters() {
    const ITEMS: u64 = if cfg!(miri) { 600 } else { 200_000 };
    for stuck in [false, true] {
        finishes(move || {
            let (from, to) = (threads(1), threads(1));
            let dead = Arc::new(AtomicU64::new(0));
            let counted = Arc::clone(&dead);
            let count = move |_: &DeadLetter| {
                counted.fetch_add(1, Ordering::Relaxed);
            };
            from.on_dead_letter(count.clone());
            to.on_dead_letter(count);
            let (gate, turnstile) = Gate::new();
            let flood = consumer(&to, 20, None);
            if stuck {
                to.spawn_with(on_stage(0), Puppet).tell(Do::this(move |_| turnstile.pass()));
                gate.wait_entered();
            }
            flood.begin(&from, ITEMS);
            // Behind a stuck handler a sender is muted for 2 MiB of mail, which take Miri an hour.
            while from.stats().total.mutes == 0 && !(cfg!(miri) && stuck) {
                std::thread::yield_now();
            }
            let shut_down = || to.clone().shutdown_within(Duration::from_millis(300)).is_ok();
            if stuck {
                assert!(!shut_down());
            } else {
                // On a busy machine the threads may take longer.
                while !shut_down() {}
            }
            // The sender is released. All its later messages are dead letters.
            from.run_until_idle();
            gate.open();
            if stuck {
                support::shut_down(to);
            }
            let handled = flood.handled.load(Ordering::Relaxed);
            assert_eq!(handled + dead.load(Ordering::Relaxed), ITEMS);
            support::shut_down(from);
        });
    }
}

// GUARANTEE: Bounded backlog
#[test]
fn floods_of_simulated_systems_to_threads_and_back_end() {
    const THERE: u64 = if cfg!(miri) { 300 } else { 400_000 };
    const BACK: u64 = if cfg!(miri) { 100 } else { 20_000 };
    finishes(|| {
        let simulated = support::simulated(1);
        let on_threads = threads(1);
        let there = consumer(&on_threads, 2, None);
        there.begin(&simulated, THERE);
        simulated.run_until_idle();
        while there.handled.load(Ordering::Relaxed) < THERE {
            on_threads.run_until_idle();
        }
        there.check(THERE);
        // A worker does not wait for a simulated system, because that system runs only while a thread runs it.
        let back = consumer(&simulated, 0, None);
        back.begin(&on_threads, BACK);
        on_threads.run_until_idle();
        simulated.run_until_idle();
        back.check(BACK);
        shut_down(on_threads);
        shut_down(simulated);
    });
}
