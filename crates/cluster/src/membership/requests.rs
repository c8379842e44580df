//! The requests to the ledger: one at a time, and none too soon after one that has failed.

use std::sync::Arc;

use super::Time;
use crate::view::{Timing, View};

/// The number of a request to the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A value of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stored {
    /// The view.
    pub view: Arc<View>,
    /// Its revision, above 0.
    pub revision: u64,
}

/// A read without a result. It may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadError;

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The ledger has the value.
    Written {
        /// Its revision.
        revision: u64,
    },
    /// The ledger had another revision.
    Conflict,
    /// The ledger has the value, or it has not, or it will have it.
    Unknown,
}

/// The request that may be sent now.
pub(super) enum Wanted {
    Nothing,
    Read,
    Write { expected: u64 },
}

/// A read that waits for its result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Read {
    /// The version that was adopted when the read began.
    pub(super) version: u64,
    pub(super) begun: Time,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Pending {
    Read(Read),
    Write { view: Arc<View>, begun: Time },
}

/// The requests to the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Requests {
    last: RequestId,
    pending: Option<Pending>,
    /// The revision of the adopted view, or 0 if the ledger has none. `None`: a read must come first.
    pub(super) revision: Option<u64>,
    /// Whether the ledger is known to have changed.
    pub(super) is_stale: bool,
    /// Whether the last write with a known result was a conflict.
    pub(super) has_conflicted: bool,
    /// The time of the next read in a quiet cluster.
    read_at: Time,
    /// The time before which no request is sent.
    paused_until: Time,
}

impl Requests {
    /// Returns the request that may be sent now. Gives up a request that has no result for too long: its outcome is unknown.
    pub(super) fn wanted(&mut self, now: Time, timing: &Timing) -> Wanted {
        if self.deadline(timing).is_some_and(|deadline| deadline <= now) {
            self.pending = None;
            self.forget(now, timing);
        }
        match self.revision {
            _ if self.pending.is_some() || now < self.paused_until => Wanted::Nothing,
            Some(expected) if !self.is_stale && now < self.read_at => Wanted::Write { expected },
            _ => Wanted::Read,
        }
    }

    /// Returns the time at which the request is given up. A late read still proves something. After a late write, a read tells more.
    fn deadline(&self, timing: &Timing) -> Option<Time> {
        Some(match self.pending.as_ref()? {
            Pending::Read(Read { begun, .. }) => begun.saturating_add(timing.lease),
            Pending::Write { begun, .. } => begun.saturating_add(timing.renew),
        })
    }

    fn begin(&mut self, pending: Pending) -> RequestId {
        self.pending = Some(pending);
        self.last = RequestId(self.last.0 + 1);
        self.last
    }

    /// Begins a read.
    pub(super) fn read(&mut self, version: u64, now: Time, timing: &Timing) -> RequestId {
        // A change that is reported from now on may come after this read.
        self.is_stale = false;
        self.read_at = now.saturating_add(timing.renew);
        self.begin(Pending::Read(Read { version, begun: now }))
    }

    /// Begins a write.
    pub(super) fn write(&mut self, view: Arc<View>, now: Time) -> RequestId {
        self.begin(Pending::Write { view, begun: now })
    }

    /// Returns whether the ledger was read after the last write.
    pub(super) fn has_read(&self) -> bool {
        self.revision.is_some() && !matches!(self.pending, Some(Pending::Write { .. }))
    }

    /// Returns the read with this number, if it is the one that is waited for.
    pub(super) fn read_done(&mut self, id: RequestId, now: Time, timing: &Timing) -> Option<Read> {
        match self.pending.take() {
            Some(Pending::Read(read)) if id == self.last => {
                // After a slow read the next one would be due at once, and no write would begin.
                self.read_at = self.read_at.max(now.saturating_add(timing.pause()));
                Some(read)
            }
            other => {
                self.pending = other;
                None
            }
        }
    }

    /// Returns the written view of the write with this number, if it is the one that is waited for.
    pub(super) fn write_done(&mut self, id: RequestId) -> Option<Arc<View>> {
        match self.pending.take() {
            Some(Pending::Write { view, .. }) if id == self.last => Some(view),
            other => {
                self.pending = other;
                None
            }
        }
    }

    /// Lets the next request be a read, after a while: a busy loop would only slow the ledger further.
    pub(super) fn forget(&mut self, now: Time, timing: &Timing) {
        self.revision = None;
        self.pause(now, timing);
    }

    /// Lets the next request be a read: at once, because the view of another member is there, or after a while if the write before has failed too.
    pub(super) fn conflict(&mut self, now: Time, timing: &Timing) {
        self.revision = None;
        if std::mem::replace(&mut self.has_conflicted, true) {
            self.pause(now, timing);
        }
    }

    /// Sends nothing for a while.
    pub(super) fn pause(&mut self, now: Time, timing: &Timing) {
        self.paused_until = now.saturating_add(timing.pause());
    }

    /// Returns the times at which a request becomes possible or is given up.
    pub(super) fn times(&self, timing: &Timing) -> impl Iterator<Item = Time> {
        [self.read_at, self.paused_until].into_iter().chain(self.deadline(timing))
    }
}
