//! Full stages: the limits on parked records. Senders to a full stage are muted.
//!
//! A stage that is parked on its own account (a stuck handler, a closed gate) is full when more waits for it than its
//! limit allows. It stays full until its parked records have been run. Behind those goes a *marker*, a record that does
//! nothing but report that. Without the marker, all muted senders would send again before the first parked message is
//! run. If that message closes the gate again, more would wait each time, without a bound.
//!
//! The marker is mail of its stage, and therefore stays behind the same records wherever these go: into the queue,
//! parked again, or to the thread that takes the worker over. A stage has one marker at most. Records that are parked
//! behind it (the stage was parked again before the marker was run) were sent before the senders were muted. They count
//! when the stage is parked the next time. A full stage is not given to thieves (and not adopted, because its worker
//! has mail or has parked it). It is therefore full at one worker, whose
//! [`full_stages`](crate::worker::inbox::WorkerShared::full_stages) counts it.
//!
//! *No stage is muted for ever.* A full stage is parked, or its marker is under way. It is parked for a gate or a stuck
//! handler, and goes on when that ends. It is not muted ([`Worker::may_be_muted`]). The messages that it sends while it
//! works off its parked records may be for itself, or for another full stage, and its marker would wait behind them. It
//! therefore sends unslowed, up to the number of its parked records. A worker with a muted stage registers with the
//! full stage, in the byte that says that it is full. The worker that lowers the byte finds that and rouses all others.
//! The worker does not register with the stage's worker, because the stage may have another one by then: a thief,
//! before it was full again, or the thread that took over the stages of a stuck handler.
//!
//! *Costs.* A system without full stages pays nothing. As long as one is, the actors of its worker check the receiver
//! of each message that they send to each other, like actors of other workers do.

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering;

use crate::memory::raw_address::Lane;
use crate::memory::record::{CONTROL, Described, HEAD_BYTES, IDENTITY, Op, Outcome, Record};
use crate::memory::segment::Chain;
use crate::sync::worker_requests::Signal;
use crate::user_code::mail_kind::MailKind;
use crate::worker::core::{Core, Parked};
use crate::worker::{Worker, current};

impl Worker {
    /// Checks whether `stage`, which has parked a record, is full now. From then on every send to it sees that, after
    /// at most one send under way. In RUNTIME.
    pub(crate) fn fill(&self, core: &Core, stage: u16) {
        let why = core.parked.get(&stage).and_then(Parked::backpressure);
        if why.is_some_and(|why| self.system.routing.full[stage as usize].raise(why)) {
            self.shared().full_stages.fetch_add(1, Ordering::SeqCst);
            // This worker's own actors append without any check, as long as there is room.
            self.logs[self.id as usize].stop();
            self.ownership.signal.raise(Signal::TICK);
        }
    }

    /// Puts a marker behind the parked records of `stage`, which goes on, if the stage is full.
    pub(crate) fn mark(&self, stage: u16, lanes: &mut [Chain; 3]) {
        let backpressure = &self.system.routing.full[stage as usize];
        let Some(first) = lanes.iter().find_map(Chain::first_record) else {
            return;
        };
        if backpressure.mark() {
            // The marker has the receiver of the first record, and therefore the same stage.
            // SAFETY: a whole record of the chain.
            let (cell, tag) = unsafe { (first.as_ref().cell, first.as_ref().tag) };
            let marker = Record { thunk: marker, cell, tag: (tag & IDENTITY) | CONTROL | (HEAD_BYTES / 8) as u64 };
            // SAFETY: a whole record, which is moved.
            unsafe {
                lanes[Lane::Normal as usize].push_bytes(ptr::from_ref(&marker).cast(), HEAD_BYTES, Some(&self.pool))
            };
        }
    }

    /// Notes that all parked records of `stage` have been run.
    fn is_through(&self, stage: u16) {
        let Some(waited_for) = self.system.routing.full[stage as usize].lower() else { return };
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
        return Described { actor, kind, name, may_wait: false, is_gone: false, bytes: 0 }.answer();
    }
    // `None`: the system has ended, and no stage is muted any more.
    if let Some(worker) = current() {
        // SAFETY: the record is a whole marker.
        worker.is_through(unsafe { record.as_ref() }.stage());
    }
    Outcome::Passed
}
