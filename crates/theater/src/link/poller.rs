//! The reactor that the workers poll: all connections of a theater behind one `epoll` (or the equivalent of the system).
//!
//! # A poll turn survives panics
//!
//! Each event of a turn is handled under a catch of its own: a panic ends neither the turn nor the other events. Messages are
//! read under a catch within that ([`Link::read`]). A panic events of it may leave a session without some of its frames, and
//! that link is therefore lost.
//!
//! # Heartbeats prove that polling continues
//!
//! The housekeeper decides when a heartbeat is due, and the poller writes it in its next turn ([`Poller::demand`]). A theater
//! that does not poll is therefore silent, and its peers find its connections broken. The housekeeper itself demands a turn each
//! second. After 5 s without one the theater is *deaf* ([`Poller::is_deaf`]): it closes its connections, and neither calls nor
//! answers calls for them. When polling continues, it takes the links up again; until then they count as links of an unreachable
//! theater.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Registry, Token, Waker};
use playhouse_executor::{Reactor, contained};
use rustc_hash::FxHashMap;

use crate::link::{Connection, Link, Progress, RunTime, Stream, flush_all};
use crate::lock::lock;
use crate::transport::Registration;
use crate::transport::simulated::{Readiness, SimulatedEvents};
use crate::transport::tls::Cipher;

const WAKER: Token = Token(0);
/// Interval at which a waiting reader is asked again whether its receivers have caught up.
pub(crate) const CATCH_UP: Duration = Duration::from_millis(1);
/// The time between two demands of the housekeeper for a turn. Only time in which this process ran is counted.
const DEMAND_EVERY: Duration = Duration::from_secs(1);
/// The time from a demand without a turn until the theater is deaf.
const DEAF_AFTER: Duration = Duration::from_secs(5);

/// All connections.
pub(crate) struct Poller {
    source: Source,
    before_flush: fn(),
    next_token: AtomicUsize,
    connections: Mutex<FxHashMap<Token, Present>>,
    /// The housekeeper has demanded a turn that has not been taken.
    demanded: AtomicBool,
    /// Links whose heartbeats the demanded turn writes.
    heartbeats: Mutex<Vec<Arc<Link>>>,
    /// The work of the demanded turn.
    later: Mutex<Later>,
    /// The time since the last demand, whether or not a turn was taken.
    since_demand: RunTime,
    /// Used by the worker that polls.
    round: Mutex<PollRound>,
}

/// The source of the events.
enum Source {
    System { registry: Registry, waker: Waker },
    Simulated(Arc<dyn SimulatedEvents>),
}

/// The remaining work of the poller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollerDuty {
    Nothing,
    More,
    /// The poller is to be run again after [`CATCH_UP`].
    Waits,
}

/// A link and its present connection.
type Present = (Arc<Link>, Arc<Connection>);

/// An action that runs after the handling of everything that was read before.
type Act = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Later {
    acts: Vec<Act>,
    /// The workers have ended: nothing polls any more.
    is_closed: bool,
}

struct PollRound {
    /// `None` in simulation.
    poll: Option<Poll>,
    events: Events,
    ready: Vec<Ready>,
    /// The worker has slept in the poll, not only looked.
    slept: bool,
    /// The time when waiting readers were asked last.
    asked: Instant,
    /// It is time to ask the waiting readers again.
    due: bool,
}

#[derive(Clone, Copy)]
struct Ready {
    token: Token,
    readable: bool,
    /// The other end writes no more. Its last bytes are to be read to their end, because no further event will report them.
    closed: bool,
    writable: bool,
    /// The receivers of the connection have to catch up.
    waits: bool,
}

impl Ready {
    fn join(&mut self, other: Ready) {
        self.readable |= other.readable;
        self.closed |= other.closed;
        self.writable |= other.writable;
        self.waits &= other.waits;
    }
}

fn now(source: &Source) -> Instant {
    match source {
        Source::System { .. } => Instant::now(),
        Source::Simulated(events) => events.now(),
    }
}

impl Poller {
    /// `before_flush` runs on each worker before it writes out the frames of its gulp.
    pub(crate) fn new(before_flush: fn()) -> io::Result<Poller> {
        let poll = Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let waker = Waker::new(&registry, WAKER)?;
        Ok(Poller::of(Source::System { registry, waker }, Some(poll), before_flush))
    }

    pub(crate) fn simulated(events: Arc<dyn SimulatedEvents>, before_flush: fn()) -> Poller {
        Poller::of(Source::Simulated(events), None, before_flush)
    }

    fn of(source: Source, poll: Option<Poll>, before_flush: fn()) -> Poller {
        let asked = now(&source);
        Poller {
            source,
            before_flush,
            next_token: AtomicUsize::new(1),
            connections: Mutex::default(),
            demanded: AtomicBool::new(false),
            heartbeats: Mutex::default(),
            later: Mutex::default(),
            since_demand: RunTime::default(),
            round: Mutex::new(PollRound {
                poll,
                events: Events::with_capacity(256),
                ready: Vec::new(),
                slept: false,
                asked,
                due: false,
            }),
        }
    }

    /// Adds the connection as the link's present one, which is read and written from now on.
    pub(crate) fn add(
        &self,
        link: &Arc<Link>,
        stream: Stream,
        cipher: Option<Cipher>,
        number: u64,
        received: u64,
    ) -> io::Result<()> {
        let token = Token(self.next_token.fetch_add(1, Ordering::Relaxed));
        let unread = cipher.is_some().into();
        let connection = Arc::new(Connection { token, stream, cipher, unread, number, broken: false.into() });
        // The insertion comes first, because the poller may get its event at once, and gets it only once.
        lock(&self.connections).insert(token, (Arc::clone(link), Arc::clone(&connection)));
        let registered = match (&connection.stream, &self.source) {
            (Stream::Wire(wire), Source::System { registry, .. }) => {
                wire.register(Registration::new(registry, token, Interest::READABLE | Interest::WRITABLE))
            }
            (Stream::Simulated(end), Source::Simulated(events)) => {
                end.register(events, token);
                Ok(())
            }
            _ => Err(io::ErrorKind::Unsupported.into()),
        };
        if let Err(error) = registered {
            lock(&self.connections).remove(&token);
            return Err(error);
        }
        if let Err(error) = link.connect(&connection, received) {
            lock(&self.connections).remove(&token);
            link.lose();
            return Err(io::Error::other(error.to_string()));
        }
        if connection.broken.load(Ordering::Relaxed) {
            // The poller has found the connection closed before the link knew of it.
            self.remove(token);
            link.disconnect(&connection);
        }
        Ok(())
    }

    /// Returns the remaining work, for the driver of a simulation.
    pub(crate) fn duty(&self) -> PollerDuty {
        if self.demanded.load(Ordering::Relaxed) {
            return PollerDuty::More;
        }
        let ready = &lock(&self.round).ready;
        match ready.iter().all(|ready| ready.waits) {
            true if ready.is_empty() => PollerDuty::Nothing,
            true => PollerDuty::Waits,
            false => PollerDuty::More,
        }
    }

    /// Demands a turn that writes a heartbeat of `link`.
    pub(crate) fn demand_heartbeat(&self, link: &Arc<Link>) {
        {
            let mut heartbeats = lock(&self.heartbeats);
            if !heartbeats.iter().any(|due| Arc::ptr_eq(due, link)) {
                heartbeats.push(Arc::clone(link));
            }
        }
        self.demand();
    }

    /// Demands a turn that calls `act`. Everything that the poller has sent before that turn precedes everything that `act`
    /// sends.
    pub(crate) fn demand_act(&self, act: Act) {
        {
            let mut later = lock(&self.later);
            if later.is_closed {
                drop(later);
                return act();
            }
            later.acts.push(act);
        }
        self.demand();
    }

    /// Does the demanded work, because the workers have ended.
    pub(crate) fn close(&self) {
        let acts = {
            let mut later = lock(&self.later);
            later.is_closed = true;
            std::mem::take(&mut later.acts)
        };
        acts.into_iter().for_each(|act| contained(act).unwrap_or(()));
    }

    fn demand(&self) {
        // The reset comes first: a demand that has just been made must not look old.
        if !self.demanded.load(Ordering::Relaxed) {
            self.since_demand.reset();
        }
        // Release: pairs with the Acquire in `take_demand`; that turn sees the heartbeats.
        self.demanded.store(true, Ordering::Release);
        match &self.source {
            Source::System { .. } => self.wake(),
            Source::Simulated(events) => events.demand(),
        }
    }

    /// Demands a turn now and then. The housekeeper calls it at each tick.
    pub(crate) fn tick(&self, passed: Duration) {
        let since_demand = self.since_demand.add(passed);
        // Relaxed: a concurrent demand of another thread has the same effect.
        let idle = || self.demanded.load(Ordering::Relaxed) || lock(&self.connections).is_empty();
        if since_demand >= DEMAND_EVERY && !idle() {
            self.demand();
        }
    }

    /// Returns whether demanded turns have not been taken for 5 s.
    pub(crate) fn is_deaf(&self) -> bool {
        self.demanded.load(Ordering::Relaxed) && self.since_demand.passed() > DEAF_AFTER
    }

    /// Writes the heartbeats that are due, and does the demanded work.
    fn take_demand(&self) {
        if self.demanded.swap(false, Ordering::Acquire) {
            let acts = std::mem::take(&mut lock(&self.later).acts);
            acts.into_iter().for_each(|act| contained(act).unwrap_or(()));
            let due = std::mem::take(&mut *lock(&self.heartbeats));
            due.iter().for_each(|link| link.beat());
        }
    }

    /// Handles an event. Returns it if more is to be done for it.
    fn handle(&self, event: Ready, slept: bool) -> Option<Ready> {
        let (link, connection) = lock(&self.connections).get(&event.token).cloned()?;
        let handled = contained(|| {
            if event.writable {
                link.flush(false);
            }
            // Relaxed: only one worker polls at a time.
            let reads = event.readable || event.writable && connection.unread.swap(false, Ordering::Relaxed);
            if reads { link.read(&connection, event.closed, slept) } else { Progress::Done }
        });
        let again = |waits| Some(Ready { readable: true, writable: false, waits, ..event });
        match handled {
            Some(Progress::Done) => None,
            Some(Progress::More) => again(false),
            Some(Progress::Wait) => again(true),
            Some(Progress::Broken) => {
                self.remove(event.token);
                None
            }
            None => {
                contained(|| link.lose());
                self.remove(event.token);
                None
            }
        }
    }

    fn remove(&self, token: Token) {
        let removed = lock(&self.connections).remove(&token);
        if let Some((link, connection)) = removed {
            link.disconnect(&connection);
        }
    }

    /// Forgets connections that were replaced, or that a writer has found broken.
    pub(crate) fn tidy(&self) {
        lock(&self.connections).retain(|_, (_, connection)| !connection.broken.load(Ordering::Relaxed));
    }
}

impl Reactor for Poller {
    fn wait(&self, timeout: Option<Duration>) -> bool {
        let mut round = lock(&self.round);
        let PollRound { poll, events, ready, slept, asked, due } = &mut *round;
        let timeout = match ready.iter().all(|ready| ready.waits) {
            // A later demand wakes the poller.
            _ if self.demanded.load(Ordering::Relaxed) => Some(Duration::ZERO),
            true if ready.is_empty() => timeout,
            true => Some(timeout.map_or(CATCH_UP, |timeout| timeout.min(CATCH_UP))),
            false => Some(Duration::ZERO),
        };
        *slept = timeout.is_none_or(|timeout| !timeout.is_zero());
        let mut find = |found: Ready| match ready.iter_mut().find(|known| known.token == found.token) {
            Some(known) => known.join(found),
            None => ready.push(found),
        };
        if let Source::Simulated(simulated) = &self.source {
            for Readiness { token, readable, closed, writable } in simulated.take_readiness() {
                find(Ready { token, readable, closed, writable, waits: false });
            }
        } else if let Some(poll) = poll
            // An interrupted poll counts as if the time had passed.
            && poll.poll(events, timeout).is_ok()
        {
            for event in events.iter().filter(|event| event.token() != WAKER) {
                let closed = event.is_read_closed() || event.is_error();
                find(Ready {
                    token: event.token(),
                    readable: event.is_readable() || closed,
                    closed,
                    writable: event.is_writable(),
                    waits: false,
                });
            }
        }
        // Not at each turn: waiting readers are no work, and must keep no worker awake.
        *due = ready.iter().any(|ready| ready.waits) && now(&self.source) - *asked >= CATCH_UP;
        *due || ready.iter().any(|ready| !ready.waits) || self.demanded.load(Ordering::Relaxed)
    }

    fn dispatch(&self) {
        contained(|| self.take_demand());
        let mut round = lock(&self.round);
        let (ready, slept, due) = (std::mem::take(&mut round.ready), round.slept, round.due);
        if due {
            round.asked = now(&self.source);
        }
        for event in ready {
            if event.waits && !due {
                round.ready.push(event);
                continue;
            }
            let more = contained(|| self.handle(event, slept)).flatten();
            round.ready.extend(more);
        }
    }

    fn wake(&self) {
        if let Source::System { waker, .. } = &self.source {
            // It can only fail if the system is out of memory; in that case the worker wakes by its timer or not at all.
            let _ = waker.wake();
        }
    }

    fn flush(&self) {
        (self.before_flush)();
        flush_all();
    }
}
