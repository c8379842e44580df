//! Counts of the messages in the queues, by receiver: made by the workers themselves on request.
//!
//! A worker counts at its next checkup after a request. While it is busy, a census is therefore a few milliseconds old.
//! Without a request, it costs a checkup one comparison. Messages that have not come into a worker's queue yet do not
//! count. Messages that an actor defers, because it waits in a handler, for a guard or for its supervisor, do not count
//! either.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use crate::memory::cell::Cell;
use crate::memory::raw_address::RawAddress;
use crate::memory::record::described;
use crate::observe::census::{Census, WorkerState};
use crate::sync::locks::lock;
use crate::worker::Worker;
use crate::worker::exchange::RECORD_BYTES;
use crate::worker::inbox::Presence;
use crate::worker::system_core::SystemCore;

/// The largest number of records that one worker visits.
const RECORDS_MAX: usize = 16 * 1024;
/// The largest number of actors that one worker names: those with the most messages.
const ACTORS_MAX: usize = 64;

impl SystemCore {
    /// Has each worker count the messages that wait for it, at its next checkup.
    pub fn ask_for_census(&self) {
        // Relaxed: a worker that sees the request late only gives older figures.
        self.observation.census_asked.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the states of the workers, except those of dedicated actors that have ended.
    pub fn worker_states(&self) -> Vec<WorkerState> {
        let mut stages = vec![Vec::new(); self.worker_table.len()];
        for (stage, worker) in self.routing.route.iter().enumerate() {
            stages[worker.load(Ordering::Relaxed) as usize].push(stage as u16);
        }
        let states = self.worker_table.made().map(|(id, shared)| {
            let inbox = shared.lock();
            let (arrived, parked) = (inbox.sent_bytes() / RECORD_BYTES, inbox.presence == Presence::Parked);
            let dedicated_and_gone = usize::from(id) >= self.config.workers && inbox.thread.is_none();
            drop(inbox);
            let surplus = shared.shown.surplus.load(Ordering::Relaxed);
            (!dedicated_and_gone).then(|| WorkerState {
                queued: surplus + arrived,
                stages: std::mem::take(&mut stages[usize::from(id)]),
                muted_stages: shared.muted_stages.load(Ordering::Relaxed),
                parked,
                overloaded: shared.overloaded.load(Ordering::Relaxed) || shared.pressed.load(Ordering::Relaxed),
                // An idle worker has counted nothing since it became idle.
                census: if surplus == 0 { Census::default() } else { lock(&shared.census).clone() },
            })
        });
        states.flatten().collect()
    }
}

impl Worker {
    /// Counts the queue at a checkup, if there was a request.
    pub(crate) fn count_queue(&self) {
        let asked = self.system.observation.census_asked.load(Ordering::Relaxed);
        if asked == self.census_given.replace(asked) {
            return;
        }
        let (mut census, mut actors) = (Census::default(), HashMap::<NonNull<Cell>, (&str, u64)>::new());
        let mut seen = 0;
        self.for_each_waiting(|record| {
            // SAFETY: whole records of the own queue that were not run.
            let head = unsafe { record.as_ref() };
            if head.is_buried() {
                return;
            }
            seen += 1;
            if seen <= RECORDS_MAX {
                *census.stages.entry(head.stage()).or_default() += 1;
                // SAFETY: a whole record of the own queue that was not run.
                let new = || (unsafe { described(record) }.actor, 0);
                actors.entry(head.cell).or_insert_with(new).1 += 1;
            }
        });
        census.more = seen > RECORDS_MAX;
        let counted = actors.into_iter().map(|(cell, (actor, waiting))| (RawAddress::of(cell), actor, waiting));
        census.actors = counted.collect();
        census.actors.sort_unstable_by_key(|(_, _, waiting)| Reverse(*waiting));
        census.actors.truncate(ACTORS_MAX);
        *lock(&self.shared().census) = census;
    }
}
