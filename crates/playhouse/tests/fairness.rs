//! A handler that is stuck stops only itself.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use playhouse::prelude::*;
use support::{Adder, Do, Gate, Increment, LIMIT, Log, Puppet, Scribe, Write, finishes, on_stage, threads};

fn blocked(system: &System, stage: u16) -> (ActorRef<Puppet>, Gate) {
    let (gate, turnstile) = Gate::new();
    let puppet = system.spawn_with(on_stage(stage), Puppet);
    puppet.tell(Do::this(move |_| turnstile.pass()));
    gate.wait_entered();
    (puppet, gate)
}

// GUARANTEE: A stuck handler stops only itself
#[test]
fn a_blocked_handler_does_not_stop_the_other_actors_of_its_only_worker() {
    finishes(|| {
        let system = System::builder().workers(1).stages(8).start().unwrap();
        let adders: Vec<_> = (1..8).map(|stage| system.spawn_with(on_stage(stage), Adder)).collect();
        let (_, gate) = blocked(&system, 0);
        for n in 0..100 {
            for adder in &adders {
                assert_eq!(adder.ask(Increment(n)).wait(), Ok(n + 1));
            }
        }
        gate.open();
        system.run_until_idle();
        // A busy machine may cause more than one takeover.
        assert!(system.stats().total.takeovers >= 1);
        system.shutdown().unwrap();
    });
}

#[test]
fn counters_are_exact_though_the_thread_of_a_stuck_handler_goes_on_beside_its_successor() {
    const EACH: u64 = if cfg!(miri) { 20 } else { 100_000 };
    finishes(|| {
        let system = System::builder().workers(1).stages(2).start().unwrap();
        let start_many = |ctx: &mut Context<Puppet>| (0..EACH).for_each(|_| ctx.spawn(Adder).stop());
        let (gate, turnstile) = Gate::new();
        system.spawn_with(on_stage(0), Puppet).tell(Do::this(move |ctx| {
            turnstile.pass();
            start_many(ctx);
        }));
        gate.wait_entered();
        let (begun, has_begun) = channel();
        // The actor runs on the successor, which starts as many at the same time.
        system.spawn_with(on_stage(1), Puppet).tell(Do::this(move |ctx| {
            begun.send(()).unwrap();
            start_many(ctx);
        }));
        has_begun.recv_timeout(LIMIT).unwrap();
        gate.open();
        system.run_until_idle();
        let stats = system.stats().total;
        assert!(stats.takeovers >= 1);
        assert_eq!((stats.spawned, stats.stopped), (2 * EACH + 2, 2 * EACH));
        system.shutdown().unwrap();
    });
}

#[test]
fn messages_queued_behind_a_blocked_handler_are_handled_in_order() {
    finishes(|| {
        let system = System::builder().workers(1).stages(8).start().unwrap();
        let (log, (done, all_done)) = (Log::new(), channel());
        let scribe = system.spawn_with(on_stage(1), Scribe(log.clone()));
        let last = system.spawn_with(on_stage(1), Puppet);
        let (gate, turnstile) = Gate::new();
        // All of these messages are in the worker's queue when the handler blocks.
        system.spawn_with(on_stage(2), Puppet).tell(Do::this(move |ctx| {
            ctx.spawn_with(on_stage(0), Puppet).tell(Do::this(move |_| turnstile.pass()));
            for n in 0..2000 {
                scribe.tell(Write(n));
            }
            last.tell(Do::this(move |_| done.send(()).unwrap()));
        }));
        gate.wait_entered();
        all_done.recv_timeout(LIMIT).unwrap();
        assert!(log.take().into_iter().eq(0..2000));
        gate.open();
        system.shutdown().unwrap();
    });
}

/// The monitor may take a worker for stuck at any message, also at the message where its thread then goes on. (With
/// `PLAYHOUSE_JITTER`, this happens 100 times in the test.)
#[test]
fn nothing_is_lost_or_overtaken_where_a_handler_seems_stuck() {
    const ALL: u64 = 50_000;
    struct Sink {
        next: u64,
    }
    impl Actor for Sink {}
    impl Handler<Increment> for Sink {
        fn handle(&mut self, Increment(n): Increment, _: &mut Context<Self>) -> u64 {
            assert_eq!(n, self.next);
            self.next += 1;
            let until = Instant::now() + Duration::from_micros(5);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            self.next
        }
    }
    struct Source {
        to: ActorRef<Sink>,
        sent: u64,
    }
    impl Actor for Source {}
    impl Handler<Increment> for Source {
        fn handle(&mut self, Increment(count): Increment, ctx: &mut Context<Self>) -> u64 {
            for _ in 0..count.min(ALL - self.sent) {
                self.to.tell(Increment(self.sent));
                self.sent += 1;
            }
            if self.sent < ALL {
                ctx.this().tell(Increment(count));
            }
            self.sent
        }
    }
    finishes(|| {
        for apart in [1, 2] {
            let system = System::builder().workers(2).stages(2).stealing(Stealing::None).start().unwrap();
            let sink = system.spawn_with(on_stage(0), Sink { next: 0 });
            system.spawn_with(on_stage(apart % 2), Source { to: sink, sent: 0 }).tell(Increment(100));
            system.run_until_idle();
            assert_eq!(sink.ask(Increment(ALL)).wait(), Ok(ALL + 1));
            system.shutdown().unwrap();
        }
    });
}

// GUARANTEE: A stuck handler stops only itself
#[test]
fn several_blocked_handlers_stop_only_themselves() {
    finishes(|| {
        let system = System::builder().workers(1).stages(8).start().unwrap();
        let gates: Vec<_> = (0..4).map(|stage| blocked(&system, stage).1).collect();
        let adder = system.spawn_with(on_stage(7), Adder);
        for n in 0..100 {
            assert_eq!(adder.ask(Increment(n)).wait(), Ok(n + 1));
        }
        gates.iter().for_each(Gate::open);
        system.run_until_idle();
        system.shutdown().unwrap();
    });
}

#[test]
fn messages_of_a_blocked_handler_arrive_in_order() {
    finishes(|| {
        for round in 0..3 {
            let system = System::builder().workers(1 + round % 2).stages(8).start().unwrap();
            let log = Log::new();
            let scribe = system.spawn_with(on_stage(1), Scribe(log.clone()));
            let (gates, turnstiles): (Vec<_>, Vec<_>) = (0..2).map(|_| Gate::new()).unzip();
            let sender = system.spawn_with(on_stage(2), Puppet);
            sender.tell(Do::this(move |ctx| {
                let mut n = 0..;
                let mut send = |count: usize| n.by_ref().take(count).for_each(|n| scribe.tell(Write(n)));
                send(700);
                for turnstile in turnstiles {
                    turnstile.pass();
                    send(700);
                }
                let next = n.next().unwrap();
                ctx.this().tell(Do::this(move |_| (next..3000).for_each(|n| scribe.tell(Write(n)))));
            }));
            for (i, gate) in gates.iter().enumerate() {
                gate.wait_entered();
                // The messages sent before the block arrive during it, because other actors see them.
                let want = 700 * (i + 1);
                let start = Instant::now();
                while log.lock().len() < want {
                    assert!(start.elapsed() < LIMIT, "only {} of {want} arrived", log.lock().len());
                    std::thread::yield_now();
                }
                gate.open();
            }
            system.run_until_idle();
            assert!(log.take().into_iter().eq(0..3000));
            system.shutdown().unwrap();
        }
    });
}

// GUARANTEE: A stuck handler stops only itself
#[test]
fn the_stage_of_a_blocked_handler_goes_on_in_order_after_it_returns() {
    finishes(|| {
        let system = System::builder().workers(1).stages(4).start().unwrap();
        let log = Log::new();
        let neighbour = system.spawn_with(on_stage(0), Scribe(log.clone()));
        let other = system.spawn_with(on_stage(1), Adder);
        let (blocked, gate) = blocked(&system, 0);
        for n in 0..500 {
            neighbour.tell(Write(n));
        }
        // The takeover has happened when another stage answers.
        assert_eq!(other.ask(Increment(1)).wait(), Ok(2));
        for n in 500..1000 {
            neighbour.tell(Write(n));
        }
        gate.open();
        system.run_until_idle();
        assert!(log.take().into_iter().eq(0..1000));
        blocked.ask(Do::this(|_| ())).wait().unwrap();
        system.shutdown().unwrap();
    });
}

#[test]
fn children_are_not_put_behind_a_blocked_handler() {
    finishes(|| {
        let system = System::builder().workers(1).stages(8).start().unwrap();
        let parent = system.spawn_with(on_stage(1), Puppet);
        let (_, gate) = blocked(&system, 0);
        let log = Log::new();
        let children = log.clone();
        parent.ask(Do::this(move |ctx| (0..32).for_each(|_| children.push(ctx.spawn(Adder))))).wait().unwrap();
        for child in log.take() {
            assert_eq!(child.ask(Increment(1)).within(Duration::from_secs(10)).wait(), Ok(2));
        }
        gate.open();
        system.shutdown().unwrap();
    });
}

#[test]
fn idleness_waits_for_a_blocked_handler() {
    finishes(|| {
        for _ in 0..20 {
            let system = System::builder().workers(1).stages(4).start().unwrap();
            let adder = system.spawn_with(on_stage(1), Adder);
            let (blocked, gate) = blocked(&system, 0);
            let log = Log::new();
            let into = log.clone();
            blocked.tell(Do::this(move |_| into.push(1)));
            adder.ask(Increment(0)).wait().unwrap();
            let opener = std::thread::spawn(move || gate.open());
            system.run_until_idle();
            assert_eq!(log.take(), [1], "idle, though a message waited behind the handler that was blocked");
            opener.join().unwrap();
            system.shutdown().unwrap();
        }
    });
}

#[test]
fn a_panic_after_a_takeover_stays_in_its_actor() {
    support::quiet_panics();
    finishes(|| {
        let system = System::builder().workers(1).stages(4).start().unwrap();
        let adder = system.spawn_with(on_stage(1), Adder);
        let neighbour = system.spawn_with(on_stage(0), Adder);
        let (gate, turnstile) = Gate::new();
        let puppet = system.spawn_with(on_stage(0), Puppet);
        puppet.tell(Do::this(move |_| {
            turnstile.pass();
            panic!("meant: after the takeover");
        }));
        gate.wait_entered();
        assert_eq!(adder.ask(Increment(1)).wait(), Ok(2));
        gate.open();
        assert_eq!(neighbour.ask(Increment(1)).wait(), Ok(2));
        system.run_until_idle();
        assert!(puppet.is_stopped());
        system.shutdown().unwrap();
    });
}

#[test]
fn spawns_timers_and_asks_work_in_a_handler_that_lost_its_worker() {
    finishes(|| {
        let system = System::builder().workers(1).stages(4).start().unwrap();
        let adder = system.spawn_with(on_stage(1), Adder);
        let (gate, turnstile) = Gate::new();
        let log = Log::new();
        let answers = log.clone();
        system.spawn_with(on_stage(0), Puppet).tell(Do::this(move |ctx| {
            turnstile.pass();
            let child = ctx.spawn(Adder);
            let into = answers.clone();
            ctx.ask(child, Increment(1)).then(move |_, answer, _| into.push(answer));
            let into = answers.clone();
            let cancelled = ctx.send_after(Duration::from_millis(1), Do::this(move |_| into.push(Ok(0))));
            ctx.cancel(cancelled);
            ctx.send_after(Duration::from_millis(1), Do::this(move |_| answers.push(Ok(3))));
        }));
        gate.wait_entered();
        assert_eq!(adder.ask(Increment(1)).wait(), Ok(2));
        gate.open();
        system.run_until_idle();
        let mut answers = log.take();
        answers.sort_by_key(|answer| answer.clone().unwrap());
        assert_eq!(answers, [Ok(2), Ok(3)]);
        system.shutdown().unwrap();
    });
}

// GUARANTEE: A stuck handler stops only itself
#[test]
fn a_long_computation_does_not_stop_others() {
    finishes(|| {
        let system = System::builder().workers(1).stages(4).start().unwrap();
        let adder = system.spawn_with(on_stage(1), Adder);
        let stop = Arc::new(AtomicBool::new(false));
        let (end, (entered, entering)) = (Arc::clone(&stop), channel());
        system.spawn_with(on_stage(0), Puppet).tell(Do::this(move |_| {
            entered.send(()).unwrap();
            while !end.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        }));
        entering.recv_timeout(LIMIT).unwrap();
        for n in 0..10 {
            assert_eq!(adder.ask(Increment(n)).wait(), Ok(n + 1));
        }
        stop.store(true, Ordering::Relaxed);
        system.shutdown().unwrap();
    });
}

struct Eager {
    left: u64,
    urgent: bool,
}

impl Actor for Eager {}

#[derive(Message)]
struct Again(Arc<AtomicU64>);

impl Handler<Again> for Eager {
    fn handle(&mut self, Again(count): Again, ctx: &mut Context<Self>) {
        // Goes on until another actor has had a turn.
        if count.load(Ordering::Relaxed) == 0 && self.left > 0 {
            self.left -= 1;
            if self.urgent {
                ctx.this().tell_urgent(Again(count));
            } else {
                ctx.this().tell(Again(count));
            }
        }
    }
}

// GUARANTEE: No actor starves
#[test]
fn an_actor_that_writes_to_itself_for_ever_starves_nobody() {
    finishes(|| {
        for urgent in [false, true] {
            let system = System::builder().workers(1).stages(4).start().unwrap();
            let eager = system.spawn_with(on_stage(0), Eager { left: 3_000_000, urgent });
            let turns = Arc::new(AtomicU64::new(0));
            let (again, mine) = (Arc::clone(&turns), Arc::clone(&turns));
            let log = Log::new();
            let seen = log.clone();
            system.spawn_with(on_stage(1), Puppet).tell(Do::this(move |ctx| {
                eager.tell(Again(again));
                ctx.this().tell(Do::this(move |ctx| {
                    ctx.this().tell(Do::this(move |_| {
                        mine.fetch_add(1, Ordering::Relaxed);
                        seen.push(1);
                    }));
                }));
            }));
            system.run_until_idle();
            assert_eq!(log.take(), [1]);
            let handled = system.stats().total.received;
            assert!(handled < 1_000_000, "urgent: {urgent}: {handled} messages before another actor had its turn");
            system.shutdown().unwrap();
        }
    });
}

/// Sends itself an urgent message for each one that it handles.
struct Urgent {
    handled: Arc<AtomicU64>,
}

#[derive(Message)]
struct UrgentAgain;

impl Actor for Urgent {}

impl Handler<UrgentAgain> for Urgent {
    fn handle(&mut self, again: UrgentAgain, ctx: &mut Context<Self>) {
        self.handled.fetch_add(1, Ordering::Relaxed);
        ctx.this().tell_urgent(again);
    }
}

// GUARANTEE: No actor starves
#[test]
fn actors_that_always_have_urgent_messages_starve_nobody_and_each_other_neither() {
    finishes(|| {
        for workers in [1, 2] {
            for urgent in [1, 2, 3, 50] {
                let system = threads(workers);
                let other = system.spawn(Adder);
                let handled: Vec<_> = (0..urgent).map(|_| Arc::<AtomicU64>::default()).collect();
                for handled in &handled {
                    system.spawn(Urgent { handled: Arc::clone(handled) }).tell(UrgentAgain);
                }
                for number in 0..100 {
                    let answer = other.ask(Increment(number)).within(LIMIT).wait();
                    assert_eq!(answer, Ok(number + 1), "{urgent} actors with urgent messages, {workers} workers");
                }
                let deadline = Instant::now() + LIMIT;
                while handled.iter().any(|handled| handled.load(Ordering::Relaxed) < 1_000) {
                    assert!(Instant::now() < deadline, "{handled:?}");
                    std::thread::yield_now();
                }
                assert!(system.shutdown_within(Duration::from_millis(100)).is_ok());
            }
        }
    });
}

// GUARANTEE: Shutdown
#[test]
fn shutdown_with_a_stuck_handler_is_an_error_in_time() {
    finishes(|| {
        let system = System::builder().workers(1).stages(4).start().unwrap();
        let (_, gate) = blocked(&system, 0);
        let start = Instant::now();
        let error = system.shutdown_within(Duration::from_millis(200)).unwrap_err();
        assert!(start.elapsed() < Duration::from_secs(5));
        assert!(error.to_string().contains("1 thread"), "{error}");
        gate.open();
    });
}

// GUARANTEE: Order
#[test]
fn short_blocks_of_many_actors_keep_every_order() {
    finishes(|| {
        let system = System::builder().workers(2).stages(16).start().unwrap();
        let logs: Vec<Log<u64>> = (0..16).map(|_| Log::new()).collect();
        let scribes: Vec<_> =
            logs.iter().zip(0..).map(|(log, stage)| system.spawn_with(on_stage(stage), Scribe(log.clone()))).collect();
        std::thread::scope(|scope| {
            for sender in 0..4_u16 {
                let (gate, turnstile) = Gate::new();
                let to: Vec<_> = scribes.iter().copied().skip(4 * sender as usize).take(4).collect();
                let puppet = system.spawn_with(on_stage(sender), Puppet);
                puppet.tell(Do::this(move |ctx| {
                    to.iter().for_each(|scribe| (0..300).for_each(|n| scribe.tell(Write(n))));
                    turnstile.pass();
                    to.iter().for_each(|scribe| (300..600).for_each(|n| scribe.tell(Write(n))));
                    ctx.this().tell(Do::this(move |_| {
                        to.iter().for_each(|scribe| (600..900).for_each(|n| scribe.tell(Write(n))));
                    }));
                }));
                let witness = system.spawn_with(on_stage(8 + sender), Adder);
                scope.spawn(move || {
                    gate.wait_entered();
                    // The worker answers only after the takeover of the blocked worker, or the other worker answers.
                    witness.ask(Increment(1)).wait().unwrap();
                    gate.open();
                });
            }
        });
        system.run_until_idle();
        for (stage, log) in logs.iter().enumerate() {
            assert!(log.take().into_iter().eq(0..900), "scribe {stage}");
        }
        system.shutdown().unwrap();
    });
}

// GUARANTEE: A dedicated actor may block
#[test]
fn messages_of_a_dedicated_actor_leave_before_its_handler_returns() {
    finishes(|| {
        let system = threads(1);
        let dedicated = system.spawn_with(SpawnOptions::new().placement(Placement::Dedicated), Puppet);
        let (heard, hears) = channel();
        let (gate, turnstile) = Gate::new();
        let puppet = system.spawn(Puppet);
        dedicated.tell(Do::this(move |_| {
            for n in 0..100 {
                let heard = heard.clone();
                puppet.tell(Do::this(move |_| heard.send(n).unwrap()));
            }
            turnstile.pass();
        }));
        gate.wait_entered();
        for n in 0..100 {
            assert_eq!(hears.recv_timeout(LIMIT), Ok(n), "it came only when the handler returned");
        }
        gate.open();
        system.shutdown().unwrap();
    });
}
