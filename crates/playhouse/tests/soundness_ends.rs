//! Shutdowns end, whatever user code does.

mod support;

use std::future::{Future, IntoFuture};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as PollContext, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use playhouse::prelude::*;
use playhouse::{Guard, ShutdownError, ShutdownReport};
use support::{
    Adder, Clock, Do, Gate, Increment, LIMIT, Never, Puppet, Turnstile, finishes, on_stage, quiet_panics, shut_down,
    threads,
};

#[derive(Message)]
struct Note;

/// Takes no [`Note`].
struct Closed;

impl Actor for Closed {}

impl Handler<Note> for Closed {
    fn guard(&self, _: &Note) -> Guard {
        Guard::Refuse
    }

    fn handle(&mut self, _: Note, _: &mut Context<Self>) {}
}

/// Lets a [`Note`] wait for ever.
struct Patient;

impl Actor for Patient {}

impl Handler<Note> for Patient {
    fn guard(&self, _: &Note) -> Guard {
        Guard::Defer
    }

    fn handle(&mut self, _: Note, _: &mut Context<Self>) {}
}

/// Counts the messages that it gets.
struct Counter;

impl Actor for Counter {}

impl Handler<Note> for Counter {
    fn handle(&mut self, _: Note, _: &mut Context<Self>) {}
}

fn is_answered<A: Handler<M>, M: Message + Send>(to: ActorRef<A>, message: M) -> bool
where
    M::Reply: Send,
{
    to.ask(message).within(LIMIT).wait().is_ok()
}

/// An actor that has ended.
fn gone(system: &System) -> ActorRef<Counter> {
    let gone = system.spawn(Counter);
    gone.kill();
    system.run_until_idle();
    gone
}

// GUARANTEE: Dead-letter hooks
#[test]
fn a_hook_is_not_called_for_what_hooks_send_to_actors_that_are_gone() {
    for simulated in [false, true] {
        finishes(move || {
            let builder = System::builder().workers(2);
            let system = if simulated { builder.simulated(1) } else { builder }.start().unwrap();
            let (gone, closed) = (gone(&system), system.spawn(Closed));
            let calls = Arc::new(AtomicU64::new(0));
            let counted = Arc::clone(&calls);
            system.on_dead_letter(move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
                gone.tell(Note);
                gone.tell(Note);
                closed.tell(Note);
            });
            // From outside; from a worker; to an actor that refuses it.
            gone.tell(Note);
            system.spawn(Puppet).tell(Do::this(move |_| gone.tell(Note)));
            closed.tell(Note);
            system.run_until_idle();
            assert_eq!(calls.load(Ordering::Relaxed), 3);
            assert_eq!(system.stats().total.dead_letters, 12);
            // A send of a later handler is no hook's send.
            system.spawn(Puppet).tell(Do::this(move |_| gone.tell(Note)));
            system.run_until_idle();
            assert_eq!(calls.load(Ordering::Relaxed), 4);
            system.shutdown().unwrap();
        });
    }
}

// GUARANTEE: Dead-letter hooks
#[test]
fn a_shutdown_ends_though_a_hook_tells_an_actor_of_each_dead_letter() {
    for workers in [1, 2] {
        finishes(move || {
            let system = threads(workers);
            let counter = system.spawn(Counter);
            system.on_dead_letter(move |_| counter.tell(Note));
            let waits = system.spawn(Patient);
            waits.tell(Note);
            system.run_until_idle();
            let report = system.shutdown().unwrap();
            assert_eq!(report.actors_stopped, 2);
            assert!(report.undelivered >= 1, "{report:?}");
        });
    }
}

// GUARANTEE: Dead-letter hooks
#[test]
fn a_hook_that_panics_ends_nothing() {
    quiet_panics();
    finishes(|| {
        let system = threads(1);
        let (gone, adder) = (gone(&system), system.spawn(Adder));
        let calls = Arc::new(AtomicU64::new(0));
        system.on_dead_letter(|_| panic!("meant: a hook panics"));
        let counted = Arc::clone(&calls);
        system.on_dead_letter(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        gone.tell(Note);
        let puppet = system.spawn(Puppet);
        puppet.tell(Do::this(move |_| gone.tell(Note)));
        system.spawn(Patient).tell(Note);
        assert!(is_answered(adder, Increment(1)) && is_answered(puppet, Do::this(|_| {})));
        system.run_until_idle();
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        assert_eq!(system.stats().total.crashes, 0);
        let report = system.clone().shutdown().unwrap();
        // The guard's message, at the end.
        assert_eq!((report.actors_stopped, report.undelivered), (3, 1));
        assert_eq!(calls.load(Ordering::Relaxed), 3);
        // A system that has ended calls no hook.
        adder.tell(Increment(1));
        assert!(adder.ask(Increment(1)).wait().is_err());
        assert_eq!(calls.load(Ordering::Relaxed), 3);
    });
}

/// An actor with a `stopped` that stands in a gate.
struct SlowToStop(Option<Turnstile>);

impl Actor for SlowToStop {
    fn stopped(&mut self, _: &mut Context<Self>) {
        if let Some(turnstile) = self.0.take() {
            turnstile.pass();
        }
    }
}

impl AsyncHandler<Never> for SlowToStop {
    async fn handle(&mut self, _: Never, _: &mut Context<Self>) {
        std::future::pending().await
    }
}

/// The longest that a shutdown with a limit of 200 ms may take: with its grace of 200 ms, and time for a busy machine.
const IN_TIME: Duration = Duration::from_millis(if cfg!(any(tsan, miri)) { 20_000 } else { 2_000 });

fn ends_in_time(system: &System) -> Result<ShutdownReport, ShutdownError> {
    let start = Instant::now();
    let ended = system.clone().shutdown_within(Duration::from_millis(200));
    assert!(start.elapsed() < IN_TIME, "{:?}", start.elapsed());
    ended
}

// GUARANTEE: Shutdown
#[test]
fn a_shutdown_keeps_its_limit_whatever_stopped_and_hooks_and_drops_do() {
    struct Drops(Option<Turnstile>);
    impl Drop for Drops {
        fn drop(&mut self) {
            if let Some(turnstile) = self.0.take() {
                turnstile.pass();
            }
        }
    }
    finishes(|| {
        // `stopped`.
        let system = threads(2);
        let (gate, turnstile) = Gate::new();
        system.spawn(SlowToStop(Some(turnstile)));
        ends_in_time(&system).unwrap_err();
        // The slow hook has ended, and therefore the system ends.
        gate.open();
        system.shutdown().unwrap();

        // A drop of a message.
        let system = threads(1);
        let (gate, turnstile) = Gate::new();
        let drops = Drops(Some(turnstile));
        let (stands, blocks) = Gate::new();
        let puppet = system.spawn(Puppet);
        puppet.tell(Do::this(move |_| blocks.pass()));
        stands.wait_entered();
        puppet.tell(Do::this(move |_| drop(drops)));
        ends_in_time(&system).unwrap_err();
        stands.open();
        gate.open();
        system.shutdown().unwrap();

        // A hook.
        let system = threads(1);
        let (gate, turnstile) = Gate::new();
        let turnstile = std::sync::Mutex::new(Some(turnstile));
        system.on_dead_letter(move |_| {
            if let Some(turnstile) = support::lock(&turnstile).take() {
                turnstile.pass();
            }
        });
        system.spawn(Patient).tell(Note);
        ends_in_time(&system).unwrap_err();
        gate.open();
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Calls that block name the actor
#[test]
fn a_late_shutdown_names_the_handlers_that_have_not_returned() {
    fn named(name: &str) -> SpawnOptions {
        SpawnOptions::new().name(name)
    }
    /// One actor is in a handler that a gate holds. Returns how the shutdown fails.
    fn fails(system: System, holds: impl FnOnce(&System, Turnstile)) -> ShutdownError {
        let (gate, turnstile) = Gate::new();
        holds(&system, turnstile);
        gate.wait_entered();
        let error = ends_in_time(&system).unwrap_err();
        gate.open();
        system.shutdown().unwrap();
        error
    }
    finishes(|| {
        for placement in [Placement::Near, Placement::Dedicated] {
            let error = fails(threads(2), |system, turnstile| {
                system.spawn_with(named("other"), Puppet).tell(Do::this(|_| ()));
                let held = system.spawn_with(named("held").placement(placement), Puppet);
                held.tell(Do::this(move |_| turnstile.pass()));
            });
            assert_eq!(error.actors(), ["Puppet \"held\""]);
            let said = "1 thread of the actor system did not end in time: a handler, a hook or a drop of Puppet \"held\" has not returned";
            assert_eq!(error.to_string(), said);
        }

        // The error names the inner one of two nested handlers. If the first has returned, it names the only one.
        let error = fails(threads(1), |system, turnstile| {
            let inner = system.spawn_with(named("inner"), Puppet);
            let outer = system.spawn_with(named("outer"), Puppet);
            outer.tell(Do::this(move |ctx| ctx.ask(inner, Do::this(move |_| turnstile.pass())).then(|_, _, _| ())));
        });
        assert_eq!(error.actors(), ["Puppet \"inner\""]);

        // The error names no actor for a message to another one that has ended before.
        struct Slow(Option<Turnstile>);
        impl Drop for Slow {
            fn drop(&mut self) {
                self.0.take().unwrap().pass();
            }
        }
        let error = fails(threads(1), |system, turnstile| {
            let ended = system.spawn(Puppet);
            ended.stop();
            system.run_until_idle();
            for number in 0..100 {
                system.spawn_with(named(&format!("{number}")), Puppet);
            }
            let slow = Slow(Some(turnstile));
            ended.tell(Do::this(move |_| drop(slow)));
        });
        assert!(error.actors().is_empty(), "{error}");

        // `stopped`, when all threads have ended.
        let system = threads(1);
        let (gate, turnstile) = Gate::new();
        system.spawn_with(named("slow"), SlowToStop(Some(turnstile)));
        let error = ends_in_time(&system).unwrap_err();
        assert_eq!(error.actors(), ["SlowToStop \"slow\""]);
        gate.open();
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Quiescence
#[test]
fn a_caller_that_waits_for_an_idle_system_goes_on_after_its_shutdown() {
    #[derive(Message, Clone)]
    struct Tick;
    struct Ticks;
    impl Actor for Ticks {
        fn started(&mut self, ctx: &mut Context<Self>) {
            ctx.send_every(Duration::from_millis(if cfg!(miri) { 4_000 } else { 5 }), Tick);
        }
    }
    impl Handler<Tick> for Ticks {
        fn handle(&mut self, _: Tick, _: &mut Context<Self>) {}
    }
    finishes(|| {
        let system = threads(2);
        system.spawn(Ticks);
        let (gate, turnstile) = Gate::new();
        let waits = system.clone();
        let waiting = std::thread::spawn(move || waits.run_until_idle());
        shut_down(system.clone());
        waiting.join().unwrap();
        system.run_until_idle();

        // A handler is stuck.
        let system = threads(2);
        system.spawn(Puppet).tell(Do::this(move |_| turnstile.pass()));
        gate.wait_entered();
        ends_in_time(&system).unwrap_err();
        system.run_until_idle();
        gate.open();
    });
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Awaits `future` on this thread.
fn block_on<F: IntoFuture>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = std::pin::pin!(future.into_future());
    loop {
        match future.as_mut().poll(&mut PollContext::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

// GUARANTEE: An ask ends
#[test]
fn asks_of_a_system_that_leaves_a_stuck_handler_behind_end() {
    finishes(|| {
        let system = threads(2);
        let (gate, turnstile) = Gate::new();
        let (stuck, waits) = (system.spawn_with(on_stage(0), Puppet), system.spawn_with(on_stage(1), Clock));
        stuck.tell(Do::this(move |_| turnstile.pass()));
        gate.wait_entered();
        let later = Duration::from_millis(400);
        let asks = [
            // Queued behind the stuck handler; handled by an actor that waits; the same, awaited.
            std::thread::spawn(move || stuck.ask(Do::this(|_| {})).wait()),
            std::thread::spawn(move || stuck.ask(Do::this(|_| {})).within(later).wait()),
            std::thread::spawn(move || waits.ask(Never).wait()),
            std::thread::spawn(move || waits.ask(Never).within(later).wait()),
            std::thread::spawn(move || block_on(waits.ask(Never))),
            std::thread::spawn(move || block_on(waits.ask(Never).within(LIMIT))),
            std::thread::spawn(move || block_on(stuck.ask(Do::this(|_| {})))),
        ];
        ends_in_time(&system).unwrap_err();
        for ask in asks {
            let error = ask.join().unwrap().unwrap_err();
            assert!(matches!(error, AskError::Shutdown | AskError::Deadline { .. }), "{error:?}");
        }
        // Asks of a system that was given up.
        assert_eq!(waits.ask(Never).wait(), Err(AskError::Shutdown));
        assert_eq!(block_on(stuck.ask(Do::this(|_| {}))), Err(AskError::Shutdown));
        gate.open();
    });
}

// GUARANTEE: An ask ends
#[test]
fn a_deadline_ends_an_ask_though_no_worker_of_its_system_runs_any_more() {
    finishes(|| {
        let system = threads(1);
        // The actors may end in any order, but the asked actor is not the first.
        let [(gate, first), (other, last)] = [Gate::new(), Gate::new()];
        let [_, waits, _] = [Some(first), None, Some(last)].map(|turnstile| system.spawn(SlowToStop(turnstile)));
        let (asking, asked) = std::sync::mpsc::channel();
        let ask = std::thread::spawn(move || {
            asking.send(()).unwrap();
            waits.ask(Never).within(Duration::from_millis(300)).wait()
        });
        asked.recv_timeout(LIMIT).unwrap();
        // The workers end at once, and the shutdown waits for the gates.
        let ends = std::thread::spawn(move || system.shutdown());
        ask.join().unwrap().unwrap_err();
        gate.open();
        other.open();
        ends.join().unwrap().unwrap();
    });
}

/// Starts others in `stopped`.
struct Founder {
    other: Option<ActorRef<Founder>>,
    begun: Arc<AtomicU64>,
    done: Arc<AtomicU64>,
}

impl Actor for Founder {
    fn stopped(&mut self, ctx: &mut Context<Self>) {
        self.begun.fetch_add(1, Ordering::Relaxed);
        ctx.spawn(Counter);
        for placement in [Placement::Spread, Placement::Stage(1), Placement::Dedicated] {
            ctx.spawn_with(SpawnOptions::new().placement(placement), Counter);
        }
        ctx.system().spawn(Counter);
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Message)]
struct Ball(u32);

impl Handler<Ball> for Founder {
    fn handle(&mut self, Ball(left): Ball, _: &mut Context<Self>) {
        if let (1.., Some(other)) = (left, self.other) {
            other.tell(Ball(left - 1));
        }
    }
}

#[derive(Message)]
struct Meet(ActorRef<Founder>);

impl Handler<Meet> for Founder {
    fn handle(&mut self, Meet(other): Meet, _: &mut Context<Self>) {
        self.other = Some(other);
    }
}

#[test]
fn actors_that_start_others_as_their_system_ends_are_not_refused() {
    finishes(|| {
        for _ in 0..if cfg!(miri) { 2 } else { 20 } {
            let system = System::builder().workers(2).stages(2).start().unwrap();
            let (begun, done) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
            let [one, two] = [0, 1].map(|stage| {
                let founder = Founder { other: None, begun: Arc::clone(&begun), done: Arc::clone(&done) };
                system.spawn_with(on_stage(stage), founder)
            });
            one.tell(Meet(two));
            two.tell(Meet(one));
            // One worker adopts the stage of the other one, which has no stage then.
            one.tell(Ball(if cfg!(miri) { 50 } else { 5_000 }));
            system.run_until_idle();
            system.shutdown().unwrap();
            assert_eq!((begun.load(Ordering::Relaxed), done.load(Ordering::Relaxed)), (2, 2));
        }
    });
}

#[test]
fn a_waker_that_blocks_does_not_hold_up_a_shutdown() {
    struct Blocks(std::sync::Mutex<Option<Turnstile>>);
    impl Wake for Blocks {
        fn wake(self: Arc<Self>) {
            let turnstile = support::lock(&self.0).take();
            turnstile.into_iter().for_each(Turnstile::pass);
        }
    }
    finishes(|| {
        let system = threads(1);
        let waits = system.spawn(Clock);
        let ((stays, stuck), (opens, blocks)) = (Gate::new(), Gate::new());
        system.spawn_with(on_stage(1), Puppet).tell(Do::this(move |_| stuck.pass()));
        stays.wait_entered();
        let waker = Waker::from(Arc::new(Blocks(Some(blocks).into())));
        let mut ask = std::pin::pin!(waits.ask(Never));
        assert!(ask.as_mut().poll(&mut PollContext::from_waker(&waker)).is_pending());
        ends_in_time(&system).unwrap_err();
        opens.wait_entered();
        assert_eq!(ask.as_mut().poll(&mut PollContext::from_waker(&waker)), Poll::Ready(Err(AskError::Shutdown)));
        opens.open();
        stays.open();
    });
}

#[test]
fn an_ask_whose_handler_waits_at_a_shutdown_ends_with_the_shutdown() {
    finishes(|| {
        let system = threads(1);
        let waits = system.spawn(Clock);
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut ask = std::pin::pin!(waits.ask(Never));
        assert!(ask.as_mut().poll(&mut PollContext::from_waker(&waker)).is_pending());
        system.shutdown_within(if cfg!(miri) { LIMIT } else { Duration::from_millis(100) }).unwrap();
        assert_eq!(ask.as_mut().poll(&mut PollContext::from_waker(&waker)), Poll::Ready(Err(AskError::Shutdown)));
    });
}

#[test]
fn a_hook_for_slow_handlers_that_tells_an_actor_keeps_no_worker_from_being_taken_over() {
    /// Answers late.
    struct Late(Arc<AtomicU64>);
    impl Actor for Late {}
    impl Handler<Note> for Late {
        fn handle(&mut self, _: Note, _: &mut Context<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
            let until = Instant::now() + Duration::from_micros(50);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        }
    }
    const ENOUGH: u64 = if cfg!(miri) { 70 } else { 2_000 };
    finishes(|| {
        // Under Miri each handler would be slow, also the logger's. The hook would report the logger to itself for
        // ever.
        let slow = Duration::from_millis(if cfg!(miri) { 500 } else { 1 });
        let system = System::builder().workers(1).stages(4).slow_handlers(slow).start().unwrap();
        let handled = Arc::<AtomicU64>::default();
        let late = system.spawn_with(on_stage(1), Late(Arc::clone(&handled)));
        let (stuck, logger) = (system.spawn_with(on_stage(2), Puppet), system.spawn_with(on_stage(3), Counter));
        system.on_slow_handler(move |_| logger.tell(Note));
        let over = Arc::<std::sync::atomic::AtomicBool>::default();
        let is_over = Arc::clone(&over);
        let flood = std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                late.tell(Note);
            }
        });
        let more_than = |count: u64| {
            let deadline = Instant::now() + LIMIT;
            while handled.load(Ordering::Relaxed) <= count {
                assert!(Instant::now() < deadline, "{count} were handled, and no more");
                std::thread::yield_now();
            }
        };
        // The number is enough to press the worker.
        more_than(ENOUGH);
        let (gate, turnstile) = Gate::new();
        stuck.tell_urgent(Do::this(move |_| turnstile.pass()));
        gate.wait_entered();
        more_than(handled.load(Ordering::Relaxed) + ENOUGH);
        gate.open();
        over.store(true, Ordering::Relaxed);
        flood.join().unwrap();
        shut_down(system);
    });
}
