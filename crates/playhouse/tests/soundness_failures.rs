//! Errors of programs: the errors that handlers fail with. Their `Display`, `Debug` and `Drop` may do anything.

use std::fmt;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use playhouse::prelude::*;
use playhouse::{ChildSpec, StopReason, SupervisionPolicy, Supervisor};

mod support;
use support::{Log, Mourn, Mourner, finishes, quiet_panics, simulated};

#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Plain,
    PanicsWhenShown,
    PanicsWhenDropped,
}

const ALL: [How; 3] = [How::Plain, How::PanicsWhenShown, How::PanicsWhenDropped];

#[derive(Debug)]
struct Bad(How);

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        assert!(self.0 != How::PanicsWhenShown, "meant");
        f.write_str("bad")
    }
}

impl std::error::Error for Bad {}

impl Drop for Bad {
    fn drop(&mut self) {
        assert!(self.0 != How::PanicsWhenDropped || std::thread::panicking(), "meant");
    }
}

#[derive(Message, Clone)]
struct Tick;

/// Fails in every possible way.
struct Fails {
    how: How,
    ticks: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
    /// Fails in `stopped`.
    at_last: bool,
}

impl Fails {
    fn new(how: How) -> Fails {
        Fails { how, ticks: Arc::default(), dropped: Arc::default(), at_last: false }
    }
}

impl Drop for Fails {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

#[actor]
impl Fails {
    #[message]
    fn fail(&mut self, ctx: &mut Context<Self>) {
        ctx.fail(Bad(self.how));
    }
    #[message]
    async fn fail_and_wait(&mut self, ctx: &mut Context<Self>) {
        ctx.fail(Bad(self.how));
        pending().await
    }
    #[message]
    fn fail_twice(&mut self, ctx: &mut Context<Self>) {
        ctx.fail(Bad(self.how));
        ctx.fail(Bad(How::Plain));
    }
    #[message]
    fn fail_and_panic(&mut self, ctx: &mut Context<Self>) {
        ctx.fail(Bad(self.how));
        panic!("meant");
    }
    #[message]
    async fn wait(&mut self) {
        pending().await
    }
    #[message]
    async fn wait_a_little(&mut self) -> u32 {
        let mut woken = false;
        poll_fn(|cx| {
            cx.waker().wake_by_ref();
            if std::mem::replace(&mut woken, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        9
    }
    #[message]
    fn last(&mut self, ctx: &mut Context<Self>) -> u32 {
        ctx.stop();
        5
    }
    #[message]
    fn alive(&self) -> u32 {
        7
    }
    #[message]
    fn tick_on(&mut self, ctx: &mut Context<Self>) {
        ctx.send_every(Duration::from_millis(10), Tick);
    }
    #[stopped]
    fn stopped(&mut self, ctx: &mut Context<Self>) {
        if self.at_last {
            ctx.fail(Bad(self.how));
        }
    }
}

impl Handler<Tick> for Fails {
    fn handle(&mut self, _: Tick, _: &mut Context<Self>) {
        self.ticks.fetch_add(1, Ordering::Relaxed);
    }
}

/// Asks in a handler, so that a short handler runs on the asker's stack.
struct Asks(Log<Result<u32, AskError>>);

#[actor]
impl Asks {
    #[message]
    async fn go(&mut self, to: ActorRef<Fails>) {
        let answer = to.ask(Last).await;
        self.0.push(answer);
    }
}

fn watched<A: Actor>(system: &System, who: ActorRef<A>) -> Log<playhouse::Terminated> {
    let log = Log::new();
    system.spawn(Mourner(log.clone())).tell(Mourn(who));
    system.run_until_idle();
    log
}

fn reasons(log: &Log<playhouse::Terminated>) -> Vec<StopReason> {
    log.lock().iter().map(|terminated| terminated.reason.clone()).collect()
}

fn as_told(how: How) -> StopReason {
    let text = if how == How::PanicsWhenShown { "an error whose `Display` panicked" } else { "bad" };
    StopReason::Failed(text.to_owned())
}

#[test]
fn watchers_are_told_and_timers_end_whatever_an_error_does() {
    quiet_panics();
    finishes(|| {
        for how in ALL {
            let system = simulated(1);
            let (ticks, dropped) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
            let (counts, drops) = (Arc::clone(&ticks), Arc::clone(&dropped));
            let fails = system.spawn(Fails { how, ticks: counts, dropped: drops, at_last: false });
            let log = watched(&system, fails);
            fails.tell(TickOn);
            fails.tell(Fail);
            // The ask returns, because the timer has ended with its actor.
            system.run_until_idle();
            assert_eq!(reasons(&log), [as_told(how)], "{how:?}");
            assert_eq!((ticks.load(Ordering::Relaxed), dropped.load(Ordering::Relaxed)), (0, 1), "{how:?}");
            assert_eq!(system.shutdown().unwrap().undelivered, 0);
        }
    });
}

#[test]
fn a_second_error_takes_the_place_of_the_first() {
    quiet_panics();
    finishes(|| {
        for how in ALL {
            let system = simulated(1);
            let fails = system.spawn(Fails::new(how));
            let log = watched(&system, fails);
            fails.tell(FailTwice);
            system.run_until_idle();
            assert_eq!(reasons(&log), [as_told(How::Plain)], "{how:?}");
            system.shutdown().unwrap();
        }
    });
}

#[test]
fn an_error_in_stopped_harms_no_asker() {
    quiet_panics();
    finishes(|| {
        for how in ALL {
            let system = simulated(1);
            let dropped = Arc::<AtomicUsize>::default();
            let drops = Arc::clone(&dropped);
            let fails = system.spawn(Fails { how, ticks: Arc::default(), dropped: drops, at_last: true });
            let answers = Log::new();
            let asks = system.spawn(Asks(answers.clone()));
            let log = watched(&system, asks);
            asks.tell(Go(fails));
            system.run_until_idle();
            assert_eq!(answers.take(), [Ok(5)], "{how:?}");
            assert_eq!(reasons(&log), [], "{how:?}");
            assert_eq!((system.stats().total.crashes, dropped.load(Ordering::Relaxed)), (0, 1), "{how:?}");
            system.shutdown().unwrap();
        }
    });
}

#[test]
fn an_actor_that_is_killed_while_a_failed_handler_waits_ends_whole() {
    quiet_panics();
    finishes(|| {
        for how in ALL {
            let system = simulated(1);
            let dropped = Arc::<AtomicUsize>::default();
            let drops = Arc::clone(&dropped);
            let fails = system.spawn(Fails { how, ticks: Arc::default(), dropped: drops, at_last: false });
            let log = watched(&system, fails);
            fails.tell(FailAndWait);
            system.run_until_idle();
            fails.kill();
            system.run_until_idle();
            assert_eq!(reasons(&log), [StopReason::Killed], "{how:?}");
            assert_eq!(dropped.load(Ordering::Relaxed), 1, "{how:?}");
            system.shutdown().unwrap();
        }
    });
}

#[test]
fn an_error_does_not_outlive_the_crash_that_it_was_part_of() {
    quiet_panics();
    finishes(|| {
        for how in ALL {
            let system = simulated(1);
            let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
            let child = supervisor.ask(ChildSpec::new("child", move || Fails::new(how))).wait().unwrap().unwrap();
            let log = watched(&system, child);
            assert_eq!(child.ask(FailAndPanic).wait(), Err(AskError::Panicked));
            system.run_until_idle();
            assert_eq!(child.ask(Last).wait(), Ok(5), "{how:?}");
            system.run_until_idle();
            assert_eq!(reasons(&log), [StopReason::Stopped], "{how:?}");
            system.shutdown().unwrap();
        }
    });
}

/// Two children that restart together.
fn two_children(system: &System) -> [ActorRef<Fails>; 2] {
    let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_all()));
    ["first", "second"].map(|name| {
        let child = ChildSpec::new(name, || Fails::new(How::Plain));
        supervisor.ask(child).wait().unwrap().unwrap()
    })
}

#[test]
fn an_error_of_a_handler_that_a_restart_interrupts_is_forgotten() {
    quiet_panics();
    finishes(|| {
        let system = simulated(1);
        let [first, second] = two_children(&system);
        let log = watched(&system, first);
        first.tell(FailAndWait);
        system.run_until_idle();
        second.tell(FailAndPanic);
        system.run_until_idle();
        assert_eq!(first.ask(Alive).wait(), Ok(7));
        first.stop();
        system.run_until_idle();
        assert_eq!(reasons(&log), [StopReason::Stopped]);
        system.shutdown().unwrap();
    });
}

#[test]
fn an_actor_that_was_to_stop_behind_a_handler_stops_where_a_restart_interrupts_that() {
    quiet_panics();
    finishes(|| {
        let system = simulated(1);
        let [first, second] = two_children(&system);
        let log = watched(&system, first);
        first.tell(Wait);
        system.run_until_idle();
        first.stop();
        system.run_until_idle();
        second.tell(FailAndPanic);
        system.run_until_idle();
        assert_eq!(reasons(&log), [StopReason::Stopped]);
        assert_eq!(first.ask(WaitALittle).wait(), Err(AskError::Stopped));
        assert_eq!(second.ask(Alive).wait(), Ok(7));
        system.shutdown().unwrap();
    });
}
