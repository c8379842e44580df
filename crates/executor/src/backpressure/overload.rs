//! Overload: senders to a worker with a large backlog are slowed down (Pony's muting, by stages).
//!
//! There are two levels. A worker is *pressed* if the mail from others takes it longer than 2 ms, and *overloaded* if
//! that mail exceeds 2 MiB. Both slow down sources: threads outside, and stages that send more than they handle
//! ([`crate::load::accounts`]). A stage that sends no more than it handles is not muted, because a standing
//! backlog is not overload. If it sends to an overloaded worker, the overload counts for its own senders
//! ([`crate::load::relays`]).
//!
//! Senders in other systems of the process are slowed down by their own workers:
//! [`crate::backpressure::other_systems`].
//!
//! The load of a worker is its queue, and the parked records of its muted stages. The worker works those off when the
//! workers that its stages are muted for work off theirs. If stages are muted for each other, one goes on:
//! [`crate::backpressure::deadlock`].
//!
//! Mail on deferred lists does not count, whatever its size. It waits for an event: an answer, a state in which its
//! guard holds, a supervisor. The event may have to come from the very stage that would be muted for it, or from
//! another muted one. The runtime cannot know that, because messages do not say it before they are sent. Such a stage
//! could stand still for ever beside others that work, which I4 rules out. A stage that is released now and then all
//! the same would be slowed, without a bound on the list. For such mail there is therefore a declared bound, which
//! counts it: [`crate::message::mailbox_bound`].

use std::sync::atomic::{AtomicBool, Ordering};

use crate::backpressure::deadlock::OUTSIDE;
use crate::load::bounds::{Load, Loads, OVERLOADED_BYTES};
use crate::load::standing::BacklogView;
use crate::sync::locks::lock;
use crate::sync::worker_requests::Signal;
use crate::worker::Worker;
use crate::worker::core::{AnyWorker, Core, MuteRequest, Parked, Reason, SystemEpoch};
use crate::worker::exchange::RECORD_BYTES;
use crate::worker::gate::Gate;
use crate::worker::inbox::WorkerShared;

/// A worker whose mail from others takes longer than this is pressed, if that mail has at least `PRESSED_RECORDS_MIN`
/// records.
const PRESSED_NS: u64 = 2_000_000;
/// With few records, others that send to the worker wait little even if each of them takes milliseconds.
const PRESSED_RECORDS_MIN: u64 = 64;

/// A worker that was pressed is relieved below 3/4 of the bound. A muted source costs the cores of its own worker and
/// of the workers between them, and its receiver is to have work until the source's next messages arrive.
const PRESSED_LOW: (u64, u64) = (3, 4);
/// A worker that was overloaded is relieved below half of the bound.
const OVERLOADED_LOW: (u64, u64) = (1, 2);

impl WorkerShared {
    /// Returns the loads with `bytes` bytes of mail. A message takes the worker `average_ns` nanoseconds.
    pub(crate) fn loads(&self, bytes: u64, average_ns: u64) -> Loads {
        let overloaded = OVERLOADED_BYTES as u64;
        let records = (PRESSED_NS / average_ns.max(1)).max(PRESSED_RECORDS_MIN);
        let pressed = overloaded.min(records * RECORD_BYTES);
        Loads {
            pressed: Load::of(bytes, self.standing.raised(pressed), PRESSED_LOW),
            overloaded: Load::of(bytes, self.standing.raised(overloaded), OVERLOADED_LOW),
        }
    }
}

impl Worker {
    /// Raises or lowers the two flags of overload.
    ///
    /// The load is the mail that others have sent to this worker and the parked records of muted stages. Mail that this
    /// worker's actors pass on to each other counts half until it is worked off. Otherwise a flood through many actors
    /// would be small at each of them and large in all.
    ///
    /// The load counts only if it is more than this worker's own actors have *made*, that is, sent beyond the mail that
    /// has come. Slowing others down would not help against own messages: a tree of a million actors that two workers
    /// build together is no flood.
    pub(crate) fn weigh(&self) {
        let shared = self.shared();
        let (mail, own) = self.queued_mail();
        let inbox_bytes = {
            let mut inbox = shared.lock();
            inbox.note_queued(mail, own);
            inbox.sent_bytes()
        };
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        let muted = core.parked.values().filter(|parked| parked.bytes_max.is_none());
        let muted: u64 = muted.map(|parked| parked.bytes() as u64).sum();
        let sent = mail + inbox_bytes + muted;
        let deferred_starts = core.deferred_starts.bytes();
        let made = core.mail.made(mail + own).min(own);
        // All mail that has come and is not worked off, including messages that the own actors pass on to each other.
        let came = (mail + own - made + inbox_bytes + muted).max(sent);
        // Mail that waits to be run for the first time counts in full, and mail that is passed on counts half.
        let weight = sent.max(came / 2);
        let (made, own) = (made + deferred_starts, own + deferred_starts);
        // The parked mail of muted stages is not run yet. A noted amount is never taken back.
        let noted = shared.mail_run.load(Ordering::Relaxed);
        let mail_run = core.mail.run().saturating_sub(muted).max(noted);
        shared.mail_run.store(mail_run, Ordering::Relaxed);
        if shared.admission.is_ahead(mail_run) {
            // A source was admitted, and the worker has not yet run twice as much.
            shared.standing.note_source();
        }
        let look = BacklogView {
            pressed: shared.is_pressed(),
            mail: sent,
            run: mail_run,
            admitted: shared.admission.bytes(),
            now_ns: self.system.now_ns(),
            source_ns: self.system.routing.sources.last_ns(),
        };
        shared.standing.look(&mut core.turnover, look);
        let at_ease = |load, sent, own| load == Load::Low || sent < own / 2;
        let coming = mail + inbox_bytes;
        // Relaxed: all readers look again.
        let average_ns = core.slow_pace.average_ns();
        let held_up = at_ease(shared.loads(coming, average_ns).pressed, coming, own);
        // The flag is read before it is written, because senders to this worker read the flags in the same cache line.
        if shared.held_up.load(Ordering::Relaxed) != held_up {
            shared.held_up.store(held_up, Ordering::Relaxed);
        }
        let raise = |flag: &AtomicBool, load| {
            if load == Load::High && weight >= made {
                shared.press();
                flag.store(true, Ordering::Relaxed);
                return false;
            }
            // SeqCst, in this function and in `mute`: either the muter sees the flag down, or the muter is found in
            // `muted_on_me`.
            at_ease(load, weight, made) && flag.load(Ordering::Relaxed) && flag.swap(false, Ordering::SeqCst)
        };
        shared.note_excess(weight);
        let loads = shared.loads(weight, average_ns);
        if raise(&shared.overloaded, loads.overloaded) | raise(&shared.pressed, loads.pressed) {
            self.relieve(shared);
        }
    }

    /// Returns the bytes of the queue that others have sent, and those that this worker's own actors have sent. In
    /// RUNTIME.
    pub(crate) fn queued_mail(&self) -> (u64, u64) {
        let queued = self.backlog_bytes();
        // SAFETY: in RUNTIME; short borrow.
        let mail = unsafe { self.core() }.mail.waiting(self.bytes_run()).min(queued);
        (mail, queued - mail)
    }

    /// Publishes the workers that the muted stages of this worker wait for.
    fn publish_waits(&self) {
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        let mut waits_for: Vec<AnyWorker> = core
            .parked
            .values()
            .filter_map(|parked| match parked.reason {
                // A target in another system may be full for a stuck handler, or for a gate: only the latter ends by
                // itself.
                Reason::Muted { stuck: true, other_system: Some(_), .. } => None,
                Reason::Muted { stuck: true, target, .. } if self.system.routing.full[target as usize].is_stuck() => {
                    None
                }
                Reason::Muted { stuck: true, .. } => Some((self.system_id, OUTSIDE)),
                Reason::Muted { receiver, other_system, .. } => {
                    Some((other_system.map_or(self.system_id, |other_system| other_system.system), receiver))
                }
                Reason::Detached | Reason::Paused => None,
            })
            .collect();
        waits_for.sort_unstable();
        waits_for.dedup();
        if waits_for != core.waits_for {
            lock(&self.shared().waits_for).clone_from(&waits_for);
            core.waits_for = waits_for;
        }
    }

    /// Lets the muted senders go on, because the load is below the low-water mark.
    pub(crate) fn relieve(&self, shared: &WorkerShared) {
        // The lock orders this with a sender that saw the flag and is about to wait.
        drop(shared.lock());
        shared.relieved.notify_all();
        if shared.muted_on_me.swap(false, Ordering::SeqCst) {
            self.rouse_others();
            shared.rouse_other_systems();
        }
    }

    /// Has all workers of this system look again whether their muted stages may go on.
    pub(crate) fn rouse_others(&self) {
        if self.parked.get() {
            // A stage may be muted for its own worker, over a relay: the worker does not become idle before it has
            // looked again.
            self.ownership.signal.raise(Signal::TICK);
        }
        for (other, _) in self.system.worker_table.made() {
            if other != self.id {
                self.system.rouse(other);
            }
        }
    }

    /// Wakes the sources that wait for this worker, because it has handled more messages and may admit them. It does so
    /// at each checkup.
    pub(crate) fn call_sources(&self) {
        let shared = self.shared();
        if !shared.is_pressed() || !shared.may_admit() {
            return;
        }
        shared.relieved.notify_all();
        if shared.muted_on_me.load(Ordering::Relaxed) {
            for (other, others) in self.system.worker_table.made() {
                if other != self.id && others.muted_stages.load(Ordering::Relaxed) > 0 {
                    self.system.rouse(other);
                }
            }
            shared.rouse_other_systems();
        }
    }

    /// Checks whether parked stages may go on, and measures the load without them.
    #[cold]
    pub(crate) fn review_parked(&self, may_go_on: bool) {
        self.unmute();
        self.weigh();
        self.publish_waits();
        if may_go_on {
            self.release_one();
        }
    }

    /// Parks the stages that sent to an overloaded worker (Pony's muting, by stages).
    #[cold]
    pub(crate) fn mute(&self) {
        // SAFETY: in RUNTIME; short borrow, no call back.
        let core = unsafe { self.core() };
        if core.exempt.is_some_and(|(_, until)| until <= self.bytes_run()) {
            core.exempt = None;
        }
        for MuteRequest { sender: stage, receiver, target, source, other_system } in
            std::mem::take(&mut core.mute_requests)
        {
            // SAFETY: in RUNTIME; short borrow, no call back.
            let core = unsafe { self.core() };
            if let Some(parked) = core.parked.get_mut(&stage) {
                // The stage has sent more in the same gulp.
                if let (Reason::Muted { source: owed_bytes, .. }, Some(more)) = (&mut parked.reason, source) {
                    *owed_bytes = Some(owed_bytes.unwrap_or(0).saturating_add(more));
                }
                continue;
            }
            if self.route_of(stage) != Some(self.id) || !self.may_be_muted(core, stage) {
                continue;
            }
            // The last handle of another system may be dropped by `stays_muted`.
            let Some((receiver, stuck)) = self.stays_muted(other_system, receiver, target, source.is_some()) else {
                continue;
            };
            // SAFETY: in RUNTIME; short borrow, no call back.
            let core = unsafe { self.core() };
            core.parked
                .insert(stage, Parked::new(Reason::Muted { receiver, target, stuck, source, other_system }, None));
            if !stuck {
                self.shared().muted_stages.fetch_add(1, Ordering::Relaxed);
            }
            self.system.open_more();
            self.ledger.mutes.add(1);
        }
        // SAFETY: in RUNTIME; short borrow, no call back.
        let core = unsafe { self.core() };
        let pauses = std::mem::take(&mut core.pauses);
        let mut accounts = self.accounts.borrow_mut();
        if accounts.are_wanted() {
            accounts.open(self.system.routing.route.len());
            // This worker's own actors otherwise append to the log without any check while it has room.
            self.logs[self.id as usize].stop();
        }
        drop(accounts);
        self.note_parked_stages(core);
        for (stage, gate) in pauses {
            self.pause(stage, &gate);
        }
    }

    /// Returns whether the stage may be muted. A stage that works off its parked records may not, because it was let go
    /// on or is full: it would wait for itself.
    pub(crate) fn may_be_muted(&self, core: &Core, stage: u16) -> bool {
        core.exempt.is_none_or(|(exempt, _)| exempt != stage) && !self.system.routing.full[stage as usize].is_full()
    }

    /// Parks the mail of the stage as long as the gate is closed.
    fn pause(&self, stage: u16, gate: &Gate) {
        // SAFETY: in RUNTIME; short borrow, no call back.
        let core = unsafe { self.core() };
        if core.parked.contains_key(&stage) || self.route_of(stage) != Some(self.id) {
            return;
        }
        core.parked.insert(stage, Parked::new(Reason::Paused, Some(gate.bytes_max())));
        self.note_parked_stages(core);
        self.system.open_more();
        // Like `open`: this worker is awake.
        self.system.quiescence.paused.fetch_add(1, Ordering::AcqRel);
        if !gate.wait(stage) {
            self.release(stage);
        }
    }

    /// Registers with the receiver, then checks whether it is pressed: either it is seen relieved, or it will rouse
    /// this worker. The registration is repeated each time, because the receiver may have been relieved and be pressed
    /// again. The target is asked in the same way whether it is full, whichever worker runs it now
    /// ([`crate::backpressure::full_stages`]). Returns the receiver, and whether the target is full.
    fn stays_muted(
        &self,
        other_system: Option<SystemEpoch>,
        receiver: u16,
        target: u16,
        source: bool,
    ) -> Option<(u16, bool)> {
        if let Some(other_system) = other_system {
            return self.stays_muted_in_other_systems(&*other_system.find()?, target, source);
        }
        let shared = &self.system.worker_table[receiver as usize];
        if source {
            shared.muted_on_me.store(true, Ordering::SeqCst);
        }
        let pressed = source && shared.is_pressed();
        if pressed {
            self.system.note_source(receiver);
        }
        let full = self.system.routing.full[target as usize].wait_for();
        (full || pressed).then_some((receiver, full))
    }

    /// Returns whether the receiver of a muted stage admits the bytes that the stage owes.
    fn is_admitted(&self, other_system: Option<SystemEpoch>, receiver: u16, owed_bytes: u32) -> bool {
        match other_system {
            None => self.system.worker_table[receiver as usize].admits(u64::from(owed_bytes)),
            Some(other_system) => {
                let system = other_system.find().filter(|system| usize::from(receiver) < system.worker_table.len());
                system.is_none_or(|system| system.worker_table[receiver as usize].admits(u64::from(owed_bytes)))
            }
        }
    }

    /// Lets the stages go on whose receivers are no longer overloaded.
    fn unmute(&self) {
        let mut ready = Vec::new();
        // No borrow of the core during the loop, because it may drop the last handle of another system.
        for (stage, reason) in self.muted() {
            let Reason::Muted { receiver, target, source, other_system, .. } = reason else { continue };
            let Some((receiver, is_full)) = self.stays_muted(other_system, receiver, target, source.is_some()) else {
                ready.push(stage);
                continue;
            };
            if let (false, Some(owed_bytes)) = (is_full, source)
                && self.is_admitted(other_system, receiver, owed_bytes)
            {
                ready.push(stage);
                continue;
            }
            // SAFETY: in RUNTIME; short borrow, no call back.
            let Some(parked) = unsafe { self.core() }.parked.get_mut(&stage) else { continue };
            let Reason::Muted { receiver: known, stuck, .. } = &mut parked.reason else { continue };
            *known = receiver;
            // The stage may have caught up while its worker became overloaded, or the other way round.
            if *stuck != is_full {
                *stuck = is_full;
                let muted = &self.shared().muted_stages;
                if is_full {
                    muted.fetch_sub(1, Ordering::Relaxed)
                } else {
                    muted.fetch_add(1, Ordering::Relaxed)
                };
            }
        }
        for stage in ready {
            self.release(stage);
        }
    }

    /// Lets one of this worker's muted stages go on, the one with the most parked bytes. It is exempt from muting for
    /// long enough that it is not parked again after a gulp.
    pub(crate) fn release_one(&self) {
        let run = self.bytes_run();
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        let muted =
            core.parked.iter().filter(|(_, parked)| matches!(parked.reason, Reason::Muted { stuck: false, .. }));
        if let Some((stage, bytes)) =
            muted.map(|(stage, parked)| (*stage, parked.bytes() as u64)).max_by_key(|(_, bytes)| *bytes)
        {
            core.exempt = Some((stage, run + bytes));
            self.release(stage);
        }
    }

    /// Updates `holding` and `parked` after `Core::parked` or the accounts have changed.
    pub(crate) fn note_parked_stages(&self, core: &Core) {
        self.holding.set(core.has_parked() || self.accounts.borrow().are_kept());
        self.parked.set(core.has_parked());
    }

    /// Lets a stage go on; its parked records come first. In RUNTIME.
    pub(crate) fn release(&self, stage: u16) {
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        let Some(mut parked) = core.parked.remove(&stage) else { return };
        self.note_parked_stages(core);
        // Children may go to this stage again.
        self.note_own_stages();
        if let Reason::Muted { stuck: false, .. } = parked.reason {
            self.shared().muted_stages.fetch_sub(1, Ordering::Relaxed);
        }
        if parked.reason == Reason::Paused {
            self.system.quiescence.paused.fetch_sub(1, Ordering::AcqRel);
        }
        if parked.reason != Reason::Detached {
            self.system.open_less();
        }
        self.mark(stage, &mut parked.lanes);
        // The mail counted while it was parked, and still does.
        // SAFETY: in RUNTIME; short borrow.
        unsafe { self.core() }.mail.note_first(self.bytes_run(), parked.bytes() as u64);
        self.put_back(parked.lanes);
    }
}
