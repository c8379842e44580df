//! Drawings: message sequence charts, and the common parts of SVG documents.

mod chart;
mod svg;

pub use chart::Chart;
pub(crate) use svg::{Escaped, svg_head};
