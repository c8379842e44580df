//! Tests of actors: probes, virtual time, model checking, replay, conformance suites.
//!
//! - [`Kit`] drives one actor or a few, with probes and virtual time.
//! - [`check()`] runs a small program under all orders of its messages.
//! - [`simulate`] runs a larger program under many seeds. [`replay()`] runs it under one seed, and draws a message
//!   sequence chart.
//! - [`Machine`] verifies a state machine, and draws it.
//! - [`conformance`] has suites for replacements of parts of Playhouse: stores, transports.
//!
//! A [`playhouse::Simulation`] runs several theaters on one thread, with a network that fails. [`under_seeds`] runs a
//! test with simulations under many seeds.

#![forbid(unsafe_code)]

mod check;
pub mod conformance;
mod drawing;
mod kit;
mod machine;
pub mod programs;
mod replay;
mod run;

pub use check::{Checker, Failure, Report, Violation, check};
pub use drawing::Chart;
pub use kit::{Kit, Probe};
pub use machine::{Flaw, Flaws, Machine};
pub use replay::{Replay, commit, replay, simulate, under_seeds};
pub use run::{NoSchedule, Schedule, Sent};
