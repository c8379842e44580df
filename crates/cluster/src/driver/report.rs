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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::driver::options::ClusterOptions;
    use crate::view::{Accusation, Holder, Member, Slot};

    #[test]
    fn a_line_names_each_change_and_counts_the_slots() {
        let member = |status| {
            let address = "127.0.0.1:7000".to_owned();
            Member { address, status, program: 0, accusations: BTreeMap::new() }
        };
        let mut view = View::first(1, ClusterOptions::new().config(1).timing, 3);
        view.members.insert(MemberId(1), member(Status::Active));
        view.members.insert(MemberId(2), member(Status::Leaving));
        view.members.insert(MemberId(3), member(Status::Active));
        view.slots[0] = Slot { epoch: 1, holder: Holder::Owned(MemberId(1)) };
        assert_eq!(describe(None, &view).matches("is active").count(), 2);

        let mut next = view.clone();
        next.remove(&[MemberId(2)].into());
        next.members.insert(MemberId(4), member(Status::Joining));
        let accusation = Accusation { version: 1, is_refuted: false };
        next.members.get_mut(&MemberId(3)).unwrap().accusations.insert(MemberId(1), accusation);
        let line = describe(Some(&view), &next);
        let expected = [
            " 127.0.0.1:7000 (0000000000000003) is suspected;",
            " 127.0.0.1:7000 (0000000000000004) joins;",
            " 127.0.0.1:7000 (0000000000000002) has left;",
        ];
        assert_eq!(line, expected.concat());

        view.slots[1] = Slot { epoch: 1, holder: Holder::Owned(MemberId(3)) };
        next.slots[1] = Slot { epoch: 2, holder: Holder::Inherited(MemberId(1)) };
        next.slots[0] = Slot { epoch: 2, holder: Holder::Owned(MemberId(3)) };
        assert_eq!([slots(Some(&view), &next, MemberId(1)), slots(None, &next, MemberId(3))], [(1, 1), (1, 0)]);
        next.remove(&[MemberId(3)].into());
        assert!(describe(Some(&view), &next).contains("(0000000000000003) was declared dead;"));
    }
}
