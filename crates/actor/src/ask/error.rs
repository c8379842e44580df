//! The reasons for which an ask has no answer.

use std::fmt;

use playhouse_executor::Undelivered;
use serde::{Deserialize, Serialize};

/// How far a request had come when its deadline passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum AskPhase {
    /// It waited in the receiver's mailbox. It was taken back: it was not handled and never will be. (If it was [forwarded](crate::Reply::forward), that
    /// holds for the last receiver.)
    Queued,
    /// It was being handled. The handler goes on; its answer is dropped. Also if it was sent to another theater: then it is taken back there, unless a
    /// handler begins it before that is heard.
    Running,
}

/// Why an ask has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum AskError {
    /// The answer did not come in the time given by `within`.
    Deadline {
        /// How far the request had come.
        phase: AskPhase,
    },
    /// The receiver waits, directly or over others, for the asker. The actors along the cycle, as they are shown. The
    /// request was not handled and never will be: in one process it is not sent, and over theaters it was taken back. (If it was
    /// [forwarded](crate::Reply::forward), that holds for the last receiver.)
    Cycle(Vec<String>),
    /// The receiver has stopped, or stopped before it answered.
    Stopped,
    /// The receiver's handler crashed: it panicked, or called [`Context::fail`](crate::Context::fail).
    Panicked,
    /// The system was shut down.
    Shutdown,
    /// The receiver is in another theater, and the request or the answer could not be sent there or read there: why.
    Unreachable(String),
    /// The theater that the receiver is in is lost.
    TheaterLost {
        /// Whether the request may have been handled before.
        may_have_run: bool,
    },
    /// The receiver does not take this message in the state that it is in: its [guard](crate::Handler::guard) refused it.
    Refused,
    /// The receiver's [mailbox](crate::Mailbox) was full: the request was not let in, or had to go for a newer message.
    Full,
    /// The receiver has handled the request, and has dropped the [`Reply`](crate::Reply), or has ended or was restarted before it has used that.
    ///
    /// Also where a thread waits for an answer of a simulated system in which nothing is left to do: the receiver lives, but keeps the `Reply`, or its handler
    /// or guard waits for what does not come.
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
                "there is no answer: the receiver has dropped its `Reply`, or nothing is left to do in the simulated system",
            ),
            AskError::Shutdown => f.write_str("the system was shut down"),
            AskError::Unreachable(why) => write!(f, "the receiver in another theater could not be asked: {why}"),
            AskError::TheaterLost { may_have_run: false } => {
                f.write_str("the receiver's theater is lost, and the request has not reached it")
            }
            AskError::TheaterLost { may_have_run: true } => {
                f.write_str("the receiver's theater is lost: whether the request was handled is not known")
            }
        }
    }
}

impl std::error::Error for AskError {}
