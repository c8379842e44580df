//! The scheduler: the steps of workers without work, and the monitor.
//!
//! [`idle`], [`steal`] and [`poll`] are the steps of a worker without work. [`trial`] finds out whether a second worker
//! helps. [`monitor`] deals with handlers that are stuck, and [`actors_at_work`] names their actors. [`crate::policy`] holds the
//! decisions.

pub(crate) mod actors_at_work;
pub(crate) mod idle;
pub(crate) mod monitor;
pub(crate) mod poll;
pub(crate) mod steal;
pub(crate) mod trial;
