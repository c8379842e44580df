//! What waits in the queues, for whom: counted by the workers themselves when somebody asks.
//!
//! A worker counts at its next checkup after it was asked, so while it is busy a census is a few milliseconds old. Where
//! nobody asks, it costs a checkup one comparison. Not in it is what has not come into a worker's queue yet, and what an
//! actor has put aside since it waits in a handler, for a guard or for its supervisor.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use crate::memory::cell::Cell;
use crate::memory::record::described;
use crate::message::address::RawAddress;
use crate::sync::locks::lock;
use crate::system::SystemCore;
use crate::worker::Worker;
use crate::worker::exchange::RECORD_BYTES;
use crate::worker::shared::Presence;

/// So many records are looked at by one worker.
const RECORDS_MAX: usize = 16 * 1024;
/// So many actors are named by one worker: those for whom most waits.
const ACTORS_MAX: usize = 64;

/// What waits at a worker.
#[derive(Clone, Debug, Default)]
pub struct Census {
    /// Messages by stage.
    pub stages: BTreeMap<u16, u64>,
    /// Messages by actor, with its type: the 64 for whom most waits.
    pub actors: Vec<(RawAddress, &'static str, u64)>,
    /// There are more messages than the 16,384 that were counted.
    pub more: bool,
}

/// What a worker is at.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkerState {
    /// Messages that wait for it, estimated from their bytes.
    pub queued: u64,
    /// Stages that it runs.
    pub stages: Vec<u16>,
    /// Its own stages that are muted, since they have sent to somebody who is overloaded.
    pub muted_stages: usize,
    /// It sleeps.
    pub parked: bool,
    /// Who sends to it is slowed down.
    pub overloaded: bool,
    /// What it counted last when it was asked to; nothing where nothing waits.
    pub census: Census,
}

impl SystemCore {
    /// Has each worker count what waits for it, at its next checkup.
    pub fn ask_for_census(&self) {
        // Relaxed: that a worker sees it late makes its figures older, and nothing else.
        self.census_asked.fetch_add(1, Ordering::Relaxed);
    }

    /// What the workers are at; those of dedicated actors that have ended are not among them.
    pub fn worker_states(&self) -> Vec<WorkerState> {
        let mut stages = vec![Vec::new(); self.worker_table.len()];
        for (stage, worker) in self.route.iter().enumerate() {
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
                // A worker that rests has counted nothing since.
                census: if surplus == 0 { Census::default() } else { lock(&shared.census).clone() },
            })
        });
        states.flatten().collect()
    }
}

impl Worker {
    /// At a checkup.
    pub(crate) fn count_queue(&self) {
        let asked = self.system.census_asked.load(Ordering::Relaxed);
        if asked == self.census_given.replace(asked) {
            return;
        }
        let (mut census, mut actors) = (Census::default(), HashMap::<NonNull<Cell>, (&str, u64)>::new());
        let mut seen = 0;
        self.for_each_waiting(|record| {
            // SAFETY: whole records of the own queue, that were not run.
            let head = unsafe { record.as_ref() };
            if head.is_buried() {
                return;
            }
            seen += 1;
            if seen <= RECORDS_MAX {
                *census.stages.entry(head.stage()).or_default() += 1;
                // SAFETY: as above.
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
