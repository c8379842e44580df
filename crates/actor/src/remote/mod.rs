//! Actors in other theaters: stubs, wire forms of what is sent to them, and requests that are taken back.

pub(crate) mod any;
pub(crate) mod reference_wire;
pub(crate) mod registry;
pub(crate) mod route;
pub(crate) mod slot;
pub(crate) mod stub;
pub(crate) mod timers;
pub(crate) mod watch;
