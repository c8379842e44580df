//! Standard output as an actor: the output of many actors does not mix.
//!
//! A [`Stdout`] writes each [`Print`] in one piece, in the order of arrival. The lines of one actor keep their order,
//! and the lines of several actors never interleave. (SALSA has such an actor, `standardOutput`.)
//!
//! A slow reader of the output blocks the actor, and with it a worker. Start the actor with
//! [`Placement::Dedicated`](playhouse_actor::Placement::Dedicated) to give it a thread of its own.
//!
//! # Examples
//!
//! ```
//! use playhouse::prelude::*;
//! use playhouse::stdout::{Flush, Print, Stdout};
//!
//! let system = System::start()?;
//! let out = system.spawn(Stdout::new());
//! out.tell(Print::line("Hello"));
//! out.ask(Flush).wait()?;
//! system.shutdown()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod print;

use std::fmt;
use std::io::{self, Write};

use playhouse_actor::{Actor, Context};

pub use self::print::{Flush, Print};

/// An actor that writes each [`Print`] to a writer: see [the module](self).
///
/// A failed write crashes the actor with the `io::Error`, and its supervisor decides. Without a supervisor the actor
/// ends, and later prints are dead letters.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::stdout::{Flush, Print, Stdout};
///
/// let system = System::start()?;
/// let log = system.spawn(Stdout::to(Vec::new()));
/// log.tell(Print::text("no line yet"));
/// log.ask(Flush).wait()?;
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "console")]
#[doc(alias = "print")]
#[doc(alias = "standardOutput")]
pub struct Stdout<W = io::Stdout> {
    writer: W,
}

impl Stdout {
    /// Creates an actor that writes to the standard output of the process.
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
    /// Creates an actor that writes to `writer`, such as standard error, a file, or a buffer of a test.
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
    /// Flushes the writer. An error is ignored, because nobody is left to handle it.
    fn stopped(&mut self, _: &mut Context<Self>) {
        let _ = self.writer.flush();
    }
}
