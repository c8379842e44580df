//! Actor systems: their settings, their start and their shutdown.

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

/// A handle to an actor system: workers, stages, and the actors on them. It is cheap to clone.
///
/// Up to 4,095 systems can exist in one process at a time. A system ends by [`System::shutdown`]. If all handles are
/// dropped without it, the system's threads continue until the process ends.
///
/// A [simulated](SystemBuilder::simulated) system has no threads, and ends with its last handle. Its actors are
/// stopped, mail that waits for them becomes dead letters, and asks for them fail with
/// [`AskError::Shutdown`](crate::AskError::Shutdown). Handles that its actors, services and dead-letter hooks keep
/// count, too (pools, routers and topics do not).
///
/// The system does not end, and stays until the process ends, in 2 cases:
/// - a thread runs the system at the moment of the last drop: an actor drops the handle, or another thread waits for an
///   answer;
/// - the thread that drops the last handle panics.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # #[derive(Default)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Clone)]
/// # struct Add(u64);
/// # impl Message for Add { type Reply = (); }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # struct Get;
/// # impl Message for Get { type Reply = u64; }
/// # impl Handler<Get> for Counter {
/// #     fn handle(&mut self, _: Get, _: &mut Context<Self>) -> u64 { self.0 }
/// # }
/// # let system = System::start()?;
/// let counter = system.spawn(Counter::default());
/// counter.tell(Add(5));
/// assert_eq!(counter.ask(Get).wait()?, 5);
/// let report = system.clone().shutdown()?;
/// assert_eq!(report.actors_stopped, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("ActorSystem"))]
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

/// A handle that does not count: a simulated system ends although there is one. Pools, routers and topics have one,
/// because actors and services keep them.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Uncounted(Arc<SystemCore>);

impl Uncounted {
    /// Returns a handle to `system`.
    pub fn of(system: &System) -> Uncounted {
        Uncounted(Arc::clone(&system.core))
    }

    /// Returns the executor's part of the system.
    pub fn core(&self) -> &Arc<SystemCore> {
        &self.0
    }

    /// Returns the system, which may have ended.
    pub fn system(&self) -> System {
        System::of(&self.0)
    }
}

/// The settings of a new [`System`]: see [`System::builder`].
///
/// # Examples
///
/// ```
/// use playhouse_actor::*;
///
/// let system = System::builder().workers(2).stages(32).start()?;
/// assert_eq!((system.workers(), system.stages()), (2, 32));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    /// Calls the functions. If one fails or panics, the system is shut down.
    #[doc(hidden)]
    pub fn run(self, system: &System) -> Result<(), BuildError> {
        /// Shuts the system down, unless all functions have returned.
        struct Unfinished<'a>(Option<&'a System>);
        impl Drop for Unfinished<'_> {
            fn drop(&mut self) {
                if let Some(system) = self.0 {
                    // The caller receives the first failure only, and not also a shutdown that is late.
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

/// The error of a system that was not started: it names every wrong setting.
///
/// # Examples
///
/// ```
/// use playhouse_actor::*;
///
/// let error: BuildError = System::builder().workers(0).start().err().unwrap();
/// assert_eq!(error.problems().len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    wrong: Vec<String>,
}

impl BuildError {
    /// Returns one line for each wrong setting.
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

/// The least time that a shutdown has beyond its limit to end threads, and again to end actors, after a drain that has
/// taken the whole limit.
const GRACE_MIN: Duration = Duration::from_millis(100);

/// The default number of workers of a simulated system.
const SIMULATED_WORKERS: usize = 4;

impl SystemBuilder {
    /// Sets the number of threads that run actors. Default: one per core; 4 in a simulation.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Sets the number of stages of all workers together, at least one for each worker. Default: 16 per worker.
    pub fn stages(mut self, stages: usize) -> Self {
        self.stages = Some(stages);
        self
    }

    /// Sets the number of additional stages for remote actors: one per link to another theater (more links share them).
    /// A full link then stops its own senders only. Default: 0; a theater sets it.
    pub fn links(mut self, links: usize) -> Self {
        self.config.links = links;
        self
    }

    /// Sets the victim from which idle workers steal stages. Default: the worker that has been busy longest.
    pub fn stealing(mut self, stealing: Stealing) -> Self {
        self.config.stealing = stealing;
        self
    }

    /// Sets the most messages that a worker runs before it reads its inbox: a smaller number is fairer, a larger one is
    /// faster. Default: 512.
    pub fn throughput(mut self, messages: u64) -> Self {
        self.config.throughput = messages;
        self
    }

    /// Sets whether worker `i` is pinned to core `i`. Default: no. It has an effect on Linux only.
    pub fn pinning(mut self, pinning: bool) -> Self {
        self.config.pinning = pinning;
        self
    }

    /// Makes the system a simulation with one thread and virtual time. Every choice is drawn from `seed`, so a run can
    /// be repeated exactly.
    ///
    /// The system runs while [`System::run_until_idle`] or [`Ask::wait`](crate::Ask::wait) is called. Several threads
    /// that call these run it in turn.
    pub fn simulated(mut self, seed: u64) -> Self {
        self.config.simulated = Some(seed);
        self
    }

    /// Runs actors in the context of this tokio runtime. In handlers and hooks, `tokio::spawn`, `tokio::time::sleep`
    /// and libraries on tokio (reqwest, sqlx) work as in a task. Without this setting they panic: "there is no reactor
    /// running". Default: none.
    ///
    /// Actors still run on the system's own threads, and the runtime has its threads. The runtime must run for as long
    /// as actors use it. In a simulation, the runtime's time and threads are real, so such a run cannot be repeated
    /// exactly. Use [`Context::sleep`](crate::Context::sleep) for time in a simulation.
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

    /// Sets the longest time for which an idle worker spins, polling for messages, before its thread sleeps.
    ///
    /// Spinning takes CPU time, and waking a thread takes some microseconds. A worker spins for less while spinning has
    /// been in vain. An idle system takes no CPU time in any case.
    ///
    /// Default: 40 µs. It is 0 with [`run_by_askers`](SystemBuilder::run_by_askers), and if the process has a CPU quota
    /// that is smaller than its cores (on Linux).
    pub fn spin(mut self, at_most: Duration) -> Self {
        self.config.spin = Some(at_most);
        self
    }

    /// Sets whether a task that awaits an ask runs the receiver's worker on its own thread, if that worker sleeps.
    /// Default: no.
    ///
    /// The answer of a short handler is then ready at once, and no other thread is woken. An ask takes a fraction of a
    /// microsecond instead of some microseconds, and a web server handles more requests with less CPU time.
    ///
    /// Handlers, hooks and drops of messages then run on the system's own threads *and* on threads that await asks, for
    /// example those of a tokio runtime:
    ///
    /// - A handler that blocks holds up that thread, and with it the tasks of its runtime. Calls that are forbidden on
    ///   a thread of a runtime panic: `block_on`, blocking clients, the drop of a runtime.
    /// - Handlers that use tokio need `SystemBuilder::tokio` as well. Otherwise they work when a task of a runtime runs
    ///   them, and crash when a thread of the system does. Values of `task_local!` are those of the task that runs the
    ///   handler.
    /// - The stack is that of the awaiting thread: 2 MiB in tokio, compared with 8 MiB of the system's own threads (32
    ///   MiB with debug assertions). Asks of handlers do not nest on it.
    /// - A task that holds a lock of `std::sync` while it awaits an ask can deadlock, because a handler of another
    ///   actor may need the lock on the same thread. Locks of tasks (`tokio::sync::Mutex`) are not concerned.
    ///
    /// The task runs that worker for about 20 µs. It runs no message whose type has lately taken the worker more than
    /// 50 µs: the worker's own thread does. After 64 asks in a row that were answered at once, an ask yields to the
    /// other tasks of its thread.
    ///
    /// A task runs no worker for [`Ask::wait`](crate::Ask::wait), for `tell`, or for an ask of an actor of this system.
    /// A worker of a theater that waits for connections is woken as before. In a simulation, this setting changes
    /// nothing.
    pub fn run_by_askers(mut self, yes: bool) -> Self {
        self.config.lends = yes;
        self
    }

    /// Sets whether a shutdown waits, within its limit, for handlers that await something: a task of tokio, a timer, an
    /// answer. Messages behind them are then handled, too. Default: no. A handler that never gets what it awaits takes
    /// the whole limit.
    ///
    /// The shutdown does not wait for a timer or a stream by itself: only handlers count, also the futures of reentrant
    /// ones. In a simulation, time passes during the wait, and the shutdown does not wait for events that only another
    /// thread could cause.
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

    /// Sets whether each handler is timed, for [`System::handler_times`]. Timing costs each message about 0.1 µs.
    /// Default: no, which costs nothing. [`System::time_handlers`] turns it on later.
    pub fn handler_times(mut self, timed: bool) -> Self {
        self.observed.times = timed;
        self
    }

    /// Sets whether each crash of an actor is printed on stderr. Default: yes.
    ///
    /// The report is one line: the actor, its handler, the cause with its source location, and the consequence for the
    /// actor. For the reports themselves see [`System::on_crash`].
    pub fn print_crashes(mut self, print: bool) -> Self {
        self.observed.prints_crashes = print;
        self
    }

    /// Reports handlers that run for longer than `limit` to [`System::on_slow_handler`]. The waits of an async handler
    /// do not count, and each part between two waits counts by itself. It costs each message about 0.1 µs. Default: no
    /// limit, which costs nothing.
    pub fn slow_handlers(mut self, limit: Duration) -> Self {
        self.observed.slow = Some(limit);
        self
    }

    /// Sets whether each handler runs in a span of the `tracing` crate. Default: no, which costs nothing.
    ///
    /// The span has the level INFO, the target `playhouse`, the name `handle`, and the fields `actor` and `message`. It
    /// *follows from* the span in which its message was sent, inside or outside of a handler. It is no child of that
    /// span, so traces do not nest without end.
    ///
    /// A span stays open until all messages sent in it are handled. Of the messages under way, the youngest 65,536 are
    /// linked. Messages to other theaters arrive without a link.
    #[cfg(feature = "tracing")]
    pub fn tracing(mut self, traced: bool) -> Self {
        self.observed.spans = traced;
        self
    }

    /// Calls `act` with the system after its start, and before `start` returns it: to [`provide`](System::provide)
    /// services, and to start actors that other actors need. In a theater, `act` is called before the theater answers a
    /// caller. Functions run in the order of their registration.
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
    /// [`BuildError`] with all wrong settings at once, if a thread could not be started, or if a function given to
    /// [`on_start`](SystemBuilder::on_start) has failed.
    pub fn start(self) -> Result<System, BuildError> {
        let (system, on_start) = self.begin()?;
        on_start.run(&system)?;
        Ok(system)
    }

    /// Returns whether the settings are those of a [simulated](SystemBuilder::simulated) system.
    #[doc(hidden)]
    pub fn is_simulated(&self) -> bool {
        self.config.simulated.is_some()
    }

    /// Starts the system. The caller has to call the functions given to [`on_start`](SystemBuilder::on_start).
    #[doc(hidden)]
    pub fn begin(self) -> Result<(System, OnStart), BuildError> {
        let mut config = self.config;
        config.workers = self.workers.unwrap_or_else(|| match config.simulated {
            // A seed has to give the same run on every machine.
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
    /// [`BuildError`] if a thread could not be started.
    pub fn start() -> Result<System, BuildError> {
        System::builder().start()
    }

    /// Returns a builder with the default settings, for a system with other ones.
    pub fn builder() -> SystemBuilder {
        // The numbers of workers and stages are determined at the start.
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

    /// Ends a simulated system whose last handle is being dropped.
    #[cold]
    fn end_unused(&self) {
        // An actor may have given out another handle in between.
        if self.core.end_unused(|| OfSystem::is_without_handles(&self.core)) {
            self.drop_services();
        }
    }

    /// Returns the executor's part of the system.
    #[doc(hidden)]
    pub fn core(&self) -> &Arc<SystemCore> {
        &self.core
    }

    /// Starts an actor. Outside of actors it is placed on any stage, in turn.
    ///
    /// # Panics
    /// If the system was shut down.
    #[doc(alias("start", "actor_of", "create"))]
    pub fn spawn<A: Actor>(&self, actor: A) -> ActorRef<A> {
        self.spawn_with(SpawnOptions::new(), actor)
    }

    /// Starts an actor with [options](SpawnOptions).
    ///
    /// # Panics
    /// If [`System::try_spawn_with`] returns an error.
    #[doc(alias("start", "actor_of", "create"))]
    pub fn spawn_with<A: Actor>(&self, options: SpawnOptions, actor: A) -> ActorRef<A> {
        self.try_spawn_with(options, actor).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts an actor with [options](SpawnOptions).
    ///
    /// # Errors
    /// [`SpawnError`] if the placement is not possible in this system, or if the system was shut down.
    #[doc(alias("try_spawn", "start"))]
    pub fn try_spawn_with<A: Actor>(&self, options: SpawnOptions, actor: A) -> Result<ActorRef<A>, SpawnError> {
        crate::actor::spawn::spawn(&self.core, options, actor)
    }

    /// Starts an actor that is stopped when the result is dropped.
    ///
    /// # Panics
    /// If the system was shut down.
    #[doc(alias("spawn_link"))]
    pub fn spawn_owned<A: Actor>(&self, actor: A) -> OwnedActor<A> {
        OwnedActor(self.spawn(actor))
    }

    /// Waits until the system is quiescent: no message is queued or handled, no timer runs, no async handler waits.
    ///
    /// Streams that are attached to actors are not awaited: only their items are messages. The call also returns when
    /// the system was shut down.
    ///
    /// A system with a periodic timer is never quiescent: use [`System::run_for`] for it. A long call prints a line on
    /// stderr that says so, and continues. It is long after 100,000 moments of virtual time, or on threads after 10 s
    /// without a handled message.
    ///
    /// # Panics
    /// Inside an actor of this system.
    #[track_caller]
    pub fn run_until_idle(&self) {
        assert_outside_of(&self.core, "`run_until_idle`", "call it in the main thread or a test");
        self.core.run_until_idle();
    }

    /// Lets the time `time` pass.
    ///
    /// In a simulation the time is virtual. When this call returns, all work of that time is done, also the timers of
    /// its last moment. (Among theaters of a `Simulation`, 1 ms more passes for that.) On threads, this thread sleeps,
    /// at most until the system is shut down.
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

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.core.config().workers
    }

    /// Returns the number of stages.
    pub fn stages(&self) -> usize {
        self.core.config().stages
    }

    /// Returns the time since the start of the system; virtual in a simulation.
    pub fn now(&self) -> Duration {
        self.core.now()
    }

    /// Returns the counters of each worker and their sum. They are exact while the system is idle, and at most some
    /// milliseconds old otherwise.
    pub fn stats(&self) -> Stats {
        let per_worker = self.core.counters();
        let mut total = Counters::default();
        for counters in &per_worker {
            total.add(counters);
        }
        Stats { total, per_worker }
    }

    /// Calls `hook` for each message that reaches no actor. Hooks run in the order of their registration; none is ever
    /// removed.
    ///
    /// The hook is called on the worker (or thread) that detects the dead letter, and must not block. A panic in it is
    /// reported by the panic hook and has no other effect. The hook may send messages. If one of these becomes a dead
    /// letter, it is counted, and no hook is called for it, neither within the hook nor later.
    /// A message that is sent after the end of the system reaches no hook, because the hooks have ended with it.
    #[doc(alias = "dead_letters")]
    pub fn on_dead_letter(&self, hook: impl Fn(&DeadLetter) + Send + Sync + 'static) {
        self.core.on_dead_letter(Box::new(move |actor, message, why| {
            hook(&DeadLetter { actor, message, why });
        }));
    }

    /// Shuts the system down: handles queued messages for up to 5 s, stops all actors, and ends the threads. The call
    /// blocks until then.
    ///
    /// The shutdown does not wait for handlers that await events from outside the system, such as a thread or a timer.
    /// Messages behind these are dead letters. [`SystemBuilder::await_handlers`] changes both.
    ///
    /// When this returns, the states of all actors have been dropped. If `stopped` or the drop of a state starts other
    /// actors, these are stopped, too, without having been started. After 100 generations they are killed, so their
    /// `stopped` is not called. If the drops of states start others without end, the states of the 200th generation are
    /// never dropped.
    ///
    /// # Errors
    /// [`ShutdownError`] if a handler, `stopped`, a drop or a dead-letter hook did not return in time: its thread
    /// continues until it does. [Services](System::provide) are kept until a later shutdown succeeds. Asks that still
    /// wait fail with [`AskError::Shutdown`](crate::AskError::Shutdown), and messages for actors that no thread runs
    /// are dead letters.
    ///
    /// # Panics
    /// Inside an actor of this system.
    #[track_caller]
    #[doc(alias("terminate", "stop"))]
    pub fn shutdown(self) -> Result<ShutdownReport, ShutdownError> {
        self.shutdown_within(Duration::from_secs(5))
    }

    /// Shuts the system down like [`System::shutdown`], with another limit.
    ///
    /// The call returns within `limit` plus a fifth of it, or plus 200 ms if that is more, whatever handlers,
    /// `stopped`, drops and dead-letter hooks do. (In a simulation they take this thread for as long as they run.)
    /// Afterwards [services](System::provide) are dropped, for as long as that takes.
    ///
    /// # Errors
    /// The errors of [`System::shutdown`].
    ///
    /// # Panics
    /// Inside an actor of this system.
    #[track_caller]
    #[doc(alias("terminate", "stop"))]
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

/// A message that reached no actor. It is displayed as `Add for Counter: the actor has stopped`.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use std::sync::mpsc;
/// # #[derive(Default)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Clone)]
/// # struct Add(u64);
/// # impl Message for Add { type Reply = (); }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # struct Get;
/// # impl Message for Get { type Reply = u64; }
/// # impl Handler<Get> for Counter {
/// #     fn handle(&mut self, _: Get, _: &mut Context<Self>) -> u64 { self.0 }
/// # }
/// # let system = System::start()?;
/// let (letters, received) = mpsc::channel();
/// system.on_dead_letter(move |letter: &DeadLetter| letters.send(letter.clone()).unwrap());
/// let counter = system.spawn(Counter::default());
/// counter.stop();
/// # system.run_until_idle();
/// counter.tell(Add(1));
/// assert_eq!(received.recv()?.to_string(), "Add for Counter: the actor has stopped");
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The type of the receiving actor, with its path: `shop::Counter`.
    pub actor: &'static str,
    /// The type of the message, with its path.
    pub message: &'static str,
    /// The reason for which the message was not handled.
    pub why: Undelivered,
}

impl fmt::Display for DeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.why {
            Undelivered::Stopped => "the actor has stopped",
            Undelivered::Shutdown => "the system was shut down",
            Undelivered::Unreachable => "it could not be sent to where the actor is, or not be read there",
            Undelivered::Refused => "the actor does not take it in the state that it is in",
            Undelivered::Full => "the actor's mailbox was full",
        };
        write!(f, "{} for {}: {why}", ShortType(self.message), ShortType(self.actor))
    }
}

/// Counters of a system.
///
/// `received` counts the items that workers have taken from their queues: ordinary messages, the first message of each
/// actor, stops, watches, wake-ups of async handlers, timers that fired, and messages that became dead letters in a
/// queue. A parked message is counted when it is handled. It does not count asks that were handled on the caller's
/// stack (`short_circuits`), and actors that were started on their creator's.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # #[derive(Default)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Clone)]
/// # struct Add(u64);
/// # impl Message for Add { type Reply = (); }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # struct Get;
/// # impl Message for Get { type Reply = u64; }
/// # impl Handler<Get> for Counter {
/// #     fn handle(&mut self, _: Get, _: &mut Context<Self>) -> u64 { self.0 }
/// # }
/// # let system = System::start()?;
/// let counter = system.spawn(Counter::default());
/// counter.tell(Add(1));
/// system.run_until_idle();
/// let stats = system.stats();
/// assert_eq!(stats.per_worker.len(), system.workers());
/// assert!(stats.total.received > 0);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// The sum over all workers.
    pub total: Counters,
    /// The counters of each worker.
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

/// The result of a shutdown.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # #[derive(Default)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Clone)]
/// # struct Add(u64);
/// # impl Message for Add { type Reply = (); }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # struct Get;
/// # impl Message for Get { type Reply = u64; }
/// # impl Handler<Get> for Counter {
/// #     fn handle(&mut self, _: Get, _: &mut Context<Self>) -> u64 { self.0 }
/// # }
/// # let system = System::start()?;
/// system.spawn(Counter::default());
/// let report: ShutdownReport = system.shutdown()?;
/// println!("{report}"); // shut down in 1.2ms: 1 actor stopped, 0 messages undelivered
/// assert_eq!(report.actors_stopped, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// The number of actors that were still alive.
    pub actors_stopped: u64,
    /// The number of messages that were accepted and could not be handled any more. Each was a dead letter.
    pub undelivered: u64,
    /// Messages whose [guards](crate::Handler::guard) did not hold to the end, by actor and type. A tell among them is
    /// a dead letter; an ask has failed, at the shutdown or before.
    pub deferred: Vec<DeferredMessages>,
    /// The duration of the shutdown.
    pub took: Duration,
    /// The counters at the end.
    pub stats: Stats,
}

/// Writes one line, and one more for each entry of `deferred`:
/// `shut down in 1.2 ms: 3 actors stopped, 1 message undelivered`.
impl fmt::Display for ShutdownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let (actors, messages) = (count(self.actors_stopped, "actor"), count(self.undelivered, "message"));
        write!(f, "shut down in {:.1?}: {actors} stopped, {messages} undelivered", self.took)?;
        self.deferred.iter().try_for_each(|deferred| write!(f, "\n{deferred}"))
    }
}

/// Messages that waited for their guards when their system was shut down. They are displayed as
/// `2 Put for Buffer "outbox": deferred, and the guard did not hold to the end`.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # struct Take;
/// # impl Message for Take { type Reply = (); }
/// # struct Empty;
/// # impl Actor for Empty {}
/// # impl Handler<Take> for Empty {
/// #     fn handle(&mut self, _: Take, _: &mut Context<Self>) {}
/// #     fn guard(&self, _: &Take) -> Guard { Guard::Defer }
/// # }
/// # let system = System::start()?;
/// let slot = system.spawn_with(SpawnOptions::new().name("slot"), Empty); // its guard defers each `Take`
/// slot.tell(Take);
/// # system.run_until_idle();
/// let report = system.shutdown()?;
/// let deferred: &DeferredMessages = &report.deferred[0];
/// assert_eq!((deferred.count, deferred.actor.as_str()), (1, "Empty \"slot\""));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeferredMessages {
    /// The receiving actor: `Buffer "outbox"`, or `Buffer#1.7f20.0` if it has no name.
    pub actor: String,
    /// The type of the messages, with its path.
    pub message: &'static str,
    /// The number of messages.
    pub count: u64,
}

impl fmt::Display for DeferredMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeferredMessages { actor, message, count } = self;
        write!(f, "{count} {} for {actor}: deferred, and the guard did not hold to the end", ShortType(message))
    }
}

/// The error of a system that could not be ended in time.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use std::time::Duration;
/// # let system = System::start()?;
/// match system.shutdown_within(Duration::from_secs(2)) {
///     Ok(report) => println!("{report}"),
///     Err(error) => eprintln!("stuck: {}", error.actors().join(", ")),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShutdownError {
    stuck: usize,
    actors: Vec<String>,
}

impl ShutdownError {
    /// Returns the actors whose handlers, hooks or drops were running at the end of the limit: each as `Till "two"` or,
    /// if it has no name, by its identity.
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
