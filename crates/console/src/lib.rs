//! The parts that the programs `playhouse` and `playhouse-bench` share.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod address;
pub mod build;
pub mod files;
pub mod output;
pub mod progress;
pub mod signals;
pub mod world;
