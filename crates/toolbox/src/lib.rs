//! What most programs build from actors sooner or later, built once. Programs use `playhouse`, which re-exports the modules.
//!
//! All of it is made of what any program could use: actors, references, watches, asks and timers. What looks a table up at
//! each send (a router, a topic) is a handle that is cloned and not an actor: it costs no message more, keeps the order of
//! its user's messages, and is asked and slowed down as if its user had sent to the actor behind it. An actor in the
//! background keeps the table true.

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
