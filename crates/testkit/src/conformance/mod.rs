//! Suites for what others put in the place of a part of Playhouse: each is a list of [rules](Rule), and says which of them are kept.

mod rule;
pub mod store;
pub mod transport;

pub use rule::{Broken, Report, Rule};
