//! The slots of this member: owned, open, closing, closed.

use std::collections::BTreeMap;

use super::{Effect, Time, balance};
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

    /// Writes the hand-overs: the new owners of closed slots, and `Moving` for wished slots, for all open ones of a leaving member, and for those
    /// that level the loads.
    pub(super) fn hand_over(&self, is_leaving: bool, next: &mut View) {
        let me = self.me;
        for (index, slot) in next.slots.iter_mut().enumerate() {
            if let Holder::Moving { from, to } = slot.holder
                && from == me
                && self.is_closed(index)
            {
                *slot = Slot { epoch: slot.epoch + 1, holder: Holder::Owned(to) };
            }
        }
        if is_leaving {
            self.hand_all_over(next);
            return;
        }
        for (index, to) in &self.wishes {
            let is_active = next.members.get(to).is_some_and(|member| member.status == Status::Active);
            if is_active && next.slots.get(*index).is_some_and(|slot| self.is_held(*index, slot)) {
                next.slots[*index].holder = Holder::Moving { from: me, to: *to };
            }
        }
        let targets = balance::targets(next, me);
        let held = next.slots.iter_mut().enumerate().filter(|(index, slot)| self.is_held(*index, slot));
        for ((_, slot), to) in held.zip(targets) {
            slot.holder = Holder::Moving { from: me, to };
        }
    }

    /// Begins to hand all slots over, each to the member with the fewest. Members with an older program get slots if no others are active.
    fn hand_all_over(&self, next: &mut View) {
        let mut loads = next.loads();
        let program = |id: &MemberId| next.members.get(id).map(|member| member.program);
        loads.remove(&self.me);
        if loads.keys().any(|id| program(id) >= program(&self.me)) {
            loads.retain(|id, _| program(id) >= program(&self.me));
        }
        for (index, slot) in next.slots.iter_mut().enumerate() {
            if self.is_held(index, slot)
                && let Some((to, load)) = loads.iter_mut().min_by_key(|(_, load)| **load)
            {
                *load += 1;
                slot.holder = Holder::Moving { from: self.me, to: *to };
            }
        }
    }

    /// Returns whether this member holds a slot at its epoch, has opened it, and does not hand it over.
    fn is_held(&self, index: usize, slot: &Slot) -> bool {
        let is_own = matches!(slot.holder, Holder::Owned(owner) | Holder::Inherited(owner) if owner == self.me);
        let has_opened = |hold: &Hold| {
            hold.epoch == slot.epoch && matches!(hold.phase, Phase::Open | Phase::Closing | Phase::Closed)
        };
        is_own && self.holds.get(&index).is_some_and(has_opened)
    }

    /// Returns the epoch of a slot that the host may run, if the lease allows it, and whether no other member runs it.
    pub(super) fn running(&self, slot: usize) -> Option<(u64, bool)> {
        let hold = self.holds.get(&slot)?;
        match hold.phase {
            Phase::Adopted | Phase::Closed => None,
            Phase::Owned => Some((hold.epoch, false)),
            Phase::Open | Phase::Closing => Some((hold.epoch, true)),
        }
    }

    /// Returns the time at which the next slot opens.
    pub(super) fn times(&self) -> impl Iterator<Item = Time> {
        self.due.into_iter()
    }
}
