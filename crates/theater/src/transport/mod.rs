//! The transports that carry the bytes between theaters.
//!
//! Sessions, windows, migration and encryption lie above a transport, and are the same for each: a transport only makes streams
//! of bytes. `playhouse_testkit::conformance::transport` tests transports of users.

pub(crate) mod simulated;
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

/// The place where a [`Wire`] or a [`Listener`] registers the source of its readiness events: for [`Wire::register`] and
/// [`Listener::register`].
///
/// A registered source reports each change once, like `epoll` in its edge-triggered mode.
///
/// # Examples
///
/// ```
/// # use std::io;
/// # use std::net::SocketAddr;
/// # use std::time::Duration;
/// # use playhouse_theater::Theater;
/// # use playhouse_theater::transport::{Listener, Registration, Tcp, Transport, Wire};
/// # #[cfg(unix)]
/// fn register(socket: &std::os::unix::net::UnixStream, registration: Registration<'_>) -> io::Result<()> {
///     registration.descriptor(socket)
/// }
/// ```
#[derive(Debug)]
pub struct Registration<'a> {
    registry: &'a Registry,
    token: Token,
    interest: Interest,
}

impl<'a> Registration<'a> {
    /// Makes a registration at `registry`, whose events have this token: for tests of transports.
    pub fn new(registry: &'a Registry, token: Token, interest: Interest) -> Registration<'a> {
        Registration { registry, token, interest }
    }

    /// Registers a descriptor as the source. It must stay open until the wire or the listener is dropped.
    ///
    /// # Errors
    /// The system cannot wait for it (a file), or it is registered already.
    #[cfg(unix)]
    pub fn descriptor(self, descriptor: &impl AsFd) -> io::Result<()> {
        self.source(&mut mio::unix::SourceFd(&descriptor.as_fd().as_raw_fd()))
    }

    /// Registers an event source of the crate `mio`. It must not be dropped before the wire or the listener is.
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
///
/// # Examples
///
/// ```
/// # use std::io;
/// # use std::net::SocketAddr;
/// # use std::time::Duration;
/// # use playhouse_theater::Theater;
/// # use playhouse_theater::transport::{Listener, Registration, Tcp, Transport, Wire};
/// /// TCP that counts its calls.
/// #[derive(Debug, Default)]
/// struct Counted(std::sync::atomic::AtomicU64);
///
/// impl Transport for Counted {
///     fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>> {
///         Tcp.listen(address)
///     }
///
///     fn connect(&self, address: SocketAddr, limit: Duration) -> io::Result<Box<dyn Wire>> {
///         self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///         Tcp.connect(address, limit)
///     }
/// }
///
/// let theater = Theater::builder().transport(Counted::default()).listen("127.0.0.1:0").start()?;
/// # theater.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Transport: fmt::Debug + Send + Sync + 'static {
    /// Listens at `address`; if its port is 0, at a free one.
    ///
    /// # Errors
    /// The reason why the address cannot be listened at: it is in use ([`AddrInUse`](io::ErrorKind::AddrInUse)), for example.
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>>;

    /// Calls the listener at `address`. It may wait until that listener has [accepted](Listener::accept) the call.
    ///
    /// # Errors
    /// No listener is at the address, or none has answered for `limit`.
    fn connect(&self, address: SocketAddr, limit: Duration) -> io::Result<Box<dyn Wire>>;
}

/// Accepts callers until it is dropped.
///
/// It does not block: its [registered](Listener::register) source reports new callers. A theater therefore waits for callers and
/// for its own end at the same time, and ends even if nothing can call it.
///
/// # Examples
///
/// ```
/// # use std::io;
/// # use std::net::SocketAddr;
/// # use std::time::Duration;
/// # use playhouse_theater::Theater;
/// # use playhouse_theater::transport::{Listener, Registration, Tcp, Transport, Wire};
/// /// Accepts the callers of another listener, and logs them.
/// struct Logged(Box<dyn Listener>);
///
/// impl Listener for Logged {
///     fn address(&self) -> io::Result<SocketAddr> {
///         self.0.address()
///     }
///
///     fn register(&mut self, registration: Registration<'_>) -> io::Result<()> {
///         self.0.register(registration)
///     }
///
///     fn accept(&self) -> io::Result<Box<dyn Wire>> {
///         self.0.accept().inspect(|wire| eprintln!("{} calls", wire.peer()))
///     }
/// }
/// ```
pub trait Listener: Send + 'static {
    /// Returns the address that callers use, with a port that is not 0.
    ///
    /// # Errors
    /// The address is not known.
    fn address(&self) -> io::Result<SocketAddr>;

    /// Registers the source that reports new callers. A theater calls this once, before the first [`accept`](Listener::accept).
    ///
    /// If the system does not know the callers of a protocol, it registers one end of a pair of sockets (`UnixStream::pair`, for
    /// example). It writes a byte to the other end for each caller.
    ///
    /// # Errors
    /// The system cannot wait for callers.
    fn register(&mut self, registration: Registration<'_>) -> io::Result<()>;

    /// Returns the next caller. Further callers are reported once: the theater calls this until it would block.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock): no caller waits. Others: a caller could not be answered, for want of
    /// descriptors for example. The theater calls this again after a moment.
    fn accept(&self) -> io::Result<Box<dyn Wire>>;
}

/// One end of a connection: a stream of bytes in each direction, in order and complete, until it breaks.
///
/// It blocks during the handshake, on a thread of its own and with a limit for each read and write. From then on it does not
/// block, and its [registered](Wire::register) source reports bytes to read and room to write.
///
/// Dropping it breaks the connection.
///
/// # Examples
///
/// ```
/// # use std::io;
/// # use std::net::SocketAddr;
/// # use std::time::Duration;
/// # use playhouse_theater::Theater;
/// # use playhouse_theater::transport::{Listener, Registration, Tcp, Transport, Wire};
/// // The streams of the standard library are wires where their descriptors can be registered: on Unix.
/// # #[cfg(unix)]
/// fn wire(stream: std::net::TcpStream) -> Box<dyn Wire> {
///     Box::new(stream)
/// }
/// ```
pub trait Wire: Send + Sync + 'static {
    /// Returns the name of the other end, for errors.
    fn peer(&self) -> String;

    /// Sets whether reading and writing return [`WouldBlock`](io::ErrorKind::WouldBlock) instead of waiting. Before the first
    /// call, they wait.
    ///
    /// # Errors
    /// The mode cannot be changed.
    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()>;

    /// Registers the source that reports bytes to read and room to write. A theater calls this once, after it has made the wire
    /// nonblocking.
    ///
    /// A protocol for which the system cannot wait registers one end of a pair of sockets (`UnixStream::pair`, for example), and
    /// carries the bytes of the other end.
    ///
    /// # Errors
    /// The system cannot wait for it.
    fn register(&self, registration: Registration<'_>) -> io::Result<()>;

    /// Sets the time limit of a blocking read and a blocking write. After that, they fail with
    /// [`TimedOut`](io::ErrorKind::TimedOut) or `WouldBlock`. Never 0.
    ///
    /// # Errors
    /// The limit cannot be changed.
    fn set_limit(&self, limit: Duration) -> io::Result<()>;

    /// Reads bytes that have come. 0: the other end has shut down writing, and all its bytes were read.
    ///
    /// A read that returns less than the room has read everything. Later bytes are reported once, and the reader waits for that
    /// report.
    ///
    /// # Errors
    /// The connection is broken, or no bytes have come.
    fn read(&self, room: &mut [u8]) -> io::Result<usize>;

    /// Writes as many of these bytes as there is room for, at least one. After a shorter write, the source reports once that
    /// there is room again.
    ///
    /// # Errors
    /// The connection is broken, or there is no room.
    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Ends reading, writing, or both. Bytes written before still reach the other end.
    ///
    /// # Errors
    /// The connection is broken.
    fn shutdown(&self, how: Shutdown) -> io::Result<()>;
}

/// Implements [`Wire`] for a stream of the standard library, whose descriptor is the source.
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
