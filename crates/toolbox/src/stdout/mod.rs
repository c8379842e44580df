//! Standard output as an actor: what many actors print does not mix.
//!
//! (SALSA's `standardOutput` is one, too.) A [`Stdout`] writes each [`Print`] as a whole, in the order in which they come; so the
//! lines of one actor keep their order, and those of several never cut into each other.
//!
//! Writing may block, where the other end is slow to read: then the actor holds its worker for a while. One that is started with
//! [`Placement::Dedicated`](playhouse_actor::Placement::Dedicated) has a thread of its own for that.

mod print;

use std::fmt;
use std::io::{self, Write};

use playhouse_actor::{Actor, Context};

pub use self::print::{Flush, Print};

/// Writes what it is sent: see [the module](self).
///
/// What cannot be written is a crash with the `io::Error`: a supervisor decides what comes of it. Without one, the actor ends,
/// and what is sent to it later becomes dead letters.
pub struct Stdout<W = io::Stdout> {
    writer: W,
}

impl Stdout {
    /// One that writes to the standard output of the process.
    pub fn new() -> Stdout {
        Stdout { writer: io::stdout() }
    }
}

impl Default for Stdout {
    fn default() -> Self {
        Stdout::new()
    }
}

impl<W: Write + Send + 'static> Stdout<W> {
    /// One that writes elsewhere: to standard error, to a file, to what a test looks at.
    pub fn to(writer: W) -> Stdout<W> {
        Stdout { writer }
    }
}

impl<W> fmt::Debug for Stdout<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdout").finish_non_exhaustive()
    }
}

impl<W: Write + Send + 'static> Actor for Stdout<W> {
    /// What was written goes out, also where the writer has a buffer. An error has nobody to be told to any more.
    fn stopped(&mut self, _: &mut Context<Self>) {
        let _ = self.writer.flush();
    }
}
