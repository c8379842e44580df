//! The context of handlers: an actor's access to its system, its timers and its watches.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use playhouse_executor::{Failure, with_current_system, wrap_cx};

use crate::actor::reference::ActorRef;
use crate::actor::spawn::Start;
use crate::actor::spawn::{SpawnError, SpawnOptions};
use crate::actor::{Actor, ActorId, ActorState, HasIdentity};

/// The cause of a crash that [`Context::fail`] takes: a type that implements [`Error`], [`Send`] and [`Sync`], a boxed one,
/// or a text.
///
/// # Examples
///
/// ```
/// use std::error::Error;
/// use std::fmt;
///
/// #[derive(Debug)]
/// struct BadReading(f64);
///
/// impl fmt::Display for BadReading {
///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
///         write!(f, "{} degrees are out of range", self.0)
///     }
/// }
/// impl Error for BadReading {}
///
/// # use playhouse_actor::{Actor, Context};
/// struct Sensor;
///
/// impl Actor for Sensor {
///     fn started(&mut self, ctx: &mut Context<Self>) {
///         ctx.fail(BadReading(999.0)); // or `ctx.fail("out of range")`
///     }
/// }
/// # let system = playhouse_actor::System::builder().print_crashes(false).start()?;
/// # let sensor = system.spawn(Sensor);
/// # system.run_until_idle();
/// # assert!(sensor.is_stopped());
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the cause of a crash",
    label = "expected a text, or an error that is `Send` and `Sync`",
    note = "a type of yours implements `std::fmt::Display`, with the text of the report, and `std::error::Error`",
    note = "for an error that is not `Send` and `Sync`, write `ctx.fail(error.to_string())`"
)]
pub trait CrashCause {
    /// Returns the error that the supervisor receives.
    #[doc(hidden)]
    fn into_error(self) -> Box<dyn Error + Send + Sync>;
}

impl<E: Into<Box<dyn Error + Send + Sync>>> CrashCause for E {
    fn into_error(self) -> Box<dyn Error + Send + Sync> {
        self.into()
    }
}

wrap_cx! {
    /// The context of a handler, given to it together with the message.
    ///
    /// # Examples
    ///
    /// ```
    /// # use playhouse_actor::*;
    /// use std::time::Duration;
    ///
    /// struct Blink;
    /// impl Message for Blink {
    ///     type Reply = ();
    /// }
    ///
    /// struct Lamp {
    ///     blinks: u32,
    /// }
    /// impl Actor for Lamp {}
    /// impl Handler<Blink> for Lamp {
    ///     fn handle(&mut self, _: Blink, ctx: &mut Context<Self>) {
    ///         self.blinks += 1;
    ///         if self.blinks < 3 {
    ///             ctx.send_after(Duration::from_millis(1), Blink);
    ///         } else {
    ///             ctx.stop();
    ///         }
    ///     }
    /// }
    /// # let system = System::start()?;
    /// let lamp = system.spawn(Lamp { blinks: 0 });
    /// let ended = lamp.ended();
    /// lamp.tell(Blink);
    /// assert_eq!(ended.wait(), StopReason::Stopped);
    /// # system.shutdown()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Context<A: Actor>(ActorState<A>);
}

impl<A: Actor> Context<A> {
    pub(crate) fn id(&self) -> ActorId {
        ActorId(self.cx.address().raw())
    }

    /// Returns whether the running handler has called [`Context::fail`].
    pub(crate) fn has_failed(&mut self) -> bool {
        self.cx.has_failed()
    }

    /// Returns the reference to this actor.
    #[doc(alias = "me")]
    #[doc(alias = "myself")]
    #[doc(alias = "self_ref")]
    #[doc(alias = "actor_ref")]
    #[doc(alias = "address")]
    #[inline(always)]
    pub fn this(&self) -> ActorRef<A> {
        ActorRef::new(self.cx.address())
    }

    /// Starts an actor near this one: on a stage of the same worker, in turn. The children of a
    /// [dedicated](crate::Placement::Dedicated) actor go to any stage.
    ///
    /// The child continues when this actor ends. A child that ends with this actor is [owned](Context::spawn_owned) by it.
    /// The children of a [`Supervisor`](crate::Supervisor) end with the supervisor, which also restarts them.
    ///
    /// The child's `started` runs before any message to it. The exact time is unspecified:
    /// - mostly before this call returns;
    /// - as a message of its own for the child of a dedicated actor, for a child of a large family, and while other
    ///   actors wait for the worker.
    #[inline]
    #[doc(alias("start", "actor_of", "create"))]
    pub fn spawn<B: Actor>(&mut self, actor: B) -> ActorRef<B> {
        match playhouse_executor::spawn_near(ActorState { actor }, Start) {
            Ok(address) => ActorRef::new(address),
            Err((state, _)) => self.spawn_with(SpawnOptions::new(), state.actor),
        }
    }

    /// Starts an actor with [options](SpawnOptions).
    ///
    /// # Panics
    /// If [`Context::try_spawn_with`] returns an error.
    #[doc(alias("start", "actor_of", "create"))]
    pub fn spawn_with<B: Actor>(&mut self, options: SpawnOptions, actor: B) -> ActorRef<B> {
        self.try_spawn_with(options, actor).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts an actor with [options](SpawnOptions).
    ///
    /// # Errors
    /// [`SpawnError`] if the placement is not possible in this system.
    pub fn try_spawn_with<B: Actor>(&mut self, options: SpawnOptions, actor: B) -> Result<ActorRef<B>, SpawnError> {
        with_current_system(|system| {
            crate::actor::spawn::spawn(system.expect("a handler runs on a worker"), options, actor)
        })
    }

    /// Stops this actor after this message. Messages queued for it become dead letters.
    #[inline]
    #[doc(alias("exit", "stop_self", "terminate"))]
    pub fn stop(&mut self) {
        self.cx.stop();
    }

    /// Ends this message as a crash: the supervisor receives `error`, as it would receive a panic.
    ///
    /// The error may be a text. A supervisor tells errors apart by their types, so an error with a directive of its own
    /// needs a type of its own.
    ///
    /// The handler still runs to its end. Its answer is dropped, and the asker gets [`AskError::Panicked`](crate::AskError::Panicked). If the
    /// handler calls [`Context::stop`] later, the actor ends by the error, and its supervisor does not decide.
    #[track_caller]
    #[doc(alias("escalate", "abort", "raise"))]
    pub fn fail(&mut self, error: impl CrashCause) {
        self.cx.fail(Failure::new(error.into_error()));
    }

    /// Does the same as [`Context::fail`] for a library that acts for the program. The report names no source location,
    /// because the library's lines would not help its reader.
    #[doc(hidden)]
    pub fn fail_without_place(&mut self, error: impl Error + Send + 'static) {
        self.cx.fail(Failure::without_place(error));
    }

    /// Returns the time since the system's start. The time is virtual in a simulation.
    pub fn now(&self) -> Duration {
        with_current_system(|system| system.expect("a handler runs on a worker").now())
    }

    /// Returns the incarnation of this actor: a number that is larger after each restart, and after each return from
    /// another theater.
    ///
    /// A `then` runs in the incarnation that the answer finds. Compare the numbers to learn whether the same
    /// incarnation has asked.
    pub fn incarnation(&mut self) -> u64 {
        self.cx.with_extra_if_any(|extra| extra.identity().incarnation).unwrap_or(0)
    }

    /// Returns the name given to this actor, if there is one.
    pub fn name(&mut self) -> Option<Arc<str>> {
        self.cx.with_extra_if_any(|extra| extra.identity().name.as_ref().map(|name| Arc::clone(name.text()))).flatten()
    }
}

impl<A: Actor> std::fmt::Debug for Context<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Context({:?})", self.this())
    }
}
