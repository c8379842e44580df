//! Workers: one per core, each with its own queue, logs and cells.
//!
//! A worker's message path has no lock, no atomic read-modify-write and no allocation: a send appends a record to the
//! log of the receiver's worker (its own log, for stages it runs itself); a gulp takes what stands in the own log and
//! runs it in order. What others may do to a worker is in [`crate::office`]; when it looks at that is in
//! [`crate::boundary`]; how its work is taken away from it while a handler is stuck is in [`crate::monitor`].
//!
//! # Phases
//!
//! A worker is in phase USER while it runs records and in phase RUNTIME while it touches its [`Core`]. The monitor may
//! take the core of a thread only while that is in USER, and never waits for it. The rules (proof in `monitor.rs`):
//! before each record the worker stores which record it *claims*, then (after a light fence) looks at its signal; on
//! entering RUNTIME it stores the phase, then (after a light fence) looks at its signal.

use std::any::Any;
use std::cell::{Cell as StdCell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::address::{Address, Lane, RawAddress};
use crate::barrier;
use crate::cell::{Cell, status};
use crate::core::Core;
use crate::monitor::Lease;
use crate::office::{Office, Signal};
use crate::record::{self, CONTINUE, Deliverable, FAIL, KILL, Loose, Op, Outcome, RESUME, Record, STOP};
use crate::resident::{Crash, Cx, Ending, Envelope, Resident, Undelivered};
use crate::segment::{BODY_BYTES, COPY_BYTES_MAX, Chain, Pool, Segment};
use crate::slab::Nursery;
use crate::stats::Ledger;
use crate::system::SystemCore;

thread_local! {
    static CURRENT: StdCell<*const Worker> = const { StdCell::new(ptr::null()) };
}

/// The worker that this thread is, if it is one.
#[inline(always)]
pub(crate) fn current<'a>() -> Option<&'a Worker> {
    let worker = CURRENT.get();
    // SAFETY: CURRENT is set only while the worker it points to is kept alive by `Worker::enter`'s caller, on this
    // thread; the reference is used within calls made by that caller.
    unsafe { worker.as_ref() }
}

/// The system that this thread works for, if it is a worker.
pub(crate) fn current_system() -> Option<Arc<SystemCore>> {
    current().map(|worker| Arc::clone(&worker.system))
}

pub(crate) const RUNTIME: u32 = 0;
pub(crate) const USER: u32 = 1;

/// Handlers that run nested on one stack (short-circuit asks).
pub(crate) const NEST_MAX: usize = 16;

/// Records written for one worker since the last flush.
///
/// Written by the owning thread. The monitor reads `tail` (after the heavy fence) and sets `end` to null.
pub(crate) struct Log {
    /// Where the next record goes. Release: the record before it is whole.
    pub(crate) tail: AtomicPtr<u8>,
    /// Where a record must end at the latest; null: every append takes the slow path.
    pub(crate) end: AtomicPtr<u8>,
    pub(crate) first: StdCell<*mut Segment>,
    pub(crate) last: StdCell<*mut Segment>,
}

impl Log {
    fn closed() -> Log {
        Log {
            tail: AtomicPtr::new(ptr::null_mut()),
            end: AtomicPtr::new(ptr::null_mut()),
            first: StdCell::new(ptr::null_mut()),
            last: StdCell::new(ptr::null_mut()),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.first.get().is_null()
    }

    /// Whether a record stands in it.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        let first = self.first.get();
        first == self.last.get() && (first.is_null() || self.tail.load(Ordering::Relaxed) == Segment::body(first))
    }

    /// Takes the records out and leaves the log closed.
    pub(crate) fn seal(&self) -> Chain {
        let (first, last) = (self.first.get(), self.last.get());
        if first.is_null() {
            return Chain::new();
        }
        let tail = self.tail.load(Ordering::Relaxed);
        // SAFETY: the log owns its segments; `tail` lies in the last one.
        let bytes = unsafe {
            (*last).used = tail.offset_from(Segment::body(last)) as usize;
            let mut bytes = 0;
            let mut segment = first;
            while !segment.is_null() {
                bytes += (*segment).used;
                segment = (*segment).next;
            }
            bytes
        };
        self.close();
        Chain { first, last, bytes }
    }

    pub(crate) fn close(&self) {
        self.tail.store(ptr::null_mut(), Ordering::Relaxed);
        self.end.store(ptr::null_mut(), Ordering::Relaxed);
        self.first.set(ptr::null_mut());
        self.last.set(ptr::null_mut());
    }
}

/// A place in a chain that is being run: the rest of the segment, then the segments behind it.
#[derive(Clone, Copy)]
pub(crate) struct Cursor {
    pub(crate) segment: *mut Segment,
    pub(crate) at: *mut u8,
    pub(crate) end: *mut u8,
}

impl Cursor {
    pub(crate) const NONE: Cursor = Cursor { segment: ptr::null_mut(), at: ptr::null_mut(), end: ptr::null_mut() };

    pub(crate) fn over(chain: Chain) -> Cursor {
        let segment = chain.first;
        let mut chain = chain;
        chain.forget();
        if segment.is_null() {
            return Cursor::NONE;
        }
        // SAFETY: a live segment, now owned by the cursor.
        let end = unsafe { Segment::body(segment).add((*segment).used) };
        Cursor { segment, at: Segment::body(segment), end }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.segment.is_null()
    }
}

/// Why a gulp ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The bound of messages is reached, or everything was run.
    Bound,
    /// The signal is raised.
    Signal,
    /// This thread has lost the worker: see `monitor.rs`.
    Detached,
}

/// One worker as seen by the thread that runs it.
///
/// Owned by that thread; what others touch is marked. INVARIANT: `logs.len()` is the number of offices and `route`
/// holds only indices below it.
#[repr(align(128))]
pub(crate) struct Worker {
    // -- the message path: written for each message or gulp by the owner --------------------------------------------
    /// The record that was claimed last. Read by the monitor.
    pub(crate) claimed: AtomicPtr<Record>,
    /// Read by the monitor.
    pub(crate) phase: AtomicU32,
    pub(crate) run: StdCell<Cursor>,
    /// Gulps so far, for the monitor to see progress.
    pub(crate) beat: AtomicU64,
    /// A log other than the own one was opened.
    pub(crate) dirty: StdCell<bool>,
    /// Records are put aside for some stage: gulps look at the stage of each record.
    pub(crate) holding: StdCell<bool>,
    /// Messages handled since the counters were last written.
    pub(crate) handled: StdCell<u64>,
    pub(crate) beat_counted: StdCell<u64>,
    pub(crate) nested: StdCell<usize>,
    /// Bytes of records in the queue, by segments.
    pub(crate) queued_bytes: StdCell<isize>,
    /// Next stage for `Near`.
    near_next: StdCell<usize>,

    // -- rarely changed -----------------------------------------------------------------------------------------------
    pub(crate) id: u16,
    pub(crate) system_id: u16,
    stages: u16,
    pub(crate) full_fence: bool,
    pub(crate) signal: Arc<Signal>,
    pub(crate) office: *const Office,
    /// Which worker runs a stage, as of the last boundary: constant between two flushes, which keeps the order of
    /// messages (I2, proof in `boundary.rs`).
    pub(crate) route: UnsafeCell<Box<[u16]>>,
    pub(crate) route_epoch: StdCell<u64>,
    /// Stages that children are put on.
    pub(crate) near: UnsafeCell<Vec<u16>>,
    pub(crate) logs: Box<[Log]>,
    pub(crate) opened: UnsafeCell<Vec<u16>>,
    pub(crate) pool: Pool,
    pub(crate) nursery: UnsafeCell<Nursery>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) system: Arc<SystemCore>,

    // -- shared with the monitor under the rules of the phases --------------------------------------------------------
    /// Null when this thread has lost the worker.
    pub(crate) core: StdCell<*mut Core>,
    /// Cells whose handlers run nested on this stack, after the claimed record's.
    pub(crate) nest: [AtomicPtr<Cell>; NEST_MAX],
    /// Cursors to go on with when `run` is done, last first.
    pub(crate) later: UnsafeCell<Vec<Cursor>>,
    pub(crate) lease: Mutex<Lease>,
}

// SAFETY: a Worker is used by one thread, apart from the fields marked as read by the monitor, which follow the
// protocol in `monitor.rs`.
unsafe impl Send for Worker {}
// SAFETY: as above.
unsafe impl Sync for Worker {}

impl Worker {
    pub(crate) fn new(system: &Arc<SystemCore>, id: u16, signal: Arc<Signal>, core: Box<Core>) -> Worker {
        let office = ptr::from_ref(&system.offices[id as usize]);
        let worker = Worker {
            claimed: AtomicPtr::new(ptr::null_mut()),
            phase: AtomicU32::new(RUNTIME),
            run: StdCell::new(Cursor::NONE),
            beat: AtomicU64::new(0),
            dirty: StdCell::new(false),
            holding: StdCell::new(core.holds_any()),
            handled: StdCell::new(0),
            beat_counted: StdCell::new(0),
            nested: StdCell::new(0),
            queued_bytes: StdCell::new(0),
            near_next: StdCell::new(0),
            id,
            system_id: system.id,
            stages: system.route.len() as u16,
            full_fence: !barrier::asymmetric(),
            signal,
            office,
            route: UnsafeCell::new(vec![0; system.route.len()].into()),
            route_epoch: StdCell::new(u64::MAX),
            near: UnsafeCell::new(Vec::new()),
            logs: (0..system.offices.len()).map(|_| Log::closed()).collect(),
            opened: UnsafeCell::new(Vec::new()),
            pool: Pool::new(),
            nursery: UnsafeCell::new(Nursery::new()),
            ledger: Arc::clone(&system.ledgers[id as usize]),
            system: Arc::clone(system),
            core: StdCell::new(Box::into_raw(core)),
            nest: [const { AtomicPtr::new(ptr::null_mut()) }; NEST_MAX],
            later: UnsafeCell::new(Vec::new()),
            lease: Mutex::new(Lease::default()),
        };
        worker.refresh_route();
        worker
    }

    /// Makes this worker the current one of the thread while `f` runs.
    pub(crate) fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Restore(*const Worker);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let _restore = Restore(CURRENT.replace(self));
        f()
    }

    #[inline(always)]
    pub(crate) fn office(&self) -> &Office {
        // SAFETY: the office belongs to the system, which this worker keeps alive.
        unsafe { &*self.office }
    }

    /// # Safety
    /// In phase RUNTIME (entered successfully), and no other reference to the core is held.
    #[allow(clippy::mut_from_ref)]
    #[inline(always)]
    pub(crate) unsafe fn core(&self) -> &mut Core {
        // SAFETY: by the contract; the pointer is null only in a detached thread, which never gets into RUNTIME.
        unsafe { &mut *self.core.get() }
    }

    // -- phases -------------------------------------------------------------------------------------------------------

    #[inline(always)]
    fn light_fence(&self) {
        if self.full_fence {
            barrier::light::<true>();
        } else {
            barrier::light::<false>();
        }
    }

    /// Enters RUNTIME. False: this thread has lost the worker and must not touch core, queue or logs.
    #[inline(always)]
    pub(crate) fn enter_runtime(&self) -> bool {
        self.phase.store(RUNTIME, Ordering::Relaxed);
        self.light_fence();
        if self.signal.get() & Signal::REVOKED == 0 {
            return true;
        }
        let kept = self.lease_kept();
        if !kept {
            self.phase.store(USER, Ordering::Relaxed);
        }
        kept
    }

    /// Leaves RUNTIME. Release: what was done to the core is whole before the monitor may take it.
    #[inline(always)]
    pub(crate) fn leave_runtime(&self) {
        self.phase.store(USER, Ordering::Release);
    }

    /// Runs `f` with the core, from within a handler or from the runtime itself. None: this thread is detached.
    pub(crate) fn with_core<R>(&self, f: impl FnOnce(&mut Core) -> R) -> Option<R> {
        let before = self.phase.load(Ordering::Relaxed);
        if before == USER && !self.enter_runtime() {
            return None;
        }
        // SAFETY: in RUNTIME; `f` does not call back into the worker.
        let result = f(unsafe { self.core() });
        if before == USER {
            self.leave_runtime();
        }
        Some(result)
    }

    // -- sending ------------------------------------------------------------------------------------------------------

    #[inline(always)]
    pub(crate) fn route_of(&self, stage: u16) -> Option<u16> {
        if stage >= self.stages {
            return None;
        }
        // SAFETY: `route` has `stages` entries and is changed only between calls, by this thread.
        let route: &[u16] = unsafe { &*self.route.get() };
        // SAFETY: as above.
        Some(unsafe { *route.get_unchecked(stage as usize) })
    }

    /// Appends the record of `mail` to the log of the receiver's worker.
    #[inline(always)]
    fn append<S: Resident, D: Deliverable<S>>(&self, to: RawAddress, mail: D) {
        let Some(dest) = self.route_of(to.stage()) else {
            return bounce_unwritten(to, mail, Undelivered::Stopped);
        };
        let size = record::record_bytes::<D>();
        // SAFETY: `route` holds indices of logs.
        let log = unsafe { self.logs.get_unchecked(dest as usize) };
        let tail = log.tail.load(Ordering::Relaxed);
        let room = (log.end.load(Ordering::Relaxed) as isize).wrapping_sub(tail as isize);
        if room >= size as isize {
            // SAFETY: `tail` is in the open segment of the log with room for the record; aligned since all sizes are
            // multiples of 8.
            unsafe {
                mail.write_record(tail, to.cell, to.identity());
                log.tail.store(tail.add(size), Ordering::Release);
            }
        } else {
            self.append_slow(dest, to, mail);
        }
    }

    #[cold]
    #[inline(never)]
    fn append_slow<S: Resident, D: Deliverable<S>>(&self, dest: u16, to: RawAddress, mail: D) {
        let before = self.phase.load(Ordering::Relaxed);
        if before == USER && !self.enter_runtime() {
            self.flush_detached();
            return post_outside(&self.system, to, Lane::Normal, mail);
        }
        let size = record::record_bytes::<D>();
        let log = &self.logs[dest as usize];
        let mut tail = log.tail.load(Ordering::Relaxed);
        if log.is_closed() || (Segment::limit(log.last.get()) as usize) - (tail as usize) < size {
            tail = self.extend_log(dest);
        }
        // SAFETY: the open segment has room for the record (checked against its true limit just now).
        unsafe {
            mail.write_record(tail, to.cell, to.identity());
            log.tail.store(tail.add(size), Ordering::Release);
        }
        if dest != self.id && self.system.offices[dest as usize].overloaded.load(Ordering::Relaxed) {
            // Every send to an overloaded worker comes this way, so its sender is found and muted.
            log.end.store(ptr::null_mut(), Ordering::Relaxed);
            let claimed = self.claimed.load(Ordering::Relaxed);
            if before == USER && !claimed.is_null() {
                // SAFETY: the claimed record stays readable until the next one is claimed.
                let stage = unsafe { (*claimed).stage() };
                // SAFETY: in RUNTIME.
                unsafe { self.core() }.mute_requests.push((stage, dest));
            }
        } else {
            log.end.store(Segment::limit(log.last.get()), Ordering::Relaxed);
            // If the monitor revoked the lease after it set `end` to null, this store undid that: look again.
            self.light_fence();
            if self.signal.get() & Signal::REVOKED != 0 {
                log.end.store(ptr::null_mut(), Ordering::Relaxed);
            }
        }
        if before == USER {
            self.leave_runtime();
        }
    }

    /// Gives the log of `dest` a new open segment and returns its start. In RUNTIME.
    fn extend_log(&self, dest: u16) -> *mut u8 {
        let log = &self.logs[dest as usize];
        if log.is_closed() {
            let segment = self.pool.take();
            log.first.set(segment);
            log.last.set(segment);
            if dest != self.id {
                self.dirty.set(true);
                // SAFETY: used by this thread only, in short borrows.
                unsafe { (*self.opened.get()).push(dest) };
            }
        } else if dest == self.id {
            let full = log.last.get();
            let segment = self.pool.take();
            // SAFETY: the log owns its segments; `tail` lies in the last one.
            unsafe {
                (*full).used = log.tail.load(Ordering::Relaxed).offset_from(Segment::body(full)) as usize;
                (*full).next = segment;
            }
            self.queued_bytes.set(self.queued_bytes.get() + BODY_BYTES as isize);
            log.last.set(segment);
        } else {
            // A whole segment for another worker: hand it over now, so a long handler's messages do not wait for its
            // end and do not pile up here.
            let chain = log.seal();
            self.deliver(dest, chain);
            let segment = self.pool.take();
            log.first.set(segment);
            log.last.set(segment);
        }
        let start = Segment::body(log.last.get());
        log.tail.store(start, Ordering::Release);
        start
    }

    /// Makes sure that the own log is open. In RUNTIME.
    pub(crate) fn open_own_log(&self) {
        let log = &self.logs[self.id as usize];
        if log.is_closed() {
            self.extend_log(self.id);
            log.end.store(Segment::limit(log.last.get()), Ordering::Relaxed);
        }
    }

    /// Appends whole records to the own queue: mail, fired timers, what came back. In RUNTIME.
    pub(crate) fn enqueue(&self, chain: Chain) {
        if chain.is_empty() {
            // SAFETY: no records.
            return unsafe { chain.recycle(Some(&self.pool)) };
        }
        self.open_own_log();
        let log = &self.logs[self.id as usize];
        let tail = log.tail.load(Ordering::Relaxed);
        let room = Segment::limit(log.last.get()) as usize - tail as usize;
        // SAFETY: the log owns its segments and the chain its own; a copied chain's segments hold no payload any more.
        unsafe {
            if chain.bytes <= COPY_BYTES_MAX && chain.bytes <= room && chain.first == chain.last {
                ptr::copy_nonoverlapping(Segment::body(chain.first), tail, chain.bytes);
                log.tail.store(tail.add(chain.bytes), Ordering::Release);
                chain.recycle(Some(&self.pool));
                return;
            }
            let mut chain = chain;
            let last = log.last.get();
            let used = tail.offset_from(Segment::body(last)) as usize;
            self.queued_bytes.set(self.queued_bytes.get() + (chain.bytes + used) as isize);
            (*last).used = used;
            (*last).next = chain.first;
            log.last.set(chain.last);
            log.tail.store(Segment::body(chain.last).add((*chain.last).used), Ordering::Release);
            log.end.store(Segment::limit(chain.last), Ordering::Relaxed);
            self.queued_bytes.set(self.queued_bytes.get() - (*chain.last).used as isize);
            chain.forget();
        }
    }

    // -- running ------------------------------------------------------------------------------------------------------

    /// Runs up to `bound` records of the queue.
    pub(crate) fn gulp(&self, bound: u64) -> Stop {
        let mut done = 0;
        loop {
            let result = catch_unwind(AssertUnwindSafe(|| match (self.full_fence, self.holding.get()) {
                (false, false) => self.run_records::<false, false>(bound, &mut done),
                (false, true) => self.run_records::<false, true>(bound, &mut done),
                (true, false) => self.run_records::<true, false>(bound, &mut done),
                (true, true) => self.run_records::<true, true>(bound, &mut done),
            }));
            self.handled.set(self.handled.get() + done);
            match result {
                Ok(stop) => return stop,
                Err(panic) => {
                    done = 0;
                    self.crashed(panic);
                }
            }
        }
    }

    /// The loop that everything is about. In RUNTIME at the start, and at the end unless detached.
    ///
    /// FULL: this platform has no asymmetric fence. HOLDING: some stage's records are put aside.
    #[inline(always)]
    fn run_records<const FULL: bool, const HOLDING: bool>(&self, bound: u64, done: &mut u64) -> Stop {
        let mut left = bound - (*done).min(bound);
        let mut cursor = self.run.get();
        let own = &self.logs[self.id as usize];
        // Relaxed, then Release: the monitor that sees USER sees no stale claim.
        self.claimed.store(ptr::null_mut(), Ordering::Relaxed);
        self.leave_runtime();
        loop {
            if cursor.at == cursor.end {
                // The segment is done: RUNTIME again, to give it back and to find the next.
                self.run.set(cursor);
                if !self.enter_runtime() {
                    return Stop::Detached;
                }
                match self.next_segment(own) {
                    Some(next) => cursor = next,
                    None => return Stop::Bound,
                }
                if left == 0 {
                    return Stop::Bound;
                }
                self.claimed.store(ptr::null_mut(), Ordering::Relaxed);
                self.leave_runtime();
            }
            // SAFETY: the cursor is inside a segment, at a whole record whose payload was not consumed.
            let record = unsafe { NonNull::new_unchecked(cursor.at.cast::<Record>()) };
            self.claimed.store(record.as_ptr(), Ordering::Relaxed);
            barrier::light::<FULL>();
            if self.signal.get() != 0 || left == 0 {
                return if self.interrupted(cursor, record) { Stop::Signal } else { Stop::Detached };
            }
            left -= 1;
            *done += 1;
            // SAFETY: as above.
            let (size, cell, tag) =
                unsafe { (record.as_ref().bytes(), record.as_ref().cell, record.as_ref().resident_tag()) };
            cursor.at = cursor.at.wrapping_add(size);
            if HOLDING {
                if !self.enter_runtime() {
                    return self.finish_claimed(record);
                }
                // SAFETY: in RUNTIME.
                let held = unsafe { self.core() }.hold_record(record, &self.pool);
                self.leave_runtime();
                if held {
                    continue;
                }
                barrier::light::<FULL>();
                if self.signal.get() & Signal::REVOKED != 0 && !self.lease_kept() {
                    return self.finish_claimed(record);
                }
            }
            // SAFETY: this thread runs the stage of the record (I1), and the record is run once.
            let outcome = unsafe {
                if cell.as_ref().tag() == tag {
                    (record.as_ref().thunk)(record, Op::Run)
                } else {
                    self.deliver_irregular(record)
                }
            };
            if outcome != CONTINUE {
                self.settle(cell, outcome);
            }
        }
    }

    /// The current segment was run: recycles it and returns where to go on. In RUNTIME.
    #[inline]
    fn next_segment(&self, own: &Log) -> Option<Cursor> {
        let cursor = self.run.get();
        if !cursor.segment.is_null() {
            // SAFETY: the cursor owns the segments from its own onwards; all payloads of this one were consumed.
            unsafe {
                let next = (*cursor.segment).next;
                self.queued_bytes.set(self.queued_bytes.get() - (*cursor.segment).used as isize);
                self.pool.put(cursor.segment);
                if !next.is_null() {
                    let cursor =
                        Cursor { segment: next, at: Segment::body(next), end: Segment::body(next).add((*next).used) };
                    self.run.set(cursor);
                    return Some(cursor);
                }
            }
        }
        self.run.set(Cursor::NONE);
        // SAFETY: in RUNTIME, by the owner.
        if let Some(later) = unsafe { (*self.later.get()).pop() } {
            self.run.set(later);
            return Some(later);
        }
        // A new gulp of what was sent in the last one; anything else to do is done at the boundary first.
        if self.dirty.get() || self.office().mail.load(Ordering::Relaxed) || own.is_empty() || self.holding.get() {
            return None;
        }
        self.beat.store(self.beat.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Some(self.take_log())
    }

    /// Makes what stands in the own log the thing to run. In RUNTIME.
    #[inline]
    pub(crate) fn take_log(&self) -> Cursor {
        let log = &self.logs[self.id as usize];
        let (first, last) = (log.first.get(), log.last.get());
        let tail = log.tail.load(Ordering::Relaxed);
        // SAFETY: the log owns its segments; `tail` lies in the last one.
        let used = unsafe { tail.offset_from(Segment::body(last)) as usize };
        // SAFETY: as above.
        unsafe { (*last).used = used };
        self.queued_bytes.set(self.queued_bytes.get() + used as isize);
        let fresh = self.pool.take();
        log.first.set(fresh);
        log.last.set(fresh);
        log.tail.store(Segment::body(fresh), Ordering::Release);
        log.end.store(Segment::limit(fresh), Ordering::Relaxed);
        // SAFETY: a live segment.
        let end = unsafe { Segment::body(first).add((*first).used) };
        let cursor = Cursor { segment: first, at: Segment::body(first), end };
        self.run.set(cursor);
        cursor
    }

    /// Where the loop stands: behind the claimed record. In USER, or after it.
    pub(crate) fn position(&self) -> Cursor {
        let mut cursor = self.run.get();
        let claimed = self.claimed.load(Ordering::Relaxed);
        if !claimed.is_null() && !cursor.is_none() {
            // SAFETY: the claimed record stays readable until the next one is claimed, and lies in the segment that
            // the cursor is in.
            cursor.at = unsafe { claimed.cast::<u8>().add((*claimed).bytes()) };
        }
        cursor
    }

    /// The signal is raised or the bound reached with `record` claimed but not run: gives the claim back. False: this
    /// thread is detached.
    #[cold]
    #[inline(never)]
    fn interrupted(&self, cursor: Cursor, record: NonNull<Record>) -> bool {
        self.run.set(cursor);
        if self.enter_runtime() {
            return true;
        }
        self.finish_claimed(record);
        false
    }

    /// Detached with `record` claimed: runs it if the monitor left it to this thread.
    #[cold]
    fn finish_claimed(&self, record: NonNull<Record>) -> Stop {
        if self.lease_left_me(record) {
            // SAFETY: the monitor saw the claim and left the record, and its stage, to this thread.
            let (cell, outcome) = unsafe {
                let cell = record.as_ref().cell;
                if cell.as_ref().tag() == record.as_ref().resident_tag() {
                    (cell, (record.as_ref().thunk)(record, Op::Run))
                } else {
                    (cell, self.deliver_irregular(record))
                }
            };
            if outcome != CONTINUE {
                self.settle(cell, outcome);
            }
        }
        Stop::Detached
    }

    /// The tags differ: the actor is gone, suspended, or has crashed.
    ///
    /// # Safety
    /// As for running the record.
    #[cold]
    #[inline(never)]
    unsafe fn deliver_irregular(&self, record: NonNull<Record>) -> Outcome {
        // SAFETY: by the contract; cells are never freed.
        unsafe {
            let cell = record.as_ref().cell;
            let same_life = cell.as_ref().tag() >> 16 == record.as_ref().tag >> 16;
            if !same_life || cell.as_ref().has_status(status::VACANT) {
                return (record.as_ref().thunk)(record, Op::Bounce(Undelivered::Stopped));
            }
            if record.as_ref().is_control() || cell.as_ref().tag() & status::MASK == 0 {
                return (record.as_ref().thunk)(record, Op::Run);
            }
            Cell::cold_mut(cell).deferred.push_bytes(record.as_ptr().cast(), record.as_ref().bytes(), Some(&self.pool));
            CONTINUE
        }
    }

    // -- what follows a message -----------------------------------------------------------------------------------------

    /// Carries out what a handler decided about its cell.
    pub(crate) fn settle(&self, cell: NonNull<Cell>, outcome: Outcome) {
        match outcome {
            CONTINUE => {}
            RESUME => self.run_deferred(cell),
            STOP => {
                // SAFETY: this thread runs the cell's stage.
                let failure = unsafe { Cell::cold(cell) }.as_mut().and_then(|cold| cold.failure.take());
                self.end(cell, failure.map_or(Ending::Stopped, Ending::Crashed));
            }
            KILL => self.end(cell, Ending::Killed),
            FAIL => {
                // SAFETY: this thread runs the cell's stage.
                let failure = unsafe { Cell::cold_mut(cell) }.failure.take().expect("a failure was noted");
                self.crash(cell, failure);
            }
            other => unreachable!("outcome {other}"),
        }
    }

    /// A handler panicked: the record claimed last, or a nested one that was handled where it was caught.
    #[cold]
    fn crashed(&self, panic: Box<dyn Any + Send>) {
        let claimed = self.claimed.load(Ordering::Relaxed);
        assert!(!claimed.is_null(), "a panic outside of any handler: {:?}", Crash::Panic(panic));
        self.run.set(self.position());
        // SAFETY: the claimed record stays readable until the next one is claimed.
        let cell = unsafe { (*claimed).cell };
        let healed = catch_unwind(AssertUnwindSafe(|| self.crash(cell, Crash::Panic(panic))));
        if healed.is_err() {
            // The supervision itself panicked: the actor ends, and nothing more is asked of it.
            let _ = catch_unwind(AssertUnwindSafe(|| self.end(cell, Ending::Killed)));
        }
        // The loop starts again in RUNTIME. A detached thread finds that out at its first claim.
        if !self.enter_runtime() {
            self.phase.store(USER, Ordering::Relaxed);
        }
    }

    fn crash(&self, cell: NonNull<Cell>, crash: Crash) {
        // SAFETY: cells are never freed.
        let header = unsafe { cell.as_ref() };
        if !header.is_occupied_in(self.system_id) {
            return;
        }
        self.ledger.crashes.add(1);
        if header.has_status(status::SUSPENDED) {
            header.set_status(status::SUSPENDED, false);
            note_suspended(false);
        }
        // SAFETY: this thread runs the cell's stage; the crashed handler has been unwound.
        let outcome = unsafe { (header.kind().crash)(cell, crash) };
        self.settle(cell, outcome);
    }

    /// Ends the life in `cell` and makes the cell vacant.
    pub(crate) fn end(&self, cell: NonNull<Cell>, ending: Ending) {
        // SAFETY: cells are never freed.
        let header = unsafe { cell.as_ref() };
        if header.has_status(status::VACANT) {
            return;
        }
        if header.has_status(status::SUSPENDED) {
            note_suspended(false);
        }
        struct Vacate<'a>(&'a Worker, NonNull<Cell>);
        impl Drop for Vacate<'_> {
            fn drop(&mut self) {
                // SAFETY: as above.
                let header = unsafe { self.1.as_ref() };
                let (class, stage) = (header.kind().class, header.stage());
                if header.vacate() {
                    // SAFETY: used by this thread only, in short borrows.
                    unsafe { (*self.0.nursery.get()).put(self.1, class) };
                }
                self.0.ledger.stopped.add(1);
                self.0.system.stage_left(stage);
            }
        }
        let _vacate = Vacate(self, cell);
        // SAFETY: this thread runs the cell's stage, and no handler of it is on the stack.
        unsafe { (header.kind().stop)(cell, ending) };
    }

    /// Runs the messages that were put aside for `cell` until it is suspended again.
    fn run_deferred(&self, cell: NonNull<Cell>) {
        // SAFETY: this thread runs the cell's stage; the references to the cold part are short.
        let mut chain = unsafe { Cell::cold_mut(cell) }.deferred.take();
        let mut rest = Chain::new();
        let mut outcome = CONTINUE;
        // SAFETY: cells are never freed.
        let header = unsafe { cell.as_ref() };
        chain.for_each(|record| {
            // SAFETY: the chain owns the records; each is run once, moved to `rest`, or bounced.
            unsafe {
                if outcome == CONTINUE && header.tag() == record.as_ref().resident_tag() {
                    outcome = (record.as_ref().thunk)(record, Op::Run);
                    self.handled.set(self.handled.get() + 1);
                    if outcome == RESUME {
                        outcome = CONTINUE;
                    }
                } else {
                    rest.push_bytes(record.as_ptr().cast(), record.as_ref().bytes(), Some(&self.pool));
                }
            }
        });
        chain.bytes = 0;
        // SAFETY: every record was consumed or moved.
        unsafe { chain.recycle(Some(&self.pool)) };
        // What arrived meanwhile stands behind what was not run yet.
        // SAFETY: this thread runs the cell's stage.
        unsafe {
            let cold = Cell::cold_mut(cell);
            rest.append(cold.deferred.take());
            cold.deferred = rest;
        }
        self.settle(cell, outcome);
    }

    // -- spawning -------------------------------------------------------------------------------------------------------

    /// The stage for a child of an actor of this worker.
    #[inline]
    pub(crate) fn near_stage(&self) -> Option<u16> {
        // SAFETY: changed only at boundaries, by this thread.
        let near = unsafe { &*self.near.get() };
        if near.is_empty() {
            return None;
        }
        let next = self.near_next.get();
        let next = if next >= near.len() { 0 } else { next };
        self.near_next.set(next + 1);
        Some(near[next])
    }

    #[inline(always)]
    pub(crate) fn occupy<S: Resident>(&self, state: S, stage: u16) -> RawAddress {
        let kind = record::KindOf::<S>::KIND;
        // SAFETY: the nursery is used by this thread only; a cell taken from it is vacant and of the right class.
        let cell = unsafe {
            let cell = (*self.nursery.get()).take(kind.class);
            Cell::occupy(cell, state, kind, stage, self.system_id);
            cell
        };
        self.ledger.spawned.add(1);
        RawAddress::of(cell)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let core = self.core.get();
        if !core.is_null() {
            // SAFETY: made by Box::into_raw in `new`, and not taken over by another thread.
            drop(unsafe { Box::from_raw(core) });
        }
    }
}

/// Sends `mail` in the normal lane.
#[inline(always)]
pub(crate) fn post<S: Resident, D: Deliverable<S>>(to: RawAddress, mail: D) {
    match current() {
        Some(worker) if worker.system_id == to.system() => worker.append(to, mail),
        _ => post_elsewhere(to, Lane::Normal, mail),
    }
}

/// Sends `mail` in `lane`.
pub(crate) fn post_lane<S: Resident, D: Deliverable<S>>(to: RawAddress, lane: Lane, mail: D) {
    match current() {
        Some(worker) if worker.system_id == to.system() => post_outside(&worker.system, to, lane, mail),
        _ => post_elsewhere(to, lane, mail),
    }
}

/// Sends from a thread that is no worker of the receiver's system.
#[cold]
#[inline(never)]
fn post_elsewhere<S: Resident, D: Deliverable<S>>(to: RawAddress, lane: Lane, mail: D) {
    match SystemCore::by_id(to.system()) {
        Some(system) => {
            if lane == Lane::Normal && current().is_none() {
                system.wait_while_overloaded(to.stage());
            }
            post_outside(&system, to, lane, mail);
        }
        None => bounce_unwritten(to, mail, Undelivered::Shutdown),
    }
}

/// Puts `mail` right into the inbox of the receiver's worker.
fn post_outside<S: Resident, D: Deliverable<S>>(system: &SystemCore, to: RawAddress, lane: Lane, mail: D) {
    if to.stage() as usize >= system.route.len() {
        return bounce_unwritten(to, mail, Undelivered::Stopped);
    }
    let mut loose = Loose::new();
    let (record, size) = loose.write(mail, to.cell, to.identity());
    if !system.post(to.stage(), lane, record, size) {
        // SAFETY: the record was not taken, so it is consumed here.
        unsafe { (record.as_ref().thunk)(record, Op::Bounce(Undelivered::Shutdown)) };
    }
}

#[cold]
fn bounce_unwritten<S: Resident, D: Deliverable<S>>(to: RawAddress, mail: D, why: Undelivered) {
    let mut loose = Loose::new();
    let (record, _) = loose.write(mail, to.cell, to.identity());
    // SAFETY: a whole record, consumed once.
    unsafe { (record.as_ref().thunk)(record, Op::Bounce(why)) };
}

/// Bounces every record of `chain`.
pub(crate) fn bounce_chain(mut chain: Chain, why: Undelivered) {
    // SAFETY: the chain owns its records; each is consumed once.
    chain.for_each(|record| unsafe {
        (record.as_ref().thunk)(record, Op::Bounce(why));
    });
    chain.bytes = 0;
}

/// A handler was suspended (or is not any more): the system is not idle while one is.
pub(crate) fn note_suspended(suspended: bool) {
    if let Some(worker) = current() {
        if suspended {
            worker.system.open_more();
        } else {
            worker.system.open_less();
        }
    }
}

/// Runs `mail` on the caller's stack if nobody can tell the difference; otherwise gives it back.
///
/// The receiver must be resident on this worker, not running, not suspended, and no message may wait for it here: then
/// running it now is one of the orders in which the queue could have run (macro-step semantics: its handler sees no
/// message of the caller that it would not have seen).
pub(crate) fn call_now<S: Resident, D: Deliverable<S>>(to: RawAddress, mail: D) -> Result<(), D> {
    /// Records looked at for one that waits for the receiver; with more in the queue the short cut is not taken.
    const LOOKED_AT_MAX: usize = 16;
    let Some(worker) = current() else { return Err(mail) };
    let depth = worker.nested.get();
    let claimed = worker.claimed.load(Ordering::Relaxed);
    // SAFETY: cells are never freed.
    let header = unsafe { to.cell.as_ref() };
    if worker.system_id != to.system()
        || worker.route_of(to.stage()) != Some(worker.id)
        || header.tag() != to.identity()
        || depth == NEST_MAX
        || worker.phase.load(Ordering::Relaxed) != USER
        || worker.holding.get()
        || claimed.is_null()
        // SAFETY: the claimed record stays readable until the next one is claimed.
        || unsafe { (*claimed).cell } == to.cell
        || worker.nest[..depth].iter().any(|cell| cell.load(Ordering::Relaxed) == to.cell.as_ptr())
        || !worker.nothing_waits_for(to.cell, LOOKED_AT_MAX)
    {
        return Err(mail);
    }
    let nest = Nest::enter(worker, depth, to.cell);
    if worker.signal.get() & Signal::REVOKED != 0 {
        return Err(mail);
    }
    worker.ledger.short_circuits.add(1);
    let mut loose = Loose::new();
    let (record, _) = loose.write(mail, to.cell, to.identity());
    // SAFETY: this worker runs the receiver's stage, no handler of it is on the stack, and the record is run once.
    let result = catch_unwind(AssertUnwindSafe(|| unsafe { (record.as_ref().thunk)(record, Op::Run) }));
    match result {
        Ok(outcome) => worker.settle(to.cell, outcome),
        Err(panic) => worker.crash(to.cell, Crash::Panic(panic)),
    }
    drop(nest);
    Ok(())
}

impl Worker {
    /// Whether none of the first `most` records of the queue (and there are no more) is for `cell`.
    fn nothing_waits_for(&self, cell: NonNull<Cell>, most: usize) -> bool {
        let own = &self.logs[self.id as usize];
        // SAFETY: read by the owner in short borrows.
        let later_is_empty = unsafe { (*self.later.get()).is_empty() };
        let run = self.position();
        if !later_is_empty || own.first.get() != own.last.get() {
            return false;
        }
        let mut seen = 0;
        let mut clear = true;
        let mut look = |record: NonNull<Record>| {
            seen += 1;
            // SAFETY: records of the own queue.
            clear &= unsafe { record.as_ref().cell } != cell;
        };
        // SAFETY: whole records that were not consumed; the queue does not change meanwhile.
        unsafe {
            if !run.is_none() {
                if !(*run.segment).next.is_null() || (run.end as usize - run.at as usize) > most * 128 {
                    return false;
                }
                crate::segment::for_each_between(run.at, run.end, &mut look);
            }
            if !own.is_closed() {
                let body = Segment::body(own.first.get());
                let tail = own.tail.load(Ordering::Relaxed);
                if (tail as usize - body as usize) > most * 128 {
                    return false;
                }
                crate::segment::for_each_between(body, tail, &mut look);
            }
        }
        clear && seen <= most
    }
}

impl Worker {
    /// Bounces all that waits anywhere at this worker: its thread has ended.
    pub(crate) fn bounce_everything(&self) {
        if self.core.get().is_null() {
            return;
        }
        let mut chains = Vec::new();
        for log in &self.logs {
            chains.push(log.seal());
        }
        let mut inbox = self.office().lock();
        chains.extend(self.empty_inbox(&mut inbox));
        drop(inbox);
        // SAFETY: the thread has ended, so this one owns queue and core.
        unsafe {
            chains.extend(std::mem::take(&mut self.core().holds).into_values().map(|hold| hold.chain));
            crate::boundary::for_each_queued(self, |mut record| {
                (record.as_ref().thunk)(record, Op::Bounce(Undelivered::Shutdown));
                record.as_mut().bury();
            });
        }
        for chain in chains {
            bounce_chain(chain, Undelivered::Shutdown);
        }
        // SAFETY: as above; every record of the queue is buried.
        unsafe {
            let cursors = std::iter::once(self.run.replace(Cursor::NONE)).chain(std::mem::take(&mut *self.later.get()));
            for cursor in cursors {
                let mut segment = cursor.segment;
                while !segment.is_null() {
                    let next = (*segment).next;
                    self.pool.put(segment);
                    segment = next;
                }
            }
        }
    }
}

/// Spawns on a stage of the running worker and runs `start` at once: nobody else knows the new actor, so nobody can
/// tell that from sending it. Gives both back where this thread runs no worker with stages for children.
#[inline]
pub(crate) fn spawn_near<S: Resident, E: Envelope<S>>(state: S, start: E) -> Result<Address<S>, (S, E)> {
    let Some(worker) = current() else { return Err((state, start)) };
    let Some(stage) = worker.near_stage() else { return Err((state, start)) };
    let raw = worker.occupy(state, stage);
    let depth = worker.nested.get();
    if depth == NEST_MAX || worker.phase.load(Ordering::Relaxed) != USER {
        raw.typed::<S>().send(start);
        return Ok(raw.typed());
    }
    let nest = Nest::enter(worker, depth, raw.cell);
    if worker.signal.get() & Signal::REVOKED != 0 {
        raw.typed::<S>().send(start);
        return Ok(raw.typed());
    }
    // SAFETY: the cell was just occupied on a stage of this worker, and no handler of it runs.
    let state = unsafe { Cell::state::<S>(raw.cell) };
    match catch_unwind(AssertUnwindSafe(|| start.run(state, Cx::new(raw.cell)).outcome())) {
        Ok(CONTINUE) => {}
        Ok(outcome) => worker.settle(raw.cell, outcome),
        Err(panic) => worker.crash(raw.cell, Crash::Panic(panic)),
    }
    drop(nest);
    Ok(raw.typed())
}

/// A nested handler on this stack: its stage is claimed as a record's is (see `monitor.rs`).
struct Nest<'a>(&'a Worker, usize);

impl<'a> Nest<'a> {
    #[inline]
    fn enter(worker: &'a Worker, depth: usize, cell: NonNull<Cell>) -> Nest<'a> {
        worker.nest[depth].store(cell.as_ptr(), Ordering::Relaxed);
        worker.nested.set(depth + 1);
        worker.light_fence();
        Nest(worker, depth)
    }
}

impl Drop for Nest<'_> {
    fn drop(&mut self) {
        self.0.nested.set(self.1);
        self.0.nest[self.1].store(ptr::null_mut(), Ordering::Relaxed);
    }
}
