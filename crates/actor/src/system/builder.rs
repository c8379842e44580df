//! The settings of a new system, and its start.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "tokio")]
use playhouse_executor::Around;
use playhouse_executor::{Config, Stealing, SystemCore};

use crate::actor::of_system::OfSystem;
use crate::migration::spawns::actor_types;
use crate::observe::Observed;
use crate::remote::any::ActorType;
use crate::system::System;

/// The settings of a new [`System`]: see [`System::builder`].
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
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
/// # use playhouse_actor::*;
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

/// The default number of workers of a simulated system.
const SIMULATED_WORKERS: usize = 4;

impl SystemBuilder {
    pub(super) fn new() -> SystemBuilder {
        // The numbers of workers and stages are determined at the start.
        SystemBuilder {
            config: Config::of(0),
            workers: None,
            stages: None,
            observed: Observed::default(),
            on_start: OnStart::default(),
        }
    }

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
    /// # use playhouse_actor::*;
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
    /// A worker that spins counts as busy: [`run_until_idle`](System::run_until_idle) and a shutdown wait for it. A time
    /// above 10 ms therefore counts as 10 ms.
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
    /// # use playhouse_actor::*;
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
    /// # use playhouse_actor::System;
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
        let for_workers = config.workers.max(1).saturating_mul(playhouse_executor::limits::STAGES_PER_WORKER);
        config.stages = self.stages.unwrap_or(for_workers);
        let core = SystemCore::start(config).map_err(|wrong| BuildError { wrong })?;
        ActorType::set_startable(actor_types);
        core.set_above(OfSystem::default());
        self.observed.begin(&core);
        Ok((System::of(&core), self.on_start))
    }
}
