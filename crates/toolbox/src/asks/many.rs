//! One request to many.

use std::fmt;
use std::pin::Pin;
use std::task::{Context as PollContext, Poll};
use std::time::Duration;

use playhouse_actor::{Actor, ActorRef, Ask, AskError, Context, HandledBy, Message, Repeated};

use super::gather::Gather;
use super::too_few::TooFewAnswers;
use crate::wait::{block_on, pipe, system_of};

/// Each of those that were asked with its answer.
pub type EachAnswer<A, R> = Vec<(ActorRef<A>, Result<R, AskError>)>;

/// Who has answered, in that order, with the answers; or that there are too few.
pub type Enough<A, R> = Result<Vec<(ActorRef<A>, R)>, TooFewAnswers<A, R>>;

/// Asks each of `targets` with a clone of `message`.
///
/// Whenever an answer comes, all that wait are looked at: this is for tens or hundreds of actors.
pub fn ask_many<A: Actor, M, Mode>(targets: impl IntoIterator<Item = ActorRef<A>>, message: M) -> AskMany<A, M>
where
    M: HandledBy<A, Mode> + Repeated,
{
    AskMany {
        targets: targets.into_iter().collect(),
        message,
        within: None,
        ask: |to, message| to.ask(message),
        clone: M::clone,
    }
}

/// A request to several actors, before it is said which answers are waited for: see [`ask_many`].
#[must_use = "nothing is sent before it is said which answers are waited for, and those are awaited"]
pub struct AskMany<A: Actor, M: Message> {
    pub(super) targets: Vec<ActorRef<A>>,
    pub(super) message: M,
    pub(super) within: Option<Duration>,
    pub(super) ask: fn(ActorRef<A>, M) -> Ask<M>,
    pub(super) clone: fn(&M) -> M,
}

impl<A: Actor, M: Message> AskMany<A, M> {
    /// One deadline for all: who has not answered by then has failed with [`AskError::Deadline`]. Millisecond resolution.
    /// Default: none.
    pub fn within(mut self, deadline: Duration) -> Self {
        self.within = Some(deadline);
        self
    }

    /// Waits for all: each has answered or failed in the end.
    pub fn all(self) -> AllAnswers<A, M> {
        AllAnswers { gather: Gather::new(self) }
    }

    /// Waits for the first `n` answers, and takes the other requests back that are not handled yet and were not sent to another theater.
    ///
    /// It fails as soon as so many have failed that there cannot be `n` answers.
    pub fn first(self, n: usize) -> FirstAnswers<A, M> {
        FirstAnswers { wanted: n, gather: Gather::new(self) }
    }

    /// Waits for the answers of a majority: of more than half of those that are asked.
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

/// Blocks this thread until `future`, a request to `first` and others, is ready; or says why it will not be.
#[track_caller]
fn wait_for<A: Actor, F: Future + Unpin>(first: Option<ActorRef<A>>, future: &mut F) -> Result<F::Output, AskError> {
    match first.map(|first| system_of(first.id())) {
        None => Err(AskError::Stopped),
        Some(None) => Err(AskError::Shutdown),
        // Only a simulated system returns without an answer: nothing is left to do in it that could bring one.
        Some(Some(system)) => block_on(&system, future).ok_or(AskError::Unanswered),
    }
}

/// Each of those that were asked with its answer, in the order in which they were given: what [`AskMany::all`] waits for.
///
/// # Cancel safety
/// Dropping it takes back what is not handled yet and was not sent to another theater; answers that were there are lost.
#[must_use = "nothing is sent before it is awaited"]
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

    /// Blocks this thread until all have answered or failed.
    ///
    /// # Panics
    /// Inside an actor: it would hold the worker.
    #[track_caller]
    pub fn wait(mut self) -> EachAnswer<A, M::Reply> {
        wait_for(self.gather.first_target(), &mut self).unwrap_or_else(|error| {
            self.gather.fail_rest(&error);
            self.finish()
        })
    }

    /// Sends the requests; `then` is called with the answers as a message of this actor, not at all if it has ended.
    pub fn then<T: Actor>(
        self,
        ctx: &mut Context<T>,
        then: impl FnOnce(&mut T, EachAnswer<A, M::Reply>, &mut Context<T>) + Send + 'static,
    ) {
        pipe(ctx, self, then);
    }
}

/// The first answers that come, with who gave them: what [`AskMany::first`] and [`AskMany::quorum`] wait for.
///
/// # Errors
/// There are [too few](TooFewAnswers).
///
/// # Cancel safety
/// Dropping it takes back what is not handled yet and was not sent to another theater; answers that were there are lost.
#[must_use = "nothing is sent before it is awaited"]
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
        // Those that still wait are taken back here, and not when the future is dropped.
        let asked = std::mem::take(&mut gather.asked).len();
        if answers.len() >= wanted { Ok(answers) } else { Err(TooFewAnswers { wanted, asked, answers, errors }) }
    }

    /// Blocks this thread until the answers are there, or cannot come any more.
    ///
    /// # Errors
    /// There are too few.
    ///
    /// # Panics
    /// Inside an actor: it would hold the worker.
    #[track_caller]
    pub fn wait(mut self) -> Enough<A, M::Reply> {
        wait_for(self.gather.first_target(), &mut self).unwrap_or_else(|error| {
            self.gather.fail_rest(&error);
            self.finish()
        })
    }

    /// Sends the requests; `then` is called with the answers as a message of this actor, not at all if it has ended.
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
