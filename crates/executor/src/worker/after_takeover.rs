//! The handoff of a worker's work, as seen by the thread that loses it. The protocol and its proof are in
//! [`crate::scheduler::monitor`].

use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::memory::cell::Cell;
use crate::memory::raw_address::Lane;
use crate::memory::record::Record;
use crate::memory::segment::{Segment, for_each_between};
use crate::sync::jitter::seam;
use crate::sync::locks::lock;
use crate::worker::Worker;
use crate::worker::core::Reason;

/// The owner of the worker's work; used under its lock.
#[derive(Default)]
pub(crate) struct HandoffState {
    /// The monitor has taken the work.
    pub(crate) detached: bool,
    /// The record that was claimed at that time, which stays the thread's own.
    pub(crate) left: Option<NonNull<Record>>,
    /// The stages that stay with the thread until its handler returns.
    pub(crate) stages: Vec<u16>,
    /// First segments of the taken queue and logs, which the thread frees.
    pub(crate) segments: Vec<*mut Segment>,
    /// For each log: the position up to which the monitor has taken records.
    pub(crate) taken: Vec<*mut u8>,
}

// SAFETY: the pointers are only compared, or used under the rules of the protocol in the module text.
unsafe impl Send for HandoffState {}

impl HandoffState {
    /// Returns the record that was left to the thread, if the thread has not run it to the end. Returns `Err` if the
    /// thread has the worker.
    pub(crate) fn left_to_it(&self) -> Result<Option<NonNull<Record>>, ()> {
        if self.detached { Ok(self.left.filter(|_| !self.stages.is_empty())) } else { Err(()) }
    }
}

impl Worker {
    /// Returns whether this thread, which has seen REVOKED, still has the worker. Waits for a monitor that is deciding.
    #[cold]
    pub(crate) fn handoff_kept(&self) -> bool {
        !lock(&self.handoff).detached
    }

    /// Returns whether `record` was left to this detached thread.
    pub(crate) fn handoff_left_me(&self, record: NonNull<Record>) -> bool {
        lock(&self.handoff).left == Some(record)
    }

    /// Posts the records that the monitor has not taken from this detached thread, and closes the logs.
    pub(crate) fn flush_detached(&self) {
        let mut handoff = lock(&self.handoff);
        self.post_rest(&mut handoff);
        for (dest, log) in self.logs.iter().enumerate() {
            // The segments were kept for the record under way. From this point on no record is appended. The queue's
            // own segments are freed at the end, because the claimed record lies in one.
            if dest == self.id as usize {
                log.stop();
                log.tail.store(std::ptr::null_mut(), Ordering::Relaxed);
            } else {
                // SAFETY: the log owns its segments; all records in them were taken.
                unsafe { self.free_segments(log.first.get()) };
                log.close();
            }
        }
        handoff.taken.clear();
    }

    /// Posts the records that were appended since the monitor looked last. Under the handoff lock, by the thread or the
    /// monitor.
    pub(crate) fn post_rest(&self, handoff: &mut HandoffState) {
        for (log, taken) in self.logs.iter().zip(&mut handoff.taken) {
            // Acquire: pairs with the Release in `append`: records before the tail are whole.
            let tail = log.tail.load(Ordering::Acquire);
            if !taken.is_null() && *taken != tail {
                // SAFETY: `[taken, tail)` are whole records of the last segment, moved out once.
                unsafe {
                    for_each_between(*taken, tail, &mut |record| self.system.post_anyway(Lane::Normal, record));
                }
                *taken = tail;
            }
        }
    }

    /// Returns the stages of this detached thread, whose stuck handler has returned. The thread then ends.
    pub(crate) fn leave_detached(&self) {
        self.write_out();
        self.flush_detached();
        seam(2);
        let handled = self.handled.replace(0);
        let stages = {
            let mut handoff = lock(&self.handoff);
            let log = &self.logs[self.id as usize];
            for segment in std::mem::take(&mut handoff.segments).into_iter().chain([log.first.get()]) {
                // SAFETY: the queue of this thread, whose records were taken or run.
                unsafe { self.free_segments(segment) };
            }
            log.close();
            std::mem::take(&mut handoff.stages)
        };
        self.system.threads.handled_detached.fetch_add(handled, Ordering::Relaxed);
        for stage in stages {
            self.system.return_stage(stage, Reason::Detached);
        }
        // Last, because the system is not idle before the parked records of these stages are under way. AcqRel: pairs
        // with the Acquire of the thread that finds the system idle.
        self.system.threads.detached.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The threads that no longer belong to the workers.
#[derive(Default)]
pub(crate) struct Stuck {
    /// The threads whose work the monitor has taken.
    pub(crate) detached: Mutex<Vec<Weak<Worker>>>,
    /// The actor that the end of the system is working on, or null.
    pub(crate) ending: AtomicPtr<Cell>,
}

impl Stuck {
    /// Notes that the monitor has taken the work of this worker's thread.
    pub(crate) fn note(&self, worker: &Arc<Worker>) {
        let mut detached = lock(&self.detached);
        detached.retain(|worker| worker.strong_count() > 0);
        detached.push(Arc::downgrade(worker));
    }

    /// Notes that the end of the system works on this actor, as long as the result lives.
    pub(crate) fn while_ending(&self, cell: NonNull<Cell>) -> impl Drop + '_ {
        struct Ended<'a>(&'a AtomicPtr<Cell>);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                self.0.store(null_mut(), Ordering::Relaxed);
            }
        }
        self.ending.store(cell.as_ptr(), Ordering::Relaxed);
        Ended(&self.ending)
    }
}
