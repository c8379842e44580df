//! The reasons for which an ask has no answer.

use std::fmt;

use playhouse_executor::Undelivered;
use serde::{Deserialize, Serialize};

/// The progress of a request when its deadline passed.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use std::time::Duration;
/// # struct Get;
/// # impl Message for Get { type Reply = u64; }
/// # struct Slow;
/// # impl Actor for Slow {}
/// # impl AsyncHandler<Get> for Slow {
/// #     async fn handle(&mut self, _: Get, ctx: &mut Context<Self>) -> u64 {
/// #         ctx.sleep(Duration::from_secs(60)).await;
/// #         0
/// #     }
/// # }
/// # let system = System::builder().simulated(1).start()?;
/// # let slow = system.spawn(Slow);
/// match slow.ask(Get).within(Duration::from_millis(1)).wait() {
///     Err(AskError::Deadline { phase: AskPhase::Queued }) => {} // not handled: it is safe to ask again
///     Err(AskError::Deadline { phase: AskPhase::Running }) => {} // a handler has begun it
///     other => panic!("{other:?}"),
/// }
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(rename = "Phase")]
pub enum AskPhase {
    /// The request waited in the receiver's mailbox. It was taken back: it was not handled and never will be. (If it
    /// was [forwarded](crate::Reply::forward), that holds for the last receiver.)
    Queued,
    /// A handler had begun the request. The handler continues; its answer is dropped.
    ///
    /// The phase is the same for a request to another theater. Such a request is taken back in its theater, unless a
    /// handler begins it before the take-back arrives.
    Running,
}

/// The reason for which an ask has no answer.
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
/// counter.kill();
/// # system.run_until_idle();
/// assert_eq!(counter.ask(Get).wait(), Err(AskError::Stopped));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum AskError {
    /// The answer did not come in the time given by `within`.
    Deadline {
        /// The progress of the request.
        phase: AskPhase,
    },
    /// The receiver waits, directly or over other actors, for the asker. Holds the actors along the cycle, as they are
    /// shown.
    ///
    /// The request was not handled and never will be: in one process it is not sent, and over theaters it was taken
    /// back. (If it was [forwarded](crate::Reply::forward), that holds for the last receiver.)
    Cycle(Vec<String>),
    /// The receiver had ended, or ended before it answered. Or a supervisor has restarted it with a crashed sibling while
    /// its async handler waited.
    Stopped,
    /// The receiver's handler crashed: it panicked, or called [`Context::fail`](crate::Context::fail).
    Panicked,
    /// The system was shut down.
    Shutdown,
    /// The receiver is in another theater, and the request or the answer could not be sent to it or read by it. Holds
    /// the reason.
    Unreachable(String),
    /// The theater to which the request was sent is lost. A mobile receiver may have moved on, and be alive in another
    /// theater.
    TheaterLost {
        /// `true` if a handler may have run before the loss: a repeated request may then be handled twice.
        may_have_run: bool,
    },
    /// The receiver does not take this message in its present state: its [guard](crate::Handler::guard) refused it.
    Refused,
    /// The receiver's [mailbox](crate::Mailbox) was full: the request was refused, or was dropped for a newer message.
    Full,
    /// The receiver has handled the request without an answer. It has dropped the [`Reply`](crate::Reply), or has ended
    /// or restarted before it used the `Reply`.
    ///
    /// The error also ends the wait of a thread on a simulated system in which nothing is left to do. The receiver is
    /// alive in that case, but keeps the `Reply`, or its handler or guard waits for an event that never comes.
    Unanswered,
}

impl AskError {
    pub(crate) fn undelivered(why: Undelivered) -> AskError {
        match why {
            Undelivered::Stopped => AskError::Stopped,
            Undelivered::Shutdown => AskError::Shutdown,
            Undelivered::Refused => AskError::Refused,
            Undelivered::Full => AskError::Full,
            Undelivered::Unreachable => {
                AskError::Unreachable("it could not be sent to where the receiver is".to_owned())
            }
        }
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::Deadline { phase: AskPhase::Queued } => {
                f.write_str("no answer before the deadline: the request still waited in the mailbox and was taken back")
            }
            AskError::Deadline { phase: AskPhase::Running } => {
                f.write_str("no answer before the deadline: the request was being handled")
            }
            AskError::Cycle(path) => write!(f, "a cycle of asks that could never be answered: {}", path.join(" -> ")),
            AskError::Stopped => f.write_str("the receiver has stopped"),
            AskError::Refused => f.write_str("the receiver does not take this message in the state that it is in"),
            AskError::Full => f.write_str("the receiver's mailbox was full"),
            AskError::Panicked => f.write_str("the receiver's handler crashed"),
            AskError::Unanswered => f.write_str(
                "there is no answer: the receiver has dropped its `Reply`, or has crashed or ended with it (in a simulated system: nothing is left to do)",
            ),
            AskError::Shutdown => f.write_str("the system was shut down"),
            AskError::Unreachable(why) => write!(f, "the receiver in another theater could not be asked: {why}"),
            AskError::TheaterLost { may_have_run: false } => {
                f.write_str("the theater to which the request was sent is lost, and the request has not reached the receiver")
            }
            AskError::TheaterLost { may_have_run: true } => {
                f.write_str("the theater to which the request was sent is lost: whether the request was handled is not known")
            }
        }
    }
}

impl std::error::Error for AskError {}
