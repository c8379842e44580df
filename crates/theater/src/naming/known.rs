//! A theater's knowledge of actors of other theaters, and of its own mobile ones.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use playhouse_actor::ActorId;
use playhouse_executor::StubRoute;
use rustc_hash::FxHashMap;

use crate::naming::identities::{BadName, Birth, BirthName, Epoch, Host, RemoteActorId};
use crate::naming::migration_protocol::{Action, Event, Residence, View};

#[derive(Default)]
pub(super) struct KnownActors {
    /// The stubs of actors of other theaters, by birth name.
    pub(super) met: FxHashMap<BirthName, Met>,
    /// The capabilities of actors that their own theater has named. No other name of such an actor is believed.
    pub(super) with_capability: FxHashMap<Birth, u64>,
    /// The number of entries of `met` that each theater has told first.
    pub(super) told: FxHashMap<u64, usize>,
    /// The names of the actors.
    pub(super) names: FxHashMap<ActorId, RemoteActorId>,
    /// The views of actors that migrate or have migrated: in this theater, or in another one. (The others are in their birth theaters.)
    pub(super) moved: FxHashMap<ActorId, Moved>,
    /// The stubs of them that reroute, by the numbers of their reroutes.
    pub(super) rerouting: BTreeMap<u64, ActorId>,
    /// All actors in `names` or `moved`, and perhaps some former ones: the search for ended actors goes over them.
    pub(super) listed: BTreeSet<ActorId>,
    /// The position at which that search goes on.
    pub(super) looked_at: Option<ActorId>,
}

#[derive(Clone, Copy)]
pub(super) struct Met {
    pub(super) id: ActorId,
    /// The theater that was the first to tell its name.
    pub(super) teller: u64,
    /// Whether its own theater has told it.
    pub(super) is_confirmed: bool,
}

impl KnownActors {
    /// Returns the stub of the actor that `teller` names `far`, if there is one. A capability that the actor's own theater tells is noted.
    ///
    /// # Errors
    /// Its own theater has told another capability.
    pub(super) fn learn(&mut self, teller: u64, remote: &RemoteActorId) -> Result<Option<ActorId>, BadName> {
        let met = self.met.get_mut(&remote.birth_name());
        if let Some(met) = &met
            && met.is_confirmed
        {
            return Ok(Some(met.id));
        }
        if self.with_capability.get(&remote.birth()).is_some_and(|capability| *capability != remote.capability) {
            return Err(BadName::Invented(remote.birth()));
        }
        let Some(met) = met else { return Ok(None) };
        if teller == remote.theater {
            met.is_confirmed = true;
            self.with_capability.insert(remote.birth(), remote.capability);
        }
        Ok(Some(met.id))
    }

    /// Forgets the name of an actor.
    pub(super) fn forget_name(&mut self, remote: &RemoteActorId) {
        let Some(met) = self.met.remove(&remote.birth_name()) else { return };
        count_down(&mut self.told, met.teller);
        if met.is_confirmed {
            self.with_capability.remove(&remote.birth());
        }
    }

    /// Forgets the actor of this stub.
    pub(super) fn forget(&mut self, id: ActorId) {
        self.moved.remove(&id);
        if let Some(name) = self.names.remove(&id)
            && self.met.get(&name.birth_name()).is_some_and(|met| met.id == id)
        {
            self.forget_name(&name);
        }
    }

    /// Forgets the actors of this theater that do not migrate, except for `keeps` of them. Returns the stubs of the kept ones, and of the forgotten
    /// ones.
    pub(super) fn forget_immobile(
        &mut self,
        theater: u64,
        keeps: usize,
        is_mobile: impl Fn(ActorId) -> bool,
    ) -> [Vec<ActorId>; 2] {
        let is_there = |id: ActorId, remote: &RemoteActorId| {
            remote.theater == theater && !self.moved.contains_key(&id) && !is_mobile(id)
        };
        let there = self.names.iter().filter(|(id, remote)| is_there(**id, remote));
        let (mut lives, mut forgotten): (Vec<(BirthName, ActorId)>, Vec<_>) = there
            .map(|(id, remote)| (remote.birth_name(), *id))
            .partition(|(_, id)| keeps > 0 && !id.address().is_stale());
        if lives.len() > keeps {
            // The order does not depend on positions in memory.
            lives.sort_unstable();
            forgotten.extend(lives.split_off(keeps));
        }
        forgotten.iter().for_each(|(_, id)| self.forget(*id));
        [lives, forgotten].map(|stubs| stubs.into_iter().map(|(_, id)| id).collect())
    }

    /// Forgets the actor of this stub, which has ended, unless something that is under way still needs it.
    pub(super) fn forget_ended(&mut self, id: ActorId) {
        let is_settled = |moved: &Moved| {
            let Moved { view, arrival_buffer, .. } = moved;
            let is_waited_for = view.reroute().is_some() || view.incoming_from().is_some() || arrival_buffer.is_some();
            !is_waited_for && matches!(view.residence(), Residence::Here | Residence::Away { .. } | Residence::Unknown)
        };
        if self.moved.get(&id).is_none_or(is_settled) {
            self.forget(id);
            self.listed.remove(&id);
        }
    }

    /// Returns the next actors, at most `count`, of those that may have ended.
    pub(super) fn next_listed(&mut self, count: usize) -> Vec<ActorId> {
        let after = self.looked_at.map_or(Unbounded, Excluded);
        let ids: Vec<ActorId> = self.listed.range((after, Unbounded)).take(count).copied().collect();
        self.looked_at = if ids.len() < count { None } else { ids.last().copied() };
        ids
    }

    /// Returns the location of the actor of this stub; `None` if it is in this theater.
    pub(super) fn at(&self, id: ActorId) -> Option<RemoteActorId> {
        self.moved.get(&id).map_or_else(|| self.names.get(&id).copied(), |moved| moved.view.route())
    }

    /// Returns the view of the actor of this stub, in the theater `me`.
    pub(super) fn view(&self, me: u64, id: ActorId) -> View<RemoteActorId> {
        self.moved.get(&id).map_or_else(
            || {
                let elsewhere = |at: &RemoteActorId| Residence::Away { at: *at, begun: true, reroute: None };
                View::new(me, self.names.get(&id).map_or(Residence::Here, elsewhere))
            },
            |moved| moved.view,
        )
    }

    /// Applies an event to the actor's view.
    pub(super) fn step(
        &mut self,
        me: u64,
        id: ActorId,
        event: Event<RemoteActorId>,
        next_number: &mut dyn FnMut() -> u64,
    ) -> Vec<Action<RemoteActorId>> {
        let mut view = self.view(me, id);
        let before = view;
        let actions = view.step(event, next_number);
        let is_home = matches!(view.residence(), Residence::Here) && view.incoming_from().is_none();
        if is_home && !self.names.contains_key(&id) {
            self.moved.remove(&id);
        } else if let Some(moved) = self.moved.get_mut(&id) {
            moved.view = view;
            if view.route().is_none() {
                moved.hosts = None;
            }
            if view.route().map(|at| at.theater) != before.route().map(|at| at.theater) {
                // Something was sent along another route.
                moved.route = None;
            }
        } else if !actions.is_empty() {
            self.listed.insert(id);
            self.moved.insert(id, Moved::new(view, None));
        }
        if view.reroute() != before.reroute() {
            before.reroute().map(|number| self.rerouting.remove(&number));
            view.reroute().map(|number| self.rerouting.insert(number, id));
        }
        actions
    }
}

pub(super) fn count_down(told: &mut FxHashMap<u64, usize>, teller: u64) {
    if let Some(count) = told.get_mut(&teller) {
        *count -= 1;
        if *count == 0 {
            told.remove(&teller);
        }
    }
}

/// An actor that migrates or has migrated.
pub(super) struct Moved {
    pub(super) view: View<RemoteActorId>,
    /// The record of the forwarded mail since it left this theater; `None`: something was forwarded.
    pub(super) route: Option<Arc<StubRoute>>,
    /// The buffer of the mail sent after the source's commit, if the actor has come to this theater and waits for mail under way.
    pub(super) arrival_buffer: Option<ActorId>,
    /// The epoch of its last departure, according to this theater.
    pub(super) epoch: Epoch,
    /// The last noted theaters that may have an actor that was born in this theater and is in another one.
    pub(super) hosts: Option<Box<[Host; 2]>>,
}

impl Moved {
    pub(super) fn new(view: View<RemoteActorId>, route: Option<Arc<StubRoute>>) -> Moved {
        Moved { view, route, arrival_buffer: None, epoch: Epoch::default(), hosts: None }
    }
}
