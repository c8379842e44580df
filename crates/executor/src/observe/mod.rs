//! Figures for observers: handlers that are timed, counts of waiting messages, samples, and counters. Workers make
//! them.

pub(crate) mod census;
pub(crate) mod observer;
pub(crate) mod sampling;
pub(crate) mod stats;
