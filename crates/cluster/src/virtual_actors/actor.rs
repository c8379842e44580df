//! The trait of virtual actors, and what their factories and hooks get.

use std::fmt;
use std::sync::Arc;

use playhouse_actor::wire::Transferable;
use playhouse_actor::{Actor, Context, HandledBy, Message};

/// An actor that is activated under keys: see [`Cluster::register`](crate::Cluster::register).
///
/// A mobile actor cannot be virtual, because a migration would bypass the owner of its slot.
///
/// # Examples
///
/// ```
/// use playhouse_actor::wire::WireForm;
/// use playhouse_actor::{Actor, Context, Handler, Message};
/// use playhouse_cluster::{Cluster, ClusterOptions, VirtualActor, VirtualOptions, virtual_messages};
/// use playhouse_theater::Theater;
/// use playhouse_toolbox::durable::MemoryStore;
/// use serde::{Deserialize, Serialize};
///
/// struct Account {
///     owner: String,
///     sum: u64,
/// }
///
/// impl Actor for Account {}
///
/// impl VirtualActor for Account {
///     const KIND: &'static str = "shop.Account";
/// }
///
/// #[derive(Serialize, Deserialize)]
/// struct Deposit(u64);
///
/// impl Message for Deposit {
///     type Reply = u64;
///     const WIRE: Option<WireForm<Self>> = Some(WireForm::of());
/// }
///
/// impl Handler<Deposit> for Account {
///     fn handle(&mut self, Deposit(amount): Deposit, _: &mut Context<Self>) -> u64 {
///         self.sum += amount;
///         self.sum
///     }
/// }
///
/// virtual_messages!(Account: Deposit);
///
/// let theater = Theater::builder().listen("127.0.0.1:0").start()?;
/// let cluster = Cluster::join(&theater, MemoryStore::new(), ClusterOptions::new().slots(64))?;
/// cluster.register(VirtualOptions::new(), |activation| Account { owner: activation.key().to_owned(), sum: 0 })?;
///
/// let account = cluster.actor::<Account>("42");
/// account.tell(Deposit(1));
/// assert_eq!(account.ask(Deposit(2)).wait()?, 3);
/// # cluster.leave().wait()?;
/// # theater.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "the actor `{Self}` is not virtual",
    label = "no virtual actor",
    note = "write `impl VirtualActor for {Self}` with the name of its kind"
)]
pub trait VirtualActor: Actor {
    /// The name of the kind: the same in all members, and in later versions of the program. The slot of a key depends on it.
    const KIND: &'static str;

    /// Called before the actor is stopped, because it was idle or its slot is handed over. No call runs after this hook has begun.
    ///
    /// The actor is stopped when `passivation` is dropped: at the end of the hook, or later if the actor keeps it while it saves its state.
    ///
    /// The hook is not called when the actor crashes, when its member is declared dead, or when a handler takes longer than
    /// [`VirtualOptions::passivation_max`](crate::VirtualOptions::passivation_max) during a hand-over. Save what must not be lost in the handlers.
    fn passivating(&mut self, _passivation: Passivation, _ctx: &mut Context<Self>) {}
}

/// A message that a virtual actor handles, and that can be sent to other theaters: implemented for all of them.
///
/// # Examples
///
/// ```
/// use playhouse_cluster::{Virtual, VirtualActor, VirtualMessage};
///
/// fn tell_all<A: VirtualActor, M: VirtualMessage<A, Mode> + Clone, Mode: 'static>(actors: &[Virtual<A>], message: M) {
///     actors.iter().for_each(|actor| actor.tell(message.clone()));
/// }
/// ```
pub trait VirtualMessage<A: VirtualActor, Mode>:
    Message<Reply: Transferable> + Transferable + HandledBy<A, Mode>
{
}

impl<A, M, Mode> VirtualMessage<A, Mode> for M
where
    A: VirtualActor,
    M: Message<Reply: Transferable> + Transferable + HandledBy<A, Mode>,
{
}

/// The activation of a virtual actor, for its factory.
///
/// # Examples
///
/// See [`VirtualActor`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activation {
    pub(super) key: Arc<str>,
    pub(super) slot: usize,
    pub(super) epoch: u64,
    pub(super) number: u64,
}

impl Activation {
    /// Returns the key of the actor.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the slot of the key.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Returns the epoch of the slot. It rises with each change of the owner.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the number of the activation in this theater. Later activations of one epoch have higher numbers.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// The reason why a virtual actor is passivated.
///
/// # Examples
///
/// See [`Passivation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PassivationReason {
    /// It has handled no call for [`VirtualOptions::idle`](crate::VirtualOptions::idle).
    Idle,
    /// Its slot is handed over to another member.
    HandOver,
}

/// The right of a virtual actor to end its passivation: the actor is stopped when this value is dropped.
///
/// # Examples
///
/// ```
/// use playhouse_actor::{Actor, Context};
/// use playhouse_cluster::{Passivation, VirtualActor};
/// use playhouse_toolbox::durable::Durable;
///
/// struct Account {
///     sum: Durable<u64>,
///     unsaved: u64,
/// }
///
/// impl Actor for Account {}
///
/// impl VirtualActor for Account {
///     const KIND: &'static str = "shop.Account";
///
///     fn passivating(&mut self, passivation: Passivation, ctx: &mut Context<Self>) {
///         let (unsaved, reason) = (std::mem::take(&mut self.unsaved), passivation.reason());
///         self.sum.update(|sum| *sum += unsaved).then(ctx, move |_, saved, _| {
///             if let Err(error) = saved {
///                 eprintln!("{reason:?}: {error}");
///             }
///             drop(passivation);
///         });
///     }
/// }
/// ```
#[must_use = "the actor is stopped when this value is dropped"]
pub struct Passivation {
    pub(super) reason: PassivationReason,
    pub(super) stop: Option<Box<dyn FnOnce() + Send>>,
}

impl Passivation {
    /// Returns the reason of the passivation.
    pub fn reason(&self) -> PassivationReason {
        self.reason
    }
}

impl Drop for Passivation {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop();
        }
    }
}

impl fmt::Debug for Passivation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Passivation({:?})", self.reason)
    }
}
