//! Frames: what theaters say to each other. A head, and behind it what only the types know to read.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::time::Duration;

use crate::migration::authority::{Epoch, Host, NOTED_MAX};
use playhouse_actor::away::{About, ActorLocation, Decision, Origin, Watched};
use playhouse_actor::wire::{Codec, SupervisorLink, WireError};
use playhouse_actor::{GroupName, Pace, StopReason};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Waits that are told in one frame, and names that are asked about.
pub(crate) const WAITS_MAX: usize = 4_096;

/// Most kinds in a greeting: messages of remote actors, and remote actors that can be started, in one program.
pub(crate) const KINDS_MAX: usize = 8 * 1024;
/// Most theaters that one is linked with, and that a greeting names.
pub(crate) const THEATERS_MAX: usize = 4 * 1024;
/// Most theaters that a search names: all that its seeker is linked with, and itself.
pub(crate) const SEEKERS_MAX: usize = THEATERS_MAX + 1;
/// Most actors that are sought together.
pub(crate) const LOST_ACTORS_MAX: usize = 4 * 1024;
/// Most links that a marker goes over. Ways lead to where an actor went later, so a marker comes to a theater twice at most: where
/// it was sent from, and where the actor has come back to. A marker that goes over more goes round.
pub(crate) const HOPS_MAX: u16 = 2 * THEATERS_MAX as u16;

/// The number that one end has given to an actor of the other end.
pub(crate) type Handle = u32;

/// Slot, life and seal of an actor's place at the sender.
pub(crate) type RemoteSlot = (u64, u64, u64);

/// What a frame is about.
///
/// In the direction of a message, `to` is a handle of the sender's; kinds are positions in the receiver's list of
/// [`Kind`]s.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Head {
    /// A message follows.
    Tell { to: Handle, kind: u32, codec: Wire },
    /// A message follows whose answer is waited for.
    Ask { to: Handle, kind: u32, codec: Wire, ask: u64 },
    /// An answer follows.
    Answer { ask: u64, codec: Wire },
    /// There is no answer; an `AskError` follows.
    Failed { ask: u64 },
    /// `handle` means the receiver's actor with this name.
    Name { handle: Handle, slot: u64, incarnation: u64, capability: u64 },
    /// An actor is to be started, and `handle` means it; its state follows. One that is mobile was born at the sender, at this place, and has left from
    /// there with this epoch.
    Spawn { handle: Handle, kind: u32, codec: Wire, born: RemoteSlot, epoch: Epoch },
    /// The actor that was started as the receiver's `handle` has this place.
    Named { handle: Handle, slot: u64, incarnation: u64, capability: u64 },
    /// As `Spawn`, for a child of a supervisor of the sender's: who that is goes before the state.
    SpawnChild { handle: Handle, kind: u32, codec: Wire, born: RemoteSlot, epoch: Epoch },
    /// What the supervisor of the actor has decided, about the how manyth crash (0: about none); a new state may follow. The kind is that of its start.
    Verdict { to: Handle, kind: u32, codec: Wire, about: About, verdict: Decision<()> },
    /// The actor is to stop.
    Stop { to: Handle },
    /// The actor is to end without its hook.
    Kill { to: Handle },
    /// The sender wants to know of the actor's end.
    Watch { to: Handle, watch: u64 },
    /// It does not any more.
    Unwatch { to: Handle, watch: u64 },
    /// An actor that was watched has ended; what it was called, if that is known.
    Down { watch: u64, name: Option<String>, reason: StopReason },
    /// The sender's mail to the actor is to change its way: where is it? With the place that asks, and over how many links the
    /// marker has come before this one. A `Seat` is the answer.
    Marker { to: Handle, ask: u64, origin: Origin, hops: u16 },
    /// An actor is to come: the name that it was born with, that of its place at the sender, what it has besides its state ([`Trunk`]), and its
    /// state. A `Seat` or a text is the answer.
    Move {
        ask: u64,
        kind: u32,
        codec: Wire,
        theater: u64,
        slot: u64,
        incarnation: u64,
        capability: u64,
        from: RemoteSlot,
    },
    /// The sender has left the actor that was born with this name. It begins at the receiver.
    Begin { theater: u64, slot: u64, incarnation: u64, capability: u64 },
    /// The sender's actor that was born with this name does not come after all, and nobody does who comes with it.
    Stays { theater: u64, slot: u64, incarnation: u64, capability: u64 },
    /// The receiver's actor that was born with this name has begun at the sender.
    Begun { theater: u64, slot: u64, incarnation: u64, capability: u64 },
    /// The receiver's actor that the receiver of this calls `handle` is elsewhere.
    Moved { handle: Handle },
    /// An answer with nothing in it is wanted when all that was sent before this is in mailboxes.
    Fence { ask: u64 },
    /// The sender's actors have gone elsewhere: ways to them that lead over the sender are to change. How many did, a `u64`, is
    /// the answer, when they have.
    Leaving { ask: u64 },
    /// Who is published under this name, as an actor of this type? A `RefName` is the answer.
    Find { ask: u64, name: String, actor: String },
    /// The sender does not call anybody by these numbers any more. An answer with nothing in it: they may be given again.
    Release { ask: u64, handles: Vec<Handle> },
    /// The receiver's actors that the receiver calls so have ended.
    Ended { handles: Vec<Handle> },
    /// The theater `lost` is lost to the sender: does the receiver know where these actors are, who were there or had been? By
    /// the names that they were born with: theater, slot, life, seal. Those that were `asked` already, the sender among them, speak for
    /// themselves; the others are to be asked, too, if it is `for_others`. [`Sightings`] are the answer.
    Locate {
        ask: u64,
        lost: u64,
        for_others: bool,
        #[serde(deserialize_with = "at_most::<_, _, SEEKERS_MAX>")]
        asked: Vec<u64>,
        #[serde(deserialize_with = "at_most::<_, _, LOST_ACTORS_MAX>")]
        actors: Vec<(u64, u64, u64, u64)>,
    },
    /// These actors of the receiver, by slot, life and seal, are about to leave the sender for the theater `to`. An answer with nothing in it is
    /// wanted when that is noted (see [`crate::migration::authority`]).
    Departs {
        ask: u64,
        to: Host,
        #[serde(deserialize_with = "at_most::<_, _, NOTED_MAX>")]
        actors: Vec<(u64, u64, u64, Epoch)>,
    },
    /// Asks for the waits of the receiver's actors, the birth names of the receiver's actors with these slots and lives, and the theaters of `actors`, by
    /// birth name. A `Said` is the answer (see [`crate::diagnostics::cycles`]).
    Waits {
        ask: u64,
        #[serde(deserialize_with = "at_most::<_, _, WAITS_MAX>")]
        names: Vec<(u64, u64)>,
        #[serde(deserialize_with = "at_most::<_, _, WAITS_MAX>")]
        actors: Vec<(u64, u64, u64)>,
    },
    /// An ask of one of the receiver's actors is part of a cycle: which `Wait`, and the actors along the cycle, follow.
    Cycle,
    /// How busy is the receiver? A number from 0 to 1 is the answer.
    Load { ask: u64 },
    /// The sender is still there.
    Beat,
    /// The sender ends.
    Goodbye,
    /// As `Move`, the `at`th member of a group that moves as the journey `of`: it comes when all have been sent.
    Member {
        of: u64,
        at: u32,
        kind: u32,
        codec: Wire,
        theater: u64,
        slot: u64,
        incarnation: u64,
        capability: u64,
        from: RemoteSlot,
    },
    /// The members that were sent as this journey come, all of them or none: so many, of which group. Their `Seat`s, or which of
    /// them does not and a text, are the answer.
    Together { ask: u64, of: u64, group: GroupName, count: u32 },
    /// The members that were sent as this journey do not come.
    Apart { of: u64 },
    /// The sender takes this request back, if no handler has begun it. With `for_cycle`, the request is part of a cycle, as one that was forwarded so often on
    /// its way from the receiver of this. The receiver answers `Failed` with [`AskError::Cycle`](playhouse_actor::AskError::Cycle), without a path, or `TooLate`.
    TakeBack { ask: u64, for_cycle: Option<u32> },
    /// A handler has begun the request that was to be taken back, when it had been forwarded so often on its way from the receiver of this.
    TooLate { ask: u64, forwards: u32 },
}

/// The answer to [`Head::Seek`]: what is known of each of the actors, if anything is.
#[derive(Serialize, Deserialize)]
pub(crate) struct LocateReply(
    #[serde(deserialize_with = "at_most::<_, _, LOST_ACTORS_MAX>")] pub(crate) Vec<Option<Whereabouts>>,
);

/// What a theater knows of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Whereabouts {
    /// It is here, or in another theater that says so, or that cannot be asked.
    At(ActorLocation),
    /// It has gone to this theater, which does not say that it is there.
    Gone(u64),
}

/// [`Codec`], as it is written.
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

/// What an actor that moves has besides its state.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MetadataForm {
    /// What it is called in reports.
    pub(crate) name: Option<String>,
    /// What it knows of its supervisor.
    pub(crate) supervisor_link: Option<SupervisorLink>,
    pub(crate) watching: Vec<Watched>,
    pub(crate) last_timer: u64,
    pub(crate) timers: Vec<PackedTimer>,
    pub(crate) receive_timeout: Option<Duration>,
    /// The address of the theater that it was born in, if that is known.
    pub(crate) birth: Option<SocketAddr>,
    pub(crate) epoch: Epoch,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PackedTimer {
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
    /// The fingerprint of the types; none: not known.
    pub(crate) schema: Option<u64>,
}

/// The first thing that either end says on a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// Only theaters of one cluster talk.
    pub(crate) cluster: String,
    /// Which theater this is, in which of its lives.
    pub(crate) incarnation: u64,
    /// Where it listens, if it does.
    pub(crate) listens: Option<SocketAddr>,
    /// The incarnation that is expected at the other end, and what was received from it.
    pub(crate) resumes: Option<Resume>,
    /// Whom it has links with: if it calls one of them, it does not know by this address whom it calls.
    #[serde(deserialize_with = "at_most::<_, _, THEATERS_MAX>")]
    pub(crate) knows: Vec<u64>,
    /// Where it resumes nothing: theaters that it had links with, and has given up.
    #[serde(deserialize_with = "at_most::<_, _, THEATERS_MAX>")]
    pub(crate) lost: Vec<u64>,
    /// What it takes.
    #[serde(deserialize_with = "at_most::<_, _, KINDS_MAX>")]
    pub(crate) kinds: Vec<Kind>,
    /// The number of the link at the end that says this: of the link that there is, or of the one that a first call is to make.
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

/// That a session goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Resume {
    /// Of the other end.
    pub(crate) incarnation: u64,
    /// The highest packet number received from it.
    pub(crate) received: u64,
    /// The how manyth connection of the session this is to be.
    pub(crate) connection: u64,
    /// The number of the link at the other end, if that has told it. It may have another link by now.
    pub(crate) link: Option<u64>,
}

/// What the end that was called says to a [`Hello`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// Its own.
    Hello(Hello),
    /// There is another connection between the two, or will be in a moment.
    Busy,
    /// This theater, which has this incarnation, has no link with the caller, and the caller has one with it.
    GivenUp(u64),
    /// It will not talk, and why.
    Refused(String),
}
