//! Incoming actors: other theaters have sent them to this one, and they have not begun.
//!
//! The target keeps an incoming actor apart until its source has committed ([`Begin`](crate::link::frame::Head::Begin)). Until then the actor lives
//! in the source, and its stub in the target sends mail to the source. Mail that the source sends after the commit goes to an arrival buffer. Actors
//! that come together begin when the source has committed all of them: they are a *group arrival*. An actor that comes alone is a group arrival of
//! one.

use playhouse_actor::wire::{Install, MigrationVTable, Spawns};
use playhouse_actor::{ActorId, Tell, Watcher};
use rustc_hash::FxHashMap;

use crate::naming::migration_protocol::Attempt;
use crate::naming::{BirthName, Epoch, RemoteActorId};

/// An actor that was read from a frame.
pub(crate) struct IncomingActor {
    /// The name that it was born with.
    pub(crate) born: RemoteActorId,
    /// The actor's location until its source commits.
    pub(crate) at: RemoteActorId,
    /// The epoch of the departure by which it comes.
    pub(crate) epoch: Epoch,
    pub(crate) moves: MigrationVTable,
    pub(crate) entry: &'static Spawns,
    pub(crate) install: Install,
    /// Whether it was started for this theater, and has lived in no other.
    pub(crate) is_new: bool,
}

/// An incoming actor, and its stub in this theater.
pub(crate) struct Awaited {
    pub(crate) incoming: IncomingActor,
    pub(crate) stub: ActorId,
    pub(crate) attempt: Attempt,
    /// The buffer of the mail that was sent after the source's commit, if any was.
    pub(crate) arrival_buffer: Option<ActorId>,
    /// The watchers in the source, or over it. They are noted before the actor runs.
    pub(crate) watchers: Vec<(Watcher, Tell)>,
}

/// Incoming actors that begin together.
struct GroupArrival {
    /// The number of the link that they came over.
    link: u64,
    members: Vec<Awaited>,
    /// The number of members that their source has not committed yet.
    to_leave: usize,
}

/// All incoming actors of a theater.
#[derive(Default)]
pub(crate) struct IncomingActors {
    group_arrivals: FxHashMap<u64, GroupArrival>,
    /// The group arrival of each actor that its source has not committed yet.
    by_name: FxHashMap<BirthName, u64>,
    /// The group arrival, and the position in it.
    by_stub: FxHashMap<ActorId, (u64, usize)>,
    last_number: u64,
}

impl IncomingActors {
    /// Returns whether the actor of this stub is an incoming one that came over this link.
    pub(crate) fn came_over(&self, link: u64, stub: ActorId) -> bool {
        self.by_stub
            .get(&stub)
            .and_then(|(number, _)| self.group_arrivals.get(number))
            .is_some_and(|of| of.link == link)
    }

    /// Returns whether there is no incoming actor.
    pub(crate) fn is_empty(&self) -> bool {
        self.group_arrivals.is_empty()
    }

    /// Returns the stubs of all incoming actors.
    pub(crate) fn stubs(&self) -> Vec<ActorId> {
        self.by_stub.keys().copied().collect()
    }

    /// Keeps incoming actors that came over this link, and begin together.
    pub(crate) fn keep(&mut self, link: u64, members: Vec<Awaited>) {
        self.last_number += 1;
        let number = self.last_number;
        self.by_name.extend(members.iter().map(|member| (member.incoming.born.birth_name(), number)));
        self.by_stub.extend(members.iter().zip(0..).map(|(member, at)| (member.stub, (number, at))));
        self.group_arrivals.insert(number, GroupArrival { link, to_leave: members.len(), members });
    }

    /// Notes that the theater behind this link has committed the actor. Returns the actors that begin.
    pub(crate) fn leave(&mut self, link: u64, born: BirthName) -> Vec<Awaited> {
        let Some(number) = self.by_name.get(&born).copied() else { return Vec::new() };
        let Some(group_arrival) =
            self.group_arrivals.get_mut(&number).filter(|group_arrival| group_arrival.link == link)
        else {
            return Vec::new();
        };
        self.by_name.remove(&born);
        group_arrival.to_leave -= 1;
        if group_arrival.to_leave > 0 { Vec::new() } else { self.take(number) }
    }

    /// Notes that the actor stays in its source. Returns it and the other members of its group arrival: they do not begin.
    pub(crate) fn stay(&mut self, link: u64, born: BirthName) -> Vec<Awaited> {
        let number = self.by_name.get(&born).copied();
        let number = number
            .filter(|number| self.group_arrivals.get(number).is_some_and(|group_arrival| group_arrival.link == link));
        number.map_or_else(Vec::new, |number| self.take(number))
    }

    /// Notes that the link is lost. Returns the actors that came over it: they do not begin.
    pub(crate) fn take_of(&mut self, link: u64) -> Vec<Awaited> {
        let of_link = self.group_arrivals.iter().filter(|(_, group_arrival)| group_arrival.link == link);
        let mut numbers: Vec<u64> = of_link.map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.into_iter().flat_map(|number| self.take(number)).collect()
    }

    /// Returns the incoming actor of this stub, if it came over this link.
    pub(crate) fn at(&mut self, link: u64, stub: ActorId) -> Option<&mut Awaited> {
        let (number, at) = self.by_stub.get(&stub)?;
        let group_arrival = self.group_arrivals.get_mut(number)?;
        group_arrival.members.get_mut(*at).filter(|_| group_arrival.link == link)
    }

    fn take(&mut self, number: u64) -> Vec<Awaited> {
        let members = self.group_arrivals.remove(&number).map_or_else(Vec::new, |group_arrival| group_arrival.members);
        for member in &members {
            self.by_stub.remove(&member.stub);
            let born = member.incoming.born.birth_name();
            if self.by_name.get(&born) == Some(&number) {
                self.by_name.remove(&born);
            }
        }
        members
    }
}
