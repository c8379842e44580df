//! The part of a worker that other threads see: its inbox, its presence and a few figures.
//!
//! All hand-overs between threads go through the inbox lock: mail, requests for stages, adoption, parking and wake-ups.
//! A thread that puts mail into an inbox sees, under the same lock, whether the inbox's worker sleeps (I3). A stage
//! leaves a worker only under the lock of that worker's inbox (I1, I2). A sender takes the lock once per batch.

use std::ops::{Deref, Index};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::thread::Thread;

use crate::load::bounds::OVERLOADED_BYTES;
use crate::load::source_admission::Admission;
use crate::load::standing::Standing;
use crate::memory::prefetch::prefetch_for_write;
use crate::memory::raw_address::Lane;
use crate::memory::record::Record;
use crate::memory::segment::{Chain, Pool, Segment};
use crate::observe::census::Census;
use crate::observe::stats::WorkerCounters;
use crate::policy::idle_share::IdleShare;
use crate::sync::locks::{lock, try_lock};
use crate::sync::worker_requests::Signal;
use crate::worker::core::{AnyWorker, Reason};
use crate::worker::run_by_askers::Loan;
use crate::worker::timer_wheel::TimerOp;

/// The readiness of a worker to take its mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// The worker runs, or will look at its inbox before it sleeps. Counted in `Idleness::active`.
    Awake,
    /// The worker found no work and watches its mail flag. Counted too, because it may wake by itself at any moment.
    Idle,
    /// The worker sleeps (or was never started) and must be unparked. Not counted.
    Parked,
}

/// The mail and requests that other threads leave for a worker. The fields are in this order because the ones that
/// every hand-over touches share one cache line with the lock.
#[repr(C)]
pub(crate) struct Inbox {
    pub(crate) presence: Presence,
    pub(crate) loan: Loan,
    /// While not awake: the worker's stages may be adopted (it has parked no records).
    pub(crate) adoptable: bool,
    /// While parked: the worker waits in the reactor.
    pub(crate) polls: bool,
    /// The bytes of mail in the worker's queue after it took mail the last time. It is 0 if the worker's own actors had
    /// sent more. The worker also sets it to 0 when it becomes idle or gives stages away.
    pub(crate) queued_bytes: u32,
    /// The number of times that stages have left this worker: see [`crate::worker::route`].
    pub(crate) departures: u64,
    normal: Chain,
    /// Bytes of the normal lane that came with stages and were sent by the actors of their last worker. No other worker
    /// has sent them.
    pub(crate) own_bytes: usize,
    pub(crate) signal: Arc<Signal>,
    /// The system lane and the urgent lane.
    upper: [Chain; 2],
    pub(crate) thread: Option<Thread>,
    /// Workers that wait for stages.
    pub(crate) thieves: Vec<u16>,
    /// The worker that asks for all stages of this worker, because its trial was in vain (see
    /// [`crate::scheduler::trial`]).
    pub(crate) asks_for_all: Option<u16>,
    /// Stages that another worker has given to this worker. All of their records are in this inbox.
    pub(crate) arrivals: Vec<u16>,
    pub(crate) timer_ops: Vec<TimerOp>,
    /// Stages that may go on, if they were parked for that reason.
    pub(crate) returned: Vec<(u16, Reason)>,
    /// One segment for the next thread that brings a record from outside any segment. The worker leaves the segment in
    /// the inbox. Its own pool would keep all segments that are brought, and a thread that brings one record at a time
    /// would have to allocate each.
    stock: Pool,
}

impl Inbox {
    pub(crate) fn has_mail(&self) -> bool {
        !self.normal.is_empty()
            || self.upper.iter().any(|lane| !lane.is_empty())
            || !self.timer_ops.is_empty()
            || !self.returned.is_empty()
            || !self.arrivals.is_empty()
    }

    /// Returns the bytes of normal mail that others have sent.
    pub(crate) fn sent_bytes(&self) -> u64 {
        (self.normal.bytes - self.own_bytes) as u64
    }

    pub(crate) fn lane(&mut self, lane: Lane) -> &mut Chain {
        match lane {
            Lane::Normal => &mut self.normal,
            lane => &mut self.upper[lane as usize],
        }
    }

    /// Moves a record into `lane`.
    ///
    /// # Safety
    /// The record is whole, has `size` bytes, and the caller gives it up.
    pub(crate) unsafe fn put(&mut self, lane: Lane, record: NonNull<Record>, size: usize) {
        let chain = match lane {
            Lane::Normal => &mut self.normal,
            lane => &mut self.upper[lane as usize],
        };
        // SAFETY: the record is whole, and the caller has given it up.
        unsafe { chain.push_bytes(record.as_ptr().cast(), size, Some(&self.stock)) };
    }

    /// Leaves a segment for the next thread that brings a record.
    pub(crate) fn restock(&self, pool: &Pool) {
        if self.stock.len() == 0 && pool.len() > 0 {
            // SAFETY: an empty segment that this thread owns.
            unsafe { self.stock.put(pool.take()) };
        }
    }

    /// Notes the bytes in the worker's queue: `mail` from others, and `own` from its own actors.
    pub(crate) fn note_queued(&mut self, mail: u64, own: u64) {
        let queued = if mail >= own { mail } else { 0 };
        self.queued_bytes = u32::try_from(queued).unwrap_or(u32::MAX);
    }

    /// The first segment of the normal mail, or null.
    pub(crate) fn first_segment(&self) -> *const Segment {
        self.normal.first
    }

    /// Takes all three lanes, by rank.
    pub(crate) fn take_lanes(&mut self) -> [Chain; 3] {
        self.own_bytes = 0;
        [Lane::System, Lane::Urgent, Lane::Normal].map(|lane| self.lane(lane).take())
    }

    /// Takes the system lane and the normal lane; the urgent mail stays in the inbox.
    pub(crate) fn take_lanes_but_urgent(&mut self) -> [Chain; 3] {
        self.own_bytes = 0;
        [self.lane(Lane::System).take(), Chain::default(), self.lane(Lane::Normal).take()]
    }
}

/// The `WorkerShared` of each worker of a system, by the numbers of the workers.
///
/// Those of actors with threads of their own are made at first use. Most systems have none, and all together are larger
/// than the rest of a small system.
pub(crate) struct WorkerTable {
    shared: Box<[WorkerShared]>,
    dedicated: Box<[OnceLock<Box<WorkerShared>>]>,
    /// All dedicated ones from this index on have not been made.
    not_made: AtomicUsize,
}

impl WorkerTable {
    pub(crate) fn new(shared: usize, dedicated: usize) -> WorkerTable {
        WorkerTable {
            shared: (0..shared).map(|_| WorkerShared::new()).collect(),
            dedicated: (0..dedicated).map(|_| OnceLock::new()).collect(),
            not_made: AtomicUsize::new(0),
        }
    }

    /// Returns the largest number of workers.
    pub(crate) fn len(&self) -> usize {
        self.shared.len() + self.dedicated.len()
    }

    /// Returns those that have been made, with their numbers. A worker whose entry is made during the iteration sees
    /// all writes from before this call.
    pub(crate) fn made(&self) -> impl Iterator<Item = (u16, &WorkerShared)> {
        fence(Ordering::SeqCst);
        // Relaxed: behind the fence, as the writes that it orders.
        let dedicated = &self.dedicated[..self.not_made.load(Ordering::Relaxed)];
        let dedicated = dedicated.iter().map(|shared| shared.get().map(|shared| &**shared));
        (0..).zip(self.shared.iter().map(Some).chain(dedicated)).filter_map(|(id, shared)| Some((id, shared?)))
    }

    /// Returns the entry of a dedicated actor, and makes it at first use.
    #[cold]
    #[inline(never)]
    fn of_dedicated(&self, at: usize) -> &WorkerShared {
        let shared = self.dedicated[at].get_or_init(|| Box::new(WorkerShared::new()));
        self.not_made.fetch_max(at + 1, Ordering::Relaxed);
        // Pairs with the fence in `made`. A thread that does not find this entry has written before its fence; those
        // writes are visible behind this fence, also to threads other than the maker.
        fence(Ordering::SeqCst);
        shared
    }
}

impl Index<usize> for WorkerTable {
    type Output = WorkerShared;

    #[inline]
    fn index(&self, id: usize) -> &WorkerShared {
        match self.shared.get(id) {
            Some(shared) => shared,
            None => self.of_dedicated(id - self.shared.len()),
        }
    }
}

/// A value in two cache lines of its own (adjacent lines are fetched in pairs).
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(T);

impl<T> Deref for CachePadded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A flag that tells without the lock that the inbox holds mail. It goes up a little later than the mail arrives. It
/// may still be up, or go up again, when the mail was taken.
///
/// While up, it is the address of the first segment of the mail, if that was known. The worker that takes the mail has
/// that segment fetched while it waits for the inbox (one of three cache misses on the path of a message between two
/// cores). The address is a hint: the segment may be in another list by then, or freed.
#[derive(Default)]
pub(crate) struct MailFlag(AtomicUsize);

impl MailFlag {
    /// The flag is up, without a segment to be fetched.
    const BARE: usize = 1;

    #[inline(always)]
    pub(crate) fn is_up(&self) -> bool {
        // Relaxed, because a worker that finds the flag up takes the lock.
        self.0.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn raise(&self, mail: *const Segment) {
        // Release: after the inbox was written, for the worker that watches the flag.
        self.0.store(mail.addr() | Self::BARE, Ordering::Release);
    }

    pub(crate) fn lower(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Has the first records of the mail fetched, and the segment made this core's own, because the core will write to
    /// it next.
    pub(crate) fn fetch(&self) {
        let segment = self.0.load(Ordering::Relaxed) & !Self::BARE;
        if segment != 0 {
            prefetch_for_write(ptr::without_provenance::<u8>(segment));
        }
    }
}

/// The figures that a worker shows to thieves. It writes the first two before each gulp.
#[derive(Default)]
pub(crate) struct Shown {
    /// The number of messages that wait, by estimate.
    pub(crate) surplus: AtomicU64,
    /// The worker's `next_ns`: the time of each of the next messages, by estimate. It is 0 while the worker is idle or
    /// keeps short work to itself.
    pub(crate) average_ns: AtomicU64,
    /// The time of this worker's last attempt to steal (nanoseconds of the system's clock), for the longest-victim
    /// heuristic.
    pub(crate) last_steal_ns: AtomicU64,
    /// The number of messages that the worker has handled, as of its last look at the clock.
    pub(crate) handled: AtomicU64,
    /// The worker's [`IdleShare`]. The worker writes it when it becomes idle or busy.
    pub(crate) idle_share: AtomicU64,
    /// Before this time (nanoseconds of the system's clock), this worker adopts no stages with short messages, and
    /// others adopt none from it. A trial has shown that two workers do more than one.
    pub(crate) apart_until_ns: AtomicU64,
    /// The worker gives no stages away before this time (nanoseconds of the system's clock).
    pub(crate) next_steal_ns: AtomicU64,
}

/// The part of a worker that other threads may touch.
pub(crate) struct WorkerShared {
    inbox: CachePadded<Mutex<Inbox>>,
    /// Padded, because an idle worker watches it.
    pub(crate) mail: CachePadded<MailFlag>,
    /// Timers, suspended handlers and muted stages that this worker has begun, less those that it has ended: see
    /// `SystemCore::open_more`.
    pub(crate) open: CachePadded<AtomicIsize>,
    /// The suspended handlers among those, if a drain waits for them.
    pub(crate) suspended: CachePadded<AtomicIsize>,
    /// The mail from others takes this worker more than 2 ms. Stages that send more than they handle are muted, and
    /// threads outside wait.
    pub(crate) pressed: AtomicBool,
    /// The mail from others is above the high-water mark of 2 MiB. Stages that send to this worker pass its overload on
    /// to their own senders: see [`crate::load::relays`].
    pub(crate) overloaded: AtomicBool,
    /// Without the parked records of muted stages, the worker would not be overloaded.
    pub(crate) held_up: AtomicBool,
    /// The average time of a message over about the last 20 ms of work, in nanoseconds, as of the last checkup.
    pub(crate) average_ns: AtomicU64,
    /// The worker's stages whose parked records exceed the high-water mark. Stages that send to one of them are muted.
    pub(crate) full_stages: AtomicUsize,
    /// Workers with stages muted on this one.
    pub(crate) muted_on_me: AtomicBool,
    /// The bytes of mail from others that the worker has run, as of its last checkup.
    pub(crate) mail_run: AtomicU64,
    /// The backlog as a multiple of the high-water mark, as of the last checkup.
    excess: AtomicU64,
    /// The bytes that sources may send while this worker is pressed.
    pub(crate) admission: Admission,
    /// The standing backlog, which raises this worker's bounds because no source has sent it.
    pub(crate) standing: Standing,
    /// The worker's own muted stages, apart from those that wait for a stuck handler to return.
    pub(crate) muted_stages: AtomicUsize,
    /// The workers that its muted stages wait for, in order; with [`OUTSIDE`](crate::backpressure::deadlock::OUTSIDE)
    /// for a waiter that is no worker.
    pub(crate) waits_for: Mutex<Vec<AnyWorker>>,
    /// Workers of other systems with stages muted on this one.
    pub(crate) muted_of_other_systems: Mutex<Vec<AnyWorker>>,
    /// The figures of the last census of this worker.
    pub(crate) census: Mutex<Census>,
    /// The figures that thieves read. They have cache lines of their own, because the worker writes them before each
    /// gulp.
    pub(crate) shown: CachePadded<Shown>,
    /// Threads outside wait on this while the worker that they send to is overloaded.
    pub(crate) relieved: Condvar,
    /// The counters of its threads.
    pub(crate) ledgers: WorkerCounters,
}

impl WorkerShared {
    pub(crate) fn new() -> Self {
        WorkerShared {
            inbox: CachePadded(Mutex::new(Inbox {
                presence: Presence::Parked,
                loan: Loan::default(),
                adoptable: true,
                polls: false,
                queued_bytes: 0,
                departures: 0,
                normal: Chain::new(),
                own_bytes: 0,
                signal: Arc::default(),
                upper: [const { Chain::new() }; 2],
                thread: None,
                thieves: Vec::new(),
                asks_for_all: None,
                arrivals: Vec::new(),
                timer_ops: Vec::new(),
                returned: Vec::new(),
                stock: Pool::new(),
            })),
            mail: CachePadded::default(),
            open: CachePadded::default(),
            suspended: CachePadded::default(),
            pressed: AtomicBool::new(false),
            overloaded: AtomicBool::new(false),
            held_up: AtomicBool::new(false),
            average_ns: AtomicU64::new(0),
            full_stages: AtomicUsize::new(0),
            muted_on_me: AtomicBool::new(false),
            mail_run: AtomicU64::new(0),
            excess: AtomicU64::new(0),
            admission: Admission::default(),
            standing: Standing::default(),
            muted_stages: AtomicUsize::new(0),
            waits_for: Mutex::default(),
            muted_of_other_systems: Mutex::default(),
            census: Mutex::default(),
            shown: CachePadded(Shown { idle_share: AtomicU64::new(IdleShare::BEGIN.0), ..Shown::default() }),
            relieved: Condvar::new(),
            ledgers: WorkerCounters::default(),
        }
    }

    /// Fetches the memory that a hand-over to this worker will touch (worth a tenth of a ping-pong between two cores).
    pub(crate) fn prepare(&self) {
        prefetch_for_write(&raw const self.inbox);
        prefetch_for_write(&raw const self.mail);
    }

    /// Returns whether more mail waits than the worker handles soon: sources are muted.
    pub(crate) fn is_pressed(&self) -> bool {
        // SeqCst: either the worker that mutes sees the flags down, or the worker that lowers them finds it in
        // `muted_on_me` (`overload.rs`).
        self.pressed.load(Ordering::SeqCst) || self.overloaded.load(Ordering::SeqCst)
    }

    /// Notes that more mail waits than the worker handles soon.
    pub(crate) fn press(&self) {
        // SeqCst: either the worker that mutes sees the flags down, or the worker that lowers them finds it in
        // `muted_on_me` (`overload.rs`).
        if !self.pressed.load(Ordering::Relaxed) && !self.pressed.swap(true, Ordering::SeqCst) {
            self.admission.begin(self.mail_run.load(Ordering::Relaxed));
        }
    }

    /// Admits `bytes` bytes of records from a source although the worker is pressed. Returns false if the worker has
    /// run too little of its mail since the last ones.
    pub(crate) fn admits(&self, bytes: u64) -> bool {
        self.admission.admits(bytes, self.excess(), self.mail_run.load(Ordering::Relaxed))
    }

    /// Notes the load in bytes.
    pub(crate) fn note_excess(&self, load: u64) {
        let excess = load / self.standing.raised(OVERLOADED_BYTES as u64);
        if self.excess() != excess {
            self.excess.store(excess, Ordering::Relaxed);
        }
    }

    /// Returns the backlog as a multiple of the high-water mark, as of the last checkup.
    pub(crate) fn excess(&self) -> u64 {
        self.excess.load(Ordering::Relaxed)
    }

    /// Returns whether this worker would admit a source.
    pub(crate) fn may_admit(&self) -> bool {
        self.admission.is_open(self.mail_run.load(Ordering::Relaxed))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inbox> {
        lock(&self.inbox)
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Inbox>> {
        try_lock(&self.inbox)
    }
}

#[cfg(test)]
mod tests {
    use super::WorkerTable;

    #[test]
    fn the_shared_state_of_a_dedicated_worker_is_made_on_first_use() {
        let worker_table = WorkerTable::new(2, 3);
        let made = || worker_table.made().map(|(id, _)| id).collect::<Vec<u16>>();
        assert_eq!((worker_table.len(), made()), (5, vec![0, 1]));
        assert!(std::ptr::eq(&worker_table[3], &worker_table[3]));
        assert_eq!(made(), [0, 1, 3]);
        assert!(worker_table.made().all(|(id, shared)| std::ptr::eq(shared, &worker_table[id as usize])));
    }
}
