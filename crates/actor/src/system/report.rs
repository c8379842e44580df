//! The reports of a system: dead letters, counters, and the result of a shutdown.

use std::fmt;
use std::time::Duration;

use playhouse_executor::{Counters, Undelivered};

use crate::actor::names::ShortType;

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
    pub(super) stuck: usize,
    pub(super) actors: Vec<String>,
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
