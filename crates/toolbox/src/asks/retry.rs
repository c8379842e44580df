//! Asks with retries.

use std::fmt;
use std::time::Duration;

use playhouse_actor::{Actor, ActorRef, Ask, AskError, Context, HandledBy, Message, Repeated, Sleep};

use crate::wait::{block_on, pipe, system_of};

/// The default backoff after an answer that is not good: first, at most.
const ANSWER_BACKOFF: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));

/// A policy for the repetition of an ask.
///
/// The ask is repeated after [`AskError::Deadline`] and [`AskError::Unanswered`], because another attempt may
/// succeed. Any other error ends the ask at once. An answer that is an error of the handler is repeated as
/// [`RetryAsk::again_if`] says.
///
/// A request whose handler crashes ([`AskError::Panicked`]) is repeated only with [`Retry::after_panics`]. A message
/// that crashes one handler mostly crashes the next one, and each crash counts against the `max_restarts` of the
/// receiver's supervisor.
///
/// Actors that ask each other in their handlers at the same time form a cycle, and one ask fails with
/// [`AskError::Cycle`]. The policy does not repeat that ask, because the other asks continue only when the failed
/// handler has ended. The handler returns the error, and its own asker repeats with `again_if` after a random pause.
/// Between theaters, a request that failed with a cycle may still be handled.
///
/// A request whose deadline has passed may have been handled. The same holds after a crash of the handler, or after a
/// dropped `Reply`. Let the message carry an [`IdempotencyKey`](super::IdempotencyKey) and the receiver keep an [`AnswerCache`](super::AnswerCache) where a
/// second effect would be wrong.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use playhouse::asks::Retry;
///
/// let patient = Retry::attempts(5)
///     .within(Duration::from_millis(200))
///     .backoff(Duration::from_millis(10), Duration::from_secs(1));
/// # let _ = patient;
/// ```
#[doc(alias = "retry")]
#[doc(alias = "backoff")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Retry {
    attempts: u32,
    within: Option<Duration>,
    backoff: (Duration, Duration),
    after_panics: bool,
}

impl Retry {
    /// Creates a policy of at most `attempts` attempts, at least one.
    pub fn attempts(attempts: u32) -> Retry {
        Retry {
            attempts: attempts.max(1),
            within: None,
            backoff: (Duration::ZERO, Duration::ZERO),
            after_panics: false,
        }
    }

    /// Sets the deadline of each attempt. Default: none, and then no attempt times out.
    pub fn within(mut self, each: Duration) -> Self {
        self.within = Some(each);
        self
    }

    /// Sets the pause before another attempt: `first`, then doubled each time, at most `most`. Default: no pause.
    ///
    /// After an answer that is [not good](RetryAsk::again_if) the pause is a random part of that time. If `first` is
    /// zero, that time is 1 ms, doubled each time, at most 100 ms.
    pub fn backoff(mut self, first: Duration, most: Duration) -> Self {
        self.backoff = (first, most);
        self
    }

    /// Repeats the ask after [`AskError::Panicked`] too. This suits crashes with a cause outside of the message, such
    /// as a disk, under a supervisor that restarts the receiver. Choose fewer attempts than the supervisor has
    /// `max_restarts`.
    pub fn after_panics(mut self) -> Self {
        self.after_panics = true;
        self
    }

    /// Asks `to` with a clone of `message` in each attempt.
    ///
    /// # Examples
    ///
    /// ```
    /// use playhouse::asks::Retry;
    /// use playhouse::prelude::*;
    ///
    /// struct Disk { reads: u32 }
    ///
    /// #[actor]
    /// impl Disk {
    ///     #[message(derive(Clone))]
    ///     fn read(&mut self) -> Result<u32, String> {
    ///         self.reads += 1;
    ///         if self.reads < 3 { Err("busy".to_owned()) } else { Ok(7) }
    ///     }
    /// }
    ///
    /// let system = System::start()?;
    /// let disk = system.spawn(Disk { reads: 0 });
    /// let read = Retry::attempts(5).ask(disk, Read).again_if(Result::is_err);
    /// assert_eq!(read.wait()?, Ok(7));
    /// # system.shutdown()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ask<A: Actor, M, Mode>(self, to: ActorRef<A>, message: M) -> RetryAsk<A, M>
    where
        M: HandledBy<A, Mode> + Repeated,
    {
        RetryAsk { retry: self, to, message, ask: |to, message| to.ask(message.clone()), again: None }
    }

    /// Returns the pause after attempt number `attempt`, counted from 1.
    fn pause(self, attempt: u32) -> Duration {
        Retry::grown(self.backoff, attempt)
    }

    /// Returns the pause after a bad answer to attempt number `attempt`. The random part separates askers that have
    /// collided.
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

/// An ask with retries: see [`Retry::ask`]. Use `.await`, `.wait()`, or `.then(ctx, ..)`.
///
/// # Cancel safety
/// Dropping its future makes no further attempt. It takes the request back if the request is not handled yet and was
/// not sent to another theater.
///
/// # Examples
///
/// ```
/// use playhouse::asks::{Retry, RetryAsk};
/// # use playhouse::prelude::*;
/// #
/// # struct Node(u32);
/// #
/// # #[actor]
/// # impl Node {
/// #     #[message(derive(Clone))]
/// #     fn number(&self) -> u32 { self.0 }
/// # }
/// #
/// # let system = System::start()?;
/// # let nodes: Vec<_> = (0..3).map(|number| system.spawn(Node(number))).collect();
/// let request: RetryAsk<Node, Number> = Retry::attempts(3).ask(nodes[1], Number);
/// assert_eq!(request.wait()?, 1);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is sent until it is awaited"]
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

/// An error of an ask with retries: all attempts have failed, or one has failed in a way that no other attempt would
/// change.
///
/// # Examples
///
/// ```
/// use playhouse::asks::{Retry, RetryError};
/// # use playhouse::prelude::*;
/// #
/// # struct Node(u32);
/// #
/// # #[actor]
/// # impl Node {
/// #     #[message(derive(Clone))]
/// #     fn number(&self) -> u32 { self.0 }
/// # }
/// #
/// # let system = System::start()?;
/// # let nodes: Vec<_> = (0..3).map(|number| system.spawn(Node(number))).collect();
/// nodes[0].stop();
/// let error: RetryError = Retry::attempts(3).ask(nodes[0], Number).wait().unwrap_err();
/// assert_eq!((error.attempts, error.last), (1, AskError::Stopped)); // another attempt would not help
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryError {
    /// The number of attempts that were made.
    pub attempts: u32,
    /// The error of the last attempt.
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
    /// Repeats the ask if `is_not_good` returns true for an answer, such as a temporary error. The answer to the last
    /// attempt is returned in any case.
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

    /// Blocks this thread until there is an answer, or no further attempt.
    ///
    /// # Errors
    /// All attempts have failed, or an attempt has failed for good: see [`RetryError`].
    ///
    /// # Panics
    /// The call is made inside an actor, because it would block the worker.
    #[track_caller]
    pub fn wait(self) -> Result<M::Reply, RetryError> {
        match system_of(self.to.id()) {
            None => Err(RetryError { attempts: 1, last: AskError::Shutdown }),
            Some(system) => {
                block_on(&system, self.run()).unwrap_or(Err(RetryError { attempts: 1, last: AskError::Unanswered }))
            }
        }
    }

    /// Sends the request, and calls `then` with the answer as a message of this actor. The call is omitted if the
    /// actor has ended.
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
