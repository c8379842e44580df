//! The hand-overs that level the numbers of slots.
//!
//! Each owner decides from the view alone, and no member coordinates: it knows from the loads how many slots it has too many, and which members have too
//! few. The writes come one after another, and the next owner decides from the view that the former one has written.
//!
//! *It settles.* A slot counts at its target from the write on that begins its hand-over. Slots move only from a member with `a` slots to one
//! with at most `a - 2`. Each move therefore lowers the sum of the squares of the loads. It ends when the loads differ by at most 1, and no
//! finished hand-over changes a load. A hysteresis is not necessary, because the loads change only with the members and with the hand-overs of a program.
//!
//! *It is short.* The members with the most slots keep the remainder of the division. Fewer moves do not level the loads.

use std::cmp::Reverse;
use std::iter::repeat_n;

use crate::view::{Holder, MemberId, Status, View};

/// The share of all slots that one member hands over at a time. A member that joins a single one gets its half in 8 rounds.
const SHARE: usize = 16;

/// Returns the targets of the hand-overs that `me` begins now, one for each slot.
///
/// None begin while a member joins, leaves or is accused, or while the versions of the program differ: the view changes soon, and a slot would move
/// twice, or to an older program.
pub(super) fn targets(view: &View, me: MemberId) -> Vec<MemberId> {
    let is_own = |holder| matches!(holder, Holder::Moving { from, .. } if from == me);
    let moving = view.slots.iter().filter(|slot| is_own(slot.holder)).count();
    let budget = (view.slots.len() / SHARE).max(1).saturating_sub(moving);
    if budget == 0 || !is_calm(view) {
        return Vec::new();
    }
    let mut loads: Vec<(MemberId, usize)> = view.loads().into_iter().collect();
    loads.sort_by_key(|(id, load)| (Reverse(*load), *id));
    let total: usize = loads.iter().map(|(_, load)| load).sum();
    let (level, remainder) = (total / loads.len(), total % loads.len());
    let level = |place: usize| level + usize::from(place < remainder);

    let own = loads.iter().enumerate().find(|(_, (id, _))| *id == me);
    let surplus = own.map_or(0, |(place, (_, load))| load.saturating_sub(level(place)));
    // The member with the fewest slots comes first.
    let missing = loads.iter().enumerate().rev();
    let missing = missing.flat_map(|(place, (id, load))| repeat_n(*id, level(place).saturating_sub(*load)));
    missing.take(surplus.min(budget)).collect()
}

/// Returns whether all members stay, as far as the view tells.
fn is_calm(view: &View) -> bool {
    let program = view.members.values().next().map(|member| member.program);
    view.members.values().all(|member| {
        member.status == Status::Active && member.accusations.is_empty() && Some(member.program) == program
    })
}
