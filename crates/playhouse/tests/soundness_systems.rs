//! Systems that several threads use, at the ends of threads, and at their own ends.

mod support;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use playhouse::Undelivered;
use playhouse::prelude::*;
#[cfg(not(miri))]
use playhouse::{Simulation, Theater};
use support::{finishes, shut_down, simulated, threads};

// -- the destructors of thread-locals --------------------------------------------------------------------------------

#[derive(Default)]
struct Counter {
    total: u32,
    inner: Option<ActorRef<Counter>>,
}

#[actor]
impl Counter {
    #[message]
    fn add(&mut self) {
        self.total += 1;
    }

    #[message]
    fn total(&self) -> u32 {
        self.total
    }

    /// Asks on behalf of its asker.
    #[message]
    async fn inner_total(&mut self) -> u32 {
        let inner = self.inner.expect("it was made with one");
        inner.ask(Total).await.expect("the inner counter lives")
    }
}

/// Calls a function when it is dropped, and sends the function's result.
struct AtExit<R: Send>(Option<Box<dyn FnOnce() -> R>>, Sender<std::thread::Result<R>>);

impl<R: Send> Drop for AtExit<R> {
    fn drop(&mut self) {
        let call = self.0.take().expect("it is dropped once");
        let _ = self.1.send(catch_unwind(AssertUnwindSafe(call)));
    }
}

/// Calls `before` on a new thread. Calls `at_exit` in the destructor of a thread-local, which is destroyed behind all thread-locals that
/// `before` has used.
fn at_thread_exit<R: Send + 'static>(before: impl FnOnce() + Send, at_exit: impl FnOnce() -> R + Send + 'static) -> R {
    thread_local! {
        static LAST: RefCell<Option<Box<dyn std::any::Any>>> = const { RefCell::new(None) };
    }
    let (result, results) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            LAST.set(Some(Box::new(AtExit(Some(Box::new(at_exit)), result))));
            before();
        });
    });
    results.recv().expect("the destructor has run").unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[test]
fn a_full_mailbox_refuses_what_the_destructor_of_a_thread_local_sends() {
    finishes(|| {
        let system = threads(1);
        let (refused, letters) = channel();
        system.on_dead_letter(move |letter| {
            let _ = refused.send(letter.why);
        });
        let bounded = || SpawnOptions::new().mailbox(Mailbox::bounded(1));
        let counter = system.spawn_with(bounded(), Counter::default());
        let (gate, open) = channel::<()>();
        let blocker = system.spawn(Blocker);
        blocker.tell(Block(open));
        counter.tell(Add);
        // The worker waits in the blocker. The counter's mailbox is therefore full.
        let answer = at_thread_exit(
            move || counter.tell(Add),
            move || {
                counter.tell(Add);
                counter.ask(Total).wait()
            },
        );
        assert_eq!(answer, Err(AskError::Full));
        drop(gate);
        system.run_until_idle();
        assert_eq!(counter.ask(Total).wait(), Ok(1));
        system.shutdown().unwrap();
        assert_eq!(letters.try_iter().collect::<Vec<_>>(), [Undelivered::Full; 2]);
    });
}

struct Blocker;

#[actor]
impl Blocker {
    #[message]
    fn block(&mut self, until: std::sync::mpsc::Receiver<()>) {
        let _ = until.recv();
    }
}

#[test]
fn a_simulated_system_runs_in_the_destructor_of_a_thread_local() {
    finishes(|| {
        let system = simulated(1);
        let inner = system.spawn(Counter { total: 3, inner: None });
        let outer = system.spawn(Counter { total: 0, inner: Some(inner) });
        let ask = move || outer.ask(InnerTotal).wait();
        let answer = at_thread_exit(
            move || {
                assert_eq!(ask(), Ok(3));
            },
            ask,
        );
        assert_eq!(answer, Ok(3));
        system.shutdown().unwrap();
    });
}

// -- simulated systems that several threads run ----------------------------------------------------------------------

/// Sends itself a number of messages, each some time after the former one.
struct Ticker {
    left: u64,
}

#[actor]
impl Ticker {
    #[started]
    fn start(&mut self, ctx: &mut Context<Self>) {
        (1..20).for_each(|ms| {
            ctx.send_after(Duration::from_millis(ms), Tick);
        });
    }

    #[message]
    fn tick(&mut self, ctx: &mut Context<Self>) {
        if self.left > 0 {
            self.left -= 1;
            ctx.send_after(Duration::from_millis(1 + self.left % 90), Tick);
        }
    }

    #[message]
    fn left(&self) -> u64 {
        self.left
    }

    /// Runs its own system.
    #[message]
    fn nest(&mut self, system: System) {
        system.run_until_idle();
    }
}

/// Calls `f` on each of four threads at once.
fn on_four_threads(f: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        (0..4).for_each(|_| {
            scope.spawn(&f);
        });
    });
}

// GUARANTEE: Threads that run a simulated system
#[test]
fn threads_that_run_a_simulated_system_take_turns() {
    finishes(|| {
        let system = simulated(1);
        let tickers = [(); 3].map(|()| system.spawn(Ticker { left: if cfg!(miri) { 40 } else { 20_000 } }));
        on_four_threads(|| system.run_until_idle());
        for ticker in tickers {
            assert_eq!(ticker.ask(Left).wait(), Ok(0));
        }
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Threads that run a simulated system
#[test]
fn threads_that_wait_in_a_simulated_system_all_get_their_answers() {
    finishes(|| {
        let system = simulated(1);
        let ticker = system.spawn(Ticker { left: u64::MAX });
        on_four_threads(|| {
            (0..if cfg!(miri) { 10 } else { 2_000 }).for_each(|_| assert!(ticker.ask(Left).wait().is_ok()));
        });
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Threads that run a simulated system
#[test]
fn a_thread_that_waits_is_not_kept_waiting_by_one_that_runs_for_ever() {
    finishes(|| {
        let system = simulated(1);
        let ticker = system.spawn(Ticker { left: u64::MAX });
        std::thread::scope(|scope| {
            // It is never idle.
            scope.spawn(|| system.run_until_idle());
            (0..if cfg!(miri) { 5 } else { 100 }).for_each(|_| assert!(ticker.ask(Left).wait().is_ok()));
            // The end of the system is the end of the run.
            system.clone().shutdown_within(Duration::ZERO).unwrap();
        });
    });
}

// GUARANTEE: Threads that run a simulated system
#[test]
fn an_actor_that_runs_its_own_simulated_system_panics_and_others_go_on() {
    const TICKS: u64 = if cfg!(miri) { 20 } else { 1_000 };
    finishes(|| {
        let system = simulated(1);
        let ticker = system.spawn(Ticker { left: TICKS });
        on_four_threads(|| {
            let nesting = system.spawn(Ticker { left: TICKS });
            assert_eq!(nesting.ask(Nest(system.clone())).wait(), Err(AskError::Panicked));
            assert!(ticker.ask(Left).wait().is_ok());
        });
        system.run_until_idle();
        assert_eq!(ticker.ask(Left).wait(), Ok(0));
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Threads that run a simulated system
#[cfg(not(miri))]
#[test]
fn threads_that_run_simulated_theaters_take_turns() {
    finishes(|| {
        let net = Simulation::new(1);
        let [one, other] = [0, 1].map(|_| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap());
        one.connect(other.address().unwrap()).unwrap();
        let tickers = [&one, &other].map(|theater| theater.system().spawn(Ticker { left: 2_000 }));
        on_four_threads(|| {
            for ticker in tickers {
                (0..50).for_each(|_| assert!(ticker.ask(Left).wait().is_ok()));
            }
            net.run_until(|| tickers.iter().all(|ticker| ticker.ask(Left).wait() == Ok(0)));
        });
    });
}

// -- the end of a system -----------------------------------------------------------------------------------------------

/// An actor that counts itself while its state exists. Its last code starts others.
struct Parent {
    alive: Arc<AtomicI64>,
    /// The way in which its `stopped` starts children. `generations` limits the depth.
    spawns: Spawns,
    generations: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Spawns {
    Near,
    Spread,
    InDrop,
}

impl Parent {
    fn new(alive: &Arc<AtomicI64>, spawns: Spawns, generations: u32) -> Parent {
        alive.fetch_add(1, Ordering::Relaxed);
        Parent { alive: Arc::clone(alive), spawns, generations }
    }

    fn child(&self) -> Option<Parent> {
        let left = self.generations.checked_sub(1)?;
        Some(Parent::new(&self.alive, self.spawns, left))
    }
}

impl Drop for Parent {
    fn drop(&mut self) {
        if self.spawns == Spawns::InDrop
            && let Some(child) = self.child()
        {
            playhouse_executor::with_current_system(|system| {
                let _ = system.map(|_| playhouse_executor::spawn_near(Raw(child), RawStart));
            });
        }
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

#[actor]
impl Parent {
    #[message]
    fn note(&mut self) {}

    #[stopped]
    fn stopped(&mut self, ctx: &mut Context<Self>) {
        let children = if self.generations < 8 { 3 } else { 1 };
        for _ in 0..children {
            match self.spawns {
                Spawns::Near => self.child().into_iter().for_each(|child| ctx.spawn(child).tell(Note)),
                Spawns::Spread => self.child().into_iter().for_each(|child| {
                    let options = SpawnOptions::new().placement(Placement::Spread);
                    let _ = ctx.try_spawn_with(options, child).map(|child| child.tell(Note));
                }),
                Spawns::InDrop => {}
            }
        }
    }
}

/// A state of the executor whose `Drop` can spawn.
struct Raw(#[allow(dead_code, reason = "it is dropped")] Parent);
struct RawStart;

impl playhouse_executor::Resident for Raw {
    type Extra = ();
    fn name() -> &'static str {
        "Raw"
    }
    fn ended(&mut self, _: Option<Box<()>>, _: playhouse_executor::Ending, _: &mut playhouse_executor::Cx<Self>) {}
    fn crashed(crash: playhouse_executor::Crash, cx: &mut playhouse_executor::ControlCx<Self>) {
        cx.give_up(crash);
    }
}

impl playhouse_executor::Envelope<Raw> for RawStart {
    fn run(self, _: &mut Raw, _: &mut playhouse_executor::Cx<Raw>) {}
    fn bounce(self, _: Undelivered) {}
}

// GUARANTEE: States are dropped
#[test]
fn states_that_are_spawned_while_a_system_ends_are_dropped() {
    const PARENTS: usize = if cfg!(miri) { 1 } else { 10 };
    finishes(|| {
        let alive = Arc::<AtomicI64>::default();
        for seed in [None, Some(1)] {
            for workers in [1, 2] {
                // The actors of the last entry would start children for ever.
                for (spawns, generations) in
                    [(Spawns::Near, 3), (Spawns::Spread, 3), (Spawns::InDrop, 3), (Spawns::Near, u32::MAX)]
                {
                    let builder = System::builder().workers(workers);
                    let builder = if let Some(seed) = seed { builder.simulated(seed) } else { builder };
                    let system = builder.start().unwrap();
                    (0..PARENTS).for_each(|_| {
                        system.spawn(Parent::new(&alive, spawns, generations));
                    });
                    shut_down(system);
                    assert_eq!(alive.load(Ordering::Relaxed), 0);
                }
            }
        }
    });
}

// GUARANTEE: States are dropped
#[test]
fn a_system_ends_though_each_drop_of_a_state_starts_another_actor() {
    finishes(|| {
        let alive = Arc::<AtomicI64>::default();
        let system = threads(1);
        system.spawn(Parent::new(&alive, Spawns::InDrop, u32::MAX));
        shut_down(system);
        assert_eq!(alive.load(Ordering::Relaxed), 1);
    });
}

// GUARANTEE: States are dropped
#[test]
fn states_that_threads_spawn_while_a_system_ends_are_dropped() {
    const MOST: usize = if cfg!(miri) { 20 } else { 1_000 };
    finishes(|| {
        let alive = Arc::<AtomicI64>::default();
        for round in 0..if cfg!(miri) { 6 } else { 100 } {
            let builder = System::builder().workers(2);
            let system = if round % 2 == 0 { builder } else { builder.simulated(round) }.start().unwrap();
            let begun = Arc::new(std::sync::Barrier::new(3));
            std::thread::scope(|scope| {
                for placement in [Placement::Spread, Placement::Dedicated] {
                    let (system, begun, alive) = (system.clone(), Arc::clone(&begun), &alive);
                    scope.spawn(move || {
                        begun.wait();
                        // A simulated system that is never idle takes long to end.
                        let most = if round % 2 == 0 { usize::MAX } else { MOST };
                        for _ in 0..most {
                            let options = SpawnOptions::new().placement(placement);
                            let parent = Parent::new(alive, Spawns::Near, 0);
                            match system.try_spawn_with(options, parent) {
                                Ok(parent) => parent.stop(),
                                // All dedicated threads are taken, or the system has ended.
                                Err(error) if error.to_string().contains("shut down") => break,
                                Err(_) => std::thread::yield_now(),
                            }
                        }
                    });
                }
                begun.wait();
                let ended = system.clone().shutdown_within(Duration::from_millis(round % 3));
                // Under Miri, threads take longer than such a limit allows. The system is closed by then, and ends
                // later.
                if cfg!(miri) && ended.is_err() {
                    shut_down(system)
                } else {
                    ended.unwrap()
                };
            });
            assert_eq!(alive.load(Ordering::Relaxed), 0, "in round {round}");
        }
    });
}
