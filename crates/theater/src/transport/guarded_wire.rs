//! A wire whose faults cannot harm its user.

use std::any::Any;
use std::io::{self, ErrorKind, IoSlice};
use std::net::Shutdown;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use playhouse_executor::discard;

use super::{Registration, Wire};

/// A wire, which may be the user's code and is called by workers. A panic in it, or a byte count that is impossible, becomes an
/// error of the connection.
pub(crate) struct GuardedWire {
    /// Taken when the wire is dropped.
    wire: Option<Box<dyn Wire>>,
}

/// Calls a function that may be the user's code.
pub(crate) fn guarded<R>(call: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
    let panicked = |thrown: Box<dyn Any + Send>| {
        let text = thrown.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| thrown.downcast_ref::<String>().cloned()).unwrap_or_default();
        discard(thrown);
        Err(io::Error::other(format!("the transport has panicked: {text}")))
    };
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(panicked)
}

fn impossible(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the transport {what}"))
}

impl GuardedWire {
    pub(crate) fn new(wire: Box<dyn Wire>) -> GuardedWire {
        GuardedWire { wire: Some(wire) }
    }

    fn ask<R>(&self, call: impl FnOnce(&dyn Wire) -> io::Result<R>) -> io::Result<R> {
        let wire = self.wire.as_deref().expect("INVARIANT: it is taken at the end only");
        guarded(|| call(wire))
    }

    pub(crate) fn register(&self, registration: Registration<'_>) -> io::Result<()> {
        self.ask(|wire| wire.register(registration))
    }

    pub(crate) fn peer(&self) -> String {
        self.ask(|wire| Ok(wire.peer())).unwrap_or_else(|_| "?".to_owned())
    }

    pub(crate) fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.ask(|wire| wire.set_nonblocking(nonblocking))
    }

    pub(crate) fn set_limit(&self, limit: Duration) -> io::Result<()> {
        self.ask(|wire| wire.set_limit(limit))
    }

    pub(crate) fn read(&self, room: &mut [u8]) -> io::Result<usize> {
        let size = room.len();
        match self.ask(|wire| wire.read(room))? {
            count if count > size => Err(impossible(format!("claims to have read {count} bytes into room for {size}"))),
            count => Ok(count),
        }
    }

    pub(crate) fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let size: usize = slices.iter().map(|slice| slice.len()).sum();
        match self.ask(|wire| wire.write(slices))? {
            0 if size > 0 => Err(impossible(format!("has written none of {size} bytes"))),
            count if count > size => Err(impossible(format!("claims to have written {count} bytes of {size}"))),
            count => Ok(count),
        }
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.ask(|wire| wire.shutdown(how))
    }
}

impl Drop for GuardedWire {
    fn drop(&mut self) {
        let wire = self.wire.take();
        // Nothing uses the wire any more that could take the error.
        let _ = guarded(|| {
            drop(wire);
            Ok(())
        });
    }
}
