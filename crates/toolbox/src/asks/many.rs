//! One request to several actors.

use std::borrow::Borrow;
use std::fmt;
use std::pin::Pin;
use std::task::{Context as PollContext, Poll};
use std::time::Duration;

use playhouse_actor::{Actor, ActorRef, Ask, AskError, Context, HandledBy, Message, Repeated};

use super::gather::Gather;
use super::too_few::TooFewAnswers;
use crate::wait::{block_on, pipe, system_of};

/// Each actor that was asked, with its answer or its error.
///
/// # Examples
///
/// ```
/// use playhouse::asks::{EachAnswer, ask_many};
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
/// let answers: EachAnswer<Node, u32> = ask_many(nodes, Number).all().wait();
/// assert_eq!(answers.len(), 3);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type EachAnswer<A, R> = Vec<(ActorRef<A>, Result<R, AskError>)>;

/// The first answers with their actors, in the order of arrival, or the error that there are too few.
///
/// # Examples
///
/// ```
/// use playhouse::asks::{Enough, ask_many};
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
/// let two: Enough<Node, u32> = ask_many(nodes, Number).first(2).wait();
/// assert_eq!(two?.len(), 2);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Enough<A, R> = Result<Vec<(ActorRef<A>, R)>, TooFewAnswers<A, R>>;

/// Asks each of `targets`, which may be borrowed, with a clone of `message`.
///
/// Nothing is sent until the answers are awaited. Each answer polls all pending requests, so the function suits tens
/// or hundreds of actors.
///
/// # Examples
///
/// ```
/// use playhouse::asks::ask_many;
/// use playhouse::prelude::*;
///
/// struct Replica(u32);
///
/// #[actor]
/// impl Replica {
///     #[message(derive(Clone))]
///     fn version(&self) -> u32 { self.0 }
/// }
///
/// let system = System::start()?;
/// let replicas: Vec<_> = (1..=3).map(|version| system.spawn(Replica(version))).collect();
///
/// for (_replica, answer) in ask_many(&replicas, Version).all().wait() {
///     assert!(answer? <= 3);
/// }
/// let majority = ask_many(replicas, Version).quorum().wait()?;
/// assert_eq!(majority.len(), 2);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "multi_call")]
#[doc(alias = "scatter_gather")]
#[doc(alias = "gather")]
pub fn ask_many<A: Actor, M, Mode>(targets: impl IntoIterator<Item: Borrow<ActorRef<A>>>, message: M) -> AskMany<A, M>
where
    M: HandledBy<A, Mode> + Repeated,
{
    AskMany {
        targets: targets.into_iter().map(|target| *target.borrow()).collect(),
        message,
        within: None,
        ask: |to, message| to.ask(message),
        clone: M::clone,
    }
}

/// A request to several actors, before the choice of answers to wait for: see [`ask_many`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use playhouse::asks::{AskMany, ask_many};
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
/// let request: AskMany<Node, Number> = ask_many(nodes, Number).within(Duration::from_secs(1));
/// assert_eq!(request.quorum().wait()?.len(), 2);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is sent until `all`, `first` or `quorum` is called and awaited"]
pub struct AskMany<A: Actor, M: Message> {
    pub(super) targets: Vec<ActorRef<A>>,
    pub(super) message: M,
    pub(super) within: Option<Duration>,
    pub(super) ask: fn(ActorRef<A>, M) -> Ask<M>,
    pub(super) clone: fn(&M) -> M,
}

impl<A: Actor, M: Message> AskMany<A, M> {
    /// Sets one deadline for all answers. A request without an answer by then fails with [`AskError::Deadline`]. The
    /// resolution is 1 ms. Default: no deadline.
    pub fn within(mut self, deadline: Duration) -> Self {
        self.within = Some(deadline);
        self
    }

    /// Waits until each request is answered or has failed.
    pub fn all(self) -> AllAnswers<A, M> {
        AllAnswers { gather: Gather::new(self) }
    }

    /// Waits for the first `n` answers, and takes the other requests back. Requests that are being handled or were
    /// sent to another theater are not taken back.
    ///
    /// The wait fails as soon as too many requests have failed for `n` answers.
    pub fn first(self, n: usize) -> FirstAnswers<A, M> {
        FirstAnswers { wanted: n, gather: Gather::new(self) }
    }

    /// Waits for the answers of a majority: of more than half of the targets.
    pub fn quorum(self) -> FirstAnswers<A, M> {
        let n = self.targets.len() / 2 + 1;
        self.first(n)
    }
}

impl<A: Actor, M: Message> fmt::Debug for AskMany<A, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AskMany").field("targets", &self.targets).field("within", &self.within).finish_non_exhaustive()
    }
}

/// Blocks this thread until `future` is ready. The future is a request to `first` and to other actors.
#[track_caller]
fn wait_for<A: Actor, F: Future + Unpin>(first: Option<ActorRef<A>>, future: &mut F) -> Result<F::Output, AskError> {
    match first.map(|first| system_of(first.id())) {
        None => Err(AskError::Stopped),
        Some(None) => Err(AskError::Shutdown),
        // A simulated system returns without an answer if it has nothing left to do that could bring one.
        Some(Some(system)) => block_on(&system, future).ok_or(AskError::Unanswered),
    }
}

/// All targets with their answers, in the order of the targets: the future of [`AskMany::all`].
///
/// # Cancel safety
/// Dropping the future takes back requests that are not handled yet and were not sent to another theater. Answers
/// that have come are lost.
///
/// # Examples
///
/// ```
/// use playhouse::asks::{AllAnswers, ask_many};
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
/// let all: AllAnswers<Node, Number> = ask_many(nodes, Number).all();
/// let sum: u32 = all.wait().into_iter().filter_map(|(_, answer)| answer.ok()).sum();
/// assert_eq!(sum, 3);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is sent until it is awaited"]
pub struct AllAnswers<A: Actor, M: Message> {
    gather: Gather<A, M>,
}

impl<A: Actor, M: Message> Future for AllAnswers<A, M> {
    type Output = EachAnswer<A, M::Reply>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut PollContext<'_>) -> Poll<Self::Output> {
        let decided = |gather: &Gather<A, M>| gather.answered.len() + gather.failed.len() == gather.asked.len();
        self.gather.poll(cx, decided).map(|()| self.finish())
    }
}

impl<A: Actor, M: Message> AllAnswers<A, M> {
    fn finish(&mut self) -> EachAnswer<A, M::Reply> {
        (0..self.gather.asked.len()).map(|number| self.gather.take(number)).collect()
    }

    /// Blocks this thread until each request is answered or has failed.
    ///
    /// # Panics
    /// The call is made inside an actor, because it would block the worker.
    #[track_caller]
    pub fn wait(mut self) -> EachAnswer<A, M::Reply> {
        wait_for(self.gather.first_target(), &mut self).unwrap_or_else(|error| {
            self.gather.fail_rest(&error);
            self.finish()
        })
    }

    /// Sends the requests, and calls `then` with the answers as a message of this actor. The call is omitted if the
    /// actor has ended.
    pub fn then<T: Actor>(
        self,
        ctx: &mut Context<T>,
        then: impl FnOnce(&mut T, EachAnswer<A, M::Reply>, &mut Context<T>) + Send + 'static,
    ) {
        pipe(ctx, self, then);
    }
}

/// The first answers with their actors: the future of [`AskMany::first`] and [`AskMany::quorum`].
///
/// # Errors
/// There are [too few answers](TooFewAnswers).
///
/// # Cancel safety
/// Dropping the future takes back requests that are not handled yet and were not sent to another theater. Answers
/// that have come are lost.
///
/// # Examples
///
/// ```
/// use playhouse::asks::{FirstAnswers, ask_many};
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
/// let first: FirstAnswers<Node, Number> = ask_many(nodes, Number).first(1);
/// assert!(first.wait()?[0].1 < 3);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is sent until it is awaited"]
pub struct FirstAnswers<A: Actor, M: Message> {
    wanted: usize,
    gather: Gather<A, M>,
}

impl<A: Actor, M: Message> Future for FirstAnswers<A, M> {
    type Output = Enough<A, M::Reply>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut PollContext<'_>) -> Poll<Self::Output> {
        let wanted = self.wanted;
        let decided = |gather: &Gather<A, M>| {
            gather.answered.len() >= wanted || gather.asked.len() - gather.failed.len() < wanted
        };
        self.gather.poll(cx, decided).map(|()| self.finish())
    }
}

impl<A: Actor, M: Message> FirstAnswers<A, M> {
    fn finish(&mut self) -> Enough<A, M::Reply> {
        let (wanted, gather) = (self.wanted, &mut self.gather);
        let mut answers = Vec::new();
        for number in std::mem::take(&mut gather.answered) {
            let (actor, answer) = gather.take(number);
            answers.extend(answer.ok().map(|answer| (actor, answer)));
        }
        let mut errors = Vec::new();
        for number in std::mem::take(&mut gather.failed) {
            let (actor, answer) = gather.take(number);
            errors.extend(answer.err().map(|error| (actor, error)));
        }
        // Pending requests are taken back now, before the future is dropped.
        let asked = std::mem::take(&mut gather.asked).len();
        if answers.len() >= wanted { Ok(answers) } else { Err(TooFewAnswers { wanted, asked, answers, errors }) }
    }

    /// Blocks this thread until the answers have come, or cannot come any more.
    ///
    /// # Errors
    /// There are [too few answers](TooFewAnswers).
    ///
    /// # Panics
    /// The call is made inside an actor, because it would block the worker.
    #[track_caller]
    pub fn wait(mut self) -> Enough<A, M::Reply> {
        wait_for(self.gather.first_target(), &mut self).unwrap_or_else(|error| {
            self.gather.fail_rest(&error);
            self.finish()
        })
    }

    /// Sends the requests, and calls `then` with the answers as a message of this actor. The call is omitted if the
    /// actor has ended.
    pub fn then<T: Actor>(
        self,
        ctx: &mut Context<T>,
        then: impl FnOnce(&mut T, Enough<A, M::Reply>, &mut Context<T>) + Send + 'static,
    ) {
        pipe(ctx, self, then);
    }
}

impl<A: Actor, M: Message> fmt::Debug for AllAnswers<A, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllAnswers").field("asked", &self.gather.asked.len()).finish_non_exhaustive()
    }
}

impl<A: Actor, M: Message> fmt::Debug for FirstAnswers<A, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FirstAnswers").field("wanted", &self.wanted).finish_non_exhaustive()
    }
}
