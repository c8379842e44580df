//! Mail that is forwarded to another theater.
//!
//! Envelopes at the stub of a remote actor become [`ForwardedMessage`]s: values that can be written, without their types.
//! A [`Forwarder`] takes them. The forwarders themselves are part of `playhouse-theater`.

use std::any::{TypeId, type_name};
use std::fmt;
use std::sync::Arc;

use playhouse_executor::{AwayCx, Lane, Undelivered, contained};
use serde::{Deserialize, Serialize};

use crate::actor::{Actor, ActorId, ActorState, Notify, Tell, Watcher, dead_letter};
use crate::answer::error::AskError;
use crate::answer::recall::Recall;
use crate::answer::reply_to::ReplyTo;
use crate::codec::{Codec, WireError};
use crate::message::Message;
use crate::message::decision::{About, Decision};

/// Writes a value.
pub type Write<'a> = &'a dyn Fn(Codec, &mut Vec<u8>) -> Result<(), WireError>;

/// Takes the answer to a request. If it is dropped, the asker gets the error that the receiver has stopped.
pub type TakeAnswer = Box<dyn FnOnce(Result<(Codec, &[u8]), AskError>) + Send>;

/// An item that can be forwarded to a remote actor.
pub enum ForwardedMessage<'a> {
    /// A message.
    Tell {
        /// The type of the actor.
        actor: TypeId,
        /// The type of the message.
        message: TypeId,
        /// The name of the message's type in reports.
        name: &'static str,
        /// The lane of the message.
        lane: Lane,
        /// Writes the message.
        write: Write<'a>,
    },
    /// A message whose answer is awaited.
    Request {
        /// The type of the actor.
        actor: TypeId,
        /// The type of the message.
        message: TypeId,
        /// The name of the message's type in reports.
        name: &'static str,
        /// Writes the message.
        write: Write<'a>,
        /// The recall of the request, if its asker may take it back.
        recall: Option<Arc<Recall>>,
        /// Takes the answer.
        answer: TakeAnswer,
    },
    /// A stop of the actor: now, or behind earlier mail.
    Stop {
        /// `true` if the stop queues behind earlier mail.
        drain: bool,
    },
    /// A kill of the actor, without its hook.
    Kill,
    /// A decision of the actor's supervisor.
    Verdict {
        /// The type of the actor.
        actor: TypeId,
        /// The name of the actor's type in reports.
        name: &'static str,
        /// The numbers of the decision and its crash.
        about: About,
        /// The decision.
        verdict: Decision<Write<'a>>,
    },
    /// The beginning of a watch on the actor.
    Watch {
        /// The watcher.
        watcher: Watcher,
        /// Notifies the watcher.
        notify: Tell,
    },
    /// The end of a watch on the actor.
    Unwatch {
        /// The watcher.
        watcher: Watcher,
    },
    /// A question of a theater for the actor's location, behind all mail that the theater has sent to the actor.
    Marker(Marker),
}

/// The origin of a [`Marker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The theater of the stub.
    pub theater: u64,
    /// The stub's slot in that theater.
    pub slot: u64,
    /// The incarnation of the slot.
    pub incarnation: u64,
    /// The number of the stub's reroute that the marker belongs to.
    pub reroute: u64,
    /// Proves to the theater that the marker is its own.
    pub capability: u64,
}

/// A marker takes the route of an actor's mail, from a stub whose route is going to change. When it reaches the actor,
/// all mail sent before it has reached the actor, too.
pub struct Marker {
    /// The stub, and the reroute that the marker belongs to.
    pub origin: Origin,
    /// The number of links that it has come over.
    pub hops: u16,
    /// Reports that the marker has reached this actor, through the answer.
    pub here: Box<dyn FnOnce(ActorId, TakeAnswer) + Send>,
    /// Takes the actor's location.
    pub answer: TakeAnswer,
}

/// Forwards mail to a remote actor.
pub trait Forwarder: Send + Sync + 'static {
    /// Forwards one item. On an error it was not sent, and an asker that waits for an answer was notified.
    ///
    /// # Errors
    /// The item has no wire form, or the route is closed.
    fn carry(&self, forwarded: ForwardedMessage<'_>) -> Result<(), WireError>;

    /// Notes that this forwarder is the route of the stub `id` from now on. Called on the stage of the stub.
    fn is_route_from(&self, _id: ActorId) {}

    /// Returns the watchers in the other theater, because the actor has arrived at the stub of this forwarder: they
    /// watch it in this theater now.
    fn take_watchers(&self) -> Vec<(Watcher, Notify)> {
        Vec::new()
    }

    /// Returns the forwarder itself, to find out its type.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// The state of a cell with the forwarder to the actor's theater, if the actor is not in this one.
pub(crate) trait HasForwarder {
    fn away(&mut self) -> &mut Option<Arc<dyn Forwarder>>;

    fn forwarder(&mut self) -> Result<&dyn Forwarder, WireError> {
        self.away().as_deref().ok_or_else(|| WireError::new("nobody knows where the actor is"))
    }
}

/// Returns the state of a stub's cell.
pub(crate) fn forwarding<E: HasForwarder + Default>(forwarder: Arc<dyn Forwarder>) -> E {
    let mut extra = E::default();
    *extra.away() = Some(forwarder);
    extra
}

/// Wraps the user's code that writes a value: a panic in it becomes an error like any other.
pub(crate) fn guarded(
    write: impl Fn(Codec, &mut Vec<u8>) -> Result<(), WireError>,
) -> impl Fn(Codec, &mut Vec<u8>) -> Result<(), WireError> {
    move |codec, out| contained(|| write(codec, out)).unwrap_or_else(|| Err(WireError::new("its `Serialize` panicked")))
}

pub(crate) fn writer<M: Message>(message: &M) -> impl Fn(Codec, &mut Vec<u8>) -> Result<(), WireError> {
    move |codec, out| match const { &M::WIRE } {
        Some(form) => form.write(message, codec, out),
        None => Err(WireError::new(format!("the message {} has no wire form", type_name::<M>()))),
    }
}

/// Forwards a message.
pub(crate) fn send_on<A: Actor, M: Message>(message: &M, cx: &mut AwayCx<ActorState<A>>) {
    let (lane, write) = (cx.lane(), &writer(message));
    let forwarded = ForwardedMessage::Tell {
        actor: TypeId::of::<A>(),
        message: TypeId::of::<M>(),
        name: type_name::<M>(),
        lane,
        write,
    };
    if carried_by(cx.extra().forwarder(), forwarded).is_err() {
        dead_letter::<A, M>(Undelivered::Unreachable);
    }
}

#[inline(never)]
fn carried_by(forwarder: Result<&dyn Forwarder, WireError>, forwarded: ForwardedMessage<'_>) -> Result<(), WireError> {
    forwarder?.carry(forwarded)
}

/// Forwards a request.
pub(crate) fn ask_on<A: Actor, M: Message>(message: &M, reply: ReplyTo<M::Reply>, cx: &mut AwayCx<ActorState<A>>) {
    let Some(recall) = reply.leave() else { return };
    let answer = move |answer: Result<(Codec, &[u8]), AskError>| {
        let read = |(codec, bytes)| match const { &M::WIRE } {
            Some(form) => form.read_answer(bytes, codec).map_err(|error| AskError::Unreachable(error.to_string())),
            None => Err(AskError::Unreachable("the message has no wire form".to_owned())),
        };
        reply.send(answer.and_then(read));
    };
    let write = writer(message);
    let forwarded = ForwardedMessage::Request {
        actor: TypeId::of::<A>(),
        message: TypeId::of::<M>(),
        name: type_name::<M>(),
        write: &write,
        recall,
        answer: Box::new(answer),
    };
    // On an error, the answer has been given it already.
    let _ = carried_by(cx.extra().forwarder(), forwarded);
}

/// Forwards an item that is neither a message nor a request.
pub(crate) fn carry<A: Actor>(
    forwarded: ForwardedMessage<'_>,
    cx: &mut AwayCx<ActorState<A>>,
) -> Result<(), WireError> {
    carried_by(cx.extra().forwarder(), forwarded)
}

impl fmt::Debug for ForwardedMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ForwardedMessage::Tell { name, .. } => write!(f, "Tell({name})"),
            ForwardedMessage::Request { name, .. } => write!(f, "Request({name})"),
            ForwardedMessage::Stop { drain } => write!(f, "Stop {{ drain: {drain} }}"),
            ForwardedMessage::Kill => f.write_str("Kill"),
            ForwardedMessage::Verdict { name, .. } => write!(f, "Verdict({name})"),
            ForwardedMessage::Watch { watcher, .. } => write!(f, "Watch({watcher:?})"),
            ForwardedMessage::Unwatch { watcher } => write!(f, "Unwatch({watcher:?})"),
            ForwardedMessage::Marker(marker) => write!(f, "Marker({:?})", marker.origin),
        }
    }
}
