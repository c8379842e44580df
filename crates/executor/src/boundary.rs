//! What a worker does between two gulps: hands over what it sent, takes its mail, fires timers, gives stages away,
//! mutes and unmutes, and rests.
//!
//! # Order of messages (I2): the argument
//!
//! Let X on stage S send m1 and then m2 to Y on stage T. A *tenure* is a time in which one worker runs S.
//!
//! 1. *Within a tenure of worker A.* A's private route of T is constant between two flushes, so m1 and m2 go to the
//!    same log if no flush lies between, in order. A flush hands all logs over; m1 is then in the inbox or the queue
//!    of T's worker before m2 is written anywhere.
//! 2. *At a flush*, the log for worker B is appended under B's inbox lock. A stage leaves B only under that lock and
//!    raises the epoch under it; so if the epoch is the one of A's route, every record in the log is for a stage that
//!    B runs. If not, each record is posted by itself under the lock of the worker that runs its stage (checked under
//!    that lock).
//! 3. *When T moves* from B to C, B holds both inbox locks: it takes its own mail (so everything that was ever sent to
//!    T is in its queue), moves T's records, in order, to the end of C's inbox, and then sets the route. What is sent
//!    to T later goes to C's inbox behind them. An adopted stage has no records: its worker was idle with an empty
//!    inbox, checked under its lock.
//! 4. *When S moves* from A to C, A has flushed before; m1 is where T's worker will find it. If that is C itself, m1 is
//!    in C's inbox before S's records are (the same lock), and C takes its whole inbox at once: m1 is in C's queue
//!    before X runs there and sends m2. Where it is T that comes to the worker of S, m1 and T's records are in the inbox
//!    when the route is set, or its giver still holds the inbox's lock; so a worker that takes the route of now takes
//!    its inbox with it, before it runs anything ([`Worker::flush`]).
//! 5. Records put aside for a stage go to the front of the queue again before any later one of that stage is run.
//!
//! Mutual exclusion (I1): records of S are only in the queue of the worker that the route names, and change hands under
//! the locks of 3. No lost wake-up (I3): every hand-over to an inbox looks at the presence under the lock under which
//! it is lowered. No starvation (I4): a queue is first in, first out; mail is taken at the latest after `throughput`
//! messages or, for long handlers, one tick of the monitor; a stuck handler's worker gets a new thread.
//!
//! # Why one queue per worker, and not one per stage
//!
//! The first design had a queue per stage and a list of ready stages. Every hop of a ring over many stages then paid
//! for taking a stage, releasing it and finding the next. With one queue per worker, stages are only the grain of
//! stealing: a theft partitions the queue, which costs the victim about 2 ns per record looked at, per theft, and the
//! number of stages costs nothing (`playhouse bench --sweep-stages`).

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::address::Lane;
use crate::core::{Hold, Reason};
use crate::office::{Inbox, Office, Presence};
use crate::run::Stop;
use crate::segment::{COPY_BYTES_MAX, Chain, Segment};
use crate::signal::Signal;
use crate::system::Stealing;
use crate::timers::TimerOp;
use crate::worker::Worker;

/// A backlog that takes longer than this is worth a second worker: a wake-up costs about a tenth of it.
pub(crate) const WORTH_WAKING_NS: u64 = 50_000;
/// A worker with more bytes than this in its queue and inbox is overloaded ...
pub(crate) const OVERLOADED_BYTES: usize = 2 * 1024 * 1024;
/// ... or one whose backlog takes longer than this, if it is at least `OVERLOADED_RECORDS_MIN` long.
pub(crate) const OVERLOADED_NS: u64 = 10_000_000;
const OVERLOADED_RECORDS_MIN: u64 = 1024;
/// Boundaries between two looks at the clock ...
const CHECKUP_EVERY: u32 = 64;
/// ... or messages, if that is sooner.
const CHECKUP_EVERY_MESSAGES: u64 = 2048;
/// A typical record, for estimates.
const RECORD_BYTES: u64 = 32;
/// How often an idle worker glances at its mail flag before it does anything else.
const GLANCES: u32 = 64;
/// How long it watches that flag before it parks.
const WATCH: Duration = Duration::from_micros(40);

/// How full a worker with so many bytes of records is: 0 is below the low-water mark, 2 and more above the high one.
pub(crate) fn load_of(bytes: u64, average_ns: u64) -> u64 {
    let records = bytes / RECORD_BYTES;
    let by_time = if records >= OVERLOADED_RECORDS_MIN { records * average_ns * 2 / OVERLOADED_NS } else { 0 };
    by_time.max(bytes * 2 / OVERLOADED_BYTES as u64)
}

/// What [`Worker::turn`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Ran,
    Nothing,
    Detached,
}

impl Worker {
    /// The life of a worker thread.
    pub(crate) fn work(&self) {
        self.office().lock().thread = Some(std::thread::current());
        let bound = self.system.config.throughput;
        loop {
            match self.turn(bound) {
                // Whatever still waits then had its time in the drain.
                Turn::Ran if self.system.ending.load(Ordering::Relaxed) => break,
                Turn::Ran => {}
                Turn::Nothing => {
                    if !self.rest() {
                        break;
                    }
                }
                Turn::Detached => {
                    self.leave_detached();
                    return;
                }
            }
        }
        self.publish();
    }

    /// One boundary and one gulp.
    pub(crate) fn turn(&self, bound: u64) -> Turn {
        self.attend();
        if !self.advance() {
            return Turn::Nothing;
        }
        match self.gulp(bound) {
            Stop::Detached => Turn::Detached,
            Stop::Bound | Stop::Signal => Turn::Ran,
        }
    }

    /// Everything that is due between two gulps. In RUNTIME.
    pub(crate) fn attend(&self) {
        self.beat.store(self.beat.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.near_burst.set(0);
        self.flush();
        let signal = match self.tenure.signal.get() {
            0 => 0,
            _ => self.tenure.signal.clear(Signal::LANES | Signal::THIEF | Signal::TICK),
        };
        let lanes_due = signal & Signal::LANES != 0;
        if lanes_due && self.lanes_ran.replace(true) && self.has_normal_mail() {
            // Urgent mail that never ends must not keep the rest waiting for ever (I4): a gulp of that is due.
            self.lanes_ran.set(false);
        } else if lanes_due || self.office().mail.is_up() {
            self.take_mail();
        }
        // SAFETY: in RUNTIME; short borrow.
        let (due, muting, holding) = unsafe {
            let core = self.core();
            core.until_checkup -= 1;
            let due = core.until_checkup == 0
                || signal & Signal::TICK != 0
                || self.handled.get() as i64 >= CHECKUP_EVERY_MESSAGES as i64;
            (due, !core.mute_requests.is_empty(), core.holds_any())
        };
        if muting {
            self.mute();
        }
        if holding {
            self.unmute();
            self.weigh();
        }
        if due {
            self.checkup();
        }
        if signal & Signal::THIEF != 0 {
            self.give_to_thief();
        }
    }

    // -- handing over -------------------------------------------------------------------------------------------------

    /// Hands over what was written for other workers; then, if stages have moved, takes the route of now and the inbox
    /// that belongs to it. In RUNTIME.
    pub(crate) fn flush(&self) {
        if self.dirty.get() {
            self.dirty.set(false);
            // SAFETY: used by this thread only; `deliver_or_adopt` does not touch the list.
            let opened = std::mem::take(unsafe { &mut *self.opened.get() });
            for dest in &opened {
                let chain = self.logs[*dest as usize].seal();
                self.deliver_or_adopt(*dest, chain);
            }
            let mut opened = opened;
            opened.clear();
            // SAFETY: as above.
            unsafe { *self.opened.get() = opened };
        }
        if self.system.epoch.load(Ordering::Acquire) != self.route_epoch.get() {
            // A stage that is found to be this worker's may have its records, and what was just sent to it from here, in
            // the inbox still (its giver holds the lock until they are): they come into the queue before anything is run
            // that could send to it directly (point 4 of the proof).
            self.refresh_route();
            self.take_mail();
        }
    }

    /// Copies the route of now. Only when all logs to others are flushed.
    pub(crate) fn refresh_route(&self) {
        let epoch = self.system.epoch.load(Ordering::Acquire);
        // SAFETY: used by this thread only, in short borrows.
        let (route, near) = unsafe { (&mut *self.route.get(), &mut *self.near.get()) };
        near.clear();
        for (stage, worker) in self.system.route.iter().enumerate() {
            // Acquire: pairs with the Release of the worker that moved the stage.
            let worker = worker.load(Ordering::Acquire);
            route[stage] = worker;
            // SAFETY: in RUNTIME; short borrow.
            if worker == self.id && stage < self.system.config.stages && !unsafe { self.core() }.is_held(stage as u16) {
                near.push(stage as u16);
            }
        }
        self.route_epoch.set(epoch);
    }

    /// Hands `chain` to worker `dest`. In RUNTIME, also from within a handler.
    pub(crate) fn deliver(&self, dest: u16, chain: Chain) {
        self.deliver_with(dest, chain, false);
    }

    fn deliver_or_adopt(&self, dest: u16, chain: Chain) {
        self.deliver_with(dest, chain, true);
    }

    fn deliver_with(&self, dest: u16, chain: Chain, may_adopt: bool) {
        if chain.is_empty() {
            // SAFETY: no records.
            return unsafe { chain.recycle(Some(&self.pool)) };
        }
        let office = &self.system.offices[dest as usize];
        let mut inbox = office.lock();
        if self.system.epoch.load(Ordering::Acquire) != self.route_epoch.get() {
            drop(inbox);
            return self.reroute(chain);
        }
        if may_adopt
            && inbox.presence != Presence::Awake
            && self.system.config.stealing != Stealing::None
            && self.adopt(&inbox, dest, &chain)
        {
            drop(inbox);
            return self.enqueue(chain);
        }
        self.ledger.flushes.add(1);
        let lane = inbox.lane(Lane::Normal);
        let mut chain = chain;
        // A few records are copied where there is room; else the segment goes over as it is, warm in this core's cache.
        if !lane.is_empty() && chain.bytes <= COPY_BYTES_MAX && chain.first == chain.last && lane.room() >= chain.bytes
        {
            // SAFETY: whole records, which are moved.
            unsafe { lane.push_bytes(Segment::body(chain.first), chain.bytes, None) };
            chain.bytes = 0;
        } else {
            lane.append(chain.take());
        }
        self.system.arrived(office, inbox, dest);
        // SAFETY: as above: copied or taken.
        unsafe { chain.recycle(Some(&self.pool)) };
    }

    /// The route has changed: each record goes where its stage is now.
    #[cold]
    fn reroute(&self, mut chain: Chain) {
        // SAFETY: the chain owns whole records; each is handed over or bounced once.
        chain.for_each(|record| unsafe {
            self.system.post_or_bounce(Lane::Normal, record);
        });
        chain.bytes = 0;
        // SAFETY: all records were handed over.
        unsafe { chain.recycle(Some(&self.pool)) };
    }

    /// Takes over the stages of `chain` from their idle worker instead of waking it, if this worker has little to do:
    /// so actors that take turns end up on one worker. The caller holds the idle worker's inbox.
    fn adopt(&self, inbox: &Inbox, from: u16, chain: &Chain) -> bool {
        // SAFETY: in RUNTIME; short borrow.
        let average_ns = unsafe { self.core() }.pace.average_ns();
        let own_bytes = self.backlog_bytes() + chain.bytes as u64;
        if inbox.has_mail() || !inbox.adoptable || own_bytes / RECORD_BYTES * average_ns > WORTH_WAKING_NS {
            return false;
        }
        let mut pinned = false;
        // SAFETY: whole records.
        chain.for_each(|record| pinned |= self.system.is_pinned(unsafe { record.as_ref().stage() }));
        if pinned {
            return false;
        }
        let epoch = self.system.epoch.load(Ordering::Relaxed);
        // SAFETY: used by this thread only, in short borrows.
        let (route, near) = unsafe { (&mut *self.route.get(), &mut *self.near.get()) };
        chain.for_each(|record| {
            // SAFETY: whole records.
            let stage = unsafe { record.as_ref().stage() };
            if route[stage as usize] == from {
                route[stage as usize] = self.id;
                near.push(stage);
                self.system.route[stage as usize].store(self.id, Ordering::Release);
                self.ledger.adoptions.add(1);
            }
        });
        // Other routes may have changed under other locks meanwhile: then the next flush finds the epoch changed.
        if self.system.epoch.fetch_add(1, Ordering::AcqRel) == epoch && epoch == self.route_epoch.get() {
            self.route_epoch.set(epoch + 1);
        }
        true
    }

    // -- taking in ----------------------------------------------------------------------------------------------------

    /// Takes the whole inbox, and is awake. In RUNTIME.
    pub(crate) fn take_mail(&self) {
        let office = self.office();
        let mut inbox = office.lock();
        if std::mem::replace(&mut inbox.presence, Presence::Awake) == Presence::Parked {
            self.system.active_more();
        }
        let found = inbox.has_mail();
        let sent = inbox.sent_bytes();
        let lanes = self.empty_inbox(&mut inbox);
        let timer_ops = std::mem::take(&mut inbox.timer_ops);
        let returned = std::mem::take(&mut inbox.returned);
        drop(inbox);
        if !found {
            self.ledger.missed_gulps.add(1);
        }
        self.admit(lanes);
        self.note_mail(sent);
        for op in timer_ops {
            self.apply_timer(op);
        }
        for stage in returned {
            self.release(stage);
        }
    }

    /// Takes the lanes out of the own inbox, which the caller has locked.
    pub(crate) fn empty_inbox(&self, inbox: &mut MutexGuard<'_, Inbox>) -> [Chain; 3] {
        // Under the lock; what comes later raises it again.
        self.office().mail.lower();
        inbox.take_lanes()
    }

    /// Normal mail goes behind what is queued; urgent mail goes before it, and system mail before that.
    pub(crate) fn admit(&self, lanes: [Chain; 3]) {
        let [system, urgent, normal] = lanes;
        self.put_in_lane(Lane::Normal, normal);
        self.put_in_lane(Lane::Urgent, urgent);
        self.put_in_lane(Lane::System, system);
    }

    /// The last `bytes` of the queue were sent by others.
    pub(crate) fn note_mail(&self, bytes: u64) {
        let end = self.bytes_run() + self.backlog_bytes();
        // SAFETY: in RUNTIME; short borrow.
        unsafe { self.core() }.mail.note(end, bytes);
    }

    // -- looking around -------------------------------------------------------------------------------------------------

    /// Now and then: clock, timers, counters, overload, and whether a second worker is worth waking.
    #[cold]
    pub(crate) fn checkup(&self) {
        let now_ns = self.system.now_ns();
        self.publish();
        let records = self.backlog_bytes() / RECORD_BYTES;
        // SAFETY: in RUNTIME; short borrow.
        let (average_ns, timers, gives) = unsafe {
            let core = self.core();
            core.until_checkup = CHECKUP_EVERY;
            let handled = (core.handled_total.wrapping_sub(core.checked_handled) as i64).max(0) as u64;
            if handled > 0 && core.checked_ns > 0 {
                core.pace.note(handled, now_ns.saturating_sub(core.checked_ns));
            }
            core.checked_ns = now_ns;
            core.checked_handled = core.handled_total;
            (core.pace.average_ns(), !core.wheel.is_empty(), now_ns >= core.next_theft_ns)
        };
        if timers {
            self.fire_timers(now_ns);
        }
        let office = self.office();
        office.surplus.store(records as usize, Ordering::Relaxed);
        office.average_ns.store(average_ns, Ordering::Relaxed);
        self.weigh();
        let worth_waking = records > 1 && records * average_ns > WORTH_WAKING_NS;
        if worth_waking && gives && self.system.config.stealing != Stealing::None {
            self.system.wake_a_thief(self.id);
        }
    }

    /// Raises or lowers the overload flag.
    ///
    /// What counts is what others have sent here and what is put aside for muted stages; and only where that is more
    /// than what this worker's own actors have put before themselves. To slow others down would not help against the
    /// latter: a tree of a million actors that two workers build together is no flood. So memory is bounded by twice
    /// what the worker makes itself, or by the high-water mark.
    fn weigh(&self) {
        let office = self.office();
        let inbox_bytes = if office.mail.is_up() { office.lock().sent_bytes() } else { 0 };
        let queued = self.backlog_bytes();
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        let mail = core.mail.waiting(self.bytes_run()).min(queued);
        let muted = core.holds.values().filter(|hold| hold.reason != Reason::Detached);
        let sent = mail + inbox_bytes + muted.map(|hold| hold.bytes() as u64).sum::<u64>();
        let own = queued - mail;
        let load = load_of(sent, core.pace.average_ns());
        if load >= 2 && sent >= own {
            office.overloaded.store(true, Ordering::Relaxed);
        } else if (load == 0 || sent < own / 2) && office.overloaded.load(Ordering::Relaxed) {
            // SeqCst, here and in `mute`: either the muter sees the flag down, or it is found here.
            office.overloaded.store(false, Ordering::SeqCst);
            self.relieve(office);
        }
    }

    /// Below the low-water mark: those who were muted go on.
    fn relieve(&self, office: &Office) {
        // The lock orders this with a sender that saw the flag and is about to wait.
        drop(office.lock());
        office.relieved.notify_all();
        if office.muted_on_me.swap(false, Ordering::SeqCst) {
            for other in 0..self.system.offices.len() as u16 {
                if other != self.id {
                    self.system.rouse(other);
                }
            }
        }
    }

    /// Adds what was handled to the counters.
    pub(crate) fn publish(&self) {
        // May be negative for a while: records that were moved away are counted when the loop passes by their place.
        let handled = self.handled.replace(0);
        self.ledger.received.add(handled);
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        core.handled_total = core.handled_total.wrapping_add(handled);
        let beat = self.beat.load(Ordering::Relaxed);
        let counted = self.beat_counted.replace(beat);
        self.ledger.gulps.add(beat - counted);
    }

    pub(crate) fn apply_timer(&self, op: TimerOp) {
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        match op {
            TimerOp::Start { id, at_ns, task } => core.wheel.start(id, at_ns, task),
            TimerOp::Cancel { id } => {
                if core.wheel.cancel(id) {
                    self.system.open_less();
                }
            }
        }
    }

    /// Runs the timers that are due. Their tasks send messages; they run no handlers.
    pub(crate) fn fire_timers(&self, now_ns: u64) {
        // While this worker rested, its stages may have been adopted: they are sent to by the route of now (I1).
        self.flush();
        // SAFETY: in RUNTIME; short borrow.
        let due = unsafe { self.core() }.wheel.advance(now_ns);
        for (id, mut task) in due {
            self.ledger.timers_fired.add(1);
            match task() {
                Some(again) => {
                    let at_ns = self.system.now_ns() + again.as_nanos() as u64;
                    self.apply_timer(TimerOp::Start { id, at_ns, task });
                }
                None => self.system.open_less(),
            }
        }
        // This may be the last thing before the worker rests (I3).
        self.flush();
    }

    // -- putting aside ------------------------------------------------------------------------------------------------

    /// Puts the stages aside that sent to an overloaded worker (Pony's muting, by stages).
    #[cold]
    fn mute(&self) {
        // SAFETY: in RUNTIME; short borrow, no call back.
        let core = unsafe { self.core() };
        for (stage, receiver, target) in std::mem::take(&mut core.mute_requests) {
            if core.holds.contains_key(&stage) || self.route_of(stage) != Some(self.id) {
                continue;
            }
            if !self.stays_muted(receiver, target) {
                continue;
            }
            core.holds.insert(stage, Hold::new(Reason::Muted { receiver, target }));
            self.system.open_more();
            self.ledger.mutes.add(1);
        }
        self.holding.set(core.holds_any());
    }

    /// Leaves word with the receiver, then looks whether it is full: either it is seen relieved, or it will say so. Word
    /// is left anew each time, since the receiver may have been relieved and be full again.
    fn stays_muted(&self, receiver: u16, target: u16) -> bool {
        self.system.offices[receiver as usize].muted_on_me.store(true, Ordering::SeqCst);
        self.system.is_full(receiver, target)
    }

    /// Lets the stages go on whose receivers are no longer overloaded.
    fn unmute(&self) {
        // SAFETY: in RUNTIME; short borrow.
        for (stage, hold) in unsafe { &self.core().holds } {
            let long = hold.reason == Reason::Detached && hold.bytes() > OVERLOADED_BYTES;
            if long && !self.system.full[*stage as usize].swap(true, Ordering::SeqCst) {
                self.office().full_stages.fetch_add(1, Ordering::SeqCst);
            }
        }
        // SAFETY: in RUNTIME; short borrow.
        let ready: Vec<u16> = unsafe { self.core() }
            .holds
            .iter()
            .filter(|(_, hold)| match hold.reason {
                Reason::Muted { receiver, target } => !self.stays_muted(receiver, target),
                Reason::Detached => false,
            })
            .map(|(stage, _)| *stage)
            .collect();
        for stage in ready {
            self.release(stage);
        }
    }

    /// Nothing else in the system can run: one muted stage runs. False: none is muted here.
    fn unmute_one(&self) -> bool {
        // SAFETY: in RUNTIME; short borrow.
        let muted = unsafe { self.core() }
            .holds
            .iter()
            .find(|(_, hold)| hold.reason != Reason::Detached)
            .map(|(stage, _)| *stage);
        if let Some(stage) = muted {
            self.release(stage);
        }
        muted.is_some()
    }

    /// A stage goes on; what was put aside for it comes first. In RUNTIME.
    pub(crate) fn release(&self, stage: u16) {
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        let Some(hold) = core.holds.remove(&stage) else { return };
        self.holding.set(core.holds_any());
        if hold.reason == Reason::Detached && !self.system.is_pinned(stage) {
            // SAFETY: used by this thread only, in short borrows.
            unsafe { (*self.near.get()).push(stage) };
        }
        if hold.reason != Reason::Detached {
            self.system.open_less();
        }
        self.put_back(hold.lanes);
        if self.system.full[stage as usize].swap(false, Ordering::SeqCst) {
            self.office().full_stages.fetch_sub(1, Ordering::SeqCst);
            self.relieve(self.office());
        }
    }

    // -- resting --------------------------------------------------------------------------------------------------------

    /// Nothing to do: watch, steal, park. False: the system has ended. In RUNTIME.
    fn rest(&self) -> bool {
        self.publish();
        let office = self.office();
        if office.surplus.load(Ordering::Relaxed) != 0 {
            office.surplus.store(0, Ordering::Relaxed);
        }
        self.weigh();
        if !self.lower() {
            return true;
        }
        if self.system.ending.load(Ordering::Acquire) {
            self.sleep();
            return false;
        }
        // SAFETY: in RUNTIME; short borrow.
        let (due, holding) = unsafe {
            let core = self.core();
            core.checked_ns = 0;
            (core.wheel.next_ns(), core.holds_any())
        };
        // First without looking at a clock or at others: an answer to what was just sent may be here soon.
        let called = (0..GLANCES).any(|_| self.is_called());
        if !called {
            self.look_for_work();
            // With stages put aside it matters whether others sleep too: see `sleep`.
            if holding || !self.watch(due) {
                self.park(due);
            }
        }
        if office.mail.is_up() {
            self.take_mail();
        } else {
            self.raise();
        }
        // Its stages may have been adopted while it rested: nothing is sent before the route of now is known.
        self.flush();
        // SAFETY: in RUNTIME; short borrow.
        if !unsafe { self.core() }.wheel.is_empty() {
            self.fire_timers(self.system.now_ns());
        }
        true
    }

    /// From awake to idle, unless there is mail.
    pub(crate) fn lower(&self) -> bool {
        // SAFETY: in RUNTIME; short borrow.
        let adoptable = unsafe { !self.core().holds_any() };
        let mut inbox = self.office().lock();
        // The signal too: who rouses a worker raises it under this lock, whether the worker is awake or not.
        if inbox.has_mail() || self.tenure.signal.get() != 0 {
            return false;
        }
        inbox.presence = Presence::Idle;
        inbox.adoptable = adoptable;
        true
    }

    /// From idle to parked, unless it was called, or everybody sleeps while stages are muted here: then one goes on.
    pub(crate) fn sleep(&self) -> bool {
        let Some((adoptable, last)) = self.fall_asleep() else { return false };
        if adoptable || !last {
            return true;
        }
        self.raise();
        if self.unmute_one() {
            return false;
        }
        // Only detached stages are put aside: they come back by themselves.
        self.lower() && self.fall_asleep().is_some()
    }

    /// Whether its stages may be adopted, and whether it was the last that was awake. None: it was called.
    fn fall_asleep(&self) -> Option<(bool, bool)> {
        let mut inbox = self.office().lock();
        if inbox.presence != Presence::Idle || self.tenure.signal.get() != 0 {
            return None;
        }
        inbox.presence = Presence::Parked;
        let adoptable = inbox.adoptable;
        drop(inbox);
        Some((adoptable, self.system.active_less()))
    }

    /// Awake again, unless somebody saw to that.
    pub(crate) fn raise(&self) {
        let mut inbox = self.office().lock();
        if std::mem::replace(&mut inbox.presence, Presence::Awake) == Presence::Parked {
            self.system.active_more();
        }
    }

    fn is_called(&self) -> bool {
        self.office().mail.is_up() || self.tenure.signal.get() != 0 || self.system.ending.load(Ordering::Relaxed)
    }

    /// Watches the mail flag for a while. True: it is called, or a timer is due.
    fn watch(&self, due: Option<u64>) -> bool {
        let start = self.system.now_ns();
        loop {
            for _ in 0..64 {
                if self.is_called() {
                    return true;
                }
                std::hint::spin_loop();
            }
            let now = self.system.now_ns();
            if due.is_some_and(|due| due <= now) {
                return true;
            }
            if now - start > WATCH.as_nanos() as u64 {
                return false;
            }
        }
    }

    fn park(&self, due: Option<u64>) {
        if !self.sleep() {
            return;
        }
        self.system.parked.fetch_add(1, Ordering::Relaxed);
        let start = self.system.now_ns();
        loop {
            let now = self.system.now_ns();
            match due {
                Some(due) if due <= now => break,
                Some(due) => std::thread::park_timeout(Duration::from_nanos(due - now)),
                None => std::thread::park(),
            }
            if self.office().lock().presence == Presence::Awake || self.is_called() {
                break;
            }
        }
        self.system.parked.fetch_sub(1, Ordering::Relaxed);
        self.ledger.parked_ns.add(self.system.now_ns() - start);
    }
}
