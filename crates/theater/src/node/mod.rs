//! One theater of a cluster: its builder, its calls and its acceptor, the proof of its identity, and the care of its links.

pub(crate) mod acceptor;
pub(crate) mod answer;
pub(crate) mod background;
pub(crate) mod builder;
pub(crate) mod call_peer;
pub(crate) mod calling;
pub(crate) mod calls;
pub(crate) mod cookie;
pub(crate) mod core;
pub(crate) mod environment;
pub(crate) mod handshake;
pub(crate) mod identity;
mod link_loss;
pub(crate) mod links;
mod load;
mod of_links;
pub(crate) mod peers;
pub(crate) mod receive_hello;
#[cfg(test)]
mod tests;
pub(crate) mod theater;
