//! Theaters: actor systems that reach each other.
//!
//! Programs use `playhouse`, which re-exports this. Where things are: [`session`] (what one end of a link keeps, without
//! any input or output), `link` (sending and receiving), `poller` (the sockets), `house` (connections), `registry`
//! (what can be said to whom), `proxy` and
//! `distant` (places of actors that are elsewhere), `directory` (their names).

#![forbid(unsafe_code)]

mod directory;
mod distant;
mod error;
mod find;
mod frame;
#[doc(hidden)]
pub mod fuzz;
mod handshake;
mod house;
mod link;
mod poller;
mod proxy;
mod registry;
mod seal;
pub mod session;
mod theater;

pub use error::{FindError, TheaterError};
pub use find::Find;
pub use theater::{Peer, Theater, TheaterBuilder};
