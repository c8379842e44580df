//! The part of a worker that moves to another thread when a handler is stuck: timers, parked stages and deferred
//! starts.

use std::collections::{BTreeMap, VecDeque};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::load::bounds::OVERLOADED_BYTES;
use crate::load::stage_backpressure::StageBackpressure;
use crate::load::standing::Turnover;
use crate::memory::record::Record;
use crate::memory::segment::{Chain, Pool};
use crate::policy::kinds::Kinds;
use crate::policy::trial_verdict::{Trial, Verdict};
use crate::worker::deferred_starts::DeferredStarts;
use crate::worker::gate::Gate;
use crate::worker::timer_wheel::{TimerTask, Wheel};
use crate::worker::user_calls;

/// A worker of any system: the system's number, and the worker's.
pub(crate) type AnyWorker = (u16, u16);

/// A system of this process: its number, and the epoch of that number's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SystemEpoch {
    pub(crate) system: u16,
    pub(crate) epoch: u64,
}

/// The reason why a stage's messages are parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A stuck handler of the stage is still running in a thread that lost the worker.
    Detached,
    /// The stage is muted, because it has sent to stage `target`. Either `target` is full (`stuck`), or the stage has
    /// sent more than it handled (`source`) and worker `receiver` is pressed or overloaded. `other_system` is the
    /// system of `receiver` and `target`, if that is another one.
    Muted { receiver: u16, target: u16, stuck: bool, source: Option<u32>, other_system: Option<SystemEpoch> },
    /// Messages that the stage sends on have to wait: see `stub.rs`.
    Paused,
}

/// A request to mute a stage, for the reasons in [`Reason::Muted`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MuteRequest {
    /// The stage to be muted.
    pub(crate) sender: u16,
    /// The worker that `sender` is muted for.
    pub(crate) receiver: u16,
    /// The stage that `sender` has sent to.
    pub(crate) target: u16,
    /// `Some` if `sender` has sent more than it handled: the bytes that it owes. It is muted until `receiver` is
    /// relieved or admits these.
    pub(crate) source: Option<u32>,
    /// The system of `receiver` and `target`, if that is another one.
    pub(crate) other_system: Option<SystemEpoch>,
}

/// The parked records of a stage.
pub(crate) struct Parked {
    pub(crate) reason: Reason,
    /// With more bytes of records than this the stage is full. Full is a state of this stage alone and counts only for
    /// its senders. None: the parked records count for the worker.
    pub(crate) bytes_max: Option<usize>,
    pub(crate) lanes: [Chain; 3],
}

impl Parked {
    pub(crate) fn new(reason: Reason, bytes_max: Option<usize>) -> Parked {
        Parked { reason, bytes_max, lanes: [const { Chain::new() }; 3] }
    }

    /// Changes the reason to a stuck handler of the stage, from now on.
    pub(crate) fn detach(&mut self) {
        (self.reason, self.bytes_max) = (Reason::Detached, Some(OVERLOADED_BYTES));
    }

    /// Returns the reason why the stage is full, if it is.
    pub(crate) fn backpressure(&self) -> Option<u8> {
        let is_full = self.bytes_max.is_some_and(|bytes_max| self.bytes() > bytes_max);
        is_full.then_some(if self.reason == Reason::Detached {
            StageBackpressure::STUCK
        } else {
            StageBackpressure::WAITS
        })
    }

    /// Returns the bytes of parked records.
    pub(crate) fn bytes(&self) -> usize {
        self.lanes.iter().map(|lane| lane.bytes).sum()
    }
}

/// The average time of a message, over about the latest `window_ns` of work and a limited number of looks at the clock.
///
/// The window is measured in time, and not in messages. The first long message after 1,000 short ones therefore counts
/// at once. Each look also reduces the weight of all earlier looks. A single long message among short ones therefore
/// loses its weight soon.
pub(crate) struct Pace {
    window_ns: f64,
    /// The part of the weight of all earlier looks that remains after a new look, at most.
    kept_max: f64,
    messages: f64,
    ns: f64,
}

impl Pace {
    /// Creates the average that decides about gulps and sharing. It covers 0.2 ms and about 8 looks.
    pub(crate) fn fast() -> Pace {
        Pace { window_ns: 2e5, kept_max: 7.0 / 8.0, ..Pace::slow() }
    }

    /// Creates the average that decides about overload. It covers 20 ms and about 64 looks. It begins with 50 ns per
    /// message.
    pub(crate) fn slow() -> Pace {
        Pace { window_ns: 2e7, kept_max: 63.0 / 64.0, messages: 1.0, ns: 50.0 }
    }

    /// Notes that `messages` messages took `ns` nanoseconds.
    pub(crate) fn note(&mut self, messages: u64, ns: u64) {
        let (messages, ns) = (messages as f64, ns as f64);
        let kept = ((self.window_ns - ns) / self.ns.max(1.0)).clamp(0.0, self.kept_max);
        self.messages = self.messages * kept + messages;
        self.ns = self.ns * kept + ns;
    }

    /// Returns the average in nanoseconds, at least 1.
    pub(crate) fn average_ns(&self) -> u64 {
        ((self.ns / self.messages.max(1e-3)) as u64).max(1)
    }
}

/// The parts of a worker's queue that others have sent.
#[derive(Default)]
pub(crate) struct Mail {
    /// For each batch: its end in the sequence of all bytes of the queue, and its bytes.
    batches: VecDeque<(u64, u64)>,
    bytes: u64,
    /// The bytes of all batches that were ever noted.
    noted: u64,
    /// The value of `noted` when the queue was short the last time.
    noted_when_short: u64,
}

impl Mail {
    pub(crate) fn note(&mut self, end: u64, bytes: u64) {
        /// Batches whose ends are closer than this count as one, because the figures are estimates.
        const GRAIN: u64 = 32 * 1024;
        if bytes == 0 {
            return;
        }
        self.bytes += bytes;
        self.noted += bytes;
        match self.batches.back_mut() {
            Some((last_end, last)) if end < *last_end + GRAIN && *last < GRAIN => {
                *last_end = end;
                *last += bytes;
            }
            _ => self.batches.push_back((end, bytes)),
        }
    }

    /// Notes that the next `bytes` from `run` on were put before all others.
    pub(crate) fn note_first(&mut self, run: u64, bytes: u64) {
        self.shift(bytes);
        self.batches.push_front((run + bytes, bytes));
        self.bytes += bytes;
        self.noted_when_short = self.noted_when_short.saturating_sub(bytes);
    }

    /// Notes that `bytes` bytes without a sender were put before all others.
    pub(crate) fn shift(&mut self, bytes: u64) {
        for (end, _) in &mut self.batches {
            *end += bytes;
        }
    }

    /// Returns the bytes that wait when all before `run` were run.
    pub(crate) fn waiting(&mut self, run: u64) -> u64 {
        while let Some((end, bytes)) = self.batches.front()
            && *end <= run
        {
            self.bytes -= bytes;
            self.batches.pop_front();
        }
        if let Some((end, bytes)) = self.batches.front_mut() {
            // A batch may be large. No more of it waits than the bytes up to its end.
            let left = (*bytes).min(*end - run);
            self.bytes -= *bytes - left;
            *bytes = left;
        }
        self.bytes
    }

    /// Returns the bytes that were ever noted and no longer wait, as of the last call of [`Mail::waiting`].
    pub(crate) fn run(&self) -> u64 {
        self.noted.saturating_sub(self.bytes)
    }

    /// Returns the bytes of a queue of `queued` bytes that the worker's own actors have made. The other bytes came with
    /// mail, or were sent by the actors that handled it: as many as were noted since the queue was short the last time.
    pub(crate) fn made(&mut self, queued: u64) -> u64 {
        /// A queue with fewer bytes is short.
        const SHORT: u64 = 64 * 1024;
        if queued < SHORT {
            self.noted_when_short = self.noted;
        }
        queued.saturating_sub(self.noted - self.noted_when_short)
    }

    /// Forgets the waiting batches. The thread that takes the worker notes them again.
    pub(crate) fn clear(&mut self) {
        self.batches.clear();
        self.noted = self.run();
        self.noted_when_short = self.noted_when_short.min(self.noted);
        self.bytes = 0;
    }
}

/// State that the worker's thread uses in phase RUNTIME, or the monitor that took it.
pub(crate) struct Core {
    pub(crate) wheel: Wheel,
    /// Tasks of cancelled timers, which wait to be dropped: see [`crate::user_code`].
    pub(crate) cancelled: Vec<TimerTask>,
    pub(crate) next_timer: u64,
    /// Parked stages. No thief is given a stage of this map.
    pub(crate) parked: BTreeMap<u16, Parked>,
    /// Copy of `WorkerShared::waits_for`, the workers that its muted stages wait for: see `deadlock.rs`.
    pub(crate) waits_for: Vec<AnyWorker>,
    /// Stages to be muted before the next gulp.
    pub(crate) mute_requests: Vec<MuteRequest>,
    /// The turnover of this worker's mail, to tell a standing backlog from a flood.
    pub(crate) turnover: Turnover,
    /// Stages to be parked as long as a gate is closed.
    pub(crate) pauses: Vec<(u16, Arc<Gate>)>,
    /// This stage is not muted before this number of bytes of the queue was run: every worker slept, and this stage was
    /// chosen to go on.
    pub(crate) exempt: Option<(u16, u64)>,
    pub(crate) random: u32,
    pub(crate) pace: Pace,
    pub(crate) slow_pace: Pace,
    pub(crate) kinds: Kinds,
    pub(crate) mail: Mail,
    pub(crate) deferred_starts: DeferredStarts,
    /// The time since which work has waited at every look at the clock. An offer of work to an idle worker resets it,
    /// and so does an idle time.
    pub(crate) loaded_since_ns: Option<u64>,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) trial: Option<Trial>,
    /// The worker gives no short work away before this time (nanoseconds of the system's clock), because its last trial
    /// was in vain.
    pub(crate) short_after_ns: u64,
    pub(crate) checked_ns: u64,
    /// The bytes of records that the worker had run by `checked_ns`.
    pub(crate) checked_bytes: u64,
    pub(crate) until_checkup: u32,
}

impl Core {
    pub(crate) fn new(seed: u32) -> Box<Core> {
        Box::new(Core {
            wheel: Wheel::new(),
            cancelled: Vec::new(),
            next_timer: 0,
            parked: BTreeMap::new(),
            waits_for: Vec::new(),
            mute_requests: Vec::new(),
            turnover: Turnover::default(),
            pauses: Vec::new(),
            exempt: None,
            random: seed | 1,
            pace: Pace::fast(),
            slow_pace: Pace::slow(),
            kinds: Kinds::default(),
            mail: Mail::default(),
            deferred_starts: DeferredStarts::new(),
            loaded_since_ns: None,
            verdict: None,
            trial: None,
            short_after_ns: 0,
            checked_ns: 0,
            checked_bytes: 0,
            until_checkup: 1,
        })
    }

    pub(crate) fn has_parked(&self) -> bool {
        !self.parked.is_empty()
    }

    pub(crate) fn is_parked(&self, stage: u16) -> bool {
        self.parked.contains_key(&stage)
    }

    /// Parks the record if its stage is parked. Returns whether the record was moved.
    pub(crate) fn park_record(&mut self, record: NonNull<Record>, pool: &Pool) -> bool {
        // SAFETY: the caller owns the record, which is whole.
        unsafe {
            if record.as_ref().is_buried() {
                return false;
            }
            let Some(parked) = self.parked.get_mut(&record.as_ref().stage()) else { return false };
            let lane = record.as_ref().lane() as usize;
            parked.lanes[lane].push_bytes(record.as_ptr().cast(), record.as_ref().bytes(), Some(pool));
        }
        true
    }

    /// Returns a pseudo-random number (xorshift), for choices that need no quality.
    pub(crate) fn random(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random
    }
}

impl Drop for Core {
    /// Drops user code. No worker calls this in RUNTIME, except for a worker whose thread has ended.
    fn drop(&mut self) {
        for task in self.wheel.take_all().into_iter().chain(self.cancelled.drain(..)) {
            user_calls::call(|| drop(task));
        }
        let parked = std::mem::take(&mut self.parked).into_values().flat_map(|parked| parked.lanes);
        for chain in parked.chain([self.deferred_starts.take(u64::MAX, None)]) {
            crate::worker::message_queue::bounce_chain(chain, crate::memory::record::Undelivered::Shutdown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;

    #[test]
    fn long_messages_count_at_once_and_a_single_one_loses_its_weight_soon() {
        let mut pace = Pace::fast();
        (0..1_000).for_each(|_| pace.note(2_048, 10_240));
        assert!(pace.average_ns() <= 5);
        pace.note(1, 1_000_000);
        assert!(pace.average_ns() > 500_000, "{}", pace.average_ns());
        (0..100).for_each(|_| pace.note(1, 5));
        assert!(pace.average_ns() < 20, "{}", pace.average_ns());
    }

    #[test]
    fn the_average_for_overload_changes_slowly() {
        let mut pace = Pace::slow();
        (0..1_000).for_each(|_| pace.note(1_000, 10_000));
        pace.note(1, 100_000);
        assert!(pace.average_ns() < 20, "{}", pace.average_ns());
    }
}
