//! The exchange between two gulps: a worker hands over its logs, takes its mail, fires timers and makes checkups.
//!
//! # Order of messages (I2): the argument
//!
//! Let X on stage S send m1 and then m2 to Y on stage T. An *ownership* is a period in which one worker runs S.
//!
//! 1. *Within an ownership of worker A.* Between two flushes, A's private route of T ([`crate::worker::route`]) changes
//!    only if T comes to A while all of A's logs are closed (see 4). If no flush lies between m1 and m2, they therefore
//!    go to the same log, in order. A flush hands all logs over. m1 is then in the inbox or the queue of T's worker
//!    before m2 is written anywhere.
//! 2. *At a flush*, A appends the log for worker B under B's inbox lock. A stage leaves B only under that lock, and B's
//!    inbox counts the departure under it. If the departures of B are those of A's route, every record in the log is
//!    therefore for a stage that B runs. If not, and if B does not run the stages of all records, A posts each record
//!    by itself. It does so under the lock of the worker that runs the record's stage (checked under that lock).
//! 3. *When T moves* from B to C, B holds both inbox locks. B takes its own mail, and everything that was ever sent to
//!    T is then in B's queue. B moves T's records, in order, to the end of C's inbox, and then sets the route. Messages
//!    that are sent to T later go to C's inbox behind them. An adopted stage has no records, because its worker was
//!    idle and had therefore no deferred starts. Its inbox was empty, which the adopter has checked under the inbox's
//!    lock.
//! 4. *When S moves* from A to C, A has flushed before. m1 is then in the inbox or the queue of T's worker. If that
//!    worker is C itself, m1 is in C's inbox before S's records are (the same lock), and C takes its whole inbox at
//!    once: m1 is in C's queue before X runs on C and sends m2. If S is adopted, its records come into C's queue
//!    without having been in C's inbox. C therefore takes its inbox, too, before it runs anything.
//!
//!    *When T moves to A*, m1 may still be in A's inbox. A writes m2 directly into its queue as soon as A's private
//!    route names A for T. A's route comes to name A in two cases:
//!
//!    - *T is among the arrivals of the inbox.* A takes them under the lock together with all mail. All that A has
//!      handed over before is therefore in the queue. If A's logs hold records, the entry changes only at the end of
//!      the next flush.
//!    - *A reads T's entry again at the end of a flush*, and T turns out to have come. m1 and T's records are in the
//!      inbox when the route is set, or T's giver still holds the inbox's lock. A therefore takes its inbox after that,
//!      before it runs anything ([`Worker::flush`]).
//!
//!    Other workers may adopt the stages of an idle worker. That worker learns this from its own departures when it is
//!    awake again, and flushes before it does anything else.
//!
//!    The tests of `route.rs` explore all interleavings of 3 workers and 3 stages with up to 2 moves of stages.
//! 5. Parked records of a stage go to the front of the queue again before any later record of that stage is run.
//!
//! Mutual exclusion (I1): records of S are only in the queue of the worker that the route names, and change hands under
//! the locks of point 3. No lost wake-up (I3): see `idle.rs`. No starvation (I4): a queue is first in, first out; mail
//! is taken at the latest after `throughput` messages or, for long handlers, one tick of the monitor; a stuck handler's
//! worker gets a new thread.
//!
//! # Why one queue per worker, and not one per stage
//!
//! The first design had a queue per stage and a list of ready stages. Every hop of a ring over many stages then paid
//! for taking a stage, releasing it and finding the next. With one queue per worker, stages are only the grain of
//! stealing. A steal partitions the queue, which costs the victim about 2 ns per record looked at. The number of stages
//! costs nothing (`playhouse bench --sweep-stages`), as long as there are two for each worker.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use crate::load::accounts::IN_OTHER_SYSTEM;
use crate::memory::raw_address::Lane;
use crate::memory::record::{HEAD_BYTES, Record};
use crate::memory::segment::Chain;
use crate::policy::config::Stealing;
use crate::policy::decisions::{self, Backlog, Idle};
use crate::sync::jitter::seam;
use crate::sync::worker_requests::Signal;
use crate::worker::Worker;
use crate::worker::inbox::{Inbox, Presence};
use crate::worker::run::GulpEnd;

/// The number of gulps between two checkups.
const CHECKUP_EVERY: u32 = 64;
/// The number of messages between two checkups, if that is sooner.
const CHECKUP_EVERY_MESSAGES: u64 = 2048;
/// The size of a typical record, for estimates.
pub(crate) const RECORD_BYTES: u64 = 32;
/// The result of [`Worker::turn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextWork {
    Ran,
    Nothing,
    Detached,
}

impl Worker {
    /// Runs the worker until its thread ends.
    pub(crate) fn work(&self) {
        self.lending.note_thread();
        self.shared().lock().thread = Some(std::thread::current());
        self.note_idle(false);
        loop {
            match self.turn(self.gulp_bound()) {
                // The records that still wait had their time in the drain.
                NextWork::Ran if self.system.shutdown.ending.load(Ordering::Relaxed) => break,
                NextWork::Ran => {}
                NextWork::Nothing => {
                    if !self.wait_for_work() {
                        break;
                    }
                }
                NextWork::Detached => {
                    self.leave_detached();
                    return;
                }
            }
        }
        if self.lending.is_lost() {
            return;
        }
        self.write_out();
        self.publish();
        self.system.wake_called(usize::MAX);
        // Release: pairs with the Acquire of the thread that removes what is left of this worker.
        self.over.store(true, Ordering::Release);
    }

    /// Makes one exchange and runs one gulp.
    pub(crate) fn turn(&self, bound: u64) -> NextWork {
        self.attend();
        if self.advance() { self.run_some(bound) } else { NextWork::Nothing }
    }

    /// Runs a gulp. The caller is at an exchange, and a record waits.
    #[inline(always)]
    pub(crate) fn run_some(&self, bound: u64) -> NextWork {
        let beat = self.beat.load(Ordering::Relaxed);
        let stop = if decisions::times_message(self.next_ns.get(), beat) && self.system.config.knows_kinds() {
            self.gulp_timed(bound)
        } else {
            self.gulp(bound)
        };
        if stop == GulpEnd::Detached { NextWork::Detached } else { NextWork::Ran }
    }

    /// Runs a gulp and times its first message.
    fn gulp_timed(&self, bound: u64) -> GulpEnd {
        // SAFETY: `turn` calls this only after `advance` has returned true, and the queue then holds a whole record.
        let kind = unsafe { self.next_record() }.thunk as usize;
        let start_ns = self.system.now_ns();
        let stop = self.gulp(1);
        if stop == GulpEnd::Detached {
            return stop;
        }
        let ns = self.system.now_ns() - start_ns;
        // SAFETY: in RUNTIME; short borrow.
        unsafe { self.core() }.kinds.note(kind, ns);
        // The first message may have taken longer than the estimate for all messages of this gulp.
        let left = (bound - 1).min(decisions::gulp_messages(ns, false, bound));
        if left > 0 && self.advance() { self.gulp(left) } else { stop }
    }

    /// Returns the next record of the queue.
    ///
    /// # Safety
    /// [`advance`](Worker::advance) has returned true, and no record was run or taken since.
    unsafe fn next_record(&self) -> &Record {
        // SAFETY: the queue is not empty, and `run_at` is then at a whole record.
        unsafe { &*self.run_at.get().cast::<Record>() }
    }

    /// Does everything that is due between two gulps. In RUNTIME.
    pub(crate) fn attend(&self) {
        self.beat.store(self.beat.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.near_burst.set(0);
        self.nested_since_ns.set(0);
        self.newborns.forget();
        seam(2_000);
        self.drop_cancelled();
        self.flush();
        self.system.wake_called(decisions::WAKES);
        self.write_out_in_time();
        // SAFETY: in RUNTIME; short borrow.
        if unsafe { !self.core().deferred_starts.is_empty() } {
            self.release_deferred_starts();
        }
        let signal = match self.ownership.signal.get() {
            0 => 0,
            _ => self.ownership.signal.clear(Signal::LANES | Signal::THIEF | Signal::TICK | Signal::GO_ON),
        };
        let lanes_due = signal & Signal::LANES != 0;
        // Urgent mail that never ends must not keep the rest waiting for ever (I4). Between two portions of it, a gulp
        // of the rest is due.
        if lanes_due && self.lanes_ran.replace(true) && self.advance() {
            if self.has_mail_of_lanes() {
                self.take_mail_but_urgent();
            } else {
                self.lanes_ran.set(false);
            }
        } else if lanes_due || self.shared().mail.is_up() {
            self.take_mail();
        }
        // SAFETY: in RUNTIME; short borrow.
        let (due, muting, holding) = unsafe {
            let core = self.core();
            core.until_checkup -= 1;
            let due = core.until_checkup == 0
                || signal & Signal::TICK != 0
                || self.handled.get() as i64 >= CHECKUP_EVERY_MESSAGES as i64;
            let muting =
                !core.mute_requests.is_empty() || !core.pauses.is_empty() || self.accounts.borrow().are_wanted();
            (due, muting, core.has_parked())
        };
        if muting {
            // Parked records are in the order of the queue.
            self.release_all_deferred_starts();
            self.mute();
        }
        if holding || muting {
            self.review_parked(signal & Signal::GO_ON != 0);
        }
        if due {
            self.checkup();
        } else if self.handled.get().wrapping_sub(self.looked.get()) as i64 >= self.look_messages.get() as i64 {
            self.look_at_clock();
            if self.shared().muted_on_me.load(Ordering::Relaxed) {
                // The workers of muted sources may have nothing else to do.
                self.weigh();
                self.call_sources();
            }
        }
        self.look_at_next();
        if signal & Signal::THIEF != 0 {
            self.give_to_thief();
        }
        if let Some(idle) = self.system.idle.workers.any() {
            self.share_with(idle);
        }
    }

    /// Returns the largest number of messages in the next gulp.
    fn gulp_bound(&self) -> u64 {
        let some_idle = self.system.idle.workers.any().is_some();
        decisions::gulp_messages(self.next_ns.get(), some_idle, self.system.config.throughput)
    }

    // -- handing over -------------------------------------------------------------------------------------------------

    /// Hands over the records that were written for other workers. If stages have moved, updates the route and then
    /// takes the inbox that belongs to it. In RUNTIME.
    pub(crate) fn flush(&self) {
        let mut adopted = false;
        if self.dirty.get() {
            self.dirty.set(false);
            // SAFETY: used by this thread only; `deliver_or_adopt` does not touch the list.
            let mut opened = std::mem::take(unsafe { &mut *self.opened.get() });
            for dest in opened.drain(..) {
                let chain = self.logs[dest as usize].seal();
                adopted |= self.deliver_or_adopt(dest, chain);
            }
            // SAFETY: used by this thread only, which holds no other reference to the list.
            unsafe { *self.opened.get() = opened };
        }
        if self.stale.get() {
            // For a stage that turns out to be this worker's, the inbox may still hold its records and the messages
            // just sent to it by this worker. Its giver holds the lock until they are there. The mail therefore comes
            // into the queue before any record runs that could send to the stage directly (point 4 of the proof).
            self.update_route();
            seam(100);
            self.take_mail();
        } else if adopted {
            // Messages that an adopted stage has sent to this worker, from its former worker, come before its later
            // ones (point 4).
            self.take_mail();
        }
    }

    /// Updates the private route. The caller has flushed all logs to other workers.
    #[cold]
    fn update_route(&self) {
        self.stale.set(false);
        // SAFETY: used by this thread only, in short borrows.
        let route = unsafe { &mut *self.route.get() };
        // Acquire: pairs with the Release of the worker that moved the stage.
        route.update(|stage| self.system.routing.route[usize::from(stage)].load(Ordering::Acquire));
        self.note_own_stages();
    }

    /// Notes the stages for actors that this worker runs, because children go to these. In RUNTIME.
    pub(crate) fn note_own_stages(&self) {
        // SAFETY: used by this thread only, in short borrows; in RUNTIME.
        let (route, near, core) = unsafe { (&*self.route.get(), &mut *self.near.get(), self.core()) };
        near.clear();
        near.extend(route.own(self.system.config.stages).filter(|stage| !core.is_parked(*stage)));
        let mut accounts = self.accounts.borrow_mut();
        if accounts.are_kept() {
            // SAFETY: the stages of the system.
            let left = |stage: &u16| unsafe { route.worker_of(*stage) } != self.id;
            (0..self.stages).filter(left).for_each(|stage| accounts.forget(stage));
        }
    }

    /// Notes the departures in this worker's inbox, which is locked. Other workers may have adopted stages while this
    /// worker was idle.
    pub(crate) fn note_departures(&self, inbox: &Inbox) {
        // SAFETY: used by this thread only, in short borrows.
        let route = unsafe { &mut *self.route.get() };
        if !route.is_current(self.id, inbox.departures) {
            route.note_departures(self.id, inbox.departures);
            self.stale.set(true);
        }
    }

    /// Notes stages that have come. All records that came with them are in the queue, or the caller puts them there
    /// before it runs a record.
    pub(crate) fn note_arrivals(&self, arrivals: &[u16]) {
        if arrivals.is_empty() {
            return;
        }
        // SAFETY: used by this thread only, in short borrows.
        let route = unsafe { &mut *self.route.get() };
        if self.dirty.get() {
            // Logs may still hold messages for these stages. Such messages come to this worker through the inbox.
            route.note_arrivals(arrivals);
            self.stale.set(true);
        } else {
            route.arrive(arrivals);
            self.note_own_stages();
        }
    }

    // -- taking in ----------------------------------------------------------------------------------------------------

    /// Takes the whole inbox and sets the presence to awake. In RUNTIME.
    pub(crate) fn take_mail(&self) {
        self.take_from_inbox(|inbox| self.empty_inbox(inbox));
    }

    /// Takes the inbox, except for the urgent mail. In RUNTIME.
    fn take_mail_but_urgent(&self) {
        self.take_from_inbox(|inbox| {
            let mail = &self.shared().mail;
            mail.lower();
            inbox.restock(&self.pool);
            let lanes = inbox.take_lanes_but_urgent();
            if inbox.has_mail() {
                mail.raise(inbox.first_segment());
            }
            lanes
        });
    }

    fn take_from_inbox(&self, take_lanes: impl FnOnce(&mut MutexGuard<'_, Inbox>) -> [Chain; 3]) {
        let shared = self.shared();
        shared.mail.fetch();
        let mut inbox = shared.lock();
        if std::mem::replace(&mut inbox.presence, Presence::Awake) == Presence::Parked {
            self.system.idle.workers.remove(self.id, Idle::Parked);
            self.system.active_more();
        }
        let found = inbox.has_mail();
        let sent = inbox.sent_bytes();
        let (mail, own) = self.queued_mail();
        inbox.note_queued(mail + sent, own);
        let timer_ops = std::mem::take(&mut inbox.timer_ops);
        let returned = std::mem::take(&mut inbox.returned);
        let arrivals = std::mem::take(&mut inbox.arrivals);
        let lanes = take_lanes(&mut inbox);
        self.note_departures(&inbox);
        drop(inbox);
        self.note_arrivals(&arrivals);
        if !found {
            self.ledger.missed_gulps.add(1);
        }
        self.admit(lanes);
        self.note_mail(sent);
        for op in timer_ops {
            self.apply_timer(op);
        }
        for (stage, reason) in returned {
            // SAFETY: in RUNTIME; short borrow.
            if unsafe { self.core() }.parked.get(&stage).is_some_and(|parked| parked.reason == reason) {
                self.release(stage);
            }
        }
    }

    /// Takes the lanes out of the own inbox, which the caller has locked.
    pub(crate) fn empty_inbox(&self, inbox: &mut MutexGuard<'_, Inbox>) -> [Chain; 3] {
        // Under the lock; mail that comes later raises the flag again.
        self.shared().mail.lower();
        inbox.restock(&self.pool);
        inbox.take_lanes()
    }

    /// Puts normal mail behind the queue, urgent mail before it, and system mail before that.
    pub(crate) fn admit(&self, lanes: [Chain; 3]) {
        let [system, urgent, normal] = lanes;
        self.put_in_lane(Lane::Normal, normal);
        self.put_in_lane(Lane::Urgent, urgent);
        self.put_in_lane(Lane::System, system);
    }

    /// Notes that others sent the last `bytes` of the queue.
    pub(crate) fn note_mail(&self, bytes: u64) {
        let end = self.bytes_run() + self.backlog_bytes();
        // SAFETY: in RUNTIME; short borrow.
        unsafe { self.core() }.mail.note(end, bytes);
    }

    // -- checkups
    // --------------------------------------------------------------------------------------------------------

    /// Makes a checkup: reads the clock, fires timers, publishes counters, ends a trial, and measures the overload.
    #[cold]
    pub(crate) fn checkup(&self) {
        self.check_fence();
        let now_ns = self.look_at_clock();
        self.publish();
        // SAFETY: in RUNTIME; short borrow.
        let (slow_average_ns, timers) = unsafe {
            let core = self.core();
            core.until_checkup = CHECKUP_EVERY;
            let is_pressed =
                |worker| worker != IN_OTHER_SYSTEM && self.system.worker_table[usize::from(worker)].is_pressed();
            self.accounts.borrow_mut().close_unused(is_pressed);
            self.note_parked_stages(core);
            (core.slow_pace.average_ns(), !core.wheel.is_empty())
        };
        if timers {
            self.fire_timers(now_ns);
        }
        self.poll_now_and_then(now_ns);
        self.note_sample();
        self.count_queue();
        let shared = self.shared();
        shared.average_ns.store(slow_average_ns, Ordering::Relaxed);
        self.weigh();
        self.call_sources();
    }

    /// Reads the clock and measures the time of messages. Returns the time.
    pub(crate) fn look_at_clock(&self) -> u64 {
        let now_ns = self.system.now_ns();
        let handled = (self.handled.get().wrapping_sub(self.looked.replace(self.handled.get())) as i64).max(0) as u64;
        let waits = self.waiting_bytes() > RECORD_BYTES;
        let bytes_run = self.bytes_run();
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        let ns = now_ns.saturating_sub(core.checked_ns);
        let bytes = bytes_run.saturating_sub(std::mem::replace(&mut core.checked_bytes, bytes_run));
        if handled > 0 && core.checked_ns > 0 {
            // The former estimate counts half, because the size changes with the kinds of messages that wait.
            self.record_bytes.set(((self.record_bytes.get() + bytes / handled) / 2).max(HEAD_BYTES as u64));
            core.pace.note(handled, ns);
            core.slow_pace.note(handled, ns);
            self.ledger.busy_ns.add(ns);
        }
        core.checked_ns = now_ns;
        core.loaded_since_ns = if waits { core.loaded_since_ns.or(Some(now_ns)) } else { None };
        let average_ns = core.pace.average_ns();
        self.average_ns.set(average_ns);
        // After an idle time, the time of the next messages is unknown. The distance between looks therefore grows from
        // a small number.
        self.look_messages.set(decisions::look_messages(average_ns).min(self.look_messages.get() * 4));
        self.shared().shown.handled.store(self.handled_in_all(), Ordering::Relaxed);
        self.look_at_trial(now_ns);
        now_ns
    }

    /// Estimates the work that waits.
    pub(crate) fn backlog(&self) -> Backlog {
        let ns = self.waiting_messages() * self.next_ns.get();
        Backlog { ns, is_short: self.has_short_work() && !self.is_apart(self.id) }
    }

    /// Estimates the number of messages that wait.
    fn waiting_messages(&self) -> u64 {
        self.waiting_bytes() / self.record_bytes.get()
    }

    /// Estimates the nanoseconds of a message, by its kind and by the average of all messages. Returns `None` for an
    /// unknown kind.
    pub(super) fn expected_ns(&self, record: &Record) -> Option<u64> {
        // SAFETY: in RUNTIME; short borrow.
        let weight = unsafe { self.core() }.kinds.weight(record.thunk as usize)?;
        Some((weight * self.average_ns.get() as f64) as u64)
    }

    /// Estimates the time of the next messages, which may take longer than the earlier ones. Shows the backlog to
    /// thieves.
    fn look_at_next(&self) {
        let average_ns = self.average_ns.get();
        let next_ns = if self.system.config.knows_kinds() && self.advance() {
            // SAFETY: `advance` returned true, and the queue is therefore not empty.
            self.expected_ns(unsafe { self.next_record() })
        } else {
            None
        };
        self.next_ns.set(next_ns.unwrap_or(0).max(average_ns));
        let shown = &self.shared().shown;
        shown.surplus.store(self.waiting_messages(), Ordering::Relaxed);
        // A worker that keeps its work to itself shows 0.
        let average_ns = if self.keeps_short_work() { 0 } else { self.next_ns.get() };
        shown.average_ns.store(average_ns, Ordering::Relaxed);
    }

    /// Gives a part of the queue to an idle worker, if that is worth the hand-over. In RUNTIME, between two gulps.
    fn share_with(&self, idle: Idle) {
        let system = &self.system;
        let waiting = self.backlog();
        if self.keeps_short_work() {
            return;
        }
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        let lasts_ns = core.loaded_since_ns.map_or(0, |since_ns| core.checked_ns.saturating_sub(since_ns));
        if usize::from(self.id) >= system.config.workers
            || system.config.stealing == Stealing::None
            // No part is larger than half.
            || !decisions::is_worth_sharing(waiting, 0.5, lasts_ns, idle, system.idle.wake_ns)
        {
            return;
        }
        let now_ns = system.now_ns();
        if !self.may_offer(now_ns) {
            return;
        }
        // A watching worker may be idle for a moment only, while a parked one lacks work.
        for idle in [Idle::Watching, Idle::Parked] {
            if idle == Idle::Parked && self.are_cores_busy() {
                return;
            }
            if let Some(worker) = system.idle.workers.first_but(self.id, idle)
                && let part = self.part_from(self.id, worker, waiting, now_ns)
                && decisions::is_worth_sharing(waiting, part, lasts_ns, idle, system.idle.wake_ns)
            {
                core.loaded_since_ns = None;
                return self.offer(worker, idle, now_ns, lasts_ns);
            }
        }
    }

    /// Returns the number of messages that this worker, and those before it, have handled since the system began.
    pub(crate) fn handled_in_all(&self) -> u64 {
        self.handled_before.wrapping_add(self.ledger.received.get()).wrapping_add(self.handled.get())
    }

    /// Adds the handled messages to the counters.
    pub(crate) fn publish(&self) {
        // May be negative for a while: records that were moved away are counted when the loop passes by their
        // positions.
        let handled = self.handled.replace(0);
        self.ledger.received.add(handled);
        self.looked.set(self.looked.get().wrapping_sub(handled));
        let beat = self.beat.load(Ordering::Relaxed);
        let counted = self.beat_counted.replace(beat);
        self.ledger.gulps.add(beat - counted);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::RECORD_BYTES;
    use crate::memory::segment::SEGMENT_BYTES;
    use crate::*;

    struct Sender(Address<Receiver>);
    #[derive(Default)]
    struct Receiver(Arc<Mutex<Vec<u8>>>);

    impl Resident for Sender {
        type Extra = ();
        fn name() -> &'static str {
            "Sender"
        }
        fn ended(&mut self, _: Option<Box<()>>, _: Ending, _: &mut Cx<Self>) {}
        fn crashed(crash: Crash, _: &mut ControlCx<Self>) {
            panic!("{crash:?}");
        }
    }
    impl Resident for Receiver {
        type Extra = ();
        fn name() -> &'static str {
            "Receiver"
        }
        fn ended(&mut self, _: Option<Box<()>>, _: Ending, _: &mut Cx<Self>) {}
        fn crashed(crash: Crash, _: &mut ControlCx<Self>) {
            panic!("{crash:?}");
        }
    }

    /// A number that `Sender` sends on.
    struct Number(u8);
    impl Envelope<Sender> for Number {
        fn run(self, sender: &mut Sender, _: &mut Cx<Sender>) {
            sender.0.send(self);
        }
        fn bounce(self, why: Undelivered) {
            panic!("{why:?}");
        }
    }
    impl Envelope<Receiver> for Number {
        fn run(self, receiver: &mut Receiver, _: &mut Cx<Receiver>) {
            receiver.0.lock().unwrap().push(self.0);
        }
        fn bounce(self, why: Undelivered) {
            panic!("{why:?}");
        }
    }

    #[test]
    fn a_sender_of_single_records_brings_no_segment_with_each() {
        let config = Config { workers: 1, stages: 1, simulated: Some(0), ..Config::new() };
        let system = SystemCore::start(config).unwrap();
        let worker = system.threads.posts[0].lock().unwrap().clone().unwrap();
        let got = Arc::default();
        let receiver = system.spawn(Receiver(Arc::clone(&got)), StageChoice::At(0), Number(0)).ok().unwrap();
        for number in 1..=20 {
            receiver.send(Number(number));
            system.run_until_idle();
        }
        assert_eq!(*got.lock().unwrap(), (0..=20).collect::<Vec<u8>>());
        assert!(worker.pool.len() <= 2, "{} segments", worker.pool.len());
        system.end(std::time::Duration::ZERO, &mut |_, _, _| {});
    }

    #[test]
    fn small_hand_overs_to_a_worker_with_a_long_queue_share_segments() {
        /// 2 KiB of records each, which is more than is copied behind a short queue.
        const HAND_OVERS: usize = 200;
        for takes in [false, true] {
            let stealing = Stealing::None;
            let config = Config { workers: 2, stages: 2, stealing, simulated: Some(0), ..Config::new() };
            let system = SystemCore::start(config).unwrap();
            let [near, far] = [0, 1].map(|id: usize| system.threads.posts[id].lock().unwrap().clone().unwrap());
            let got = Arc::default();
            let receiver = system.spawn(Receiver(Arc::clone(&got)), StageChoice::At(0), Number(0)).ok().unwrap();
            let sender = system.spawn(Sender(receiver), StageChoice::At(1), Number(1)).ok().unwrap();
            system.run_until_idle();
            for _ in 0..HAND_OVERS {
                (0..2048 / RECORD_BYTES).for_each(|_| sender.send(Number(2)));
                far.enter(|| {
                    far.turn(u64::MAX);
                    far.flush();
                });
                if takes {
                    near.enter(|| near.take_mail());
                }
            }
            let mut segment =
                if takes { near.logs[0].first.get().cast_const() } else { near.shared().lock().first_segment() };
            let mut segments = 0;
            while !segment.is_null() {
                segments += 1;
                // SAFETY: no thread runs the worker during this loop.
                segment = unsafe { (*segment).next };
            }
            let waiting = HAND_OVERS * 2048;
            assert!(segments <= waiting / (SEGMENT_BYTES / 2) + 34, "{segments} segments, takes: {takes}");
            system.run_until_idle();
            assert_eq!(got.lock().unwrap().len(), HAND_OVERS * (2048 / RECORD_BYTES as usize) + 2);
            system.end(std::time::Duration::ZERO, &mut |_, _, _| {});
        }
    }

    #[test]
    fn messages_of_an_adopted_stage_come_first_without_a_flag() {
        let config = Config { workers: 2, stages: 2, simulated: Some(0), ..Config::new() };
        let system = SystemCore::start(config).unwrap();
        let [near, far] = [0, 1].map(|id: usize| system.threads.posts[id].lock().unwrap().clone().unwrap());
        let got = Arc::default();
        let spawn = |stage| StageChoice::At(stage);
        let receiver = system.spawn(Receiver(Arc::clone(&got)), spawn(0), Number(0)).ok().unwrap();
        let sender = system.spawn(Sender(receiver), spawn(1), Number(1)).ok().unwrap();
        near.enter(|| near.turn(1));
        // Worker `far` runs the sender, hands over its messages, and becomes idle.
        far.enter(|| {
            far.turn(1);
            far.flush();
            assert!(!far.advance() && far.lower());
        });
        near.enter(|| {
            // The flag is raised after the mail is there; in this test, it is not raised yet.
            near.shared().mail.lower();
            near.call_user(|| sender.send(Number(2)));
            near.flush();
            assert_eq!(system.counters()[0].adoptions, 1);
            near.gulp(1);
        });
        system.run_until_idle();
        assert_eq!(*got.lock().unwrap(), [0, 1, 2]);
        system.end(std::time::Duration::ZERO, &mut |_, _, _| {});
    }

    #[test]
    fn no_child_is_put_on_an_adopted_stage_for_links() {
        let config = Config { workers: 2, stages: 2, links: 2, simulated: Some(0), ..Config::new() };
        let system = SystemCore::start(config).unwrap();
        let [far, near] = [0, 1].map(|id: usize| system.threads.posts[id].lock().unwrap().clone().unwrap());
        // Worker `far` runs stage 2, which is for links.
        let stub = system.spawn_away::<Receiver>(system.link_stage(0), (), None);
        let sender = system.spawn(Sender(stub), StageChoice::At(1), Number(0)).ok().unwrap();
        far.enter(|| assert!(!far.advance() && far.lower()));
        near.enter(|| {
            near.turn(1);
            near.call_user(|| sender.send(Number(1)));
            near.attend();
            assert_eq!(system.counters()[1].adoptions, 1);
            assert!((0..8).all(|_| near.near_stage() == Some(1)));
        });
        system.end(std::time::Duration::ZERO, &mut |_, _, _| {});
    }
}
