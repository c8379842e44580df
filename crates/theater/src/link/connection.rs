//! One connection of a link, plain or encrypted, or simulated.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::sim::End;
use crate::transport::GuardedWire;
use crate::transport::tls::Cipher;

/// What bytes go over.
pub(crate) enum Stream {
    Wire(Arc<GuardedWire>),
    Simulated(End),
}

/// One connection of a link.
pub(crate) struct Connection {
    pub(crate) token: mio::Token,
    pub(crate) stream: Stream,
    /// Where it is encrypted.
    pub(crate) cipher: Option<Cipher>,
    /// The handshake may have read more than its own words, of which the socket does not tell. It tells at once that there is room:
    /// then that is read.
    pub(crate) unread: AtomicBool,
    /// The how manyth of its session.
    pub(crate) number: u64,
    pub(crate) broken: AtomicBool,
}

impl Connection {
    /// Reads what has come.
    pub(super) fn read(&self, room: &mut [u8]) -> io::Result<usize> {
        match (&self.stream, &self.cipher) {
            (Stream::Wire(wire), None) => wire.read(room),
            (Stream::Wire(wire), Some(cipher)) => cipher.read(Through(wire), room),
            (Stream::Simulated(end), _) => end.read(room),
        }
    }

    /// Writes, or takes over what [`Connection::write_out`] has to write.
    pub(super) fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match (&self.stream, &self.cipher) {
            (Stream::Wire(wire), None) => wire.write(slices),
            (Stream::Wire(_), Some(cipher)) => cipher.take(slices),
            (Stream::Simulated(end), _) => end.write(slices),
        }
    }

    /// Writes what was taken over.
    pub(super) fn write_out(&self) -> io::Result<()> {
        match (&self.stream, &self.cipher) {
            (Stream::Wire(wire), Some(cipher)) => cipher.write_out(Through(wire)),
            _ => Ok(()),
        }
    }

    /// It is of no use any more, and the other end is to learn that.
    pub(super) fn shut(&self) {
        match &self.stream {
            Stream::Wire(wire) => drop(wire.shutdown(Shutdown::Both)),
            Stream::Simulated(end) => end.shut(),
        }
    }
}

/// What TLS reads and writes.
struct Through<'a>(&'a GuardedWire);

impl Read for Through<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.0.read(room)
    }
}

impl Write for Through<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.write(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
