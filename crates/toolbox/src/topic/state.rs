//! What the handles to a topic share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockWriteGuard, Weak};

use playhouse_actor::{Actor, ActorId, ActorRef, Context, Down, Message, Uncounted};

use super::endpoint::{Desk, Submission};
use super::subscriber::{Sent, Subscriber, Way};
use super::{Published, WhenOverloaded};
use crate::member_watcher::{Keeper, Observe, Table};

pub(super) struct Inner<M: Message> {
    pub(super) system: Uncounted,
    pub(super) subscribers: RwLock<Subscribers<M>>,
    pub(super) keeper: ActorRef<Keeper<Roll<M>>>,
    pub(super) desk: OnceLock<ActorRef<Desk<M>>>,
    /// None: this is the home.
    pub(super) home: Option<Home<M>>,
}

/// What a topic that has joined another one knows of that.
pub(super) struct Home<M: Message> {
    pub(super) desk: ActorRef<Desk<M>>,
    pub(super) submit: fn(ActorRef<Desk<M>>, Submission<M>),
    pub(super) missed: AtomicU64,
}

/// Copied where it changes, so that nobody publishes under the lock.
pub(super) type Subscribers<M> = Arc<Vec<Arc<Subscriber<M>>>>;

impl<M: Message + Clone> Inner<M> {
    pub(super) fn publish(&self, subject: Option<&str>, message: M) -> Published {
        let Some(home) = &self.home else { return self.issue(subject, message) };
        (home.submit)(home.desk, Submission { subject: subject.map(str::to_owned), message });
        Published { elsewhere: usize::from(!home.desk.is_stopped()), ..Published::default() }
    }

    /// Sends `message` to those who have subscribed here.
    pub(super) fn issue(&self, subject: Option<&str>, message: M) -> Published {
        let subscribers = self.subscribers();
        let mut published = Published::default();
        let mut over = Vec::new();
        for subscriber in subscribers.iter().filter(|subscriber| subscriber.is_for(subject)) {
            if subscriber.way.id().address().is_stale() || !subscriber.active.load(Ordering::Relaxed) {
                continue;
            }
            match (subscriber.send(subject, &message), &subscriber.way) {
                (Sent::Taken, Way::Actor(_)) => published.sent += 1,
                (Sent::Taken, Way::Desk(..)) => published.elsewhere += 1,
                // The keeper will hear of it.
                (Sent::Ended, _) => {}
                (Sent::Overloaded, _) if subscriber.when_overloaded == WhenOverloaded::DropNewest => {
                    subscriber.dropped.fetch_add(1, Ordering::Relaxed);
                    published.dropped += 1;
                }
                (Sent::Overloaded, _) => over.push(Arc::clone(subscriber)),
            }
        }
        for subscriber in over {
            // Of several that publish at this moment, one ends it.
            published.unsubscribed += usize::from(self.end(&subscriber));
        }
        published
    }
}

impl<M: Message> Inner<M> {
    pub(super) fn subscribers(&self) -> Subscribers<M> {
        Arc::clone(&self.subscribers.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Subscribers<M>> {
        self.subscribers.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add<A: Actor>(&self, who: ActorRef<A>, subscriber: Subscriber<M>) -> Arc<Subscriber<M>> {
        let subscriber = Arc::new(subscriber);
        Arc::make_mut(&mut self.write()).push(Arc::clone(&subscriber));
        self.keeper.tell_urgent(Observe { who, watch: true });
        subscriber
    }

    /// Ends a subscription. False if it has ended before.
    pub(super) fn end(&self, subscriber: &Arc<Subscriber<M>>) -> bool {
        Arc::make_mut(&mut self.write()).retain(|other| !Arc::ptr_eq(other, subscriber));
        let ends = subscriber.active.swap(false, Ordering::Relaxed);
        if ends && let Way::Desk(desk, _) = subscriber.way {
            desk.drain();
        }
        ends
    }

    pub(super) fn forget(&self, who: ActorId) {
        Arc::make_mut(&mut self.write()).retain(|subscriber| {
            let stays = subscriber.way.id() != who;
            if !stays {
                subscriber.active.store(false, Ordering::Relaxed);
            }
            stays
        });
    }

    /// Nothing more comes to those who have joined, behind what was sent before.
    pub(super) fn cut_off_all(&self) {
        for subscriber in self.subscribers().iter() {
            if let Way::Desk(desk, _) = subscriber.way {
                desk.drain();
            }
        }
    }

    /// The home has said so of the way from there.
    pub(super) fn has_missed(&self, messages: u64) {
        if let Some(home) = &self.home {
            home.missed.fetch_max(messages, Ordering::Relaxed);
        }
    }
}

impl<M: Message> Drop for Inner<M> {
    fn drop(&mut self) {
        self.cut_off_all();
        if let Some(desk) = self.desk.get() {
            desk.stop();
        }
        self.keeper.drain();
    }
}

/// What the keeper of a topic does.
pub(super) struct Roll<M: Message> {
    pub(super) topic: Weak<Inner<M>>,
}

impl<M: Message> Table for Roll<M> {
    fn ended(&mut self, down: &Down, _: &mut Context<Keeper<Self>>) {
        if let Some(topic) = self.topic.upgrade() {
            topic.forget(down.who);
        }
    }
}
