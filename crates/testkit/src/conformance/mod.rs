//! Conformance suites for replacements of parts of Playhouse. A suite is a list of [rules](Rule), and reports which
//! of them hold.
//!
//! # Examples
//!
//! ```
//! use playhouse::transport::Tcp;
//! use playhouse_testkit::conformance::transport;
//!
//! let report = transport::check("127.0.0.1:0", || Tcp);
//! assert!(report.broken().is_empty(), "{report}");
//! ```

pub mod ledger;
mod rule;
pub mod store;
pub mod transport;

pub use rule::{Broken, Report, Rule};
