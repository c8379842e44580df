//! Waiting for futures: in a thread outside of the system, and in a handler.

mod block;
mod pipe;

pub(crate) use block::{block_on, system_of};
pub(crate) use pipe::{pipe, pipe_in_incarnation};
