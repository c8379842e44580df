//! The part of a worker that moves to another thread when a handler is stuck: timers, and what is put aside or off.

use std::collections::{BTreeMap, VecDeque};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::away::Gate;
use crate::fullness::Fullness;
use crate::muting::OVERLOADED_BYTES;
use crate::record::Record;
use crate::segment::{Chain, Pool};
use crate::starts::Starts;
use crate::timers::Wheel;

/// Why a stage's messages are put aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A stuck handler of the stage is still running in a thread that lost the worker.
    Detached,
    /// The stage sent to one (`target`) whose worker (`receiver`) is overloaded, or which is full itself since a stuck
    /// handler of it still runs.
    Muted { receiver: u16, target: u16, stuck: bool },
    /// What the stage sends on has to wait: see `away.rs`.
    Paused,
}

/// What is put aside for a stage.
pub(crate) struct Hold {
    pub(crate) reason: Reason,
    /// With more bytes of records than this the stage is full: that is a matter of this stage alone, and counts for those only
    /// who send to it. None: what is put aside counts for the worker.
    pub(crate) bytes_max: Option<usize>,
    pub(crate) lanes: [Chain; 3],
}

impl Hold {
    pub(crate) fn new(reason: Reason, bytes_max: Option<usize>) -> Hold {
        Hold { reason, bytes_max, lanes: [const { Chain::new() }; 3] }
    }

    /// It is put aside since a handler of the stage is stuck, from now on.
    pub(crate) fn detach(&mut self) {
        (self.reason, self.bytes_max) = (Reason::Detached, Some(OVERLOADED_BYTES));
    }

    /// Why the stage is full, if it is.
    pub(crate) fn fullness(&self) -> Option<u8> {
        let is_full = self.bytes_max.is_some_and(|bytes_max| self.bytes() > bytes_max);
        is_full.then_some(if self.reason == Reason::Detached { Fullness::STUCK } else { Fullness::WAITS })
    }

    /// Bytes of records put aside.
    pub(crate) fn bytes(&self) -> usize {
        self.lanes.iter().map(|lane| lane.bytes).sum()
    }
}

/// How long a message takes here, on average; what is long ago counts less.
pub(crate) struct Pace {
    messages: u64,
    ns: u64,
}

impl Pace {
    /// So many messages took so long.
    pub(crate) fn note(&mut self, messages: u64, ns: u64) {
        self.messages = self.messages - self.messages / 8 + messages;
        self.ns = self.ns - self.ns / 8 + ns;
    }

    /// At least 1.
    pub(crate) fn average_ns(&self) -> u64 {
        (self.ns / self.messages).max(1)
    }
}

/// Which parts of a worker's queue were sent by others.
#[derive(Default)]
pub(crate) struct Mail {
    /// For each batch: where in the sequence of all bytes of the queue it ends, and its bytes.
    batches: VecDeque<(u64, u64)>,
    bytes: u64,
}

impl Mail {
    pub(crate) fn note(&mut self, end: u64, bytes: u64) {
        /// Batches that end closer to each other than this are one: this is for estimates.
        const GRAIN: u64 = 32 * 1024;
        if bytes == 0 {
            return;
        }
        self.bytes += bytes;
        match self.batches.back_mut() {
            Some((last_end, last)) if end < *last_end + GRAIN && *last < GRAIN => {
                *last_end = end;
                *last += bytes;
            }
            _ => self.batches.push_back((end, bytes)),
        }
    }

    /// The next `bytes` from `run` on were put before all others.
    pub(crate) fn note_first(&mut self, run: u64, bytes: u64) {
        self.shift(bytes);
        self.batches.push_front((run + bytes, bytes));
        self.bytes += bytes;
    }

    /// So many bytes that nobody has sent were put before all others.
    pub(crate) fn shift(&mut self, bytes: u64) {
        for (end, _) in &mut self.batches {
            *end += bytes;
        }
    }

    /// Bytes that wait, when all before `run` were run.
    pub(crate) fn waiting(&mut self, run: u64) -> u64 {
        while let Some((end, bytes)) = self.batches.front()
            && *end <= run
        {
            self.bytes -= bytes;
            self.batches.pop_front();
        }
        self.bytes
    }

    pub(crate) fn clear(&mut self) {
        self.batches.clear();
        self.bytes = 0;
    }
}

/// Used by the worker's thread in phase RUNTIME, or by the monitor that took it.
pub(crate) struct Core {
    pub(crate) wheel: Wheel,
    pub(crate) next_timer: u64,
    /// Stages put aside. No stage in here is given to a thief.
    pub(crate) holds: BTreeMap<u16, Hold>,
    /// What its muted stages wait for, as it stands in the office: see `knot.rs`.
    pub(crate) waits_for: Vec<u16>,
    /// Stages that sent to something overloaded in this gulp, with its worker and its stage.
    pub(crate) mute_requests: Vec<(u16, u16, u16)>,
    /// Stages to be put aside as long as a gate is closed.
    pub(crate) pauses: Vec<(u16, Arc<Gate>)>,
    /// This stage is not muted before so many bytes of the queue were run: all slept, and it was the one that went on.
    pub(crate) exempt: Option<(u16, u64)>,
    pub(crate) random: u32,
    pub(crate) pace: Pace,
    pub(crate) mail: Mail,
    pub(crate) starts: Starts,
    /// Since then there was something worth sharing in the queue at every look, and nobody was woken.
    pub(crate) loaded_since_ns: Option<u64>,
    pub(crate) checked_ns: u64,
    pub(crate) checked_handled: u64,
    pub(crate) until_checkup: u32,
    pub(crate) handled_total: u64,
}

impl Core {
    pub(crate) fn new(seed: u32) -> Box<Core> {
        Box::new(Core {
            wheel: Wheel::new(),
            next_timer: 0,
            holds: BTreeMap::new(),
            waits_for: Vec::new(),
            mute_requests: Vec::new(),
            pauses: Vec::new(),
            exempt: None,
            random: seed | 1,
            pace: Pace { messages: 1, ns: 50 },
            mail: Mail::default(),
            starts: Starts::new(),
            loaded_since_ns: None,
            checked_ns: 0,
            checked_handled: 0,
            until_checkup: 1,
            handled_total: 0,
        })
    }

    pub(crate) fn holds_any(&self) -> bool {
        !self.holds.is_empty()
    }

    pub(crate) fn is_held(&self, stage: u16) -> bool {
        self.holds.contains_key(&stage)
    }

    /// Puts the record aside if its stage is. True: it was moved.
    pub(crate) fn hold_record(&mut self, record: NonNull<Record>, pool: &Pool) -> bool {
        // SAFETY: the caller owns the record, which is whole.
        unsafe {
            let Some(hold) = self.holds.get_mut(&record.as_ref().stage()) else { return false };
            let lane = record.as_ref().lane() as usize;
            hold.lanes[lane].push_bytes(record.as_ptr().cast(), record.as_ref().bytes(), Some(pool));
        }
        true
    }

    /// A pseudo-random number (xorshift), for choices that need no quality.
    pub(crate) fn random(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        let holds = std::mem::take(&mut self.holds).into_values().flat_map(|hold| hold.lanes);
        for chain in holds.chain([self.starts.take(u64::MAX, None)]) {
            crate::queue::bounce_chain(chain, crate::resident::Undelivered::Shutdown);
        }
    }
}
