//! Building blocks that most actor programs need: routers, topics, a receptionist, pools for blocking work, durable
//! state, shutdown.
//!
//! Programs use the crate `playhouse`, which re-exports these modules. The crate builds on the public parts of actors
//! alone: references, watches, asks and timers.
//!
//! A router or a topic is a cloned handle, because an actor in the middle would cost a message per send. The handle
//! reads a table of members and sends directly. The order of messages, asks and overload are those of a plain
//! reference. A watcher in the background removes members that have ended.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub mod asks;
pub mod durable;
#[doc(hidden)]
pub mod entry;
mod member_watcher;
mod panics;
pub mod receptionist;
pub mod resource;
pub mod router;
pub mod shutdown;
pub mod stdout;
pub mod topic;
mod wait;
