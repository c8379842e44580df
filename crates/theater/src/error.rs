//! The errors between theaters.

use std::fmt;
use std::io::{self, ErrorKind};

use playhouse_actor::{ActorId, ShortType};
use serde::{Deserialize, Serialize};

/// The reason why a theater could not be started, or another one could not be reached.
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// // Links that leave the machine are encrypted, unless the program allows plain ones.
/// match Theater::builder().listen("0.0.0.0:0").start() {
///     Err(error @ TheaterError::NotLoopback { .. }) => println!("{error}"),
///     other => panic!("{other:?}"),
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum TheaterError {
    /// The address cannot be listened at or called, or the connection broke.
    Io {
        /// The address.
        address: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The other end is no theater, or one with another protocol.
    Protocol {
        /// The address.
        address: String,
        /// The value found, and the value expected.
        found: String,
    },
    /// The other end belongs to the cluster, and refuses the connection.
    Refused {
        /// The address.
        address: String,
        /// The reason.
        why: String,
    },
    /// One of the two ends has not shown a certificate that the other one accepts.
    Tls {
        /// The address.
        address: String,
        /// The fault, and its correction.
        why: String,
    },
    /// One of the two ends has not proved that it belongs to the cluster: by its [cookie](crate::Cookie), the cluster's name, its
    /// incarnation, or TLS.
    NotMember {
        /// The address.
        address: String,
        /// The fault, and its correction.
        why: String,
    },
    /// This theater's [cookie](crate::Cookie) is unusable: its source, and the reason.
    Cookie(String),
    /// This theater's certificates are unusable: the file, and the reason.
    Certificates(String),
    /// Only the loopback can be used without encryption.
    NotLoopback {
        /// The address.
        address: String,
    },
    /// Other theaters cannot call the advertised address.
    Advertised {
        /// The address.
        address: String,
        /// The fault, and its correction.
        why: String,
    },
    /// The actor system could not be started.
    System(String),
    /// Actors or messages with the same name on the wire.
    Names(Vec<String>),
}

impl TheaterError {
    /// Returns the same error for another waiter of the same call.
    pub(crate) fn copy(&self) -> TheaterError {
        let same = |error: &io::Error| match error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(error.kind(), error.to_string()),
        };
        match self {
            TheaterError::Io { address, error } => TheaterError::Io { address: address.clone(), error: same(error) },
            TheaterError::Protocol { address, found } => {
                TheaterError::Protocol { address: address.clone(), found: found.clone() }
            }
            TheaterError::Refused { address, why } => {
                TheaterError::Refused { address: address.clone(), why: why.clone() }
            }
            TheaterError::Tls { address, why } => TheaterError::Tls { address: address.clone(), why: why.clone() },
            TheaterError::NotMember { address, why } => {
                TheaterError::NotMember { address: address.clone(), why: why.clone() }
            }
            TheaterError::Cookie(why) => TheaterError::Cookie(why.clone()),
            TheaterError::Certificates(why) => TheaterError::Certificates(why.clone()),
            TheaterError::NotLoopback { address } => TheaterError::NotLoopback { address: address.clone() },
            TheaterError::Advertised { address, why } => {
                TheaterError::Advertised { address: address.clone(), why: why.clone() }
            }
            TheaterError::System(why) => TheaterError::System(why.clone()),
            TheaterError::Names(twice) => TheaterError::Names(twice.clone()),
        }
    }
}

impl fmt::Display for TheaterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TheaterError::Io { address, error } => write!(f, "{address}: {error}"),
            TheaterError::Protocol { address, found } => {
                write!(f, "{address} does not speak the protocol of theaters: {found}")
            }
            TheaterError::Refused { address, why } => {
                write!(f, "the theater at {address} refuses the connection: {why}")
            }
            TheaterError::Tls { address, why } => write!(f, "no TLS with {address}: {why}"),
            TheaterError::NotMember { address, why } => write!(f, "{address} is no theater of this cluster: {why}"),
            TheaterError::NotLoopback { address } => write!(
                f,
                "{address} is not on the loopback, and other links must be encrypted: give certificates with `tls(..)` (for \
                 development, `playhouse certificates` makes some), or allow plaintext by name with `plaintext()`"
            ),
            TheaterError::Advertised { address, why } => write!(f, "{address} {why}"),
            TheaterError::Cookie(why) | TheaterError::Certificates(why) | TheaterError::System(why) => f.write_str(why),
            TheaterError::Names(twice) => write!(
                f,
                "names that are used twice on the wire: {}; give one of the two another by `remote = \"..\"`",
                twice.join(", ")
            ),
        }
    }
}

impl std::error::Error for TheaterError {}

impl TheaterError {
    /// Returns whether no theater listens at the address.
    pub(crate) fn is_refusal(&self) -> bool {
        // `NotFound`: the file of a Unix socket does not exist.
        let is_nobody = |kind| matches!(kind, ErrorKind::ConnectionRefused | ErrorKind::NotFound);
        matches!(self, TheaterError::Io { error, .. } if is_nobody(error.kind()))
    }

    /// Returns whether the other end has ended the connection without a word.
    pub(crate) fn is_hang_up(&self) -> bool {
        let TheaterError::Io { error, .. } = self else { return false };
        matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
    }
}

/// The reason why a name was not found.
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
/// # let theater = Theater::builder().start()?;
/// match theater.find::<Counter>("counter").wait() {
///     Err(FindError::Malformed(name)) => println!("{name} is not of the form playhouse://host:port/name"),
///     other => panic!("{other:?}"),
/// }
/// # theater.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FindError {
    /// The text is no name of the form `playhouse://host:port/name`.
    Malformed(String),
    /// The theater has no actor of that name.
    Unknown(String),
    /// The actor of that name has another type.
    WrongType {
        /// The name.
        name: String,
        /// The type that was asked for.
        expected: String,
        /// The type of the actor.
        found: String,
    },
    /// The theater cannot be reached.
    Unreachable(String),
}

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FindError::Malformed(name) => {
                write!(f, "{name:?} is no name of an actor: names read playhouse://host:port/name")
            }
            FindError::Unknown(name) => write!(f, "no actor is published as {name:?} in that theater"),
            FindError::WrongType { name, expected, found } => {
                write!(f, "{name:?} is a {found}, and a {expected} was asked for")
            }
            FindError::Unreachable(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for FindError {}

/// An actor cannot be published under a name that another one has. See [`Theater::publish`](crate::Theater::publish).
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
/// # let theater = Theater::builder().start()?;
/// let [first, second] = [(); 2].map(|()| theater.system().spawn(Counter::default()));
/// theater.publish("counter", first)?;
/// let error: PublishError = theater.publish("counter", second).unwrap_err();
/// assert_eq!(error.id, first.id());
/// theater.replace("counter", second);
/// # theater.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublishError {
    /// The name.
    pub name: String,
    /// The type of the actor that has it, as on the wire.
    pub actor: &'static str,
    /// The actor that has it.
    pub id: ActorId,
}

impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, actor, id) = (&self.name, ShortType(self.actor), self.id);
        write!(
            f,
            "the name {name:?} is taken by {actor}{id}: `replace` gives it to another actor, `unpublish` takes it back"
        )
    }
}

impl std::error::Error for PublishError {}
