//! What a worker does between two gulps: hands over what it sent, takes its mail, fires timers, looks around.
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
//!    to T later goes to C's inbox behind them. An adopted stage has no records: its worker was idle (so nothing was put off there) with an empty
//!    inbox, checked under its lock.
//! 4. *When S moves* from A to C, A has flushed before; m1 is where T's worker will find it. If that is C itself, m1 is
//!    in C's inbox before S's records are (the same lock), and C takes its whole inbox at once: m1 is in C's queue
//!    before X runs there and sends m2. Where S is adopted, its records come into C's queue without having been in C's
//!    inbox; so C takes that, too, before it runs anything. Where it is T that comes to the worker of S, m1 and T's records
//!    are in the inbox when the route is set, or its giver still holds the inbox's lock; so a worker that takes the route of
//!    now takes its inbox with it, before it runs anything ([`Worker::flush`]).
//! 5. Records put aside for a stage go to the front of the queue again before any later one of that stage is run.
//!
//! Mutual exclusion (I1): records of S are only in the queue of the worker that the route names, and change hands under
//! the locks of 3. No lost wake-up (I3): see `rest.rs`. No starvation (I4): a queue is first in, first out; mail is taken at the latest after `throughput`
//! messages or, for long handlers, one tick of the monitor; a stuck handler's worker gets a new thread.
//!
//! # Why one queue per worker, and not one per stage
//!
//! The first design had a queue per stage and a list of ready stages. Every hop of a ring over many stages then paid
//! for taking a stage, releasing it and finding the next. With one queue per worker, stages are only the grain of
//! stealing: a theft partitions the queue, which costs the victim about 2 ns per record looked at, per theft, and the
//! number of stages costs nothing (`playhouse bench --sweep-stages`), as long as there are two for each worker.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use crate::address::Lane;
use crate::config::Stealing;
use crate::jitter::seam;
use crate::office::{Inbox, Presence};
use crate::run::Stop;
use crate::segment::{COPY_BYTES_MAX, Chain, Segment};
use crate::signal::Signal;
use crate::timers::TimerOp;
use crate::worker::Worker;

/// A backlog that takes longer than this is worth a second worker: a wake-up costs about a tenth of it.
pub(crate) const WORTH_WAKING_NS: u64 = 50_000;
/// So is a backlog that takes longer than this, a hand-over between two cores there and back, ...
const WORTH_SHARING_NS: u64 = 200;
/// ... where it is there at every look for so long: a hundred tokens that go round for ever are little at any moment. (With
/// less in the queue, two workers may be slower than one: what goes to and fro between them costs more than they save.)
const LASTING_NS: u64 = 1_000_000;
/// Boundaries between two looks at the clock ...
const CHECKUP_EVERY: u32 = 64;
/// ... or messages, if that is sooner.
const CHECKUP_EVERY_MESSAGES: u64 = 2048;
/// A typical record, for estimates.
pub(crate) const RECORD_BYTES: u64 = 32;
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
        self.write_out();
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
        seam(2_000);
        self.flush();
        self.write_out_in_time();
        // SAFETY: in RUNTIME; short borrow.
        if unsafe { !self.core().starts.is_empty() } {
            self.let_starts_go_on();
        }
        let signal = match self.tenure.signal.get() {
            0 => 0,
            _ => self.tenure.signal.clear(Signal::LANES | Signal::THIEF | Signal::TICK | Signal::GO_ON),
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
            (due, !core.mute_requests.is_empty() || !core.pauses.is_empty(), core.holds_any())
        };
        if muting {
            // What is put aside is in the order of the queue.
            self.let_all_starts_go_on();
            self.mute();
        }
        if holding || muting {
            self.see_to_holds(signal & Signal::GO_ON != 0);
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
        let mut adopted = false;
        if self.dirty.get() {
            self.dirty.set(false);
            // SAFETY: used by this thread only; `deliver_or_adopt` does not touch the list.
            let mut opened = std::mem::take(unsafe { &mut *self.opened.get() });
            for dest in opened.drain(..) {
                let chain = self.logs[dest as usize].seal();
                adopted |= self.deliver_or_adopt(dest, chain);
            }
            // SAFETY: as above.
            unsafe { *self.opened.get() = opened };
        }
        if self.system.epoch.load(Ordering::Acquire) != self.route_epoch.get() {
            // A stage that is found to be this worker's may have its records, and what was just sent to it from here, in
            // the inbox still (its giver holds the lock until they are): they come into the queue before anything is run
            // that could send to it directly (point 4 of the proof).
            self.refresh_route();
            seam(100);
            self.take_mail();
        } else if adopted {
            // What an adopted stage has sent here, from where it was, comes before what it sends from now on (point 4).
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

    /// True: the receivers' stages were adopted, and the mail has to be taken before anything is run.
    fn deliver_or_adopt(&self, dest: u16, chain: Chain) -> bool {
        self.deliver_with(dest, chain, true)
    }

    fn deliver_with(&self, dest: u16, chain: Chain, may_adopt: bool) -> bool {
        if chain.is_empty() {
            // SAFETY: no records.
            unsafe { chain.recycle(Some(&self.pool)) };
            return false;
        }
        let office = &self.system.offices[dest as usize];
        let mut inbox = office.lock();
        if self.system.epoch.load(Ordering::Acquire) != self.route_epoch.get() {
            drop(inbox);
            self.reroute(chain);
            return false;
        }
        if may_adopt
            && inbox.presence != Presence::Awake
            && self.system.config.stealing != Stealing::None
            && self.adopt(&inbox, dest, &chain)
        {
            drop(inbox);
            self.enqueue(chain);
            return true;
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
        false
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
        let own_bytes = self.waiting_bytes() + chain.bytes as u64;
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
        office.mail.fetch();
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
        for (stage, reason) in returned {
            // SAFETY: in RUNTIME; short borrow.
            if unsafe { self.core() }.holds.get(&stage).is_some_and(|hold| hold.reason == reason) {
                self.release(stage);
            }
        }
    }

    /// Takes the lanes out of the own inbox, which the caller has locked.
    pub(crate) fn empty_inbox(&self, inbox: &mut MutexGuard<'_, Inbox>) -> [Chain; 3] {
        // Under the lock; what comes later raises it again.
        self.office().mail.lower();
        inbox.restock(&self.pool);
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
        let records = self.waiting_bytes() / RECORD_BYTES;
        // SAFETY: in RUNTIME; short borrow.
        let (average_ns, timers) = unsafe {
            let core = self.core();
            core.until_checkup = CHECKUP_EVERY;
            let handled = (core.handled_total.wrapping_sub(core.checked_handled) as i64).max(0) as u64;
            if handled > 0 && core.checked_ns > 0 {
                core.pace.note(handled, now_ns.saturating_sub(core.checked_ns));
                self.ledger.busy_ns.add(now_ns.saturating_sub(core.checked_ns));
            }
            core.checked_ns = now_ns;
            core.checked_handled = core.handled_total;
            (core.pace.average_ns(), !core.wheel.is_empty())
        };
        if timers {
            self.fire_timers(now_ns);
        }
        self.poll_now_and_then(now_ns);
        self.note_sample();
        self.count_queue();
        let office = self.office();
        office.surplus.store(records as usize, Ordering::Relaxed);
        office.average_ns.store(average_ns, Ordering::Relaxed);
        self.weigh();
        let gives = now_ns >= office.next_theft_ns.load(Ordering::Relaxed);
        if self.is_worth_waking(records, average_ns, now_ns) && gives && self.system.config.stealing != Stealing::None {
            self.system.wake_a_thief(self.id);
        }
    }

    /// Whether a second worker should help with the queue of this one.
    fn is_worth_waking(&self, records: u64, average_ns: u64, now_ns: u64) -> bool {
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        let backlog_ns = if records > 1 { records * average_ns } else { 0 };
        if backlog_ns <= WORTH_SHARING_NS {
            core.loaded_since_ns = None;
            return false;
        }
        let since_ns = *core.loaded_since_ns.get_or_insert(now_ns);
        let lasts = now_ns.saturating_sub(since_ns) > LASTING_NS;
        if lasts {
            core.loaded_since_ns = Some(now_ns);
        }
        lasts || backlog_ns > WORTH_WAKING_NS
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
        seam(50);
        // This may be the last thing before the worker rests (I3).
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

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

    /// The sender sends it on.
    struct Number(u8);
    impl Envelope<Sender> for Number {
        fn run(self, sender: &mut Sender, cx: Cx<Sender>) -> Cx<Sender> {
            sender.0.send(self);
            cx
        }
        fn bounce(self, why: Undelivered) {
            panic!("{why:?}");
        }
    }
    impl Envelope<Receiver> for Number {
        fn run(self, receiver: &mut Receiver, cx: Cx<Receiver>) -> Cx<Receiver> {
            receiver.0.lock().unwrap().push(self.0);
            cx
        }
        fn bounce(self, why: Undelivered) {
            panic!("{why:?}");
        }
    }

    #[test]
    fn who_brings_records_one_at_a_time_brings_no_segment_with_each() {
        let config = Config { workers: 1, stages: 1, simulated: Some(0), ..Config::new() };
        let system = SystemCore::start(config).unwrap();
        let worker = system.posts[0].lock().unwrap().clone().unwrap();
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
    fn what_an_adopted_stage_has_sent_comes_first_though_no_flag_tells_of_it() {
        let config = Config { workers: 2, stages: 2, simulated: Some(0), ..Config::new() };
        let system = SystemCore::start(config).unwrap();
        let [near, far] = [0, 1].map(|id: usize| system.posts[id].lock().unwrap().clone().unwrap());
        let got = Arc::default();
        let spawn = |stage| StageChoice::At(stage);
        let receiver = system.spawn(Receiver(Arc::clone(&got)), spawn(0), Number(0)).ok().unwrap();
        let sender = system.spawn(Sender(receiver), spawn(1), Number(1)).ok().unwrap();
        near.enter(|| near.turn(1));
        // The far worker runs the sender, hands over what that has sent, and rests.
        far.enter(|| {
            far.turn(1);
            far.flush();
            assert!(!far.advance() && far.lower());
        });
        near.enter(|| {
            // The flag is raised after the mail is there: not yet.
            near.office().mail.lower();
            sender.send(Number(2));
            near.flush();
            assert_eq!(system.counters()[0].adoptions, 1);
            near.gulp(1);
        });
        system.run_until_idle();
        assert_eq!(*got.lock().unwrap(), [0, 1, 2]);
        system.end(std::time::Duration::ZERO, &mut |_, _, _| {});
    }
}
