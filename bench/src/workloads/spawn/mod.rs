//! Workloads that measure the start, the end and the memory of actors.

pub(crate) mod creation;
pub(crate) mod fib;
pub(crate) mod fjcreate;
pub(crate) mod idle;
pub(crate) mod skynet;
