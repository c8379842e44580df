//! Counts of the messages in the queues, by receiver. `worker/count_queue.rs` makes them.

use std::collections::BTreeMap;

use crate::memory::raw_address::RawAddress;

/// The messages that wait at a worker.
#[derive(Clone, Debug, Default)]
pub struct Census {
    /// Messages by stage.
    pub stages: BTreeMap<u16, u64>,
    /// Messages by actor, with its type: the 64 actors with the most messages.
    pub actors: Vec<(RawAddress, &'static str, u64)>,
    /// Whether there are more messages than the 16,384 that were counted.
    pub more: bool,
}

/// The state of a worker.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkerState {
    /// Messages that wait for the worker, estimated from their bytes.
    pub queued: u64,
    /// Stages that the worker runs.
    pub stages: Vec<u16>,
    /// The worker's own stages that are muted, because they have sent to an overloaded worker.
    pub muted_stages: usize,
    /// Whether the worker sleeps.
    pub parked: bool,
    /// Whether senders to the worker are slowed down.
    pub overloaded: bool,
    /// The worker's last census after a request; empty if no message waits.
    pub census: Census,
}
