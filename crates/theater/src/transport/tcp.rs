//! TCP.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::{Listener, Transport, Wire, wire};

/// TCP, without Nagle's delay: what theaters use where nothing else is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tcp;

impl Transport for Tcp {
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Box::new(Socket(listener)))
    }

    fn connect(&self, address: SocketAddr, limit: Duration) -> io::Result<Box<dyn Wire>> {
        let stream = TcpStream::connect_timeout(&address, limit)?;
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}

/// A socket that listens, and does not block.
struct Socket(TcpListener);

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Listener for Socket {
    fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    fn accept(&self) -> io::Result<Box<dyn Wire>> {
        let (stream, _) = self.0.accept()?;
        // Some systems hand that down.
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}

wire!(TcpStream, |stream: &TcpStream| stream.peer_addr().map_or_else(|_| "?".to_owned(), |peer| peer.to_string()));
