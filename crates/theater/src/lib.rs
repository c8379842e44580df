//! Theaters: actor systems that reach each other.
//!
//! Programs use `playhouse`, which re-exports this. Where things are: [`session`] (what one end of a link keeps, without
//! any input or output), `link` (sending and receiving), `poller` (the connections), `transport` (what they are), `tls` (what encrypts them), `house`
//! (connections), `calls` (theaters called in the background), `background` (threads and time), `registry` (what can be said to whom), `proxy` and `distant` (places of
//! actors that are elsewhere), `directory` (their names), `moves` (actors that go from theater to theater), `groups` and `journey` (those that go together), `balance` (theaters
//! that send them), `name_server` (an actor that knows others by names), `peers` and `inspector` (how a
//! theater and its links are), `simulated` (theaters on one thread, for tests).

#![forbid(unsafe_code)]

mod answer;
mod authority;
mod background;
mod balance;
mod builder;
mod calling;
mod calls;
mod cookie;
mod cycles;
mod directory;
mod distant;
mod door;
mod drain;
mod error;
mod frame;
#[doc(hidden)]
pub mod fuzz;
mod groups;
mod guests;
mod handshake;
mod house;
mod identity;
#[cfg(test)]
mod impostors;
mod inspector;
mod journey;
mod link;
#[cfg(feature = "metrics")]
mod metrics;
mod migration;
mod moves;
mod name_server;
mod peers;
mod poller;
mod proxy;
mod registry;
mod seal;
mod search;
pub mod session;
mod simulated;
mod theater;
mod tls;
pub mod transport;

pub use answer::{Find, Migration};
pub use balance::{Balance, Balancing};
pub use builder::TheaterBuilder;
pub use cookie::{COOKIE_FILE, Cookie};
pub use error::{FindError, PublishError, TheaterError};
pub use inspector::{ActorLine, INSPECTOR, Inspect, Inspector, LinkLine, MessageLine, Snapshot, StageLine, WorkerLine};
pub use name_server::{CountNames, GetName, NameAsk, NameError, NameServer, Names, PutName, RemoveName, UpdateName};
pub use peers::{LinkState, PeerState};
pub use simulated::{Happened, Simulation};
pub use theater::{Evacuation, Peer, Theater};
pub use tls::Tls;
