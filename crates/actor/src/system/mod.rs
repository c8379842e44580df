//! Actor systems: their settings, their start and their shutdown.

pub(crate) mod builder;
mod context;
pub(crate) mod ending;
#[cfg(feature = "metrics")]
mod metrics;
mod observing;
pub(crate) mod report;
pub(crate) mod services;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use playhouse_executor::{Counters, SystemCore};

use crate::actor::names::Label;
use crate::actor::of_system::OfSystem;
use crate::actor::outside::assert_outside_of;
use crate::actor::reference::ActorRef;
use crate::actor::spawn::{SpawnError, SpawnOptions};
use crate::actor::{Actor, ActorId};
use crate::lock::lock;
use crate::message::send::OwnedActor;
use crate::system::builder::{BuildError, SystemBuilder};
use crate::system::report::{DeadLetter, DeferredMessages, ShutdownError, ShutdownReport, Stats};

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

/// The least time that a shutdown has beyond its limit to end threads, and again to end actors, after a drain that has
/// taken the whole limit.
const GRACE_MIN: Duration = Duration::from_millis(100);

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
        SystemBuilder::new()
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
    /// # use playhouse_actor::*;
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
            *lock(&waited).entry((actor, message)).or_default() += 1;
        };
        let grace = GRACE_MIN.max(limit / 10);
        let left = limit.saturating_sub(start.elapsed());
        let (actors_stopped, stuck) = self.core.end_in_time((left, grace), Box::new(waited));
        let stats = self.stats();
        let deferred = std::mem::take(&mut *lock(&deferred));
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
