//! The actors that the threads of a system run: asked for when the threads do not end in time, and when one is about to
//! wait for itself.

use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use crate::memory::cell::Cell;
use crate::memory::raw_address::RawAddress;
use crate::memory::record::Record;
use crate::sync::locks::lock;
use crate::sync::worker_requests::Signal;
use crate::worker;
use crate::worker::Worker;
use crate::worker::system_core::SystemCore;

impl SystemCore {
    /// Returns the actors whose handlers, hooks or drops run just now, with the names of their types: for a system that
    /// has not ended in time.
    pub fn actors_at_work(&self) -> Vec<(RawAddress, &'static str)> {
        let mut workers: Vec<Arc<Worker>> = self.threads.posts.iter().filter_map(|post| lock(post).clone()).collect();
        for worker in lock(&self.threads.stuck.detached).iter().filter_map(Weak::upgrade) {
            // The monitor may be about to give the worker to a new thread.
            if !workers.iter().any(|known| Arc::ptr_eq(known, &worker)) {
                workers.push(worker);
            }
        }
        let at_work = workers.iter().filter_map(|worker| worker.running_actor());
        let ending = NonNull::new(self.threads.stuck.ending.load(Ordering::Relaxed)).and_then(actor_in);
        at_work.chain(ending).collect()
    }
}

/// Returns the actor that this thread runs, with the name of its type. Returns `None` if the thread runs no actor, or
/// the runtime's own code.
pub fn actor_at_work() -> Option<(RawAddress, &'static str)> {
    let worker = worker::current()?;
    if !worker.ownership.is_user() {
        return None;
    }
    match worker.innermost_nested() {
        Some(cell) => actor_in(cell),
        // SAFETY: in USER, the claimed record stays readable until the next one is claimed.
        None => receiver_of(unsafe { NonNull::new(worker.ownership.claimed())?.as_ref() }),
    }
}

impl Worker {
    /// Returns the innermost actor whose handler runs nested.
    fn innermost_nested(&self) -> Option<NonNull<Cell>> {
        let depth = self.nest_stages.iter().rposition(|stage| stage.load(Ordering::Acquire) > 0)?;
        NonNull::new(self.nest[depth].load(Ordering::Relaxed))
    }

    /// Returns the actor that this worker's thread runs: the innermost one, if handlers run nested. Returns `None` if
    /// it runs none.
    fn running_actor(&self) -> Option<(RawAddress, &'static str)> {
        let handoff = lock(&self.handoff);
        let claimed = match handoff.left_to_it() {
            Ok(left) => left?,
            Err(()) => self.ownership.revoke(self.has_full_fences())?,
        };
        let running_actor = match self.innermost_nested() {
            Some(cell) => actor_in(cell),
            // SAFETY: the claimed record stays readable while its thread runs it. The thread asks for the handoff lock,
            // which is held by this function, before it claims another record or enters RUNTIME.
            None => receiver_of(unsafe { claimed.as_ref() }),
        };
        if handoff.left_to_it().is_err() {
            self.ownership.signal.clear(Signal::REVOKED);
        }
        running_actor
    }
}

/// Returns the receiver of the record. Returns `None` if the receiver has ended: the record is a dead letter, and
/// another actor may have the cell.
fn receiver_of(record: &Record) -> Option<(RawAddress, &'static str)> {
    // SAFETY: cells are never freed, and the tag is atomic.
    let tag = unsafe { record.cell.as_ref() }.tag();
    (tag >> 16 == record.tag >> 16).then(|| actor_in(record.cell)).flatten()
}

/// Returns the address of the actor in this cell, and the name of its type. The actor may end during the call.
fn actor_in(cell: NonNull<Cell>) -> Option<(RawAddress, &'static str)> {
    // SAFETY: cells are never freed, and the fields that are read are atomic.
    let kind = unsafe { cell.as_ref() }.kind_if_any()?;
    Some((RawAddress::of(cell), (kind.name)()))
}
