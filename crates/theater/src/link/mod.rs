//! Links: one for each pair of theaters, whatever becomes of the connection between them.
//!
//! # Who does what
//!
//! *Sending.* Mail to an actor of the other theater comes to its place here ([`Proxy`]), on the link's own stage; there it
//! is written into the link's [`Outbound`], under a lock that is taken per message and most often not contended. The worker
//! writes to the socket when its gulp is over ([`Link::flush`]), so what one gulp has sent goes out in one system call.
//!
//! *Receiving.* The worker that polls reads the socket and sends what it has read to the actors, from its own logs.
//! [`Inbound`] and what belongs to it is used by that worker only.
//!
//! *Order.* Messages of X to Y are handed to the link in the order in which they were sent (the order of a cell's mail), are
//! written in that order, arrive in it (the session), and are sent on by the worker that polls, in it (`scheduler/poll.rs` of the
//! executor). An answer goes the same way as a message.
//!
//! *Backpressure.* When more than a window ([`WINDOW_BYTES`]) was not acknowledged, the link's stage is paused; who sends to it
//! when about as much waits for that is muted, until that was written. And while an actor that something was read for is overloaded, what was read
//! is not acknowledged ([`Strain`]). It is delivered: so no more than a window waits there, and what theaters say to each
//! other, answers and acknowledgements always pass.
//!
//! *No deadlock by that.* Theaters that flood each other may all withhold what the others wait for: the actors here are muted
//! since the window is full, so they stay overloaded, so nothing is acknowledged, so the window there stays full. No theater
//! sees that, but each sees that it sleeps while it withholds something, or (where others there are busy) that what it withholds
//! that for is only mail of actors that are muted, or that wait for room on a link themselves; a slow actor or a stuck one does not
//! sleep, and is not muted. So who has seen that for a while acknowledges. That may also be wrong: the actor may be muted for one
//! in a third theater that is only slow. So the while is doubled each time, and halved when room was made on some link (not for who
//! waits for room on a certain one): then what is let in is no more, but for a few windows, than what went out.
//!
//! *Everything counts.* Answers, starts, moves, watches and look-ups wait in the same window as messages. A full window pauses the stage
//! of the actor that answers, or whose message is sent on; the answer itself is on its way by then. So at most one answer of each stage
//! comes on top of the window. A thread that starts actors waits for room. Where no stage can be paused (an answer that is passed on
//! between two links, a handler that starts actors in a loop), 16 windows and 32 MiB is the limit, and what comes then is refused.
//!
//! *Replies.* What the poller writes because it has read something slows nobody. Bytes of it that the connection has not taken are
//! counted ([`Outbound::reply`]). Above one window, what is read is not acknowledged; so it is while the asks that were read and not
//! answered take more than a window. Above 8 windows and 32 MiB of such replies, or 16 windows and 32 MiB read without an
//! acknowledgement, the link is read no further. A connection that takes nothing for `lost_after`, at least 6 s, is lost.
//!
//! *No cycle of full links stands still.* A peer that keeps the rules has at most about 2 windows of requests unacknowledged, and replies
//! are about as long as what they reply to. So its replies stay below the 8 windows, and it is always read, acknowledgements and answers
//! included. What is always read leaves its writer's connection: unwritten replies go below one window, and acknowledgements are
//! withheld for them no longer. What is withheld for asks without an answer, or for overloaded actors, ends as described above: the
//! stages that are to answer wait for room on a link, which counts as being held up. (Windows of theaters that talk should therefore be
//! alike; the 32 MiB are for those that are not.)
//!
//! *Encryption.* What the socket is given, and what comes of it, goes through the connection's [`Cipher`](crate::transport::tls), if it
//! has one. To the session, what that has taken over is written; if it never leaves, it is written again with the rest.
//!
//! *Numbers.* Each end calls the other one's actors by numbers ([`Handle`]), which cost less than names. When nobody uses a
//! number any more (the [`Proxy`] is dropped), the other end is told, behind all in which it was used, and when it has
//! answered, the number may mean somebody else. Who has ended is found by looking, some at each tick: then the other end gives
//! up the place, and with it the number.
//!
//! *Faults.* A peer that does not keep to the protocol loses the link ([`Fault`]), and the first fault is the reason that is told. What
//! is kept for a peer has bounds: numbers, watches, names ([`NAMES_MAX`](crate::naming::NAMES_MAX)), and members of groups that are
//! not whole. A theater that keeps the rules refuses its own actors more than half of what its peer keeps.
//!
//! Locks are taken in the order `inn`, the guests of the directory, `out`, the cipher's or `stubs`, and then the other ones of
//! the directory; no user's code runs under the last two, and under `out` only what writes a message.

pub(crate) mod frame;
pub(crate) mod registry;

#[cfg(test)]
mod coming;
mod connection;
mod fault;
mod fences;
#[cfg(test)]
mod hostile;
mod leaving;
mod moves;
mod patience;
mod recall;
mod receive;
mod ref_codec;
mod send;
mod targets;
#[cfg(test)]
mod tests;
mod together;
#[cfg(test)]
mod watching;

use std::any::TypeId;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use playhouse_actor::away::{
    ActorLocation, ForwardedMessage, Forwarder, Marker, RefCodec, TakeAnswer, TooLate, at_ref_codec,
};
use playhouse_actor::wire::{Codec, WireError, Written};
use playhouse_actor::{ActorId, AskError, Ended, Notify, StopReason, Tell, Watcher};
use playhouse_executor::{Gate, Lane, SystemCore, Undelivered, contained, flush_soon, pause_stage};

use playhouse_executor::jitter::seam;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::link::frame::{Handle, Head, Kind};
use crate::link::registry::{Registry, Table};
use crate::migration::drain::DrainGuard;
use crate::migration::drain::begin_drains;
use crate::naming::locate::LostActor;
use crate::naming::{Directory, Key};
use crate::proxy::Proxy;
use crate::session::{self, FrameError, Inbound, Outbound};
pub(crate) use moves::{Departure, Left};
pub(crate) use together::PreparedMember;

pub(crate) use connection::{Connection, Stream};
pub(crate) use fault::Fault;
use fault::{HANDLES_MAX, LEAVINGS_MAX, MEMBER_WINDOWS_MAX, MEMBERS_MAX, WATCHES_MAX};
use patience::OverloadTimeout;
use targets::{Target, Targets};

/// Bytes that may be under way before who sends more is slowed, where nothing else is asked for.
pub(crate) const WINDOW_BYTES: usize = 4 * 1024 * 1024;
/// Windows that the replies to what was read may take, unwritten, before the link is read no further; [`RESERVE_BYTES`] come on top.
const REPLY_WINDOWS_MAX: usize = 8;
/// Windows of all kinds of frames that may wait, and bytes read that may wait to be acknowledged; [`RESERVE_BYTES`] come on top.
const WINDOWS_MAX: usize = 16;
/// Room for the largest frames beside whole windows: 2 of them.
const RESERVE_BYTES: usize = 2 * FRAME_BYTES_MAX as usize;
/// A message may have so many bytes.
pub(crate) const FRAME_BYTES_MAX: u32 = 16 * 1024 * 1024;
/// What is read by one system call, at most.
const READ_BYTES: usize = 256 * 1024;
/// What is read from one link before others have their turn.
const TURN_BYTES: usize = 1024 * 1024;

/// Watches that were taken from a link: who watches, the number of the watch, and what is called at the end.
pub(crate) type Taken = Vec<(Watcher, u64, Tell)>;

/// The sending half.
struct Out {
    outbound: Outbound,
    /// Actors may begin at the other end. This theater does not take leave.
    departs: bool,
    connection: Option<Arc<Connection>>,
    /// Bytes of a frame, on average of the last ones, times eight.
    frame_bytes: usize,
    next_handle: Handle,
    /// Numbers that nobody is called by any more: the other end knows that, ...
    free_handles: Vec<Handle>,
    /// ... or does not yet.
    given_up: Vec<Handle>,
    next_number: u64,
    asks: FxHashMap<u64, TakeAnswer>,
    /// Callbacks for asks that cannot be taken back.
    too_late: FxHashMap<u64, TooLate>,
    /// Whom they watch, and what is called when that has ended.
    watches: FxHashMap<u64, (Handle, Tell)>,
    /// Watches by whom they watch, with who does.
    watching: FxHashMap<Handle, Vec<(Watcher, u64)>>,
}

impl Out {
    /// An ask has ended. Returns what takes the answer.
    fn answered(&mut self, ask: u64) -> Option<TakeAnswer> {
        if !self.too_late.is_empty() {
            self.too_late.remove(&ask);
        }
        self.asks.remove(&ask)
    }

    /// A watch has ended, one way or another. Returns what is to be called.
    fn forget_watch(&mut self, watch: u64) -> Option<Tell> {
        let (handle, notify) = self.watches.remove(&watch)?;
        if let Some(of) = self.watching.get_mut(&handle) {
            of.retain(|(_, known)| *known != watch);
            if of.is_empty() {
                self.watching.remove(&handle);
            }
        }
        Some(notify)
    }

    /// All watches of whom this end calls so have ended.
    fn take_watching(&mut self, handle: Handle) -> Taken {
        let of = self.watching.remove(&handle).unwrap_or_default();
        of.into_iter().filter_map(|(watcher, watch)| Some((watcher, watch, self.watches.remove(&watch)?.1))).collect()
    }
}

/// The receiving half.
struct In {
    inbound: Inbound,
    buffer: Vec<u8>,
    filled: usize,
    /// The connection that `buffer` is of.
    connection: u64,
    /// What the other end's handles mean; in [`TARGETS`] while something is read.
    targets: Targets,
    patience: OverloadTimeout,
    /// Bytes read since the other end was told last what was received.
    withheld_bytes: usize,
}

/// Fences that were not answered yet, the oldest first, with whatever waits for them.
#[derive(Default)]
struct Fences {
    waiting: VecDeque<FenceSent>,
}

struct FenceSent {
    number: u64,
    is_answered: bool,
    waits: Vec<Arc<DrainGuard>>,
}

impl Fences {
    /// A fence was answered, or is lost. Returns those that were waited for and are answered, as are all before them: a fence stands only for
    /// what was sent since the one before it.
    fn answered(&mut self, number: u64) -> Vec<FenceSent> {
        if let Some(fence) = self.waiting.iter_mut().find(|fence| fence.number == number) {
            fence.is_answered = true;
        }
        let still_waits = self.waiting.iter().position(|fence| !fence.is_answered);
        self.waiting.drain(..still_waits.unwrap_or(self.waiting.len())).collect()
    }
}

/// Who was sent something that is not acknowledged, and is overloaded.
#[derive(Default)]
struct AckBackpressure {
    stages: Vec<u16>,
}

/// What this end's handles mean.
#[derive(Default)]
struct Places {
    handles: FxHashMap<ActorId, Handle>,
    by_handle: Vec<ActorId>,
}

impl Places {
    /// Whom the handles mean that still mean somebody, in the order of the handles.
    fn in_order(&self) -> Vec<ActorId> {
        let present = |(id, handle): (&ActorId, Handle)| (self.handles.get(id) == Some(&handle)).then_some(*id);
        self.by_handle.iter().zip(0..).filter_map(present).collect()
    }
}

/// How reading went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing is left to be read for now.
    Done,
    /// There may be more.
    More,
    /// Nothing is left, but who it is for has to catch up before it is acknowledged.
    Wait,
    /// The connection is broken.
    Broken,
}

/// Time in which this process ran, as the housekeeper counts it.
#[derive(Default)]
pub(crate) struct RunTime {
    ns: AtomicU64,
}

impl RunTime {
    /// So much more has passed. Returns all of it.
    pub(crate) fn add(&self, passed: Duration) -> Duration {
        let passed = passed.as_nanos() as u64;
        // Relaxed: it says nothing about other memory.
        Duration::from_nanos(self.ns.fetch_add(passed, Ordering::Relaxed) + passed)
    }

    /// Returns all that has passed.
    pub(crate) fn passed(&self) -> Duration {
        Duration::from_nanos(self.ns.load(Ordering::Relaxed))
    }

    /// It begins anew.
    pub(crate) fn reset(&self) {
        self.ns.store(0, Ordering::Relaxed);
    }
}

/// A session with another theater.
pub(crate) struct Link {
    this: Weak<Link>,
    core: Arc<SystemCore>,
    registry: Arc<Registry>,
    directory: Arc<Directory>,
    /// The other theater.
    pub(crate) incarnation: u64,
    /// The address that this end calls.
    pub(crate) address: Option<SocketAddr>,
    /// The address that third theaters call, which references carry.
    pub(crate) advertised: Option<SocketAddr>,
    number: u64,
    stage: u16,
    window_bytes: usize,
    gate: Arc<Gate>,
    table: Table,
    /// What the other end may be told that it has arrived.
    received: AtomicU64,
    /// Since something was heard, and since something was said.
    pub(crate) silent: RunTime,
    pub(crate) mute: RunTime,
    /// The connection has taken bytes since the housekeeper looked last.
    has_written: AtomicBool,
    /// Bytes of asks that were read and have no answer.
    unanswered_bytes: AtomicUsize,
    /// When it was connected or disconnected last: nanoseconds of the system's time.
    changed_ns: AtomicU64,
    lost: AtomicBool,
    /// The rule that the other end has broken. The thread that reads looks for it.
    fault: OnceLock<Fault>,
    /// The other end has said that it ends.
    taken_leave_of: AtomicBool,
    /// The number of the link at the other end, or 0.
    number_there: AtomicU64,
    /// It is given up, and is lost when this theater, which leaves, has ended its workers.
    is_left: AtomicBool,
    /// Rung when the connection is gone.
    shutdown_waker: Arc<Condvar>,
    /// The stage that the last message read was for, of those that are not acknowledged; `u64::MAX`: none was read.
    last_target: AtomicU64,
    ack_backpressure: Mutex<AckBackpressure>,
    out: Mutex<Out>,
    inn: Mutex<In>,
    stubs: Mutex<Places>,
    /// Members of groups that were sent, and wait for the others, by journey.
    pending_groups: Mutex<together::PendingGroups>,
    /// Watches of the other end that have not ended.
    watches: AtomicUsize,
    /// Actors that have left for the other theater, and have not begun there as far as is known.
    left: Mutex<FxHashMap<Key, Arc<moves::Left>>>,
    /// Something was sent to an actor of the other end since the last fence.
    is_unfenced: AtomicBool,
    fences: Mutex<Fences>,
    /// Where the other end leaves, and one thread waits for that: what this thread is told.
    leaving: Mutex<Option<leaving::Leaving>>,
    recalls: recall::Recalls,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The address of a theater that third ones call. A theater on the loopback of another machine knows no better one than the address
/// that it was called at.
fn for_others(called: Option<SocketAddr>, advertised: Option<SocketAddr>) -> Option<SocketAddr> {
    let is_far = |address: SocketAddr| !address.ip().is_loopback();
    let is_hidden = advertised.is_some_and(|address| !is_far(address)) && called.is_some_and(is_far);
    if is_hidden { called } else { advertised.or(called) }
}

thread_local! {
    /// Links that this thread has something to write for.
    static DIRTY: RefCell<Vec<Arc<Link>>> = const { RefCell::new(Vec::new()) };
    /// What the handles mean of the link that this thread reads. Here, since references within a message mean it too, and
    /// are read by `serde`.
    static TARGETS: RefCell<Targets> = RefCell::default();
    /// The number of the link that this thread reads.
    static READS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Has [`TARGETS`] in its place while `f` runs, and takes it back also when `f` panics.
fn with_targets<R>(link: u64, targets: &mut Targets, f: impl FnOnce() -> R) -> R {
    struct Back<'a>(&'a mut Targets);
    impl Drop for Back<'_> {
        fn drop(&mut self) {
            READS.set(None);
            TARGETS.with_borrow_mut(|here| std::mem::swap(here, self.0));
        }
    }
    TARGETS.with_borrow_mut(|here| std::mem::swap(here, targets));
    READS.set(Some(link));
    let _back = Back(targets);
    f()
}

/// Whether this thread reads a link.
pub(crate) fn is_reading() -> bool {
    READS.get().is_some()
}

/// Writes out what this thread has left to be written.
pub(crate) fn flush_all() {
    begin_drains();
    for link in DIRTY.take() {
        link.flush(false);
    }
}

impl Link {
    pub(crate) fn new(
        directory: &Arc<Directory>,
        registry: &Arc<Registry>,
        number: u64,
        (incarnation, called, advertised): (u64, Option<SocketAddr>, Option<SocketAddr>),
        kinds: &[Kind],
        (window_bytes, shutdown_waker): (usize, Arc<Condvar>),
    ) -> Arc<Link> {
        Arc::new_cyclic(|this| Link {
            this: this.clone(),
            core: Arc::clone(&directory.core),
            registry: Arc::clone(registry),
            directory: Arc::clone(directory),
            incarnation,
            address: called.or(advertised),
            advertised: for_others(called, advertised),
            number,
            stage: directory.core.link_stage(number as usize),
            window_bytes,
            gate: Arc::default(),
            table: registry.table(kinds),
            received: AtomicU64::new(0),
            silent: RunTime::default(),
            mute: RunTime::default(),
            has_written: AtomicBool::new(false),
            unanswered_bytes: AtomicUsize::new(0),
            changed_ns: AtomicU64::new(directory.core.now().as_nanos() as u64),
            lost: AtomicBool::new(false),
            fault: OnceLock::new(),
            taken_leave_of: AtomicBool::new(false),
            number_there: AtomicU64::new(0),
            is_left: AtomicBool::new(false),
            shutdown_waker,
            last_target: AtomicU64::new(u64::MAX),
            ack_backpressure: Mutex::default(),
            out: Mutex::new(Out {
                departs: true,
                outbound: Outbound::new(FRAME_BYTES_MAX),
                connection: None,
                frame_bytes: 0,
                next_handle: 0,
                free_handles: Vec::new(),
                given_up: Vec::new(),
                next_number: 0,
                asks: FxHashMap::default(),
                too_late: FxHashMap::default(),
                watches: FxHashMap::default(),
                watching: FxHashMap::default(),
            }),
            inn: Mutex::new(In {
                inbound: Inbound::new(FRAME_BYTES_MAX),
                buffer: Vec::new(),
                filled: 0,
                connection: 0,
                targets: Targets::default(),
                patience: OverloadTimeout::new(),
                withheld_bytes: 0,
            }),
            stubs: Mutex::default(),
            pending_groups: Mutex::default(),
            watches: AtomicUsize::new(0),
            left: Mutex::default(),
            is_unfenced: AtomicBool::new(false),
            fences: Mutex::default(),
            leaving: Mutex::default(),
            recalls: recall::Recalls::default(),
        })
    }

    fn this(&self) -> Arc<Link> {
        self.this.upgrade().expect("it is used")
    }

    // -- connections --------------------------------------------------------------------------------------------------

    /// The present connection.
    pub(crate) fn connection(&self) -> Option<Arc<Connection>> {
        lock(&self.out).connection.clone()
    }

    /// Links that were made later have higher ones.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(self) fn received(&self) -> u64 {
        self.received.load(Ordering::Acquire)
    }

    /// Takes leave of the old connection, before the connection with this number is made. Returns the highest packet number
    /// received: what the other end is told, so nothing more may be taken from the old connection after that.
    pub(crate) fn prepare(&self, connection: u64) -> u64 {
        if let Some(old) = self.connection() {
            self.disconnect(&old);
        }
        let mut inn = lock(&self.inn);
        inn.connection = connection;
        // What was half received comes again.
        inn.filled = 0;
        inn.inbound.received()
    }

    /// Returns the number of the connection that was prepared last.
    #[cfg(test)]
    pub(crate) fn prepared(&self) -> u64 {
        lock(&self.inn).connection
    }

    /// Goes on over a new connection; the other end has received everything up to `received`. Not where a later one has been
    /// prepared meanwhile: what this one says is out of date then. Nor where the link is lost.
    pub(crate) fn connect(&self, connection: &Arc<Connection>, received: u64) -> Result<(), session::ProtocolError> {
        {
            let inn = lock(&self.inn);
            if inn.connection != connection.number {
                connection.broken.store(true, Ordering::Relaxed);
                return Ok(());
            }
            let mut out = lock(&self.out);
            if self.is_lost() {
                // It was given up while this one was made; the other end is to learn that.
                connection.broken.store(true, Ordering::Relaxed);
                return Ok(());
            }
            out.outbound.resume(received)?;
            if let Some(old) = out.connection.replace(Arc::clone(connection)) {
                old.broken.store(true, Ordering::Relaxed);
            }
        }
        self.silent.reset();
        self.note_changed();
        self.flush(false);
        // What has come through before may be all that waited: nothing else would be acknowledged then.
        self.note_room();
        Ok(())
    }

    /// The connection is of no use any more.
    pub(crate) fn disconnect(&self, connection: &Connection) {
        connection.broken.store(true, Ordering::Relaxed);
        // The other end learns it too.
        connection.shut();
        let mut out = lock(&self.out);
        if out.connection.as_ref().is_some_and(|present| present.token == connection.token) {
            out.connection = None;
            self.note_changed();
            self.shutdown_waker.notify_all();
        }
    }

    fn note_changed(&self) {
        // Relaxed: it says nothing about other memory.
        self.changed_ns.store(self.core.now().as_nanos() as u64, Ordering::Relaxed);
    }

    /// How long it has been as it is.
    pub(crate) fn unchanged_for(&self) -> Duration {
        self.core.now().saturating_sub(Duration::from_nanos(self.changed_ns.load(Ordering::Relaxed)))
    }

    /// What is under way: packets that were not acknowledged and their bytes, and requests without an answer.
    pub(crate) fn under_way(&self) -> (usize, usize, usize) {
        let out = lock(&self.out);
        (out.outbound.waiting_packets(), out.outbound.waiting_bytes(), out.asks.len() + out.watches.len())
    }

    /// Returns whether there is something to be written and the connection has taken nothing since this was asked last.
    pub(crate) fn takes_nothing(&self) -> bool {
        // Relaxed: it says nothing about other memory.
        !self.has_written.swap(false, Ordering::Relaxed) && lock(&self.out).outbound.has_output()
    }

    /// Returns whether so much waits that nothing more is taken on which no sender can be slowed.
    fn is_overfull(&self) -> bool {
        lock(&self.out).outbound.waiting_bytes() > WINDOWS_MAX * self.window_bytes + RESERVE_BYTES
    }

    /// Whether anything was ever received.
    pub(crate) fn has_heard(&self) -> bool {
        lock(&self.inn).inbound.received() > 0
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// The other end has this number for the link.
    pub(crate) fn note_number_there(&self, number: Option<u64>) {
        // Relaxed, as it is read: it says nothing about other memory. Numbers begin at 1.
        self.number_there.store(number.unwrap_or(0), Ordering::Relaxed);
    }

    fn number_there(&self) -> Option<u64> {
        Some(self.number_there.load(Ordering::Relaxed)).filter(|number| *number > 0)
    }

    /// The link is given up. This theater leaves: its actors are not told.
    pub(crate) fn note_left(&self) {
        // Relaxed: it says nothing about other memory.
        self.is_left.store(true, Ordering::Relaxed);
        self.note_changed();
    }

    pub(crate) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
    }

    /// Less may be under way: where there is room in the window, who waits for it goes on.
    pub(self) fn note_room(&self) {
        if lock(&self.out).outbound.waiting_bytes() <= self.window_bytes / 2 {
            self.open_gate();
        }
    }

    fn open_gate(&self) {
        if self.gate.is_closed() {
            // Relaxed: it is counted only.
            self.directory.room_made.fetch_add(1, Ordering::Relaxed);
            self.gate.open(&self.core);
        }
    }

    // -- forgetting ---------------------------------------------------------------------------------------------------

    /// Nobody here calls anybody by this number any more.
    pub(crate) fn give_up(&self, handle: Handle) {
        /// Told together, or by [`Link::tidy`].
        const TOGETHER: usize = 64;
        if self.is_lost() {
            return;
        }
        {
            let mut stubs = lock(&self.stubs);
            if let Some(id) = stubs.by_handle.get(handle as usize).copied()
                && stubs.handles.get(&id) == Some(&handle)
            {
                stubs.handles.remove(&id);
            }
        }
        let (many, watched) = {
            let mut out = lock(&self.out);
            let of = out.watching.remove(&handle).unwrap_or_default();
            let watched: Vec<_> = of.into_iter().filter_map(|(_, watch)| out.watches.remove(&watch)).collect();
            out.given_up.push(handle);
            (out.given_up.len() >= TOGETHER, watched)
        };
        for (_, notify) in watched {
            notify(StopReason::NotAlive.into());
        }
        if many {
            self.release_handles();
        }
    }

    /// Behind all in which they were used.
    fn release_handles(&self) {
        let handles = std::mem::take(&mut lock(&self.out).given_up);
        if handles.is_empty() {
            return;
        }
        let (link, free) = (self.this(), handles.clone());
        let answer: TakeAnswer = Box::new(move |answer| {
            if answer.is_ok() {
                lock(&link.out).free_handles.extend(free);
            }
        });
        // If it cannot be said, nobody is called by anything any more.
        let _ = self.ask_with(answer, Lane::Normal, |ask, out| Head::Release { ask, handles }.write(out));
    }

    /// Now and then: says which numbers are free, and who has ended.
    pub(crate) fn tidy(&self) {
        self.release_handles();
        // If somebody reads, it will be another time.
        let Ok(mut inn) = self.inn.try_lock() else { return };
        let ended = inn.targets.ended();
        if !ended.is_empty() {
            // With the lock held: it goes out before the answer to a release of these numbers, which may be given again then.
            let _ = self.send(Lane::Normal, |out| Head::Ended { handles: ended }.write(out));
        }
    }

    /// The other end's actors that are called so here have ended: their places go.
    fn take_ended(&self, handles: &[Handle]) {
        let ended: Vec<(Handle, ActorId)> = {
            let stubs = lock(&self.stubs);
            let known = handles.iter().filter_map(|handle| Some((*handle, *stubs.by_handle.get(*handle as usize)?)));
            known.filter(|(handle, id)| stubs.handles.get(id) == Some(handle)).collect()
        };
        ended.into_iter().for_each(|(handle, id)| self.forget_ended(handle, id));
    }

    /// The place `id` goes, whose actor has ended in the other theater, where `handle` means it.
    fn forget_ended(&self, handle: Handle, id: ActorId) {
        if self.directory.forget_actor(id) {
            if let Some(controls) = self.registry.controls(id) {
                (controls.forget)(id);
            }
        } else if self.directory.is_remote(id) {
            // It turns, or is sought. When that is over, its way may be another one, and the number may mean another actor.
            let link = self.this();
            self.directory.again(id, move |id, _| {
                if link.handle_of(id) == Some(handle) {
                    link.forget_ended(handle, id);
                }
            });
        }
    }

    /// The session has ended: everybody who waits is told, and what was not acknowledged becomes dead letters.
    pub(crate) fn lose(&self) {
        // Whoever releases a place meanwhile takes its watchers along, or has done so.
        let (outbound, asks, mut watching, mut watches, connection, stubs) = {
            let mut out = lock(&self.out);
            // Under the lock: who sees it finds no connection any more, and acknowledges nothing that was not taken.
            if self.lost.swap(true, Ordering::AcqRel) {
                return;
            }
            self.note_changed();
            let mut stubs = lock(&self.stubs);
            (
                std::mem::replace(&mut out.outbound, Outbound::new(FRAME_BYTES_MAX)),
                {
                    out.too_late.clear();
                    std::mem::take(&mut out.asks)
                },
                std::mem::take(&mut out.watching),
                std::mem::take(&mut out.watches),
                out.connection.take(),
                Places { handles: std::mem::take(&mut stubs.handles), by_handle: stubs.by_handle.clone() },
            )
        };
        if let Some(connection) = connection {
            connection.broken.store(true, Ordering::Relaxed);
            connection.shut();
        }
        outbound.drain(|_, frame| {
            if let Ok((Head::Tell { kind, .. }, _)) = Head::read(frame) {
                let (actor, message) = self.table.names(kind);
                self.core.dead_letter(actor, message, Undelivered::Unreachable);
            }
        });
        let mut lost_actors = Vec::new();
        // By their names as well that are not in use any more, but are watched by.
        for (id, handle) in stubs.by_handle.iter().copied().zip(0..) {
            let is_meant = stubs.handles.get(&id) == Some(&handle) || watching.contains_key(&handle);
            if !is_meant || self.registry.migration_vtable(id).is_none() {
                continue;
            }
            let of = watching.remove(&handle).unwrap_or_default();
            let watchers = of.into_iter().filter_map(|(watcher, watch)| Some((watcher, watches.remove(&watch)?.1)));
            // It may have gone on from there, or have come here.
            lost_actors.push(LostActor { id, watchers: watchers.collect() });
        }
        // Actors that move may have gone on from there, and may come here. Some are sought only when something is sent to them.
        let has_left = self.taken_leave_of.load(Ordering::Relaxed);
        let kept = self
            .directory
            .lose((self.incarnation, self.number_there()), has_left, |id| self.registry.migration_vtable(id).is_some());
        seam(2);
        // Before who waits for a marker hears that it is lost: then what has waited at such a place goes on, and would go nowhere.
        LostActor::locate(lost_actors, &self.directory, &self.registry, self.incarnation);
        for answer in asks.into_values() {
            seam(2);
            contained(|| answer(Err(AskError::TheaterLost { may_have_run: true })));
        }
        for (_, notify) in watches.into_values() {
            contained(|| notify(StopReason::TheaterLost.into()));
        }
        self.forget_incoming_actors();
        self.lose_held();
        let left = std::mem::take(&mut *lock(&self.left));
        contained(|| drop(left));
        let pending_groups = std::mem::take(&mut *lock(&self.pending_groups));
        drop(pending_groups);
        self.open_gate();
        let kept = FxHashSet::from_iter(kept);
        // Who moves is sought, or is here now.
        for id in stubs.in_order().into_iter().filter(|id| self.registry.migration_vtable(*id).is_none()) {
            if let Some(controls) = self.registry.controls(id).filter(|_| !kept.contains(&id)) {
                (controls.forget)(id);
            }
        }
    }

    /// As when it was lost, for a place that it has become the way from later.
    pub(crate) fn locate_again(&self, id: ActorId) {
        let lost_actors = LostActor { id, watchers: Vec::new() };
        LostActor::locate(vec![lost_actors], &self.directory, &self.registry, self.incarnation);
    }
}
