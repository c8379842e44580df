//! A connection of the load.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read, Write as _};
use std::net::SocketAddr;
use std::time::Instant;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use super::answer::Answer;
use super::rooms::{Request, Rooms};
use crate::harness::outcome::Failure;

/// A connection with at most one request under way.
pub(super) struct Connection {
    stream: TcpStream,
    server: SocketAddr,
    /// The request under way, and when it was sent.
    request: Option<(Request, Instant)>,
    /// The text of the request.
    text: String,
    /// The bytes of its answer that were received so far.
    received: Box<[u8; Connection::ANSWER_MAX]>,
    received_len: usize,
}

impl Connection {
    /// The most bytes of an answer. The longest right one has some 500.
    const ANSWER_MAX: usize = 16 * 1024;

    /// Connects with `server`. Events of the connection have the token `number`.
    pub(super) fn open(server: SocketAddr, number: usize, registry: &Registry) -> io::Result<Self> {
        let stream = std::net::TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        registry.register(&mut stream, Token(number), Interest::READABLE)?;
        let received = Box::new([0; Self::ANSWER_MAX]);
        Ok(Self { stream, server, request: None, text: String::new(), received, received_len: 0 })
    }

    /// Sends `request` at the time `now`.
    pub(super) fn send(&mut self, request: Request, now: Instant) -> Result<(), Failure> {
        self.text.clear();
        // Writing into a `String` does not fail.
        let _ = write!(self.text, "{request} HTTP/1.1\r\nHost: {}\r\n{}", self.server, request.rest());
        let written = self.stream.write(self.text.as_bytes());
        // The buffer of the socket has room for all of it, because the server has read the request before.
        match written {
            Ok(len) if len == self.text.len() => {}
            Ok(_) => return Err(Failure::new(format!("{request} was only sent in part"))),
            Err(error) => return Err(Failure::new(format!("{request} cannot be sent: {error}"))),
        }
        self.request = Some((request, now));
        self.received_len = 0;
        Ok(())
    }

    /// Receives the available bytes. When the answer is complete, `rooms` checks it, and the function returns the time of its
    /// request.
    pub(super) fn receive(&mut self, rooms: &mut Rooms) -> Result<Option<Instant>, Failure> {
        let Some((request, sent)) = &self.request else { return Ok(None) };
        loop {
            let room = &mut self.received[self.received_len..];
            if room.is_empty() {
                return Err(Failure::new(format!("the answer to {request} is longer than {} bytes", Self::ANSWER_MAX)));
            }
            match self.stream.read(room) {
                Ok(0) => {
                    return Err(Failure::new(format!("the server closed a connection before it answered {request}")));
                }
                Ok(len) => self.received_len += len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(Failure::new(format!("the answer to {request} does not come: {error}"))),
            }
            let answer = Answer::parse(&self.received[..self.received_len]);
            let answer = answer.map_err(|error| Failure::new(format!("the answer to {request}: {error}")))?;
            if let Some(answer) = answer {
                rooms.take(request, &answer)?;
                let sent = *sent;
                self.request = None;
                return Ok(Some(sent));
            }
        }
    }
}
