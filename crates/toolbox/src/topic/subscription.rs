//! Subscriptions.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use playhouse_actor::Message;

use super::state::TopicState;
use super::subscriber::Subscriber;

/// What an actor has subscribed to. It goes on when this is dropped.
pub struct Subscription<M: Message> {
    pub(super) topic: Weak<TopicState<M>>,
    pub(super) subscriber: Arc<Subscriber<M>>,
}

impl<M: Message> Subscription<M> {
    /// Whether messages still come: it was not cancelled, and has not ended by [`WhenOverloaded::Unsubscribe`] or with its actor.
    pub fn is_active(&self) -> bool {
        self.subscriber.active.load(Ordering::Relaxed)
    }

    /// How many messages the subscriber has not got, by [`WhenOverloaded::DropNewest`].
    pub fn dropped(&self) -> u64 {
        self.subscriber.dropped.load(Ordering::Relaxed)
    }

    /// Ends it. What was sent before still arrives.
    pub fn cancel(&self) {
        if let Some(topic) = self.topic.upgrade() {
            topic.end(&self.subscriber);
        }
    }
}

impl<M: Message> fmt::Debug for Subscription<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("to", &self.subscriber.target)
            .field("pattern", &self.subscriber.pattern)
            .field("active", &self.is_active())
            .field("dropped", &self.dropped())
            .finish()
    }
}
