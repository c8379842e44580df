//! One theater of a cluster: its calls and its acceptor, the proof of its identity, the care of its links, and the search for cycles of asks.

pub(crate) mod acceptor;
pub(crate) mod background;
mod backoff;
pub(crate) mod call_peer;
pub(crate) mod calling;
pub(crate) mod calls;
pub(crate) mod cookie;
pub(crate) mod core;
pub(crate) mod cycles;
pub(crate) mod environment;
pub(crate) mod handshake;
pub(crate) mod identity;
pub(crate) mod links;
mod load;
mod look_after_links;
pub(crate) mod receive_hello;
#[cfg(test)]
mod tests;
