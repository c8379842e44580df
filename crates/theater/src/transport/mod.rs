//! What the bytes between theaters go over.
//!
//! Sessions, windows, moves and encryption lie above it, and are the same whatever it is: a transport only makes streams of bytes.
//! Own ones are tested by `playhouse_testkit::conformance::transport`.

pub(crate) mod poller;
pub(crate) mod tls;

mod guarded_wire;
mod tcp;
#[cfg(unix)]
mod unix;

use std::fmt;
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
#[cfg(unix)]
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use mio::event::Source;
use mio::{Interest, Registry, Token};

pub(crate) use guarded_wire::{GuardedWire, guarded};
pub use tcp::Tcp;
#[cfg(unix)]
pub use unix::UnixSockets;

/// Where a [`Wire`] or a [`Listener`] says what tells that it is ready: for [`Wire::register`] and [`Listener::register`].
///
/// What is registered tells each change once, as `epoll` does in its edge-triggered mode.
#[derive(Debug)]
pub struct Registration<'a> {
    registry: &'a Registry,
    token: Token,
    interest: Interest,
}

impl<'a> Registration<'a> {
    /// Registers at `registry`, whose events have this token: for tests of transports.
    pub fn new(registry: &'a Registry, token: Token, interest: Interest) -> Registration<'a> {
        Registration { registry, token, interest }
    }

    /// This descriptor tells. It must stay open until the wire or the listener is dropped.
    ///
    /// # Errors
    /// The system cannot wait for it (a file), or it is registered already.
    #[cfg(unix)]
    pub fn descriptor(self, descriptor: &impl AsFd) -> io::Result<()> {
        self.source(&mut mio::unix::SourceFd(&descriptor.as_fd().as_raw_fd()))
    }

    /// This source of events of the crate `mio` tells. It must not be dropped before the wire or the listener is.
    ///
    /// # Errors
    /// The system cannot wait for it, or it is registered already.
    pub fn source(self, source: &mut (impl Source + ?Sized)) -> io::Result<()> {
        self.registry.register(source, self.token, self.interest)
    }
}

/// Makes connections between theaters: for [`TheaterBuilder::transport`](crate::TheaterBuilder::transport).
///
/// Its methods are called by threads that may block.
pub trait Transport: fmt::Debug + Send + Sync + 'static {
    /// Listens at `address`; where its port is 0, at one that is free.
    ///
    /// # Errors
    /// Why nobody can listen there: the address is in use ([`AddrInUse`](io::ErrorKind::AddrInUse)), for example.
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>>;

    /// Calls who listens at `address`. It may wait until that has [accepted](Listener::accept) it.
    ///
    /// # Errors
    /// Nobody listens there, or nobody has answered for `limit`.
    fn connect(&self, address: SocketAddr, limit: Duration) -> io::Result<Box<dyn Wire>>;
}

/// Hears callers, until it is dropped.
///
/// It does not block: what it [registers](Listener::register) tells that somebody has called. So a theater waits for callers and for its
/// own end at once, and ends whether or not anybody can call it.
pub trait Listener: Send + 'static {
    /// Where: what a caller is to call, with a port that is not 0.
    ///
    /// # Errors
    /// It is not known.
    fn address(&self) -> io::Result<SocketAddr>;

    /// Registers what tells that somebody has called. A theater calls it once, before the first [`accept`](Listener::accept).
    ///
    /// A protocol whose callers the system does not know registers one end of a pair of sockets (`UnixStream::pair`, for example), and
    /// writes a byte to the other one for each caller.
    ///
    /// # Errors
    /// The system cannot wait for callers.
    fn register(&mut self, registration: Registration<'_>) -> io::Result<()>;

    /// The next caller. That there are more is told once: it is called until it says that it would block.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock): nobody has called. Others: a caller could not be answered, for want of descriptors
    /// for example. It is called again after a moment.
    fn accept(&self) -> io::Result<Box<dyn Wire>>;
}

/// One end of a connection: a stream of bytes in each direction, in order, whole, until it breaks.
///
/// It blocks while the theaters say who they are, on a thread of its own and with a limit to each read and write. From then on it
/// does not block, and what it [registers](Wire::register) tells when there is something to read and when there is room to write.
///
/// Dropping it breaks the connection.
pub trait Wire: Send + Sync + 'static {
    /// Who is at the other end, in words: for errors.
    fn peer(&self) -> String;

    /// Whether reading and writing say [`WouldBlock`](io::ErrorKind::WouldBlock) where they would have to wait. Before the first
    /// call, they wait.
    ///
    /// # Errors
    /// It cannot be changed.
    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()>;

    /// Registers what tells that there is something to read, or room to write. A theater calls it once, where the wire does not block any
    /// more.
    ///
    /// A protocol for which the system cannot wait registers one end of a pair of sockets (`UnixStream::pair`, for example), and carries
    /// what comes from the other one.
    ///
    /// # Errors
    /// The system cannot wait for it.
    fn register(&self, registration: Registration<'_>) -> io::Result<()>;

    /// How long a read and a write wait, where they wait at all: after that, they fail with
    /// [`TimedOut`](io::ErrorKind::TimedOut) or `WouldBlock`. Never 0.
    ///
    /// # Errors
    /// It cannot be changed.
    fn set_limit(&self, limit: Duration) -> io::Result<()>;

    /// Reads what has come. 0: the other end has shut down writing, and all that it has written was read.
    ///
    /// Where it reads less than there was room for, nothing else has come: what comes later is told once, and who reads waits for that.
    ///
    /// # Errors
    /// The connection is broken, or nothing has come.
    fn read(&self, room: &mut [u8]) -> io::Result<usize>;

    /// Writes as many of these bytes as there is room for, one at least. Where it writes fewer than that, it is told once that there is
    /// room again.
    ///
    /// # Errors
    /// The connection is broken, or there is no room.
    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Ends reading, writing, or both. What was written before still comes to the other end.
    ///
    /// # Errors
    /// The connection is broken.
    fn shutdown(&self, how: Shutdown) -> io::Result<()>;
}

/// [`Wire`] for a stream of the standard library, whose descriptor tells.
#[cfg(unix)]
macro_rules! wire {
    ($stream:ty, $peer:expr) => {
        impl crate::transport::Wire for $stream {
            fn peer(&self) -> String {
                $peer(self)
            }

            fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
                <$stream>::set_nonblocking(self, nonblocking)
            }

            fn register(&self, registration: crate::transport::Registration<'_>) -> io::Result<()> {
                registration.descriptor(self)
            }

            fn set_limit(&self, limit: Duration) -> io::Result<()> {
                self.set_read_timeout(Some(limit))?;
                self.set_write_timeout(Some(limit))
            }

            fn read(&self, room: &mut [u8]) -> io::Result<usize> {
                std::io::Read::read(&mut { self }, room)
            }

            fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
                std::io::Write::write_vectored(&mut { self }, slices)
            }

            fn shutdown(&self, how: Shutdown) -> io::Result<()> {
                <$stream>::shutdown(self, how)
            }
        }
    };
}

#[cfg(unix)]
use wire;
