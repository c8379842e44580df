//! TCP.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::{Listener, Transport, Wire, wire};

/// TCP, without Nagle's delay: what theaters use where nothing else is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tcp;

impl Transport for Tcp {
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>> {
        Ok(Box::new(TcpListener::bind(address)?))
    }

    fn connect(&self, address: SocketAddr, limit: Duration) -> io::Result<Box<dyn Wire>> {
        let stream = TcpStream::connect_timeout(&address, limit)?;
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}

impl Listener for TcpListener {
    fn address(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }

    fn accept(&self) -> io::Result<Box<dyn Wire>> {
        let (stream, _) = TcpListener::accept(self)?;
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}

wire!(TcpStream, |stream: &TcpStream| stream.peer_addr().map_or_else(|_| "?".to_owned(), |peer| peer.to_string()));
