//! TCP, the default transport.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use mio::net::TcpListener;

use super::{Listener, Registration, Transport, Wire};

/// TCP without Nagle's delay: the default transport of theaters.
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// # use playhouse_theater::transport::Tcp;
/// let theater = Theater::builder().transport(Tcp).listen("127.0.0.1:0").start()?;
/// # theater.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Tcp;

impl Transport for Tcp {
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Box::new(Socket(TcpListener::from_std(listener))))
    }

    fn connect(&self, address: SocketAddr, limit: Duration) -> io::Result<Box<dyn Wire>> {
        wire(TcpStream::connect_timeout(&address, limit)?)
    }
}

fn wire(stream: TcpStream) -> io::Result<Box<dyn Wire>> {
    stream.set_nodelay(true)?;
    #[cfg(windows)]
    let stream = windows::Stream::new(stream);
    Ok(Box::new(stream))
}

/// A listening socket that does not block.
struct Socket(TcpListener);

impl Listener for Socket {
    fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    fn register(&mut self, registration: Registration<'_>) -> io::Result<()> {
        registration.source(&mut self.0)
    }

    fn accept(&self) -> io::Result<Box<dyn Wire>> {
        let stream = TcpStream::from(self.0.accept()?.0);
        stream.set_nonblocking(false)?;
        wire(stream)
    }
}

fn peer(stream: &TcpStream) -> String {
    stream.peer_addr().map_or_else(|_| "?".to_owned(), |peer| peer.to_string())
}

#[cfg(unix)]
mod unix {
    use std::io::{self, IoSlice};
    use std::net::{Shutdown, TcpStream};
    use std::time::Duration;

    super::super::wire!(TcpStream, super::peer);
}

/// A socket of Windows. Windows reports an event once, and again only after `mio` was told that an operation on the socket would
/// block.
#[cfg(windows)]
mod windows {
    use std::io::{self, ErrorKind, IoSlice, Read, Write};
    use std::net::{Shutdown, TcpStream};
    use std::sync::OnceLock;
    use std::time::Duration;

    use super::super::{Registration, Wire};

    pub(super) struct Stream {
        stream: TcpStream,
        /// The same socket, once it is registered.
        registered: OnceLock<mio::net::TcpStream>,
    }

    impl Stream {
        pub(super) fn new(stream: TcpStream) -> Stream {
            Stream { stream, registered: OnceLock::new() }
        }

        /// Reads or writes up to `most` bytes at once. After a shorter operation, later readiness is reported.
        fn act(&self, most: usize, act: impl FnOnce() -> io::Result<usize>) -> io::Result<usize> {
            let done = act();
            let blocks = |error: &io::Error| error.kind() == ErrorKind::WouldBlock;
            if done.as_ref().map_or_else(blocks, |count| *count < most) {
                self.tell_again();
            }
            done
        }

        /// Makes mio report readiness again, even if it has reported it before: after a short read, this is mostly room to write.
        /// Room to write alone must not cause a read, because that would cause reports without end.
        fn tell_again(&self) {
            if let Some(registered) = self.registered.get() {
                // It fails on a broken connection, which the next operation reports.
                let _ = registered.try_io(|| Err::<(), _>(ErrorKind::WouldBlock.into()));
            }
        }
    }

    impl Wire for Stream {
        fn peer(&self) -> String {
            super::peer(&self.stream)
        }

        fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
            self.stream.set_nonblocking(nonblocking)
        }

        fn register(&self, registration: Registration<'_>) -> io::Result<()> {
            let mut stream = mio::net::TcpStream::from_std(self.stream.try_clone()?);
            registration.source(&mut stream)?;
            self.registered.set(stream).map_err(|_| ErrorKind::AlreadyExists)?;
            // Another thread's operation may have come to nothing in between.
            self.tell_again();
            Ok(())
        }

        fn set_limit(&self, limit: Duration) -> io::Result<()> {
            self.stream.set_read_timeout(Some(limit))?;
            self.stream.set_write_timeout(Some(limit))
        }

        fn read(&self, room: &mut [u8]) -> io::Result<usize> {
            let most = room.len();
            let mut stream = &self.stream;
            self.act(most, || stream.read(room))
        }

        fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
            let most = slices.iter().map(|slice| slice.len()).sum();
            let mut stream = &self.stream;
            self.act(most, || stream.write_vectored(slices))
        }

        fn shutdown(&self, how: Shutdown) -> io::Result<()> {
            self.stream.shutdown(how)
        }
    }
}
