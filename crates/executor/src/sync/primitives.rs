//! The primitives of `ownership.rs` and `worker_requests.rs`, named once because the models replace them by loom's.

pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
