//! Waiters outside a system's actors: each of them learns that the system has ended.
//!
//! Most waits end earlier, because the end of a system bounces its messages and ends its actors. The end does not do
//! that for an actor whose handler is stuck, nor for any other actor while threads are stuck. No answer comes from
//! these any more.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::task::Waker;

use crate::sync::locks::lock;
use crate::user_code::contained;
use crate::worker::system_core::SystemCore;

/// Wakes wakers, which are user code.
pub(crate) fn wake(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        contained(|| waker.wake()).unwrap_or(());
    }
}

/// A waiter outside a system that waits for an answer of one of its actors.
pub trait WaitsOutside: Send + Sync + 'static {
    /// Notes that the system has ended. Returns the waker to be woken for that, if it is a program's.
    fn system_ended(&self) -> Option<Waker>;
}

const SHARDS: usize = 8;

/// The waiters, in parts with a lock each.
#[derive(Default)]
pub(crate) struct Outsiders([Mutex<Shard>; SHARDS]);

#[derive(Default)]
struct Shard {
    entries: Vec<Option<Weak<dyn WaitsOutside>>>,
    free: Vec<usize>,
}

/// The entry of an outsider, which is removed when this is dropped.
pub struct WaitOutside {
    system: Arc<SystemCore>,
    shard: usize,
    entry: usize,
}

impl std::fmt::Debug for WaitOutside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaitOutside").finish_non_exhaustive()
    }
}

impl SystemCore {
    /// Calls `outsider` when this system has ended, if that happens before the result is dropped. If it has happened
    /// already, the outsider is called at once.
    pub fn wait_outside<T: WaitsOutside>(self: &Arc<Self>, outsider: &Arc<T>) -> WaitOutside {
        // Addresses of allocations of this size differ above these bits.
        let shard = (Arc::as_ptr(outsider).addr() >> 6) % SHARDS;
        let weak: Weak<dyn WaitsOutside> = Arc::<T>::downgrade(outsider);
        let entry = {
            let mut shard = lock(&self.shutdown.outsiders.0[shard]);
            let Shard { entries, free } = &mut *shard;
            let entry = free.pop().unwrap_or_else(|| {
                entries.push(None);
                entries.len() - 1
            });
            entries[entry] = Some(weak);
            entry
        };
        // Behind the lock: either this sees that the system has ended, or `note_ended` sees the entry.
        if self.has_ended() {
            wake(outsider.system_ended());
        }
        WaitOutside { system: Arc::clone(self), shard, entry }
    }

    /// Notes that the system has ended, or was given up: no answer of it comes any more. Returns the wakers of the
    /// waiters.
    #[must_use = "the wakers are to be woken"]
    pub(crate) fn note_ended(&self) -> Vec<Waker> {
        self.shutdown.ended.store(true, Ordering::Release);
        drop(lock(&self.quiescence.quiet));
        self.quiescence.became_quiet.notify_all();
        let mut wakers = Vec::new();
        for shard in &self.shutdown.outsiders.0 {
            let waiting: Vec<_> = lock(shard).entries.iter_mut().filter_map(Option::take).collect();
            wakers.extend(waiting.iter().filter_map(Weak::upgrade).filter_map(|outsider| outsider.system_ended()));
        }
        wakers
    }

    /// Returns whether the system has ended, or was given up.
    pub(crate) fn has_ended(&self) -> bool {
        self.shutdown.ended.load(Ordering::Acquire)
    }
}

impl Drop for WaitOutside {
    fn drop(&mut self) {
        let mut shard = lock(&self.system.shutdown.outsiders.0[self.shard]);
        shard.entries[self.entry] = None;
        shard.free.push(self.entry);
    }
}
