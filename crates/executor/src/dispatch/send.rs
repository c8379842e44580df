//! Sending: from a handler into a log, from any other code into an inbox.

use std::num::NonZeroU64;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::dispatch::loose_record::Loose;
use crate::dispatch::thunks::Deliverable;
use crate::memory::raw_address::{Lane, RawAddress};
use crate::memory::record::{self, CAUSE_BYTES, Record, Undelivered};
use crate::memory::segment::Segment;
use crate::message::dead_letters::{bounce, in_hook};
use crate::message::envelope::Resident;
use crate::message::mailbox_bound::{self, MailboxState, WithPermit};
use crate::sync::jitter::seam;
use crate::sync::worker_requests::Signal;
use crate::user_code::contained;
use crate::worker::core::MuteRequest;
use crate::worker::message_queue::Log;
use crate::worker::system_core::SystemCore;
use crate::worker::{Worker, current, run_by_askers};

/// The number of bytes that a handler writes to a log between two checks whether the log's worker is idle. The handler
/// makes these checks only while some worker is idle.
const BURST_BYTES: usize = 512;

/// A log with room for a record, in RUNTIME.
struct Open {
    /// The address of the record.
    tail: *mut u8,
    cause: Option<NonZeroU64>,
    wants_causes: bool,
    /// RUNTIME was entered for this record.
    in_handler: bool,
}

impl Worker {
    /// Returns the worker that runs `stage`, as of the last exchange.
    #[inline(always)]
    pub(crate) fn route_of(&self, stage: u16) -> Option<u16> {
        if stage >= self.stages {
            return None;
        }
        // SAFETY: `route` has `stages` entries; only this thread changes it, and only between calls.
        Some(unsafe { (*self.route.get()).worker_of(stage) })
    }

    /// Returns the log of `dest` and the address of its next record, if it is open and has room for `size` bytes.
    #[inline(always)]
    fn room_for(&self, dest: u16, size: usize) -> Option<(&Log, *mut u8)> {
        // SAFETY: `route` holds indices of logs.
        let log = unsafe { self.logs.get_unchecked(dest as usize) };
        let tail = log.tail.load(Ordering::Relaxed);
        let room = (log.end.load(Ordering::Relaxed) as isize).wrapping_sub(tail as isize);
        (room >= size as isize).then_some((log, tail))
    }

    /// Returns the same as [`room_for`](Worker::room_for) for a counted record of a handler.
    fn counted_room_for(&self, dest: u16, size: usize) -> Option<(&Log, *mut u8)> {
        let log = &self.logs[usize::from(dest)];
        let tail = log.tail.load(Ordering::Relaxed);
        let room = (log.counted_end.load(Ordering::Relaxed) as isize).wrapping_sub(tail as isize);
        (room >= size as isize && self.ownership.is_user() && !self.ownership.claimed().is_null())
            .then_some((log, tail))
    }

    /// Appends the record of `mail` to the log of the receiver's worker.
    #[inline(always)]
    fn append<S: Resident, D: Deliverable<S>>(&self, to: RawAddress, mail: D) {
        debug_assert!(self.ownership.is_user(), "a send in RUNTIME: user code must run in USER (`user_code`)");
        let size = record::record_bytes::<D>();
        if let Some((log, tail)) = self.route_of(to.stage()).and_then(|dest| self.room_for(dest, size)) {
            // SAFETY: there is room for the record at `tail`, which is aligned because all sizes are multiples of 8.
            unsafe {
                mail.write_record(tail, to.cell, to.identity());
                seam(10_000);
                log.tail.store(tail.add(size), Ordering::Release);
            }
        } else {
            self.append_slow(to, mail);
        }
    }

    #[cold]
    #[inline(never)]
    fn append_slow<S: Resident, D: Deliverable<S>>(&self, to: RawAddress, mail: D) {
        let mut loose = Loose::new();
        let record = loose.write(mail, to.cell, to.identity());
        // SAFETY: a whole record in memory with room for its cause, consumed once.
        unsafe { self.append_record(to, record) };
    }

    /// Appends a record that was written outside the log.
    ///
    /// # Safety
    /// The same as for [`post_record`].
    #[inline(never)]
    unsafe fn append_record(&self, to: RawAddress, record: NonNull<Record>) {
        // SAFETY: a whole record for `to` without a cause, with room for one; it is consumed once.
        unsafe {
            let Some(dest) = self.route_of(to.stage()) else { return bounce(record, Undelivered::Stopped) };
            let size = record.as_ref().bytes();
            if let Some((log, tail)) = self.room_for(dest, size) {
                ptr::copy_nonoverlapping(record.as_ptr().cast::<u8>(), tail, size);
                seam(10_000);
                log.tail.store(tail.add(size), Ordering::Release);
                return;
            }
            if dest != self.id && usize::from(self.id) >= self.system.config.workers {
                post_unbounded(&self.system, to, Lane::Normal, record, false);
                return self.posted_from_dedicated(to.stage(), size);
            }
            if let Some((log, tail)) = self.counted_room_for(dest, size) {
                ptr::copy_nonoverlapping(record.as_ptr().cast::<u8>(), tail, size);
                seam(10_000);
                log.tail.store(tail.add(size), Ordering::Release);
                return self.count_sent(log, (dest, to.stage(), size));
            }
            match self.open_log(dest, size) {
                Ok(open) => {
                    ptr::copy_nonoverlapping(record.as_ptr().cast::<u8>(), open.tail, size);
                    self.close_up(dest, to.stage(), open, size);
                }
                Err(cause) => post_loose(&self.system, to.stage(), Lane::Normal, record, cause, false),
            }
        }
    }

    /// Opens the log of `dest` for a record of `size` bytes, and enters RUNTIME until [`close_up`](Worker::close_up).
    /// Returns `Err`, with the cause of the record, if this thread has lost the worker.
    #[inline(never)]
    fn open_log(&self, dest: u16, size: usize) -> Result<Open, Option<NonZeroU64>> {
        seam(2_000);
        // Still in USER, because the observer is asked, and may send messages.
        let wants_causes = self.system.observation.observers.wants_causes();
        let cause = wants_causes.and_then(|observer| contained(|| observer.cause()).flatten());
        let in_handler = self.ownership.is_user();
        if in_handler && !self.enter_runtime() {
            seam(100);
            self.flush_detached();
            return Err(cause);
        }
        let size = size + if cause.is_some() { CAUSE_BYTES } else { 0 };
        let log = &self.logs[dest as usize];
        let mut tail = log.tail.load(Ordering::Relaxed);
        if log.is_closed() || (Segment::limit(log.last.get()) as usize) - (tail as usize) < size {
            tail = self.extend_log(dest);
        }
        Ok(Open { tail, cause, wants_causes: wants_causes.is_some(), in_handler })
    }

    /// Ends the append of a record of `size` bytes at the address of `open`.
    #[inline(never)]
    fn close_up(&self, dest: u16, stage: u16, open: Open, mut size: usize) {
        let log = &self.logs[dest as usize];
        // SAFETY: the open segment has room for the record and its cause (checked against its true limit just now).
        unsafe {
            if let Some(cause) = open.cause {
                record::put_cause(NonNull::new_unchecked(open.tail.cast()), cause);
                size += CAUSE_BYTES;
            }
            if in_hook() {
                (*open.tail.cast::<Record>()).mark_from_hook();
            }
            log.tail.store(open.tail.add(size), Ordering::Release);
        }
        let receiver = &self.system.worker_table[dest as usize];
        let some_stage_full = receiver.full_stages.load(Ordering::Relaxed) > 0;
        let stage_full = some_stage_full && self.system.routing.full[stage as usize].is_full();
        let pressed = self.pressed_for(dest, stage);
        // Accounts are kept, or records are parked.
        let counts = pressed.is_some() || self.holding.get();
        let claimed = self.ownership.claimed();
        if (stage_full || counts) && open.in_handler && !claimed.is_null() {
            // SAFETY: the claimed record stays readable until the next one is claimed.
            let sender = unsafe { (*claimed).stage() };
            self.note_sent(sender, (dest, stage, size), stage_full, pressed);
        } else if counts && self.firing.get() {
            if dest == self.id {
                // A timer has sent this message. The receiver therefore earns no credit by handling it.
                self.accounts.borrow_mut().charge(stage, size, None);
            } else if let Some(receiver) = pressed {
                self.system.worker_table[usize::from(receiver)].standing.note_source();
            }
        }
        // Both limits become null, because the code below sets one of them at most.
        log.stop();
        if !some_stage_full && !open.wants_causes && !in_hook() {
            let limit = Segment::limit(log.last.get());
            let some_idle = dest != self.id && self.system.idle.workers.any().is_some();
            let end =
                if some_idle { limit.min(log.tail.load(Ordering::Relaxed).wrapping_add(BURST_BYTES)) } else { limit };
            // Each counted record passes `note_sent`, which finds the stages to mute.
            let of = if counts { &log.counted_end } else { &log.end };
            of.store(end, Ordering::Relaxed);
            // If the monitor revoked the worker after it stopped the log, this store undid that. The signal is
            // therefore checked again.
            self.light_fence();
            if self.ownership.signal.get() & Signal::REVOKED != 0 {
                log.stop();
            }
        }
        seam(2_000);
        if open.in_handler {
            if dest != self.id && log.bytes_in_last() > BURST_BYTES {
                self.hand_over_to_idle(dest);
            }
            self.leave_runtime();
        }
    }

    /// Handles a send of a dedicated worker to an actor of `stage`. A dedicated worker opens no logs to others. Its
    /// handlers may block for any time, and the monitor takes no work over from it. Messages in a log would therefore
    /// wait for the handler's end.
    fn posted_from_dedicated(&self, stage: u16, size: usize) {
        let claimed = self.ownership.claimed();
        // A dedicated worker hands no log over and learns of no departures. Its private route is therefore that of its
        // start.
        let dest = self.system.routing.route[usize::from(stage)].load(Ordering::Relaxed);
        let stage_full = self.system.routing.full[stage as usize].is_full();
        let pressed = self.pressed_for(dest, stage);
        if let Some(receiver) = pressed
            && !self.accounts.borrow().are_kept()
        {
            self.system.worker_table[usize::from(receiver)].standing.note_source();
        }
        if self.ownership.is_user() && !claimed.is_null() && (stage_full || pressed.is_some() || self.holding.get()) {
            // SAFETY: the claimed record stays readable until the next one is claimed.
            let sender = unsafe { (*claimed).stage() };
            self.note_sent(sender, (dest, stage, size), stage_full, pressed);
        }
    }

    /// Counts an urgent message that a handler has sent, because its receiver's stage handles it like any other.
    fn posted_in_lane(&self) {
        let claimed = self.ownership.claimed();
        if self.holding.get() && self.ownership.is_user() && !claimed.is_null() {
            // SAFETY: the claimed record stays readable until the next one is claimed.
            let sender = unsafe { (*claimed).stage() };
            self.accounts.borrow_mut().charge(sender, 0, None);
        }
    }

    /// Counts a record that a handler has appended to `log` below `counted_end`.
    #[inline(never)]
    fn count_sent(&self, log: &Log, (dest, stage, size): (u16, u16, usize)) {
        let pressed = self.pressed_for(dest, stage);
        if pressed.is_none() && !self.holding.get() {
            // The worker counts no more records: the next append enters RUNTIME and sets `end`.
            return log.stop();
        }
        // SAFETY: `counted_room_for` has seen a claimed record, which stays readable until the next one is claimed.
        let sender = unsafe { (*self.ownership.claimed()).stage() };
        self.note_sent(sender, (dest, stage, size), false, pressed);
    }

    /// Makes each append enter RUNTIME, until [`close_up`](Worker::close_up) opens the log again.
    pub(crate) fn stop_logs(&self) {
        self.logs.iter().for_each(Log::stop);
    }

    /// Returns the pressed worker that gets the messages to `stage` of `dest`, if any. No stage is muted for its own
    /// worker, because that would not help.
    fn pressed_for(&self, dest: u16, stage: u16) -> Option<u16> {
        let receiver = &self.system.worker_table[dest as usize];
        // Relaxed: a worker that sees the flag late mutes a source late.
        let is_pressed = receiver.pressed.load(Ordering::Relaxed) || receiver.overloaded.load(Ordering::Relaxed);
        let dest = (dest != self.id && is_pressed).then_some(dest);
        self.system.more_pressed(dest, self.system.passes_on_to(stage))
    }

    /// Notes that a handler of stage `sender` has sent to a stage of worker `dest`. Asks to mute `sender` if that stage
    /// is full, or if `sender` is a source and its messages reach the `pressed` worker.
    fn note_sent(&self, sender: u16, (dest, target, size): (u16, u16, usize), stage_full: bool, pressed: Option<u16>) {
        if stage_full {
            self.request_mute(MuteRequest { sender, receiver: dest, target, source: None, other_system: None });
        }
        let source = self.accounts.borrow_mut().charge(sender, size, pressed);
        let Some(receiver) = pressed else { return };
        if source.is_some() {
            self.system.note_source(receiver);
            self.request_mute(MuteRequest { sender, receiver, target, source, other_system: None });
        }
        if self.system.worker_table[receiver as usize].overloaded.load(Ordering::Relaxed) {
            self.system.routing.relays.note(sender, receiver);
        }
    }

    #[cold]
    pub(crate) fn request_mute(&self, request: MuteRequest) {
        self.with_core(|core| {
            match core.mute_requests.last_mut() {
                // A handler may send many messages to another system while that is overloaded.
                Some(last)
                    if request.other_system.is_some() && MuteRequest { source: last.source, ..request } == *last =>
                {
                    last.source = last.source.max(request.source);
                }
                _ => core.mute_requests.push(request),
            }
            if self.may_be_muted(core, request.sender) {
                // This ends the gulp, because the messages that wait may be large, and the stage may send much more in
                // the same gulp.
                self.ownership.signal.raise(Signal::TICK);
            }
        });
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
                self.system.worker_table[dest as usize].prepare();
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
                self.queued_bytes.set(self.queued_bytes.get() + (*full).used as isize);
            }
            log.last.set(segment);
            self.newborns.forget();
        } else {
            // A whole segment for another worker is handed over now. A long handler's messages then neither wait for
            // its end nor pile up in its log.
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
}

/// Sends `mail` in the normal lane.
#[inline(always)]
pub(crate) fn post<S: Resident, D: Deliverable<S>>(to: RawAddress, mail: D) {
    match current() {
        Some(worker) if worker.system_id == to.system_word() => worker.append(to, mail),
        _ => post_to_other_system(to, Lane::Normal, mail),
    }
}

/// Sends `mail` in `lane`.
pub(crate) fn post_lane<S: Resident, D: Deliverable<S>>(to: RawAddress, lane: Lane, mail: D) {
    match current() {
        Some(worker) if worker.system_id == to.system_word() => {
            post_in_lane(worker, to, lane, mail);
        }
        _ => post_to_other_system(to, lane, mail),
    }
}

/// Does the same as [`post`], but a thread outside does not wait while the receiver's worker is overloaded. For
/// requests, because their sender waits for the answer anyway (perhaps on a thread that must not block).
#[inline(always)]
pub(crate) fn post_request<S: Resident, D: Deliverable<S>>(to: RawAddress, mail: D) {
    match current() {
        Some(worker) if worker.system_id == to.system_word() => worker.append(to, mail),
        _ => post_request_to_other_system(to, mail),
    }
}

/// Does the same as [`post_request`], if there is room for the request; otherwise gives it back.
pub(crate) fn try_post<S: Resident, D: Deliverable<S>>(to: RawAddress, mail: D) -> Result<(), D> {
    let Some(system) = SystemCore::by_id(to.system()).filter(|_| to.is_bounded()) else {
        post_request(to, mail);
        return Ok(());
    };
    try_post_bounded(&system, to, mail)
}

// The code of a send that does not depend on the message is in functions of its own from here on. It is compiled once,
// and not for each type of messages. None of them is inlined, because the record would otherwise be on the stack of
// every handler that sends (12 % of a message in `executor`).

#[inline(never)]
fn try_post_bounded<S: Resident, D: Deliverable<S>>(
    system: &Arc<SystemCore>,
    to: RawAddress,
    mail: D,
) -> Result<(), D> {
    let mut loose = Loose::new();
    let record = loose.write(mail, to.cell, to.identity());
    // SAFETY: a whole record in memory with room for its cause; a record that found no room was not consumed.
    unsafe { place(system, to, Lane::Normal, record, false).map_err(|_| record::unwrap::<D>(record)) }
}

#[cold]
#[inline(never)]
fn post_to_other_system<S: Resident, D: Deliverable<S>>(to: RawAddress, lane: Lane, mail: D) {
    let mut loose = Loose::new();
    let record = loose.write(mail, to.cell, to.identity());
    // SAFETY: a whole record in memory with room for its cause, consumed once.
    unsafe { post_slowed(to, lane, record) };
}

#[cold]
#[inline(never)]
fn post_request_to_other_system<S: Resident, D: Deliverable<S>>(to: RawAddress, mail: D) {
    let mut loose = Loose::new();
    let record = loose.write(mail, to.cell, to.identity());
    // SAFETY: a whole record in memory with room for its cause, consumed once.
    unsafe { post_unslowed(to, record) };
}

/// Puts `mail` directly into the inbox of the receiver's worker.
#[inline(never)]
fn post_in_lane<S: Resident, D: Deliverable<S>>(worker: &Worker, to: RawAddress, lane: Lane, mail: D) {
    let mut loose = Loose::new();
    let record = loose.write(mail, to.cell, to.identity());
    // SAFETY: a whole record in memory with room for its cause, consumed once.
    unsafe { post_unbounded(&worker.system, to, lane, record, false) };
    worker.posted_in_lane();
}

/// # Safety
/// The same as for [`post_record`].
#[inline(never)]
unsafe fn post_slowed(to: RawAddress, lane: Lane, record: NonNull<Record>) {
    // SAFETY: a whole record for `to` without a cause, with room for one; it is consumed once.
    unsafe { post_record(system_for(to, lane, record.as_ref().bytes()), to, lane, record, false) };
}

/// # Safety
/// The same as for [`post_record`].
#[inline(never)]
unsafe fn post_unslowed(to: RawAddress, record: NonNull<Record>) {
    // For this request only, and not for messages that user code may send before the request has come to its receiver.
    let asks = run_by_askers::take_asks();
    let system = SystemCore::by_id(to.system());
    if let Some(system) = &system {
        system.note_unslowed(to.stage());
    }
    // SAFETY: a whole record for `to` without a cause, with room for one; it is consumed once.
    unsafe { post_record(system, to, Lane::Normal, record, asks) };
}

/// Returns the system of `to`, as soon as this thread may send `bytes` bytes to it.
fn system_for(to: RawAddress, lane: Lane, bytes: usize) -> Option<Arc<SystemCore>> {
    let system = SystemCore::by_id(to.system())?;
    match (lane, current()) {
        (Lane::Normal, None) => system.wait_while_overloaded(to.stage(), bytes as u64),
        (Lane::Normal, Some(worker)) if worker.system_id != system.id => {
            worker.note_sent_to_other_system(&system, to.stage(), bytes);
        }
        _ => system.note_unslowed(to.stage()),
    }
    Some(system)
}

/// Sends from a thread that is no worker of the receiver's system, or to an actor whose mailbox is bounded. A message
/// that finds no room in the mailbox is bounced.
///
/// # Safety
/// The record is whole, for `to` and without a cause, in memory with room for one. It is consumed by this function. The
/// same holds for all functions below.
///
/// `asks`, in this and the following functions: this thread would borrow the receiver's worker (`run_by_askers.rs`).
unsafe fn post_record(
    system: Option<Arc<SystemCore>>,
    to: RawAddress,
    lane: Lane,
    record: NonNull<Record>,
    asks: bool,
) {
    // SAFETY: the caller gives up a whole record; a record that found no room was not consumed.
    unsafe {
        match system {
            Some(system) if to.is_bounded() => {
                if let Err(mailbox) = place(&system, to, lane, record, asks) {
                    system.mailboxes.count(mailbox.on_full());
                    system.while_refusing(|| bounce(record, Undelivered::Full));
                }
            }
            Some(system) => post_unbounded(&system, to, lane, record, asks),
            None => bounce(record, Undelivered::Shutdown),
        }
    }
}

/// Sends a message that needs no permit of the receiver's mailbox (`mailbox_bound.rs`), or finds one. Returns `Err` if
/// it finds none; the record is then not consumed.
unsafe fn place(
    system: &Arc<SystemCore>,
    to: RawAddress,
    lane: Lane,
    record: NonNull<Record>,
    asks: bool,
) -> Result<(), Arc<MailboxState>> {
    // SAFETY: the caller gives up a whole record for `to` with room for a cause.
    unsafe {
        let bounded = system.mailboxes.of(to).map(|bounded| (bounded, record::weighed(record)));
        let Some((bounded, about)) = bounded.filter(|(_, about)| mailbox_bound::counts(about.kind)) else {
            post_with_permit(system, to, lane, record, asks);
            return Ok(());
        };
        let found = system.while_refusing(|| WithPermit::find(record, about, &bounded, lane, &system.mailboxes));
        let Some(permit) = found else { return Err(bounded) };
        let mut loose = Loose::new();
        post_with_permit(system, to, lane, loose.write_with_permit(permit, record), asks);
    }
    Ok(())
}

/// Sends from a worker of the system through its log, which keeps the order with its other messages to the receiver.
unsafe fn post_with_permit(system: &Arc<SystemCore>, to: RawAddress, lane: Lane, record: NonNull<Record>, asks: bool) {
    // SAFETY: the caller gives up a whole record for `to` with room for a cause.
    unsafe {
        match current() {
            Some(worker) if worker.system_id == system.id && lane == Lane::Normal => worker.append_record(to, record),
            _ => post_unbounded(system, to, lane, record, asks),
        }
    }
}

/// Puts the record directly into the inbox of the receiver's worker.
#[inline(never)]
unsafe fn post_unbounded(system: &SystemCore, to: RawAddress, lane: Lane, record: NonNull<Record>, asks: bool) {
    let cause =
        system.observation.observers.wants_causes().and_then(|observer| contained(|| observer.cause()).flatten());
    // SAFETY: the caller gives up a whole record for `to` with room for a cause.
    unsafe { post_loose(system, to.stage(), lane, record, cause, asks) };
}

#[inline(never)]
unsafe fn post_loose(
    system: &SystemCore,
    stage: u16,
    lane: Lane,
    mut record: NonNull<Record>,
    cause: Option<NonZeroU64>,
    asks: bool,
) {
    if usize::from(stage) >= system.routing.route.len() {
        // SAFETY: the caller gives up a whole record, which is consumed once.
        unsafe { bounce(record, Undelivered::Stopped) };
        return;
    }
    if let Some(cause) = cause {
        // SAFETY: the record has no cause, and its memory has room for one.
        unsafe { record::put_cause(record, cause) };
    }
    if in_hook() {
        // SAFETY: the caller owns the record.
        unsafe { record.as_mut().mark_from_hook() };
    }
    // SAFETY: the caller owns the record, which is whole.
    let size = unsafe { record.as_ref().bytes() };
    if !system.post(stage, lane, record, size, asks) {
        // SAFETY: the record was not taken, and is consumed by this call.
        unsafe { bounce(record, Undelivered::Shutdown) };
    }
}

#[cfg(test)]
mod tests {
    use crate::load::standing::{BacklogView, Turnover};
    use crate::*;

    struct Someone;
    impl Resident for Someone {
        type Extra = ();
        fn name() -> &'static str {
            "Someone"
        }
        fn ended(&mut self, _: Option<Box<()>>, _: Ending, _: &mut Cx<Self>) {}
        fn crashed(crash: Crash, _: &mut ControlCx<Self>) {
            panic!("{crash:?}");
        }
    }

    struct Letter;
    impl Envelope<Someone> for Letter {
        fn run(self, _: &mut Someone, _: &mut Cx<Someone>) {}
        fn bounce(self, why: Undelivered) {
            panic!("{why:?}");
        }
    }

    #[test]
    fn a_backlog_that_a_request_from_outside_adds_to_is_not_a_standing_one() {
        let config = Config { workers: 1, stages: 1, simulated: Some(0), ..Config::new() };
        let system = SystemCore::start(config).unwrap();
        let someone = system.spawn(Someone, StageChoice::At(0), Letter).ok().unwrap();
        let shared = &system.worker_table[0];
        let mut turnover = Turnover::default();
        let mut bound = |run| {
            shared.standing.look(
                &mut turnover,
                BacklogView { pressed: true, mail: 1_000, run, admitted: 0, now_ns: 0, source_ns: 0 },
            );
            shared.standing.raised(10)
        };
        assert_eq!([0, 1_000].map(&mut bound), [10, 3_000]);
        // The worker is not pressed.
        someone.send_request(Letter);
        assert_eq!(bound(2_000), 3_000);
        shared.pressed.store(true, std::sync::atomic::Ordering::SeqCst);
        someone.send_request(Letter);
        assert_eq!(bound(3_000), 1_500);
        system.run_until_idle();
        system.end(std::time::Duration::ZERO, &mut |_, _, _| {});
    }
}
