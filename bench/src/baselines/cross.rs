//! Baselines of the workloads in which every message crosses from one worker to another: two pinned threads.
//!
//! Batches of messages go through a ring of slots that each hold one batch: a cache line goes to and fro per batch, not per
//! message. A ping-pong has nothing to batch: each of its threads watches one word of the other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::pin::pin;
use crate::harness::outcome::{Failure, Outcome, check};
use crate::plans::{count, pairs, pingpong};

/// Messages per batch: with fewer the hand-over shows, with more the caches do.
const BATCH: usize = 256;
/// Batches that may be on their way: the receiver need not wait for the sender, nor the sender for the receiver.
const SLOTS: usize = 16;

/// Two cache lines for itself (adjacent lines are fetched in pairs).
#[repr(align(128))]
struct Padded<T>(T);

/// A message in flight.
struct Envelope<S> {
    run: fn(&mut S, to: u32, payload: u64),
    to: u32,
    payload: u64,
}

/// A ring of batches from one thread to one other.
struct Lane<S> {
    slots: [Padded<Slot<S>>; SLOTS],
}

struct Slot<S> {
    /// The side that may use the slot: the receiver if set, the sender if not.
    full: AtomicBool,
    /// Locked only by the side that may use the slot, and therefore never contended.
    batch: Mutex<Vec<Envelope<S>>>,
}

impl<S> Slot<S> {
    fn batch(&self) -> MutexGuard<'_, Vec<Envelope<S>>> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Lane<S> {
    fn new() -> Self {
        let slot = || Slot { full: AtomicBool::new(false), batch: Mutex::new(Vec::with_capacity(BATCH)) };
        Self { slots: std::array::from_fn(|_| Padded(slot())) }
    }
}

/// One thread's end of a lane.
struct End<'a, S> {
    lane: &'a Lane<S>,
    next: usize,
}

impl<'a, S> End<'a, S> {
    fn of(lane: &'a Lane<S>) -> Self {
        Self { lane, next: 0 }
    }

    /// Hands a filled batch over, in exchange for an empty one.
    fn send(&mut self, filled: &mut Vec<Envelope<S>>) {
        self.exchange(filled, false);
    }

    /// Waits for a filled batch, in exchange for one that was read.
    fn receive(&mut self, read: &mut Vec<Envelope<S>>) {
        read.clear();
        self.exchange(read, true);
    }

    fn exchange(&mut self, batch: &mut Vec<Envelope<S>>, receiving: bool) {
        let slot = &self.lane.slots[self.next % SLOTS].0;
        // Acquire: pairs with the Release below of the thread at the other end, which has finished with the batch.
        spin_until(|| slot.full.load(Ordering::Acquire) == receiving);
        std::mem::swap(&mut *slot.batch(), batch);
        // Release: pairs with the Acquire above of the thread at the other end.
        slot.full.store(!receiving, Ordering::Release);
        self.next += 1;
    }
}

/// Spins, and yields the core from time to time, in case the awaited thread has none.
#[inline]
fn spin_until(mut done: impl FnMut() -> bool) {
    let mut spins = 0_u32;
    while !done() {
        spins += 1;
        if spins.is_multiple_of(16_384) {
            thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Runs two threads pinned to a core each, started together. Each gets the common start time and returns its result and
/// when it had it.
fn two_threads<A: Send, B: Send>(
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> (Duration, A, B) {
    let barrier = Barrier::new(2);
    let timed = |core: usize| {
        pin(core);
        barrier.wait();
        Instant::now()
    };
    thread::scope(|scope| {
        let first = scope.spawn(|| (timed(0), first(), Instant::now()));
        let second = scope.spawn(|| (timed(1), second(), Instant::now()));
        let (started, a, a_ended) = first.join().expect("the first thread of a baseline panicked");
        let (_, b, b_ended) = second.join().expect("the second thread of a baseline panicked");
        (a_ended.max(b_ended) - started, a, b)
    })
}

/// The baseline of `count-cross`.
pub(crate) fn count(plan: &count::Plan) -> Result<Outcome, Failure> {
    fn increment(count: &mut u64, _: u32, by: u64) {
        *count += by;
    }

    let lane = Lane::new();
    let producer = || {
        let (mut end, mut batch) = (End::of(&lane), Vec::with_capacity(BATCH));
        for _ in 0..plan.increments {
            batch.push(Envelope { run: increment, to: 1, payload: 1 });
            if batch.len() == BATCH {
                end.send(&mut batch);
            }
        }
        end.send(&mut batch);
    };
    let consumer = || {
        let (mut end, mut batch) = (End::of(&lane), Vec::with_capacity(BATCH));
        let (mut count, mut received) = (0, 0);
        while received < plan.increments {
            end.receive(&mut batch);
            for envelope in &batch {
                (envelope.run)(&mut count, envelope.to, envelope.payload);
            }
            received += batch.len() as u64;
        }
        count
    };
    let (elapsed, (), count) = two_threads(producer, consumer);
    check("the count", plan.increments, count)?;
    Ok(Outcome::new(plan.increments, elapsed))
}

/// The baseline of `pingpong-cross`: two threads that each watch one word.
pub(crate) fn pingpong(plan: &pingpong::Plan) -> Result<Outcome, Failure> {
    let (ping, pong) = (Padded(AtomicU64::new(0)), Padded(AtomicU64::new(0)));
    // The words carry only themselves: Relaxed would suffice. Messages would need Acquire and Release, which cost nothing on
    // x86.
    let pinger = || {
        for number in 1..=plan.round_trips {
            ping.0.store(number, Ordering::Release);
            spin_until(|| pong.0.load(Ordering::Acquire) == number);
        }
    };
    let ponger = || {
        let mut seen = 0;
        for number in 1..=plan.round_trips {
            spin_until(|| ping.0.load(Ordering::Acquire) == number);
            seen += 1;
            pong.0.store(number, Ordering::Release);
        }
        seen
    };
    let (elapsed, (), seen) = two_threads(pinger, ponger);
    check("the pings seen", plan.round_trips, seen)?;
    Ok(Outcome::new(plan.round_trips, elapsed))
}

/// The baseline of `pingpong-grouped`: all balls fly between two threads, in a few batches, which keep both busy.
pub(crate) fn pairs(plan: &pairs::Plan) -> Result<Outcome, Failure> {
    /// One thread: one player of every pair, and the balls that leave it.
    struct Side {
        hits: Vec<u64>,
        balls: Vec<Envelope<Side>>,
    }

    fn ball(side: &mut Side, player: u32, left: u64) {
        side.hits[player as usize] += 1;
        if left > 0 {
            side.balls.push(Envelope { run: ball, to: player, payload: left - 1 });
        }
    }

    fn play(mut side: Side, from: &Lane<Side>, mut to: End<'_, Side>, hits_expected: u64) -> u64 {
        let (mut from, mut batch) = (End::of(from), Vec::with_capacity(BATCH));
        let mut hits = 0;
        while hits < hits_expected {
            from.receive(&mut batch);
            for envelope in &batch {
                (envelope.run)(&mut side, envelope.to, envelope.payload);
            }
            hits += batch.len() as u64;
            if !side.balls.is_empty() {
                to.send(&mut side.balls);
            }
        }
        side.hits.iter().sum()
    }

    let (there, back) = (Lane::new(), Lane::new());
    let side = || Side { hits: vec![0; plan.pairs as usize], balls: Vec::with_capacity(BATCH) };
    let server = || {
        let (mut side, mut end) = (side(), End::of(&there));
        // A quarter of the slots is filled. Neither thread ever waits for a slot while the other waits for it.
        let flight = plan.balls_total().div_ceil(SLOTS as u64 / 4) as usize;
        for ball_number in 0..plan.balls_total() {
            let player = (ball_number % u64::from(plan.pairs)) as u32;
            side.balls.push(Envelope { run: ball, to: player, payload: plan.bounces - 1 });
            if side.balls.len() == flight || ball_number + 1 == plan.balls_total() {
                end.send(&mut side.balls);
            }
        }
        play(side, &back, end, plan.balls_total() * (plan.bounces / 2))
    };
    let receiver = || play(side(), &there, End::of(&back), plan.balls_total() * plan.bounces.div_ceil(2));
    let (elapsed, served, received) = two_threads(server, receiver);
    check("the bounces that the players counted", plan.bounces_total(), served + received)?;
    Ok(Outcome::new(plan.bounces_total(), elapsed))
}
