//! Load on a web server with rooms: one thread with many connections that are kept alive, each with at most one request in
//! flight.
//!
//! Four of five requests are a POST to `/rooms/N` of a short text; the server answers with the number of posts in the room. The
//! others are a GET; the server answers with the last posts of the room as JSON. A seeded generator draws the rooms. Every answer
//! is checked, which needs a server with empty rooms at the start.

mod answer;
mod connection;
mod rooms;

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::{Events, Poll};

use self::connection::Connection;
use self::rooms::Rooms;
use crate::harness::outcome::Failure;

/// The load of a server.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The connections, which are opened before the time begins.
    pub connections: usize,
    /// The requests over all connections.
    pub requests: u64,
    /// The seed of the generator that draws the rooms.
    pub seed: u32,
    /// The longest time that all requests may take.
    pub limit: Duration,
}

/// The answers of a server.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The time from the first request to the last answer.
    pub elapsed: Duration,
    /// The time of each request in nanoseconds, from its sending to the end of its answer.
    pub times_ns: Vec<u64>,
    /// The requests that were posts.
    pub posts: u64,
}

impl Load {
    /// Sends the requests to `server`, and returns when all are answered.
    ///
    /// # Errors
    ///
    /// Fails at the first answer that is wrong or has another status than 200, if the server closes a connection, and if the answers take
    /// longer than the limit.
    pub fn send_to(&self, server: SocketAddr) -> Result<Answered, Failure> {
        let broken = |error: io::Error| Failure::new(format!("the load on {server} cannot go on: {error}"));
        let mut poll = Poll::new().map_err(broken)?;
        let opened = (0..self.connections).map(|number| Connection::open(server, number, poll.registry()));
        let mut connections = opened.collect::<io::Result<Vec<_>>>().map_err(broken)?;
        let mut rooms = Rooms::new(self.seed);
        let mut events = Events::with_capacity(self.connections);
        let mut times_ns = Vec::with_capacity(usize::try_from(self.requests).unwrap_or_default());

        let begun = Instant::now();
        let mut unsent = self.requests;
        for connection in &mut connections {
            if unsent > 0 {
                connection.send(rooms.draw(), begun)?;
                unsent -= 1;
            }
        }
        while (times_ns.len() as u64) < self.requests {
            let left = self.limit.saturating_sub(begun.elapsed());
            if left.is_zero() {
                let missing = self.requests - times_ns.len() as u64;
                return Err(Failure::new(format!("after {:?}, {missing} requests were not answered", self.limit)));
            }
            match poll.poll(&mut events, Some(left)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(broken(error)),
                _ => {}
            }
            for event in &events {
                let connection = &mut connections[event.token().0];
                let Some(sent) = connection.receive(&mut rooms)? else { continue };
                let now = Instant::now();
                times_ns.push((now - sent).as_nanos() as u64);
                if unsent > 0 {
                    connection.send(rooms.draw(), now)?;
                    unsent -= 1;
                }
            }
        }
        let elapsed = begun.elapsed();
        let posts = rooms.check_numbers()?;
        Ok(Answered { elapsed, times_ns, posts })
    }
}
