//! References to virtual actors.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use playhouse_actor::returning::{Returning, ReturningMode};
use playhouse_actor::{Actor, ActorRef, Ask, Context, ContextAsk, DeferredMode};

use super::active::Active;
use super::actor::{VirtualActor, VirtualMessage};
use super::call::{Call, Route, RoutedCall};
use super::directory::Directory;
use crate::driver::state::Shared;

/// The key of a virtual actor, and its activation if that is in this theater.
pub struct Target<A: VirtualActor> {
    pub(super) key: Arc<str>,
    pub(super) directory: ActorRef<Directory<A>>,
    active: RwLock<Option<Arc<Active<A>>>>,
    /// The directory of the owner in another theater, and the version of the view that it is found by.
    peer: RwLock<Option<(ActorRef<Directory<A>>, u64)>>,
    shared: Arc<Shared>,
}

impl<A: VirtualActor> Target<A> {
    pub(super) fn set_active(&self, active: &Arc<Active<A>>) {
        let mut cached = self.active.write().unwrap_or_else(PoisonError::into_inner);
        if cached.as_ref().is_none_or(|cached| !Arc::ptr_eq(cached, active)) {
            *cached = Some(Arc::clone(active));
        }
    }

    pub(super) fn set_peer(&self, peer: ActorRef<Directory<A>>, version: u64) {
        *self.peer.write().unwrap_or_else(PoisonError::into_inner) = Some((peer, version));
    }

    /// Returns the directory of the owner in another theater, if it is that of the present view.
    fn peer(&self) -> Option<(ActorRef<Directory<A>>, u64)> {
        let cached = *self.peer.read().unwrap_or_else(PoisonError::into_inner);
        cached.filter(|(peer, version)| *version == self.shared.version() && !peer.is_stopped())
    }

    /// Returns the activation, if calls may be sent to it.
    #[inline]
    fn active(&self) -> Option<(ActorRef<A>, Arc<Active<A>>)> {
        let cached = self.active.read().unwrap_or_else(PoisonError::into_inner);
        let active = cached.as_ref()?;
        if let Some(actor) = active.for_calls() {
            return Some((actor, Arc::clone(active)));
        }
        drop(cached);
        self.forget();
        None
    }

    /// Forgets an activation that takes no calls any more.
    #[cold]
    fn forget(&self) {
        let mut cached = self.active.write().unwrap_or_else(PoisonError::into_inner);
        cached.take_if(|active| active.for_calls().is_none());
    }
}

/// A reference to the virtual actor of a kind and a key: see [`Cluster::actor`](crate::Cluster::actor). Cheap to clone.
///
/// It keeps no actor active, and stays valid when the actor is passivated or its member is lost. After the first call, calls in the theater of the
/// activation go to it directly.
///
/// It belongs to a theater, and cannot be sent to another one. Send the [key](Virtual::key), and let the receiver call
/// [`Cluster::actor`](crate::Cluster::actor).
///
/// # Examples
///
/// See [`VirtualActor`].
pub struct Virtual<A: VirtualActor> {
    target: Arc<Target<A>>,
}

impl<A: VirtualActor> Virtual<A> {
    pub(super) fn new(key: &str, directory: ActorRef<Directory<A>>, shared: Arc<Shared>) -> Virtual<A> {
        let (active, peer) = (RwLock::new(None), RwLock::new(None));
        Virtual { target: Arc::new(Target { key: key.into(), directory, active, peer, shared }) }
    }

    /// Returns the key.
    pub fn key(&self) -> &str {
        &self.target.key
    }

    fn to_directory<Mode>(&self) -> Route<A, Mode> {
        Route::directory(Arc::clone(&self.target))
    }

    /// Sends a message. The actor is activated if it is not active.
    ///
    /// The message is handled at most once. If no member runs the slot for [`VirtualOptions::wait`](crate::VirtualOptions::wait), it is a dead letter.
    pub fn tell<M: VirtualMessage<A, Mode>, Mode: 'static>(&self, message: M) {
        match self.target.active() {
            Some((actor, active)) => {
                actor.tell::<_, ReturningMode<Mode>>(Returning::new(message, Route::direct(active)));
            }
            None => match self.target.peer() {
                // The sender waits for a full link, and not the directory.
                Some((peer, version)) => {
                    peer.tell::<_, DeferredMode>(RoutedCall::<_, Mode>::new(self.key(), version, message))
                }
                None => {
                    let call = Returning::new(message, self.to_directory::<Mode>());
                    self.target.directory.tell::<_, DeferredMode>(call);
                }
            },
        }
    }

    /// Prepares a request, as [`ActorRef::ask`] does: `.await` the answer, or `.wait()` for it. The actor is activated if it is not active.
    ///
    /// # Errors
    /// When awaited: [`AskError`](playhouse_actor::AskError). It is `Unreachable` with the reason if no member has run the slot for
    /// [`VirtualOptions::wait`](crate::VirtualOptions::wait), and `Stopped` some time after this theater has left the cluster.
    pub fn ask<M: VirtualMessage<A, Mode>, Mode: 'static>(&self, message: M) -> Ask<Call<A, M, Mode>> {
        match self.target.active() {
            Some((actor, active)) => {
                actor.ask::<_, ReturningMode<Mode>>(Returning::new(message, Route::direct(active)))
            }
            None => {
                let call = Returning::new(message, self.to_directory::<Mode>());
                self.target.directory.ask::<_, DeferredMode>(call)
            }
        }
    }

    /// Prepares a request in a handler that is not async, as [`Context::ask`] does.
    ///
    /// # Errors
    /// The answer is the same as that of [`Virtual::ask`].
    pub fn ask_in<'a, B: Actor, M: VirtualMessage<A, Mode>, Mode: 'static>(
        &self,
        ctx: &'a mut Context<B>,
        message: M,
    ) -> ContextAsk<'a, B, Call<A, M, Mode>> {
        match self.target.active() {
            Some((actor, active)) => {
                ctx.ask::<_, ReturningMode<Mode>>(actor, Returning::new(message, Route::direct(active)))
            }
            None => {
                let call = Returning::new(message, self.to_directory::<Mode>());
                ctx.ask::<_, DeferredMode>(self.target.directory, call)
            }
        }
    }
}

impl<A: VirtualActor> Clone for Virtual<A> {
    fn clone(&self) -> Self {
        Virtual { target: Arc::clone(&self.target) }
    }
}

impl<A: VirtualActor> fmt::Debug for Virtual<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Virtual({}/{:?})", A::KIND, self.key())
    }
}
