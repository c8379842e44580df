//! Answers: where they go, how their requests are taken back, and which actors wait for them.
//!
//! [`crate::ask`] is built on them, and has the public types of asks.

pub(crate) mod error;
pub(crate) mod inherited_deadline;
pub(crate) mod recall;
pub(crate) mod reply_to;
#[doc(hidden)]
pub mod wait_graph;
