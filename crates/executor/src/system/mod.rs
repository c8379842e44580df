//! Systems: their start, spawning, timers, counters and end. [`crate::worker::system_core`] holds their state.

pub(crate) mod quiescence;
mod spawn;
mod start;
mod timers;

use std::sync::atomic::Ordering;

use crate::observe::stats::Counters;
use crate::worker::system_core::SystemCore;

impl SystemCore {
    /// Returns the counters of each worker, as of its last checkup (at most one tick old while it runs, exact while it
    /// is idle).
    pub fn counters(&self) -> Vec<Counters> {
        let mut counters = vec![Counters::default(); self.worker_table.len()];
        for (id, shared) in self.worker_table.made() {
            counters[usize::from(id)] = shared.ledgers.read();
        }
        counters[0].spawned += self.outside.spawned.load(Ordering::Relaxed);
        counters[0].dead_letters += self.outside.dead_letters.load(Ordering::Relaxed);
        counters[0].rejected += self.mailboxes.rejected.load(Ordering::Relaxed);
        counters[0].dropped += self.mailboxes.dropped.load(Ordering::Relaxed);
        counters[0].received += self.threads.handled_detached.load(Ordering::Relaxed);
        counters.truncate(
            self.config.workers.max(counters.iter().rposition(|c| *c != Counters::default()).map_or(0, |at| at + 1)),
        );
        counters
    }
}
