//! Deferred starts: trees of actors are built one after the other, not all at once.
//!
//! A start may start a family of hundreds within itself (`inline_call.rs`), and each member sends something to its
//! parent. The starts of all further children become messages. In a queue that is first in, first out, all starts of a
//! tree come before the first of those answers. A million leaves would then have answered, and all answers would lie in
//! the queue.
//!
//! A start of such a child that meets a long queue therefore steps aside until most of that queue was run. At any time,
//! only the messages of a few families wait. A tree of a million actors takes 6 MiB instead of 33, and about half the
//! time, because the waiting messages fit into the cache.
//!
//! # Why a program can tell only by the time it takes
//!
//! 1. *Order (I2).* No order of starts is promised. Messages to an actor that has not started wait for its start, as
//!    they do when they have overtaken it in a higher lane (status NEW).
//! 2. *One worker (I1).* The deferred starts are part of the queue. They are counted, and they go to a thief with their
//!    stage and to a new thread, in both cases before all that is queued. They are bounced at the end. No worker
//!    becomes idle while it has deferred starts, because its stages may be adopted when it is idle. No start is
//!    deferred while records of a stage are *parked*. Before the first record is parked, all deferred starts go on,
//!    because parked records are in the order of the queue.
//! 3. *No starvation (I4).* Deferred starts go on first in, first out. When the queue is always long, they have up to a
//!    fifth of the work, measured by the actors that such starts have brought lately. At least one goes on within eight
//!    ticks of the monitor. A start that has gone on is not deferred again, unless it was taken to another worker or
//!    thread by then.
//! 4. *Short waits for senders.* The first message in the normal lane that meets an actor whose start may have been
//!    deferred has all of them go on, and for a while none is deferred. If parents send to their children, each of
//!    those messages would otherwise wait in a list of its own. (Requests such as stop and watch need not wait.)
//!
//! An observed worker (`run_observed.rs`) defers no starts.

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use crate::memory::record::Record;
use crate::memory::segment::{Chain, Pool, Segment, for_each_between};
use crate::sync::jitter::seam;
use crate::sync::worker_requests::Signal;
use crate::worker::exchange::RECORD_BYTES;
use crate::worker::{Worker, current};

/// With fewer bytes of records than this in the queue, starts are run when they are met, and deferred starts go on.
const MUCH_BYTES: u64 = 16 * 1024;
/// With a short queue, about this number of actors is started at a time from the deferred starts.
const ACTORS_AT_A_TIME: u64 = 4096;
/// The largest number of starts at a time, because the next ones may bring more actors than the last ones did.
const STARTS_AT_A_TIME_MAX: u64 = 64;
/// With a long queue, one actor is started for this number of messages.
const MESSAGES_PER_ACTOR: u64 = 4;
/// One start goes on within this number of ticks of the monitor at least.
const TICKS_MAX: u32 = 8;
/// No start is deferred for this number of bytes of records after a message has met an actor whose start may have been
/// deferred.
const PAUSE_BYTES: u64 = 1 << 20;

/// The deferred starts of a worker, in order.
pub(crate) struct DeferredStarts {
    /// The records begin `from` bytes into the first segment; `bytes` does not count those before.
    chain: Chain,
    from: usize,
    /// All of them are to go on.
    due: bool,
    /// No start is deferred before this number of bytes of the queue was run.
    not_before: u64,
    /// The starts that went on the last time, and the bytes of the queue that had been run by then without those
    /// starts.
    released: u64,
    run: u64,
    /// Ticks of the monitor since then.
    ticks: u32,
    /// The starts of this kind that had been run by then, with the actors that they have brought; and the number of
    /// actors for each.
    deferred_start_counts: (u64, u64),
    actors_each: u64,
}

/// The figures that decide the number of starts that go on.
struct StartBudget {
    /// Bytes of the queue that were run.
    run: u64,
    deferred_start_counts: (u64, u64),
    /// The queue is empty.
    is_empty: bool,
    /// The queue is short, and no mail has come.
    is_low: bool,
    is_tick: bool,
}

impl DeferredStarts {
    pub(crate) fn new() -> DeferredStarts {
        DeferredStarts {
            chain: Chain::new(),
            from: 0,
            due: false,
            not_before: 0,
            released: 0,
            run: 0,
            ticks: 0,
            deferred_start_counts: (0, 0),
            actors_each: 1,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.chain.bytes as u64
    }

    /// Notes that another thread has taken the worker. Its queue is a new one, and it counts anew.
    pub(crate) fn change_threads(&mut self) {
        (self.not_before, self.run, self.deferred_start_counts) = (0, 0, (0, 0));
    }

    /// # Safety
    /// The record is whole, and the caller gives its payload up.
    unsafe fn push(&mut self, record: NonNull<Record>, pool: &Pool) {
        self.due &= !self.is_empty();
        // SAFETY: the record is whole, and the caller has given its payload up.
        unsafe { self.chain.push_bytes(record.as_ptr().cast(), record.as_ref().bytes(), Some(pool)) };
    }

    /// Calls `visit` for each record, in order.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(NonNull<Record>)) {
        let (mut segment, mut from) = (self.chain.first, self.from);
        while !segment.is_null() {
            // SAFETY: the chain owns its segments, which hold whole records; `from` is the start of a record or the end
            // of the records.
            unsafe {
                let body = Segment::body(segment);
                for_each_between(body.add(from), body.add((*segment).used), &mut visit);
                segment = (*segment).next;
            }
            from = 0;
        }
    }

    /// Takes the first `count` records.
    pub(crate) fn take(&mut self, count: u64, pool: Option<&Pool>) -> Chain {
        let (mut taken, mut left) = (Chain::new(), count);
        while left > 0 && !self.chain.is_empty() {
            let segment = self.chain.first;
            // SAFETY: the chain owns its segments, which hold whole records from `from` on. Each record is moved once,
            // and no other owner has a segment that was gone through.
            unsafe {
                if self.from == (*segment).used {
                    self.chain.first = (*segment).next;
                    (*segment).next = std::ptr::null_mut();
                    self.from = 0;
                    Chain { first: segment, last: segment, bytes: 0 }.recycle(pool);
                    continue;
                }
                let record = Segment::body(segment).add(self.from).cast::<Record>();
                let size = (*record).bytes();
                taken.push_bytes(record.cast(), size, pool);
                self.from += size;
                self.chain.bytes -= size;
            }
            left -= 1;
        }
        if self.chain.is_empty() {
            self.from = 0;
            self.chain.take().recycle(pool);
        }
        taken
    }

    /// Returns the number of starts that go on now. The list is not empty.
    fn next(&mut self, look: StartBudget) -> u64 {
        let deferred_starts = look.deferred_start_counts.0.wrapping_sub(self.deferred_start_counts.0);
        let actors = look.deferred_start_counts.1.wrapping_sub(self.deferred_start_counts.1);
        if let Some(each) = actors.checked_div(deferred_starts) {
            self.actors_each = each.clamp(1, ACTORS_AT_A_TIME);
            self.deferred_start_counts = look.deferred_start_counts;
        }
        let actors = match look.is_low {
            true => ACTORS_AT_A_TIME,
            false => look.run.saturating_sub(self.run) / RECORD_BYTES / MESSAGES_PER_ACTOR,
        };
        let mut count = (actors / self.actors_each).min(2 * self.released.max(1)).min(STARTS_AT_A_TIME_MAX);
        self.ticks += u32::from(look.is_tick);
        // A worker with an empty queue may be about to become idle, whatever mail has come.
        if look.is_empty || self.ticks == TICKS_MAX {
            count = count.max(1);
        }
        if count > 0 {
            (self.released, self.run, self.ticks) = (count, look.run, 0);
        }
        count
    }
}

/// A start that may be deferred, and is run now.
pub(crate) struct DeferredStart<'a> {
    worker: &'a Worker,
    spawned: u64,
}

impl DeferredStart<'_> {
    /// Returns `None` if the start has been deferred, and the record was moved.
    ///
    /// # Safety
    /// The record is whole, its payload was not consumed, and this thread is about to run it.
    pub(crate) unsafe fn of<'a>(record: NonNull<Record>) -> Option<DeferredStart<'a>> {
        let worker = current().expect("records are run by workers");
        // Not if the record is run from the list of an actor or is shown to an observer, and not if this thread has
        // lost the worker with it.
        let is_claimed = worker.ownership.claimed() == record.as_ptr() && worker.nested.get() == 0;
        // SAFETY: the caller guarantees a whole record that this thread is about to run; the record was claimed last.
        if is_claimed && worker.ownership.is_user() && unsafe { worker.defer_start(record) } {
            return None;
        }
        worker.in_deferred_start.set(true);
        Some(DeferredStart { worker, spawned: worker.ledger.spawned.get() })
    }
}

/// The start was run.
impl Drop for DeferredStart<'_> {
    fn drop(&mut self) {
        self.worker.in_deferred_start.set(false);
        let (deferred_starts, actors) = self.worker.deferred_start_counts.get();
        let brought = self.worker.ledger.spawned.get().wrapping_sub(self.spawned);
        self.worker.deferred_start_counts.set((deferred_starts + 1, actors.wrapping_add(brought)));
    }
}

impl Worker {
    /// # Safety
    /// The same as for [`DeferredStart::of`], and the record was claimed last.
    unsafe fn defer_start(&self, record: NonNull<Record>) -> bool {
        // SAFETY: the record was claimed last.
        let behind = unsafe { self.position_behind(record) };
        let defer_start = self.with_core(|core| {
            // SAFETY: in RUNTIME, by the owner.
            let is_first = unsafe { !(*self.later.get()).is_empty() };
            self.run_at.set(behind.at);
            // A start that has been deferred before, or is before all others for another reason, is run.
            let is_run =
                is_first || self.backlog_bytes() < MUCH_BYTES || self.bytes_run() < core.deferred_starts.not_before;
            if is_run || core.has_parked() {
                return false;
            }
            // SAFETY: the record is whole, and its payload is given up by this call.
            unsafe { core.deferred_starts.push(record, &self.pool) };
            self.ledger.starts_put_off.add(1);
            true
        });
        seam(100);
        defer_start.unwrap_or(false)
    }

    /// Lets some of the deferred starts go on. In RUNTIME, at an exchange.
    #[cold]
    pub(crate) fn release_deferred_starts(&self) {
        // `advance` also passes by consumed records, which keeps `lane_last` right.
        let is_empty = !self.advance();
        if self.lane_last.iter().any(|last| !last.get().is_null()) {
            // Mail of higher lanes comes first. It ends, or a gulp of the normal lane is due (I4).
            return;
        }
        let look = StartBudget {
            run: self.bytes_run(),
            deferred_start_counts: self.deferred_start_counts.get(),
            is_empty,
            is_low: self.backlog_bytes() < MUCH_BYTES && !self.shared().mail.is_up(),
            is_tick: self.ownership.signal.get() & Signal::TICK != 0,
        };
        // SAFETY: in RUNTIME; short borrow.
        let deferred_starts = unsafe { &mut self.core().deferred_starts };
        if deferred_starts.due {
            self.release_all_deferred_starts();
            // SAFETY: in RUNTIME; short borrow.
            unsafe { self.core() }.deferred_starts.not_before = look.run + self.backlog_bytes() + PAUSE_BYTES;
        } else {
            let count = deferred_starts.next(look);
            self.release_first(deferred_starts.take(count, Some(&self.pool)));
        }
    }

    /// Lets all deferred starts go on before the queue: messages to the actors that they start go behind them. In
    /// RUNTIME.
    pub(crate) fn release_all_deferred_starts(&self) {
        // SAFETY: in RUNTIME; short borrow.
        let deferred_starts = unsafe { &mut self.core().deferred_starts };
        deferred_starts.due = false;
        self.release_first(deferred_starts.take(u64::MAX, Some(&self.pool)));
    }

    fn release_first(&self, chain: Chain) {
        if chain.is_empty() {
            return;
        }
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        let (bytes, run) = (chain.bytes as u64, self.bytes_run());
        // The cursor has moved ahead, and positions relative to it are noted anew.
        core.mail.waiting(run);
        core.mail.shift(bytes);
        core.deferred_starts.run += bytes;
        core.exempt = core.exempt.filter(|(_, until)| *until > run).map(|(stage, until)| (stage, until + bytes));
        if cfg!(debug_assertions) {
            chain.for_each(|record| {
                // SAFETY: whole records.
                let stage = usize::from(unsafe { record.as_ref() }.stage());
                let runs_it = self.system.routing.route[stage].load(Ordering::Relaxed);
                assert_eq!(runs_it, self.id, "I1: a start at a worker that does not run its stage");
            });
        }
        self.put_first(chain);
    }

    /// Moves the deferred starts of some stages to the end of `stolen`. In RUNTIME.
    pub(crate) fn extract_deferred_starts(&self, wanted: impl Fn(u16) -> bool, stolen: &mut Chain) {
        // SAFETY: in RUNTIME; short borrow.
        let deferred_starts = unsafe { &mut self.core().deferred_starts };
        let all = deferred_starts.take(u64::MAX, Some(&self.pool));
        // SAFETY: whole records, each of which is moved once.
        all.consume(Some(&self.pool), |record| unsafe {
            if wanted(record.as_ref().stage()) {
                stolen.push_bytes(record.as_ptr().cast(), record.as_ref().bytes(), Some(&self.pool));
            } else {
                deferred_starts.push(record, &self.pool);
            }
        });
    }

    /// Notes that a message has come to an actor whose start may have been deferred.
    pub(crate) fn hasten_deferred_starts(&self) {
        self.with_core(|core| {
            if !core.deferred_starts.is_empty() && !core.deferred_starts.due {
                core.deferred_starts.due = true;
                self.ownership.signal.raise(Signal::TICK);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::memory::record::{Op, Outcome};
    use crate::worker::exchange::NextWork;
    use crate::*;

    unsafe fn never_run(_: NonNull<Record>, _: Op) -> Outcome {
        unreachable!("these records are only moved")
    }

    const BYTES: usize = 32;

    fn put(deferred_starts: &mut DeferredStarts, numbers: std::ops::Range<u64>, pool: &Pool) {
        for number in numbers {
            let tag = number << 32 | (BYTES / 8) as u64;
            let record = Record { thunk: never_run, cell: NonNull::dangling(), tag };
            let mut words = [0u64; BYTES / 8];
            let place = NonNull::from(&mut words).cast::<Record>();
            // SAFETY: the segment has room for a head in front of a word that is never read; nothing is given up.
            unsafe {
                place.write(record);
                deferred_starts.push(place, pool);
            }
        }
    }

    fn number_of(record: NonNull<Record>) -> u64 {
        // SAFETY: a whole record.
        unsafe { record.as_ref().tag >> 32 }
    }

    fn take(deferred_starts: &mut DeferredStarts, count: u64, pool: &Pool) -> Vec<u64> {
        let chain = deferred_starts.take(count, Some(pool));
        let mut numbers = Vec::new();
        chain.consume(None, |record| numbers.push(number_of(record)));
        numbers
    }

    fn visited(deferred_starts: &DeferredStarts) -> Vec<u64> {
        let mut numbers = Vec::new();
        deferred_starts.for_each(|record| numbers.push(number_of(record)));
        numbers
    }

    #[test]
    fn deferred_starts_are_taken_in_order_from_segment_to_segment() {
        let (mut deferred_starts, pool) = (DeferredStarts::new(), Pool::new());
        put(&mut deferred_starts, 0..2_000, &pool);
        assert_eq!((deferred_starts.bytes(), visited(&deferred_starts)), (2_000 * BYTES as u64, (0..2_000).collect()));
        assert_eq!(take(&mut deferred_starts, 3, &pool), [0, 1, 2]);
        assert_eq!(visited(&deferred_starts), (3..2_000).collect::<Vec<_>>());
        assert_eq!(take(&mut deferred_starts, 597, &pool), (3..600).collect::<Vec<_>>());
        put(&mut deferred_starts, 2_000..2_100, &pool);
        assert_eq!(
            (deferred_starts.bytes(), visited(&deferred_starts)),
            (1_500 * BYTES as u64, (600..2_100).collect())
        );
        assert_eq!(take(&mut deferred_starts, u64::MAX, &pool), (600..2_100).collect::<Vec<_>>());
        assert!(deferred_starts.is_empty());
        assert_eq!(visited(&deferred_starts), []);
        put(&mut deferred_starts, 0..2, &pool);
        assert_eq!(take(&mut deferred_starts, 1, &pool), [0]);
        assert_eq!((deferred_starts.bytes(), take(&mut deferred_starts, 9, &pool)), (BYTES as u64, vec![1]));
    }

    #[test]
    fn deferred_starts_bring_a_few_thousand_actors_or_a_fifth_of_the_work() {
        let (mut deferred_starts, mut deferred_start_counts) = (DeferredStarts::new(), (0, 0));
        let mut next = |deferred_starts: &mut DeferredStarts, each: u64, is_low, is_tick, messages: u64| {
            let count = deferred_starts.next(StartBudget {
                run: messages * RECORD_BYTES,
                deferred_start_counts,
                is_empty: false,
                is_low,
                is_tick,
            });
            deferred_start_counts = (deferred_start_counts.0 + count, deferred_start_counts.1 + each * count);
            count
        };
        // Each start brings 100 actors; the budget approaches that with care.
        assert_eq!([0; 7].map(|_| next(&mut deferred_starts, 100, true, false, 0)), [2, 4, 8, 16, 32, 40, 40]);
        // Then each brings only itself, up to the last ones, which bring a million.
        assert_eq!([0; 3].map(|_| next(&mut deferred_starts, 0, true, false, 0)), [40, 64, 64]);
        assert_eq!(next(&mut deferred_starts, 1_000_000, true, false, 0), 64);
        assert_eq!([0; 2].map(|_| next(&mut deferred_starts, 0, true, false, 0)), [1, 2]);
        // With a long queue, the number of starts follows the number of messages.
        let at = |(messages, _)| next(&mut deferred_starts, 1_000, false, false, messages);
        let expected = [(0, 0), (3, 0), (4, 1), (4_003, 0), (4_004, 1), (12_004, 2), (1_000_000, 4), (1_000_000, 0)];
        assert_eq!(expected.map(at), expected.map(|(_, count)| count));
        // One start goes on within eight ticks, if there was none.
        let at_tick = |_| next(&mut deferred_starts, 1_000, false, true, 1_000_000);
        assert_eq!([0; 16].map(at_tick), [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
    }

    /// The number of starts that were run, and the number that were bounced.
    #[derive(Clone, Default)]
    struct Counts(Arc<[AtomicU64; 2]>);

    impl Counts {
        fn get(&self) -> [u64; 2] {
            [0, 1].map(|at| self.0[at].load(Ordering::Relaxed))
        }
    }

    struct Someone;
    impl Resident for Someone {
        type Extra = ();
        fn name() -> &'static str {
            "Someone"
        }
        fn ended(&mut self, _: Option<Box<()>>, _: Ending, _: &mut Cx<Self>) {}
        fn crashed(crash: Crash, _: &mut ControlCx<Self>) {
            panic!("{crash:?}");
        }
    }

    /// Starts children, each of which starts the given number of children, and so on.
    struct Begin(&'static [usize], Counts);

    impl Envelope<Someone> for Begin {
        fn run(self, _: &mut Someone, _: &mut Cx<Someone>) {
            self.1.0[0].fetch_add(1, Ordering::Relaxed);
            if let [children, rest @ ..] = self.0 {
                for _ in 0..*children {
                    assert!(spawn_near(Someone, Begin(rest, self.1.clone())).is_ok());
                }
            }
        }
        fn bounce(self, _: Undelivered) {
            self.1.0[1].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The root, its one child and 256 of that child's thousand children have started; the first hundred of the rest
    /// were deferred.
    fn started_a_thousand(workers: usize) -> (Arc<SystemCore>, Counts) {
        let config = Config { workers, stages: 4 * workers, simulated: Some(0), ..Config::new() };
        let (system, counts) = (SystemCore::start(config).unwrap(), Counts::default());
        assert!(system.spawn(Someone, StageChoice::At(0), Begin(&[1, 1_000], counts.clone())).is_ok());
        let worker = worker(&system, 0);
        worker.enter(|| worker.turn(1));
        assert_eq!(counts.get(), [258, 0]);
        worker.enter(|| worker.turn(100));
        assert_eq!(system.counters()[0].starts_put_off, 100);
        (system, counts)
    }

    fn worker(system: &SystemCore, id: usize) -> Arc<Worker> {
        system.threads.posts[id].lock().unwrap().clone().unwrap()
    }

    #[test]
    fn each_start_is_run_once_or_bounced_once() {
        let (system, counts) = started_a_thousand(1);
        system.run_until_idle();
        assert_eq!(counts.get(), [1_002, 0]);
        system.end(std::time::Duration::ZERO, &mut |_, _, _| {});

        let (system, counts) = started_a_thousand(1);
        system.end(std::time::Duration::ZERO, &mut |_, _, _| {});
        assert_eq!(counts.get(), [258, 744]);
    }

    /// The mail that has come may contain nothing to run, and the worker would then become idle.
    #[test]
    fn no_worker_is_idle_with_deferred_starts() {
        let (system, counts) = started_a_thousand(1);
        let worker = worker(&system, 0);
        // The queue is empty; two starts go on, and are run.
        worker.enter(|| (worker.gulp(10_000), worker.turn(1), worker.gulp(10_000)));
        let before = counts.get()[0];
        assert!(before < 1_002);
        system.cancel_timer(TimerKey { worker: 0, id: 99 });
        worker.enter(|| assert_eq!(worker.turn(1), NextWork::Ran));
        assert_eq!(counts.get(), [before + 1, 0]);
        system.run_until_idle();
        assert_eq!(counts.get(), [1_002, 0]);
        system.end(std::time::Duration::ZERO, &mut |_, _, _| {});
    }

    #[test]
    fn a_thief_gets_deferred_starts_before_queued_messages() {
        let (system, counts) = started_a_thousand(2);
        let [victim, thief] = [0, 1].map(|id| worker(&system, id));
        // SAFETY: in RUNTIME, nothing runs; whole records.
        let defer_start = || unsafe {
            let mut cells = Vec::new();
            victim.core().deferred_starts.for_each(|record| cells.push(record.as_ref().cell));
            cells
        };
        let before = defer_start();
        thief.enter(|| thief.ask_for_stages(0));
        victim.enter(|| victim.attend());
        let after = defer_start();
        let mut given = Vec::new();
        thief.enter(|| {
            thief.take_mail();
            // SAFETY: whole records.
            thief.for_each_queued(|record| given.push(unsafe { record.as_ref().cell }));
        });
        assert!((300..450).contains(&given.len()) && (20..80).contains(&after.len()), "about half is given");
        let (first, rest) = given.split_at(before.len() - after.len());
        assert!(first.iter().all(|cell| before.contains(cell) && !after.contains(cell)));
        assert!(rest.iter().all(|cell| !before.contains(cell)));
        system.run_until_idle();
        assert_eq!(counts.get(), [1_002, 0]);
        system.end(std::time::Duration::ZERO, &mut |_, _, _| {});
    }
}
