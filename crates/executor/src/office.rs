//! What a worker shows to others: its inbox, its presence and a few figures.
//!
//! All hand-overs between threads go through the inbox lock: mail, theft requests, adoption, parking and wake-ups.
//! That makes the protocol small: whoever puts something into an inbox sees, under the same lock, whether its worker
//! sleeps (I3), and a stage changes its worker only under the locks of both (I1, I2). The lock is taken per batch.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use crate::address::Lane;
use crate::segment::Chain;
use crate::signal::Signal;
use crate::timers::TimerOp;

/// Whether a worker looks after its mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It runs, or will look at its inbox before it sleeps. Counted in `SystemCore::active`.
    Awake,
    /// It found nothing to do and watches its mail flag.
    Idle,
    /// It sleeps and must be unparked.
    Parked,
}

pub(crate) struct Inbox {
    pub(crate) lanes: [Chain; 3],
    /// Bytes of the normal lane that came by theft: nobody has sent them here.
    pub(crate) loot_bytes: usize,
    pub(crate) presence: Presence,
    /// While not awake: its stages may be adopted (it has put no records aside).
    pub(crate) adoptable: bool,
    pub(crate) signal: Arc<Signal>,
    pub(crate) thread: Option<Thread>,
    /// Workers that wait for stages.
    pub(crate) thieves: Vec<u16>,
    pub(crate) timer_ops: Vec<TimerOp>,
    /// Stages whose stuck handler returned.
    pub(crate) returned: Vec<u16>,
}

impl Inbox {
    pub(crate) fn has_mail(&self) -> bool {
        self.lanes.iter().any(|lane| !lane.is_empty()) || !self.timer_ops.is_empty() || !self.returned.is_empty()
    }

    /// Bytes of normal mail that others have sent.
    pub(crate) fn sent_bytes(&self) -> u64 {
        (self.lanes[Lane::Normal as usize].bytes - self.loot_bytes) as u64
    }

    pub(crate) fn lane(&mut self, lane: Lane) -> &mut Chain {
        &mut self.lanes[lane as usize]
    }
}

/// A worker's shared face.
#[repr(align(128))]
pub(crate) struct Office {
    inbox: Mutex<Inbox>,
    /// There is something in the inbox; a copy for reading without the lock.
    pub(crate) mail: AtomicBool,
    /// Its queue is above the high-water mark: who sends to it is muted.
    pub(crate) overloaded: AtomicBool,
    /// Average nanoseconds that a message takes here, as of the last checkup.
    pub(crate) average_ns: AtomicU64,
    /// Stages of it for which more is put aside than the high-water mark: who sends to one is muted.
    pub(crate) full_stages: AtomicUsize,
    /// Workers with stages muted on this one.
    pub(crate) muted_on_me: AtomicBool,
    /// Estimated messages that wait here; what thieves look at.
    pub(crate) surplus: AtomicUsize,
    /// Nanoseconds (system clock) of this worker's last theft attempt: the longest-victim heuristic.
    pub(crate) last_theft_ns: AtomicU64,
    /// Threads outside wait here while what they send to is overloaded.
    pub(crate) relieved: Condvar,
}

impl Office {
    pub(crate) fn new() -> Self {
        Office {
            inbox: Mutex::new(Inbox {
                lanes: [const { Chain::new() }; 3],
                loot_bytes: 0,
                presence: Presence::Idle,
                adoptable: true,
                signal: Arc::default(),
                thread: None,
                thieves: Vec::new(),
                timer_ops: Vec::new(),
                returned: Vec::new(),
            }),
            mail: AtomicBool::new(false),
            overloaded: AtomicBool::new(false),
            average_ns: AtomicU64::new(0),
            full_stages: AtomicUsize::new(0),
            muted_on_me: AtomicBool::new(false),
            surplus: AtomicUsize::new(0),
            last_theft_ns: AtomicU64::new(0),
            relieved: Condvar::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inbox> {
        // No user code runs under this lock, so a poisoned one holds no broken state.
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Inbox>> {
        match self.inbox.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}
