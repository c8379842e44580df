//! Links: one for each pair of theaters. A link outlives its connections.
//!
//! # Duties
//!
//! *Sending.* Mail to an actor of the other theater comes to its stub in this theater ([`Proxy`]), on the link's own stage. The stub writes it into
//! the link's [`Outbound`], under a lock that is taken per message and is rarely contended. The worker writes to the socket when its gulp is over
//! ([`Link::flush`]). Therefore the messages of one gulp go out in one system call.
//!
//! *Receiving.* The worker that polls reads the socket and sends the messages to the actors, from its own logs. Only that worker uses [`Inbound`] and
//! its parts.
//!
//! *Order.* Messages of X to Y reach the link in the order in which they were sent (the order of a cell's mail). They are written in that order, and
//! arrive in it (the session). The polling worker delivers them in it (`scheduler/poll.rs` of the executor). An answer takes the same route as a
//! message.
//!
//! *Backpressure.* When more than a window ([`WINDOW_BYTES`]) is not acknowledged, the link's stage is paused. When about as much waits for that
//! stage, its senders are muted until that was written. And while an actor that has received something over the link is overloaded, the theater does
//! not acknowledge what it has read ([`AckBackpressure`]). The mail is delivered all the same. Therefore no more than a window waits at the receiver,
//! and frames between theaters, answers and acknowledgements always pass.
//!
//! *No deadlock by that.* Theaters that flood each other may all withhold acknowledgements that the others wait for. The actors of one theater are
//! muted because the window is full, so they stay overloaded. Therefore nothing is acknowledged, and the window of the other theater stays full. No
//! theater observes that whole cycle. But each observes that it sleeps while it withholds an acknowledgement. If other workers are busy, it observes
//! the cause of the withholding: only mail of muted actors, or of actors that wait for room on a link themselves. A slow or stuck actor does not
//! sleep, and is not muted. Therefore a theater that has observed this for some time acknowledges. The observation may also be wrong: the actor may
//! be muted for an actor in a third theater that is only slow. Therefore the time is doubled at each acknowledgement, and halved when room was made
//! on some link (not for actors that wait for room on a certain link). Then the admitted mail exceeds the sent mail by a few windows at most.
//!
//! *Everything counts.* Answers, starts, migrations, watches and look-ups wait in the same window as messages. A full window pauses the stage of the
//! actor that answers, or whose message is forwarded; the answer itself is on its way by then. Therefore at most one answer of each stage comes on
//! top of the window. A thread that starts actors waits for room. In some cases no stage can be paused: an answer that is passed on between two
//! links, or a handler that starts actors in a loop. Then 16 windows and 32 MiB is the limit, and further frames are refused.
//!
//! *Replies.* Frames that the poller writes as a reaction to received ones slow no sender. The bytes of them that the connection has not taken are
//! counted ([`Outbound::reply`]). Above one window, received frames are not acknowledged. The same holds while the asks that were read and not
//! answered take more than a window. Above 8 windows and 32 MiB of such replies, or 16 windows and 32 MiB read without an acknowledgement, the link
//! is read no further. A connection that takes nothing for `lost_after`, at least 6 s, is lost.
//!
//! *No cycle of full links stands still.* A peer that keeps the rules has at most about 2 windows of requests unacknowledged. Replies are about as
//! long as their requests. Therefore its replies stay below the 8 windows, and it is always read, acknowledgements and answers included. Bytes that
//! are always read leave their writer's connection: unwritten replies go below one window, and no longer withhold acknowledgements. Acknowledgements
//! that are withheld for asks without an answer, or for overloaded actors, follow as described under *No deadlock by that*. The answering stages wait
//! for room on a link, which counts as muted. (Therefore windows of theaters that talk should be alike; the 32 MiB are for different ones.)
//!
//! *Encryption.* The bytes to and from the socket go through the connection's [`Cipher`](crate::transport::tls), if it has one. The session counts
//! bytes as written when the cipher has taken them. If they never leave, they are written again with the rest.
//!
//! *Numbers.* Each end calls the other one's actors by numbers ([`Handle`]), which cost less than names. When no actor uses a number any more (the
//! [`Proxy`] is dropped), the other end is told behind all frames with that number. When it has answered, the number may mean another actor. A search
//! over some handles at each tick finds ended actors: then the other end drops the stub, and with it the number.
//!
//! *Faults.* A peer that breaks the protocol loses the link ([`Fault`]), and the first fault is the reported reason. The state kept for a peer has
//! bounds: numbers, watches, names (`naming/identities.rs`), and members of incomplete groups. A theater that keeps the rules
//! refuses its own actors more than half of the peer's bounds.
//!
//! Locks are taken in the order `inn`, the incoming actors of the directory, `out`, the cipher's or `stubs`, and then the other ones of the
//! directory and of the link table. No user code runs under the last two, and under `out` only code that writes a message.

pub(crate) mod frame;
pub(crate) mod link_table;
pub(crate) mod node;
pub(crate) mod poller;
pub(crate) mod proxy;
pub(crate) mod registry;
pub(crate) mod traffic;

mod connection;
mod fault;
mod fences;
mod handles;
mod overload_timeout;
mod recall;
mod receive_frames;
mod ref_codec;
mod send;
mod stubs_of_lost_theaters;
mod targets;
#[cfg(test)]
mod tests;
mod turnstiles;

use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, Weak};
use std::time::Duration;

use playhouse_actor::away::{
    ActorLocation, ForwardedMessage, Forwarder, Marker, RefCodec, TakeAnswer, TooLate, at_ref_codec,
};
use playhouse_actor::wire::{Codec, WireError, Written};
use playhouse_actor::{ActorId, AskError, Ended, Notify, StopReason, Tell, Watcher};
use playhouse_executor::jitter::seam;
use playhouse_executor::{Gate, Lane, SystemCore, Undelivered, contained, flush_soon, pause_stage};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::TheaterError;
use crate::link::frame::{Handle, Head, Kind};
use crate::link::link_table::LinkTable;
use crate::link::node::{LostActor, Node};
use crate::link::proxy::Proxy;
use crate::link::registry::{Registry, Table};
use crate::lock::lock;
use crate::naming::Directory;
use crate::session::{self, FrameError, Inbound, Outbound};
use fault::{HANDLES_MAX, WATCHES_MAX};
use handles::StubHandles;
use overload_timeout::OverloadTimeout;
use targets::{Target, Targets};

pub(crate) use connection::{Connection, Stream};
pub(crate) use fault::{Fault, LEAVINGS_MAX, MEMBER_WINDOWS_MAX, MEMBERS_MAX};
pub(crate) use receive_frames::Unanswered;
#[cfg(test)]
pub(crate) use stubs_of_lost_theaters::APART_MAX;

/// Bytes that may be under way before a sender is slowed, unless the settings say otherwise.
pub(crate) const WINDOW_BYTES: usize = 4 * 1024 * 1024;
/// Windows that unwritten replies may take before the link is read no further; [`RESERVE_BYTES`] come on top.
const REPLY_WINDOWS_MAX: usize = 8;
/// Windows of all kinds of frames that may wait, and bytes read that may wait for an acknowledgement; [`RESERVE_BYTES`] come on top.
const WINDOWS_MAX: usize = 16;
/// Room for the largest frames beside whole windows: 2 of them.
pub(crate) const RESERVE_BYTES: usize = 2 * FRAME_BYTES_MAX as usize;
/// Most bytes of a message.
pub(crate) const FRAME_BYTES_MAX: u32 = 16 * 1024 * 1024;
/// Most bytes read by one system call.
const READ_BYTES: usize = 256 * 1024;
/// Bytes that are read from one link before the next link is read.
const ROUND_BYTES: usize = 1024 * 1024;

/// Watches that were taken from a link: the watcher, the number of the watch, and the function to call at the end.
pub(crate) type Taken = Vec<(Watcher, u64, Tell)>;

/// The sending half.
struct Out {
    outbound: Outbound,
    /// Whether actors may begin at the other end: this theater has not announced its shutdown.
    departs: bool,
    connection: Option<Arc<Connection>>,
    /// Bytes of a frame, on average of the last frames, times eight.
    frame_bytes: usize,
    next_handle: Handle,
    /// Numbers that mean no actor any more, as the other end knows.
    free_handles: Vec<Handle>,
    /// Numbers that mean no actor any more, as the other end does not know yet.
    given_up: Vec<Handle>,
    next_number: u64,
    asks: FxHashMap<u64, TakeAnswer>,
    /// Callbacks for asks that cannot be taken back.
    too_late: FxHashMap<u64, TooLate>,
    /// The watched actors, and the functions to call when they have ended.
    watches: FxHashMap<u64, (Handle, Tell)>,
    /// Watches by watched actor, with their watchers.
    watching: FxHashMap<Handle, Vec<(Watcher, u64)>>,
}

impl Out {
    /// Notes that an ask has ended. Returns the function that takes the answer.
    fn answered(&mut self, ask: u64) -> Option<TakeAnswer> {
        if !self.too_late.is_empty() {
            self.too_late.remove(&ask);
        }
        self.asks.remove(&ask)
    }

    /// Ends a watch, for any reason. Returns the function to call.
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

    /// Ends all watches of the actor that this end calls `handle`.
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
    /// The connection that has filled `buffer`.
    connection: u64,
    /// The targets of the other end's handles; in [`TARGETS`] while a frame is read.
    targets: Targets,
    overload_timeout: OverloadTimeout,
    /// Bytes read since the last acknowledgement to the other end.
    withheld_bytes: usize,
}

/// Fences that were not answered yet, the oldest first, with the drains that wait for them.
#[derive(Default)]
struct Fences {
    waiting: VecDeque<FenceSent>,
}

/// Dropped when a fence was answered, or is lost.
type FenceWait = Arc<dyn Any + Send + Sync>;

struct FenceSent {
    number: u64,
    is_answered: bool,
    waits: Vec<FenceWait>,
}

impl Fences {
    /// Notes that a fence was answered, or is lost. Returns the answered fences before which all others are answered: a fence stands only for what
    /// was sent since the fence before it.
    fn answered(&mut self, number: u64) -> Vec<FenceSent> {
        if let Some(fence) = self.waiting.iter_mut().find(|fence| fence.number == number) {
            fence.is_answered = true;
        }
        let still_waits = self.waiting.iter().position(|fence| !fence.is_answered);
        self.waiting.drain(..still_waits.unwrap_or(self.waiting.len())).collect()
    }
}

/// Overloaded stages that have received something not acknowledged.
#[derive(Default)]
struct AckBackpressure {
    stages: Vec<u16>,
}

/// The result of reading a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing is left to be read for now.
    Done,
    /// There may be more.
    More,
    /// Nothing is left, but the receivers have to catch up before it is acknowledged.
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
    /// Adds `passed`. Returns the sum.
    pub(crate) fn add(&self, passed: Duration) -> Duration {
        let passed = passed.as_nanos() as u64;
        // Relaxed: it says nothing about other memory.
        Duration::from_nanos(self.ns.fetch_add(passed, Ordering::Relaxed) + passed)
    }

    /// Returns all that has passed.
    pub(crate) fn passed(&self) -> Duration {
        Duration::from_nanos(self.ns.load(Ordering::Relaxed))
    }

    /// Begins anew.
    pub(crate) fn reset(&self) {
        self.ns.store(0, Ordering::Relaxed);
    }
}

/// The state that migrations keep at a link: `migration` knows its type.
pub(crate) trait MigrationSlot: Any + Send + Sync {
    /// Drops the incoming actors of the lost `link`.
    fn forget_incoming_actors(&self, link: &Link);

    /// Drops all of it, because the link is lost.
    fn lose(&self);
}

/// A session with another theater.
pub(crate) struct Link {
    this: Weak<Link>,
    pub(crate) core: Arc<SystemCore>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) directory: Arc<Directory>,
    pub(crate) link_table: Arc<LinkTable>,
    /// The other theater.
    pub(crate) incarnation: u64,
    /// The address that this end calls.
    pub(crate) address: Option<SocketAddr>,
    /// The address that third theaters call, which references carry.
    pub(crate) advertised: Option<SocketAddr>,
    pub(crate) number: u64,
    stage: u16,
    pub(crate) window_bytes: usize,
    pub(crate) gate: Arc<Gate>,
    pub(crate) table: Table,
    /// The last packet that the other end may be told as received.
    received: AtomicU64,
    /// The time since the last received frame, and since the last sent one.
    pub(crate) silent: RunTime,
    pub(crate) mute: RunTime,
    /// Whether the connection has taken bytes since the last look of the housekeeper.
    has_written: AtomicBool,
    /// Bytes of asks that were read and have no answer.
    unanswered_bytes: AtomicUsize,
    /// The time of the last connection or disconnection: nanoseconds of the system's time.
    changed_ns: AtomicU64,
    lost: AtomicBool,
    /// The rule that the other end has broken. The reading thread checks it.
    fault: OnceLock<Fault>,
    /// The error of the last call that was to restore the connection.
    call_error: Mutex<Option<TheaterError>>,
    /// Whether the other end has announced its shutdown.
    shutdown_announced: AtomicBool,
    /// The number of the link at the other end, or 0.
    peer_number: AtomicU64,
    /// Whether the link is given up because this theater shuts down. It is lost when this theater has ended its workers.
    is_left: AtomicBool,
    /// Notified when the connection is gone.
    shutdown_waker: Arc<Condvar>,
    /// The stage of the last message read, of those that are not acknowledged; `u64::MAX`: none was read.
    last_target: AtomicU64,
    ack_backpressure: Mutex<AckBackpressure>,
    out: Mutex<Out>,
    inn: Mutex<In>,
    stubs: Mutex<StubHandles>,
    pub(crate) migration_slot: Box<dyn MigrationSlot>,
    /// Watches of the other end that have not ended.
    watches: AtomicUsize,
    /// Whether anything was sent to an actor of the other end since the last fence.
    is_unfenced: AtomicBool,
    fences: Mutex<Fences>,
    recalls: recall::Recalls,
}

/// Returns the address for third theaters. A theater on the loopback of another machine knows no better address than the called one.
fn for_others(called: Option<SocketAddr>, advertised: Option<SocketAddr>) -> Option<SocketAddr> {
    let is_far = |address: SocketAddr| !address.ip().is_loopback();
    let is_hidden = advertised.is_some_and(|address| !is_far(address)) && called.is_some_and(is_far);
    if is_hidden { called } else { advertised.or(called) }
}

thread_local! {
    /// Links that this thread has something to write for.
    static DIRTY: RefCell<Vec<Arc<Link>>> = const { RefCell::new(Vec::new()) };
    /// The targets of the handles of the link that this thread reads. They are thread-local because `serde` reads references within a message, which
    /// mean them, too.
    static TARGETS: RefCell<Targets> = RefCell::default();
    /// The number of the link that this thread reads.
    static READS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Sets [`TARGETS`] while `f` runs, and takes it back also when `f` panics.
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

/// Returns whether this thread reads a link.
pub(crate) fn is_reading() -> bool {
    READS.get().is_some()
}

/// Writes out the pending frames of this thread.
pub(crate) fn flush_all() {
    for link in DIRTY.take() {
        link.flush(false);
    }
}

impl Link {
    pub(crate) fn new(
        link_table: &Arc<LinkTable>,
        number: u64,
        (incarnation, called, advertised): (u64, Option<SocketAddr>, Option<SocketAddr>),
        kinds: &[Kind],
        (window_bytes, shutdown_waker): (usize, Arc<Condvar>),
    ) -> Arc<Link> {
        let LinkTable { core, registry, directory, .. } = &**link_table;
        Arc::new_cyclic(|this| Link {
            this: this.clone(),
            core: Arc::clone(core),
            registry: Arc::clone(registry),
            directory: Arc::clone(directory),
            link_table: Arc::clone(link_table),
            incarnation,
            address: called.or(advertised),
            advertised: for_others(called, advertised),
            number,
            stage: core.link_stage(number as usize),
            window_bytes,
            gate: Arc::default(),
            table: registry.table(kinds),
            received: AtomicU64::new(0),
            silent: RunTime::default(),
            mute: RunTime::default(),
            has_written: AtomicBool::new(false),
            unanswered_bytes: AtomicUsize::new(0),
            changed_ns: AtomicU64::new(core.now().as_nanos() as u64),
            lost: AtomicBool::new(false),
            fault: OnceLock::new(),
            call_error: Mutex::default(),
            shutdown_announced: AtomicBool::new(false),
            peer_number: AtomicU64::new(0),
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
                overload_timeout: OverloadTimeout::new(),
                withheld_bytes: 0,
            }),
            stubs: Mutex::default(),
            migration_slot: (link_table.new_migration_slot)(),
            watches: AtomicUsize::new(0),
            is_unfenced: AtomicBool::new(false),
            fences: Mutex::default(),
            recalls: recall::Recalls::default(),
        })
    }

    pub(crate) fn node(&self) -> Option<Arc<dyn Node>> {
        self.link_table.node()
    }

    pub(crate) fn this(&self) -> Arc<Link> {
        self.this.upgrade().expect("the caller holds the link")
    }

    // -- connections --------------------------------------------------------------------------------------------------

    /// Returns the present connection.
    pub(crate) fn connection(&self) -> Option<Arc<Connection>> {
        lock(&self.out).connection.clone()
    }

    /// Returns the number of the link. Later links have higher numbers.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(self) fn received(&self) -> u64 {
        self.received.load(Ordering::Acquire)
    }

    /// Drops the old connection, before the connection with this number is made. Returns the highest packet number received. The other end is told
    /// that number, so nothing more may be taken from the old connection after that.
    pub(crate) fn prepare(&self, connection: u64) -> u64 {
        if let Some(old) = self.connection() {
            self.disconnect(&old);
        }
        let mut inn = lock(&self.inn);
        inn.connection = connection;
        // Half-received bytes come again.
        inn.filled = 0;
        inn.inbound.received()
    }

    /// Returns the number of the connection that was prepared last.
    #[cfg(test)]
    pub(crate) fn prepared(&self) -> u64 {
        lock(&self.inn).connection
    }

    /// Continues over a new connection; the other end has received everything up to `received`. Does nothing if a later connection was prepared
    /// since, because this one's data is out of date then, or if the link is lost.
    pub(crate) fn connect(&self, connection: &Arc<Connection>, received: u64) -> Result<(), session::ProtocolError> {
        {
            let inn = lock(&self.inn);
            if inn.connection != connection.number {
                connection.broken.store(true, Ordering::Relaxed);
                return Ok(());
            }
            let mut out = lock(&self.out);
            if self.is_lost() {
                // The link was given up while this connection was made; the other end has to learn that.
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
        self.note_call_error(None);
        self.flush(false);
        // The frames received before may be all that waited: nothing else would be acknowledged then.
        self.note_room();
        Ok(())
    }

    /// Drops a connection that is of no use any more.
    pub(crate) fn disconnect(&self, connection: &Connection) {
        connection.broken.store(true, Ordering::Relaxed);
        // The other end learns it, too.
        connection.shut();
        let mut out = lock(&self.out);
        if out.connection.as_ref().is_some_and(|present| present.token == connection.token) {
            out.connection = None;
            self.note_changed();
            self.shutdown_waker.notify_all();
        }
    }

    fn note_changed(&self) {
        // Relaxed: it publishes no other memory.
        self.changed_ns.store(self.core.now().as_nanos() as u64, Ordering::Relaxed);
    }

    /// Notes the error of a call that was to restore the connection, or that there is a connection.
    pub(crate) fn note_call_error(&self, error: Option<TheaterError>) {
        *lock(&self.call_error) = error;
    }

    /// Returns the error of the last call that was to restore the connection.
    pub(crate) fn call_error(&self) -> Option<TheaterError> {
        lock(&self.call_error).as_ref().map(TheaterError::copy)
    }

    /// Returns the time since the last connection or disconnection.
    pub(crate) fn unchanged_for(&self) -> Duration {
        self.core.now().saturating_sub(Duration::from_nanos(self.changed_ns.load(Ordering::Relaxed)))
    }

    /// Returns the packets that were not acknowledged, their bytes, and the requests without an answer.
    pub(crate) fn under_way(&self) -> (usize, usize, usize) {
        let out = lock(&self.out);
        (out.outbound.waiting_packets(), out.outbound.waiting_bytes(), out.asks.len() + out.watches.len())
    }

    /// Returns whether frames wait to be written and the connection has taken nothing since the last call.
    pub(crate) fn takes_nothing(&self) -> bool {
        // Relaxed: it publishes no other memory.
        !self.has_written.swap(false, Ordering::Relaxed) && lock(&self.out).outbound.has_output()
    }

    /// Returns whether so many bytes wait that a frame is refused if its sender cannot be slowed.
    fn is_overfull(&self) -> bool {
        lock(&self.out).outbound.waiting_bytes() > WINDOWS_MAX * self.window_bytes + RESERVE_BYTES
    }

    /// Returns whether anything was ever received.
    pub(crate) fn has_received(&self) -> bool {
        lock(&self.inn).inbound.received() > 0
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Notes the number that the other end has for the link.
    pub(crate) fn note_remote_number(&self, number: Option<u64>) {
        // Relaxed, as for the load: it publishes no other memory. Numbers begin at 1.
        self.peer_number.store(number.unwrap_or(0), Ordering::Relaxed);
    }

    fn peer_number(&self) -> Option<u64> {
        Some(self.peer_number.load(Ordering::Relaxed)).filter(|number| *number > 0)
    }

    /// Gives up the link because this theater shuts down: its actors are not told.
    pub(crate) fn note_left(&self) {
        // Relaxed: it publishes no other memory.
        self.is_left.store(true, Ordering::Relaxed);
        self.note_changed();
    }

    pub(crate) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
    }

    /// Checks for room, because less may be under way. If there is room in the window, muted senders continue.
    pub(self) fn note_room(&self) {
        if lock(&self.out).outbound.waiting_bytes() <= self.window_bytes / 2 {
            self.open_gate();
        }
    }

    fn open_gate(&self) {
        if self.gate.is_closed() {
            // Relaxed: it is a counter only.
            self.link_table.room_made.fetch_add(1, Ordering::Relaxed);
            self.gate.open(&self.core);
        }
    }

    /// Ends the session: all waiting requests are told, and unacknowledged messages become dead letters.
    pub(crate) fn lose(&self) {
        // A concurrent release of a stub takes its watchers along, or has done so.
        let (outbound, asks, mut watching, mut watches, connection, stubs) = {
            let mut out = lock(&self.out);
            // Under the lock: a thread that sees it finds no connection any more, and acknowledges nothing that was not taken.
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
                StubHandles { handles: std::mem::take(&mut stubs.handles), by_handle: stubs.by_handle.clone() },
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
        // Includes names that are not in use any more, but by which actors are watched.
        for (id, handle) in stubs.by_handle.iter().copied().zip(0..) {
            let is_meant = stubs.handles.get(&id) == Some(&handle) || watching.contains_key(&handle);
            if !is_meant || self.registry.migration_vtable(id).is_none() {
                continue;
            }
            let of = watching.remove(&handle).unwrap_or_default();
            let watchers = of.into_iter().filter_map(|(watcher, watch)| Some((watcher, watches.remove(&watch)?.1)));
            // The actor may have gone on from that theater, or have come to this one.
            lost_actors.push(LostActor { id, watchers: watchers.collect() });
        }
        // Mobile actors may have gone on from that theater, and may come to this one. Some are located only when something is sent to them.
        let has_left = self.shutdown_announced.load(Ordering::Relaxed);
        let kept = self
            .link_table
            .lose((self.incarnation, self.peer_number()), has_left, |id| self.registry.migration_vtable(id).is_some());
        seam(2);
        // This comes before the loss of markers is told. Otherwise the mail at such a stub would be forwarded, along a lost route.
        self.locate_lost(lost_actors);
        for answer in asks.into_values() {
            seam(2);
            contained(|| answer(Err(AskError::TheaterLost { may_have_run: true })));
        }
        for (_, notify) in watches.into_values() {
            contained(|| notify(StopReason::TheaterLost.into()));
        }
        self.migration_slot.forget_incoming_actors(self);
        self.lose_held();
        self.migration_slot.lose();
        self.open_gate();
        let kept = FxHashSet::from_iter(kept);
        // Mobile actors are being located, or are in this theater now.
        for id in stubs.in_order().into_iter().filter(|id| self.registry.migration_vtable(*id).is_none()) {
            if let Some(controls) = self.registry.controls(id).filter(|_| !kept.contains(&id)) {
                (controls.forget)(id);
            }
        }
    }

    /// Locates an actor, as at the loss, for a stub whose route has begun to lead over this link later.
    pub(crate) fn locate_again(&self, id: ActorId) {
        self.locate_lost(vec![LostActor { id, watchers: Vec::new() }]);
    }

    /// Locates actors that were in the other theater, according to this one, because the link is lost.
    fn locate_lost(&self, lost_actors: Vec<LostActor>) {
        match self.node() {
            Some(node) => node.locate(lost_actors, self.incarnation),
            // The whole theater has ended.
            None => {
                for (_, tell) in lost_actors.into_iter().flat_map(|lost_actor| lost_actor.watchers) {
                    contained(|| tell(StopReason::TheaterLost.into()));
                }
            }
        }
    }
}
