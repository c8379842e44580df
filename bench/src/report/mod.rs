//! The report: figures, their statistics, and their forms as JSON and as rows of a table.

pub mod bootstrap;
pub mod fit;
pub mod latency;

mod figures;
mod spread;
mod table;
mod target;

pub use figures::Report;
pub use spread::Spread;
pub use table::{Table, figure, statistics};
pub use target::{COUNT_BASELINE_NS, Target};

pub(crate) use spread::rounded;
#[cfg(feature = "whole")]
pub(crate) use table::server_line;
