//! How threads and handlers wait for futures.

mod block;
mod pipe;

pub(crate) use block::{block_on, system_of};
pub(crate) use pipe::{pipe, pipe_in_incarnation};
