//! The next view: all that this member wants to change, in one write.

use std::collections::BTreeMap;

use super::{Config, Membership, is_alone, others};
use crate::view::{Holder, Member, Status, View};

impl Membership {
    /// Returns the view that this member wants to write, or `None` if the adopted one is as it should be.
    pub(super) fn next_view(&self) -> Option<View> {
        let me = self.me;
        let Some(adopted) = &self.adopted else {
            // The ledger has no view.
            let Config { cluster, timing, slots } = self.config;
            return Some(self.joined(View::first(cluster, timing, slots)));
        };
        let view = &*adopted.view;
        let mut next = view.successor(adopted.fingerprint)?;
        let Some(own) = view.members.get(&me) else { return Some(self.joined(next)) };

        if self.is_leaving && self.can_leave(view) {
            for slot in next.slots.iter_mut().filter(|slot| slot.holder.owner() == Some(me)) {
                slot.holder = Holder::Vacant;
            }
            // Nobody else, even if it is dead: see rule 6.
            next.remove(&[me].into());
            return Some(next);
        }

        let may_remove = own.status != Status::Joining || self.alone_from.is_some_and(|from| from <= self.now);
        if may_remove {
            next.remove(&self.failures.dead(view, me, self.now));
        }
        self.failures.accuse(me, self.now, &mut next);
        let own_row = next.members.get_mut(&me).expect("no member removes itself here");
        own_row.accusations.values_mut().for_each(|accusation| accusation.is_refuted = true);
        if self.is_leaving {
            own_row.status = Status::Leaving;
        } else if own.status == Status::Joining && self.lease.is_acknowledged_by(others(view, me)) {
            own_row.status = Status::Active;
            next.take_free_slots(me);
        }
        self.slots.hand_over(self.is_leaving, &mut next);
        (next.members != view.members || next.slots != view.slots).then_some(next)
    }

    /// Returns the view with this member. The first one has nobody to ask, and is active at once.
    fn joined(&self, mut view: View) -> View {
        let is_first = view.members.is_empty();
        let status = if is_first { Status::Active } else { Status::Joining };
        let (address, program, accusations) = (self.address.clone(), self.program, BTreeMap::new());
        view.members.insert(self.me, Member { address, status, program, accusations });
        if is_first {
            view.take_free_slots(self.me);
        }
        view
    }

    /// Returns whether this member has no slot, or has closed all of them because nobody can take them.
    fn can_leave(&self, view: &View) -> bool {
        let own = view.slots.iter().enumerate().filter(|(_, slot)| slot.holder.owner() == Some(self.me));
        own.clone().next().is_none()
            || is_alone(view, self.me) && own.into_iter().all(|(index, _)| self.slots.is_closed(index))
    }
}
