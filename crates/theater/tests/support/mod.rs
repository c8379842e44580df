//! What the tests of links share.

use std::time::Duration;

use playhouse_actor::System;
use playhouse_theater::{Theater, TheaterBuilder};

/// Nothing here takes so long unless it stands still.
pub const LIMIT: Duration = Duration::from_secs(120);

/// A theater on the loopback.
pub fn builder() -> TheaterBuilder {
    Theater::builder().listen("127.0.0.1:0").system(System::builder().workers(2))
}

pub fn theater() -> Theater {
    builder().start().unwrap()
}
