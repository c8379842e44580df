//! The messages of [`Stdout`].

use std::fmt;
use std::io::Write;

use playhouse_actor::{Context, Handler, Message};

use super::Stdout;

/// A text that is written in one piece. An ask is answered when the writer has taken the text.
///
/// # Examples
///
/// ```
/// use playhouse::stdout::Print;
///
/// assert_eq!(Print::line("done"), Print::text("done\n"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Print {
    text: String,
}

impl Print {
    /// Creates a print of `text` and an end of line.
    pub fn line(text: impl Into<String>) -> Print {
        let mut text = text.into();
        text.push('\n');
        Print { text }
    }

    /// Creates a print of `text` as it is, such as several lines, or the beginning of one.
    pub fn text(text: impl Into<String>) -> Print {
        Print { text: text.into() }
    }
}

impl fmt::Debug for Print {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Print({:?})", self.text)
    }
}

impl Message for Print {
    type Reply = ();

    /// Returns the size of the message with its text.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.text.len()
    }
}

impl<W: Write + Send + 'static> Handler<Print> for Stdout<W> {
    fn handle(&mut self, print: Print, ctx: &mut Context<Self>) {
        if let Err(error) = self.writer.write_all(print.text.as_bytes()) {
            ctx.fail_without_place(error);
        }
    }
}

/// Flushes the writer. An ask is answered when the writer has flushed.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse::stdout::{Flush, Stdout};
///
/// let system = System::start()?;
/// system.spawn(Stdout::new()).ask(Flush).wait()?;
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flush;

impl Message for Flush {
    type Reply = ();
}

impl<W: Write + Send + 'static> Handler<Flush> for Stdout<W> {
    fn handle(&mut self, _: Flush, ctx: &mut Context<Self>) {
        if let Err(error) = self.writer.flush() {
            ctx.fail_without_place(error);
        }
    }
}
