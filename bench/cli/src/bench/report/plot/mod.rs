//! Plots: drawings of what was measured, as SVG and PNG.

pub mod axis;
pub mod cdf;
pub mod dots;
pub mod drawing;
pub mod glyphs;
pub mod png;
pub mod speed;
pub mod svg;
