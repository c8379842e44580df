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
//! [`full_stages`](crate::office::Office::full_stages) counts it.
//!
//! *Frozen cells.* A stage is full, too, as long as the cell of one of its actors is frozen ([`crate::moving`]) and more than [`FROZEN_BYTES`] wait
//! there. Such a stage is not held: the requests that thaw the cell come through. It is full until less than half of that waits, because the mail was
//! run or sent on. Senders in the same stage are not slowed, because that would hold the requests, too.
//!
//! A cell thaws when other theaters have answered. They may wait for room on a link that this system makes only when a muted sender goes on.
//! Therefore [`SystemCore::let_senders_on`] ends the fullness of such stages now and then: each muted stage sends once before it is muted again.
//!
//! *Nobody is muted for ever.* A stage that is full for what was put aside is held, or its marker is under way. It is held for a gate or a stuck handler, and
//! goes on when that ends. It is not muted ([`Worker::may_be_muted`]): what it sends while it works off what was put aside may be
//! for itself, or for another one that is full, and its marker would wait behind that. So it sends unslowed, by what was put
//! aside. That the marker has been run is seen by who is muted as that a worker is relieved is: the flag is lowered first
//! ([`crate::muting`]).
//!
//! *What it costs.* Nothing where no stage is full. As long as one is, the actors of its worker send to each other with a look at
//! whom they send to, as actors of other workers do.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::address::Lane;
use crate::boundary::RECORD_BYTES;
use crate::cell::Cell;
use crate::core::{Core, Hold};
use crate::record::{CONTROL, Described, HEAD_BYTES, IDENTITY, Op, Outcome, PASSED, Record};
use crate::resident::MailKind;
use crate::segment::Chain;
use crate::signal::Signal;
use crate::system::SystemCore;
use crate::worker::{Worker, current};

/// With more bytes of records at a frozen cell, its stage is full.
const FROZEN_BYTES: usize = 256 * RECORD_BYTES as usize;

/// Of one stage.
#[derive(Default)]
pub(crate) struct Fullness {
    flags: AtomicU8,
    /// The frozen cells with much mail. Changed by the worker that runs the stage.
    swollen: AtomicU32,
    /// The system's time in nanoseconds at which it became full for those.
    since_ns: AtomicU64,
}

impl Fullness {
    /// What was put aside waits for a gate to open.
    pub(crate) const WAITS: u8 = 1;
    /// It waits for a stuck handler to return.
    pub(crate) const STUCK: u8 = 2;
    /// A marker is under way.
    const MARKED: u8 = 4;
    /// Much mail waits at a frozen cell.
    const FROZEN: u8 = 8;
    const PUT_ASIDE: u8 = Fullness::WAITS | Fullness::STUCK;
    const FULL: u8 = Fullness::PUT_ASIDE | Fullness::FROZEN;

    pub(crate) fn is_full(&self) -> bool {
        // SeqCst: see `muting.rs`; either the muter sees it lowered, or is found by who has lowered it.
        self.flags.load(Ordering::SeqCst) & Fullness::FULL != 0
    }

    /// Whether a stuck handler has to return before it is not full any more.
    pub(crate) fn is_stuck(&self) -> bool {
        // Relaxed: who asks looks again.
        self.flags.load(Ordering::Relaxed) & Fullness::STUCK != 0
    }

    /// It is full. True: it was not before.
    pub(crate) fn raise(&self, why: u8) -> bool {
        self.flags.fetch_or(why, Ordering::SeqCst) & Fullness::FULL == 0
    }

    /// A handler of it is stuck: if it is full for what was put aside, it is so for that.
    pub(crate) fn note_stuck(&self) {
        if self.flags.load(Ordering::SeqCst) & Fullness::PUT_ASIDE != 0 {
            self.flags.fetch_or(Fullness::STUCK, Ordering::SeqCst);
        }
    }

    /// It goes on, by who runs it. True: it is full for what was put aside, and there is no marker yet.
    fn mark(&self) -> bool {
        // Nobody else writes these flags meanwhile: the stage is held by no thread any more.
        let was = self.flags.load(Ordering::SeqCst);
        if was & Fullness::PUT_ASIDE == 0 {
            return false;
        }
        // In this order, so that it is full all the time.
        self.flags.fetch_or(Fullness::WAITS | Fullness::MARKED, Ordering::SeqCst);
        self.flags.fetch_and(!Fullness::STUCK, Ordering::SeqCst);
        was & Fullness::MARKED == 0
    }

    /// It is not full for these any more. True: it was full before, and is not now.
    fn lower(&self, flags: u8) -> bool {
        let was = self.flags.fetch_and(!flags, Ordering::SeqCst);
        was & Fullness::FULL != 0 && was & Fullness::FULL & !flags == 0
    }
}

impl SystemCore {
    /// Has those go on that were slowed because much mail waits at a frozen cell, if they have waited for longer than `time`. They are slowed again when
    /// more has come there.
    pub fn let_senders_on(&self, time: Duration) {
        let now_ns = self.now_ns();
        let too_long = |fullness: &Fullness| {
            // Relaxed: it is looked at again.
            let is_frozen = fullness.flags.load(Ordering::Relaxed) & Fullness::FROZEN != 0;
            is_frozen && now_ns.saturating_sub(fullness.since_ns.load(Ordering::Relaxed)) > time.as_nanos() as u64
        };
        for (stage, fullness) in self.full.iter().enumerate().filter(|(_, fullness)| too_long(fullness)) {
            // A full stage stays with its worker.
            let worker = self.route[stage].load(Ordering::Acquire);
            if fullness.lower(Fullness::FROZEN) {
                let office = &self.offices[usize::from(worker)];
                office.full_stages.fetch_sub(1, Ordering::SeqCst);
                drop(office.lock());
                office.relieved.notify_all();
                if office.muted_on_me.swap(false, Ordering::SeqCst) {
                    self.offices.made().for_each(|(other, _)| self.rouse(other));
                    office.rouse_elsewhere();
                }
            }
        }
    }
}

impl Worker {
    /// Something was put aside for `stage`: it may be full now. Then nobody sends to it without that being seen, nor for longer
    /// than it takes to send once. In RUNTIME.
    pub(crate) fn fill(&self, core: &Core, stage: u16) {
        let why = core.holds.get(&stage).and_then(Hold::fullness);
        if why.is_some_and(|why| self.system.full[stage as usize].raise(why)) {
            self.note_full();
        }
    }

    /// A message was deferred at a frozen cell: its stage may be full now. In RUNTIME.
    #[cold]
    pub(crate) fn swells(&self, cell: NonNull<Cell>) {
        // SAFETY: this thread runs the cell's stage; cells are never freed, and the reference to the cold part is short.
        let (stage, deferred) = unsafe { (cell.as_ref().stage(), &mut Cell::cold_mut(cell).deferred) };
        if deferred.later_bytes() <= FROZEN_BYTES {
            return;
        }
        let fullness = &self.system.full[usize::from(stage)];
        if !std::mem::replace(&mut deferred.is_swollen, true) {
            fullness.swollen.fetch_add(1, Ordering::Relaxed);
        }
        if fullness.flags.load(Ordering::Relaxed) & Fullness::FROZEN == 0 {
            fullness.since_ns.store(self.system.now_ns(), Ordering::Relaxed);
            if fullness.raise(Fullness::FROZEN) {
                self.note_full();
            }
        }
    }

    /// Messages were taken from the deferred ones of the cell, or its actor ends, with all of them. In RUNTIME.
    pub(crate) fn subsides(&self, cell: NonNull<Cell>, ends: bool) {
        // SAFETY: as in `swells`.
        let (stage, cold) = unsafe { (cell.as_ref().stage(), Cell::cold(cell).as_mut()) };
        let Some(deferred) = cold.map(|cold| &mut cold.deferred) else { return };
        if !deferred.is_swollen || (!ends && deferred.later_bytes() > FROZEN_BYTES / 2) {
            return;
        }
        deferred.is_swollen = false;
        let fullness = &self.system.full[usize::from(stage)];
        if fullness.swollen.fetch_sub(1, Ordering::Relaxed) == 1 && fullness.lower(Fullness::FROZEN) {
            self.office().full_stages.fetch_sub(1, Ordering::SeqCst);
            self.relieve(self.office());
        }
    }

    /// Whether stages of this worker are full. Nobody adopts them.
    pub(crate) fn has_full_stages(&self) -> bool {
        self.office().full_stages.load(Ordering::Relaxed) > 0
    }

    /// A stage has become full.
    fn note_full(&self) {
        self.office().full_stages.fetch_add(1, Ordering::SeqCst);
        // What this worker's own actors send, they append without a look at anything, as long as there is room.
        self.logs[self.id as usize].stop();
        self.tenure.signal.raise(Signal::TICK);
    }

    /// What was put aside for `stage` goes on: puts a marker behind it if it is full.
    pub(crate) fn mark(&self, stage: u16, lanes: &mut [Chain; 3]) {
        let fullness = &self.system.full[stage as usize];
        let Some(first) = lanes.iter().find_map(Chain::first_record) else {
            return;
        };
        if fullness.mark() {
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
        if self.system.full[stage as usize].lower(Fullness::PUT_ASIDE | Fullness::MARKED) {
            self.office().full_stages.fetch_sub(1, Ordering::SeqCst);
            self.relieve(self.office());
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
