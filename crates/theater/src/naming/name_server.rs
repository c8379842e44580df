//! Name servers: actors that know others by names.
//!
//! The runtime does not know them: a name server is an actor like any other, and its requests are messages.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use playhouse_actor::wire::{Remote, Spawns, WireForm, submit};
use playhouse_actor::{Actor, ActorId, ActorRef, AnyActor, Ask, AskError, Context, Handler, Message, Terminated};
use serde::{Deserialize, Serialize};

/// Most bytes of a name, in UTF-8.
const NAME_BYTES_MAX: usize = 255;
/// The default for the number of names that one server keeps.
const NAMES_MAX: usize = 1_000_000;

/// An actor that keeps names for actors of any type that is `#[actor(remote)]` or `#[actor(mobile)]`. It may run in any theater, and there may be
/// several; they know nothing of each other.
///
/// It is found like any other actor, by [`Theater::publish`](crate::Theater::publish) and [`Theater::find`](crate::Theater::find). The methods of
/// [`NameServerClient`] ask it; handlers that are not `async` use the messages [`PutName`], [`UpdateName`], [`GetName`] and [`RemoveName`].
///
/// It watches its known actors: the names of an actor are free again when the actor has ended, or its theater is lost. An actor that migrates keeps
/// its names, and a reference that was got before stays valid: no client has to look it up again. The program of the name server must know the types
/// of the actors.
///
/// A name has 1 to 255 bytes, of any characters. Each operation takes constant time.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use playhouse_theater::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Default, Serialize, Deserialize)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Serialize, Deserialize)]
/// # struct Add(u64);
/// # impl Message for Add {
/// #     type Reply = ();
/// #     const WIRE: Option<wire::WireForm<Self>> = Some(wire::WireForm::of());
/// # }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # remote!(mobile Counter: Add);
/// # let system = System::start()?;
/// let names = system.spawn(NameServer::new());
/// let counter = system.spawn(Counter::default());
/// names.put("counter", counter).wait()?;
/// assert_eq!(names.get::<Counter>("counter").wait()?, counter);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Serialize, Deserialize)]
pub struct NameServer {
    /// The known actors, as references of the theater that the server lives in.
    #[serde(skip)]
    names: HashMap<Arc<str>, AnyActor>,
    #[serde(skip)]
    names_of: HashMap<ActorId, HashSet<Arc<str>>>,
    names_max: usize,
}

impl Default for NameServer {
    fn default() -> NameServer {
        NameServer::new()
    }
}

/// The reason why a name server has not carried out a request.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use playhouse_theater::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Default, Serialize, Deserialize)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Serialize, Deserialize)]
/// # struct Add(u64);
/// # impl Message for Add {
/// #     type Reply = ();
/// #     const WIRE: Option<wire::WireForm<Self>> = Some(wire::WireForm::of());
/// # }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # remote!(mobile Counter: Add);
/// # let system = System::start()?;
/// # let names = system.spawn(NameServer::new());
/// let [first, second] = [(); 2].map(|()| system.spawn(Counter::default()));
/// names.put("counter", first).wait()?;
/// match names.put("counter", second).wait() {
///     Err(NameError::Taken { name, by }) => println!("{name} is the name of {by}"),
///     other => panic!("{other:?}"),
/// }
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum NameError {
    /// The name is malformed: a name has 1 to 255 bytes.
    Malformed {
        /// The number of bytes of the name.
        bytes: usize,
    },
    /// Another actor has the name.
    Taken {
        /// The name.
        name: String,
        /// The type of the actor with the name.
        by: String,
    },
    /// No actor has the name.
    Unknown {
        /// The name.
        name: String,
    },
    /// The actor with the name is of another type.
    WrongType {
        /// The name.
        name: String,
        /// The type that was asked for.
        expected: String,
        /// The type of the actor with the name.
        found: String,
    },
    /// The actor that was to have the name is known to have ended. (Before its end is known, it has the name.)
    Ended {
        /// The name.
        name: String,
    },
    /// The server is full.
    Full {
        /// The number of names that it keeps.
        names: usize,
    },
    /// The name server has not answered, for this reason. If the server or the asking theater does not know the type of the actor, that is
    /// [`AskError::Unreachable`], with the name of the type.
    NoAnswer(AskError),
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameError::Malformed { bytes } => {
                write!(f, "a name has 1 to {NAME_BYTES_MAX} bytes, and this one has {bytes}")
            }
            NameError::Taken { name, by } => write!(f, "the name {name:?} is taken by a {by}"),
            NameError::Unknown { name } => write!(f, "no actor is called {name:?}"),
            NameError::WrongType { name, expected, found } => {
                write!(f, "{name:?} is a {found}, and a {expected} was asked for")
            }
            NameError::Ended { name } => write!(f, "the actor for the name {name:?} has ended"),
            NameError::Full { names } => write!(f, "the name server is full: it keeps {names} names"),
            NameError::NoAnswer(why) => write!(f, "the name server has not answered: {why}"),
        }
    }
}

impl std::error::Error for NameError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            NameError::NoAnswer(why) => Some(why),
            _ => None,
        }
    }
}

impl NameServer {
    /// Returns a name server that keeps up to a million names.
    pub fn new() -> NameServer {
        NameServer::with_room_for(NAMES_MAX)
    }

    /// Returns a name server that keeps up to `names` names.
    pub fn with_room_for(names: usize) -> NameServer {
        NameServer { names: HashMap::new(), names_of: HashMap::new(), names_max: names }
    }

    /// Returns the actor with the name. The name is taken from an actor that has ended.
    fn bound(&mut self, name: &str) -> Option<AnyActor> {
        let actor = self.names.get(name).copied()?;
        if actor.is_stopped() {
            self.free(actor.id());
            return None;
        }
        Some(actor)
    }

    fn bind(&mut self, name: &str, actor: AnyActor, ctx: &mut Context<Self>) {
        let name: Arc<str> = name.into();
        self.names.insert(Arc::clone(&name), actor);
        self.names_of.entry(actor.id()).or_default().insert(name);
        ctx.watch(actor);
    }

    fn unbind(&mut self, name: &str, ctx: &mut Context<Self>) {
        let Some(actor) = self.names.remove(name) else { return };
        if let Some(names) = self.names_of.get_mut(&actor.id()) {
            names.remove(name);
            if names.is_empty() {
                self.names_of.remove(&actor.id());
                ctx.unwatch(actor);
            }
        }
    }

    /// Frees the names of an ended actor.
    fn free(&mut self, who: ActorId) {
        for name in self.names_of.remove(&who).unwrap_or_default() {
            self.names.remove(&name);
        }
    }

    /// Checks that `actor` may be called `name`, except for the present owner of the name.
    fn admit(&self, name: &str, actor: AnyActor) -> Result<(), NameError> {
        check(name)?;
        if actor.is_stopped() {
            return Err(NameError::Ended { name: name.to_owned() });
        }
        if self.names.len() >= self.names_max && !self.names.contains_key(name) {
            return Err(NameError::Full { names: self.names_max });
        }
        Ok(())
    }
}

fn check(name: &str) -> Result<(), NameError> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(NameError::Malformed { bytes: name.len() });
    }
    Ok(())
}

impl Actor for NameServer {
    fn terminated(&mut self, terminated: Terminated, _: &mut Context<Self>) {
        self.free(terminated.who);
    }
}

/// Asks a [`NameServer`] to call an actor by a free name. A repeated request for the same actor changes nothing.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use playhouse_theater::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Default, Serialize, Deserialize)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Serialize, Deserialize)]
/// # struct Add(u64);
/// # impl Message for Add {
/// #     type Reply = ();
/// #     const WIRE: Option<wire::WireForm<Self>> = Some(wire::WireForm::of());
/// # }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # remote!(mobile Counter: Add);
/// # let system = System::start()?;
/// # let names = system.spawn(NameServer::new());
/// let counter = system.spawn(Counter::default());
/// assert_eq!(names.ask(PutName::new("counter", counter)).wait()?, Ok(()));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PutName {
    name: String,
    actor: AnyActor,
}

impl PutName {
    /// Calls `actor` by `name`.
    pub fn new(name: impl Into<String>, actor: impl Into<AnyActor>) -> PutName {
        PutName { name: name.into(), actor: actor.into() }
    }
}

/// Asks a [`NameServer`] to call an actor by a name, even if another actor has it.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use playhouse_theater::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Default, Serialize, Deserialize)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Serialize, Deserialize)]
/// # struct Add(u64);
/// # impl Message for Add {
/// #     type Reply = ();
/// #     const WIRE: Option<wire::WireForm<Self>> = Some(wire::WireForm::of());
/// # }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # remote!(mobile Counter: Add);
/// # let system = System::start()?;
/// # let names = system.spawn(NameServer::new());
/// let [first, second] = [(); 2].map(|()| system.spawn(Counter::default()));
/// names.ask(PutName::new("counter", first)).wait()??;
/// assert_eq!(names.ask(UpdateName::new("counter", second)).wait()?, Ok(()));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpdateName {
    name: String,
    actor: AnyActor,
}

impl UpdateName {
    /// Calls `actor` by `name`.
    pub fn new(name: impl Into<String>, actor: impl Into<AnyActor>) -> UpdateName {
        UpdateName { name: name.into(), actor: actor.into() }
    }
}

/// Asks a [`NameServer`] for the actor with a name.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use playhouse_theater::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Default, Serialize, Deserialize)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Serialize, Deserialize)]
/// # struct Add(u64);
/// # impl Message for Add {
/// #     type Reply = ();
/// #     const WIRE: Option<wire::WireForm<Self>> = Some(wire::WireForm::of());
/// # }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # remote!(mobile Counter: Add);
/// # let system = System::start()?;
/// # let names = system.spawn(NameServer::new());
/// # let counter = system.spawn(Counter::default());
/// # names.put("counter", counter).wait()?;
/// let found = names.ask(GetName::of::<Counter>("counter")).wait()??;
/// assert_eq!(found.downcast::<Counter>(), Ok(counter));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GetName {
    name: String,
    /// The required type of the actor.
    actor: Option<String>,
}

impl GetName {
    /// Asks for the actor called `name`, which must be an `A`. The answer can be [taken for one](AnyActor::downcast).
    pub fn of<A: Remote>(name: impl Into<String>) -> GetName {
        GetName { name: name.into(), actor: Some(A::wire_name().to_owned()) }
    }

    /// Asks for the actor called `name`, of any type.
    pub fn any(name: impl Into<String>) -> GetName {
        GetName { name: name.into(), actor: None }
    }
}

/// Asks a [`NameServer`] to forget a name. The answer is whether an actor had it.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use playhouse_theater::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Default, Serialize, Deserialize)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Serialize, Deserialize)]
/// # struct Add(u64);
/// # impl Message for Add {
/// #     type Reply = ();
/// #     const WIRE: Option<wire::WireForm<Self>> = Some(wire::WireForm::of());
/// # }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # remote!(mobile Counter: Add);
/// # let system = System::start()?;
/// # let names = system.spawn(NameServer::new());
/// # names.put("counter", system.spawn(Counter::default())).wait()?;
/// assert!(names.ask(RemoveName::new("counter")).wait()?, "it had the name");
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemoveName {
    name: String,
}

impl RemoveName {
    /// Frees the name `name`.
    pub fn new(name: impl Into<String>) -> RemoveName {
        RemoveName { name: name.into() }
    }
}

/// Asks a [`NameServer`] for the number of its names.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use playhouse_theater::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Default, Serialize, Deserialize)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Serialize, Deserialize)]
/// # struct Add(u64);
/// # impl Message for Add {
/// #     type Reply = ();
/// #     const WIRE: Option<wire::WireForm<Self>> = Some(wire::WireForm::of());
/// # }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # remote!(mobile Counter: Add);
/// # let system = System::start()?;
/// # let names = system.spawn(NameServer::new());
/// names.put("counter", system.spawn(Counter::default())).wait()?;
/// assert_eq!(names.ask(CountNames).wait()?, 1);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CountNames;

macro_rules! message {
    ($message:ty, $name:literal -> $reply:ty) => {
        impl Message for $message {
            type Reply = $reply;
            const WIRE: Option<WireForm<$message>> = Some(WireForm::named($name));
        }
    };
}

message!(PutName, "playhouse.PutName" -> Result<(), NameError>);
message!(UpdateName, "playhouse.UpdateName" -> Result<(), NameError>);
message!(GetName, "playhouse.GetName" -> Result<AnyActor, NameError>);
message!(RemoveName, "playhouse.RemoveName" -> bool);
message!(CountNames, "playhouse.CountNames" -> u64);

impl Remote for NameServer {
    fn wire_name() -> &'static str {
        "playhouse.NameServer"
    }
}

playhouse_actor::remote!(also NameServer: PutName, UpdateName, GetName, RemoveName, CountNames);
submit! { Spawns::of::<NameServer>() }

impl Handler<PutName> for NameServer {
    fn handle(&mut self, PutName { name, actor }: PutName, ctx: &mut Context<Self>) -> Result<(), NameError> {
        let known = self.bound(&name);
        self.admit(&name, actor)?;
        match known {
            None => self.bind(&name, actor, ctx),
            Some(known) if known == actor => {}
            Some(known) => return Err(NameError::Taken { name, by: known.type_name().to_owned() }),
        }
        Ok(())
    }
}

impl Handler<UpdateName> for NameServer {
    fn handle(&mut self, UpdateName { name, actor }: UpdateName, ctx: &mut Context<Self>) -> Result<(), NameError> {
        let known = self.bound(&name);
        self.admit(&name, actor)?;
        if known != Some(actor) {
            self.unbind(&name, ctx);
            self.bind(&name, actor, ctx);
        }
        Ok(())
    }
}

impl Handler<GetName> for NameServer {
    fn handle(&mut self, GetName { name, actor }: GetName, _: &mut Context<Self>) -> Result<AnyActor, NameError> {
        let Some(found) = self.bound(&name) else { return Err(NameError::Unknown { name }) };
        match actor {
            Some(expected) if expected != found.type_name() => {
                Err(NameError::WrongType { name, expected, found: found.type_name().to_owned() })
            }
            _ => Ok(found),
        }
    }
}

impl Handler<RemoveName> for NameServer {
    fn handle(&mut self, RemoveName { name }: RemoveName, ctx: &mut Context<Self>) -> bool {
        let known = self.bound(&name).is_some();
        self.unbind(&name, ctx);
        known
    }
}

impl Handler<CountNames> for NameServer {
    fn handle(&mut self, _: CountNames, _: &mut Context<Self>) -> u64 {
        self.names.len() as u64
    }
}

/// The requests to a reference to a [`NameServer`].
///
/// Nothing is sent before the answer is [waited for](NameAsk::wait) or awaited.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use playhouse_theater::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Default, Serialize, Deserialize)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Serialize, Deserialize)]
/// # struct Add(u64);
/// # impl Message for Add {
/// #     type Reply = ();
/// #     const WIRE: Option<wire::WireForm<Self>> = Some(wire::WireForm::of());
/// # }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # remote!(mobile Counter: Add);
/// # let system = System::start()?;
/// # let names = system.spawn(NameServer::new());
/// let [first, second] = [(); 2].map(|()| system.spawn(Counter::default()));
/// names.put("counter", first).wait()?;        // an error if another actor has the name
/// names.update("counter", second).wait()?;    // takes the name from `first`
/// assert_eq!(names.get::<Counter>("counter").wait()?, second);
/// assert!(names.remove("counter").wait()?);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait NameServerClient {
    /// Calls `actor` by a free `name`.
    ///
    /// # Errors
    /// When awaited: another actor has the name ([`NameError::Taken`]), or the actor cannot have one.
    fn put<A: Remote>(self, name: impl Into<String>, actor: ActorRef<A>) -> NameAsk<PutName, ()>;

    /// Calls `actor` by `name`, even if another actor has it.
    ///
    /// # Errors
    /// When awaited: the actor cannot have a name.
    fn update<A: Remote>(self, name: impl Into<String>, actor: ActorRef<A>) -> NameAsk<UpdateName, ()>;

    /// Returns the actor that is called `name`.
    ///
    /// # Errors
    /// When awaited: no actor has the name ([`NameError::Unknown`]), or an actor of another type has it ([`NameError::WrongType`]).
    fn get<A: Remote>(self, name: impl Into<String>) -> NameAsk<GetName, ActorRef<A>>;

    /// Frees a name. Returns false if no actor had it.
    ///
    /// # Errors
    /// When awaited: [`NameError::NoAnswer`].
    fn remove(self, name: impl Into<String>) -> NameAsk<RemoveName, bool>;
}

impl NameServerClient for ActorRef<NameServer> {
    fn put<A: Remote>(self, name: impl Into<String>, actor: ActorRef<A>) -> NameAsk<PutName, ()> {
        NameAsk { ask: self.ask(PutName::new(name, actor)), read: |answer| answer }
    }

    fn update<A: Remote>(self, name: impl Into<String>, actor: ActorRef<A>) -> NameAsk<UpdateName, ()> {
        NameAsk { ask: self.ask(UpdateName::new(name, actor)), read: |answer| answer }
    }

    fn get<A: Remote>(self, name: impl Into<String>) -> NameAsk<GetName, ActorRef<A>> {
        let read = |answer: Result<AnyActor, NameError>| {
            // The server has compared the types by the same names.
            let wrong =
                |error: playhouse_actor::WrongType| NameError::NoAnswer(AskError::Unreachable(error.to_string()));
            answer?.downcast().map_err(wrong)
        };
        NameAsk { ask: self.ask(GetName::of::<A>(name)), read }
    }

    fn remove(self, name: impl Into<String>) -> NameAsk<RemoveName, bool> {
        NameAsk { ask: self.ask(RemoveName::new(name)), read: Ok }
    }
}

/// A request to a name server that was not sent yet: `.wait()` for the answer in a thread that runs no actor, `.await` it in async code.
///
/// # Cancel safety
/// The same as for an [`Ask`]: a request that is dropped while it waits may have been carried out or not.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use playhouse_theater::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Default, Serialize, Deserialize)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Serialize, Deserialize)]
/// # struct Add(u64);
/// # impl Message for Add {
/// #     type Reply = ();
/// #     const WIRE: Option<wire::WireForm<Self>> = Some(wire::WireForm::of());
/// # }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # remote!(mobile Counter: Add);
/// # let system = System::start()?;
/// # let names = system.spawn(NameServer::new());
/// # use std::time::Duration;
/// let counter = system.spawn(Counter::default());
/// names.put("counter", counter).within(Duration::from_secs(5)).wait()?;
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is sent before it is awaited or waited for"]
pub struct NameAsk<M: Message, T> {
    ask: Ask<M>,
    read: fn(M::Reply) -> Result<T, NameError>,
}

impl<M: Message, T> fmt::Debug for NameAsk<M, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NameAsk")
    }
}

impl<M: Message, T> NameAsk<M, T> {
    /// Fails with [`NameError::NoAnswer`] if the answer takes longer. Millisecond resolution.
    pub fn within(self, deadline: Duration) -> Self {
        NameAsk { ask: self.ask.within(deadline), ..self }
    }

    /// Asks, and blocks this thread until the answer has come.
    ///
    /// # Errors
    /// The request was not carried out, for the returned reason.
    ///
    /// # Panics
    /// Inside an actor, because it would block the worker. Use `.await` in an actor, or the messages with
    /// [`Context::ask`](playhouse_actor::Context::ask).
    #[track_caller]
    pub fn wait(self) -> Result<T, NameError> {
        self.ask.wait().map_err(NameError::NoAnswer).and_then(self.read)
    }
}

impl<M: Message, T: 'static> IntoFuture for NameAsk<M, T> {
    type Output = Result<T, NameError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.ask.await.map_err(NameError::NoAnswer).and_then(self.read) })
    }
}
