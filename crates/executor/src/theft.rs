//! Stealing: an idle worker asks, the victim gives.
//!
//! C∀ swaps queue pointers behind the victim's back, since its victim may be anywhere in a gulp. Here the thief leaves
//! its name in the victim's inbox and raises the victim's signal, which the victim looks at before each message
//! anyway; at that boundary the victim is the only one that touches its queue, so it partitions it by stages and
//! appends the thief's part to the thief's inbox under both locks. No pointer is swapped that somebody may be using,
//! and the victim's message path pays nothing. (A victim that is stuck in a handler cannot answer: then the monitor
//! gives its queue to a new thread, which answers.) Whole stages move, never an actor or a message.
//!
//! A busy worker does not wait for requests. After each gulp, it gives about half of its work to an idle worker, if that is worth the
//! hand-over ([`crate::scheduler::policy`]). The stages move in the same way.

use std::sync::atomic::Ordering::{self, Relaxed};

use crate::address::Lane;
use crate::config::Stealing;
use crate::core::Trial;
use crate::jitter::seam;
use crate::office::{Inbox, Presence};
use crate::scheduler::policy::{self, Backlog, Idle};
use crate::segment::Chain;
use crate::signal::Signal;
use crate::worker::Worker;

/// The largest number of workers that a thief looks at when it becomes idle. Each look is a cache miss.
const LOOKED_AT_MAX: usize = 16;
/// How often the victim tries for the thief's lock before it keeps its stages.
const LOCK_ATTEMPTS_MAX: u32 = 64;

impl Worker {
    /// Leaves this worker's name with a victim that has something to give.
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
                    let shown = &system.offices[usize::from(*other)].shown;
                    let (surplus, average_ns) = (shown.surplus.load(Relaxed), shown.average_ns.load(Relaxed));
                    let backlog = Backlog::of(surplus, average_ns);
                    // A victim with fine messages that makes a pause would end its gulp in vain.
                    policy::asks(backlog) && (!backlog.is_fine() || shown.next_theft_ns.load(Relaxed) <= now_ns)
                })
        };
        let victim = match system.config.stealing {
            // cforall-actors, "Victim Selection": whose last attempt is longest ago has been busy longest.
            Stealing::LongestVictim => {
                candidates().min_by_key(|other| system.offices[*other as usize].shown.last_theft_ns.load(Relaxed))
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
        self.office().shown.last_theft_ns.store(now_ns, Relaxed);
        if let Some(victim) = victim {
            self.ask_for_stages(victim);
        }
    }

    pub(crate) fn ask_for_stages(&self, victim: u16) {
        self.ledger.steal_attempts.add(1);
        let mut inbox = self.system.offices[victim as usize].lock();
        if !inbox.thieves.contains(&self.id) {
            inbox.thieves.push(self.id);
        }
        inbox.signal.raise(Signal::THIEF);
    }

    /// Answers the requests in the inbox. Gives all of its stages to a worker that has asked for all after a trial in vain. Otherwise gives
    /// about half of what waits to the first thief, if that is worth the hand-over and the thief is still idle. In RUNTIME.
    #[cold]
    pub(crate) fn give_to_thief(&self) {
        let (thieves, gathers) = {
            let mut inbox = self.office().lock();
            (std::mem::take(&mut inbox.thieves), inbox.gathers.take())
        };
        let system = &self.system;
        if let Some(gathers) = gathers {
            // SAFETY: used by this thread only, in short borrows; in RUNTIME.
            let (route, core) = unsafe { (&*self.route.get(), self.core()) };
            let may_go = |stage: &u16| !core.is_held(*stage) && !system.full[usize::from(*stage)].is_full();
            let all: Vec<u16> = route.own(system.config.stages).filter(may_go).collect();
            self.give(StageSet::of(&all, system.route.len(), gathers));
            return;
        }
        let Some(&thief) = thieves.first() else { return };
        let start_ns = system.now_ns();
        // A simulation has no costs, and the victim therefore tries every request.
        let simulated = system.simulation.is_some();
        let may = simulated
            || start_ns >= self.office().shown.next_theft_ns.load(Relaxed) && !self.keeps_fine_work(self.backlog());
        let is_worth_it = |waiting| simulated || policy::is_worth_sharing(waiting, 0, Idle::Watching, system.wake_ns);
        // Another worker may already have given work to the thief.
        let still_idle = || simulated || system.idle.remove(thief, Idle::Watching);
        if !may || !self.give_half(start_ns, is_worth_it, || still_idle().then_some(thief)) {
            self.ledger.steal_no_candidate.add(1);
        }
    }

    /// Gives about half of what waits to an idle worker, if that is worth the hand-over. In RUNTIME, between two gulps.
    #[cold]
    pub(crate) fn offer(&self, idle: Idle, start_ns: u64, lasts_ns: u64) {
        let is_worth_it = |waiting| policy::is_worth_sharing(waiting, lasts_ns, idle, self.system.wake_ns);
        self.give_half(start_ns, is_worth_it, || {
            let worker = self.system.idle.take(self.id, idle).filter(|worker| *worker != self.id)?;
            if idle == Idle::Parked {
                self.ledger.wake_ups.add(1);
            }
            Some(worker)
        });
    }

    /// Begins a trial: this worker gives fine work to `worker` and measures whether that helps.
    fn begin_trial(&self, worker: u16, since_ns: u64) {
        let (handled, crossed_bytes) = (self.handled_in_all(), self.crossed_bytes.get());
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        let (average_ns, busy_ns) = (core.pace.average_ns(), self.ledger.busy_ns.get());
        let adoptions = self.adoptions_with(worker);
        core.trial = Some(Trial { worker, since_ns, handled, crossed_bytes, average_ns, busy_ns, adoptions });
    }

    /// Returns the number of adoptions of this worker and of another one.
    fn adoptions_with(&self, worker: u16) -> u64 {
        self.ledger.adoptions.get() + self.system.offices[usize::from(worker)].ledger.adoptions.get()
    }

    /// Ends a trial that has lasted long enough, at a checkup. After a trial in vain, this worker asks the other worker for all of its
    /// stages, and the next trial comes later.
    pub(crate) fn end_trial(&self, now_ns: u64) {
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        let Some(trial) = core.trial.take_if(|trial| now_ns - trial.since_ns > policy::TRIAL_TAKES_NS) else { return };
        let crossed = (self.crossed_bytes.get() - trial.crossed_bytes) / self.record_bytes.get();
        let handled = self.handled_in_all().wrapping_sub(trial.handled).max(1);
        let average_ns = (self.ledger.busy_ns.get() - trial.busy_ns) / handled;
        // An adoption by one of the two workers shows that a stage came back by itself.
        let came_back = self.adoptions_with(trial.worker) > trial.adoptions;
        let in_vain = came_back || policy::was_in_vain(handled, crossed, trial.average_ns, average_ns);
        core.trial_ns = policy::trial_ns(core.trial_ns, in_vain);
        if in_vain {
            core.fine_after_ns = now_ns + core.trial_ns;
            let mut inbox = self.system.offices[usize::from(trial.worker)].lock();
            // An idle worker is not asked, because other workers adopt its stages.
            if inbox.presence == Presence::Awake {
                inbox.gathers = Some(self.id);
                inbox.signal.raise(Signal::THIEF);
            }
        }
    }

    /// Gives about half of what waits to the worker that `to` returns. Returns false if nothing has moved: if `is_worth_it` refuses the
    /// measured backlog, if all of it belongs to 1 stage, if `to` finds no worker, or if that worker's inbox stays locked.
    fn give_half(
        &self,
        start_ns: u64,
        is_worth_it: impl FnOnce(Backlog) -> bool,
        to: impl FnOnce() -> Option<u16>,
    ) -> bool {
        let (waiting, stages) = self.choose_stages();
        let thief = if stages.is_empty() || !is_worth_it(waiting) { None } else { to() };
        let mut gave = false;
        if let Some(thief) = thief {
            if waiting.is_fine() && self.system.simulation.is_none() {
                self.begin_trial(thief, start_ns);
            }
            gave = self.give(StageSet::of(&stages, self.system.route.len(), thief));
            // `to` has taken the thief out of the set of idle workers. Without this, no worker would find it there until it wakes.
            if !gave && self.system.offices[usize::from(thief)].lock().presence == Presence::Parked {
                self.system.idle.insert(thief, Idle::Parked);
            }
        }
        if !gave || waiting.is_fine() {
            // The look was in vain, or cost about as much as the messages that moved. The next look therefore comes after a pause.
            let end_ns = self.system.now_ns();
            self.office().shown.next_theft_ns.store(end_ns + (end_ns - start_ns) * policy::PAUSE_FACTOR, Relaxed);
        }
        gave
    }

    /// Moves stages with their records to the thief. Returns false if the thief's inbox stayed locked. No stage has moved then.
    fn give(&self, given: StageSet) -> bool {
        let thief = given.thief;
        // All messages that were sent before the move are handed over before the stages (I2).
        self.flush();
        let mut loot = self.extract(|stage| given.contains(stage));
        let mut attempts = 0;
        let (mut mine, mut theirs) = loop {
            let mine = self.office().lock();
            if let Some(theirs) = self.system.offices[thief as usize].try_lock() {
                break (mine, theirs);
            }
            drop(mine);
            attempts += 1;
            if attempts == LOCK_ATTEMPTS_MAX {
                // The records taken out are older than all others of their stages: back to the front with them.
                self.ledger.steal_failed.add(1);
                self.put_back(loot);
                return false;
            }
            std::thread::yield_now();
        };
        // Everything that was ever sent to the stages is taken along: mail that came meanwhile too.
        let mut kept = [const { Chain::new() }; 3];
        let sent = mine.sent_bytes();
        for (mail, (loot, kept)) in self.empty_inbox(&mut mine).into_iter().zip(loot.iter_mut().zip(&mut kept)) {
            self.split(mail, &given, loot, kept);
        }
        if mine.timer_ops.is_empty() && mine.returned.is_empty() {
            self.office().mail.lower();
        } else {
            self.office().mail.raise(std::ptr::null());
        }
        seam(10);
        // Arrivals are noted before stages are given away, because those stages may be among the arrivals.
        let arrivals = std::mem::take(&mut mine.arrivals);
        self.note_arrivals(&arrivals);
        mine.departures += 1;
        mine.queued_bytes = 0;
        self.hand_over(&given, loot, &mut theirs, mine.departures);
        drop(mine);
        self.system.arrived(&self.system.offices[thief as usize], theirs, thief);
        let sent = sent.min(kept[Lane::Normal as usize].bytes as u64);
        self.admit(kept);
        self.note_mail(sent);
        self.flush();
        true
    }

    /// Moves the stages and their records to the thief, whose inbox and the own one are locked.
    fn hand_over(&self, given: &StageSet, loot: [Chain; 3], theirs: &mut Inbox, departures: u64) {
        let mut records = 0;
        for chain in &loot {
            chain.for_each(|_| records += 1);
        }
        self.ledger.steals.add(1);
        self.ledger.messages_stolen.add(records);
        self.ledger.stages_stolen.add(given.len());
        let thief = given.thief;
        theirs.loot_bytes += loot[Lane::Normal as usize].bytes;
        for (lane, chain) in [Lane::System, Lane::Urgent, Lane::Normal].into_iter().zip(loot) {
            if lane != Lane::Normal && !chain.is_empty() {
                theirs.signal.raise(Signal::LANES);
            }
            theirs.lane(lane).append(chain);
        }
        // SAFETY: used by this thread only, in short borrows; all logs are flushed.
        let route = unsafe { &mut *self.route.get() };
        for stage in given.iter() {
            // Release: pairs with the Acquire of a worker that reads the route.
            self.system.route[stage as usize].store(thief, Ordering::Release);
            route.give(stage, thief, departures);
            theirs.arrivals.push(stage);
        }
        self.note_own_stages();
    }

    /// Returns the work that waits, estimated by the kinds of the messages, and whole stages with about half of it. Returns no stages if
    /// all of the work belongs to 1 stage.
    fn choose_stages(&self) -> (Backlog, Vec<u16>) {
        let system = &self.system;
        let average_ns = self.average_ns.get() as f64;
        let (mut messages, mut ns) = (0, 0.0);
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
                messages += 1;
            }
        });
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        let may_go = |stage: u16| !core.is_held(stage) && !system.full[usize::from(stage)].is_full();
        let waiting = waiting.into_iter().map(|ns| ns as u64).zip(0..);
        let mut stages: Vec<(u64, u16)> = waiting.filter(|(ns, stage)| *ns > 0 && may_go(*stage)).collect();
        (Backlog { ns: ns as u64, average_ns: ns as u64 / u64::max(messages, 1) }, policy::split(&mut stages))
    }

    /// Takes the records of some stages out of the queue, in order, by lanes. In RUNTIME.
    pub(crate) fn extract(&self, wanted: impl Fn(u16) -> bool) -> [Chain; 3] {
        let mut loot = [const { Chain::new() }; 3];
        // First, since whoever is started by one of them is sent to behind it.
        self.extract_starts(&wanted, &mut loot[Lane::Normal as usize]);
        self.for_each_queued(|mut record| {
            // SAFETY: records of the own queue, which is not run meanwhile; what is copied is buried, so its payload
            // has one owner.
            unsafe {
                if !record.as_ref().is_buried() && wanted(record.as_ref().stage()) {
                    let (lane, size) = (record.as_ref().lane() as usize, record.as_ref().bytes());
                    loot[lane].push_bytes(record.as_ptr().cast(), size, Some(&self.pool));
                    record.as_mut().bury();
                }
            }
        });
        loot
    }

    fn split(&self, mut mail: Chain, given: &StageSet, given_to: &mut Chain, kept: &mut Chain) {
        // SAFETY: the chain owns whole records; each is moved once.
        mail.for_each(|record| unsafe {
            let into = if given.contains(record.as_ref().stage()) { &mut *given_to } else { &mut *kept };
            into.push_bytes(record.as_ptr().cast(), record.as_ref().bytes(), Some(&self.pool));
        });
        mail.bytes = 0;
        // SAFETY: all records were moved.
        unsafe { mail.recycle(Some(&self.pool)) };
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::core::{Core, Trial};
    use crate::worker::Worker;
    use crate::*;

    #[test]
    fn a_trial_ends_with_the_thread_that_began_it() {
        let system = SystemCore::start(Config { workers: 2, simulated: Some(0), ..Config::new() }).unwrap();
        let mut core = Core::new(1);
        let counters = Trial {
            worker: 1,
            since_ns: 0,
            handled: 1_000,
            crossed_bytes: 1_000,
            average_ns: 50,
            busy_ns: 50_000,
            adoptions: 1,
        };
        core.trial = Some(counters);
        let successor = Worker::new(&system, 0, Arc::default(), core);
        successor.enter(|| successor.end_trial(u64::MAX));
        system.end(std::time::Duration::ZERO, &mut |_, _, _| {});
    }
}
