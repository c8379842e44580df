//! Asks that are tried again.

use std::fmt;
use std::time::Duration;

use playhouse_actor::{Actor, ActorRef, Ask, AskError, Context, HandledBy, Message, Repeated, Sleep};

use crate::wait::{block_on, pipe, system_of};

/// The backoff after an answer that is not good, if none is given.
const ANSWER_BACKOFF: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));

/// How an ask is tried again: after [`AskError::Deadline`] and [`AskError::Unanswered`], for which another try may help. Any
/// other error ends it at once. An answer that is an error of the handler is tried again where [`RetryAsk::again_if`] says so.
///
/// A request whose handler crashes ([`AskError::Panicked`]) is tried again only [where that is asked for](Retry::after_panics): a message that crashes one
/// handler most often crashes the next one, and each crash counts against the `max_restarts` of the receiver's supervisor.
///
/// If actors ask each other in their handlers at the same time, one of the asks fails with [`AskError::Cycle`]. That ask is not tried again: the others go
/// on only when the handler that it has failed in has ended. The handler returns the error, and whoever has asked it tries again, by
/// `again_if`, after a random pause. Over theaters, a request that has failed so may be handled nevertheless.
///
/// A request whose deadline has passed may have been handled, and so may one whose handler has crashed or has dropped the `Reply`: let the message carry
/// an [`IdempotencyKey`], and the receiver keep an [`AnswerCache`], where that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Retry {
    attempts: u32,
    within: Option<Duration>,
    backoff: (Duration, Duration),
    after_panics: bool,
}

impl Retry {
    /// At most `attempts` attempts, one at least.
    pub fn attempts(attempts: u32) -> Retry {
        Retry {
            attempts: attempts.max(1),
            within: None,
            backoff: (Duration::ZERO, Duration::ZERO),
            after_panics: false,
        }
    }

    /// The deadline of each attempt. Default: none, so that no attempt ends by itself.
    pub fn within(mut self, each: Duration) -> Self {
        self.within = Some(each);
        self
    }

    /// Waits before another attempt: `first`, then twice as long each time, at most `most`. Default: not at all.
    ///
    /// After an answer that is [not good](RetryAsk::again_if) it waits for a random part of that time; by default, or if `first` is zero, of 1 ms, then
    /// twice as long each time, at most 100 ms.
    pub fn backoff(mut self, first: Duration, most: Duration) -> Self {
        self.backoff = (first, most);
        self
    }

    /// Tries again after [`AskError::Panicked`], too: where crashes come from outside of the message, say from a disk, and a supervisor restarts the
    /// receiver. Give it fewer attempts than the supervisor has `max_restarts`.
    pub fn after_panics(mut self) -> Self {
        self.after_panics = true;
        self
    }

    /// Asks `to` with a clone of `message` in each attempt.
    pub fn ask<A: Actor, M, Mode>(self, to: ActorRef<A>, message: M) -> RetryAsk<A, M>
    where
        M: HandledBy<A, Mode> + Repeated,
    {
        RetryAsk { retry: self, to, message, ask: |to, message| to.ask(message.clone()), again: None }
    }

    /// The pause behind attempt number `attempt`, from 1.
    fn pause(self, attempt: u32) -> Duration {
        Retry::grown(self.backoff, attempt)
    }

    /// The pause behind an answer that is not good, to attempt number `attempt`. `random` makes that several which have been in each other's way are not
    /// again.
    fn random_pause(self, attempt: u32, random: u64) -> Duration {
        let backoff = if self.backoff.0.is_zero() { ANSWER_BACKOFF } else { self.backoff };
        // The significand of an f64 has 53 bits.
        Retry::grown(backoff, attempt).mul_f64((random >> 11) as f64 / (1_u64 << 53) as f64)
    }

    fn grown((first, most): (Duration, Duration), attempt: u32) -> Duration {
        first.saturating_mul(1 << (attempt - 1).min(31)).min(most)
    }
}

type IsNotGood<R> = Box<dyn Fn(&R) -> bool + Send>;

/// An ask that is tried again: see [`Retry::ask`]. `.await` it, or `.wait()`, or `.then(ctx, ..)`.
///
/// # Cancel safety
/// Dropping its future takes the request back if it is not handled yet and was not sent to another theater, and there is no other attempt.
#[must_use = "nothing is sent before it is awaited"]
pub struct RetryAsk<A: Actor, M: Message> {
    retry: Retry,
    to: ActorRef<A>,
    message: M,
    ask: fn(ActorRef<A>, &M) -> Ask<M>,
    again: Option<IsNotGood<M::Reply>>,
}

impl<A: Actor, M: Message> fmt::Debug for RetryAsk<A, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RetryAsk({:?}, {:?})", self.to, self.retry)
    }
}

/// All attempts have failed, or one has in a way that no other attempt would change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryError {
    /// How many attempts were made.
    pub attempts: u32,
    /// Why the last one failed.
    pub last: AskError,
}

impl fmt::Display for RetryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.attempts {
            1 => write!(f, "asked once: {}", self.last),
            attempts => write!(f, "asked {attempts} times, the last time: {}", self.last),
        }
    }
}

impl From<RetryError> for AskError {
    fn from(error: RetryError) -> AskError {
        error.last
    }
}

impl std::error::Error for RetryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.last)
    }
}

impl<A: Actor, M: Message> RetryAsk<A, M> {
    /// Tries again where `is_not_good` says so of an answer: say, where it is an error that passes. The answer to the last attempt is the answer.
    pub fn again_if(mut self, is_not_good: impl Fn(&M::Reply) -> bool + Send + 'static) -> Self {
        self.again = Some(Box::new(is_not_good));
        self
    }

    async fn run(self) -> Result<M::Reply, RetryError> {
        let RetryAsk { retry, to, message, ask, again } = self;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let request = ask(to, &message);
            let request = if let Some(within) = retry.within { request.within(within) } else { request };
            let answer = request.await;
            let may_help = match &answer {
                Ok(answer) => again.as_ref().is_some_and(|is_not_good| is_not_good(answer)),
                Err(AskError::Deadline { .. } | AskError::Unanswered) => true,
                Err(AskError::Panicked) => retry.after_panics,
                Err(_) => false,
            };
            let Some(system) = system_of(to.id()).filter(|_| may_help && attempts < retry.attempts) else {
                return answer.map_err(|last| RetryError { attempts, last });
            };
            let pause = match answer {
                Ok(_not_good) => retry.random_pause(attempts, system.random()),
                Err(_) => retry.pause(attempts),
            };
            if !pause.is_zero() {
                Sleep::new(&system, pause).await;
            }
        }
    }

    /// Blocks this thread until there is an answer, or no other attempt.
    ///
    /// # Errors
    /// Why there is no answer.
    ///
    /// # Panics
    /// Inside an actor: it would hold the worker.
    #[track_caller]
    pub fn wait(self) -> Result<M::Reply, RetryError> {
        match system_of(self.to.id()) {
            None => Err(RetryError { attempts: 1, last: AskError::Shutdown }),
            Some(system) => {
                block_on(&system, self.run()).unwrap_or(Err(RetryError { attempts: 1, last: AskError::Unanswered }))
            }
        }
    }

    /// Asks; `then` is called with the answer as a message of this actor, not at all if it has ended.
    pub fn then<T: Actor>(
        self,
        ctx: &mut Context<T>,
        then: impl FnOnce(&mut T, Result<M::Reply, RetryError>, &mut Context<T>) + Send + 'static,
    ) {
        pipe(ctx, self.run(), then);
    }
}

impl<A: Actor, M: Message> IntoFuture for RetryAsk<A, M> {
    type Output = Result<M::Reply, RetryError>;
    type IntoFuture = std::pin::Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
