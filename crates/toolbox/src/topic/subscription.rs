//! Handles to subscriptions.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use playhouse_actor::Message;

use super::state::TopicState;
use super::subscriber::Subscriber;

/// A handle to a subscription. Dropping the handle does not end the subscription.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::topic::{Topic, WhenOverloaded};
///
/// #[derive(Message, Clone)]
/// struct Note;
///
/// struct Reader;
/// impl Actor for Reader {}
/// impl Handler<Note> for Reader {
///     fn handle(&mut self, _: Note, _: &mut Context<Self>) {}
/// }
///
/// let system = System::start()?;
/// let notes: Topic<Note> = Topic::new(&system);
/// let subscription = notes.subscribe(system.spawn(Reader), WhenOverloaded::SlowPublisher);
/// assert!(subscription.is_active());
/// subscription.cancel();
/// assert!(!subscription.is_active());
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Subscription<M: Message> {
    pub(super) topic: Weak<TopicState<M>>,
    pub(super) subscriber: Arc<Subscriber<M>>,
}

impl<M: Message> Subscription<M> {
    /// Returns whether messages still arrive. A subscription ends by [`cancel`](Subscription::cancel), by
    /// [`WhenOverloaded::Unsubscribe`](super::WhenOverloaded::Unsubscribe), or with its actor.
    pub fn is_active(&self) -> bool {
        self.subscriber.active.load(Ordering::Relaxed)
    }

    /// Returns the number of messages that the subscriber has missed by
    /// [`WhenOverloaded::DropNewest`](super::WhenOverloaded::DropNewest).
    pub fn dropped(&self) -> u64 {
        self.subscriber.dropped.load(Ordering::Relaxed)
    }

    /// Ends the subscription. Messages that were sent before still arrive.
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
