//! Decisions of the scheduler: how long a gulp is, when work goes to an idle worker, and which worker gets it.
//!
//! [`policy`] holds the decisions as pure functions of estimated work and measured costs. [`idle`] holds the set of workers that
//! have nothing to do. [`kinds`] holds the times of messages by kind. [`costs`] holds the cost of a wake-up on this machine.

pub(crate) mod costs;
pub(crate) mod idle;
pub(crate) mod kinds;
#[cfg(test)]
mod model;
pub(crate) mod policy;
