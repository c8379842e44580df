//! A panic stays in its actor, wherever it happens.

use std::time::Duration;

use crate::support::{
    Adder, Do, Increment, Log, Mourn, Mourner, Puppet, Scribe, Write, finishes, on_stage, quiet_panics, simulated,
    threads,
};
use playhouse::prelude::*;

/// Panics at the spot that the test chooses.
struct Fragile {
    at: Spot,
    log: Log<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spot {
    Nowhere,
    Started,
    Stopped,
    Terminated,
    Drop,
}

impl Fragile {
    fn panic_at(&self, spot: Spot) {
        assert!(self.at != spot, "meant: in {spot:?}");
    }
}

impl Actor for Fragile {
    fn started(&mut self, _: &mut Context<Self>) {
        self.panic_at(Spot::Started);
    }
    fn stopped(&mut self, _: &mut Context<Self>) {
        self.panic_at(Spot::Stopped);
    }
    fn terminated(&mut self, _: Terminated, _: &mut Context<Self>) {
        self.panic_at(Spot::Terminated);
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        self.log.push(1);
        self.panic_at(Spot::Drop);
    }
}

impl<A: Actor> Handler<Mourn<A>> for Fragile {
    fn handle(&mut self, Mourn(who): Mourn<A>, ctx: &mut Context<Self>) {
        ctx.watch(who);
    }
}

#[derive(Message)]
#[message(reply = u64)]
struct Break;

impl Handler<Break> for Fragile {
    fn handle(&mut self, _: Break, _: &mut Context<Self>) -> u64 {
        panic!("meant: in the handler")
    }
}

#[derive(Message)]
#[message(reply = u64)]
struct BreakLater {
    before: bool,
}

async fn once_pending() {
    let mut first = true;
    std::future::poll_fn(|cx| {
        if std::mem::take(&mut first) {
            cx.waker().wake_by_ref();
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(())
    })
    .await;
}

impl AsyncHandler<BreakLater> for Fragile {
    async fn handle(&mut self, message: BreakLater, _: &mut Context<Self>) -> u64 {
        assert!(!message.before, "meant: before the await");
        once_pending().await;
        panic!("meant: behind the await")
    }
}

/// A message that panics when it is dropped.
struct Bomb {
    armed: bool,
}

impl Message for Bomb {
    type Reply = ();
}

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.armed || std::thread::panicking(), "meant: in the drop of a message");
    }
}

impl Handler<Bomb> for Fragile {
    fn handle(&mut self, _bomb: Bomb, _: &mut Context<Self>) {}
}

fn fragile(at: Spot) -> Fragile {
    Fragile { at, log: Log::new() }
}

/// Starts a mourner for `who`. Returns once it watches.
fn mourn<A: Actor>(system: &System, who: ActorRef<A>) -> Log<Terminated> {
    let log = Log::new();
    system.spawn(Mourner(log.clone())).ask(Mourn(who)).wait().unwrap();
    log
}

fn reasons(log: &Log<Terminated>) -> Vec<StopReason> {
    log.take().into_iter().map(|terminated| terminated.reason).collect()
}

// GUARANTEE: Crashes are isolated
#[test]
fn others_of_the_stage_and_the_worker_go_on() {
    quiet_panics();
    finishes(|| {
        let system = threads(1);
        let log = Log::new();
        let neighbour = system.spawn_with(on_stage(0), Scribe(log.clone()));
        let other = system.spawn_with(on_stage(1), Scribe(log.clone()));
        for n in 0..100 {
            let broken = system.spawn_with(on_stage(0), fragile(Spot::Nowhere));
            neighbour.tell(Write(2 * n));
            broken.tell(Break);
            other.tell(Write(2 * n + 1));
        }
        system.run_until_idle();
        let mut written = log.take();
        written.sort_unstable();
        assert!(written.into_iter().eq(0..200));
        assert_eq!(system.stats().total.crashes, 100);
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Crashes are not answers
// GUARANTEE: An ask ends
#[test]
fn an_ask_to_a_panicking_handler_says_so_and_later_asks_say_stopped() {
    quiet_panics();
    for seed in 0..20 {
        let system = simulated(seed);
        let broken = system.spawn(fragile(Spot::Nowhere));
        assert_eq!(broken.ask(Break).wait(), Err(AskError::Panicked));
        assert_eq!(broken.ask(Break).wait(), Err(AskError::Stopped));
        for before in [true, false] {
            let broken = system.spawn(fragile(Spot::Nowhere));
            let watched = mourn(&system, broken);
            assert_eq!(broken.ask(BreakLater { before }).wait(), Err(AskError::Panicked), "before: {before}");
            system.run_until_idle();
            assert!(matches!(&reasons(&watched)[..], [StopReason::Panicked(text)] if text.contains("the await")));
        }
    }
}

#[test]
fn a_panic_in_started_ends_the_actor_and_its_mail_is_dead() {
    quiet_panics();
    let system = simulated(0);
    let broken = system.spawn(fragile(Spot::Started));
    let watched = mourn(&system, broken);
    assert_eq!(broken.ask(Break).wait(), Err(AskError::Stopped));
    system.run_until_idle();
    assert_eq!(watched.take().len(), 1);
    // The crash in the start of a child inside a handler is reported, too.
    let parent = system.spawn(Puppet);
    parent.ask(Do::this(|ctx| _ = ctx.spawn(fragile(Spot::Started)))).wait().unwrap();
    assert_eq!(system.spawn(Adder).ask(Increment(1)).wait(), Ok(2));
}

// GUARANTEE: Crashes are isolated
#[test]
fn a_panic_in_stopped_does_not_keep_the_watchers_from_being_told() {
    quiet_panics();
    for at in [Spot::Stopped, Spot::Drop] {
        let system = simulated(0);
        let actor = fragile(at);
        let dropped = actor.log.clone();
        let broken = system.spawn(actor);
        let watched = mourn(&system, broken);
        broken.stop();
        system.run_until_idle();
        assert_eq!(reasons(&watched), [StopReason::Stopped], "{at:?}");
        assert_eq!(dropped.take(), [1], "{at:?}");
        assert!(broken.is_stopped());
        // The cell is used again.
        for _ in 0..10 {
            let next = system.spawn(fragile(Spot::Nowhere));
            assert_eq!(next.ask(Bomb { armed: false }).wait(), Ok(()));
            next.kill();
        }
    }
}

#[test]
fn a_panic_in_terminated_is_a_crash_of_the_watcher() {
    quiet_panics();
    let system = simulated(0);
    let watcher = system.spawn(fragile(Spot::Terminated));
    let watched = mourn(&system, watcher);
    let adder = system.spawn(Adder);
    watcher.ask(Mourn(adder)).wait().unwrap();
    adder.stop();
    system.run_until_idle();
    assert!(matches!(&reasons(&watched)[..], [StopReason::Panicked(text)] if text.contains("Terminated")));
}

// GUARANTEE: Crashes are isolated
#[test]
fn a_panic_in_the_drop_of_a_handled_message_is_a_crash_of_its_actor() {
    quiet_panics();
    let system = simulated(0);
    let broken = system.spawn(fragile(Spot::Nowhere));
    assert_eq!(broken.ask(Bomb { armed: true }).wait(), Err(AskError::Panicked));
    assert_eq!(system.spawn(Adder).ask(Increment(1)).wait(), Ok(2));
}

/// The cells of the actors are used again at once. A message for the former actor panics when it bounces.
#[test]
fn a_panic_in_the_drop_of_a_dead_letter_does_not_hit_the_next_actor_of_the_cell() {
    quiet_panics();
    for seed in 0..50 {
        let system = System::builder().workers(1).stages(1).simulated(seed).start().unwrap();
        let parent = system.spawn(Puppet);
        let old = Log::new();
        let log = old.clone();
        parent.ask(Do::this(move |ctx| log.push(ctx.spawn(fragile(Spot::Nowhere))))).wait().unwrap();
        let old = old.take()[0];
        old.stop();
        system.run_until_idle();
        let new = Log::new();
        let log = new.clone();
        parent.ask(Do::this(move |ctx| log.push(ctx.spawn(fragile(Spot::Nowhere))))).wait().unwrap();
        let new = new.take()[0];
        old.tell(Bomb { armed: true });
        assert_eq!(new.ask(Bomb { armed: false }).wait(), Ok(()), "seed {seed}");
        assert!(!new.is_stopped());
    }
}

/// Waits in a handler until the test releases it.
struct Sleeper;

impl Actor for Sleeper {}

#[derive(Message)]
struct SleepWith(tokio::sync::oneshot::Receiver<()>, Bomb);

impl AsyncHandler<SleepWith> for Sleeper {
    async fn handle(&mut self, SleepWith(wake, _bomb): SleepWith, _: &mut Context<Self>) {
        let _ = wake.await;
    }
}

impl Handler<Bomb> for Sleeper {
    fn handle(&mut self, _: Bomb, _: &mut Context<Self>) {}
}

#[derive(Message)]
#[message(reply = u64)]
struct Echo(u64);

impl Handler<Echo> for Sleeper {
    fn handle(&mut self, Echo(n): Echo, _: &mut Context<Self>) -> u64 {
        n
    }
}

#[test]
fn a_panic_in_the_drop_of_a_killed_handler_leaves_the_cell_clean() {
    quiet_panics();
    let system = System::builder().workers(1).stages(1).simulated(1).start().unwrap();
    let (_wake, sleep) = tokio::sync::oneshot::channel();
    let sleeper = system.spawn(Sleeper);
    let watched = mourn(&system, sleeper);
    sleeper.tell(SleepWith(sleep, Bomb { armed: true }));
    system.run_until_idle();
    let (answers, log) = (Log::new(), Log::<Result<u64, AskError>>::new());
    let seen = answers.clone();
    let asker = system.spawn(Puppet);
    let into = log.clone();
    asker.tell(Do::this(move |ctx| {
        let into = into.clone();
        ctx.ask(sleeper, Echo(1)).then(move |_, answer, _| into.push(answer));
    }));
    system.run_until_idle();
    sleeper.kill();
    system.run_until_idle();
    assert_eq!(log.take(), [Err(AskError::Stopped)], "what was deferred is answered");
    assert_eq!(reasons(&watched), [StopReason::Killed]);
    // The same cells again, with another type and a cold part of their own.
    for n in 0..20 {
        let seen = seen.clone();
        let next = system.spawn_with(SpawnOptions::new().name("next"), Puppet);
        next.tell(Do::this(move |ctx| {
            let seen = seen.clone();
            ctx.send_after(Duration::from_millis(1), Do::this(move |_| seen.push(n)));
        }));
    }
    system.run_until_idle();
    assert_eq!(answers.take().len(), 20);
    assert_eq!(system.stats().total.crashes, 0);
}

#[test]
fn a_panic_in_a_deferred_message_loses_none_of_those_behind_it() {
    quiet_panics();
    for seed in 0..20 {
        let system = simulated(seed);
        let (wake, sleep) = tokio::sync::oneshot::channel();
        let sleeper = system.spawn(Sleeper);
        sleeper.tell(SleepWith(sleep, Bomb { armed: false }));
        sleeper.tell(Bomb { armed: true });
        let log = Log::new();
        let into = log.clone();
        system.spawn(Puppet).tell(Do::this(move |ctx| {
            for n in 0..3 {
                let into = into.clone();
                ctx.ask(sleeper, Echo(n)).then(move |_, answer, _| into.push(answer));
            }
        }));
        system.run_until_idle();
        assert!(log.lock().is_empty());
        wake.send(()).unwrap();
        system.run_until_idle();
        assert_eq!(log.take(), [const { Err(AskError::Stopped) }; 3], "seed {seed}");
    }
}

#[test]
fn a_panic_in_the_clone_of_a_periodic_message_stays_in_its_actor() {
    struct Uncloneable;
    impl Message for Uncloneable {
        type Reply = ();
    }
    impl Clone for Uncloneable {
        fn clone(&self) -> Self {
            panic!("meant: in the clone of a message")
        }
    }
    struct Cloner;
    impl Actor for Cloner {}
    impl Handler<Uncloneable> for Cloner {
        fn handle(&mut self, _: Uncloneable, _: &mut Context<Self>) {}
    }
    impl Handler<Increment> for Cloner {
        fn handle(&mut self, _: Increment, ctx: &mut Context<Self>) -> u64 {
            ctx.send_every(Duration::from_millis(1), Uncloneable);
            0
        }
    }
    quiet_panics();
    finishes(|| {
        let system = threads(1);
        let broken = system.spawn(Cloner);
        let watched = mourn(&system, broken);
        broken.ask(Increment(1)).wait().unwrap();
        system.run_until_idle();
        assert!(matches!(&reasons(&watched)[..], [StopReason::Panicked(_)]));
        assert_eq!(system.spawn(Adder).ask(Increment(1)).wait(), Ok(2));
        system.shutdown().unwrap();
    });
}

#[test]
fn a_panic_while_messages_are_dropped_at_shutdown_does_not_reach_the_caller() {
    quiet_panics();
    finishes(|| {
        let system = threads(1);
        let (_wake, sleep) = tokio::sync::oneshot::channel();
        let sleeper = system.spawn(Sleeper);
        sleeper.tell(SleepWith(sleep, Bomb { armed: true }));
        sleeper.tell(Bomb { armed: true });
        sleeper.tell(Bomb { armed: true });
        system.spawn(fragile(Spot::Drop));
        let report = system.shutdown().unwrap();
        assert_eq!((report.actors_stopped, report.undelivered), (2, 2));
    });
}
