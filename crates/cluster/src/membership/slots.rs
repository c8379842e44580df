//! The slots of this member: owned, open, closing, closed.

use std::collections::BTreeMap;

use super::{Effect, Time};
use crate::view::{Holder, MemberId, Slot, Status, View};

/// The state of an ownership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// This member has no lease yet.
    Adopted,
    /// This member has [`Effect::Own`]. The slot opens when the lease of its last owner has ended.
    Owned,
    Open,
    /// The host closes it, and may still run it.
    Closing,
    /// The host does not run it any more. It stays so for this epoch.
    Closed,
}

/// A slot that this member owns. A new epoch begins a new one: nothing that was reported of an earlier epoch counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Hold {
    epoch: u64,
    opens: Time,
    phase: Phase,
}

/// The slots of this member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Slots {
    me: MemberId,
    holds: BTreeMap<usize, Hold>,
    /// The version that `holds` follows.
    version: u64,
    /// The earliest time at which a slot that is not open may go on.
    due: Option<Time>,
    /// The hand-overs that are not written yet.
    wishes: BTreeMap<usize, MemberId>,
}

impl Slots {
    pub(super) fn new(me: MemberId) -> Slots {
        Slots { me, holds: BTreeMap::new(), version: 0, due: None, wishes: BTreeMap::new() }
    }

    /// Follows the view: owns new slots, opens those that have waited, and closes those that move. `leaves_nobody`: this member leaves, and
    /// no other one can take its slots. Without a lease no slot goes on, because its next owner has perhaps opened it already.
    ///
    /// A step at rest reads no slot, because a view has thousands of them.
    pub(super) fn follow(
        &mut self,
        view: &View,
        now: Time,
        has_lease: bool,
        leaves_nobody: bool,
        effects: &mut Vec<Effect>,
    ) {
        let is_due = has_lease && self.due.is_some_and(|due| due <= now);
        if self.version == view.version && !is_due {
            return;
        }
        self.version = view.version;
        self.due = None;
        self.holds.retain(|slot, _| view.slots.get(*slot).is_some_and(|slot| slot.holder.owner() == Some(self.me)));
        let me = Some(self.me);
        let own = view.slots.iter().enumerate().filter(|(_, slot)| slot.holder.owner() == me);
        for (index, slot) in own {
            let epoch = slot.epoch;
            if self.holds.get(&index).is_none_or(|hold| hold.epoch != epoch) {
                // Vacant slots were closed, and a cancelled hand-over began with an open slot: both need no wait.
                let is_owned = matches!(slot.holder, Holder::Owned(_));
                let opens = if is_owned { now } else { now.saturating_add(view.timing.wait) };
                self.holds.insert(index, Hold { epoch, opens, phase: Phase::Adopted });
            }
            let hold = self.holds.get_mut(&index).expect("it is there or was inserted");
            if hold.phase == Phase::Adopted && has_lease {
                hold.phase = Phase::Owned;
                effects.push(Effect::Own { slot: index, epoch });
            }
            if hold.phase == Phase::Owned && hold.opens <= now && has_lease {
                hold.phase = Phase::Open;
                effects.push(Effect::Open { slot: index, epoch });
            }
            let due = match hold.phase {
                Phase::Adopted => Some(now),
                Phase::Owned => Some(hold.opens),
                Phase::Open | Phase::Closing | Phase::Closed => None,
            };
            self.due = [self.due, due].into_iter().flatten().min();
            let to = if let Holder::Moving { to, .. } = slot.holder { Some(to) } else { None };
            if hold.phase == Phase::Open && (to.is_some() || leaves_nobody) {
                hold.phase = Phase::Closing;
                effects.push(Effect::Close { slot: index, epoch, to });
            }
        }
    }

    /// Notes that the host has closed a slot. A report of another epoch says nothing about this one.
    pub(super) fn closed(&mut self, slot: usize, epoch: u64) {
        if let Some(hold) = self.holds.get_mut(&slot)
            && hold.epoch == epoch
            && hold.phase == Phase::Closing
        {
            hold.phase = Phase::Closed;
        }
    }

    /// Notes that the program wants to hand a slot over. A later target replaces an earlier one, which is refused.
    pub(super) fn wish(&mut self, slot: usize, to: MemberId, effects: &mut Vec<Effect>) {
        if let Some(earlier) = self.wishes.insert(slot, to) {
            effects.push(Effect::Refused { slot, to: earlier });
        }
    }

    /// Refuses the hand-overs that are not possible. Those that are written are done.
    pub(super) fn check_wishes(&mut self, view: &View, effects: &mut Vec<Effect>) {
        let me = self.me;
        for (slot, to) in std::mem::take(&mut self.wishes) {
            let target = view.members.get(&to);
            let can_take = to != me && target.is_some_and(|member| member.status == Status::Active);
            let holder = view.slots.get(slot).map(|slot| slot.holder);
            if holder == Some(Holder::Moving { from: me, to }) {
                continue;
            } else if can_take && self.is_open(slot) {
                self.wishes.insert(slot, to);
            } else {
                effects.push(Effect::Refused { slot, to });
            }
        }
    }

    fn is_open(&self, slot: usize) -> bool {
        self.holds.get(&slot).is_some_and(|hold| hold.phase == Phase::Open)
    }

    /// Returns whether a slot is closed. Each step first drops the reports of earlier epochs, in `follow`.
    pub(super) fn is_closed(&self, slot: usize) -> bool {
        self.holds.get(&slot).is_some_and(|hold| hold.phase == Phase::Closed)
    }

    /// Writes the hand-overs: `Moving` for wished ones and for all open slots of a leaving member, and the new owner for closed ones.
    pub(super) fn hand_over(&self, is_leaving: bool, next: &mut View) {
        let me = self.me;
        let mut loads = next.loads();
        loads.remove(&me);
        for (index, slot) in next.slots.iter_mut().enumerate() {
            let is_held = self
                .holds
                .get(&index)
                .is_some_and(|hold| hold.epoch == slot.epoch && !matches!(hold.phase, Phase::Adopted | Phase::Owned));
            match slot.holder {
                Holder::Moving { from, to } if from == me && self.is_closed(index) => {
                    *slot = Slot { epoch: slot.epoch + 1, holder: Holder::Owned(to) };
                }
                Holder::Owned(owner) | Holder::Inherited(owner) if owner == me && is_held => {
                    let wished = self.wishes.get(&index).copied().filter(|to| loads.contains_key(to));
                    let lightest = || loads.iter().min_by_key(|(_, load)| **load).map(|(id, _)| *id);
                    let to = if is_leaving { lightest() } else { wished };
                    if let Some(to) = to {
                        *loads.get_mut(&to).expect("it is one of them") += 1;
                        slot.holder = Holder::Moving { from: me, to };
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns the epoch of a slot that the host may run, if the lease allows it.
    pub(super) fn running(&self, slot: usize) -> Option<u64> {
        let hold = self.holds.get(&slot)?;
        matches!(hold.phase, Phase::Open | Phase::Closing).then_some(hold.epoch)
    }

    /// Returns the epoch of a slot that the host may run under the protection of epochs, if the lease allows it.
    pub(super) fn running_fenced(&self, slot: usize) -> Option<u64> {
        let hold = self.holds.get(&slot)?;
        matches!(hold.phase, Phase::Owned | Phase::Open | Phase::Closing).then_some(hold.epoch)
    }

    /// Returns the time at which the next slot opens.
    pub(super) fn times(&self) -> impl Iterator<Item = Time> {
        self.due.into_iter()
    }
}
