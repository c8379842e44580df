//! One connection of a link, plain or encrypted.

use std::io::{self, IoSlice, Read, Write};
use std::sync::atomic::AtomicBool;

use crate::tls::Cipher;

/// One connection of a link.
pub(crate) struct Connection {
    pub(crate) token: mio::Token,
    pub(crate) stream: mio::net::TcpStream,
    /// Where it is encrypted.
    pub(crate) cipher: Option<Cipher>,
    /// The how manyth of its session.
    pub(crate) number: u64,
    pub(crate) broken: AtomicBool,
}

impl Connection {
    /// Reads what has come.
    pub(super) fn read(&self, room: &mut [u8]) -> io::Result<usize> {
        match &self.cipher {
            None => (&self.stream).read(room),
            Some(cipher) => cipher.read(&self.stream, room),
        }
    }

    /// Writes, or takes over what [`Connection::write_out`] has to write.
    pub(super) fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &self.cipher {
            None => (&self.stream).write_vectored(slices),
            Some(cipher) => cipher.take(slices),
        }
    }

    /// Writes what was taken over.
    pub(super) fn write_out(&self) -> io::Result<()> {
        self.cipher.as_ref().map_or(Ok(()), |cipher| cipher.write_out(&self.stream))
    }
}
