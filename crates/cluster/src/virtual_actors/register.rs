//! The kinds of virtual actors of a member.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use playhouse_actor::wire::spawns;
use playhouse_actor::{ActorRef, Placement, ShortType, SpawnError, SpawnOptions, ToRecipient};
use playhouse_theater::PublishError;

use super::actor::{Activation, VirtualActor};
use super::directory::{Begin, Directory};
use super::options::VirtualOptions;
use super::virtual_ref::Virtual;
use crate::Cluster;
use crate::driver::slot_users::UseSlots;

/// Returns the name under which the directories of a kind are published.
pub(super) fn name_of<A: VirtualActor>() -> String {
    format!("playhouse.virtual.{}", A::KIND)
}

/// The reason why a kind of virtual actors was not registered.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::Actor;
/// # use playhouse_cluster::*;
/// # use playhouse_theater::Theater;
/// # use playhouse_toolbox::durable::MemoryStore;
/// struct Account;
/// impl Actor for Account {}
/// impl VirtualActor for Account {
///     const KIND: &'static str = "shop.Account";
/// }
///
/// # let theater = Theater::builder().listen("127.0.0.1:0").start()?;
/// # let cluster = Cluster::join(&theater, MemoryStore::new(), ClusterOptions::new())?;
/// cluster.register(VirtualOptions::new(), |_| Account)?;
/// let again = cluster.register(VirtualOptions::new(), |_| Account);
/// assert!(matches!(again, Err(RegisterError::Kind(_))));
/// # theater.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum RegisterError {
    /// The kind is registered already in this theater.
    Kind(PublishError),
    /// Actors of the type are mobile. A migration would bypass the owners of their slots. Holds the name of the type.
    Mobile(&'static str),
    /// The directory of the kind could not be started.
    Actor(SpawnError),
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegisterError::Kind(error) => write!(f, "the kind is registered already: {error}"),
            RegisterError::Mobile(actor) => {
                write!(f, "{} is mobile: a virtual actor does not migrate by itself", ShortType(actor))
            }
            RegisterError::Actor(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RegisterError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RegisterError::Kind(error) => Some(error),
            RegisterError::Mobile(_) => None,
            RegisterError::Actor(error) => Some(error),
        }
    }
}

impl Cluster {
    /// Lets this member activate actors of a kind. `factory` makes the actor of a key when a first message comes.
    ///
    /// All members register the same kinds, because each of them owns slots. Calls to a member that lacks the kind fail after
    /// [`VirtualOptions::wait`].
    ///
    /// The factory runs on the worker of the kind's directory, and must not block. An actor with durable state begins to load it in
    /// [`started`](playhouse_actor::Actor::started), and has guards on the messages that need it. The calls of an actor that
    /// ends before its first call fail, and it is activated again after 0.5 s.
    ///
    /// A member that leaves the cluster and joins again registers its kinds anew.
    ///
    /// # Errors
    /// The kind is registered already, the actor is mobile, or the directory could not be started.
    pub fn register<A: VirtualActor>(
        &self,
        options: VirtualOptions,
        factory: impl Fn(&Activation) -> A + Send + Sync + 'static,
    ) -> Result<(), RegisterError> {
        if spawns().any(|spawns| (spawns.actor)() == TypeId::of::<A>() && spawns.moves.is_some()) {
            return Err(RegisterError::Mobile(std::any::type_name::<A>()));
        }
        let directory = Directory::new(self, options, Box::new(factory));
        let placement = SpawnOptions::new().placement(Placement::Spread).name(name_of::<A>());
        let directory = self.theater.system().try_spawn_with(placement, directory).map_err(RegisterError::Actor)?;
        if let Err(error) = self.theater.publish(name_of::<A>(), directory) {
            directory.stop();
            return Err(RegisterError::Kind(error));
        }
        self.kinds.set::<A, _>(directory);
        directory.tell(Begin);
        self.member.tell(UseSlots(directory.recipient()));
        Ok(())
    }

    /// Returns the reference to the actor with this key. It needs no actor to be active, and activates none.
    ///
    /// # Panics
    /// If the kind was not [registered](Cluster::register) in this theater.
    #[track_caller]
    pub fn actor<A: VirtualActor>(&self, key: impl AsRef<str>) -> Virtual<A> {
        let Some(directory) = self.kinds.get::<A, ActorRef<Directory<A>>>() else {
            panic!("the kind {:?} is not registered in this member: call `cluster.register` first", A::KIND)
        };
        Virtual::new(key.as_ref(), directory, Arc::clone(&self.shared))
    }
}
