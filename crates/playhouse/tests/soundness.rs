//! Programs without unsafe code that have crashed or hung the process. Handlers, hooks, drops and wakers may panic in any place: only
//! their actor ends, and everything else goes on.

mod support;

use std::future::poll_fn;
use std::panic::panic_any;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context as PollContext, Poll, Wake, Waker};
use std::time::Duration;

use playhouse::prelude::*;
use support::{finishes, on_stage};

/// The action in the drop of a [`Later`].
#[derive(Clone, Copy, PartialEq)]
enum Drops {
    Tells,
    Panics,
    StartsTimers,
}

struct Sink(Arc<AtomicUsize>);

#[actor]
impl Sink {
    #[message]
    fn note(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    #[message]
    fn never(&mut self) -> u32 {
        1
    }
}

/// A message that waits in a timer.
#[derive(Message)]
struct Later {
    drops: Drops,
    sink: ActorRef<Sink>,
    dropped: Arc<AtomicUsize>,
}

impl Drop for Later {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        match self.drops {
            Drops::Tells => self.sink.tell(Note),
            Drops::Panics => panic!("meant: a drop that panics"),
            Drops::StartsTimers => {
                for _ in 0..if cfg!(miri) { 5 } else { 200 } {
                    let mut ask = Box::pin(self.sink.ask(Never).within(Duration::from_secs(3600)));
                    let _ = ask.as_mut().poll(&mut PollContext::from_waker(Waker::noop()));
                }
            }
        }
    }
}

/// Sets a timer and cancels it later, perhaps on another worker.
#[derive(Default)]
struct Owner(Option<TimerKey>);

impl Actor for Owner {}

impl Handler<Later> for Owner {
    fn handle(&mut self, _: Later, _: &mut Context<Self>) {}
}

#[derive(Message)]
struct Set(Later);

impl Handler<Set> for Owner {
    fn handle(&mut self, Set(later): Set, ctx: &mut Context<Self>) {
        self.0 = Some(ctx.send_after(Duration::from_secs(3600), later));
    }
}

#[derive(Message)]
struct Work(u32);

impl Handler<Work> for Owner {
    fn handle(&mut self, Work(left): Work, ctx: &mut Context<Self>) {
        match left {
            0 => self.0.take().into_iter().for_each(|key| ctx.cancel(key)),
            _ => ctx.this().tell(Work(left - 1)),
        }
    }
}

// GUARANTEE: Crashes are isolated
#[test]
fn a_timer_that_is_cancelled_on_another_worker_drops_its_message_where_it_may_do_anything() {
    const SEEDS: u64 = if cfg!(miri) { 2 } else { 100 };
    support::quiet_panics();
    finishes(|| {
        let mut steals = 0;
        for drops in [Drops::Tells, Drops::Panics, Drops::StartsTimers] {
            for seed in 0..SEEDS {
                let system = System::builder().workers(2).stages(4).simulated(seed).start().unwrap();
                let (noted, dropped) = (Arc::default(), Arc::default());
                let sink = system.spawn_with(on_stage(1), Sink(Arc::clone(&noted)));
                for stage in 0..4 {
                    let owner = system.spawn_with(on_stage(stage), Owner::default());
                    owner.tell(Set(Later { drops, sink, dropped: Arc::clone(&dropped) }));
                    owner.tell(Work(20));
                }
                system.run_until_idle();
                assert_eq!(dropped.load(Ordering::Relaxed), 4, "seed {seed}");
                let tells = if drops == Drops::Tells { 4 } else { 0 };
                assert_eq!(noted.load(Ordering::Relaxed), tells, "seed {seed}");
                steals += system.stats().total.steals;
                system.shutdown().unwrap();
            }
        }
        assert!(
            steals > if cfg!(miri) { 0 } else { 100 },
            "stages moved between setting and cancelling only {steals} times"
        );
    });
}

/// A payload whose drop panics with another one.
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 > 0 {
            panic_any(Bomb(self.0 - 1));
        }
    }
}

struct Fuse;

#[actor]
impl Fuse {
    #[message]
    fn explode(&mut self, depth: u32) {
        panic_any(Bomb(depth))
    }

    #[message]
    async fn explode_later(&mut self, depth: u32) {
        let mut polled = false;
        poll_fn(|cx| {
            cx.waker().wake_by_ref();
            if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        panic_any(Bomb(depth))
    }

    #[message]
    fn number(&self) -> u32 {
        7
    }
}

// GUARANTEE: Crashes are isolated
#[test]
fn panics_whose_payloads_panic_when_they_are_dropped_end_one_actor() {
    support::quiet_panics();
    finishes(|| {
        for depth in [0, 1, 2, 3, 40] {
            let system = System::builder().workers(1).start().unwrap();
            let [bystander, first, second, third] = [(); 4].map(|()| system.spawn(Fuse));
            first.tell(Explode(depth));
            second.tell(ExplodeLater(depth));
            assert_eq!(third.ask(Explode(depth)).wait(), Err(AskError::Panicked));
            system.run_until_idle();
            assert!(first.is_stopped() && second.is_stopped());
            assert_eq!(bystander.ask(Number).wait(), Ok(7));
            system.shutdown().unwrap();
        }
    });
}

/// The waker of an executor that is gone.
struct BadWaker(Mutex<mpsc::Sender<()>>);

impl Wake for BadWaker {
    fn wake(self: Arc<Self>) {
        let _ = self.0.lock().unwrap().send(());
        panic!("meant: a waker that panics");
    }
}

struct Answerer;

#[actor]
impl Answerer {
    #[message]
    fn open(&mut self, gate: support::Turnstile) -> u32 {
        gate.pass();
        1
    }

    #[message]
    async fn hang(&mut self) -> u32 {
        std::future::pending().await
    }

    #[message]
    fn count(&self) -> u32 {
        7
    }
}

// GUARANTEE: Crashes are isolated
#[test]
fn a_waker_that_panics_ends_nobody() {
    support::quiet_panics();
    for by_deadline in [false, true] {
        finishes(move || {
            let system = System::builder().workers(1).start().unwrap();
            let answerer = system.spawn(Answerer);
            let (called, calls) = mpsc::channel();
            let waker = Waker::from(Arc::new(BadWaker(Mutex::new(called))));
            let (gate, turnstile) = support::Gate::new();
            let mut ask: Pin<Box<dyn Future<Output = _> + Send>> = if by_deadline {
                Box::pin(answerer.ask(Hang).within(Duration::from_millis(1)))
            } else {
                Box::pin(answerer.ask(Open(turnstile)))
            };
            assert!(ask.as_mut().poll(&mut PollContext::from_waker(&waker)).is_pending());
            gate.open();
            calls.recv().unwrap();
            if by_deadline {
                answerer.kill();
            } else {
                assert_eq!(answerer.ask(Count).wait(), Ok(7));
            }
            assert_eq!(system.spawn(Answerer).ask(Count).wait(), Ok(7));
            system.shutdown().unwrap();
        });
    }
}

/// Its hook and its drop panic if the test asks for that.
struct Frail {
    in_drop: bool,
    in_stopped: bool,
}

impl Drop for Frail {
    fn drop(&mut self) {
        if self.in_drop && !std::thread::panicking() {
            panic!("meant: a drop that panics");
        }
    }
}

#[actor]
impl Frail {
    #[message]
    fn crash(&mut self) -> u32 {
        panic!("meant: a handler that panics")
    }

    #[message]
    fn end(&mut self, ctx: &mut Context<Self>) -> u32 {
        ctx.stop();
        7
    }

    #[stopped]
    fn bye(&mut self) {
        if self.in_stopped {
            panic!("meant: a hook that panics");
        }
    }
}

/// Ends while it starts.
struct Stillborn;

impl Drop for Stillborn {
    fn drop(&mut self) {
        panic!("meant: a drop that panics");
    }
}

#[actor]
impl Stillborn {
    #[started]
    fn start(&mut self, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

struct Asker(ActorRef<Frail>);

#[actor]
impl Asker {
    #[message]
    async fn ask_crash(&mut self) -> Result<u32, AskError> {
        self.0.ask(Crash).await
    }

    #[message]
    async fn ask_end(&mut self) -> Result<u32, AskError> {
        self.0.ask(End).await
    }

    #[message]
    fn bear(&mut self, ctx: &mut Context<Self>) -> u32 {
        ctx.spawn(Stillborn);
        1
    }
}

// GUARANTEE: Crashes are isolated
#[test]
fn an_end_that_panics_on_the_stack_of_another_actor_is_none_of_its_business() {
    support::quiet_panics();
    finishes(|| {
        for (workers, simulated) in [(1, None), (2, None), (2, Some(3))] {
            let mut builder = System::builder().workers(workers).stages(2);
            if let Some(seed) = simulated {
                builder = builder.simulated(seed);
            }
            let system = builder.start().unwrap();
            for (in_drop, in_stopped) in [(false, false), (true, false), (false, true), (true, true)] {
                let asker = || system.spawn(Asker(system.spawn(Frail { in_drop, in_stopped })));
                assert_eq!(asker().ask(AskCrash).wait(), Ok(Err(AskError::Panicked)));
                let asker = asker();
                assert_eq!(asker.ask(AskEnd).wait(), Ok(Ok(7)));
                assert_eq!(asker.ask(Bear).wait(), Ok(1));
            }
            system.run_until_idle();
            // The remaining actors end with the system, with their hooks and drops.
            for (in_drop, in_stopped) in [(true, false), (false, true), (true, true)] {
                system.spawn(Frail { in_drop, in_stopped });
            }
            system.shutdown().unwrap();
        }
    });
}

/// A message that a timer clones. Its drop panics while the world is quiet.
#[derive(Message)]
struct Tick(Arc<AtomicUsize>);

impl Clone for Tick {
    fn clone(&self) -> Tick {
        Tick(Arc::clone(&self.0))
    }
}

impl Drop for Tick {
    fn drop(&mut self) {
        if self.0.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) && !std::thread::panicking() {
            panic!("meant: a drop that panics");
        }
    }
}

struct Ticking;

impl Actor for Ticking {}

impl Handler<Tick> for Ticking {
    fn handle(&mut self, tick: Tick, ctx: &mut Context<Self>) {
        for _ in 0..8 {
            ctx.send_every(Duration::from_millis(1), tick.clone());
        }
        ctx.stop();
    }
}

// GUARANTEE: Crashes are isolated
#[test]
fn all_timers_of_an_actor_end_with_it_though_the_drops_of_their_messages_panic() {
    support::quiet_panics();
    finishes(|| {
        for simulated in [false, true] {
            let system = if simulated { support::simulated(7) } else { support::threads(2) };
            let ticking = system.spawn(Ticking);
            ticking.tell(Tick(Arc::default()));
            // The system is idle only when no timer is left.
            system.run_until_idle();
            assert!(ticking.is_stopped());
            system.shutdown().unwrap();
        }
    });
}
