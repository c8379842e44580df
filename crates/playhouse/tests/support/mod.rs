//! Actors and functions that the integration tests share.

#![allow(dead_code)]

pub mod graph;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use playhouse::ShutdownReport;
use playhouse::prelude::*;

/// A limit that is longer than any step on a busy machine, and short enough to report a hang.
pub const LIMIT: Duration = Duration::from_secs(if cfg!(any(tsan, miri)) { 1200 } else { 120 });

/// Runs `test` in a thread of its own. Fails if it does not finish, instead of hanging.
pub fn finishes(test: impl FnOnce() + Send + 'static) {
    let (done, finished) = channel();
    let runner = std::thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    match finished.recv_timeout(LIMIT) {
        Ok(()) => {}
        Err(RecvTimeoutError::Timeout) => panic!("not finished after {LIMIT:?}"),
        Err(RecvTimeoutError::Disconnected) => {}
    }
    if let Err(panic) = runner.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Starts a system with `workers` threads.
pub fn threads(workers: usize) -> System {
    System::builder().workers(workers).start().unwrap()
}

/// Starts a simulated system with 2 workers.
pub fn simulated(seed: u64) -> System {
    System::builder().workers(2).simulated(seed).start().unwrap()
}

/// Shuts down a system that ends in less than the usual limit. Under Miri it may take hundreds of times longer.
#[track_caller]
pub fn shut_down(system: System) -> ShutdownReport {
    let ended = if cfg!(miri) { system.shutdown_within(LIMIT) } else { system.shutdown() };
    ended.unwrap()
}

/// Returns options for a stage.
pub fn on_stage(stage: u16) -> SpawnOptions {
    SpawnOptions::new().placement(Placement::Stage(stage))
}

/// A generator of choices (splitmix64).
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.roll() % n as u64) as usize
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.roll().is_multiple_of(n)
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // ThreadSanitizer does not see the order that a waiting lock of the standard library makes.
    while cfg!(tsan) {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A log with many writers.
#[derive(Debug)]
pub struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Log(Arc::clone(&self.0))
    }
}

impl<T> Default for Log<T> {
    fn default() -> Self {
        Log(Arc::default())
    }
}

impl<T> Log<T> {
    pub fn new() -> Self {
        Log::default()
    }

    pub fn push(&self, entry: T) {
        self.lock().push(entry);
    }

    pub fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        lock(&self.0)
    }

    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.lock())
    }
}

/// Calls any function in its handler: the Swiss knife of these tests.
pub struct Puppet;

impl Actor for Puppet {}

type Deed = Box<dyn FnOnce(&mut Context<Puppet>) + Send>;

/// A function for a [`Puppet`] to call.
pub struct Do(Deed);

impl Message for Do {
    type Reply = ();
}

impl Do {
    pub fn this(deed: impl FnOnce(&mut Context<Puppet>) + Send + 'static) -> Do {
        Do(Box::new(deed))
    }
}

impl Handler<Do> for Puppet {
    fn handle(&mut self, deed: Do, ctx: &mut Context<Self>) {
        (deed.0)(ctx);
    }
}

/// Writes its numbers into a log.
pub struct Scribe(pub Log<u64>);

impl Actor for Scribe {}

#[derive(Message, Clone, Copy, Debug)]
pub struct Write(pub u64);

impl Handler<Write> for Scribe {
    fn handle(&mut self, Write(number): Write, _: &mut Context<Self>) {
        self.0.push(number);
    }
}

/// Answers with the number plus one.
pub struct Adder;

impl Actor for Adder {}

#[derive(Message, Clone, Copy, Debug)]
#[message(reply = u64)]
pub struct Increment(pub u64);

impl Handler<Increment> for Adder {
    fn handle(&mut self, Increment(n): Increment, _: &mut Context<Self>) -> u64 {
        n + 1
    }
}

/// Never answers, for tests of deadlines.
pub struct Clock;

impl Actor for Clock {}

#[derive(Message)]
pub struct Never;

impl AsyncHandler<Never> for Clock {
    async fn handle(&mut self, _: Never, _: &mut Context<Self>) {
        std::future::pending().await
    }
}

/// Blocks a handler from outside.
pub struct Gate {
    entered: Receiver<()>,
    open: Sender<()>,
}

/// The handler's side of a [`Gate`].
pub struct Turnstile {
    entered: SyncSender<()>,
    open: Receiver<()>,
}

impl Gate {
    pub fn new() -> (Gate, Turnstile) {
        let (entered, entering) = sync_channel(1);
        let (open, opened) = channel();
        (Gate { entered: entering, open }, Turnstile { entered, open: opened })
    }

    /// Waits until the handler stands in the gate.
    pub fn wait_entered(&self) {
        self.entered.recv_timeout(LIMIT).expect("the handler never came to the gate");
    }

    /// Lets the handler through.
    pub fn open(&self) {
        let _ = self.open.send(());
    }
}

impl Turnstile {
    /// Blocks until the gate is opened.
    pub fn pass(self) {
        let _ = self.entered.send(());
        let _ = self.open.recv_timeout(LIMIT);
    }
}

/// Watches actors and logs how they ended.
pub struct Mourner(pub Log<Terminated>);

impl Actor for Mourner {
    fn terminated(&mut self, terminated: Terminated, _: &mut Context<Self>) {
        self.0.push(terminated);
    }
}

/// Asks a [`Mourner`] to watch `who`. The answer comes once it does.
pub struct Mourn<A: Actor>(pub ActorRef<A>);

impl<A: Actor> Message for Mourn<A> {
    type Reply = ();
}

impl<A: Actor> Handler<Mourn<A>> for Mourner {
    fn handle(&mut self, Mourn(who): Mourn<A>, ctx: &mut Context<Self>) {
        ctx.watch(who);
    }
}

/// Silences the reports of intended panics.
pub fn quiet_panics() {
    use std::sync::Once;
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let meant = info.payload().downcast_ref::<&str>().is_some_and(|text| text.starts_with("meant:"))
                || info.payload().downcast_ref::<String>().is_some_and(|text| text.starts_with("meant:"))
                || info.payload().downcast_ref::<&str>().is_none() && info.payload().downcast_ref::<String>().is_none();
            if !meant {
                usual(info);
            }
        }));
    });
}
