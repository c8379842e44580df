//! Suspicions, accusations, and the decision that a member is dead.

use std::collections::{BTreeMap, BTreeSet};

use super::Time;
use crate::view::{Accusation, MemberId, Status, View};

/// The number of waits after which a refuted accusation is repeated. One direction of a link that stays cut causes no more writes
/// than that, and a member that dies after its answer is still found.
const WAITS_BEFORE_REPETITION: u32 = 8;

/// A member that this one does not reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Suspicion {
    is_gone: bool,
    /// The time of the next accusation, if the last one was refuted while the suspicion lasted.
    repeat_at: Option<Time>,
}

/// The opinions of this member, and the accusations of all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Failures {
    suspicions: BTreeMap<MemberId, Suspicion>,
    /// The accusations that are not refuted, by accused and accuser: their versions, and the time at which they count as silence.
    silent_from: BTreeMap<(MemberId, MemberId), (u64, Time)>,
}

impl Failures {
    pub(super) fn suspect(&mut self, member: MemberId, is_gone: bool) {
        self.suspicions.entry(member).or_default().is_gone |= is_gone;
    }

    pub(super) fn trust(&mut self, member: MemberId) {
        self.suspicions.remove(&member);
    }

    /// Takes a new view, which follows `former`.
    pub(super) fn adopted(&mut self, former: Option<&View>, view: &View, me: MemberId, now: Time) {
        let was_member = |id: &MemberId| former.is_some_and(|former| former.members.contains_key(id));
        self.suspicions.retain(|id, _| view.members.contains_key(id) || !was_member(id));
        let mut silent_from = BTreeMap::new();
        for (accused, member) in &view.members {
            for (accuser, accusation) in &member.accusations {
                let own = self.suspicions.get_mut(accused).filter(|_| *accuser == me);
                if !accusation.is_refuted {
                    let key = (*accused, *accuser);
                    let new = (accusation.version, now.saturating_add(view.timing.lease));
                    let known = self.silent_from.get(&key).filter(|known| known.0 == accusation.version);
                    silent_from.insert(key, *known.unwrap_or(&new));
                    own.into_iter().for_each(|suspicion| suspicion.repeat_at = None);
                } else if let Some(suspicion) = own {
                    let pause = view.timing.wait.saturating_mul(WAITS_BEFORE_REPETITION);
                    suspicion.repeat_at.get_or_insert(now.saturating_add(pause));
                }
            }
        }
        self.silent_from = silent_from;
    }

    /// Brings the accusations of `me` up to date: new ones, repeated ones, and those that no longer hold.
    pub(super) fn accuse(&self, me: MemberId, now: Time, next: &mut View) {
        for (id, member) in next.members.iter_mut().filter(|(id, _)| **id != me) {
            let Some(suspicion) = self.suspicions.get(id) else {
                member.accusations.remove(&me);
                continue;
            };
            // A suspicion that is younger than the refutation is due at once.
            let is_due = suspicion.repeat_at.is_none_or(|at| at <= now);
            if member.accusations.get(&me).is_none_or(|own| own.is_refuted && is_due) {
                member.accusations.insert(me, Accusation { version: next.version, is_refuted: false });
            }
        }
    }

    /// Returns the members that this one declares dead: half of the voters accuse it, or it has not answered an accusation for
    /// `lease`, or it is gone. Joining members have no vote, because they may see less than the others. One on the wrong network finds all addresses
    /// without a theater. If all members are joining, each has a vote: two that do not reach each other would otherwise join for ever.
    pub(super) fn dead(&self, view: &View, me: MemberId, now: Time) -> BTreeSet<MemberId> {
        let has_joined = |id: &MemberId| view.members.get(id).is_some_and(|member| member.status != Status::Joining);
        let all_join = !view.members.keys().any(has_joined);
        let is_voter = |id: &MemberId| all_join || has_joined(id);
        let voters = view.members.keys().filter(|id| is_voter(id)).count();
        let is_silent = |id: MemberId| {
            let mut accusations = self.silent_from.range((id, MemberId(0))..=(id, MemberId(u64::MAX)));
            accusations.any(|(_, (_, from))| *from <= now)
        };
        let dead = view.members.iter().filter(|(id, member)| {
            let votes = member.accusations.keys().filter(|accuser| is_voter(accuser)).count();
            let is_outvoted = votes > 0 && 2 * votes >= voters;
            let is_gone = has_joined(&me) && self.suspicions.get(id).is_some_and(|suspicion| suspicion.is_gone);
            **id != me && (is_outvoted || is_gone || is_silent(**id))
        });
        dead.map(|(id, _)| *id).collect()
    }

    /// Returns the times at which an accusation is repeated or counts.
    pub(super) fn times(&self) -> impl Iterator<Item = Time> {
        let repeated = self.suspicions.values().filter_map(|suspicion| suspicion.repeat_at);
        repeated.chain(self.silent_from.values().map(|(_, from)| *from))
    }
}
