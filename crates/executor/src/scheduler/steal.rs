//! Stealing: an idle worker asks, the victim gives.
//!
//! C∀ swaps queue pointers behind the victim's back, because its victim may be anywhere in a gulp. In this scheduler,
//! the thief leaves its name in the victim's inbox and raises the victim's signal, which the victim checks before each
//! message anyway. At that exchange only the victim touches its queue. It partitions the queue by stages and appends
//! the thief's part to the thief's inbox under both locks. No pointer is swapped that another thread may be using, and
//! the victim's message path pays nothing. (A victim that is stuck in a handler cannot answer: the monitor then gives
//! its queue to a new thread, which answers.) Whole stages move, never an actor or a message.
//!
//! A busy worker does not wait for requests. After each gulp, it gives a part of its work to an idle worker, if that is
//! worth the hand-over ([`crate::policy::decisions`]). The stages move in the same way.

use std::sync::atomic::Ordering::{self, Relaxed};

use crate::memory::raw_address::Lane;
use crate::memory::segment::Chain;
use crate::policy::config::Stealing;
use crate::policy::decisions::{self, Backlog, Idle};
use crate::policy::trial_verdict;
use crate::sync::jitter::seam;
use crate::sync::worker_requests::Signal;
use crate::worker::Worker;
use crate::worker::inbox::{Inbox, Presence};

/// The largest number of workers that a thief looks at when it becomes idle. Each look is a cache miss.
const LOOKED_AT_MAX: usize = 16;
/// The number of times that the victim tries for the thief's lock before it keeps its stages.
const LOCK_ATTEMPTS_MAX: u32 = 64;

/// A simulated worker looks through a queue of up to this many bytes in each step.
const LOOKED_AT_EACH_STEP_BYTES: u64 = 4096;

impl Worker {
    /// Leaves this worker's name with a victim that has stages to give.
    pub(crate) fn look_for_work(&self) {
        let system = &self.system;
        if system.config.stealing == Stealing::None || self.id as usize >= system.config.workers {
            return;
        }
        let now_ns = system.now_ns();
        let (workers, others) = (system.config.workers, system.config.workers - 1);
        // SAFETY: in RUNTIME; short borrow.
        let first = if others > LOOKED_AT_MAX { unsafe { self.core() }.random() as usize } else { 0 };
        let candidates = || {
            (0..others.min(LOOKED_AT_MAX))
                .map(|turn| ((usize::from(self.id) + 1 + (first + turn) % others) % workers) as u16)
                .filter(|other| {
                    let shown = &system.worker_table[usize::from(*other)].shown;
                    let (surplus, average_ns) = (shown.surplus.load(Relaxed), shown.average_ns.load(Relaxed));
                    let is_short = average_ns < trial_verdict::SHORT_NS && !self.is_apart(*other);
                    let backlog = Backlog { ns: surplus * average_ns, is_short };
                    // No part is larger than half. A victim that makes a pause would end its gulp in vain.
                    decisions::asks(backlog, 0.5)
                        && shown.next_steal_ns.load(Relaxed) <= now_ns
                        && decisions::asks(backlog, self.part_from(*other, self.id, backlog, now_ns))
                })
        };
        let victim = match system.config.stealing {
            // cforall-actors, "Victim Selection": the worker with the oldest attempt to steal has been busy longest.
            Stealing::LongestVictim => {
                candidates().min_by_key(|other| system.worker_table[*other as usize].shown.last_steal_ns.load(Relaxed))
            }
            Stealing::Random => {
                let count = candidates().count();
                // SAFETY: in RUNTIME; short borrow.
                (count > 0)
                    .then(|| unsafe { self.core() }.random() as usize % count)
                    .and_then(|at| candidates().nth(at))
            }
            Stealing::None => None,
        };
        self.shared().shown.last_steal_ns.store(now_ns, Relaxed);
        if let Some(victim) = victim {
            self.ask_for_stages(victim);
        }
    }

    pub(crate) fn ask_for_stages(&self, victim: u16) {
        self.ledger.steal_attempts.add(1);
        let mut inbox = self.system.worker_table[victim as usize].lock();
        if !inbox.thieves.contains(&self.id) {
            inbox.thieves.push(self.id);
        }
        inbox.signal.raise(Signal::THIEF);
    }

    /// Answers the requests in the inbox. Gives all of its stages to a worker that has asked for all after a trial in
    /// vain. Otherwise gives a part of its queue to the first thief, if that is worth the hand-over and the thief is
    /// still idle. In RUNTIME.
    #[cold]
    pub(crate) fn give_to_thief(&self) {
        let (thieves, asks_for_all) = {
            let mut inbox = self.shared().lock();
            (std::mem::take(&mut inbox.thieves), inbox.asks_for_all.take())
        };
        let system = &self.system;
        if let Some(asks_for_all) = asks_for_all {
            // SAFETY: used by this thread only, in short borrows; in RUNTIME.
            let (route, core) = unsafe { (&*self.route.get(), self.core()) };
            let may_go = |stage: &u16| !core.is_parked(*stage) && !system.routing.full[usize::from(*stage)].is_full();
            let all: Vec<u16> = route.own(system.config.stages).filter(may_go).collect();
            self.give(StageSet::of(&all, system.routing.route.len(), asks_for_all));
            return;
        }
        let Some(&thief) = thieves.first() else { return };
        let start_ns = system.now_ns();
        // A simulation has no costs, and the victim therefore tries every request.
        let simulated = system.simulation.is_some();
        let may = simulated || start_ns >= self.shared().shown.next_steal_ns.load(Relaxed) && !self.keeps_short_work();
        let is_worth_it = |waiting, part| {
            simulated || decisions::is_worth_sharing(waiting, part, 0, Idle::Watching, system.idle.wake_ns)
        };
        // Another worker may already have given work to the thief.
        if !may
            || !self.give_part(thief, start_ns, is_worth_it, || {
                simulated || system.idle.workers.remove(thief, Idle::Watching)
            })
        {
            self.ledger.steal_no_candidate.add(1);
        }
    }

    /// Returns whether this worker may offer work at `now_ns`, for which it looks through its whole queue.
    ///
    /// The clock of a simulation stands still during a look, and measures no pause. A simulated worker therefore looks through a long queue in some steps
    /// only. Otherwise the time of a run grows with the square of the queue.
    pub(crate) fn may_offer(&self, now_ns: u64) -> bool {
        if self.system.simulation.is_some() {
            return self.beat.load(Relaxed).is_multiple_of(1 + self.waiting_bytes() / LOOKED_AT_EACH_STEP_BYTES);
        }
        now_ns >= self.shared().shown.next_steal_ns.load(Relaxed)
    }

    /// Gives a part of the queue to `worker`, which is idle, if that is worth the hand-over. In RUNTIME, between two
    /// gulps.
    #[cold]
    pub(crate) fn offer(&self, worker: u16, idle: Idle, start_ns: u64, lasts_ns: u64) {
        let is_worth_it =
            |waiting, part| decisions::is_worth_sharing(waiting, part, lasts_ns, idle, self.system.idle.wake_ns);
        self.give_part(worker, start_ns, is_worth_it, || {
            let taken = self.system.idle.workers.remove(worker, idle);
            if taken && idle == Idle::Parked {
                self.ledger.wake_ups.add(1);
            }
            taken
        });
    }

    /// Gives a part of the queue to `thief`. Returns false if no stage has moved: if `is_worth_it` refuses the measured
    /// backlog and the part of it, if no stage is small enough, if `take` does not find the thief idle, or if the
    /// thief's inbox stays locked.
    fn give_part(
        &self,
        thief: u16,
        start_ns: u64,
        is_worth_it: impl FnOnce(Backlog, f64) -> bool,
        take: impl FnOnce() -> bool,
    ) -> bool {
        let (waiting, mut stages) = self.weigh_stages();
        let part = self.part_from(self.id, thief, waiting, start_ns);
        let stages = if is_worth_it(waiting, part) { decisions::split(&mut stages, part) } else { Vec::new() };
        let mut gave = false;
        if !stages.is_empty() && take() {
            gave = self.give(StageSet::of(&stages, self.system.routing.route.len(), thief));
            if gave {
                if decisions::wants_trial(waiting, self.average_ns.get()) {
                    self.begin_trial(thief, start_ns);
                }
            } else {
                self.put_back_thief(thief);
            }
        }
        if !gave || waiting.is_short {
            // The look was in vain, or cost about as much as the messages that moved. The next look therefore comes
            // after a pause.
            let end_ns = self.system.now_ns();
            self.shared().shown.next_steal_ns.store(end_ns + (end_ns - start_ns) * decisions::PAUSE_FACTOR, Relaxed);
        }
        gave
    }

    /// Puts a worker back into the set of idle workers, because it was taken out of the set and got no work.
    fn put_back_thief(&self, thief: u16) {
        let inbox = self.system.worker_table[usize::from(thief)].lock();
        match inbox.presence {
            Presence::Awake => {}
            Presence::Idle => self.system.idle.workers.insert(thief, Idle::Watching),
            Presence::Parked => self.system.idle.workers.insert(thief, Idle::Parked),
        }
    }

    /// Moves stages with their records to the thief. Returns false if the thief's inbox stayed locked. No stage has
    /// moved then.
    fn give(&self, given: StageSet) -> bool {
        let thief = given.thief;
        // All messages that were sent before the move are handed over before the stages (I2).
        self.flush();
        let (mail, own) = self.queued_mail();
        let mut stolen = self.extract(|stage| given.contains(stage));
        let stolen_bytes = stolen[Lane::Normal as usize].bytes as u128;
        // The extracted part mixes mail and own messages like the whole queue. A backlog that others have sent to this
        // worker thus remains one.
        let own = (stolen_bytes * u128::from(own) / u128::from((mail + own).max(1))) as usize;
        let mut attempts = 0;
        let (mut mine, mut theirs) = loop {
            let mine = self.shared().lock();
            if let Some(theirs) = self.system.worker_table[thief as usize].try_lock() {
                break (mine, theirs);
            }
            drop(mine);
            attempts += 1;
            if attempts == LOCK_ATTEMPTS_MAX {
                // The extracted records are older than all others of their stages, and go back to the front.
                self.ledger.steal_failed.add(1);
                self.put_back(stolen);
                return false;
            }
            std::thread::yield_now();
        };
        // Everything that was ever sent to the stages is taken along, also mail that came by now.
        let mut kept = [const { Chain::new() }; 3];
        let sent = mine.sent_bytes();
        for (mail, (stolen, kept)) in self.empty_inbox(&mut mine).into_iter().zip(stolen.iter_mut().zip(&mut kept)) {
            self.split(mail, &given, stolen, kept);
        }
        if mine.timer_ops.is_empty() && mine.returned.is_empty() {
            self.shared().mail.lower();
        } else {
            self.shared().mail.raise(std::ptr::null());
        }
        seam(10);
        // Arrivals are noted before stages are given away, because those stages may be among the arrivals.
        let arrivals = std::mem::take(&mut mine.arrivals);
        self.note_arrivals(&arrivals);
        mine.departures += 1;
        mine.queued_bytes = 0;
        self.hand_over(&given, (stolen, own), &mut theirs, mine.departures);
        drop(mine);
        self.system.arrived(&self.system.worker_table[thief as usize], theirs, thief);
        let sent = sent.min(kept[Lane::Normal as usize].bytes as u64);
        self.admit(kept);
        self.note_mail(sent);
        self.flush();
        true
    }

    /// Moves the stages and their records to the thief, whose inbox and the own one are locked. The worker's own actors
    /// have sent `own` bytes of the records.
    fn hand_over(&self, given: &StageSet, (stolen, own): ([Chain; 3], usize), theirs: &mut Inbox, departures: u64) {
        let mut records = 0;
        for chain in &stolen {
            chain.for_each(|_| records += 1);
        }
        self.ledger.steals.add(1);
        self.ledger.messages_stolen.add(records);
        self.ledger.stages_stolen.add(given.len());
        let thief = given.thief;
        theirs.own_bytes += own;
        for (lane, chain) in [Lane::System, Lane::Urgent, Lane::Normal].into_iter().zip(stolen) {
            if lane != Lane::Normal && !chain.is_empty() {
                theirs.signal.raise(Signal::LANES);
            }
            theirs.lane(lane).append(chain);
        }
        // SAFETY: used by this thread only, in short borrows; all logs are flushed.
        let route = unsafe { &mut *self.route.get() };
        for stage in given.iter() {
            debug_assert_eq!(
                self.system.routing.route[stage as usize].load(Ordering::Relaxed),
                self.id,
                "a stage of another worker"
            );
            // Release: pairs with the Acquire of a worker that reads the route.
            self.system.routing.route[stage as usize].store(thief, Ordering::Release);
            route.give(stage, thief, departures);
            theirs.arrivals.push(stage);
        }
        self.note_own_stages();
    }

    /// Returns the part of the work of `victim` that goes to `thief`.
    pub(crate) fn part_from(&self, victim: u16, thief: u16, waiting: Backlog, now_ns: u64) -> f64 {
        if self.system.simulation.is_some() {
            return 0.5;
        }
        decisions::part(self.idle_share_of(victim, now_ns), self.idle_share_of(thief, now_ns), waiting.ns)
    }

    /// Returns the work that waits, estimated by the kinds of the messages, with that of each stage that may move.
    fn weigh_stages(&self) -> (Backlog, Vec<(u64, u16)>) {
        let system = &self.system;
        let average_ns = self.average_ns.get() as f64;
        let mut ns = 0.0;
        // The stages of dedicated workers have no entry, because their numbers come after all others.
        let mut waiting = vec![0.0; system.config.stages + system.config.links];
        self.for_each_waiting(|record| {
            // SAFETY: records of the own queue.
            let record = unsafe { record.as_ref() };
            if !record.is_buried()
                && let Some(waiting) = waiting.get_mut(usize::from(record.stage()))
            {
                // SAFETY: in RUNTIME; short borrow of this part alone.
                let kinds = unsafe { &(*self.core.get()).kinds };
                let record_ns = kinds.weight(record.thunk as usize).unwrap_or(1.0) * average_ns;
                *waiting += record_ns;
                ns += record_ns;
            }
        });
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        let may_go = |stage: u16| !core.is_parked(stage) && !system.routing.full[usize::from(stage)].is_full();
        let waiting = waiting.into_iter().map(|ns| ns as u64).zip(0..);
        let stages = waiting.filter(|(ns, stage)| *ns > 0 && may_go(*stage)).collect();
        (Backlog { ns: ns as u64, is_short: self.has_short_work() && !self.is_apart(self.id) }, stages)
    }

    /// Takes the records of some stages out of the queue, in order, by lanes. In RUNTIME.
    pub(crate) fn extract(&self, wanted: impl Fn(u16) -> bool) -> [Chain; 3] {
        let mut stolen = [const { Chain::new() }; 3];
        // Deferred starts come first, because messages to the actors that they start go behind them.
        self.extract_deferred_starts(&wanted, &mut stolen[Lane::Normal as usize]);
        self.for_each_queued(|mut record| {
            // SAFETY: records of the own queue, which is not run during the call; a copied record is buried, and its
            // payload therefore has one owner.
            unsafe {
                if !record.as_ref().is_buried() && wanted(record.as_ref().stage()) {
                    let (lane, size) = (record.as_ref().lane() as usize, record.as_ref().bytes());
                    stolen[lane].push_bytes(record.as_ptr().cast(), size, Some(&self.pool));
                    record.as_mut().bury();
                }
            }
        });
        stolen
    }

    fn split(&self, mail: Chain, given: &StageSet, given_to: &mut Chain, kept: &mut Chain) {
        // SAFETY: the chain owns whole records; each is moved once.
        mail.consume(Some(&self.pool), |record| unsafe {
            let into = if given.contains(record.as_ref().stage()) { &mut *given_to } else { &mut *kept };
            into.push_bytes(record.as_ptr().cast(), record.as_ref().bytes(), Some(&self.pool));
        });
    }
}

/// Stages that go to a thief.
struct StageSet {
    thief: u16,
    words: Vec<u64>,
}

impl StageSet {
    /// Creates the set of the `given` stages for `thief`, in a system with `stages` stages.
    fn of(given: &[u16], stages: usize, thief: u16) -> Self {
        let mut words = vec![0; stages.div_ceil(64)];
        for stage in given {
            words[usize::from(*stage) / 64] |= 1 << (stage % 64);
        }
        StageSet { thief, words }
    }

    fn contains(&self, stage: u16) -> bool {
        self.words[stage as usize / 64] & (1 << (stage % 64)) != 0
    }

    fn len(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (0..self.words.len() as u16 * 64).filter(|stage| self.contains(*stage))
    }
}
