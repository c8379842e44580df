//! Name servers: actors that know others by names.
//!
//! Nothing here is known to the runtime: a name server is an actor like any other, and what it is asked are messages.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use playhouse_actor::wire::{Remote, Spawns, WireForm, submit};
use playhouse_actor::{Actor, ActorId, ActorRef, AnyActor, Ask, AskError, Context, Handler, Message, Terminated};
use serde::{Deserialize, Serialize};

/// Bytes that a name may have, in UTF-8.
const NAME_BYTES_MAX: usize = 255;
/// Names that one server keeps, unless it is told otherwise.
const NAMES_MAX: usize = 1_000_000;

/// An actor that keeps names for actors of any type that is `#[actor(remote)]` or `#[actor(mobile)]`. It may run in any
/// theater, and there may be several; they know nothing of each other.
///
/// It is found like any other actor, by [`Theater::publish`](crate::Theater::publish) and
/// [`Theater::find`](crate::Theater::find), and asked with the methods of [`Names`]; in handlers that are not `async`, with
/// the messages [`PutName`], [`UpdateName`], [`GetName`] and [`RemoveName`].
///
/// It watches whom it knows: the names of an actor are free again when that has ended, or its theater is lost. An actor that
/// moves keeps its names, and a reference that was got before stays good: nobody has to look it up again. The program that
/// the name server runs in must know the types of the actors.
///
/// A name has 1 to 255 bytes, of any characters. Each operation takes constant time.
#[derive(Debug, Serialize, Deserialize)]
pub struct NameServer {
    /// In the theater that it lives in.
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

/// Why a name server has not done what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum NameError {
    /// It is no name: one has 1 to 255 bytes.
    Malformed {
        /// How many it has.
        bytes: usize,
    },
    /// Another actor has the name.
    Taken {
        /// The name.
        name: String,
        /// The type of who has it.
        by: String,
    },
    /// Nobody has the name.
    Unknown {
        /// The name.
        name: String,
    },
    /// Who has the name is an actor of another type.
    WrongType {
        /// The name.
        name: String,
        /// The type that was asked for.
        expected: String,
        /// The type of who has it.
        found: String,
    },
    /// The actor that was to have the name is known to have ended. (Where it is not known yet, it has the name until it is.)
    Ended {
        /// The name.
        name: String,
    },
    /// The server keeps so many names already.
    Full {
        /// How many.
        names: usize,
    },
    /// The name server has not answered: why. Where it, or who asked, does not know the type of the actor, that is
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
            NameError::Unknown { name } => write!(f, "nobody is called {name:?}"),
            NameError::WrongType { name, expected, found } => {
                write!(f, "{name:?} is a {found}, and a {expected} was asked for")
            }
            NameError::Ended { name } => write!(f, "the actor that was to be called {name:?} has ended"),
            NameError::Full { names } => write!(f, "the name server keeps {names} names, and no more"),
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
    /// One that keeps up to a million names.
    pub fn new() -> NameServer {
        NameServer::with_room_for(NAMES_MAX)
    }

    /// One that keeps up to `names` names.
    pub fn with_room_for(names: usize) -> NameServer {
        NameServer { names: HashMap::new(), names_of: HashMap::new(), names_max: names }
    }

    /// Who has the name. It is taken from an actor that has ended.
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
        ctx.watch_any(actor);
    }

    fn unbind(&mut self, name: &str, ctx: &mut Context<Self>) {
        let Some(actor) = self.names.remove(name) else { return };
        if let Some(names) = self.names_of.get_mut(&actor.id()) {
            names.remove(name);
            if names.is_empty() {
                self.names_of.remove(&actor.id());
                ctx.unwatch_any(actor);
            }
        }
    }

    /// The names of who has ended are free.
    fn free(&mut self, who: ActorId) {
        for name in self.names_of.remove(&who).unwrap_or_default() {
            self.names.remove(&name);
        }
    }

    /// Whether `actor` may be called `name` as far as that goes.
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

/// Asks a [`NameServer`] to call an actor by a name that is free. Again, for the same actor, changes nothing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PutName {
    name: String,
    actor: AnyActor,
}

impl PutName {
    /// `actor` is to be called `name`.
    pub fn new(name: impl Into<String>, actor: impl Into<AnyActor>) -> PutName {
        PutName { name: name.into(), actor: actor.into() }
    }
}

/// Asks a [`NameServer`] to call an actor by a name, whoever had it before.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpdateName {
    name: String,
    actor: AnyActor,
}

impl UpdateName {
    /// `actor` is to be called `name`.
    pub fn new(name: impl Into<String>, actor: impl Into<AnyActor>) -> UpdateName {
        UpdateName { name: name.into(), actor: actor.into() }
    }
}

/// Asks a [`NameServer`] who has a name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GetName {
    name: String,
    /// The actor must be of this type.
    actor: Option<String>,
}

impl GetName {
    /// Who is called `name`, and is an `A`? The answer can be [taken for one](AnyActor::downcast).
    pub fn of<A: Remote>(name: impl Into<String>) -> GetName {
        GetName { name: name.into(), actor: Some(A::wire_name().to_owned()) }
    }

    /// Who is called `name`, of whatever type?
    pub fn any(name: impl Into<String>) -> GetName {
        GetName { name: name.into(), actor: None }
    }
}

/// Asks a [`NameServer`] to forget a name. The answer is whether somebody had it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemoveName {
    name: String,
}

impl RemoveName {
    /// Nobody is to be called `name`.
    pub fn new(name: impl Into<String>) -> RemoveName {
        RemoveName { name: name.into() }
    }
}

/// Asks a [`NameServer`] how many names it keeps.
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

/// What a reference to a [`NameServer`] is asked.
///
/// Nothing is sent before the answer is [waited for](NameAsk::wait) or awaited.
pub trait NameServerClient {
    /// Calls `actor` by a `name` that is free.
    ///
    /// # Errors
    /// When awaited: another actor has the name ([`NameError::Taken`]), or why it cannot have one.
    fn put<A: Remote>(self, name: impl Into<String>, actor: ActorRef<A>) -> NameAsk<PutName, ()>;

    /// Calls `actor` by `name`, whoever had it before.
    ///
    /// # Errors
    /// When awaited: why it cannot have a name.
    fn update<A: Remote>(self, name: impl Into<String>, actor: ActorRef<A>) -> NameAsk<UpdateName, ()>;

    /// The actor that is called `name`.
    ///
    /// # Errors
    /// When awaited: nobody has the name ([`NameError::Unknown`]), or an actor of another type
    /// ([`NameError::WrongType`]).
    fn get<A: Remote>(self, name: impl Into<String>) -> NameAsk<GetName, ActorRef<A>>;

    /// Takes a name back. False: nobody had it.
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

/// A question to a name server that was not sent yet: `.wait()` for the answer in a thread that runs no actor, `.await` it in
/// async code.
///
/// # Cancel safety
/// As that of an [`Ask`]: dropped while it waits, it may have been done or not.
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

    /// Asks, and blocks this thread until the answer is there.
    ///
    /// # Errors
    /// Why it was not done.
    ///
    /// # Panics
    /// Inside an actor: it would hold the worker. Use `.await` there, or the messages with
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
