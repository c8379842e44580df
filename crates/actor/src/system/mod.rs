//! Actor systems.

pub(crate) mod ending;
pub(crate) mod services;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

#[cfg(feature = "tokio")]
use playhouse_executor::Around;
use playhouse_executor::{Config, Counters, Stealing, SystemCore, Undelivered};

use crate::actor::names::{Label, ShortType};
use crate::actor::reference::{ActorRef, OwnedActor};
use crate::actor::spawn::{SpawnError, SpawnOptions};
use crate::actor::{Actor, ActorId};
use crate::ask::outside::assert_outside_of;
use crate::observe::Observed;
use crate::system::services::OfSystem;

/// A handle to an actor system: workers, stages, and the actors on them. Cheap to clone.
///
/// Several systems live side by side in one process, up to 4,095. A system ends by [`System::shutdown`]. When all handles are
/// dropped without it, the threads of a system go on until the process ends.
///
/// A [simulated](SystemBuilder::simulated) system has no threads, and ends with its last handle: its actors are stopped, what waits for them is a
/// dead letter, and asks for them fail with [`AskError::Shutdown`](crate::AskError::Shutdown). Handles that its actors, services and dead-letter
/// hooks keep count, too (pools, routers and topics do not). If a thread runs the system at that moment (the handle is dropped by one of its actors, or another thread waits for an
/// answer), or if the thread that drops it panics, nothing is ended, and the system stays until the process ends.
#[derive(Debug)]
pub struct System {
    core: Arc<SystemCore>,
}

impl Clone for System {
    fn clone(&self) -> Self {
        System::of(&self.core)
    }
}

impl Drop for System {
    fn drop(&mut self) {
        if OfSystem::handle_less(&self.core) && self.core.is_simulated() && !std::thread::panicking() {
            self.end_unused();
        }
    }
}

/// A handle that does not count: a simulated system ends although there is one. Pools, routers and topics have one, because actors and services
/// keep them.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Uncounted(Arc<SystemCore>);

impl Uncounted {
    /// Returns a handle to `system`.
    pub fn of(system: &System) -> Uncounted {
        Uncounted(Arc::clone(&system.core))
    }

    /// The executor's part of the system.
    pub fn core(&self) -> &Arc<SystemCore> {
        &self.0
    }

    /// Returns the system, which may have ended.
    pub fn system(&self) -> System {
        System::of(&self.0)
    }
}

/// What a [`System`] is to be made of: see [`System::builder`].
#[derive(Clone, Debug)]
#[must_use]
pub struct SystemBuilder {
    config: Config,
    workers: Option<usize>,
    stages: Option<usize>,
    observed: Observed,
    on_start: OnStart,
}

/// The functions that are called when a system has started: see [`SystemBuilder::on_start`].
#[doc(hidden)]
#[derive(Clone, Default)]
pub struct OnStart(Vec<Arc<Act>>);

type Act = dyn Fn(&System) -> Started + Send + Sync;
type Started = Result<(), Box<dyn Error + Send + Sync>>;

impl OnStart {
    /// Calls them. If one fails or panics, the system is shut down.
    #[doc(hidden)]
    pub fn run(self, system: &System) -> Result<(), BuildError> {
        /// Shuts the system down, unless all have returned.
        struct Unfinished<'a>(Option<&'a System>);
        impl Drop for Unfinished<'_> {
            fn drop(&mut self) {
                if let Some(system) = self.0 {
                    // The caller is told of the first failure only, and not also of a shutdown that is late.
                    drop(system.clone().shutdown());
                }
            }
        }
        let mut unfinished = Unfinished(Some(system));
        for act in self.0 {
            act(system).map_err(|error| BuildError { wrong: vec![format!("`on_start` has failed: {error}")] })?;
        }
        unfinished.0 = None;
        Ok(())
    }
}

impl fmt::Debug for OnStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnStart({} functions)", self.0.len())
    }
}

/// All that is wrong with the settings of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    wrong: Vec<String>,
}

impl BuildError {
    /// One line for each wrong setting.
    pub fn problems(&self) -> &[String] {
        &self.wrong
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the actor system could not be started: {}", self.wrong.join("; "))
    }
}

impl std::error::Error for BuildError {}

/// The least time that a shutdown has beyond its limit to end threads, and again to end actors, after a drain that has taken all of it.
const GRACE_MIN: Duration = Duration::from_millis(100);

/// Workers of a simulated system where nothing else is asked for.
const SIMULATED_WORKERS: usize = 4;

impl SystemBuilder {
    /// Threads that run actors. Default: one per core; 4 in simulation.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Stages, over all workers; at least one each. Default: 16 per worker.
    pub fn stages(mut self, stages: usize) -> Self {
        self.stages = Some(stages);
        self
    }

    /// Stages besides those, for actors that live elsewhere: one per link to another theater (more links share them), so
    /// that a link that is full stops only who sends over it. Default: none; a theater sets it.
    pub fn links(mut self, links: usize) -> Self {
        self.config.links = links;
        self
    }

    /// Whom idle workers steal stages from. Default: the one that has been busy longest.
    pub fn stealing(mut self, stealing: Stealing) -> Self {
        self.config.stealing = stealing;
        self
    }

    /// Most messages that a worker runs before it looks at its inbox: smaller is fairer, larger is faster. Default: 512.
    pub fn throughput(mut self, messages: u64) -> Self {
        self.config.throughput = messages;
        self
    }

    /// Whether worker `i` is bound to the `i`-th core. Default: no. Only on Linux.
    pub fn pinning(mut self, pinning: bool) -> Self {
        self.config.pinning = pinning;
        self
    }

    /// One thread and virtual time; every choice is drawn from `seed`, so a run can be repeated exactly. The system runs
    /// while [`System::run_until_idle`] or [`Ask::wait`](crate::Ask::wait) is called. Several threads that call these take turns.
    pub fn simulated(mut self, seed: u64) -> Self {
        self.config.simulated = Some(seed);
        self
    }

    /// Runs actors in the context of this tokio runtime: in handlers and hooks, `tokio::spawn`, `tokio::time::sleep` and what uses tokio (reqwest,
    /// sqlx) work as in a task of it. Without this, they panic: "there is no reactor running". Default: none.
    ///
    /// Actors run on the system's own threads as before, and the runtime has its threads. It must run for as long as actors use it. In simulation, its
    /// time and its threads are real: such a run cannot be repeated exactly. For time use [`Context::sleep`](crate::Context::sleep) there.
    ///
    /// ```
    /// use playhouse_actor::*;
    /// use std::time::Duration;
    ///
    /// struct Clerk;
    /// impl Actor for Clerk {}
    ///
    /// struct Work;
    /// impl Message for Work {
    ///     type Reply = u32;
    /// }
    /// impl AsyncHandler<Work> for Clerk {
    ///     async fn handle(&mut self, _: Work, _: &mut Context<Self>) -> u32 {
    ///         tokio::time::sleep(Duration::from_millis(1)).await;
    ///         tokio::spawn(async { 42 }).await.unwrap()
    ///     }
    /// }
    ///
    /// let runtime = tokio::runtime::Runtime::new()?; // or `#[tokio::main]`, and `tokio::runtime::Handle::current()`
    /// let system = System::builder().tokio(runtime.handle().clone()).start()?;
    /// assert_eq!(system.spawn(Clerk).ask(Work).wait()?, 42);
    /// # system.shutdown()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "tokio")]
    pub fn tokio(mut self, runtime: tokio::runtime::Handle) -> Self {
        self.config.around = Some(Around::new(move |run| {
            let _context = runtime.enter();
            run();
        }));
        self
    }

    /// How long a worker that finds nothing to do watches for messages, at most, before its thread sleeps. Watching takes processor time, and to wake a thread
    /// takes some microseconds. A worker watches for less while that has been in vain. Default: 40 µs; 0 with
    /// [`run_by_askers`](SystemBuilder::run_by_askers), and where the process has a quota of processor time that is smaller than its cores (on Linux). A
    /// system at rest takes no processor time in any case.
    pub fn spin(mut self, at_most: Duration) -> Self {
        self.config.spin = Some(at_most);
        self
    }

    /// Whether a task that awaits an ask runs the receiver's worker itself, on its own thread, if that worker sleeps. The answer of a short handler is
    /// there at once then, and no other thread is woken: an ask takes a fraction of a microsecond instead of some microseconds, and a web server takes
    /// more requests with less CPU time. Default: no.
    ///
    /// Handlers, hooks and drops of messages then run on the system's own threads *and* on those that await asks, for example those of a tokio runtime:
    ///
    /// - A handler that blocks holds up that thread, and with it the tasks of its runtime. What must not be called on a thread of a runtime panics there:
    ///   `block_on`, blocking clients, the drop of a runtime.
    /// - Handlers that use tokio need `SystemBuilder::tokio` as well. Otherwise, they work where a task of a runtime runs them, and crash where a thread of the
    ///   system does. Values of `task_local!` are those of the task that runs the handler.
    /// - The stack is that of that thread: 2 MiB in tokio, where the system's own threads have 8 MiB (32 MiB with debug assertions). Asks of handlers do
    ///   not nest on it.
    /// - A lock of `std::sync` that is held while an ask is awaited may be wanted by a handler of another actor: then the thread waits for itself, for ever.
    ///   Locks of tasks (`tokio::sync::Mutex`) are not concerned.
    ///
    /// The task runs what waits at that worker for about 20 µs, and no message that has lately taken the worker more than 50 µs, by the message's type: the
    /// worker's own thread does. After 64 asks in a row that were answered at once, an ask lets the other tasks of its thread have their turn. A task
    /// runs no worker for [`Ask::wait`](crate::Ask::wait), for `tell`, or for an ask of an actor of this system. A worker of a theater that waits for connections is
    /// woken as before. In simulation, this changes nothing.
    pub fn run_by_askers(mut self, yes: bool) -> Self {
        self.config.lends = yes;
        self
    }

    /// Whether a shutdown waits, within its limit, for handlers that await something: a task of tokio, a timer, an answer. Messages behind them are handled
    /// then, too. Default: no. A handler that awaits what never comes takes the whole limit.
    ///
    /// It waits for no timer and no stream by itself: only handlers count, also the futures of reentrant ones. In simulation, time moves on meanwhile, and
    /// what only another thread could bring is not waited for.
    ///
    /// ```
    /// use playhouse_actor::*;
    /// use std::time::Duration;
    ///
    /// struct Ledger(std::sync::mpsc::Sender<u32>);
    /// impl Actor for Ledger {}
    ///
    /// struct Save(u32);
    /// impl Message for Save {
    ///     type Reply = ();
    /// }
    /// impl AsyncHandler<Save> for Ledger {
    ///     async fn handle(&mut self, Save(entry): Save, ctx: &mut Context<Self>) {
    ///         ctx.sleep(Duration::from_millis(10)).await; // a database, say
    ///         let _ = self.0.send(entry);
    ///     }
    /// }
    ///
    /// let system = System::builder().await_handlers(true).start()?;
    /// let (saved, entries) = std::sync::mpsc::channel();
    /// let ledger = system.spawn(Ledger(saved));
    /// (0..3).for_each(|entry| ledger.tell(Save(entry)));
    /// assert_eq!(system.shutdown()?.undelivered, 0);
    /// assert_eq!(entries.iter().collect::<Vec<_>>(), [0, 1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn await_handlers(mut self, yes: bool) -> Self {
        self.config.awaits_handlers = yes;
        self
    }

    /// Whether each handler is timed, for [`System::handler_times`]. Costs each message about a tenth of a microsecond.
    /// Default: no, which costs nothing; [`System::time_handlers`] can be asked for it later.
    pub fn handler_times(mut self, timed: bool) -> Self {
        self.observed.times = timed;
        self
    }

    /// Whether each crash of an actor is printed on stderr, as one line: which actor, what it was running, the cause and the place, and what
    /// becomes of the actor. Default: yes. For the reports themselves see [`System::on_crash`].
    pub fn print_crashes(mut self, print: bool) -> Self {
        self.observed.prints_crashes = print;
        self
    }

    /// Handlers that run for longer than `limit` are told to [`System::on_slow_handler`]. What an async handler waits for does
    /// not count, and each of its parts counts by itself. Costs each message about a tenth of a microsecond. Default: none
    /// is, which costs nothing.
    pub fn slow_handlers(mut self, limit: Duration) -> Self {
        self.observed.slow = Some(limit);
        self
    }

    /// Whether each handler runs in a span of the `tracing` crate, on the level INFO and with the target `playhouse`: `handle`
    /// with the fields `actor` and `message`. It *follows from* the span in which its message was sent, in a handler or
    /// anywhere else, and is not a child of it, so traces do not nest without end. Default: no, which costs nothing.
    ///
    /// A span stays open until all that was sent in it is handled; of each 65,536 messages under way the youngest are linked.
    /// Messages to other theaters arrive without a link.
    #[cfg(feature = "tracing")]
    pub fn tracing(mut self, traced: bool) -> Self {
        self.observed.spans = traced;
        self
    }

    /// Calls `act` with the system when that has started, and before `start` returns it: to [`provide`](System::provide) services, and to start actors that
    /// others rely on. In a theater, it is called before the theater answers a caller. Functions that were given before are called first.
    ///
    /// # Errors
    /// If `act` returns an error, `start` fails with it, and the system is shut down.
    ///
    /// # Panics
    /// If `act` panics, `start` does, and the system is shut down.
    ///
    /// ```
    /// use playhouse_actor::System;
    ///
    /// struct Prices(Vec<u32>);
    ///
    /// let prices = |system: &System| {
    ///     system.provide(Prices("3 5 8".split(' ').map(str::parse).collect::<Result<_, _>>()?));
    ///     Ok(())
    /// };
    /// let system = System::builder().on_start(prices).start()?;
    /// assert_eq!(system.service::<Prices>().map(|prices| prices.0[1]), Some(5));
    /// # system.shutdown()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_start(
        mut self,
        act: impl Fn(&System) -> Result<(), Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    ) -> Self {
        self.on_start.0.push(Arc::new(act));
        self
    }

    /// Starts the system.
    ///
    /// # Errors
    /// All wrong settings at once, or that a thread could not be started, or that a function given to [`on_start`](SystemBuilder::on_start) has failed.
    pub fn start(self) -> Result<System, BuildError> {
        let (system, on_start) = self.begin()?;
        on_start.run(&system)?;
        Ok(system)
    }

    /// Whether it is to be a [simulated](SystemBuilder::simulated) system.
    #[doc(hidden)]
    pub fn is_simulated(&self) -> bool {
        self.config.simulated.is_some()
    }

    /// Starts the system, and leaves it to the caller to call the functions given to [`on_start`](SystemBuilder::on_start).
    #[doc(hidden)]
    pub fn begin(self) -> Result<(System, OnStart), BuildError> {
        let mut config = self.config;
        config.workers = self.workers.unwrap_or_else(|| match config.simulated {
            // The same seed is to give the same run on every machine.
            Some(_) => SIMULATED_WORKERS,
            None => Config::one_per_core(),
        });
        config.stages = self.stages.unwrap_or(config.workers.max(1) * playhouse_executor::limits::STAGES_PER_WORKER);
        let core = SystemCore::start(config).map_err(|wrong| BuildError { wrong })?;
        core.set_above(OfSystem::default());
        self.observed.begin(&core);
        Ok((System::of(&core), self.on_start))
    }
}

impl System {
    /// Starts a system with one worker per core.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn start() -> Result<System, BuildError> {
        System::builder().start()
    }

    /// A system with other settings.
    pub fn builder() -> SystemBuilder {
        // How many workers and stages is settled at the start.
        SystemBuilder {
            config: Config::of(0),
            workers: None,
            stages: None,
            observed: Observed::default(),
            on_start: OnStart::default(),
        }
    }

    pub(crate) fn of(core: &Arc<SystemCore>) -> System {
        OfSystem::handle_more(core);
        System { core: Arc::clone(core) }
    }

    /// Ends a simulated system whose last handle this was.
    #[cold]
    fn end_unused(&self) {
        // An actor may have given out another handle meanwhile.
        if self.core.end_unused(|| OfSystem::is_without_handles(&self.core)) {
            self.drop_services();
        }
    }

    /// The executor's part of it.
    #[doc(hidden)]
    pub fn core(&self) -> &Arc<SystemCore> {
        &self.core
    }

    /// Starts an actor; from outside on any stage, by turns.
    ///
    /// # Panics
    /// If the system was shut down.
    pub fn spawn<A: Actor>(&self, actor: A) -> ActorRef<A> {
        self.spawn_with(SpawnOptions::new(), actor)
    }

    /// Starts an actor with options.
    ///
    /// # Panics
    /// Where [`System::try_spawn_with`] returns an error.
    pub fn spawn_with<A: Actor>(&self, options: SpawnOptions, actor: A) -> ActorRef<A> {
        self.try_spawn_with(options, actor).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts an actor with options.
    ///
    /// # Errors
    /// The placement is not possible in this system, or it was shut down.
    pub fn try_spawn_with<A: Actor>(&self, options: SpawnOptions, actor: A) -> Result<ActorRef<A>, SpawnError> {
        crate::actor::spawn::spawn(&self.core, options, actor)
    }

    /// Starts an actor that is stopped when the result is dropped.
    ///
    /// # Panics
    /// If the system was shut down.
    pub fn spawn_owned<A: Actor>(&self, actor: A) -> OwnedActor<A> {
        OwnedActor(self.spawn(actor))
    }

    /// Returns when the system is quiescent: no message is queued or handled, no timer runs, no async handler waits. Streams that are attached to actors are
    /// not waited for: only their items are messages. Returns as well when the system was shut down.
    ///
    /// A system with a periodic timer never is quiescent: use [`System::run_for`]. A call that waits for long (100,000 moments of virtual time; 10 s on
    /// threads, if no message is handled then) prints a line on stderr that says so, and goes on.
    ///
    /// # Panics
    /// Inside an actor of this system.
    #[track_caller]
    pub fn run_until_idle(&self) {
        assert_outside_of(&self.core, "`run_until_idle`", "call it in the main thread or a test");
        self.core.run_until_idle();
    }

    /// Lets a time pass. In simulation it is virtual: all that is to be done in it is done when this returns, the timers of its last moment too. (Among
    /// theaters of a `Simulation`, a millisecond more passes for that.) On threads, this thread sleeps, until the system is shut down at the latest.
    ///
    /// ```
    /// use playhouse_actor::*;
    /// use std::time::Duration;
    ///
    /// #[derive(Clone)]
    /// struct Tick;
    /// impl Message for Tick {
    ///     type Reply = ();
    /// }
    ///
    /// #[derive(Default)]
    /// struct Clock(u32);
    /// impl Actor for Clock {
    ///     fn started(&mut self, ctx: &mut Context<Self>) {
    ///         ctx.send_every(Duration::from_secs(1), Tick);
    ///     }
    /// }
    /// impl Handler<Tick> for Clock {
    ///     fn handle(&mut self, _: Tick, _: &mut Context<Self>) {
    ///         self.0 += 1;
    ///     }
    /// }
    ///
    /// struct Read;
    /// impl Message for Read {
    ///     type Reply = u32;
    /// }
    /// impl Handler<Read> for Clock {
    ///     fn handle(&mut self, _: Read, _: &mut Context<Self>) -> u32 {
    ///         self.0
    ///     }
    /// }
    ///
    /// let system = System::builder().simulated(1).start()?;
    /// let clock = system.spawn(Clock::default());
    /// system.run_for(Duration::from_secs(3_600));
    /// assert_eq!(clock.ask(Read).wait()?, 3_600);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// Inside an actor of this system.
    #[track_caller]
    pub fn run_for(&self, time: Duration) {
        assert_outside_of(
            &self.core,
            "`run_for`",
            "call it in the main thread or a test; in a handler, await `ctx.sleep(..)`",
        );
        self.core.run_for(time);
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.core.config().workers
    }

    /// Number of stages.
    pub fn stages(&self) -> usize {
        self.core.config().stages
    }

    /// Time since the start; virtual in simulation.
    pub fn now(&self) -> Duration {
        self.core.now()
    }

    /// Counters per worker and in sum. Exact while the system is idle, at most some milliseconds old otherwise.
    pub fn stats(&self) -> Stats {
        let per_worker = self.core.counters();
        let mut total = Counters::default();
        for counters in &per_worker {
            total.add(counters);
        }
        Stats { total, per_worker }
    }

    /// Calls `hook` for each message that reaches nobody. Hooks that were given before are called first; none is ever
    /// taken away.
    ///
    /// It is called on the worker (or thread) that finds out, and must not block. If it panics, that is reported by the panic hook and
    /// nothing else. It may send messages. One of these that reaches nobody is counted, and no hook is called for it, neither within the
    /// hook nor later.
    pub fn on_dead_letter(&self, hook: impl Fn(&DeadLetter) + Send + Sync + 'static) {
        self.core.on_dead_letter(Box::new(move |actor, message, why| {
            hook(&DeadLetter { actor, message, why });
        }));
    }

    /// Handles what is queued (for up to 5 seconds), stops all actors, and ends the threads. Blocks meanwhile.
    ///
    /// It does not wait for handlers that await something from outside the system, such as a thread or a timer, and messages behind these are dead
    /// letters, unless [`SystemBuilder::await_handlers`] asks for that.
    ///
    /// When this returns, the states of all actors have been dropped. If `stopped` or the drop of a state starts other actors, those are
    /// stopped, too, without having been started. After 100 generations they are killed, so their `stopped` is not called. Only if the drops
    /// of states start others without end, the states of the 200th generation are never dropped.
    ///
    /// # Errors
    /// A handler, `stopped`, a drop or a dead-letter hook did not return in time: its thread goes on until it does. [Services](System::provide) are kept
    /// then, until a later shutdown succeeds. Asks that still wait fail
    /// with [`AskError::Shutdown`](crate::AskError::Shutdown), and messages that wait for actors that no thread runs are dead letters.
    ///
    /// # Panics
    /// Inside an actor of this system.
    #[track_caller]
    pub fn shutdown(self) -> Result<ShutdownReport, ShutdownError> {
        self.shutdown_within(Duration::from_secs(5))
    }

    /// Does the same as [`System::shutdown`], with another limit. It returns within that, and a fifth of it or 200 milliseconds more, whatever
    /// handlers, `stopped`, drops and dead-letter hooks do. (In simulation they take this thread for as long as they run.) Then
    /// [services](System::provide) are dropped, for as long as that takes.
    ///
    /// # Errors
    /// As [`System::shutdown`].
    ///
    /// # Panics
    /// Inside an actor of this system.
    #[track_caller]
    pub fn shutdown_within(self, limit: Duration) -> Result<ShutdownReport, ShutdownError> {
        assert_outside_of(
            &self.core,
            "`shutdown`",
            "call it in the main thread, which an actor can tell that it is time",
        );
        let start = Instant::now();
        self.core.drain(limit);
        let before = self.stats().total.dead_letters;
        let deferred = Arc::new(Mutex::new(BTreeMap::new()));
        let waited = Arc::clone(&deferred);
        let waited = move |who, actor, message| {
            let actor = Label::of_type(actor, ActorId(who)).to_string();
            *waited.lock().unwrap_or_else(PoisonError::into_inner).entry((actor, message)).or_default() += 1;
        };
        let grace = GRACE_MIN.max(limit / 10);
        let left = limit.saturating_sub(start.elapsed());
        let (actors_stopped, stuck) = self.core.end_in_time((left, grace), Box::new(waited));
        let stats = self.stats();
        let deferred = std::mem::take(&mut *deferred.lock().unwrap_or_else(PoisonError::into_inner));
        if stuck > 0 {
            let at_work = self.core.actors_at_work();
            let actors =
                at_work.into_iter().map(|(who, actor)| Label::of_type(actor, ActorId(who)).to_string()).collect();
            return Err(ShutdownError { stuck, actors });
        }
        self.drop_services();
        Ok(ShutdownReport {
            actors_stopped,
            undelivered: stats.total.dead_letters - before,
            deferred: deferred
                .into_iter()
                .map(|((actor, message), count)| DeferredMessages { actor, message, count })
                .collect(),
            took: start.elapsed(),
            stats,
        })
    }
}

/// A message that reached nobody. For people it is shown as `Add for Counter: the actor has stopped`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The type of the actor it was for, with its path: `shop::Counter`.
    pub actor: &'static str,
    /// The type of the message, with its path.
    pub message: &'static str,
    /// Why.
    pub why: Undelivered,
}

impl fmt::Display for DeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.why {
            Undelivered::Stopped => "the actor has stopped",
            Undelivered::Shutdown => "the system was shut down",
            Undelivered::Unreachable => "it could not be sent to where the actor is",
            Undelivered::Refused => "the actor does not take it in the state that it is in",
            Undelivered::Full => "the actor's mailbox was full",
        };
        write!(f, "{} for {}: {why}", ShortType(self.message), ShortType(self.actor))
    }
}

/// Counters of a system.
///
/// `received` counts what workers have taken from their queues: ordinary messages, and also the first one of each actor,
/// stops, watches, wake-ups of async handlers, timers that fired, and messages that became dead letters there. What is
/// put aside is counted when it is handled. Not in it: asks that were handled on the caller's stack (`short_circuits`)
/// and actors that were started on their creator's.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Sum over all workers.
    pub total: Counters,
    /// Each worker's own.
    pub per_worker: Vec<Counters>,
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, total) in self.total.pairs() {
            writeln!(f, "{name:>20} {total:>14}")?;
        }
        writeln!(f, "{:>20} {:>14.1}", "average gulp", self.total.average_gulp())?;
        write!(f, "{:>20} {:>14.1}", "average steal", self.total.average_steal())
    }
}

/// How a system ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Actors that still lived.
    pub actors_stopped: u64,
    /// Messages that were accepted and could not be handled any more; each was a dead letter.
    pub undelivered: u64,
    /// Messages whose [guards](crate::Handler::guard) did not hold to the end, by actor and type. A tell among them is a dead letter; an ask
    /// has failed, here or before.
    pub deferred: Vec<DeferredMessages>,
    /// How long it took.
    pub took: Duration,
    /// Counters at the end.
    pub stats: Stats,
}

/// Shown in one line, and in one more for each entry of `deferred`: `shut terminated in 1.2 ms: 3 actors stopped, 1 message undelivered`.
impl fmt::Display for ShutdownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let (actors, messages) = (count(self.actors_stopped, "actor"), count(self.undelivered, "message"));
        write!(f, "shut down in {:.1?}: {actors} stopped, {messages} undelivered", self.took)?;
        self.deferred.iter().try_for_each(|deferred| write!(f, "\n{deferred}"))
    }
}

/// Messages that waited for their guards when their system was shut down. For people they are shown as `2 Put for Buffer
/// "outbox": deferred, and the guard did not hold to the end`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeferredMessages {
    /// Who they were for: `Buffer "outbox"`, or `Buffer#1.7f20.0` where it has no name.
    pub actor: String,
    /// The type of the messages, with its path.
    pub message: &'static str,
    /// How many.
    pub count: u64,
}

impl fmt::Display for DeferredMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeferredMessages { actor, message, count } = self;
        write!(f, "{count} {} for {actor}: deferred, and the guard did not hold to the end", ShortType(message))
    }
}

/// A system could not be ended in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShutdownError {
    stuck: usize,
    actors: Vec<String>,
}

impl ShutdownError {
    /// The actors whose handlers, hooks or drops ran when the time was over, each as `Till "two"` or, if it has no name, by its id.
    pub fn actors(&self) -> &[String] {
        &self.actors
    }
}

impl fmt::Display for ShutdownError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = if self.stuck == 1 { "thread" } else { "threads" };
        write!(f, "{} {threads} of the actor system did not end in time: ", self.stuck)?;
        match &self.actors[..] {
            [] => f.write_str("a handler, a hook or a drop has not returned, or this machine is overloaded"),
            [actor] => write!(f, "a handler, a hook or a drop of {actor} has not returned"),
            actors => write!(f, "handlers, hooks or drops of these have not returned: {}", actors.join(", ")),
        }
    }
}

impl std::error::Error for ShutdownError {}
