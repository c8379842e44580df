//! Which actors are of which group, and the one stage that each group has here.
//!
//! An actor is noted before anybody hears of it: where it is started, by its first message and by its spawner; where a
//! reference to it comes over, when its place is made. So all references that go to other theaters
//! ([`RefName::Member`](playhouse_actor::away::RefName::Member)) tell of its group, and all places of a group's actors are on
//! one stage of each theater from the beginning.

use std::collections::VecDeque;
use std::sync::Arc;

use playhouse_actor::{ActorId, GroupName};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::link::Link;
use crate::migration::host::Done;

/// Where a group is to go, and who is told how that ended.
pub(crate) type QueuedMigration = (Arc<Link>, Done);

/// The groups of a theater, with their members that are known here.
#[derive(Default)]
pub(crate) struct Groups {
    /// With the names of their types.
    of: FxHashMap<ActorId, (GroupName, &'static str)>,
    known: FxHashMap<GroupName, KnownGroup>,
    made: u64,
    /// All members: those that have ended are looked for among them.
    listed: Vec<ActorId>,
    /// Where that search goes on.
    looked_at: usize,
    /// Groups that may have no members.
    empty: Vec<GroupName>,
}

struct KnownGroup {
    stage: u16,
    /// In the order in which they became known: wherever they live.
    members: Vec<ActorId>,
    /// While it moves: where it is to go after that.
    moving: Option<VecDeque<QueuedMigration>>,
    /// Its stage was asked for since those that have ended were looked for last: a member may be about to be noted.
    is_asked_for: bool,
}

impl Groups {
    /// The number of a new group.
    pub(crate) fn make(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// The stage of the group here; if it has none yet, that which `choose` chooses.
    pub(crate) fn stage_of(&mut self, group: GroupName, choose: impl FnOnce() -> u16) -> u16 {
        let empty = &mut self.empty;
        let known = self.known.entry(group).or_insert_with(|| {
            empty.push(group);
            KnownGroup { stage: choose(), members: Vec::new(), moving: None, is_asked_for: true }
        });
        known.is_asked_for = true;
        known.stage
    }

    /// `actor`, of the type `kind`, is a member of the group.
    pub(crate) fn join(&mut self, group: GroupName, actor: ActorId, kind: &'static str) {
        // An actor stays in its group, whatever others say.
        if actor.address().is_stale() || self.of.contains_key(&actor) {
            return;
        }
        self.of.insert(actor, (group, kind));
        self.listed.push(actor);
        let stage = actor.address().stage();
        self.stage_of(group, || stage);
        if let Some(known) = self.known.get_mut(&group) {
            known.members.push(actor);
        }
    }

    /// Now and then: forgets members that have ended, and groups without members. All of them, if asked often.
    pub(crate) fn forget_ended(&mut self) {
        /// So many are looked at by one call, ...
        const LOOKED_AT: usize = 1_024;
        /// ... or one in so many, so that all have their turn within seconds.
        const ONE_IN: usize = 64;
        let count = LOOKED_AT.max(self.listed.len() / ONE_IN).min(self.listed.len());
        let mut shrunk: FxHashSet<GroupName> = FxHashSet::default();
        for _ in 0..count {
            if self.looked_at >= self.listed.len() {
                self.looked_at = 0;
            }
            let actor = self.listed[self.looked_at];
            if actor.address().is_stale() {
                self.listed.swap_remove(self.looked_at);
                shrunk.extend(self.of.remove(&actor).map(|(group, _)| group));
            } else {
                self.looked_at += 1;
            }
        }
        for group in shrunk {
            if let Some(known) = self.known.get_mut(&group) {
                known.members.retain(|actor| !actor.address().is_stale());
                if known.members.is_empty() {
                    self.empty.push(group);
                }
            }
        }
        self.empty.retain(|group| {
            let Some(known) = self.known.get_mut(group).filter(|known| known.members.is_empty()) else { return false };
            let stays = std::mem::replace(&mut known.is_asked_for, false) || known.moving.is_some();
            if !stays {
                self.known.remove(group);
            }
            stays
        });
    }

    /// The number of members, and of groups.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> (usize, usize) {
        (self.of.len().max(self.listed.len()), self.known.len().max(self.empty.len()))
    }

    /// The group of the actor.
    pub(crate) fn of(&self, actor: ActorId) -> Option<GroupName> {
        self.of.get(&actor).map(|(group, _)| *group)
    }

    /// What the type of the actor is called, if it is in a group.
    pub(crate) fn kind_of(&self, actor: ActorId) -> Option<&'static str> {
        self.of.get(&actor).map(|(_, kind)| *kind)
    }

    /// The members that have not ended, wherever they live.
    pub(crate) fn members(&self, group: GroupName) -> Vec<ActorId> {
        let members = self.known.get(&group).map_or(&[][..], |known| &known.members);
        members.iter().copied().filter(|actor| !actor.address().is_stale()).collect()
    }

    /// These actors, those of a group together, in the order of their first ones.
    pub(crate) fn pending_groups(&self, actors: Vec<ActorId>) -> Vec<(Option<GroupName>, Vec<ActorId>)> {
        let mut pending_groups: Vec<(Option<GroupName>, Vec<ActorId>)> = Vec::new();
        let mut known: FxHashMap<GroupName, usize> = FxHashMap::default();
        for actor in actors {
            let group = self.of(actor);
            match group.and_then(|group| known.get(&group)) {
                Some(at) => pending_groups[*at].1.push(actor),
                None => {
                    known.extend(group.map(|group| (group, pending_groups.len())));
                    pending_groups.push((group, vec![actor]));
                }
            }
        }
        pending_groups
    }

    /// The group is to go somewhere: at once, if it is given back; else when it has come to rest.
    pub(crate) fn begin(&mut self, group: GroupName, queued: QueuedMigration) -> Option<QueuedMigration> {
        let Some(known) = self.known.get_mut(&group) else { return Some(queued) };
        match &mut known.moving {
            Some(waiting) => {
                waiting.push_back(queued);
                None
            }
            None => {
                known.moving = Some(VecDeque::new());
                Some(queued)
            }
        }
    }

    /// It has come to rest. Where it is to go next, if it is: it moves again then.
    pub(crate) fn end(&mut self, group: GroupName) -> Option<QueuedMigration> {
        let known = self.known.get_mut(&group)?;
        let next = known.moving.as_mut().and_then(VecDeque::pop_front);
        if next.is_none() {
            known.moving = None;
        }
        next
    }
}
