//! The messages of an output.

use std::fmt;
use std::io::Write;

use playhouse_actor::{Context, Handler, Message};

use super::Stdout;

/// Something to be written in one piece. Who asks is answered when it was given to the writer.
#[derive(Clone, PartialEq, Eq)]
pub struct Print {
    text: String,
}

impl Print {
    /// This, with the end of a line behind it.
    pub fn line(text: impl Into<String>) -> Print {
        let mut text = text.into();
        text.push('\n');
        Print { text }
    }

    /// This, as it is: several lines that belong together, or the beginning of one.
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

    /// With the text.
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

/// Has all that was written go out. Who asks is answered when it has.
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
