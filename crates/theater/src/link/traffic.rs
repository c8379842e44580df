//! The number of messages to each actor from each theater, for rebalancing by traffic.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use playhouse_actor::ActorId;

use crate::lock::lock;

/// The number of messages to each actor from each theater.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// The number of active policies that need the counts.
    counts: AtomicUsize,
    counted: Mutex<Counts>,
}

/// By actor: the number of messages by theater.
pub(crate) type Counts = HashMap<ActorId, HashMap<u64, u64>>;

impl Traffic {
    /// Notes that one policy more, or one less, needs the counts.
    pub(crate) fn count(&self, on: bool) {
        // Relaxed: a few messages more or less are counted.
        if on {
            self.counts.fetch_add(1, Ordering::Relaxed);
        } else if self.counts.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.take();
        }
    }

    /// Returns the counts since the last call.
    pub(crate) fn take(&self) -> Counts {
        std::mem::take(&mut *lock(&self.counted))
    }

    /// Counts a message from `theater` for `actor`.
    #[inline]
    pub(crate) fn note(&self, actor: ActorId, theater: u64) {
        if self.counts.load(Ordering::Relaxed) > 0 {
            let mut counted = lock(&self.counted);
            *counted.entry(actor).or_default().entry(theater).or_default() += 1;
        }
    }
}
