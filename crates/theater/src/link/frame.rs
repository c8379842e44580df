//! Frames of the protocol between theaters: a head, and behind it bytes that only the types can read.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::time::Duration;

use playhouse_actor::away::{About, ActorLocation, Decision, Origin, Watched};
use playhouse_actor::wire::{Codec, SupervisorLink, WireError};
use playhouse_actor::{GroupName, Pace, StopReason};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::naming::{Birth, BirthName, Epoch, Host, SlotName};

/// Most waits in one frame, and most names in one question.
pub(crate) const WAITS_MAX: usize = 4_096;

/// Most kinds in a greeting: messages of remote actors, and remote actors that can be started, in one program.
pub(crate) const KINDS_MAX: usize = 8 * 1024;
/// Maximum size of a greeting in bytes: room for [`KINDS_MAX`] kinds with names of about 120 bytes.
pub(crate) const GREETING_BYTES_MAX: u32 = 1024 * 1024;
/// Most theaters that one is linked with, and that a greeting names.
pub(crate) const THEATERS_MAX: usize = 4 * 1024;
/// Most theaters that a search names: all with a link to the locating theater, and itself.
pub(crate) const LOCATE_THEATERS_MAX: usize = THEATERS_MAX + 1;
/// Most actors that are located together.
pub(crate) const LOST_ACTORS_MAX: usize = 4 * 1024;
/// Most actors that one frame notes.
pub(crate) const NOTED_MAX: usize = 1_024;
/// Most links that a marker goes over. Routes lead to later residences of an actor. Therefore a marker comes to a theater twice at most: to its
/// sender, and to the theater that the actor has come back to. A marker that goes over more links is in a circle.
pub(crate) const HOPS_MAX: u16 = 2 * THEATERS_MAX as u16;

/// The number that one end has given to an actor of the other end.
pub(crate) type Handle = u32;

/// The kind of a frame.
///
/// In the direction of a message, `to` is a handle of the sender's; kinds are positions in the receiver's list of
/// [`Kind`]s.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Head {
    /// A message follows.
    Tell { to: Handle, kind: u32, codec: Wire },
    /// A message follows, and the sender waits for the answer.
    Ask { to: Handle, kind: u32, codec: Wire, ask: u64 },
    /// An answer follows.
    Answer { ask: u64, codec: Wire },
    /// There is no answer; an `AskError` follows.
    Failed { ask: u64 },
    /// `handle` means the receiver's actor with this name.
    Name { handle: Handle, name: SlotName },
    /// Starts an actor, and `handle` means it; its state follows. A mobile actor was born at the sender, with this name, and has left it with this
    /// epoch.
    Spawn { handle: Handle, kind: u32, codec: Wire, born: SlotName, epoch: Epoch },
    /// The actor that was started as the receiver's `handle` has this name.
    Named { handle: Handle, name: SlotName },
    /// `Spawn` for a child of a supervisor at the sender: the supervisor's identity goes before the state.
    SpawnChild { handle: Handle, kind: u32, codec: Wire, born: SlotName, epoch: Epoch },
    /// The decision of the actor's supervisor about the crash with this number (0: about none); a new state may follow. The kind is that of its
    /// start.
    Verdict { to: Handle, kind: u32, codec: Wire, about: About, verdict: Decision<()> },
    /// The actor is to stop.
    Stop { to: Handle },
    /// The actor is to end without its hook.
    Kill { to: Handle },
    /// The sender watches the actor.
    Watch { to: Handle, watch: u64 },
    /// The sender does not watch the actor any more.
    Unwatch { to: Handle, watch: u64 },
    /// A watched actor has ended; its name, if that is known.
    Down { watch: u64, name: Option<String>, reason: StopReason },
    /// The sender's mail to the actor reroutes, and this asks for the actor's residence. `origin` is the asking stub, and `hops` the number of links
    /// that the marker has come over. The answer is an `ActorLocation`.
    Marker { to: Handle, ask: u64, origin: Origin, hops: u16 },
    /// An actor is to come: its birth name, the name of its stub at the sender, its metadata ([`MetadataForm`]), and its state. The answer is an
    /// `ActorLocation` or a text.
    Move { ask: u64, kind: u32, codec: Wire, born: BirthName, from: SlotName },
    /// The sender has committed the actor with this birth name. It begins at the receiver.
    Begin { born: BirthName },
    /// The sender's actor with this birth name does not come after all, nor does any actor that comes with it.
    Stays { born: BirthName },
    /// The receiver's actor with this birth name has begun at the sender.
    Begun { born: BirthName },
    /// The receiver's actor `handle` is in another theater.
    Moved { handle: Handle },
    /// Asks for an empty answer when all that was sent before this is in mailboxes.
    Fence { ask: u64 },
    /// The sender's actors have gone to other theaters: routes to them that lead over the sender are to change. The answer, after that, is the number
    /// of changed routes, a `u64`.
    Leaving { ask: u64 },
    /// Asks for the actor of this type that is published under this name. The answer is a `RefName`.
    Find { ask: u64, name: String, actor: String },
    /// The sender does not use these numbers any more. After an empty answer they may be given again.
    Release { ask: u64, handles: Vec<Handle> },
    /// The receiver's actors with these handles have ended.
    Ended { handles: Vec<Handle> },
    /// The theater `lost` is lost to the sender: asks whether the receiver knows these actors, which were in it or had been. They are given by birth
    /// name. Theaters that were `asked` already, the sender among them, answer for themselves. If it is `for_others`, the receiver asks the others,
    /// too. The answer is a [`LocateReply`].
    Locate {
        ask: u64,
        lost: u64,
        for_others: bool,
        #[serde(deserialize_with = "at_most::<_, _, LOCATE_THEATERS_MAX>")]
        asked: Vec<u64>,
        #[serde(deserialize_with = "at_most::<_, _, LOST_ACTORS_MAX>")]
        actors: Vec<BirthName>,
    },
    /// These actors of the receiver are about to leave the sender for the theater `to`. An empty answer follows when that is noted (see [`crate::migration::authority`]).
    Departs {
        ask: u64,
        to: Host,
        #[serde(deserialize_with = "at_most::<_, _, NOTED_MAX>")]
        actors: Vec<(SlotName, Epoch)>,
    },
    /// Asks for the waits of the receiver's actors, the birth names of the receiver's actors with these slots and incarnations, and the theaters of
    /// `actors`, by birth name. The answer is a `Said` (see [`crate::node::cycles`]).
    Waits {
        ask: u64,
        #[serde(deserialize_with = "at_most::<_, _, WAITS_MAX>")]
        names: Vec<(u64, u64)>,
        #[serde(deserialize_with = "at_most::<_, _, WAITS_MAX>")]
        actors: Vec<Birth>,
    },
    /// An ask of one of the receiver's actors is part of a cycle: the `Wait`, and the actors along the cycle, follow.
    Cycle,
    /// Asks for the load of the receiver. The answer is a number from 0 to 1.
    Load { ask: u64 },
    /// The sender is still running.
    Beat,
    /// The sender ends.
    Goodbye,
    /// `Move` for the `at`th member of a group that migrates in the group migration `of`: it comes when all have been sent.
    Member { of: u64, at: u32, kind: u32, codec: Wire, born: BirthName, from: SlotName },
    /// The `count` members of `group` that were sent in this group migration come, all of them or none. The answer is their `ActorLocation`s, or the
    /// position of a refused member and a text.
    Together { ask: u64, of: u64, group: GroupName, count: u32 },
    /// The members that were sent in this group migration do not come.
    Apart { of: u64 },
    /// The sender takes this request back, if no handler has begun it. With `for_cycle`, the request is part of a cycle, forwarded this number of
    /// times on its way from the receiver of this. The receiver answers `Failed` with [`AskError::Cycle`](playhouse_actor::AskError::Cycle), without
    /// a path, or `TooLate`.
    TakeBack { ask: u64, for_cycle: Option<u32> },
    /// A handler has begun the request that was to be taken back. It had been forwarded this number of times on its way from the receiver of this.
    TooLate { ask: u64, forwards: u32 },
}

/// The answer to [`Head::Locate`]: the known residence of each actor, if any.
#[derive(Serialize, Deserialize)]
pub(crate) struct LocateReply(
    #[serde(deserialize_with = "at_most::<_, _, LOST_ACTORS_MAX>")] pub(crate) Vec<Option<Whereabouts>>,
);

/// The knowledge of a theater about an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Whereabouts {
    /// The actor is in this theater, or in another theater that says so, or that cannot be asked.
    At(ActorLocation),
    /// The actor has gone to this theater, which does not claim to have it.
    Gone(u64),
}

/// [`Codec`] in its written form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Wire {
    Positional,
    Named,
}

impl From<Codec> for Wire {
    fn from(codec: Codec) -> Wire {
        match codec {
            Codec::Positional => Wire::Positional,
            Codec::Named => Wire::Named,
        }
    }
}

impl From<Wire> for Codec {
    fn from(wire: Wire) -> Codec {
        match wire {
            Wire::Positional => Codec::Positional,
            Wire::Named => Codec::Named,
        }
    }
}

/// The parts of a migrating actor besides its state.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MetadataForm {
    /// Its name in reports.
    pub(crate) name: Option<String>,
    /// Its knowledge of its supervisor.
    pub(crate) supervisor_link: Option<SupervisorLink>,
    pub(crate) watching: Vec<Watched>,
    pub(crate) last_timer: u64,
    pub(crate) timers: Vec<TimerForm>,
    pub(crate) receive_timeout: Option<Duration>,
    /// The address of its birth theater, if that is known.
    pub(crate) birth: Option<SocketAddr>,
    pub(crate) epoch: Epoch,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TimerForm {
    pub(crate) id: u64,
    pub(crate) left: Duration,
    pub(crate) pace: Pace,
    pub(crate) kept: bool,
    /// Its message, as in `Tell`.
    pub(crate) kind: u32,
    pub(crate) codec: Wire,
    pub(crate) message: Vec<u8>,
}

impl Head {
    /// Appends the head; the rest of the frame comes behind it.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        Codec::Positional.write(self, out)
    }

    /// Splits a frame into its head and the rest.
    pub(crate) fn read(frame: &[u8]) -> Result<(Head, &[u8]), WireError> {
        postcard::take_from_bytes(frame).map_err(|error| WireError::new(format!("a frame without a head: {error}")))
    }
}

/// A message that a theater takes for an actor, or (without a message) an actor that it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kind {
    pub(crate) actor: String,
    pub(crate) message: Option<String>,
    /// The fingerprint of the types; `None`: not known.
    pub(crate) schema: Option<u64>,
}

/// The first frame of either end on a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// The cluster of the theater. Only theaters of one cluster talk.
    pub(crate) cluster: String,
    /// The incarnation of the sending theater.
    pub(crate) incarnation: u64,
    /// The address at which it listens, if it does.
    pub(crate) listens: Option<SocketAddr>,
    /// The incarnation that is expected at the other end, and the packets received from it.
    pub(crate) resumes: Option<Resume>,
    /// Theaters that it has links with. If the called theater is one of them, the caller did not know it by this address.
    #[serde(deserialize_with = "at_most::<_, _, THEATERS_MAX>")]
    pub(crate) knows: Vec<u64>,
    /// Theaters that it had links with, and has given up, if it resumes nothing.
    #[serde(deserialize_with = "at_most::<_, _, THEATERS_MAX>")]
    pub(crate) lost: Vec<u64>,
    /// The messages and actors that it takes.
    #[serde(deserialize_with = "at_most::<_, _, KINDS_MAX>")]
    pub(crate) kinds: Vec<Kind>,
    /// The sender's number of the link: of the present link, or of the one that a first call is to make.
    pub(crate) link: Option<u64>,
}

/// Reads a list of at most `MAX` entries; the first one beyond that is an error.
pub(crate) fn at_most<'de, D: Deserializer<'de>, T: Deserialize<'de>, const MAX: usize>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    struct Entries<T, const MAX: usize>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Entries<T, MAX> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MAX} entries")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<T>, A::Error> {
            let mut all = Vec::new();
            while let Some(entry) = entries.next_element()? {
                if all.len() == MAX {
                    return Err(A::Error::invalid_length(MAX + 1, &self));
                }
                all.push(entry);
            }
            Ok(all)
        }
    }
    from.deserialize_seq(Entries::<T, MAX>(PhantomData))
}

/// The state from which a session resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Resume {
    /// The incarnation of the other end.
    pub(crate) incarnation: u64,
    /// The highest packet number received from it.
    pub(crate) received: u64,
    /// The number of this connection in the session.
    pub(crate) connection: u64,
    /// The number of the link at the other end, if the other end has told it. It may have another link by now.
    pub(crate) link: Option<u64>,
}

/// The called end's answer to a [`Hello`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The greeting of the called end.
    Hello(Hello),
    /// There is another connection between the two, or will be in a moment.
    Busy,
    /// The called theater, with this incarnation, has no link with the caller, and the caller has one with it.
    GivenUp(u64),
    /// The called end refuses the caller, for this reason.
    Refused(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(value: &impl Serialize) -> Vec<u8> {
        let mut bytes = Vec::new();
        Codec::Positional.write(value, &mut bytes).unwrap();
        bytes
    }

    /// Theaters of other versions read names as numbers.
    #[test]
    fn names_are_written_as_their_numbers() {
        let name = SlotName { slot: 300, incarnation: 1, capability: u64::MAX };
        let born = name.born_in(10);
        assert_eq!(bytes(&name), bytes(&(300_u64, 1_u64, u64::MAX)));
        assert_eq!(bytes(&born), bytes(&(10_u64, 300_u64, 1_u64, u64::MAX)));
        let mut head = Vec::new();
        Head::Begin { born }.write(&mut head).unwrap();
        assert_eq!(head[1..], bytes(&born));
    }
}
