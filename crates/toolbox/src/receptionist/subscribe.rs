//! Subscribing to the actors of a key.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;

use playhouse_actor::{Actor, ActorId, ActorRef, Context, HandledBy, Handler, Message, Recipient, ToRecipient};

use super::{Listing, Receptionist};

/// A function that watches a subscriber, whose type only [`Subscribe::new`] knows.
pub(super) type WatchFn = Box<dyn FnOnce(&mut Context<Receptionist>) + Send>;

/// A request for a [`Listing`] now, and at each change. The subscription ends with the subscriber, or by
/// [`Unsubscribe`].
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::receptionist::{Listing, Receptionist, Subscribe};
///
/// struct Till;
/// #[actor]
/// impl Till {}
///
/// struct Balancer;
/// impl Actor for Balancer {}
/// impl Handler<Listing<Till>> for Balancer {
///     fn handle(&mut self, listing: Listing<Till>, _: &mut Context<Self>) {
///         println!("{} tills", listing.actors.len());
///     }
/// }
///
/// let system = System::start()?;
/// let receptionist = system.spawn(Receptionist::new());
/// receptionist.tell(Subscribe::<Till>::new("till", system.spawn(Balancer)));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "monitor")]
pub struct Subscribe<A: Actor> {
    key: String,
    to: Recipient<Listing<A>>,
    watch: WatchFn,
}

impl<A: Actor> Subscribe<A> {
    /// Creates a subscription of `to` to the actors under `key`. A second subscription of the same actor only sends
    /// another listing.
    pub fn new<B: Actor, Mode>(key: impl Into<String>, to: ActorRef<B>) -> Subscribe<A>
    where
        Listing<A>: HandledBy<B, Mode>,
    {
        Subscribe { key: key.into(), to: to.recipient(), watch: Box::new(move |ctx| ctx.watch(to)) }
    }
}

impl<A: Actor> fmt::Debug for Subscribe<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subscribe<{}>({:?}, {:?})", type_name::<A>(), self.key, self.to)
    }
}

impl<A: Actor> Message for Subscribe<A> {
    type Reply = ();
}

impl<A: Actor> Handler<Subscribe<A>> for Receptionist {
    fn handle(&mut self, Subscribe { key, to, watch }: Subscribe<A>, ctx: &mut Context<Self>) {
        let entry = self.entry_or_insert::<A>(key, to.id());
        if !entry.subscribers.contains(&to) {
            entry.subscribers.push(to);
            watch(ctx);
        }
        to.tell(entry.listing());
    }
}

/// A request to end a subscription. A listing on its way may still arrive.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::receptionist::{Listing, Receptionist, Unsubscribe};
///
/// struct Till;
/// #[actor]
/// impl Till {}
///
/// struct Balancer;
/// impl Actor for Balancer {}
/// impl Handler<Listing<Till>> for Balancer {
///     fn handle(&mut self, _: Listing<Till>, _: &mut Context<Self>) {}
/// }
///
/// let system = System::start()?;
/// let receptionist = system.spawn(Receptionist::new());
/// receptionist.tell(Unsubscribe::<Till>::new("till", system.spawn(Balancer)));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Unsubscribe<A: Actor> {
    key: String,
    who: ActorId,
    actor: PhantomData<fn() -> A>,
}

impl<A: Actor> Unsubscribe<A> {
    /// Creates a request to end the subscription of `subscriber` to `key`.
    pub fn new<B: Actor>(key: impl Into<String>, subscriber: ActorRef<B>) -> Unsubscribe<A> {
        Unsubscribe { key: key.into(), who: subscriber.id(), actor: PhantomData }
    }
}

impl<A: Actor> fmt::Debug for Unsubscribe<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unsubscribe<{}>({:?}, {})", type_name::<A>(), self.key, self.who)
    }
}

impl<A: Actor> Message for Unsubscribe<A> {
    type Reply = ();
}

impl<A: Actor> Handler<Unsubscribe<A>> for Receptionist {
    fn handle(&mut self, Unsubscribe { key, who, .. }: Unsubscribe<A>, _: &mut Context<Self>) {
        if let Some(entry) = self.entry::<A>(&key) {
            entry.subscribers.retain(|subscriber| subscriber.id() != who);
        }
        self.remove_unused::<A>(key, who);
    }
}
