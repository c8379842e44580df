//! The reactor that the workers poll: all connections of a theater behind one `epoll` (or what else the system has).

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mio::{Events, Interest, Poll, Registry, Token, Waker};
use playhouse_executor::Reactor;
use rustc_hash::FxHashMap;

use crate::handshake::Opening;
use crate::link::{Connection, Link, Progress, flush_all};

const WAKER: Token = Token(0);
/// How long a reader waits until who it read for may have caught up.
const CATCH_UP: Duration = Duration::from_millis(1);

/// All connections.
pub(crate) struct Poller {
    registry: Registry,
    waker: Waker,
    next_token: AtomicUsize,
    connections: Mutex<FxHashMap<Token, Present>>,
    /// Used by the worker that polls.
    turn: Mutex<Turn>,
}

/// A connection and whose it is.
type Present = (Arc<Link>, Arc<Connection>);

struct Turn {
    poll: Poll,
    events: Events,
    ready: Vec<Ready>,
}

#[derive(Clone, Copy)]
struct Ready {
    token: Token,
    readable: bool,
    /// The other end writes no more: what it wrote last is to be read up to its end, of which nothing else will tell.
    closed: bool,
    writable: bool,
    /// Who it is for had to catch up.
    waits: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        let poll = Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let waker = Waker::new(&registry, WAKER)?;
        Ok(Poller {
            registry,
            waker,
            next_token: AtomicUsize::new(1),
            connections: Mutex::default(),
            turn: Mutex::new(Turn { poll, events: Events::with_capacity(256), ready: Vec::new() }),
        })
    }

    /// Has the connection read and written from now on, as the link's present one.
    pub(crate) fn add(&self, link: &Arc<Link>, opening: Opening, number: u64, received: u64) -> io::Result<()> {
        let (stream, cipher) = opening.into_parts();
        stream.set_nonblocking(true)?;
        let token = Token(self.next_token.fetch_add(1, Ordering::Relaxed));
        let mut stream = mio::net::TcpStream::from_std(stream);
        let connection = {
            // The poller may be told of it at once, and is told only once.
            let mut connections = lock(&self.connections);
            self.registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
            let connection = Arc::new(Connection { token, stream, cipher, number, broken: false.into() });
            connections.insert(token, (Arc::clone(link), Arc::clone(&connection)));
            connection
        };
        if let Err(error) = link.connect(&connection, received) {
            lock(&self.connections).remove(&token);
            link.lose();
            return Err(io::Error::other(error.to_string()));
        }
        if connection.broken.load(Ordering::Relaxed) {
            // The poller has found that out before the link knew of it.
            self.remove(token);
            link.disconnect(&connection);
        }
        Ok(())
    }

    fn remove(&self, token: Token) {
        let removed = lock(&self.connections).remove(&token);
        if let Some((link, connection)) = removed {
            link.disconnect(&connection);
        }
    }

    /// Forgets connections that were replaced or found broken by who wrote.
    pub(crate) fn tidy(&self) {
        lock(&self.connections).retain(|_, (_, connection)| !connection.broken.load(Ordering::Relaxed));
    }
}

impl Reactor for Poller {
    fn wait(&self, timeout: Option<Duration>) -> bool {
        let mut turn = lock(&self.turn);
        let Turn { poll, events, ready } = &mut *turn;
        let timeout = match ready.iter().all(|ready| ready.waits) {
            true if ready.is_empty() => timeout,
            true => Some(timeout.map_or(CATCH_UP, |timeout| timeout.min(CATCH_UP))),
            false => Some(Duration::ZERO),
        };
        // Interrupted: as if the time had passed.
        if poll.poll(events, timeout).is_ok() {
            for event in events.iter().filter(|event| event.token() != WAKER) {
                let closed = event.is_read_closed() || event.is_error();
                ready.push(Ready {
                    token: event.token(),
                    readable: event.is_readable() || closed,
                    closed,
                    writable: event.is_writable(),
                    waits: false,
                });
            }
        }
        !ready.is_empty()
    }

    fn dispatch(&self) {
        let mut turn = lock(&self.turn);
        let ready = std::mem::take(&mut turn.ready);
        for event in ready {
            let Some((link, connection)) = lock(&self.connections).get(&event.token).cloned() else { continue };
            if event.writable {
                link.flush(false);
            }
            // The handshake may have read more than its own words, of which the socket does not tell. It tells at once that
            // there is room.
            if event.readable || event.writable && connection.cipher.is_some() {
                let again = |waits| Ready { readable: true, writable: false, waits, ..event };
                match link.read(&connection, event.closed) {
                    Progress::Done => {}
                    Progress::More => turn.ready.push(again(false)),
                    Progress::Wait => turn.ready.push(again(true)),
                    Progress::Broken => self.remove(event.token),
                }
            }
        }
    }

    fn wake(&self) {
        // It can only fail where the system is out of memory; then the worker wakes by its timer or not at all.
        let _ = self.waker.wake();
    }

    fn flush(&self) {
        flush_all();
    }
}
