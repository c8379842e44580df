//! Stealing: an idle worker asks, the victim gives.
//!
//! C∀ swaps queue pointers behind the victim's back, since its victim may be anywhere in a gulp. Here the thief leaves
//! its name in the victim's inbox and raises the victim's signal, which the victim looks at before each message
//! anyway; at that boundary the victim is the only one that touches its queue, so it partitions it by stages and
//! appends the thief's part to the thief's inbox under both locks. No pointer is swapped that somebody may be using,
//! and the victim's message path pays nothing. (A victim that is stuck in a handler cannot answer: then the monitor
//! gives its queue to a new thread, which answers.) Whole stages move, never an actor or a message.

use std::sync::atomic::Ordering;

use crate::address::Lane;
use crate::config::Stealing;
use crate::jitter::seam;
use crate::office::Inbox;
use crate::segment::Chain;
use crate::signal::Signal;
use crate::worker::Worker;

/// A victim spends at most about one part in so many of its time on looking through its queue for thieves.
const SHARE_OF_TIME: u64 = 8;
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
        // One that would give nothing now is not asked: it would leave its gulp for that.
        let candidates = || {
            (0..system.config.workers as u16).filter(|other| {
                let office = &system.offices[*other as usize];
                *other != self.id
                    && office.surplus.load(Ordering::Relaxed) > 1
                    && office.next_theft_ns.load(Ordering::Relaxed) <= now_ns
            })
        };
        let victim = match system.config.stealing {
            // cforall-actors, "Victim Selection": whose last attempt is longest ago has been busy longest.
            Stealing::LongestVictim => {
                candidates().min_by_key(|other| system.offices[*other as usize].last_theft_ns.load(Ordering::Relaxed))
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
        self.office().last_theft_ns.store(now_ns, Ordering::Relaxed);
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

    /// Answers the first thief that waits. In RUNTIME.
    #[cold]
    pub(crate) fn give_to_thief(&self) {
        let thieves = std::mem::take(&mut self.office().lock().thieves);
        let Some(&thief) = thieves.first() else { return };
        self.flush();
        let start_ns = self.system.now_ns();
        if start_ns < self.office().next_theft_ns.load(Ordering::Relaxed) {
            return self.ledger.steal_no_candidate.add(1);
        }
        match self.choose_stages(thief) {
            Some(given) => self.give(given),
            None => self.ledger.steal_no_candidate.add(1),
        }
        let end_ns = self.system.now_ns();
        self.office().next_theft_ns.store(end_ns + (end_ns - start_ns) * SHARE_OF_TIME, Ordering::Relaxed);
    }

    /// Moves stages with their records to the thief.
    fn give(&self, given: StageSet) {
        let thief = given.thief;
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
                return;
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
        self.hand_over(&given, loot, &mut theirs);
        drop(mine);
        self.system.arrived(&self.system.offices[thief as usize], theirs, thief);
        let sent = sent.min(kept[Lane::Normal as usize].bytes as u64);
        self.admit(kept);
        self.note_mail(sent);
        self.flush();
    }

    /// Moves the stages and their records to the thief, whose inbox and the own one are locked.
    fn hand_over(&self, given: &StageSet, loot: [Chain; 3], theirs: &mut Inbox) {
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
        for stage in given.iter() {
            // Release: pairs with the Acquire of whoever reads the route.
            self.system.route[stage as usize].store(thief, Ordering::Release);
        }
        self.system.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// About half of what waits, in whole stages; none if all of it is of one stage.
    fn choose_stages(&self, thief: u16) -> Option<StageSet> {
        let system = &self.system;
        let mut waiting = vec![0u64; system.route.len()];
        self.for_each_waiting(|record| {
            // SAFETY: records of the own queue.
            let record = unsafe { record.as_ref() };
            if !record.is_buried() {
                waiting[record.stage() as usize] += 1;
            }
        });
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        let mut stages: Vec<(u64, u16)> = (0..system.route.len() as u16)
            .filter(|stage| {
                waiting[*stage as usize] > 0
                    && !system.is_pinned(*stage)
                    && !core.holds.contains_key(stage)
                    && !system.full[*stage as usize].is_full()
            })
            .map(|stage| (waiting[stage as usize], stage))
            .collect();
        if stages.len() < 2 {
            return None;
        }
        stages.sort_unstable_by(|a, b| b.cmp(a));
        let mut given = StageSet::new(system.route.len(), thief);
        let (mut keep, mut give) = (0, 0);
        for (count, stage) in stages {
            if keep <= give {
                keep += count;
            } else {
                give += count;
                given.insert(stage);
            }
        }
        Some(given)
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
    fn new(stages: usize, thief: u16) -> Self {
        StageSet { thief, words: vec![0; stages.div_ceil(64)] }
    }

    fn insert(&mut self, stage: u16) {
        self.words[stage as usize / 64] |= 1 << (stage % 64);
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
