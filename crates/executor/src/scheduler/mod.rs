//! Decisions of the scheduler: the length of a gulp, the moment at which work goes to an idle worker, and the worker
//! that gets it.
//!
//! [`policy`] holds the decisions as pure functions of estimated work and measured costs. [`idle_set`] holds the set of
//! idle workers, and [`idle_share`] how much each worker lacks work. [`trial`] finds out whether a second worker helps.
//! [`kinds`] holds the times of messages by kind. [`costs`] measures a wake-up on this machine and counts its cores.
//!
//! [`idle`], [`steal`] and [`poll`] are the steps of a worker without work. [`monitor`] deals with handlers that are
//! stuck ([`stuck`]), and [`ownership`] tells which thread has a worker's work.

pub(crate) mod costs;
pub(crate) mod idle;
pub(crate) mod idle_set;
pub(crate) mod idle_share;
pub(crate) mod kinds;
#[cfg(test)]
mod model;
pub(crate) mod monitor;
pub(crate) mod ownership;
pub(crate) mod policy;
pub(crate) mod poll;
pub(crate) mod steal;
pub(crate) mod stuck;
pub(crate) mod trial;
