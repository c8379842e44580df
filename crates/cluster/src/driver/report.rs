//! One log line for each change of the view.

use std::fmt::Write;

use crate::view::{MemberId, Status, View};

/// Logs the difference between two views in one line, from the view of `me`.
pub(super) fn report(former: Option<&View>, view: &View, me: MemberId) {
    let change = describe(former, view);
    let (gained, lost) = slots(former, view, me);
    let members = view.members.len();
    tracing::info!(version = view.version, members, gained, lost, "the view has changed:{change}");
}

fn describe(former: Option<&View>, view: &View) -> String {
    let mut text = String::new();
    let mut note = |id: MemberId, address: &str, what: &str| {
        // Writing to a text cannot fail.
        let _ = write!(text, " {address} ({:016x}) {what};", id.0);
    };
    for (id, member) in &view.members {
        let before = former.and_then(|former| former.members.get(id));
        if before.is_none_or(|before| before.status != member.status) {
            let what = match member.status {
                Status::Joining => "joins",
                Status::Active => "is active",
                Status::Leaving => "leaves",
            };
            note(*id, &member.address, what);
        }
        let accusers = |accused: Option<&crate::view::Member>| accused.map_or(0, |member| member.accusations.len());
        if accusers(Some(member)) > accusers(before) {
            note(*id, &member.address, "is suspected");
        }
    }
    for (id, member) in former.iter().flat_map(|former| &former.members) {
        if !view.members.contains_key(id) {
            let has_left = member.status == Status::Leaving;
            note(*id, &member.address, if has_left { "has left" } else { "was declared dead" });
        }
    }
    text
}

/// Returns the numbers of slots that `me` owns now and has not owned before, and the reverse.
fn slots(former: Option<&View>, view: &View, me: MemberId) -> (usize, usize) {
    let owns = |view: &View, slot: usize| view.slots.get(slot).is_some_and(|slot| slot.holder.owner() == Some(me));
    let both = (0..view.slots.len()).map(|slot| (former.is_some_and(|former| owns(former, slot)), owns(view, slot)));
    both.fold((0, 0), |(gained, lost), (before, now)| {
        (gained + usize::from(now && !before), lost + usize::from(before && !now))
    })
}
