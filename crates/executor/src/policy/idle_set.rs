//! The set of idle workers.
//!
//! The set has 3 bits for each worker, except for dedicated ones: *watching*, *parked* and *called*. A worker with one
//! of the first two bits is idle. These two are hints, because only the presence under the inbox lock is certain. A
//! wrong bit costs a hand-over to a busy worker, or an idle worker is found later. It never costs a message.
//!
//! A *called* worker has mail and is not idle. Its presence is awake, but its thread still sleeps. The thread that
//! takes the bit wakes the sleeping thread. A worker with mail for many parked workers wakes one of them itself.
//! Workers that are awake wake the others. The number of awake workers therefore grows exponentially.
//!
//! Busy workers read one cache line for each 64 workers before each gulp. The line changes when one of its workers
//! begins or stops watching, parks, or is woken.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::policy::decisions::Idle;

/// The bits of 64 workers, in 2 cache lines of their own.
#[repr(align(128))]
struct Words {
    watching: AtomicU64,
    parked: AtomicU64,
    called: AtomicU64,
}

/// The idle workers of a system.
pub(crate) struct IdleWorkers {
    /// One element for each 64 workers.
    words: Box<[Words]>,
    /// The number of workers that can be in the set. Dedicated workers have larger numbers.
    workers: u16,
}

impl IdleWorkers {
    pub(crate) fn of(workers: usize) -> IdleWorkers {
        let words = || Words { watching: AtomicU64::new(0), parked: AtomicU64::new(0), called: AtomicU64::new(0) };
        IdleWorkers { words: (0..workers.div_ceil(64)).map(|_| words()).collect(), workers: workers as u16 }
    }

    fn bits(&self, worker: u16, idle: Idle) -> Option<(&AtomicU64, u64)> {
        if worker >= self.workers {
            return None;
        }
        let words = &self.words[usize::from(worker) / 64];
        let word = if idle == Idle::Watching { &words.watching } else { &words.parked };
        Some((word, 1 << (worker % 64)))
    }

    /// Puts a worker into the set. Relaxed is enough for the bits of idle workers, because they are hints.
    pub(crate) fn insert(&self, worker: u16, idle: Idle) {
        if let Some((word, bit)) = self.bits(worker, idle) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Takes a worker out of the set. Returns whether it was in the set.
    pub(crate) fn remove(&self, worker: u16, idle: Idle) -> bool {
        let Some((word, bit)) = self.bits(worker, idle) else { return false };
        word.load(Ordering::Relaxed) & bit != 0 && word.fetch_and(!bit, Ordering::Relaxed) & bit != 0
    }

    /// Returns the kind of some idle worker: `Watching` if any worker watches.
    #[inline]
    pub(crate) fn any(&self) -> Option<Idle> {
        let mut found = None;
        for words in &self.words {
            if words.watching.load(Ordering::Relaxed) != 0 {
                return Some(Idle::Watching);
            }
            if words.parked.load(Ordering::Relaxed) != 0 {
                found = Some(Idle::Parked);
            }
        }
        found
    }

    /// Marks a worker as called. Any other worker and the monitor may then wake it. Returns false for a dedicated
    /// worker.
    pub(crate) fn call(&self, worker: u16) -> bool {
        if worker >= self.workers {
            return false;
        }
        // Release: pairs with the Acquire in `take_called`.
        self.words[usize::from(worker) / 64].called.fetch_or(1 << (worker % 64), Ordering::Release);
        true
    }

    /// Takes the bit of a called worker. The caller wakes that worker.
    #[inline]
    pub(crate) fn take_called(&self) -> Option<u16> {
        (0..).zip(&self.words).find_map(|(at, words)| {
            let mut called = words.called.load(Ordering::Relaxed);
            while called != 0 {
                let bit = called & called.wrapping_neg();
                called = words.called.fetch_and(!bit, Ordering::Acquire);
                // If the bit is gone, another thread has taken it.
                if called & bit != 0 {
                    return Some(at * 64 + bit.trailing_zeros() as u16);
                }
            }
            None
        })
    }

    /// Returns the kind of idleness of this worker, or `None` if it is not idle.
    pub(crate) fn kind_of(&self, worker: u16) -> Option<Idle> {
        let is = |idle| self.bits(worker, idle).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0);
        [Idle::Watching, Idle::Parked].into_iter().find(|idle| is(*idle))
    }

    /// Returns the number of parked workers.
    pub(crate) fn parked(&self) -> usize {
        self.words.iter().map(|words| words.parked.load(Ordering::Relaxed).count_ones() as usize).sum()
    }

    /// Returns an idle worker of this kind other than `me`: the first with a larger number, or else the first of all.
    pub(crate) fn first_but(&self, me: u16, idle: Idle) -> Option<u16> {
        let (count, own) = (self.words.len(), usize::from(me) / 64);
        (0..=count).find_map(|turn| {
            let at = (own + turn) % count;
            let words = &self.words[at];
            let word = if idle == Idle::Watching { &words.watching } else { &words.parked };
            let mut left = word.load(Ordering::Relaxed);
            if at == own % count {
                let larger = u64::MAX.checked_shl(u32::from(me % 64) + 1).unwrap_or(0);
                // The last turn finds the workers before `me` in the same word.
                left &= if turn == 0 { larger } else { !(larger | 1 << (me % 64)) };
            }
            (left != 0).then(|| (at * 64) as u16 + left.trailing_zeros() as u16)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_worker_is_taken_once_and_a_watching_one_is_preferred() {
        let idle = IdleWorkers::of(130);
        assert_eq!(idle.any(), None);
        idle.insert(129, Idle::Parked);
        assert_eq!((idle.any(), idle.parked()), (Some(Idle::Parked), 1));
        assert_eq!((idle.kind_of(129), idle.kind_of(128)), (Some(Idle::Parked), None));
        idle.insert(3, Idle::Watching);
        assert_eq!(idle.any(), Some(Idle::Watching));
        assert_eq!((idle.first_but(70, Idle::Watching), idle.first_but(3, Idle::Watching)), (Some(3), None));
        assert!(idle.remove(3, Idle::Watching) && !idle.remove(3, Idle::Watching));
        assert_eq!((idle.first_but(70, Idle::Watching), idle.first_but(0, Idle::Parked)), (None, Some(129)));
        assert!(idle.remove(129, Idle::Parked));
        assert!(!idle.remove(129, Idle::Parked));
    }

    #[test]
    fn workers_behind_the_taker_come_first() {
        let idle = IdleWorkers::of(64);
        for worker in [1, 5, 9] {
            idle.insert(worker, Idle::Parked);
        }
        let found = [1, 4, 5, 9, 10, 63].map(|me| idle.first_but(me, Idle::Parked));
        assert_eq!(found, [Some(5), Some(5), Some(9), Some(1), Some(1), Some(1)]);
    }

    #[test]
    fn a_called_worker_is_taken_once() {
        let idle = IdleWorkers::of(100);
        assert!(idle.call(99) && idle.call(2) && !idle.call(100));
        assert_eq!(idle.any(), None, "called workers are not idle");
        assert_eq!([(); 3].map(|()| idle.take_called()), [Some(2), Some(99), None]);
    }

    #[test]
    fn workers_with_threads_of_their_own_are_not_in_the_set() {
        let idle = IdleWorkers::of(2);
        for dedicated in [2, 63, 64] {
            idle.insert(dedicated, Idle::Parked);
            assert_eq!((idle.any(), idle.remove(dedicated, Idle::Parked)), (None, false));
        }
    }
}
