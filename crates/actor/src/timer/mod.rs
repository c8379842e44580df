//! Timers of actors, futures that wait for time, and receive timeouts.

pub(crate) mod receive_timeout;
pub(crate) mod sleep;
pub(crate) mod timers;
