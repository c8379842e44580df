//! Counters of the executor: each worker has its own, and sums are made on demand (cforall-actors, "Safety and
//! Productivity").

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::sync::locks::lock;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counters of one worker, or their sum over all.
        ///
        /// # Examples
        ///
        /// ```
        /// # use playhouse_executor::Counters;
        /// fn print(counters: &Counters) {
        ///     for (name, count) in counters.pairs() {
        ///         println!("{name:>20} {count}");
        ///     }
        /// }
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counters { $($(#[$doc])* pub $name: u64),* }

        impl Counters {
            /// Adds `other` to each counter.
            pub fn add(&mut self, other: &Counters) { $(self.$name += other.$name;)* }

            /// Adds `other`, whose counts may be below zero.
            fn add_raw(&mut self, other: &Counters) { $(self.$name = self.$name.wrapping_add(other.$name);)* }

            fn not_below_zero(self) -> Counters { Counters { $($name: self.$name.cast_signed().max(0).cast_unsigned()),* } }

            /// Returns names and values, for printing.
            pub fn pairs(&self) -> Vec<(&'static str, u64)> { vec![$((stringify!($name), self.$name)),*] }
        }

        /// The counters as the worker writes them: plain loads and stores, because it is the only writer.
        #[derive(Default)]
        pub(crate) struct Ledger { $(pub(crate) $name: Tally),* }

        impl Ledger {
            fn raw(&self) -> Counters { Counters { $($name: self.$name.get()),* } }
        }
    };
}

counters! {
    /// Actors created.
    spawned,
    /// Actors ended.
    stopped,
    /// Starts that were deferred behind the queue.
    starts_put_off,
    /// Messages handled.
    received,
    /// Batches of messages taken from a queue.
    gulps,
    /// Times a worker found its mail flag raised and the inbox empty.
    missed_gulps,
    /// Batches handed to another worker.
    flushes,
    /// Attempts to steal.
    steal_attempts,
    /// Attempts whose victim had no stage to give.
    steal_no_candidate,
    /// Attempts whose victim could not lock the thief's inbox.
    steal_failed,
    /// Successful steals.
    steals,
    /// Stages that changed their worker by a steal.
    stages_stolen,
    /// Messages that changed their worker with a stolen stage.
    messages_stolen,
    /// Stages taken over from an idle worker instead of waking it.
    adoptions,
    /// Parked workers woken.
    wake_ups,
    /// Times an idle worker went to sleep.
    parks,
    /// Nanoseconds parked.
    parked_ns,
    /// Nanoseconds between looks at the clock without an idle time between them: the time in which work always waited.
    busy_ns,
    /// Times a stuck handler's worker got a new thread.
    takeovers,
    /// Stuck handlers that the monitor could not separate from their workers at first, because no thread could be
    /// started, or because the kernel refused membarrier(2) (see `fence_fallbacks`). The monitor tries again at each
    /// tick while such a handler is stuck.
    takeovers_failed,
    /// Times the worker changed to full fences, which cost each message some nanoseconds: the kernel refuses
    /// membarrier(2), which it had granted at the start. A worker changes once, between two messages.
    fence_fallbacks,
    /// Times a stage was muted because its receiver was overloaded.
    mutes,
    /// Asks handled on the caller's stack.
    short_circuits,
    /// Handlers that panicked or failed.
    crashes,
    /// Actors that were given a new state after a crash.
    restarts,
    /// Timers fired.
    timers_fired,
    /// Messages that were not delivered: for actors that had ended, or for any other reason.
    dead_letters,
    /// Messages that full mailboxes did not take ([`OnFull::Reject`](crate::OnFull::Reject)). Messages that were given
    /// back to their senders do not count.
    rejected,
    /// Messages that full mailboxes dropped: the newest or the oldest.
    dropped,
}

impl Counters {
    /// Messages per gulp.
    pub fn average_gulp(&self) -> f64 {
        self.received as f64 / self.gulps.max(1) as f64
    }

    /// Messages per steal.
    pub fn average_steal(&self) -> f64 {
        self.messages_stolen as f64 / self.steals.max(1) as f64
    }
}

/// The ledgers of a worker. A thread whose handler is stuck goes on beside its successor, and each thread therefore has
/// a ledger of its own.
#[derive(Default)]
pub(crate) struct WorkerCounters(Mutex<CounterPair>);

#[derive(Default)]
struct CounterPair {
    open: Vec<Arc<Ledger>>,
    /// The sum of the ledgers whose threads have ended, and the counts of other threads.
    closed: Counters,
}

impl WorkerCounters {
    /// Returns the ledger of a new worker.
    pub(crate) fn open(&self) -> Arc<Ledger> {
        let ledger = Arc::<Ledger>::default();
        lock(&self.0).open.push(Arc::clone(&ledger));
        ledger
    }

    /// Adds the ledger of a thread that has ended.
    pub(crate) fn close(&self, ledger: &Arc<Ledger>) {
        let mut books = lock(&self.0);
        books.open.retain(|open| !Arc::ptr_eq(open, ledger));
        books.closed.add_raw(&ledger.raw());
    }

    /// Counts an event that happens on no worker.
    pub(crate) fn note(&self, count: impl FnOnce(&mut Counters)) {
        count(&mut lock(&self.0).closed);
    }

    pub(crate) fn read(&self) -> Counters {
        let books = lock(&self.0);
        let mut sum = books.closed;
        books.open.iter().for_each(|ledger| sum.add_raw(&ledger.raw()));
        sum.not_below_zero()
    }
}

/// A counter with one writer.
#[derive(Default)]
pub(crate) struct Tally(AtomicU64);

impl Tally {
    #[inline(always)]
    pub(crate) fn add(&self, n: u64) {
        // Relaxed, load and store: one writer; readers want a recent value, not an exact one.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
