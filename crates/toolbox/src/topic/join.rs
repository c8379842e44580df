//! Joining a topic of another theater.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;

use playhouse_actor::{Actor, ActorRef, AskError, Context, System};

use super::endpoint::{JoinRequest, RemoteTopic, TopicEndpoint};
use super::state::Home;
use super::{Topic, WhenOverloaded};
use crate::wait::{block_on, pipe};

/// Why a topic was not joined.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinError {
    /// The topic has ended.
    Ended,
    /// Its endpoint has not answered: why. Where its theater is lost, that is [`AskError::TheaterLost`]; where the program there
    /// has no `remote_topic!` of this message, [`AskError::Unreachable`].
    NoAnswer(AskError),
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::Ended => f.write_str("the topic has ended, with its last handle or its theater"),
            JoinError::NoAnswer(why) => write!(f, "the endpoint of the topic has not answered: {why}"),
        }
    }
}

impl std::error::Error for JoinError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            JoinError::Ended => None,
            JoinError::NoAnswer(why) => Some(why),
        }
    }
}

/// A topic that is to be joined: see [`Topic::join`]. `.await` it, or `.wait()`, or `.then(ctx, ..)`.
///
/// # Cancel safety
/// Dropped while it is under target, nothing has joined: the home forgets who was about to.
#[must_use = "nothing is joined before it is awaited or waited for"]
pub struct Join<M: RemoteTopic> {
    pub(super) system: System,
    pub(super) home: ActorRef<TopicEndpoint<M>>,
    pub(super) when_overloaded: WhenOverloaded,
}

impl<M: RemoteTopic> Join<M> {
    async fn run(self) -> Result<Topic<M>, JoinError> {
        let Join { system, home, when_overloaded } = self;
        let send = |home: ActorRef<TopicEndpoint<M>>, request| home.tell(request);
        let topic = Topic::build(&system, Some(Home { endpoint: home, send, missed: AtomicU64::new(0) }));
        match home.ask(JoinRequest { endpoint: topic.endpoint(), when_overloaded }).await {
            Ok(true) => Ok(topic),
            Ok(false) | Err(AskError::Stopped) => Err(JoinError::Ended),
            Err(why) => Err(JoinError::NoAnswer(why)),
        }
    }

    /// Blocks this thread until it is joined.
    ///
    /// # Errors
    /// Why it was not.
    ///
    /// # Panics
    /// Inside an actor: it would hold the worker. If the system was shut down.
    #[track_caller]
    pub fn wait(self) -> Result<Topic<M>, JoinError> {
        let system = self.system.clone();
        block_on(system.core(), self.run()).unwrap_or(Err(JoinError::NoAnswer(AskError::Unanswered)))
    }

    /// Has the topic handled by `then`, as a message of this actor, which goes on with others meanwhile.
    pub fn then<A: Actor>(
        self,
        ctx: &mut Context<A>,
        then: impl FnOnce(&mut A, Result<Topic<M>, JoinError>, &mut Context<A>) + Send + 'static,
    ) {
        pipe(ctx, self.run(), then);
    }
}

impl<M: RemoteTopic> IntoFuture for Join<M> {
    type Output = Result<Topic<M>, JoinError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<M: RemoteTopic> fmt::Debug for Join<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Join({:?})", self.home)
    }
}
