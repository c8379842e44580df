//! The members of each group, and the one stage that each group has in this theater.
//!
//! An actor is noted before any other actor learns of it. The first message and the spawner note it where it is started; a received reference notes
//! it when its stub is made. Therefore all references that go to other theaters ([`RefName::Member`](playhouse_actor::away::RefName::Member)) name
//! its group. And all stubs of a group's actors are on one stage of each theater from the beginning.

use std::collections::VecDeque;

use playhouse_actor::{ActorId, GroupName};
use rustc_hash::{FxHashMap, FxHashSet};

/// Begins a migration of a group.
pub(crate) type QueuedMigration = Box<dyn FnOnce() + Send>;

/// The groups of a theater, with their known members.
#[derive(Default)]
pub(crate) struct Groups {
    /// With the names of their types.
    of: FxHashMap<ActorId, (GroupName, &'static str)>,
    known: FxHashMap<GroupName, KnownGroup>,
    made: u64,
    /// All members: the search for ended ones goes over them.
    listed: Vec<ActorId>,
    /// The position at which that search goes on.
    looked_at: usize,
    /// Groups that may have no members.
    empty: Vec<GroupName>,
}

struct KnownGroup {
    stage: u16,
    /// The members in the order in which they became known, wherever they live.
    members: Vec<ActorId>,
    /// The queued migrations, while the group migrates.
    moving: Option<VecDeque<QueuedMigration>>,
    /// Whether its stage was asked for since the last search for ended members: a member may be about to be noted.
    is_asked_for: bool,
}

impl Groups {
    /// Returns the number of a new group.
    pub(crate) fn make(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// Returns the stage of the group in this theater. `choose` chooses one if the group has none yet.
    pub(crate) fn stage_of(&mut self, group: GroupName, choose: impl FnOnce() -> u16) -> u16 {
        let empty = &mut self.empty;
        let known = self.known.entry(group).or_insert_with(|| {
            empty.push(group);
            KnownGroup { stage: choose(), members: Vec::new(), moving: None, is_asked_for: true }
        });
        known.is_asked_for = true;
        known.stage
    }

    /// Notes that `actor`, of the type `kind`, is a member of the group.
    pub(crate) fn join(&mut self, group: GroupName, actor: ActorId, kind: &'static str) {
        // Claims of other theaters do not change the group of an actor.
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

    /// Forgets members that have ended, and groups without members. Called now and then; frequent calls find all of them.
    pub(crate) fn forget_ended(&mut self) {
        /// The least number of members that one call examines.
        const LOOKED_AT: usize = 1_024;
        /// The share of members that one call examines, 1 in 64, so that all are examined within seconds.
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

    /// Returns the number of members, and of groups.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> (usize, usize) {
        (self.of.len().max(self.listed.len()), self.known.len().max(self.empty.len()))
    }

    /// Returns the group of the actor.
    pub(crate) fn of(&self, actor: ActorId) -> Option<GroupName> {
        self.of.get(&actor).map(|(group, _)| *group)
    }

    /// Returns the type name of the actor, if it is in a group.
    pub(crate) fn kind_of(&self, actor: ActorId) -> Option<&'static str> {
        self.of.get(&actor).map(|(_, kind)| *kind)
    }

    /// Returns the members that have not ended, wherever they live.
    pub(crate) fn members(&self, group: GroupName) -> Vec<ActorId> {
        let members = self.known.get(&group).map_or(&[][..], |known| &known.members);
        members.iter().copied().filter(|actor| !actor.address().is_stale()).collect()
    }

    /// Returns these actors, with the members of a group together, in the order of their first members.
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

    /// Begins a migration of the group, if the group does not migrate: then returns `queued`. Otherwise queues it.
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

    /// Notes that a migration of the group has ended. Returns the next queued one.
    pub(crate) fn end(&mut self, group: GroupName) -> Option<QueuedMigration> {
        let known = self.known.get_mut(&group)?;
        let next = known.moving.as_mut().and_then(VecDeque::pop_front);
        if next.is_none() {
            known.moving = None;
        }
        next
    }
}
