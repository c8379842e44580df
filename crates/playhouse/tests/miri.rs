//! Small programs on threads for Miri, which takes some seconds for each: `cargo +nightly miri test -p playhouse
//! --no-default-features --test miri`. They run in every test run, too.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use playhouse::prelude::*;
use playhouse::{ShutdownError, ShutdownReport};

#[derive(Default)]
struct Counter {
    n: u64,
    ended: u64,
    other: Option<ActorRef<Counter>>,
}

#[actor]
impl Counter {
    #[message]
    fn add(&mut self, by: u64) {
        self.n += by;
        if let Some(other) = self.other {
            other.tell(Add(by));
        }
    }
    #[message]
    fn get(&self) -> u64 {
        self.n
    }
    #[message]
    fn ended(&self) -> u64 {
        self.ended
    }
    #[message]
    fn meet(&mut self, other: ActorRef<Counter>, ctx: &mut Context<Self>) {
        self.other = Some(other);
        ctx.watch(other);
    }
    #[message]
    fn take_box(&mut self, large: Box<[u8; 400]>) -> u8 {
        large[399]
    }
    #[message]
    fn take_large(&mut self, large: [u8; 400]) -> u8 {
        large[399]
    }
    /// Waits for a thread, and asks another actor.
    #[message]
    async fn fetch(&mut self) -> Result<u64, AskError> {
        let mut woken = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut woken, true) {
                return Poll::Ready(());
            }
            let waker = cx.waker().clone();
            thread::spawn(move || waker.wake());
            Poll::Pending
        })
        .await;
        let Some(other) = self.other else { return Ok(self.n) };
        other.ask(Get).within(Duration::from_secs(100)).await
    }
    #[message]
    fn fetch_later(&mut self, ctx: &mut Context<Self>) {
        if let Some(other) = self.other {
            ctx.ask(other, Get).then(|this, answer, _| this.n += answer.unwrap_or(1_000));
        }
    }
    #[message]
    fn start_timers(&mut self, ctx: &mut Context<Self>) {
        ctx.send_after(Duration::from_millis(1), Add(100));
        let cancelled = ctx.send_after(Duration::from_millis(2), Add(10_000));
        ctx.cancel(cancelled);
    }
    #[message]
    fn spawn_child(&mut self, ctx: &mut Context<Self>) -> ActorRef<Counter> {
        ctx.spawn(Counter { n: 5, ..Counter::default() })
    }
    #[message]
    fn crash(&mut self) {
        panic!("meant: a crash");
    }
    #[terminated]
    fn note_end(&mut self, _down: Terminated) {
        self.ended += 1;
    }
}

fn system(workers: usize) -> System {
    System::builder().workers(workers).stages(workers).start().unwrap()
}

/// Returns a pair of actors, on different workers if there are 2.
fn pair(system: &System) -> [ActorRef<Counter>; 2] {
    let pair = [0, 1].map(|at| {
        let stage = at % system.stages() as u16;
        system.spawn_with(SpawnOptions::new().placement(Placement::Stage(stage)), Counter::default())
    });
    pair[0].tell(Meet(pair[1]));
    pair
}

/// Shuts the system down within a long limit, because Miri takes long.
fn end(system: System) -> Result<ShutdownReport, ShutdownError> {
    system.shutdown_within(Duration::from_secs(600))
}

#[test]
fn tells_and_asks_of_two_workers() {
    let system = system(2);
    let [first, second] = pair(&system);
    for by in 1..=10 {
        first.tell(Add(by));
    }
    system.run_until_idle();
    first.tell_urgent(Add(1));
    system.run_until_idle();
    assert_eq!(second.ask(Get).wait(), Ok(56));
    assert_eq!(first.ask(TakeLarge([7; 400])).wait(), Ok(7));
    assert_eq!(first.ask(TakeBox(Box::new([8; 400]))).wait(), Ok(8));
    assert_eq!(end(system).unwrap().undelivered, 0);
}

#[test]
fn async_handlers_and_continuations_of_two_workers() {
    let system = system(2);
    let [first, second] = pair(&system);
    second.tell(Add(3));
    assert_eq!(first.ask(Fetch).wait(), Ok(Ok(3)));
    first.tell(FetchLater);
    system.run_until_idle();
    assert_eq!(first.ask(Get).wait(), Ok(3));
    end(system).unwrap();
}

#[test]
fn timers_and_children() {
    let system = system(1);
    let counter = system.spawn(Counter::default());
    counter.tell(StartTimers);
    let child = counter.ask(SpawnChild).wait().unwrap();
    assert_eq!(child.ask(Get).wait(), Ok(5));
    system.run_until_idle();
    assert_eq!(counter.ask(Get).wait(), Ok(100));
    assert_eq!(end(system).unwrap().actors_stopped, 2);
}

#[test]
fn stops_kills_and_crashes() {
    let system = system(1);
    for end in 0..3 {
        let [first, second] = pair(&system);
        match end {
            0 => second.stop(),
            1 => second.kill(),
            _ => assert_eq!(second.ask(Crash).wait(), Err(AskError::Panicked)),
        }
        system.run_until_idle();
        assert_eq!(first.ask(Ended).wait(), Ok(1));
        second.tell(Add(1));
        assert_eq!(second.ask(Get).wait(), Err(AskError::Stopped));
    }
    assert!(system.stats().total.dead_letters >= 3);
    end(system).unwrap();
}

#[test]
fn a_shutdown_ends_what_is_under_way() {
    let system = system(2);
    let [first, second] = pair(&system);
    let sender = thread::spawn(move || {
        for by in 0..20 {
            first.tell(Add(by));
        }
        second.ask(Get).wait()
    });
    end(system).unwrap();
    let answer = sender.join().unwrap();
    assert!(answer.is_err() || answer.is_ok_and(|n| n <= 190));
}

/// Polls a future on this thread until it is ready.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unparks(thread::Thread);
    impl Wake for Unparks {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unparks(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            return result;
        }
        thread::park();
    }
}

#[test]
fn two_threads_run_the_workers_that_they_ask() {
    let system = System::builder().workers(2).run_by_askers(true).start().unwrap();
    let counters = [system.spawn(Counter::default()), system.spawn(Counter::default())];
    counters[0].ask(Meet(counters[1])).wait().unwrap();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..3 {
                    block_on(counters[0].ask(Add(1))).unwrap();
                    counters[1].tell(Add(1));
                    block_on(counters[1].ask(Get).within(Duration::from_secs(600))).unwrap();
                }
            });
        }
    });
    system.run_until_idle();
    assert_eq!(block_on(counters[0].ask(Get)), Ok(6));
    assert_eq!(block_on(counters[1].ask(Get)), Ok(12));
    end(system).unwrap();
}
