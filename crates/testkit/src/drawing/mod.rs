//! Drawings: message sequence charts, and what all SVG documents share.

mod chart;
mod svg;

pub use chart::Chart;
pub(crate) use svg::{Escaped, svg_head};
