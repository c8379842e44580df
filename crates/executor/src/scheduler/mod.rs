//! Decisions of the scheduler: the length of a gulp, the moment at which work goes to an idle worker, and the worker that gets it.
//!
//! [`policy`] holds the decisions as pure functions of estimated work and measured costs. [`idle`] holds the set of idle
//! workers. [`kinds`] holds the times of messages by kind. [`costs`] measures a wake-up on this machine and counts its cores.

pub(crate) mod costs;
pub(crate) mod idle;
pub(crate) mod kinds;
#[cfg(test)]
mod model;
pub(crate) mod policy;
