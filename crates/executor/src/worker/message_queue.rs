//! A worker's queue: its own log, and the positions in it.
//!
//! The log of a worker for itself *is* its queue: sends append at the tail, and the run loop follows. Records that have
//! to come first (urgent mail, parked records) form a chain of their own, which is run before the loop goes on at its
//! former position. All functions of this module are for the owner in phase RUNTIME, or for the thread that has taken
//! the worker.

use std::cell::Cell as StdCell;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering;

use crate::memory::cell::Cell;
use crate::memory::raw_address::Lane;
use crate::memory::record::{Record, Undelivered};
use crate::memory::segment::{Chain, Segment, copy_bytes_max, for_each_between};
use crate::message::dead_letters;
use crate::worker::timer_wheel::{TimerOp, TimerTask};
use crate::worker::{Worker, user_calls};

/// Records written for one worker since the last flush.
///
/// Written by the owning thread. The monitor reads `tail` (after the heavy fence) and sets both limits to null.
pub(crate) struct Log {
    /// The address of the next record. Release: the record before it is whole.
    pub(crate) tail: AtomicPtr<u8>,
    /// The limit for the end of a record. If it is null, an append compares with `counted_end`.
    pub(crate) end: AtomicPtr<u8>,
    /// The limit for the end of a record that the sender's worker counts. If both limits are null, an append enters
    /// RUNTIME.
    pub(crate) counted_end: AtomicPtr<u8>,
    pub(crate) first: StdCell<*mut Segment>,
    pub(crate) last: StdCell<*mut Segment>,
}

impl Log {
    pub(crate) fn closed() -> Log {
        Log {
            tail: AtomicPtr::new(ptr::null_mut()),
            end: AtomicPtr::new(ptr::null_mut()),
            counted_end: AtomicPtr::new(ptr::null_mut()),
            first: StdCell::new(ptr::null_mut()),
            last: StdCell::new(ptr::null_mut()),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.first.get().is_null()
    }

    /// Returns the bytes of records in the last segment of an open log.
    pub(crate) fn bytes_in_last(&self) -> usize {
        (self.tail.load(Ordering::Relaxed) as usize).wrapping_sub(Segment::body(self.last.get()) as usize)
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

    /// Makes the next append enter RUNTIME. The owner and the monitor call this.
    pub(crate) fn stop(&self) {
        self.end.store(ptr::null_mut(), Ordering::Relaxed);
        self.counted_end.store(ptr::null_mut(), Ordering::Relaxed);
    }

    pub(crate) fn close(&self) {
        self.tail.store(ptr::null_mut(), Ordering::Relaxed);
        self.stop();
        self.first.set(ptr::null_mut());
        self.last.set(ptr::null_mut());
    }
}

/// A position in a list of segments: the rest of one, then those behind it.
#[derive(Clone, Copy)]
pub(crate) struct Cursor {
    pub(crate) segment: *mut Segment,
    pub(crate) at: *mut u8,
    pub(crate) end: *mut u8,
}

impl Cursor {
    /// The first `advance` finds the end.
    fn at_start_of(chain: &Chain) -> Cursor {
        let body = Segment::body(chain.first);
        Cursor { segment: chain.first, at: body, end: body }
    }
}

impl Worker {
    pub(crate) fn cursor(&self) -> Cursor {
        Cursor { segment: self.run_segment.get(), at: self.run_at.get(), end: self.run_end.get() }
    }

    pub(crate) fn set_cursor(&self, cursor: Cursor) {
        self.run_segment.set(cursor.segment);
        self.run_at.set(cursor.at);
        self.run_end.set(cursor.end);
    }

    /// Opens the own log and puts the cursor at its start.
    pub(crate) fn open_queue(&self) {
        let log = &self.logs[self.id as usize];
        let segment = self.pool.take();
        log.first.set(segment);
        log.last.set(segment);
        let body = Segment::body(segment);
        log.tail.store(body, Ordering::Relaxed);
        log.stop();
        log.end.store(self.own_end(segment), Ordering::Relaxed);
        self.set_cursor(Cursor { segment, at: body, end: body });
    }

    /// Returns the position up to which the own actors append to `segment` without further checks.
    fn own_end(&self, segment: *mut Segment) -> *mut u8 {
        // While records are parked or accounts are kept, each send is checked.
        let looks = self.holding.get() || self.shared().full_stages.load(Ordering::Relaxed) > 0;
        if looks { ptr::null_mut() } else { Segment::limit(segment) }
    }

    /// Returns the present end of the records of `segment`.
    #[inline(always)]
    fn end_of(&self, segment: *mut Segment) -> *mut u8 {
        let log = &self.logs[self.id as usize];
        if segment == log.last.get() {
            log.tail.load(Ordering::Relaxed)
        } else {
            // SAFETY: a live segment of the queue, filled up to `used`.
            unsafe { Segment::body(segment).add((*segment).used) }
        }
    }

    /// Moves a cursor at its end to the next record, if there is one. Returns false if the queue is empty.
    #[inline]
    pub(crate) fn advance(&self) -> bool {
        let log = &self.logs[self.id as usize];
        let segment = self.run_segment.get();
        let end = self.end_of(segment);
        if self.run_at.get() != end {
            self.run_end.set(end);
            return true;
        }
        if segment == log.last.get() && segment == log.first.get() {
            // Empty: the tail goes back to the start of the segment, which stays in the cache.
            let body = Segment::body(segment);
            self.passed_bytes.set(self.bytes_run());
            debug_assert_eq!(self.queued_bytes.get(), 0, "the queue is empty");
            log.tail.store(body, Ordering::Relaxed);
            self.run_at.set(body);
            self.run_end.set(body);
            self.newborns.forget();
            return false;
        }
        self.next_segment();
        self.advance()
    }

    /// Gives back the cursor's segment, which was run, and goes to the next one or to the next cursor of `later`.
    #[inline(never)]
    fn next_segment(&self) {
        let log = &self.logs[self.id as usize];
        let segment = self.run_segment.get();
        // SAFETY: the queue owns its segments; all payloads of this one were consumed.
        let next = unsafe {
            let next = (*segment).next;
            self.queued_bytes.set(self.queued_bytes.get() - (*segment).used as isize);
            self.passed_bytes.set(self.passed_bytes.get() + (*segment).used as u64);
            if segment == log.first.get() {
                log.first.set(next);
            }
            for last in &self.lane_last {
                if last.get() == segment {
                    last.set(ptr::null_mut());
                }
            }
            self.pool.put(segment);
            next
        };
        if next.is_null() {
            // SAFETY: in RUNTIME, by the owner. The log itself never ends, and a cursor therefore remains below each
            // chain.
            let later = unsafe { (*self.later.get()).pop() }.expect("a chain was put before another cursor");
            self.set_cursor(later);
        } else {
            let body = Segment::body(next);
            self.set_cursor(Cursor { segment: next, at: body, end: body });
        }
    }

    /// Puts `chain` before all other records of the queue.
    pub(crate) fn put_first(&self, mut chain: Chain) {
        if chain.is_empty() {
            return;
        }
        self.queued_bytes.set(self.queued_bytes.get() + chain.bytes as isize);
        // SAFETY: in RUNTIME, by the owner.
        unsafe { (*self.later.get()).push(self.cursor()) };
        self.set_cursor(Cursor::at_start_of(&chain));
        chain.forget();
    }

    /// Puts newer mail of a lane behind the queued mail of that lane, and before that of lower ones.
    pub(crate) fn put_in_lane(&self, lane: Lane, mut chain: Chain) {
        let last = match lane {
            Lane::Normal => return self.enqueue(chain),
            lane => &self.lane_last[lane as usize],
        };
        if chain.is_empty() {
            return;
        }
        let new_last = chain.last;
        if !last.get().is_null() {
            // SAFETY: the lane's last segment is live until the loop has passed it, which resets `lane_last`.
            unsafe { (*last.get()).next = chain.first };
            self.queued_bytes.set(self.queued_bytes.get() + chain.bytes as isize);
            chain.forget();
        } else if lane == Lane::Urgent && !self.lane_last[Lane::System as usize].get().is_null() {
            // The loop is in system mail, and urgent mail is next.
            self.queued_bytes.set(self.queued_bytes.get() + chain.bytes as isize);
            // SAFETY: in RUNTIME, by the owner.
            unsafe { (*self.later.get()).push(Cursor::at_start_of(&chain)) };
            chain.forget();
        } else {
            self.put_first(chain);
        }
        last.set(new_last);
    }

    /// Puts back records that are older than all others of their stages (parked records, or records that could not be
    /// given away). They go before all others, each in its lane.
    pub(crate) fn put_back(&self, lanes: [Chain; 3]) {
        let [system, urgent, normal] = lanes;
        self.put_first(normal);
        for (lane, chain) in [(Lane::Urgent, urgent), (Lane::System, system)] {
            let last = &self.lane_last[lane as usize];
            if !chain.is_empty() && last.get().is_null() {
                last.set(chain.last);
            }
            self.put_first(chain);
        }
    }

    /// Appends whole records: mail, and records that came back.
    pub(crate) fn enqueue(&self, mut chain: Chain) {
        if chain.is_empty() {
            return chain.recycle(Some(&self.pool));
        }
        let log = &self.logs[self.id as usize];
        let tail = log.tail.load(Ordering::Relaxed);
        let room = Segment::limit(log.last.get()) as usize - tail as usize;
        // SAFETY: the log owns its segments and the chain its own; a copied chain's segments hold no payload any more.
        unsafe {
            if chain.first == chain.last
                && chain.bytes <= room
                && chain.bytes <= copy_bytes_max(self.backlog_bytes() as usize)
            {
                ptr::copy_nonoverlapping(Segment::body(chain.first), tail, chain.bytes);
                log.tail.store(tail.add(chain.bytes), Ordering::Release);
                return chain.recycle_spent(Some(&self.pool));
            }
            let last = log.last.get();
            (*last).used = tail.offset_from(Segment::body(last)) as usize;
            (*last).next = chain.first;
            let queued = (*last).used + chain.bytes - (*chain.last).used;
            self.queued_bytes.set(self.queued_bytes.get() + queued as isize);
            log.last.set(chain.last);
            self.newborns.forget();
            log.tail.store(Segment::body(chain.last).add((*chain.last).used), Ordering::Release);
            log.stop();
            log.end.store(self.own_end(chain.last), Ordering::Relaxed);
            chain.forget();
        }
    }

    /// Estimates the bytes of records that wait.
    pub(crate) fn backlog_bytes(&self) -> u64 {
        let log = &self.logs[self.id as usize];
        let segment = self.run_segment.get();
        let run = self.run_at.get() as isize - Segment::body(segment) as isize;
        let open = log.tail.load(Ordering::Relaxed) as isize - Segment::body(log.last.get()) as isize;
        (self.queued_bytes.get() + open - run).max(0) as u64
    }

    /// Returns [`Worker::backlog_bytes`] plus the bytes of the deferred starts.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        // SAFETY: in RUNTIME; short borrow.
        self.backlog_bytes() + unsafe { self.core() }.deferred_starts.bytes()
    }

    /// Returns the bytes of records that were run since the queue was opened.
    pub(crate) fn bytes_run(&self) -> u64 {
        self.bytes_run_to(self.cursor())
    }

    /// Returns the same as [`Worker::bytes_run`], with the cursor at `position`. The monitor may not read the cursor,
    /// because the thread moves it in USER.
    pub(crate) fn bytes_run_to(&self, position: Cursor) -> u64 {
        let run = position.at as usize - Segment::body(position.segment) as usize;
        self.passed_bytes.get() + run as u64
    }

    /// Returns whether mail of a higher lane is queued. To be called after [`Worker::advance`].
    pub(crate) fn has_mail_of_lanes(&self) -> bool {
        self.lane_last.iter().any(|last| !last.get().is_null())
    }

    /// Calls `visit` for each record that waits: the deferred starts, and then the queue, in order.
    pub(crate) fn for_each_waiting(&self, mut visit: impl FnMut(NonNull<Record>)) {
        // SAFETY: in RUNTIME; short borrow.
        unsafe { self.core() }.deferred_starts.for_each(&mut visit);
        self.for_each_queued(visit);
    }

    /// Calls `visit` for each record of the queue, in order.
    pub(crate) fn for_each_queued(&self, mut visit: impl FnMut(NonNull<Record>)) {
        let tail = self.logs[self.id as usize].tail.load(Ordering::Relaxed);
        self.for_each_from(self.cursor(), tail, &mut visit);
    }

    /// Does the same as [`Worker::for_each_queued`], with the cursor at `position` and the log's tail at `tail`.
    pub(crate) fn for_each_from(&self, position: Cursor, tail: *mut u8, visit: &mut impl FnMut(NonNull<Record>)) {
        let last = self.logs[self.id as usize].last.get();
        let mut over = |cursor: Cursor| {
            let (mut segment, mut at) = (cursor.segment, cursor.at);
            loop {
                // SAFETY: the queue owns the segments from the cursor onwards; they hold whole records.
                unsafe {
                    let end = if segment == last { tail } else { Segment::body(segment).add((*segment).used) };
                    for_each_between(at, end, visit);
                    segment = (*segment).next;
                }
                if segment.is_null() {
                    break;
                }
                at = Segment::body(segment);
            }
        };
        over(position);
        // SAFETY: in RUNTIME, by the owner.
        for later in unsafe { (*self.later.get()).iter().rev() } {
            over(*later);
        }
    }

    /// Returns whether certainly no record waits for `cell`. Searches only short queues.
    pub(crate) fn nothing_waits_for(&self, position: Cursor, cell: NonNull<Cell>) -> bool {
        /// With more bytes than this in the queue the answer is false.
        const LOOKED_AT_BYTES_MAX: usize = 1024;
        let log = &self.logs[self.id as usize];
        let tail = log.tail.load(Ordering::Relaxed);
        if let Some(from) = self.newborns.sent_to_from(cell) {
            let from = if position.segment == log.last.get() { from.max(position.at) } else { from };
            // A detached thread has a closed log with a null tail.
            if (tail as usize).wrapping_sub(from as usize) > LOOKED_AT_BYTES_MAX {
                return false;
            }
            let mut clear = true;
            // SAFETY: whole records that were not consumed; the queue does not change during the call.
            unsafe { for_each_between(from, tail, &mut |record| clear &= record.as_ref().cell != cell) };
            return clear;
        }
        // SAFETY: read by the owner.
        let nothing_later = unsafe { (*self.later.get()).is_empty() };
        if !nothing_later
            || position.segment != log.last.get()
            || (tail as usize).wrapping_sub(position.at as usize) > LOOKED_AT_BYTES_MAX
        {
            return false;
        }
        let mut clear = true;
        // SAFETY: whole records that were not consumed; the queue does not change during the call.
        unsafe { for_each_between(position.at, tail, &mut |record| clear &= record.as_ref().cell != cell) };
        clear
    }

    /// Gives back the segments from `segment` on, whose records were all consumed.
    ///
    /// # Safety
    /// The caller owns them.
    pub(crate) unsafe fn free_segments(&self, mut segment: *mut Segment) {
        while !segment.is_null() {
            // SAFETY: the caller owns the segments, and all records in them were consumed.
            unsafe {
                let next = (*segment).next;
                self.pool.put(segment);
                segment = next;
            }
        }
    }

    /// Bounces all records that wait at this worker, and forgets its timers. Its thread has ended. Returns whether
    /// there was any record or timer, because the drops of those may have sent more.
    pub(crate) fn bounce_everything(&self) -> bool {
        if self.core.get().is_null() {
            return false;
        }
        let mut chains: Vec<Chain> = self
            .logs
            .iter()
            .enumerate()
            .filter(|(dest, _)| *dest != self.id as usize)
            .map(|(_, log)| log.seal())
            .collect();
        let mut inbox = self.shared().lock();
        chains.extend(self.empty_inbox(&mut inbox));
        let timer_ops = std::mem::take(&mut inbox.timer_ops);
        drop(inbox);
        // SAFETY: the thread has ended, and this one therefore owns the core.
        let core = unsafe { self.core() };
        chains.extend(std::mem::take(&mut core.parked).into_values().flat_map(|parked| parked.lanes));
        chains.push(core.deferred_starts.take(u64::MAX, Some(&self.pool)));
        let started = timer_ops.into_iter().filter_map(|op| match op {
            TimerOp::Start { task, .. } => Some(task),
            TimerOp::Cancel { .. } => None,
        });
        let tasks: Vec<TimerTask> =
            core.wheel.take_all().into_iter().chain(core.cancelled.drain(..)).chain(started).collect();
        let mut any = !tasks.is_empty() || chains.iter().any(|chain| !chain.is_empty());
        for task in tasks {
            self.call_user(|| drop(task));
        }
        for chain in chains {
            bounce_chain(chain, Undelivered::Shutdown);
        }
        while self.advance() {
            any = true;
            let record = NonNull::new(self.run_at.get().cast::<Record>()).expect("segments are not null");
            // SAFETY: whole records of the own queue; each is consumed once.
            unsafe {
                self.run_at.set(self.run_at.get().add(record.as_ref().bytes()));
                bounce(record, Undelivered::Shutdown);
            }
        }
        any
    }
}

/// Bounces every record of `chain`.
pub(crate) fn bounce_chain(chain: Chain, why: Undelivered) {
    // SAFETY: the chain owns its records; each is consumed once.
    chain.consume(None, |record| unsafe { bounce(record, why) });
}

/// Bounces `record`, as user code is called. The panic hook reports a panic in the drop of its message. The records
/// behind it are bounced all the same.
///
/// # Safety
/// The caller owns the record, which is consumed.
pub(crate) unsafe fn bounce(record: NonNull<Record>, why: Undelivered) {
    // SAFETY: the caller owns the record and gives it up.
    user_calls::call(|| unsafe { dead_letters::bounce(record, why) });
}
