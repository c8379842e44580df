//! The primitives of `ownership.rs` and `signal.rs`, named once so that the models can put loom's in their place.

pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
