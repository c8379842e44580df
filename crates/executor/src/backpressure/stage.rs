//! Whether more is put aside for a stage than may be: who sends to it is muted then.
//!
//! A stage that is put aside on its own account (a stuck handler, a closed gate) is full when more waits for it than its hold
//! allows, and stays full until what was put aside has been run: behind that goes a *marker*, a record that does nothing but say so.
//! If it were not full any more when it goes on, all who were muted would send before the first message of those that wait is
//! run; and where that closes the gate again, more would wait each time, without a bound.
//!
//! The marker is mail of its stage, so it stays behind what it was put behind, wherever that goes: into the queue, aside again, to
//! the thread that takes the worker over. There is one for a stage at most. What is put aside behind it (the stage was held again
//! before it was run) is what senders had sent before they were muted; it counts when the stage is held the next time. A
//! full stage is not given to thieves (and not adopted: its worker has mail, or holds it); so it is full at one worker, where
//! [`full_stages`](crate::worker::shared::Office::full_stages) counts it.
//!
//! *Nobody is muted for ever.* A full stage is held, or its marker is under way. It is held for a gate or a stuck handler, and
//! goes on when that ends. It is not muted ([`Worker::may_be_muted`]): what it sends while it works off what was put aside may be
//! for itself, or for another one that is full, and its marker would wait behind that. So it sends unslowed, by what was put
//! aside. A worker with a stage that is muted leaves word with the full stage, in the byte that says that it is full: the worker that
//! lowers it finds that word and rouses all others. The word is not left with the stage's worker, because the stage may have another
//! one by then: a thief's, before it was full again, or the thread's that took over the stages of a stuck handler.
//!
//! *What it costs.* Nothing where no stage is full. As long as one is, the actors of its worker send to each other with a look at
//! whom they send to, as actors of other workers do.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::memory::record::{CONTROL, Described, HEAD_BYTES, IDENTITY, Op, Outcome, PASSED, Record};
use crate::memory::segment::Chain;
use crate::message::address::Lane;
use crate::message::envelope::MailKind;
use crate::sync::signal::Signal;
use crate::worker::core::{Core, Parked};
use crate::worker::{Worker, current};

/// Of one stage.
#[derive(Default)]
pub(crate) struct StageBackpressure(AtomicU8);

impl StageBackpressure {
    /// What was put aside waits for a gate to open.
    pub(crate) const WAITS: u8 = 1;
    /// It waits for a stuck handler to return.
    pub(crate) const STUCK: u8 = 2;
    /// A marker is under way.
    const MARKED: u8 = 4;
    /// A worker has a stage that is muted for this one.
    const WAITED_FOR: u8 = 8;
    const FULL: u8 = StageBackpressure::WAITS | StageBackpressure::STUCK;

    pub(crate) fn is_full(&self) -> bool {
        self.0.load(Ordering::SeqCst) & StageBackpressure::FULL != 0
    }

    /// Returns whether the stage is full. If it is, the worker that lowers it learns that others wait for that.
    pub(crate) fn wait_for(&self) -> bool {
        let waited_for = StageBackpressure::WAITED_FOR;
        // Most often others wait already. Whoever lowers it later finds that, so nothing has to be written.
        let is_noted = |was: u8| was & StageBackpressure::FULL != 0 && was & waited_for != 0;
        is_noted(self.0.load(Ordering::SeqCst))
            || self.change(|was| (was & StageBackpressure::FULL != 0).then_some(was | waited_for)).is_some()
    }

    /// Whether a stuck handler has to return before it is not full any more.
    pub(crate) fn is_stuck(&self) -> bool {
        // Relaxed: who asks looks again.
        self.0.load(Ordering::Relaxed) & StageBackpressure::STUCK != 0
    }

    /// It is full. True: it was not before.
    pub(crate) fn raise(&self, why: u8) -> bool {
        self.0.fetch_or(why, Ordering::SeqCst) & StageBackpressure::FULL == 0
    }

    /// A handler of it is stuck: if it is full, it is so for that.
    pub(crate) fn note_stuck(&self) {
        if self.is_full() {
            self.0.fetch_or(StageBackpressure::STUCK, Ordering::SeqCst);
        }
    }

    /// It goes on, by who runs it. True: it is full, and there is no marker yet.
    fn mark(&self) -> bool {
        let marked = StageBackpressure::WAITS | StageBackpressure::MARKED;
        let was = self
            .change(|was| (was & StageBackpressure::FULL != 0).then_some(was & StageBackpressure::WAITED_FOR | marked));
        was.is_some_and(|was| was & StageBackpressure::MARKED == 0)
    }

    /// The stage is not full any more. Returns whether others wait for that, or `None` if it was not full.
    fn lower(&self) -> Option<bool> {
        let was = self.0.swap(0, Ordering::SeqCst);
        (was & StageBackpressure::FULL != 0).then_some(was & StageBackpressure::WAITED_FOR != 0)
    }

    /// Changes the byte and returns what it was, or `None` if `to` leaves it.
    fn change(&self, to: impl Fn(u8) -> Option<u8>) -> Option<u8> {
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, to).ok()
    }
}

impl Worker {
    /// Something was put aside for `stage`: it may be full now. Then nobody sends to it without that being seen, nor for longer
    /// than it takes to send once. In RUNTIME.
    pub(crate) fn fill(&self, core: &Core, stage: u16) {
        let why = core.parked.get(&stage).and_then(Parked::backpressure);
        if why.is_some_and(|why| self.system.full[stage as usize].raise(why)) {
            self.shared().full_stages.fetch_add(1, Ordering::SeqCst);
            // What this worker's own actors send, they append without a look at anything, as long as there is room.
            self.logs[self.id as usize].stop();
            self.ownership.signal.raise(Signal::TICK);
        }
    }

    /// What was put aside for `stage` goes on: puts a marker behind it if it is full.
    pub(crate) fn mark(&self, stage: u16, lanes: &mut [Chain; 3]) {
        let backpressure = &self.system.full[stage as usize];
        let Some(first) = lanes.iter().find_map(Chain::first_record) else {
            return;
        };
        if backpressure.mark() {
            // It is mail for whom that is for: of the same stage.
            // SAFETY: a whole record of the chain.
            let (cell, tag) = unsafe { (first.as_ref().cell, first.as_ref().tag) };
            let marker = Record { thunk: marker, cell, tag: (tag & IDENTITY) | CONTROL | (HEAD_BYTES / 8) as u64 };
            // SAFETY: a whole record, which is moved.
            unsafe {
                lanes[Lane::Normal as usize].push_bytes(ptr::from_ref(&marker).cast(), HEAD_BYTES, Some(&self.pool))
            };
        }
    }

    /// All has been run that was put aside for `stage`.
    fn is_through(&self, stage: u16) {
        let Some(waited_for) = self.system.full[stage as usize].lower() else { return };
        let shared = self.shared();
        shared.full_stages.fetch_sub(1, Ordering::SeqCst);
        // The lock orders this with a thread outside that saw the stage full and is about to wait.
        drop(shared.lock());
        shared.relieved.notify_all();
        if waited_for {
            self.rouse_others();
            // A worker of another system has left its name with the worker that ran the stage then.
            self.system.worker_table.made().for_each(|(_, shared)| shared.rouse_other_systems());
        }
    }
}

/// # Safety
/// A thunk: the record is a marker.
unsafe fn marker(record: NonNull<Record>, op: Op) -> Outcome {
    if matches!(op, Op::Describe | Op::Weigh) {
        let (actor, kind, name) = ("stage", MailKind::Control, "marker");
        return Described { actor, kind, name, may_wait: false, is_gone: false, bytes: 0 }.say();
    }
    // None: the system has ended, nobody is muted any more.
    if let Some(worker) = current() {
        // SAFETY: by the contract.
        worker.is_through(unsafe { record.as_ref() }.stage());
    }
    PASSED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_for_a_full_stage_is_found_when_it_is_lowered() {
        let full = StageBackpressure::default();
        assert!(!full.wait_for(), "it is not full");
        assert!(full.raise(StageBackpressure::WAITS));
        assert_eq!(full.lower(), Some(false), "nobody has waited since it is full");

        assert!(full.raise(StageBackpressure::STUCK));
        assert!(full.wait_for());
        assert!(full.mark(), "the first marker");
        assert!(!full.raise(StageBackpressure::WAITS), "held again before the marker was run");
        assert!(!full.mark(), "the marker is under way");
        assert!(full.wait_for());
        assert_eq!(full.lower(), Some(true));
        assert!(!full.is_full());
        assert_eq!(full.lower(), None);
        assert!(!full.mark(), "it is not full");
    }
}
