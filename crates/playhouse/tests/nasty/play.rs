//! Plays a program, and reports messages, states and futures that were lost, kept or dropped twice.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as PollContext, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use playhouse::ShutdownReport;
use playhouse::prelude::*;

use crate::program::{Place, Placed, Program, Script, Step};

/// The longest that a shutdown may take by itself.
const SHUTDOWN: Duration = Duration::from_secs(if cfg!(tsan) { 60 } else { 5 });

/// The maximum of a program's actors: `Spawn` does nothing beyond.
const ACTORS_MAX: usize = 64;

/// The maximum of nested scripts of `Drop`s, hooks and wakers. Without it, a chain of messages whose `Drop`s send to ended actors
/// takes as much of the stack as the program wants.
const DEPTH_MAX: u32 = 24;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The owner of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Message { mail: usize },
    State { actor: usize },
    Future { mail: usize },
    Continuation,
    Ask,
    Waker,
}

/// Counts its drops.
struct Token {
    world: Arc<World>,
    id: usize,
}

impl Token {
    fn new(world: &Arc<World>, kind: Kind) -> Token {
        let mut tokens = lock(&world.tokens);
        tokens.push((kind, 0));
        Token { world: Arc::clone(world), id: tokens.len() - 1 }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        // The list is empty if the run has failed and is over.
        if let Some((_, drops)) = lock(&self.world.tokens).get_mut(self.id) {
            *drops += 1;
        }
    }
}

/// A job for a foreign thread.
enum Job {
    Wake(Waker),
    Tell { to: u8, mail: u8 },
}

type Shelved = (Pin<Box<dyn Future<Output = Result<u64, AskError>> + Send>>, Token);

/// The state that a program's scripts share.
struct World {
    program: Program,
    fuel: AtomicI64,
    system: Mutex<Option<System>>,
    actors: Mutex<Vec<ActorRef<Nasty>>>,
    tokens: Mutex<Vec<(Kind, u32)>>,
    kept: Mutex<Vec<Waker>>,
    shelf: Mutex<Vec<Shelved>>,
    /// `None` if the job of a foreign thread is done at once.
    jobs: Mutex<Option<Sender<Job>>>,
    /// The jobs of a simulated system.
    pumped: Mutex<Receiver<Job>>,
    /// Set when the shutdown of the system begins.
    closing: AtomicBool,
    /// The number of tells before `closing`, and of all tells.
    sent_before: AtomicU64,
    sent: AtomicU64,
    handled: AtomicU64,
    refused: AtomicU64,
    dead: AtomicU64,
}

/// How a message was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Tell,
    Other,
}

/// The contents of every message.
struct Load {
    how: How,
    mail: usize,
    token: Token,
}

impl Load {
    fn new(world: &Arc<World>, mail: u8, how: How) -> Load {
        let mail = usize::from(mail) % world.program.mails.len();
        Load { how, mail, token: Token::new(world, Kind::Message { mail }) }
    }

    /// Counts a handler that has begun.
    fn arrived(&self) -> Arc<World> {
        let world = &self.token.world;
        if self.how == How::Tell {
            world.handled.fetch_add(1, Ordering::Relaxed);
        }
        world.spend();
        Arc::clone(world)
    }
}

impl Clone for Load {
    fn clone(&self) -> Load {
        Load::new(&self.token.world, self.mail as u8, self.how)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let world = Arc::clone(&self.token.world);
        world.bare(Place::MessageDrop, &world.program.mails[self.mail].drop);
    }
}

/// A message for a sync handler.
#[derive(Clone)]
struct Mail<const N: usize>(Load, [u8; N]);

/// A message for an async handler.
#[derive(Clone)]
struct Later<const N: usize>(Load, [u8; N]);

impl<const N: usize> Message for Mail<N> {
    type Reply = u64;
}

impl<const N: usize> Message for Later<N> {
    type Reply = u64;
}

/// The size of messages that have a box of their own.
const LARGE: usize = 600;

/// Makes a message of a load, of the type that the script names.
macro_rules! with_mail {
    ($load:expr, $message:ident => $do:expr) => {{
        let load: Load = $load;
        let script = &load.token.world.program.mails[load.mail];
        match (script.waits, script.large) {
            (false, false) => {
                let $message = Mail(load, []);
                $do
            }
            (false, true) => {
                let $message = Mail(load, [7; LARGE]);
                $do
            }
            (true, false) => {
                let $message = Later(load, []);
                $do
            }
            (true, true) => {
                let $message = Later(load, [7; LARGE]);
                $do
            }
        }
    }};
}

// Behind the macro, which they use.
mod check;
mod steps;

use check::{account, finish, poll_shelf};

/// A waker of another executor.
struct Foreign {
    script: usize,
    token: Token,
}

impl Wake for Foreign {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        let world = &self.token.world;
        world.bare(Place::Waker, &world.program.wakers[self.script].wake);
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let world = Arc::clone(&self.token.world);
        world.bare(Place::WakerDrop, &world.program.wakers[self.script].drop);
    }
}

/// The value that an async handler holds.
struct Held {
    mail: usize,
    token: Token,
}

impl Drop for Held {
    fn drop(&mut self) {
        let world = Arc::clone(&self.token.world);
        world.bare(Place::FutureDrop, &world.program.mails[self.mail].future_drop);
    }
}

fn panic_on_purpose(place: Place) {
    if !thread::panicking() {
        panic!("meant: in {place:?}");
    }
}

fn within_ms(ms: u8) -> Duration {
    Duration::from_millis(ms.into())
}

impl World {
    /// Takes one unit of fuel. Returns `false` if none is left.
    fn spend(&self) -> bool {
        self.fuel.fetch_sub(1, Ordering::Relaxed) > 0
    }

    fn is_spent(&self) -> bool {
        self.fuel.load(Ordering::Relaxed) <= 0
    }

    fn actor(&self, who: u8) -> Option<ActorRef<Nasty>> {
        let actors = lock(&self.actors);
        (!actors.is_empty()).then(|| actors[usize::from(who) % actors.len()])
    }

    fn send(self: &Arc<Self>, to: u8, mail: u8, send: impl FnOnce(ActorRef<Nasty>, Load)) {
        let Some(to) = self.actor(to) else { return };
        self.sent.fetch_add(1, Ordering::SeqCst);
        send(to, Load::new(self, mail, How::Tell));
        if !self.closing.load(Ordering::SeqCst) {
            self.sent_before.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn tell(self: &Arc<Self>, to: u8, mail: u8) {
        self.send(to, mail, |to, load| with_mail!(load, message => to.tell(message)));
    }

    /// Runs a script without a context.
    fn bare(self: &Arc<Self>, place: Place, script: &Script) {
        thread_local! {
            static DEPTH: Cell<u32> = const { Cell::new(0) };
        }
        struct Leave;
        impl Drop for Leave {
            fn drop(&mut self) {
                DEPTH.set(DEPTH.get() - 1);
            }
        }
        DEPTH.set(DEPTH.get() + 1);
        let _leave = Leave;
        for step in script {
            if DEPTH.get() > DEPTH_MAX || !self.spend() {
                return;
            }
            self.step(place, step);
        }
    }

    fn ask(self: &Arc<Self>, to: u8, mail: u8, within: Option<u8>) -> Option<Shelved> {
        let (to, load) = (self.actor(to)?, Load::new(self, mail, How::Other));
        let future = with_mail!(load, message => {
            let ask = to.ask(message);
            let ask = if let Some(ms) = within { ask.within(within_ms(ms)) } else { ask };
            let boxed: Pin<Box<dyn Future<Output = Result<u64, AskError>> + Send>> = Box::pin(ask);
            boxed
        });
        Some((future, Token::new(self, Kind::Ask)))
    }

    /// Waits for an ask in a thread that runs no actor.
    fn wait(self: &Arc<Self>, mut ask: Pin<Box<dyn Future<Output = Result<u64, AskError>> + Send>>) {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut poll = || ask.as_mut().poll(&mut PollContext::from_waker(&waker)).is_ready();
        if self.program.seed.is_none() {
            while !poll() {
                thread::park();
            }
        } else {
            self.simulate(&mut poll);
        }
    }

    /// Runs a simulated system, and foreign threads beside it, until no work is left, or `done`.
    fn simulate(self: &Arc<Self>, done: &mut dyn FnMut() -> bool) {
        let Some(system) = lock(&self.system).clone() else { return };
        loop {
            let mut is_done = false;
            system.core().block_until(None, &mut || {
                if !is_done {
                    self.pump();
                    is_done = done();
                }
                is_done
            });
            if is_done || !self.pump() {
                return;
            }
        }
    }

    /// Does the jobs of foreign threads. Returns `false` if no job was waiting.
    fn pump(self: &Arc<Self>) -> bool {
        let mut any = false;
        loop {
            let job = lock(&self.pumped).try_recv();
            let Ok(job) = job else { return any };
            any = true;
            self.work(job);
        }
    }

    fn give(self: &Arc<Self>, job: Job) {
        let job = match &*lock(&self.jobs) {
            Some(jobs) => jobs.send(job).err().map(|back| back.0),
            None => Some(job),
        };
        if let Some(job) = job {
            self.work(job);
        }
    }

    /// Does a job of a foreign thread. A panic in a `Drop` or a waker does not end the thread, as in other programs'
    /// loops.
    fn work(self: &Arc<Self>, job: Job) {
        let _ = catch_unwind(AssertUnwindSafe(|| match job {
            Job::Wake(waker) => waker.wake(),
            Job::Tell { to, mail } => self.tell(to, mail),
        }));
    }

    fn options(&self, actor: usize) -> SpawnOptions {
        let script = &self.program.actors[actor];
        let mut options = SpawnOptions::new().placement(match script.placed {
            Placed::Near => Placement::Near,
            Placed::Stage(stage) => Placement::Stage((stage % self.program.stages).into()),
            Placed::Dedicated => Placement::Dedicated,
        });
        if let Some(bound) = script.bound {
            let full = if bound.is_multiple_of(2) { OnFull::DropOldest } else { OnFull::default() };
            options = options.mailbox(Mailbox::bounded(bound.into()).on_full(full));
        }
        options
    }

    fn new_actor(self: &Arc<Self>, actor: usize) -> Option<(SpawnOptions, Nasty)> {
        let actor = actor % self.program.actors.len();
        let may = lock(&self.actors).len() < ACTORS_MAX;
        may.then(|| {
            let token = Token::new(self, Kind::State { actor });
            (self.options(actor), Nasty { script: actor, timers: Vec::new(), token })
        })
    }

    fn spawn(self: &Arc<Self>, actor: usize) {
        let Some(system) = lock(&self.system).clone() else { return };
        let Some((options, actor)) = self.new_actor(actor) else { return };
        if let Ok(spawned) = system.try_spawn_with(options, actor) {
            lock(&self.actors).push(spawned);
        }
    }
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// An actor that follows its scripts and those of its messages.
struct Nasty {
    script: usize,
    timers: Vec<TimerKey>,
    token: Token,
}

#[derive(Debug)]
struct Meant;

impl std::fmt::Display for Meant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("meant")
    }
}

impl std::error::Error for Meant {}

impl Nasty {
    fn world(&self) -> Arc<World> {
        Arc::clone(&self.token.world)
    }

    async fn act_waiting(&mut self, world: &Arc<World>, script: &Script, ctx: &mut Context<Self>) {
        for step in script {
            if !world.spend() {
                break;
            }
            match *step {
                Step::Ask { to, mail, within } => {
                    if let Some((ask, _token)) = world.ask(to, mail, within) {
                        let _ = ask.await;
                    }
                }
                Step::Yield => {
                    let mut waited = false;
                    poll_fn(|cx| {
                        if std::mem::replace(&mut waited, true) {
                            return Poll::Ready(());
                        }
                        cx.waker().wake_by_ref();
                        Poll::Pending
                    })
                    .await;
                }
                Step::WakeAbroad => {
                    let woken = Arc::new(AtomicBool::new(false));
                    let mut given = false;
                    poll_fn(|cx| {
                        if !std::mem::replace(&mut given, true) {
                            let waker = OnceWaker { woken: Arc::clone(&woken), waker: cx.waker().clone() };
                            world.give(Job::Wake(Waker::from(Arc::new(waker))));
                        }
                        if woken.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
                    })
                    .await;
                }
                Step::KeepWaker => {
                    poll_fn(|cx| {
                        lock(&world.kept).push(cx.waker().clone());
                        Poll::Ready(())
                    })
                    .await;
                }
                ref other => self.step(Place::AsyncHandler, world, other, ctx),
            }
        }
        self.calm(world, ctx);
    }
}

/// Counts its wake-ups, and passes them on.
struct OnceWaker {
    woken: Arc<AtomicBool>,
    waker: Waker,
}

impl Wake for OnceWaker {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.waker.wake_by_ref();
    }
}

impl Actor for Nasty {
    fn started(&mut self, ctx: &mut Context<Self>) {
        let world = self.world();
        self.act(Place::Started, &world, &world.program.actors[self.script].started, ctx);
    }
    fn stopped(&mut self, ctx: &mut Context<Self>) {
        let world = self.world();
        self.act(Place::Stopped, &world, &world.program.actors[self.script].stopped, ctx);
    }
    fn terminated(&mut self, _down: Terminated, ctx: &mut Context<Self>) {
        let world = self.world();
        self.act(Place::Terminated, &world, &world.program.actors[self.script].terminated, ctx);
    }
}

impl Drop for Nasty {
    fn drop(&mut self) {
        let world = self.world();
        world.bare(Place::StateDrop, &world.program.actors[self.script].drop);
    }
}

impl<const N: usize> Handler<Mail<N>> for Nasty {
    fn handle(&mut self, Mail(load, _): Mail<N>, ctx: &mut Context<Self>) -> u64 {
        let world = load.arrived();
        self.act(Place::Handler, &world, &world.program.mails[load.mail].handle, ctx);
        1
    }
}

impl<const N: usize> AsyncHandler<Later<N>> for Nasty {
    async fn handle(&mut self, Later(load, _): Later<N>, ctx: &mut Context<Self>) -> u64 {
        let world = load.arrived();
        let _held = Held { mail: load.mail, token: Token::new(&world, Kind::Future { mail: load.mail }) };
        self.act_waiting(&world, &world.program.mails[load.mail].handle, ctx).await;
        2
    }
}

/// Plays `program` once.
///
/// # Errors
/// Returns the error of the run.
pub fn play(program: &Program) -> Result<(), String> {
    let (jobs, pumped) = channel();
    let system = System::builder().print_crashes(false).workers(program.workers.into()).stages(program.stages.into());
    let system = match program.seed {
        Some(seed) => system.simulated(seed),
        None => system,
    };
    let system = system.start().map_err(|error| error.to_string())?;
    let world = Arc::new(World {
        fuel: AtomicI64::new(program.fuel.into()),
        program: program.clone(),
        system: Mutex::new(Some(system.clone())),
        actors: Mutex::default(),
        tokens: Mutex::default(),
        kept: Mutex::default(),
        shelf: Mutex::default(),
        jobs: Mutex::new(Some(jobs)),
        pumped: Mutex::new(pumped),
        closing: AtomicBool::new(false),
        sent_before: AtomicU64::new(0),
        sent: AtomicU64::new(0),
        handled: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        dead: AtomicU64::new(0),
    });
    let hooked = Arc::clone(&world);
    system.on_dead_letter(move |_: &DeadLetter| {
        hooked.dead.fetch_add(1, Ordering::Relaxed);
        hooked.bare(Place::DeadLetter, &hooked.program.dead_letter);
    });
    for actor in 0..program.actors.len() {
        calmly(|| world.spawn(actor));
    }
    let report = run(&world, system);
    let mut wrong: Vec<String> = Vec::new();
    match report {
        Err(error) => wrong.push(error),
        Ok(report) => wrong.extend(account(&world, report.stats.total.dead_letters)),
    }
    finish(&world, &mut wrong);
    let tokens = std::mem::take(&mut *lock(&world.tokens));
    if Arc::strong_count(&world) > 1 {
        wrong.push(format!("{} references to the world are left", Arc::strong_count(&world) - 1));
    }
    let mut amiss: BTreeMap<(Kind, u32), u32> = BTreeMap::new();
    for token in tokens.into_iter().filter(|(_, drops)| *drops != 1) {
        *amiss.entry(token).or_default() += 1;
    }
    for ((kind, drops), count) in amiss {
        wrong.push(format!("{count} of {kind:?} dropped {drops} times"));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

/// Calls a function that may panic on purpose.
fn calmly(what: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(what));
}

/// Runs the threads and the system to the end.
fn run(world: &Arc<World>, system: System) -> Result<ShutdownReport, String> {
    let program = &world.program;
    if program.seed.is_some() {
        for script in &program.threads {
            calmly(|| world.bare(Place::Thread, script));
        }
        world.simulate(&mut || false);
        return end(world, system);
    }
    let abroad = {
        let world = Arc::clone(world);
        thread::spawn(move || {
            let jobs = lock(&world.pumped);
            while let Ok(job) = jobs.recv() {
                world.work(job);
            }
        })
    };
    let threads: Vec<_> = (0..program.threads.len())
        .map(|at| {
            let world = Arc::clone(world);
            thread::spawn(move || calmly(|| world.bare(Place::Thread, &world.program.threads[at])))
        })
        .collect();
    let join = |threads: Vec<thread::JoinHandle<()>>| threads.into_iter().for_each(|thread| _ = thread.join());
    let report = program.racing.then(|| end(world, system.clone()));
    join(threads);
    // Scripts that would go on for ever come to their end.
    world.fuel.store(0, Ordering::Relaxed);
    *lock(&world.jobs) = None;
    let _ = abroad.join();
    if let Some(report) = report {
        return report;
    }
    system.run_until_idle();
    if let Some(wrong) = account(world, system.stats().total.dead_letters) {
        return Err(format!("idle: {wrong}"));
    }
    let waits = lock(&world.shelf).len();
    let pending = poll_shelf(world);
    if pending > 0 {
        return Err(format!("{pending} of {waits} asks have no end, though all is idle"));
    }
    end(world, system)
}

/// Shuts the system down.
fn end(world: &Arc<World>, system: System) -> Result<ShutdownReport, String> {
    world.fuel.store(world.program.end_fuel.into(), Ordering::Relaxed);
    world.closing.store(true, Ordering::SeqCst);
    let begun = Instant::now();
    let report = catch_unwind(AssertUnwindSafe(|| system.shutdown_within(SHUTDOWN)));
    let took = begun.elapsed();
    world.fuel.store(0, Ordering::Relaxed);
    match report {
        Ok(Ok(report)) if took < SHUTDOWN * 3 => Ok(report),
        Ok(Ok(_)) => Err(format!("the shutdown took {took:?}")),
        Ok(Err(error)) => Err(format!("shutdown: {error}")),
        Err(_) => Err("the shutdown has panicked".to_owned()),
    }
}
