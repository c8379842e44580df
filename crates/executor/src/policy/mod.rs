//! Settings of a system, and the decisions of the scheduler: the length of a gulp, the moment at which work goes to an
//! idle worker, and the worker that gets it. No file here knows workers.
//!
//! [`decisions`] holds the decisions as pure functions of estimated work and measured costs. [`idle_set`] holds the set
//! of idle workers, and [`idle_share`] how much each worker lacks work. [`trial_verdict`] holds the figures of trials
//! with a second worker, and [`kinds`] the times of messages by kind. [`costs`] measures a wake-up on this machine and
//! counts its cores. [`choices`] draws choices from a seed.

pub(crate) mod choices;
pub(crate) mod config;
pub(crate) mod costs;
pub(crate) mod decisions;
pub(crate) mod idle_set;
pub(crate) mod idle_share;
pub(crate) mod kinds;
#[cfg(test)]
mod model;
pub(crate) mod trial_verdict;
