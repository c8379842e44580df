//! Timers: a hierarchical wheel per worker (six levels of 64 slots, one millisecond at the finest). Setting and
//! cancelling are O(1) for any number of timers.
//!
//! The entries of all timers are in one list, whose vacant entries are used again. The wheel gives the memory of a
//! burst back: it packs the list when less than a quarter of the entries are in use ([`Wheel::pack`]). At least three
//! quarters of the timers in the list have then ended since it was packed last, and the cost for each timer therefore
//! stays O(1).

use std::collections::HashMap;
use std::time::Duration;

/// The task of a timer, called when it fires. Returns the delay until it fires again, if it does.
pub type TimerTask = Box<dyn FnMut() -> Option<Duration> + Send>;

/// Names a timer for cancelling it.
///
/// # Examples
///
/// ```
/// # use playhouse_executor::TimerKey;
/// /// The state of an actor that keeps its timer, to cancel it later.
/// #[derive(Default)]
/// struct Session {
///     ends: Option<TimerKey>,
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimerKey {
    pub(crate) worker: u16,
    pub(crate) id: u64,
}

pub(crate) enum TimerOp {
    Start { id: u64, at_ns: u64, task: TimerTask },
    Cancel { id: u64 },
}

const LEVELS: usize = 6;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const TICK_NS: u64 = 1_000_000;
const NONE: u32 = u32::MAX;
/// A list with at most this many entries is not packed.
const PACKED_MIN: usize = 1024;

struct Entry {
    id: u64,
    /// Tick at which it is due.
    due: u64,
    due_ns: u64,
    task: Option<TimerTask>,
    next: u32,
    previous: u32,
    slot: u16,
}

/// The wheel of one worker.
pub(crate) struct Wheel {
    entries: Vec<Entry>,
    vacant: Vec<u32>,
    heads: [u32; LEVELS * SLOTS],
    /// One bit per non-empty slot.
    occupied: [u64; LEVELS],
    by_id: HashMap<u64, u32>,
    now: u64,
}

impl Wheel {
    pub(crate) fn new() -> Self {
        Wheel {
            entries: Vec::new(),
            vacant: Vec::new(),
            heads: [NONE; LEVELS * SLOTS],
            occupied: [0; LEVELS],
            by_id: HashMap::new(),
            now: 0,
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Sets a timer. A due time in the past fires at the next [`Wheel::advance`].
    pub(crate) fn start(&mut self, id: u64, due_ns: u64, task: TimerTask) {
        let entry =
            Entry { id, due: due_ns.div_ceil(TICK_NS), due_ns, task: Some(task), next: NONE, previous: NONE, slot: 0 };
        let index = match self.vacant.pop() {
            Some(index) => {
                self.entries[index as usize] = entry;
                index
            }
            None => {
                self.entries.push(entry);
                u32::try_from(self.entries.len() - 1).expect("fewer than 2^32 timers per worker")
            }
        };
        self.by_id.insert(id, index);
        self.link(index);
    }

    /// Forgets the timer. Returns its task, which may hold a message of the program: the caller drops it where user
    /// code may run. Returns `None` if the timer is gone already.
    #[must_use]
    pub(crate) fn cancel(&mut self, id: u64) -> Option<TimerTask> {
        let index = self.by_id.remove(&id)?;
        self.unlink(index);
        self.vacant.push(index);
        let task = self.entries[index as usize].task.take();
        self.pack_if_sparse();
        task
    }

    /// Forgets all timers. Returns their tasks.
    pub(crate) fn take_all(&mut self) -> Vec<TimerTask> {
        std::mem::replace(self, Wheel::new()).entries.into_iter().filter_map(|entry| entry.task).collect()
    }

    #[inline]
    fn pack_if_sparse(&mut self) {
        if self.entries.len() > PACKED_MIN && self.by_id.len() < self.entries.len() / 4 {
            self.pack();
        }
    }

    /// Moves all entries in use to a smaller list and gives the rest of the memory back. Only the wheel itself knows
    /// indices of entries. Each entry stays in its slot; the order within a slot has no meaning.
    #[cold]
    fn pack(&mut self) {
        // With room for as many again: the next timers do not make the list grow at once.
        let room = self.by_id.len() * 2;
        let mut packed = Vec::with_capacity(room);
        // An entry is in use if and only if it has a task.
        packed.extend(std::mem::take(&mut self.entries).into_iter().filter(|entry| entry.task.is_some()));
        self.entries = packed;
        self.vacant = Vec::new();
        self.by_id.shrink_to(room);
        self.heads = [NONE; LEVELS * SLOTS];
        for index in 0..self.entries.len() {
            let entry = &mut self.entries[index];
            let (id, at) = (entry.id, entry.slot as usize);
            let index = u32::try_from(index).expect("fewer than 2^32 timers per worker");
            self.by_id.insert(id, index);
            self.put_first(at, index);
        }
    }

    fn link(&mut self, index: u32) {
        let due = self.entries[index as usize].due.max(self.now + 1);
        // The level is that of the highest bit in which the due tick differs from now.
        let apart = (due ^ self.now) | 1;
        let level = ((63 - apart.leading_zeros()) / SLOT_BITS).min(LEVELS as u32 - 1) as usize;
        let slot = if (due >> (SLOT_BITS * (LEVELS as u32 - 1)))
            > (self.now >> (SLOT_BITS * (LEVELS as u32 - 1))) + (SLOTS as u64 - 1)
        {
            // Beyond the horizon (some two years), the entry waits in the last slot and is sorted again.
            ((self.now >> (SLOT_BITS * level as u32)) + SLOTS as u64 - 1) as usize % SLOTS
        } else {
            (due >> (SLOT_BITS * level as u32)) as usize % SLOTS
        };
        let at = level * SLOTS + slot;
        self.entries[index as usize].slot = at as u16;
        self.put_first(at, index);
        self.occupied[level] |= 1 << slot;
    }

    /// Puts the entry first in the list of slot `at`.
    fn put_first(&mut self, at: usize, index: u32) {
        let head = std::mem::replace(&mut self.heads[at], index);
        let entry = &mut self.entries[index as usize];
        entry.next = head;
        entry.previous = NONE;
        if head != NONE {
            self.entries[head as usize].previous = index;
        }
    }

    fn unlink(&mut self, index: u32) {
        let Entry { next, previous, slot, .. } = self.entries[index as usize];
        if next != NONE {
            self.entries[next as usize].previous = previous;
        }
        if previous == NONE {
            self.heads[slot as usize] = next;
            if next == NONE {
                self.occupied[slot as usize / SLOTS] &= !(1 << (slot as usize % SLOTS));
            }
        } else {
            self.entries[previous as usize].next = next;
        }
    }

    /// Returns the nanoseconds at which [`Wheel::advance`] must be called next: the time at which the earliest timer is
    /// due, or at which a coarse slot must be sorted into finer ones.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.next_tick().map(|tick| tick * TICK_NS)
    }

    fn next_tick(&self) -> Option<u64> {
        let mut earliest: Option<u64> = None;
        for level in 0..LEVELS {
            let occupied = self.occupied[level];
            if occupied == 0 {
                continue;
            }
            let shift = SLOT_BITS * level as u32;
            let position = (self.now >> shift) % SLOTS as u64;
            // Slots are visited from the one after the present position onwards; the present one comes last.
            let ahead = u64::from(occupied.rotate_right(((position + 1) % SLOTS as u64) as u32).trailing_zeros()) + 1;
            let tick = ((self.now >> shift) + ahead) << shift;
            earliest = Some(earliest.map_or(tick, |other| other.min(tick)));
        }
        earliest
    }

    /// Moves the wheel to `now_ns` and returns the tasks that are due, earliest first.
    pub(crate) fn advance(&mut self, now_ns: u64) -> Vec<(u64, TimerTask)> {
        let target = now_ns / TICK_NS;
        let mut due = Vec::new();
        while let Some(tick) = self.next_tick().filter(|tick| *tick <= target) {
            self.now = tick;
            for level in (0..LEVELS).rev() {
                let shift = SLOT_BITS * level as u32;
                if tick % (1u64 << shift) != 0 {
                    continue;
                }
                let at = level * SLOTS + (tick >> shift) as usize % SLOTS;
                let mut index = std::mem::replace(&mut self.heads[at], NONE);
                self.occupied[level] &= !(1 << (at % SLOTS));
                while index != NONE {
                    let next = self.entries[index as usize].next;
                    if self.entries[index as usize].due <= tick {
                        let entry = &mut self.entries[index as usize];
                        let task = entry.task.take().expect("a linked timer has a task");
                        due.push((entry.due_ns, entry.id, task));
                        self.by_id.remove(&entry.id);
                        self.vacant.push(index);
                    } else {
                        self.link(index);
                    }
                    index = next;
                }
            }
        }
        self.now = self.now.max(target);
        self.pack_if_sparse();
        due.sort_by_key(|(due_ns, id, _)| (*due_ns, *id));
        due.into_iter().map(|(_, id, task)| (id, task)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    fn wheel_with(delays_ms: &[u64]) -> (Wheel, Arc<Mutex<Vec<u64>>>) {
        let mut wheel = Wheel::new();
        let fired = Arc::new(Mutex::new(Vec::new()));
        for (id, delay) in delays_ms.iter().enumerate() {
            let (fired, delay) = (Arc::clone(&fired), *delay);
            wheel.start(
                id as u64,
                delay * TICK_NS,
                Box::new(move || {
                    fired.lock().unwrap().push(delay);
                    None
                }),
            );
        }
        (wheel, fired)
    }

    #[test]
    fn each_timer_fires_in_its_millisecond_and_in_order() {
        let delays = [1, 2, 63, 64, 65, 100, 4095, 4096, 4097, 262_143, 262_144, 262_145, 20_000_000, 1];
        let (mut wheel, fired) = wheel_with(&delays);
        let mut sorted = delays;
        sorted.sort_unstable();
        let mut expected = Vec::new();
        for delay in sorted {
            for (_, mut task) in wheel.advance(delay * TICK_NS - 1) {
                task();
            }
            assert_eq!(*fired.lock().unwrap(), expected, "nothing early before {delay}");
            for (_, mut task) in wheel.advance(delay * TICK_NS) {
                task();
            }
            expected = sorted.iter().copied().filter(|d| *d <= delay).collect();
            assert_eq!(*fired.lock().unwrap(), expected);
        }
        assert!(wheel.is_empty());
        assert_eq!(wheel.next_ns(), None);
    }

    #[test]
    fn a_sleeper_that_waits_for_next_ns_is_never_late() {
        let delays: Vec<u64> = (0..2000u64).map(|i| (i * i * 7919) % 1_000_003 + 1).collect();
        let (mut wheel, fired) = wheel_with(&delays);
        while let Some(next) = wheel.next_ns() {
            for (_, mut task) in wheel.advance(next) {
                task();
            }
            let late = fired.lock().unwrap().iter().copied().max().unwrap_or(0);
            assert!(late * TICK_NS <= next);
        }
        let mut expected = delays.clone();
        expected.sort_unstable();
        assert_eq!(*fired.lock().unwrap(), expected);
    }

    #[test]
    fn cancelled_timers_do_not_fire_and_leave_no_trace() {
        let (mut wheel, fired) = wheel_with(&[5, 70, 5000]);
        assert!(wheel.cancel(1).is_some());
        assert!(wheel.cancel(1).is_none());
        for (_, mut task) in wheel.advance(10_000 * TICK_NS) {
            task();
        }
        assert_eq!(*fired.lock().unwrap(), [5, 5000]);
        assert_eq!(wheel.len(), 0);
    }

    #[test]
    fn a_million_timers_are_cheap() {
        let mut wheel = Wheel::new();
        for id in 0..1_000_000u64 {
            wheel.start(id, (id % 50_000 + 1) * TICK_NS, Box::new(|| None));
        }
        assert_eq!(wheel.len(), 1_000_000);
        let mut fired = 0;
        while let Some(next) = wheel.next_ns() {
            fired += wheel.advance(next).len();
        }
        assert_eq!(fired, 1_000_000);
    }

    /// Returns the number of timers for which the wheel has memory.
    fn room(wheel: &Wheel) -> usize {
        wheel.entries.capacity().max(wheel.vacant.capacity()).max(wheel.by_id.capacity())
    }

    #[test]
    fn the_memory_of_a_burst_is_given_back_and_the_other_timers_stay() {
        const BURST: u64 = 100_000;
        for cancels in [true, false] {
            // Timers of all levels, that fire behind the burst.
            let delays: Vec<u64> = (0..700).map(|nth| 10_000 + nth * nth * nth).collect();
            let (mut wheel, fired) = wheel_with(&delays);
            for id in 1_000..1_000 + BURST {
                wheel.start(id, (1 + id % 9_000) * TICK_NS, Box::new(|| None));
            }
            assert!(room(&wheel) >= BURST as usize);
            if cancels {
                (1_000..1_000 + BURST).for_each(|id| assert!(wheel.cancel(id).is_some()));
            } else {
                assert_eq!(wheel.advance(9_001 * TICK_NS).len(), BURST as usize);
            }
            assert!(room(&wheel) <= 8 * delays.len(), "room for {} timers", room(&wheel));
            // A timer that was moved can be cancelled, and an id that is gone stays gone.
            assert!([7, 7, 1_000].map(|id| wheel.cancel(id).is_some()) == [true, false, false]);
            wheel.start(BURST * 2, 1, Box::new(|| None));
            while let Some(next) = wheel.next_ns() {
                wheel.advance(next).into_iter().for_each(|(_, mut task)| {
                    task();
                });
            }
            let left: Vec<u64> = (0..700).filter(|nth| *nth != 7).map(|nth| delays[nth]).collect();
            assert_eq!(*fired.lock().unwrap(), left);
            assert!(wheel.is_empty() && room(&wheel) <= 4 * PACKED_MIN);
        }
    }

    #[test]
    fn packing_costs_little_for_each_timer() {
        const BURST: u64 = 200_000;
        let mut wheel = Wheel::new();
        let start = |wheel: &mut Wheel, id: u64| wheel.start(id, u64::MAX / 2, Box::new(|| None));
        (0..BURST).for_each(|id| start(&mut wheel, id));
        let (mut packed, mut grown) = (0, 0);
        for id in 0..BURST {
            let (entries, room) = (wheel.entries.len(), wheel.entries.capacity());
            assert!(wheel.cancel(id).is_some());
            packed += usize::from(wheel.entries.len() < entries);
            // Alternating at one size does not pack the list and let it grow again and again.
            start(&mut wheel, BURST + id);
            assert!(wheel.cancel(BURST + id).is_some());
            grown += usize::from(wheel.entries.capacity() > room);
        }
        assert!((1..=8).contains(&packed) && grown == 0, "packed {packed} times, grown {grown} times");
    }
}
