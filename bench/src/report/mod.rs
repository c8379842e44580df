//! The report: figures, their statistics, and their forms as JSON and as rows of a table.

#[cfg(feature = "benchmarks")]
pub mod bootstrap;
#[cfg(feature = "benchmarks")]
pub mod fit;
pub mod latency;

pub(crate) mod line;

#[cfg(feature = "benchmarks")]
mod figures;
#[cfg(feature = "benchmarks")]
mod spread;
#[cfg(feature = "benchmarks")]
mod table;
#[cfg(feature = "benchmarks")]
mod target;

#[cfg(feature = "benchmarks")]
pub use figures::Report;
#[cfg(feature = "benchmarks")]
pub use spread::Spread;
#[cfg(feature = "benchmarks")]
pub use table::{Table, figure, statistics};
#[cfg(feature = "benchmarks")]
pub use target::{COUNT_BASELINE_NS, Target};

#[cfg(feature = "benchmarks")]
pub(crate) use spread::rounded;
#[cfg(feature = "whole")]
pub(crate) use table::server_line;
