//! Handing a log over to its worker, or adopting the stages of its receivers. `exchange.rs` has the argument that the
//! order of messages is kept.

use std::sync::atomic::Ordering;

use crate::memory::raw_address::Lane;
use crate::memory::record::Record;
use crate::memory::segment::{Chain, Segment, copy_bytes_max};
use crate::policy::config::Stealing;
use crate::policy::decisions::{self, Idle, Pair};
use crate::policy::trial_verdict;
use crate::worker::Worker;
use crate::worker::inbox::{Inbox, Presence};
use crate::worker::outside_delivery::WokenBy;

impl Worker {
    /// Hands `chain` to worker `dest`. In RUNTIME, also from within a handler.
    pub(crate) fn deliver(&self, dest: u16, chain: Chain) {
        self.deliver_with(dest, chain, false);
    }

    /// Hands over the log of `dest` from within a handler that has sent many messages to it. Does so only if worker
    /// `dest` is idle and this worker would not adopt its stages. Worker `dest` can then handle the first messages
    /// while the handler sends more.
    pub(crate) fn hand_over_to_idle(&self, dest: u16) {
        let Some(idle) = self.system.idle.workers.kind_of(dest) else { return };
        let log = &self.logs[usize::from(dest)];
        // SAFETY: the log is open and holds a burst: there is a whole record at its start.
        let first = unsafe { &*Segment::body(log.first.get()).cast::<Record>() };
        if !self.would_adopt(dest, idle, first) {
            self.deliver(dest, log.seal());
        }
    }

    /// Returns whether this worker has little enough to do to adopt the stages that it has sent to, and does not wake
    /// their worker. `sent` is the first record that was sent.
    pub(super) fn would_adopt(&self, dest: u16, idle: Idle, sent: &Record) -> bool {
        // For a kind that this worker has never timed, the average of worker `dest` is the estimate.
        let of_dest = || self.system.worker_table[usize::from(dest)].average_ns.load(Ordering::Relaxed);
        let sent_ns = self.expected_ns(sent).unwrap_or_else(of_dest);
        let gulps = self.beat.load(Ordering::Relaxed) - self.handed_over.get();
        let messages = self.handled_in_all().wrapping_sub(self.handled_at_idle.get());
        let now_ns = self.system.now_ns();
        let pair = Pair {
            idle,
            cores_busy: self.are_cores_busy(),
            takes_turns: decisions::takes_turns(gulps, messages),
            idle_shares: self.idle_share_of(self.id, now_ns) + self.idle_share_of(dest, now_ns),
        };
        let mut own = self.backlog();
        own.is_short &= sent_ns < trial_verdict::SHORT_NS && !self.is_apart(dest);
        decisions::adopts(own, pair, self.system.idle.wake_ns)
    }

    /// Returns the number of workers that are not parked.
    fn running(&self) -> usize {
        let workers = self.system.config.workers;
        workers - self.system.idle.workers.parked().min(workers)
    }

    /// Returns whether at least as many workers run as there are cores.
    pub(super) fn are_cores_busy(&self) -> bool {
        self.running() >= self.system.idle.cores
    }

    /// Returns whether more workers run than there are cores.
    pub(crate) fn runs_beyond_cores(&self) -> bool {
        self.system.config.workers > self.system.idle.cores && self.running() > self.system.idle.cores
    }

    /// Returns true if the receivers' stages were adopted. The mail has to be taken before any record runs.
    pub(super) fn deliver_or_adopt(&self, dest: u16, chain: Chain) -> bool {
        self.deliver_with(dest, chain, true)
    }

    fn deliver_with(&self, dest: u16, chain: Chain, may_adopt: bool) -> bool {
        if chain.is_empty() {
            chain.recycle(Some(&self.pool));
            return false;
        }
        let shared = &self.system.worker_table[dest as usize];
        let mut inbox = shared.lock();
        // SAFETY: used by this thread only, in short borrows.
        let route = unsafe { &mut *self.route.get() };
        if !route.is_current(dest, inbox.departures) {
            route.note_departures(dest, inbox.departures);
            self.stale.set(true);
            if !self.is_for(dest, &chain) {
                drop(inbox);
                self.reroute(chain);
                return false;
            }
        }
        if may_adopt
            && inbox.presence != Presence::Awake
            && self.system.config.stealing != Stealing::None
            && self.adopt(&mut inbox, dest, &chain)
        {
            drop(inbox);
            self.enqueue(chain);
            return true;
        }
        if inbox.presence == Presence::Idle {
            self.handed_over.set(self.beat.load(Ordering::Relaxed));
        }
        self.ledger.flushes.add(1);
        if shared.pressed.load(Ordering::Relaxed) && !self.accounts.borrow().are_kept() {
            // Without accounts, this worker cannot tell whether a source has sent the chain.
            shared.standing.note_source();
        }
        let queued_bytes = inbox.queued_bytes as usize;
        let lane = inbox.lane(Lane::Normal);
        let mut chain = chain;
        // A few records are copied if there is room; otherwise the segment goes over unchanged, warm in this core's
        // cache.
        if !lane.is_empty()
            && chain.first == chain.last
            && lane.room() >= chain.bytes
            && chain.bytes <= copy_bytes_max(lane.bytes + queued_bytes)
        {
            // SAFETY: whole records, which are moved.
            unsafe { lane.push_bytes(Segment::body(chain.first), chain.bytes, None) };
        } else {
            lane.append(chain.take());
        }
        // This worker wakes 1 receiver per gulp itself. Workers that are awake wake the others.
        let wakes = inbox.presence == Presence::Parked && !inbox.polls;
        let others_wake =
            wakes && self.woke_at.replace(self.beat.load(Ordering::Relaxed)) == self.beat.load(Ordering::Relaxed);
        let by = if others_wake { WokenBy::Others } else { WokenBy::Sender };
        self.system.arrived_for(shared, inbox, dest, by);
        chain.recycle_spent(Some(&self.pool));
        false
    }

    /// Returns whether `worker`, whose inbox is locked, runs the stages of all records.
    fn is_for(&self, worker: u16, chain: &Chain) -> bool {
        let mut all = true;
        chain.for_each(|record| {
            // SAFETY: whole records.
            let stage = unsafe { record.as_ref().stage() };
            // Relaxed, because a stage leaves `worker` only under the lock, which the caller holds.
            all &= self.system.routing.route[usize::from(stage)].load(Ordering::Relaxed) == worker;
        });
        all
    }

    /// Posts each record to the present worker of its stage, because stages have moved.
    #[cold]
    fn reroute(&self, chain: Chain) {
        // SAFETY: the chain owns whole records; each is handed over once.
        chain.consume(Some(&self.pool), |record| unsafe {
            self.system.post_anyway(Lane::Normal, record);
        });
    }

    /// Takes over the stages of `chain` from their idle worker instead of waking it, if this worker has little to do.
    /// Actors that run alternately therefore end up on one worker. The caller holds the idle worker's inbox.
    fn adopt(&self, inbox: &mut Inbox, from: u16, chain: &Chain) -> bool {
        let idle = if inbox.presence == Presence::Parked { Idle::Parked } else { Idle::Watching };
        // SAFETY: the chain is not empty: there is a whole record at its start.
        let first = unsafe { &*Segment::body(chain.first).cast::<Record>() };
        if inbox.has_mail() || !inbox.adoptable || !self.would_adopt(from, idle, first) {
            return false;
        }
        let mut pinned = false;
        // SAFETY: whole records.
        chain.for_each(|record| pinned |= self.system.is_pinned(unsafe { record.as_ref().stage() }));
        if pinned {
            return false;
        }
        inbox.departures += 1;
        // SAFETY: used by this thread only, in short borrows.
        let (route, near) = unsafe { (&mut *self.route.get(), &mut *self.near.get()) };
        chain.for_each(|record| {
            // SAFETY: whole records.
            let stage = unsafe { record.as_ref().stage() };
            // SAFETY: the record is for a stage of the system.
            if unsafe { route.worker_of(stage) } == from {
                route.adopt(stage, from, inbox.departures);
                // The stages of links are not for actors: see `note_own_stages`.
                if usize::from(stage) < self.system.config.stages {
                    near.push(stage);
                }
                // Release: pairs with the Acquire of a worker that reads the route.
                self.system.routing.route[stage as usize].store(self.id, Ordering::Release);
                self.ledger.adoptions.add(1);
            }
        });
        true
    }
}
