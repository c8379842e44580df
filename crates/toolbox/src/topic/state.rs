//! The state that handles to a topic share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockWriteGuard, Weak};

use playhouse_actor::{Actor, ActorId, ActorRef, Context, Message, Terminated, Uncounted};

use super::endpoint::{PublishRequest, TopicEndpoint};
use super::subscriber::{SendOutcome, Subscriber, Target};
use super::{Published, WhenOverloaded};
use crate::member_watcher::{MemberWatcher, Membership, WatchMember};

pub(super) struct TopicState<M: Message> {
    pub(super) system: Uncounted,
    pub(super) subscribers: RwLock<Subscribers<M>>,
    pub(super) watcher: ActorRef<MemberWatcher<TopicMembership<M>>>,
    pub(super) endpoint: OnceLock<ActorRef<TopicEndpoint<M>>>,
    /// The home that this topic has joined, or `None` at home.
    pub(super) home: Option<Home<M>>,
}

/// The connection of a joined topic to its home.
pub(super) struct Home<M: Message> {
    pub(super) endpoint: ActorRef<TopicEndpoint<M>>,
    pub(super) send: fn(ActorRef<TopicEndpoint<M>>, PublishRequest<M>),
    pub(super) missed: AtomicU64,
}

/// The subscribers. The list is copied on change, so that publishing holds no lock.
pub(super) type Subscribers<M> = Arc<Vec<Arc<Subscriber<M>>>>;

impl<M: Message + Clone> TopicState<M> {
    pub(super) fn publish(&self, subject: Option<&str>, message: M) -> Published {
        let Some(home) = &self.home else { return self.deliver(subject, message) };
        (home.send)(home.endpoint, PublishRequest { subject: subject.map(str::to_owned), message });
        Published { elsewhere: usize::from(!home.endpoint.is_stopped()), ..Published::default() }
    }

    /// Sends `message` to the subscribers of this topic.
    pub(super) fn deliver(&self, subject: Option<&str>, message: M) -> Published {
        let subscribers = self.subscribers();
        let mut published = Published::default();
        let mut over = Vec::new();
        for subscriber in subscribers.iter().filter(|subscriber| subscriber.is_for(subject)) {
            if subscriber.target.id().address().is_stale() || !subscriber.active.load(Ordering::Relaxed) {
                continue;
            }
            match (subscriber.send(subject, &message), &subscriber.target) {
                (SendOutcome::Sent, Target::Actor(_)) => published.sent += 1,
                (SendOutcome::Sent, Target::Endpoint(..)) => published.elsewhere += 1,
                // The watcher is notified of the end.
                (SendOutcome::Stopped, _) => {}
                (SendOutcome::Overloaded, _) if subscriber.when_overloaded == WhenOverloaded::DropNewest => {
                    subscriber.dropped.fetch_add(1, Ordering::Relaxed);
                    published.dropped += 1;
                }
                (SendOutcome::Overloaded, _) => over.push(Arc::clone(subscriber)),
            }
        }
        for subscriber in over {
            // Only one of several concurrent publishers ends the subscription.
            published.unsubscribed += usize::from(self.end(&subscriber));
        }
        published
    }
}

impl<M: Message> TopicState<M> {
    pub(super) fn subscribers(&self) -> Subscribers<M> {
        Arc::clone(&self.subscribers.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Subscribers<M>> {
        self.subscribers.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add<A: Actor>(&self, member: ActorRef<A>, subscriber: Subscriber<M>) -> Arc<Subscriber<M>> {
        let subscriber = Arc::new(subscriber);
        Arc::make_mut(&mut self.write()).push(Arc::clone(&subscriber));
        self.watcher.tell_urgent(WatchMember { member, watch: true });
        subscriber
    }

    /// Ends a subscription. Returns false if it has ended before.
    pub(super) fn end(&self, subscriber: &Arc<Subscriber<M>>) -> bool {
        Arc::make_mut(&mut self.write()).retain(|other| !Arc::ptr_eq(other, subscriber));
        let ends = subscriber.active.swap(false, Ordering::Relaxed);
        if ends && let Target::Endpoint(endpoint, _) = subscriber.target {
            endpoint.drain();
        }
        ends
    }

    pub(super) fn forget(&self, who: ActorId) {
        Arc::make_mut(&mut self.write()).retain(|subscriber| {
            let stays = subscriber.target.id() != who;
            if !stays {
                subscriber.active.store(false, Ordering::Relaxed);
            }
            stays
        });
    }

    /// Drains the endpoints that have joined, behind the messages that were sent to them.
    pub(super) fn disconnect_all(&self) {
        for subscriber in self.subscribers().iter() {
            if let Target::Endpoint(endpoint, _) = subscriber.target {
                endpoint.drain();
            }
        }
    }

    /// Records the number of lost messages, as the home has reported it.
    pub(super) fn record_missed(&self, messages: u64) {
        if let Some(home) = &self.home {
            home.missed.fetch_max(messages, Ordering::Relaxed);
        }
    }
}

impl<M: Message> Drop for TopicState<M> {
    fn drop(&mut self) {
        self.disconnect_all();
        if let Some(endpoint) = self.endpoint.get() {
            endpoint.stop();
        }
        self.watcher.drain();
    }
}

/// The reaction of a topic to the end of its subscribers.
pub(super) struct TopicMembership<M: Message> {
    pub(super) topic: Weak<TopicState<M>>,
}

impl<M: Message> Membership for TopicMembership<M> {
    fn ended(&mut self, terminated: &Terminated, _: &mut Context<MemberWatcher<Self>>) {
        if let Some(topic) = self.topic.upgrade() {
            topic.forget(terminated.who);
        }
    }
}
