//! Actors that other theaters have sent here, and that have not begun.
//!
//! A guest is kept aside until the theater that it comes from has left it ([`Begin`](crate::link::frame::Head::Begin)). Until then it lives there,
//! and its place here sends mail there. What that theater sends after it has left goes to an antechamber. Actors that come together begin when
//! all of them were left: they are a *company*. One that comes alone is a company of one.

use playhouse_actor::wire::{Install, MigrationVTable, Spawns};
use playhouse_actor::{ActorId, Tell, Watcher};
use rustc_hash::FxHashMap;

use crate::migration::Attempt;
use crate::migration::authority::Epoch;
use crate::naming::{Key, RemoteActorId};

/// An actor that was read.
pub(crate) struct IncomingActor {
    /// The name that it was born with.
    pub(crate) born: RemoteActorId,
    /// Where it lives until it is left.
    pub(crate) at: RemoteActorId,
    /// The epoch of the departure by which it comes.
    pub(crate) epoch: Epoch,
    pub(crate) moves: MigrationVTable,
    pub(crate) entry: &'static Spawns,
    pub(crate) install: Install,
    /// It was started for this theater, and has lived nowhere.
    pub(crate) is_new: bool,
}

/// A guest, and its place here.
pub(crate) struct Awaited {
    pub(crate) incoming: IncomingActor,
    pub(crate) stub: ActorId,
    pub(crate) attempt: Attempt,
    /// Where what was sent after it was left waits, if anything was.
    pub(crate) arrival_buffer: Option<ActorId>,
    /// Who watches it from the theater that it comes from, or over that: it is watched before it runs.
    pub(crate) watchers: Vec<(Watcher, Tell)>,
}

/// Guests that begin together.
struct GroupArrival {
    /// The number of the link that they came over.
    link: u64,
    members: Vec<Awaited>,
    /// So many were not left yet.
    to_leave: usize,
}

/// All guests of a theater.
#[derive(Default)]
pub(crate) struct IncomingActors {
    companies: FxHashMap<u64, GroupArrival>,
    /// The company of each one that was not left yet.
    by_name: FxHashMap<Key, u64>,
    /// The company, and the how manyth of it.
    by_stub: FxHashMap<ActorId, (u64, usize)>,
    last_number: u64,
}

impl IncomingActors {
    /// Returns whether the actor of this place is a guest that came over this link.
    pub(crate) fn came_over(&self, link: u64, stub: ActorId) -> bool {
        self.by_stub.get(&stub).and_then(|(number, _)| self.companies.get(number)).is_some_and(|of| of.link == link)
    }

    /// Returns whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.companies.is_empty()
    }

    /// Returns the places of all guests.
    pub(crate) fn stubs(&self) -> Vec<ActorId> {
        self.by_stub.keys().copied().collect()
    }

    /// Keeps guests that came over this link, and begin together.
    pub(crate) fn keep(&mut self, link: u64, members: Vec<Awaited>) {
        self.last_number += 1;
        let number = self.last_number;
        self.by_name.extend(members.iter().map(|member| (member.incoming.born.key(), number)));
        self.by_stub.extend(members.iter().zip(0..).map(|(member, at)| (member.stub, (number, at))));
        self.companies.insert(number, GroupArrival { link, to_leave: members.len(), members });
    }

    /// The theater behind this link has left the actor. Returns those that begin.
    pub(crate) fn leave(&mut self, link: u64, born: Key) -> Vec<Awaited> {
        let Some(number) = self.by_name.get(&born).copied() else { return Vec::new() };
        let Some(group_arrival) = self.companies.get_mut(&number).filter(|group_arrival| group_arrival.link == link)
        else {
            return Vec::new();
        };
        self.by_name.remove(&born);
        group_arrival.to_leave -= 1;
        if group_arrival.to_leave > 0 { Vec::new() } else { self.take(number) }
    }

    /// The actor stays where it is. Returns it and those that it was to come with: they do not begin.
    pub(crate) fn stay(&mut self, link: u64, born: Key) -> Vec<Awaited> {
        let number = self.by_name.get(&born).copied();
        let number =
            number.filter(|number| self.companies.get(number).is_some_and(|group_arrival| group_arrival.link == link));
        number.map_or_else(Vec::new, |number| self.take(number))
    }

    /// The link is lost. Returns those that came over it: they do not begin.
    pub(crate) fn take_of(&mut self, link: u64) -> Vec<Awaited> {
        let of_link = self.companies.iter().filter(|(_, group_arrival)| group_arrival.link == link);
        let mut numbers: Vec<u64> = of_link.map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.into_iter().flat_map(|number| self.take(number)).collect()
    }

    /// Returns the guest of this place, if it came over this link.
    pub(crate) fn at(&mut self, link: u64, stub: ActorId) -> Option<&mut Awaited> {
        let (number, at) = self.by_stub.get(&stub)?;
        let group_arrival = self.companies.get_mut(number)?;
        group_arrival.members.get_mut(*at).filter(|_| group_arrival.link == link)
    }

    fn take(&mut self, number: u64) -> Vec<Awaited> {
        let members = self.companies.remove(&number).map_or_else(Vec::new, |group_arrival| group_arrival.members);
        for member in &members {
            self.by_stub.remove(&member.stub);
            let born = member.incoming.born.key();
            if self.by_name.get(&born) == Some(&number) {
                self.by_name.remove(&born);
            }
        }
        members
    }
}
