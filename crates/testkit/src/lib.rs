//! Tests of actors.
//!
//! - [`Kit`] drives one actor, or a few, with probes and virtual time.
//! - [`check()`] runs a small program under all orders of its messages.
//! - [`simulate`] runs a larger one under many seeds, and [`replay()`] under one, with a message sequence chart.
//! - [`Machine`] verifies a state machine, and draws it.
//! - [`conformance`] has suites for what others put in the place of a part of Playhouse: stores, transports.
//!
//! Several theaters on one thread, with a network that breaks, are [`playhouse::Simulation`]; [`under_seeds`] runs them under
//! many seeds.

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
