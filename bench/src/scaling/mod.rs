//! The group `scaling`: the speed-up of programs with more workers.
//!
//! A pattern is a program whose handlers do a stated amount of work with each message. Each pattern has 3 implementations: as actors of
//! Playhouse, as tokio tasks with channels, and as hand-written threads. All 3 run in turns, on 1, 2, … workers.
//!
//! - [`pattern`]: the list of patterns; `patterns` has one file for each.
//! - [`work`]: a calibrated loop.
//! - [`load`]: the size of a run.
//! - [`implementation`]: one run of an implementation.
//! - [`activity`]: parks, mutes, wake-ups and steals of a run.
//! - [`measured`]: all runs of a pattern with one amount of work, in turns.
//! - [`row`], [`table`], [`target`]: the figures of those runs, and their targets.
//! - [`others`]: the CPU time of other programs.
//! - `goal`, `stopwatch`: the measured sections of a run.
//! - `graph`: random neighbours.
//! - `threads`: the harness of the hand-written programs.

pub mod activity;
pub mod implementation;
pub mod load;
pub mod measured;
pub mod others;
pub mod pattern;
pub mod row;
pub mod table;
pub mod target;
pub mod work;

mod goal;
mod graph;
mod patterns;
mod stopwatch;
mod threads;
