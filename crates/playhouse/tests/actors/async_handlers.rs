//! An async handler suspends its actor, and nothing else.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use crate::support::{Adder, Do, Increment, Log, Puppet, Scribe, Write, finishes, on_stage, simulated, threads};
use playhouse::prelude::*;
use tokio::sync::oneshot;

struct Thinker {
    log: Log<String>,
}

impl Actor for Thinker {
    fn stopped(&mut self, _: &mut Context<Self>) {
        self.log.push("stopped".into());
    }
}

#[derive(Message)]
#[message(reply = u64)]
struct Think(u64, oneshot::Receiver<u64>);

/// Reports its drop.
struct Trace(Log<String>, &'static str);

impl Drop for Trace {
    fn drop(&mut self) {
        self.0.push(self.1.into());
    }
}

impl AsyncHandler<Think> for Thinker {
    async fn handle(&mut self, Think(n, until): Think, _: &mut Context<Self>) -> u64 {
        self.log.push(format!("think {n}"));
        let _trace = Trace(self.log.clone(), "future dropped");
        let answer = until.await.unwrap_or(0);
        self.log.push(format!("thought {answer}"));
        answer
    }
}

#[derive(Message)]
struct Note(u64);

impl Handler<Note> for Thinker {
    fn handle(&mut self, Note(n): Note, _: &mut Context<Self>) {
        self.log.push(format!("note {n}"));
    }
}

type End = fn(ActorRef<Thinker>);

fn thinker(system: &System) -> (ActorRef<Thinker>, Log<String>) {
    let log = Log::new();
    (system.spawn_with(on_stage(0), Thinker { log: log.clone() }), log)
}

#[test]
fn messages_that_arrive_while_suspended_are_handled_afterwards_in_order() {
    for seed in 0..30 {
        let system = simulated(seed);
        let (thinker, log) = thinker(&system);
        let (wake, until) = oneshot::channel();
        let (wake_next, until_next) = oneshot::channel();
        thinker.tell(Think(1, until));
        thinker.tell(Note(1));
        thinker.tell(Think(2, until_next));
        thinker.tell(Note(2));
        system.run_until_idle();
        assert_eq!(log.take(), ["think 1"]);
        thinker.tell(Note(3));
        wake.send(5).unwrap();
        system.run_until_idle();
        assert_eq!(log.take(), ["thought 5", "future dropped", "note 1", "think 2"]);
        thinker.tell(Note(4));
        wake_next.send(6).unwrap();
        system.run_until_idle();
        assert_eq!(log.take(), ["thought 6", "future dropped", "note 2", "note 3", "note 4"], "seed {seed}");
    }
}

#[test]
fn others_of_the_stage_go_on_while_one_is_suspended() {
    finishes(|| {
        let system = threads(1);
        let (thinker, log) = thinker(&system);
        let (wake, until) = oneshot::channel();
        thinker.tell(Think(1, until));
        let other = system.spawn_with(on_stage(0), Adder);
        for n in 0..100 {
            assert_eq!(other.ask(Increment(n)).wait(), Ok(n + 1));
        }
        assert_eq!(log.take(), ["think 1"]);
        wake.send(1).unwrap();
        system.run_until_idle();
        assert_eq!(system.stats().total.takeovers, 0);
        system.shutdown().unwrap();
    });
}

#[test]
fn a_future_is_woken_from_another_thread() {
    finishes(|| {
        let system = threads(2);
        let (thinker, _) = thinker(&system);
        for n in 0..300 {
            let (wake, until) = oneshot::channel();
            let waker = std::thread::spawn(move || wake.send(n).unwrap());
            assert_eq!(thinker.ask(Think(n, until)).wait(), Ok(n));
            waker.join().unwrap();
        }
        system.shutdown().unwrap();
    });
}

#[derive(Message)]
#[message(reply = bool)]
struct SleepOn(tokio::runtime::Handle);

impl AsyncHandler<SleepOn> for Thinker {
    async fn handle(&mut self, SleepOn(runtime): SleepOn, _: &mut Context<Self>) -> bool {
        let sleep = {
            let _inside = runtime.enter();
            tokio::time::timeout(Duration::from_millis(2), std::future::pending::<()>())
        };
        sleep.await.is_err()
    }
}

#[test]
fn a_tokio_timer_works_in_a_handler() {
    finishes(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let driver = std::thread::spawn(move || runtime.block_on(async { _ = ended.await }));
        let system = threads(2);
        let (thinker, _) = thinker(&system);
        assert_eq!(thinker.ask(SleepOn(handle)).wait(), Ok(true));
        end.send(()).unwrap();
        driver.join().unwrap();
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Stop, drain, kill
#[test]
fn kill_drops_the_future_and_stop_and_drain_wait_for_it() {
    for seed in 0..10 {
        let system = simulated(seed);
        let ends: [(End, &[&str], &[&str]); 3] = [
            (ActorRef::kill, &["think 1", "future dropped"], &[]),
            (ActorRef::stop, &["think 1"], &["thought 5", "future dropped", "stopped"]),
            (ActorRef::drain, &["think 1"], &["thought 5", "future dropped", "note 1", "note 2", "stopped"]),
        ];
        for (end, before, after) in ends {
            let (thinker, log) = thinker(&system);
            let (wake, until) = oneshot::channel();
            thinker.tell(Think(1, until));
            thinker.tell(Note(1));
            system.run_until_idle();
            thinker.tell(Note(2));
            end(thinker);
            thinker.tell(Note(3));
            system.run_until_idle();
            assert_eq!(log.take(), before, "seed {seed}");
            let _ = wake.send(5);
            system.run_until_idle();
            assert_eq!(log.take(), after, "seed {seed}");
            assert!(thinker.is_stopped());
        }
        assert_eq!(system.stats().total.dead_letters, 3 + 3 + 1);
    }
}

#[derive(Message)]
struct YieldUntil(Arc<AtomicBool>);

async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|cx| {
        if yielded {
            return std::task::Poll::Ready(());
        }
        yielded = true;
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

impl AsyncHandler<YieldUntil> for Thinker {
    async fn handle(&mut self, YieldUntil(flag): YieldUntil, _: &mut Context<Self>) {
        while !flag.load(Ordering::Relaxed) {
            yield_now().await;
        }
    }
}

#[test]
fn a_handler_that_yields_lets_others_go_on() {
    finishes(|| {
        let system = threads(1);
        let (thinker, _) = thinker(&system);
        let flag = Arc::new(AtomicBool::new(false));
        let raise = Arc::clone(&flag);
        let puppet = system.spawn(Puppet);
        puppet.tell(Do::this(move |ctx| {
            thinker.tell(YieldUntil(flag));
            // The message stands behind 100 others, and the yielding handler is running long before it.
            for _ in 0..100 {
                ctx.this().tell(Do::this(|_| ()));
            }
            ctx.this().tell(Do::this(move |_| raise.store(true, Ordering::Relaxed)));
        }));
        system.run_until_idle();
        system.shutdown().unwrap();
    });
}

struct Counting {
    n: Arc<AtomicU64>,
}

impl Actor for Counting {}

#[derive(Message)]
struct Step;

impl AsyncHandler<Step> for Counting {
    async fn handle(&mut self, _: Step, ctx: &mut Context<Self>) {
        let before = self.n.load(Ordering::Relaxed);
        for _ in 0..3 {
            yield_now().await;
        }
        // No other handler of this actor ran in between, although this one yielded 3 times.
        self.n.store(before + 1, Ordering::Relaxed);
        assert_eq!(ctx.this().id(), ctx.this().id());
    }
}

// GUARANTEE: One message at a time
#[test]
fn handlers_of_one_actor_do_not_interleave() {
    finishes(|| {
        let system = threads(4);
        let n = Arc::new(AtomicU64::new(0));
        let counting = system.spawn(Counting { n: Arc::clone(&n) });
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..1000).for_each(|_| counting.tell(Step)));
            }
        });
        system.run_until_idle();
        assert_eq!(n.load(Ordering::Relaxed), 3000);
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Order
#[test]
fn a_suspended_handler_keeps_its_order_while_its_stage_is_stolen() {
    for seed in 0..200 {
        let system = System::builder().workers(4).stages(8).simulated(seed).start().unwrap();
        let n = Arc::new(AtomicU64::new(0));
        let log = Log::new();
        let actors: Vec<_> = (0..8).map(|s| system.spawn_with(on_stage(s), Counting { n: Arc::clone(&n) })).collect();
        let scribe = system.spawn_with(on_stage(0), Scribe(log.clone()));
        for i in 0..20 {
            for actor in &actors {
                actor.tell(Step);
            }
            scribe.tell(Write(i));
        }
        system.run_until_idle();
        assert!(log.take().into_iter().eq(0..20), "seed {seed}");
        assert_eq!(system.stats().total.dead_letters, 0);
        for actor in actors {
            actor.drain();
        }
        system.run_until_idle();
        assert_eq!(system.stats().total.stopped, 8, "seed {seed}");
    }
}

#[test]
fn an_async_handler_uses_its_context_across_awaits() {
    struct Keeper(Log<u64>);
    impl Actor for Keeper {}
    #[derive(Message)]
    struct Go;
    #[derive(Message)]
    struct Later(u64);
    impl AsyncHandler<Go> for Keeper {
        async fn handle(&mut self, _: Go, ctx: &mut Context<Self>) {
            let adder = ctx.spawn(Adder);
            let first = adder.ask(Increment(1)).await.unwrap();
            yield_now().await;
            ctx.send_after(Duration::from_millis(5), Later(first));
            let second = adder.ask(Increment(first)).await.unwrap();
            self.0.push(second);
            ctx.stop();
            yield_now().await;
            self.0.push(100);
        }
    }
    impl Handler<Later> for Keeper {
        fn handle(&mut self, Later(n): Later, _: &mut Context<Self>) {
            self.0.push(n);
        }
    }
    for seed in 0..20 {
        let system = simulated(seed);
        let log = Log::new();
        let keeper = system.spawn(Keeper(log.clone()));
        keeper.tell(Go);
        system.run_until_idle();
        assert_eq!(log.take(), [3, 100], "seed {seed}");
        assert!(keeper.is_stopped());
        assert_eq!(system.now(), Duration::ZERO, "the timer went with its actor");
    }
}

/// Awaits a timer of a tokio runtime that runs outside the system.
struct Napper {
    runtime: tokio::runtime::Handle,
}

#[actor]
impl Napper {
    #[message]
    async fn nap(&mut self, how_long: Duration) -> bool {
        self.runtime.spawn(async move { tokio::time::sleep(how_long).await }).await.is_ok()
    }
}

#[test]
fn a_timer_of_tokio_is_awaited_in_its_own_runtime() {
    finishes(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let system = threads(1);
        let napper = system.spawn(Napper { runtime: runtime.handle().clone() });
        assert_eq!(runtime.block_on(async { napper.ask(Nap(Duration::from_millis(1))).await }), Ok(true));
        system.shutdown().unwrap();
    });
}

/// Waits until several threads have woken it during its polls.
#[derive(Message)]
#[message(reply = u32)]
struct WokenByThreads;

impl AsyncHandler<WokenByThreads> for Thinker {
    async fn handle(&mut self, _: WokenByThreads, _: &mut Context<Self>) -> u32 {
        let mut polls = 0;
        poll_fn(|cx| {
            polls += 1;
            let waker = cx.waker();
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        let clone = waker.clone();
                        waker.wake_by_ref();
                        clone.wake();
                    });
                }
            });
            if polls < 3 { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        polls
    }
}

#[test]
fn other_threads_may_use_the_waker_during_a_poll() {
    let system = threads(1);
    let (thinker, _) = thinker(&system);
    for _ in 0..20 {
        assert_eq!(thinker.ask(WokenByThreads).wait(), Ok(3));
    }
    system.shutdown().unwrap();
}

/// Awaits an ask made by its context, in the form that handlers without `async` use.
struct Awaits(ActorRef<Adder>);

impl Actor for Awaits {}

#[derive(Message)]
#[message(reply = Result<u64, AskError>)]
struct Sum(u64, Option<Duration>);

impl AsyncHandler<Sum> for Awaits {
    async fn handle(&mut self, Sum(n, within): Sum, ctx: &mut Context<Self>) -> Result<u64, AskError> {
        let ask = ctx.ask(self.0, Increment(n));
        match within {
            Some(limit) => ask.within(limit).await,
            None => ask.await,
        }
    }
}

#[test]
fn an_ask_of_a_context_can_be_awaited() {
    finishes(|| {
        for system in [threads(2), simulated(0)] {
            let adder = system.spawn(Adder);
            let awaits = system.spawn(Awaits(adder));
            assert_eq!(awaits.ask(Sum(1, None)).wait(), Ok(Ok(2)));
            assert_eq!(awaits.ask(Sum(2, Some(Duration::from_secs(60)))).wait(), Ok(Ok(3)));
            adder.stop();
            adder.ended().wait();
            assert_eq!(awaits.ask(Sum(3, None)).wait(), Ok(Err(AskError::Stopped)));
            system.shutdown().unwrap();
        }
    });
}
