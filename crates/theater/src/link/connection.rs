//! One connection of a link, plain or encrypted, or simulated.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::transport::GuardedWire;
use crate::transport::simulated::SimulatedEnd;
use crate::transport::tls::Cipher;

/// The transport of a connection's bytes.
pub(crate) enum Stream {
    Wire(Arc<GuardedWire>),
    Simulated(Box<dyn SimulatedEnd>),
}

/// One connection of a link.
pub(crate) struct Connection {
    pub(crate) token: mio::Token,
    pub(crate) stream: Stream,
    /// The cipher, if the connection is encrypted.
    pub(crate) cipher: Option<Cipher>,
    /// Whether the handshake may have read more than its own bytes, of which the socket does not tell. The socket tells at once that there is room to
    /// write, and then these bytes are read.
    pub(crate) unread: AtomicBool,
    /// The number of the connection in its session.
    pub(crate) number: u64,
    pub(crate) broken: AtomicBool,
}

impl Connection {
    /// Reads received bytes.
    pub(super) fn read(&self, room: &mut [u8]) -> io::Result<usize> {
        match (&self.stream, &self.cipher) {
            (Stream::Wire(wire), None) => wire.read(room),
            (Stream::Wire(wire), Some(cipher)) => cipher.read(Through(wire), room),
            (Stream::Simulated(end), _) => end.read(room),
        }
    }

    /// Writes bytes, or takes them over for [`Connection::write_out`].
    pub(super) fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match (&self.stream, &self.cipher) {
            (Stream::Wire(wire), None) => wire.write(slices),
            (Stream::Wire(_), Some(cipher)) => cipher.take(slices),
            (Stream::Simulated(end), _) => end.write(slices),
        }
    }

    /// Writes the bytes that were taken over.
    pub(super) fn write_out(&self) -> io::Result<()> {
        match (&self.stream, &self.cipher) {
            (Stream::Wire(wire), Some(cipher)) => cipher.write_out(Through(wire)),
            _ => Ok(()),
        }
    }

    /// Shuts the connection, so that the other end learns that it is of no use any more.
    pub(super) fn shut(&self) {
        match &self.stream {
            Stream::Wire(wire) => drop(wire.shutdown(Shutdown::Both)),
            Stream::Simulated(end) => end.shut(),
        }
    }
}

/// The stream that TLS reads and writes.
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
