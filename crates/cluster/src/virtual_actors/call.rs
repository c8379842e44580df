//! Messages on their way to an activation.

use std::marker::PhantomData;
use std::sync::Arc;

use playhouse_actor::returning::{Returned, Returning, ReturningMode, TakeBack};
use playhouse_actor::wire::{Handles, WireForm};
use playhouse_actor::{ActorRef, AskError, DeferredMode, Message, Reply};
use serde::{Deserialize, Serialize};

use super::active::Active;
use super::actor::{VirtualActor, VirtualMessage};
use super::directory::Directory;
use super::virtual_ref::Target;

/// A message with its route.
#[doc(hidden)]
pub type Call<A, M, Mode> = Returning<M, Route<A, Mode>, Mode>;

/// The route of a call in one theater.
#[doc(hidden)]
pub struct Route<A: VirtualActor, Mode> {
    to: To<A>,
    mode: PhantomData<fn(Mode)>,
}

enum To<A: VirtualActor> {
    /// To the directory, which notes the activation in the target.
    Directory(Arc<Target<A>>),
    /// To the activation.
    Active(Arc<Active<A>>),
}

impl<A: VirtualActor, Mode> Route<A, Mode> {
    pub(super) fn directory(target: Arc<Target<A>>) -> Self {
        Route { to: To::Directory(target), mode: PhantomData }
    }

    pub(super) fn direct(active: Arc<Active<A>>) -> Self {
        Route { to: To::Active(active), mode: PhantomData }
    }

    /// Returns the key, and the target that the activation is noted in.
    pub(super) fn into_key(self) -> (Arc<str>, Option<Arc<Target<A>>>) {
        match self.to {
            To::Directory(target) => (Arc::clone(&target.key), Some(target)),
            To::Active(active) => (Arc::clone(&active.activation.key), None),
        }
    }

    fn active(&self) -> Option<&Active<A>> {
        match &self.to {
            To::Directory(_) => None,
            To::Active(active) => Some(active),
        }
    }
}

impl<A: VirtualActor, M: VirtualMessage<A, Mode>, Mode: 'static> TakeBack<M> for Route<A, Mode> {
    fn may_run(&self) -> bool {
        self.active().is_some_and(Active::admits)
    }

    fn set_running(&self, is_running: bool) {
        if let Some(active) = self.active() {
            active.set_running(is_running);
        }
    }

    fn take_back(self, message: M, reply: Returned<M::Reply>) {
        let directory = match &self.to {
            To::Directory(target) => target.directory,
            To::Active(active) => active.directory,
        };
        Reply::returned(reply).forward::<_, DeferredMode>(directory, Returning::new(message, self));
    }
}

/// A call between the directories of two theaters.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "M: Serialize", deserialize = "M: Deserialize<'de>"))]
pub struct RoutedCall<M, Mode> {
    pub(super) key: String,
    /// The version of the sender's view.
    pub(super) version: u64,
    pub(super) message: M,
    mode: PhantomData<fn(Mode)>,
}

impl<M, Mode> RoutedCall<M, Mode> {
    pub(super) fn new(key: &str, version: u64, message: M) -> Self {
        RoutedCall { key: key.to_owned(), version, message, mode: PhantomData }
    }
}

impl<M, Mode: 'static> Message for RoutedCall<M, Mode>
where
    M: Message<Reply: playhouse_actor::wire::Transferable> + playhouse_actor::wire::Transferable,
{
    type Reply = M::Reply;
    const WIRE: Option<WireForm<Self>> = Some(WireForm::of());
}

/// Returns the entry of a message in the list of those that other theaters send to a virtual actor.
#[doc(hidden)]
pub const fn entry<A: VirtualActor, M: VirtualMessage<A, Mode>, Mode: 'static>() -> Handles {
    Handles::of::<Directory<A>, RoutedCall<M, Mode>, DeferredMode>()
}

/// Lists the messages that virtual actors take from other theaters: `virtual_messages!(Account: Deposit, Balance)`.
///
/// A message that is not listed is handled if its sender is in the theater of the activation, and is undelivered otherwise.
///
/// # Examples
///
/// See [`VirtualActor`].
#[macro_export]
macro_rules! virtual_messages {
    ($actor:ty : $($message:ty),* $(,)?) => {
        $($crate::wire::submit! { $crate::wire::entry::<$actor, $message, _>() })*
    };
}

/// A call in a directory.
pub(super) struct PendingCall<A: VirtualActor, M: Message, Mode> {
    pub(super) message: M,
    pub(super) reply: Reply<M::Reply>,
    pub(super) target: Option<Arc<Target<A>>>,
    pub(super) mode: PhantomData<fn(Mode)>,
}

/// A call of any message in a directory.
pub(super) trait AnyCall<A: VirtualActor>: Send {
    /// Sends the call to an activation in this theater.
    fn deliver(self: Box<Self>, active: &Arc<Active<A>>);

    /// Sends the call to the directory of another member. Returns a call that finds no room, or whose directory has ended.
    fn send_to(
        self: Box<Self>,
        peer: ActorRef<Directory<A>>,
        key: &str,
        version: u64,
    ) -> Result<(), Box<dyn AnyCall<A>>>;

    /// Ends an ask with this error. A tell becomes a dead letter.
    fn fail(self: Box<Self>, error: AskError);

    /// Returns whether the call is a tell, or an ask whose asker still waits.
    fn is_wanted(&self) -> bool;
}

impl<A: VirtualActor, M: VirtualMessage<A, Mode>, Mode: 'static> AnyCall<A> for PendingCall<A, M, Mode> {
    fn deliver(self: Box<Self>, active: &Arc<Active<A>>) {
        let PendingCall { message, reply, target, .. } = *self;
        if let Some(target) = target {
            target.set_active(active);
        }
        let actor = *active.actor.get().expect("an activation that takes calls has an actor");
        let call: Call<A, M, Mode> = Returning::new(message, Route::direct(Arc::clone(active)));
        reply.forward::<_, ReturningMode<Mode>>(actor, call);
    }

    fn send_to(
        self: Box<Self>,
        peer: ActorRef<Directory<A>>,
        key: &str,
        version: u64,
    ) -> Result<(), Box<dyn AnyCall<A>>> {
        let PendingCall { message, reply, target, mode } = *self;
        let call = RoutedCall::<M, Mode>::new(key, version, message);
        if let Some(target) = &target {
            target.set_peer(peer, version);
        }
        if reply.is_of_ask() {
            reply.forward::<_, DeferredMode>(peer, call);
            return Ok(());
        }
        // A directory does not wait for a full link, because its other calls would wait, too.
        let unsent = peer.try_tell::<_, DeferredMode>(call);
        unsent.map_err(|unsent| {
            let message = unsent.into_message().message;
            Box::new(PendingCall { message, reply, target, mode }) as Box<dyn AnyCall<A>>
        })
    }

    fn fail(self: Box<Self>, error: AskError) {
        self.reply.undelivered::<A, M>(error);
    }

    fn is_wanted(&self) -> bool {
        !self.reply.is_of_ask() || self.reply.is_awaited()
    }
}
