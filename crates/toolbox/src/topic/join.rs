//! Joining a topic of another theater.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;

use playhouse_actor::{Actor, ActorRef, AskError, Context, System};

use super::endpoint::{JoinRequest, RemoteTopic, TopicEndpoint};
use super::state::Home;
use super::{Topic, WhenOverloaded};
use crate::wait::{block_on, pipe};

/// An error of [`Topic::join`].
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::serde::{Deserialize, Serialize};
/// use playhouse::topic::{JoinError, Topic, WhenOverloaded};
///
/// #[derive(Message, Clone, Serialize, Deserialize)]
/// #[serde(crate = "playhouse::serde")]
/// struct Order(u64);
/// playhouse::remote_topic!(Order);
///
/// let system = System::start()?;
/// let orders: Topic<Order> = Topic::new(&system);
/// let endpoint = orders.endpoint();
/// drop(orders);
/// let error = Topic::join(&system, endpoint, WhenOverloaded::SlowPublisher).wait().unwrap_err();
/// assert_eq!(error, JoinError::Ended);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinError {
    /// The topic has ended.
    Ended,
    /// The endpoint has not answered. [`AskError::TheaterLost`] means that its theater is lost.
    /// [`AskError::Unreachable`] means that its program has no `remote_topic!` of this message.
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

/// A topic that is being joined: see [`Topic::join`]. Use `.await`, `.wait()`, or `.then(ctx, ..)`.
///
/// # Cancel safety
/// Dropping the future leaves the topic unjoined, and the home forgets the request.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::serde::{Deserialize, Serialize};
/// use playhouse::topic::{Topic, WhenOverloaded};
///
/// #[derive(Message, Clone, Serialize, Deserialize)]
/// #[serde(crate = "playhouse::serde")]
/// struct Order(u64);
/// playhouse::remote_topic!(Order);
///
/// let system = System::start()?;
/// let home: Topic<Order> = Topic::new(&system);
/// let joined = Topic::join(&system, home.endpoint(), WhenOverloaded::SlowPublisher).wait()?;
/// assert_eq!(home.joined(), 1);
/// # drop((home, joined));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is joined until it is awaited or waited for"]
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

    /// Blocks this thread until the topic is joined.
    ///
    /// # Errors
    /// The topic has ended, or its endpoint has not answered: see [`JoinError`].
    ///
    /// # Panics
    /// The call is made inside an actor, because it would block the worker. The system was shut down.
    #[track_caller]
    pub fn wait(self) -> Result<Topic<M>, JoinError> {
        let system = self.system.clone();
        block_on(system.core(), self.run()).unwrap_or(Err(JoinError::NoAnswer(AskError::Unanswered)))
    }

    /// Calls `then` with the topic as a message of this actor, which handles other messages in the meantime.
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
