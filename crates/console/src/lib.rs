//! The parts that the programs `playhouse` and `playhouse-bench` share.

pub mod address;
pub mod build;
pub mod interrupt;
pub mod output;
pub mod progress;
pub mod world;
