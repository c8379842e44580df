//! The shared parts of the tests of links.

use std::time::Duration;

use playhouse_actor::System;
use playhouse_theater::{Theater, TheaterBuilder};

/// Longer than any step of these tests takes without a hang.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Returns the builder of a theater on the loopback.
pub fn builder() -> TheaterBuilder {
    Theater::builder().listen("127.0.0.1:0").system(System::builder().workers(2))
}

pub fn theater() -> Theater {
    builder().start().unwrap()
}
