//! The lease: how long a member may run.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Time;
use crate::view::{MemberId, Timing};

/// The proofs that this member lives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Lease {
    /// The time from which the lease counts: the latest proof.
    from: Option<Time>,
    /// The latest time, by this clock, at which a member has surely begun a read that did not return a later version than
    /// this member's.
    last_read: Option<Time>,
    /// The time of each member's latest acknowledged ask, at the adopted version.
    acknowledged: BTreeMap<MemberId, Time>,
}

impl Lease {
    /// Notes a read of the ledger. It proves that this member lives if it is in the view.
    pub(super) fn has_read(&mut self, begun: Time, is_member: bool) {
        self.last_read = self.last_read.max(Some(begun));
        if is_member {
            self.from = self.from.max(Some(begun));
        }
    }

    /// Notes an acknowledgement at the adopted version.
    pub(super) fn acknowledged(&mut self, from: MemberId, at: Time, read_age: Option<Duration>, timing: &Timing) {
        let latest = self.acknowledged.entry(from).or_default();
        *latest = at.max(*latest);
        // The answer left after the ask.
        let read = read_age.and_then(|age| at.checked_sub(timing.stretch(age)));
        self.last_read = self.last_read.max(read);
    }

    /// Forgets the acknowledgements, because a new version needs its own: the members and their knowledge may be others.
    pub(super) fn forget_acknowledgements(&mut self) {
        self.acknowledged.clear();
    }

    /// Returns whether all these members have acknowledged the adopted version.
    pub(super) fn is_acknowledged_by(&self, mut others: impl Iterator<Item = MemberId>) -> bool {
        others.all(|other| self.acknowledged.contains_key(&other))
    }

    /// Extends the lease if all other members have acknowledged. A member without others is a round of its own.
    pub(super) fn renew(&mut self, others: impl Iterator<Item = MemberId>, now: Time, timing: &Timing) {
        let mut asked = others.map(|other| self.acknowledged.get(&other).copied());
        let round = asked.try_fold(now, |least, asked| Some(least.min(asked?)));
        let limit = self.last_read.map(|read| read.saturating_add(timing.outage));
        if let (Some(round), Some(limit)) = (round, limit) {
            self.from = self.from.max(Some(round.min(limit)));
        }
    }

    /// Returns the time since the last read that this member knows of.
    pub(super) fn read_age(&self, now: Time) -> Option<Duration> {
        self.last_read.map(|read| now.saturating_sub(read))
    }

    /// Returns the end of the lease.
    pub(super) fn end(&self, timing: &Timing) -> Option<Time> {
        self.from.map(|from| from.saturating_add(timing.lease))
    }
}
