//! Names of actors: the names of actors of other theaters, and the names that other theaters get.

use std::fmt;
use std::net::SocketAddr;

use playhouse_actor::away::{ActorLocation, RefName};
use playhouse_actor::wire::WireError;
use playhouse_actor::{ActorId, MigrateError, ShortType};

use serde::{Deserialize, Serialize};

use crate::lock::lock;
use crate::naming::directory::{Directory, Numbers};
use crate::naming::known::{KnownActors, Met};
use crate::naming::migration_protocol::Site;

/// Most actors of other theaters that are known because one theater has told their names: each takes about half a KiB.
pub(crate) const NAMES_MAX: usize = if cfg!(test) { 2_048 } else { 4 * 1024 * 1024 };

/// The number of departures of an actor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Epoch {
    /// Its last departure from its birth theater. Only theaters that have had the actor since know this number.
    pub(crate) departure: u64,
    /// The number of attempts to leave other theaters since.
    pub(crate) hops: u64,
}

/// A theater that an actor may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Host {
    pub(crate) theater: u64,
    /// The address at which others call it, if they can.
    pub(crate) address: Option<SocketAddr>,
}

/// The name of an actor of another theater.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteActorId {
    pub(crate) theater: u64,
    /// The address at which the theater can be called, if it can.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) slot: u64,
    pub(crate) incarnation: u64,
    pub(crate) capability: u64,
}

impl From<ActorLocation> for RemoteActorId {
    fn from(ActorLocation { theater, address, slot, incarnation, capability }: ActorLocation) -> RemoteActorId {
        RemoteActorId { theater, address, slot, incarnation, capability }
    }
}

/// The name of an actor, or of a stub, within its theater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SlotName {
    pub(crate) slot: u64,
    pub(crate) incarnation: u64,
    pub(crate) capability: u64,
}

impl SlotName {
    /// Returns the birth name of the actor with this name in `theater`, where it was born.
    pub(crate) fn born_in(self, theater: u64) -> BirthName {
        let SlotName { slot, incarnation, capability } = self;
        BirthName { theater, slot, incarnation, capability }
    }

    /// Returns the name for other theaters of the actor with this name in `theater`, which can be called at `address`.
    pub(crate) fn of(self, theater: u64, address: Option<SocketAddr>) -> RemoteActorId {
        let SlotName { slot, incarnation, capability } = self;
        RemoteActorId { theater, address, slot, incarnation, capability }
    }
}

/// The name that an actor was born with. An actor is known by all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct BirthName {
    pub(crate) theater: u64,
    pub(crate) slot: u64,
    pub(crate) incarnation: u64,
    pub(crate) capability: u64,
}

impl BirthName {
    /// Returns the name of the actor within its birth theater.
    pub(crate) fn slot_name(self) -> SlotName {
        let BirthName { slot, incarnation, capability, .. } = self;
        SlotName { slot, incarnation, capability }
    }
}

/// A birth name without the capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Birth {
    pub(crate) theater: u64,
    pub(crate) slot: u64,
    pub(crate) incarnation: u64,
}

/// The reason for which a name from another theater is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadName {
    /// Its capability differs from the known one.
    Invented(Birth),
    /// The actor has another name.
    Renamed(Birth),
    /// The theater has told as many names as are kept.
    TooMany,
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadName::Invented(Birth { theater, slot, incarnation }) => {
                write!(
                    f,
                    "the name of actor {slot}.{incarnation} of theater {theater} has another capability than that theater gave it"
                )
            }
            BadName::Renamed(Birth { theater, slot, incarnation }) => {
                write!(
                    f,
                    "actor {slot}.{incarnation} of theater {theater} is named like an actor that has another name"
                )
            }
            BadName::TooMany => {
                write!(f, "a theater has told the names of {NAMES_MAX} actors, and must not tell more")
            }
        }
    }
}

impl From<BadName> for WireError {
    fn from(why: BadName) -> WireError {
        WireError::new(why.to_string())
    }
}

impl Site for RemoteActorId {
    fn theater(&self) -> u64 {
        self.theater
    }
}

impl RemoteActorId {
    /// Returns the birth name of the actor that was born with this name.
    pub(crate) fn birth_name(&self) -> BirthName {
        self.slot_name().born_in(self.theater)
    }

    /// Returns its birth name without the capability.
    pub(crate) fn birth(&self) -> Birth {
        Birth { theater: self.theater, slot: self.slot, incarnation: self.incarnation }
    }

    /// Returns its name within its theater.
    pub(crate) fn slot_name(&self) -> SlotName {
        SlotName { slot: self.slot, incarnation: self.incarnation, capability: self.capability }
    }

    /// Returns the name of a stub in this theater that is not known yet.
    pub(super) fn somewhere_in(theater: u64) -> RemoteActorId {
        RemoteActorId { theater, address: None, slot: 0, incarnation: 0, capability: 0 }
    }

    /// Returns whether it names a stub.
    pub(crate) fn is_stub(&self) -> bool {
        (self.slot, self.incarnation, self.capability) != (0, 0, 0)
    }
}

impl Directory {
    /// Returns the stub of the actor that the theater `teller` names `far`, if there is one.
    ///
    /// # Errors
    /// The capability contradicts the known one. For an actor of this theater, that is its own capability. For an actor of another theater, it is the
    /// capability that this theater has told itself. A name that only third theaters have told cannot be checked. Two of them with different
    /// capabilities are treated as two actors, and the owner admits only messages to one of them. Or there is no stub, and `teller` has told too many
    /// names.
    pub(crate) fn met(&self, teller: u64, remote: &RemoteActorId) -> Result<Option<ActorId>, BadName> {
        if remote.theater == self.incarnation {
            if !self.capability.is_right(remote.slot_name()) {
                return Err(BadName::Invented(remote.birth()));
            }
            // An actor that had ended in this theater may have come back under that name.
            return Ok(self.known_as(remote.birth_name()).or_else(|| self.own_or_ended(remote.slot_name())));
        }
        let mut known = self.known();
        let met = known.learn(teller, remote)?;
        if met.is_none() && known.told.get(&teller).is_some_and(|count| *count >= NAMES_MAX) {
            return Err(BadName::TooMany);
        }
        Ok(met)
    }

    /// Notes `id` as the stub of the actor that the theater `teller` names `far`.
    ///
    /// # Errors
    /// The capability contradicts the known one, as in [`Directory::met`], or the stub has another name: then nothing has changed.
    pub(crate) fn note(&self, teller: u64, id: ActorId, remote: RemoteActorId) -> Result<(), BadName> {
        let is_own = remote.theater == self.incarnation;
        if is_own && !self.capability.is_right(remote.slot_name()) {
            return Err(BadName::Invented(remote.birth()));
        }
        let mut known = self.known();
        // An actor that was born in this theater has no name in the list, and is noted as moved before another theater can name it.
        let is_renamed = match known.names.get(&id) {
            Some(name) => name.birth_name() != remote.birth_name(),
            None => known.moved.contains_key(&id),
        };
        if is_renamed {
            return Err(BadName::Renamed(remote.birth()));
        }
        if !is_own {
            known.learn(teller, &remote)?;
        }
        let KnownActors { met, told, names, listed, .. } = &mut *known;
        listed.insert(id);
        names.insert(id, remote);
        let met = met.entry(remote.birth_name()).or_insert_with(|| {
            *told.entry(teller).or_default() += 1;
            Met { id, teller, is_confirmed: false }
        });
        // A stub that has ended, and is not forgotten yet, is replaced by this one.
        if met.id.address().is_stale() {
            met.id = id;
        }
        if is_own { Ok(()) } else { known.learn(teller, &remote).map(drop) }
    }

    /// Returns the name of the actor with the stub `id`.
    pub(crate) fn remote_name(&self, id: ActorId) -> Option<RemoteActorId> {
        self.known().names.get(&id).copied()
    }

    /// Returns the actor of this theater with this name.
    pub(crate) fn own(&self, name: SlotName) -> Option<ActorId> {
        self.capability.is_right(name).then(|| self.find(name.slot, name.incarnation)).flatten()
    }

    /// Returns the actor of this theater with this name, whether it lives or has ended. Therefore references that were written before and after its
    /// end are equal.
    pub(crate) fn own_or_ended(&self, name: SlotName) -> Option<ActorId> {
        let SlotName { slot, incarnation, .. } = name;
        let ended = || match &self.numbers {
            Some(numbers) => lock(numbers).by_number.get(&slot).copied(),
            None => self.core.find_ended(slot, incarnation).map(ActorId::of),
        };
        self.capability.is_right(name).then(|| self.find(slot, incarnation).or_else(ended)).flatten()
    }

    /// Returns the capability of a reroute of the stub with this slot and incarnation.
    pub(crate) fn capability_of_reroute(&self, slot: u64, incarnation: u64, reroute: u64) -> u64 {
        self.capability.of_reroute(slot, incarnation, reroute)
    }

    /// Returns slot and incarnation of an actor of this theater, in the form that other theaters get.
    pub(crate) fn stub_of(&self, id: ActorId) -> (u64, u64) {
        let Some(numbers) = &self.numbers else { return (id.address().slot(), id.address().incarnation()) };
        let Numbers { by_number, numbers, last, .. } = &mut *lock(numbers);
        let number = numbers.entry(id).or_insert_with(|| {
            *last += 1;
            by_number.insert(*last, id);
            *last
        });
        (*number, 1)
    }

    /// In simulation: sorts actors into an order that is the same in each run; actors that were never named come last.
    pub(crate) fn sort(&self, actors: &mut [ActorId]) {
        if let Some(numbers) = &self.numbers {
            let numbers = lock(numbers);
            actors.sort_by_key(|id| numbers.numbers.get(id).copied().unwrap_or(u64::MAX));
        }
    }

    /// Returns the actor of this theater with this slot and incarnation.
    pub(crate) fn find(&self, slot: u64, incarnation: u64) -> Option<ActorId> {
        let Some(numbers) = &self.numbers else { return self.core.find(slot, incarnation).map(ActorId::of) };
        let numbers = lock(numbers);
        let id = numbers.by_number.get(&slot);
        id.copied().filter(|id| !id.address().is_stale())
    }

    /// Returns the name of an actor of this theater, or of the stub of an actor in another theater.
    pub(crate) fn slot_name(&self, id: ActorId) -> Result<SlotName, WireError> {
        let address = id.address();
        // The name of an ended actor reaches no actor, whichever it was.
        if address.system() != self.core.id() && !address.is_stale() {
            return Err(WireError::new(format!(
                "{id} belongs to another system of this process, not to this theater's"
            )));
        }
        let (slot, incarnation) = self.stub_of(id);
        Ok(SlotName { slot, incarnation, capability: self.capability.of(slot, incarnation) })
    }

    /// Returns the name of `id` for other theaters, or for the theater `reader`.
    ///
    /// If the actor is in another theater and cannot be called in it, this is the name of its stub in this theater, which forwards its mail.
    pub(crate) fn name_for_others(
        &self,
        id: ActorId,
        reader: Option<u64>,
        is_mobile: impl Fn(ActorId) -> bool,
    ) -> Result<RefName, WireError> {
        let name = self.name_alone(id, reader)?;
        let group = self.groups().of(id);
        let Some(group) = group.filter(|_| is_mobile(id)) else { return Ok(name) };
        Ok(match name {
            RefName::Mine { slot, incarnation, capability } => {
                let born = ActorLocation { theater: self.incarnation, address: None, slot, incarnation, capability };
                RefName::Member { group, born, at: None }
            }
            RefName::Moved { born, at } => RefName::Member { group, born, at: Some(at) },
            RefName::Other { theater, address, slot, incarnation, capability } => {
                let born = ActorLocation { theater, address: Some(address), slot, incarnation, capability };
                RefName::Member { group, born, at: Some(born) }
            }
            RefName::Yours(_) | RefName::Member { .. } => name,
        })
    }

    /// Returns the name of [`Directory::name_for_others`], without the group.
    fn name_alone(&self, id: ActorId, reader: Option<u64>) -> Result<RefName, WireError> {
        let (name, moved) = {
            let known = self.known();
            let name = known.names.get(&id).copied();
            let moved = known.moved.get(&id).map(|moved| moved.view);
            // An actor that was born in this theater, and is in it, has its own name.
            let moved = moved.filter(|view| name.is_some() || view.route().is_some());
            (name, moved.map(|view| view.route().filter(|_| view.has_begun())))
        };
        if let Some(at) = moved {
            let here = || self.location(id, self.listens);
            let born = match name {
                Some(RemoteActorId { theater, address, slot, incarnation, capability }) => {
                    ActorLocation { theater, address, slot, incarnation, capability }
                }
                None => here()?,
            };
            let at = match at {
                Some(RemoteActorId { theater, address: Some(address), slot, incarnation, capability }) => {
                    ActorLocation { theater, address: Some(address), slot, incarnation, capability }
                }
                // It is in this theater or migrates, or cannot be called at its location: this theater knows the route.
                _ => here()?,
            };
            return Ok(RefName::Moved { born, at });
        }
        match name {
            Some(RemoteActorId { theater, address: Some(address), slot, incarnation, capability }) => {
                Ok(RefName::Other { theater, address, slot, incarnation, capability })
            }
            // It has no number on the link because an earlier link was lost.
            Some(RemoteActorId { theater, address, slot, incarnation, capability }) if reader == Some(theater) => {
                let born = ActorLocation { theater, address, slot, incarnation, capability };
                Ok(RefName::Moved { born, at: born })
            }
            _ => self.slot_name(id).map(|SlotName { slot, incarnation, capability }| RefName::Mine {
                slot,
                incarnation,
                capability,
            }),
        }
    }

    /// Returns the location of an actor in this theater.
    pub(crate) fn location(&self, id: ActorId, address: Option<SocketAddr>) -> Result<ActorLocation, WireError> {
        self.slot_name(id).map(|SlotName { slot, incarnation, capability }| ActorLocation {
            theater: self.incarnation,
            address,
            slot,
            incarnation,
            capability,
        })
    }

    /// Returns the error for a group that stays because `member` cannot migrate.
    pub(crate) fn of_member(&self, member: ActorId, why: MigrateError) -> MigrateError {
        let kind = ShortType(self.groups().kind_of(member).unwrap_or("an actor"));
        let who = match playhouse_actor::name_of(member) {
            Some(name) => format!("{kind} {name:?}"),
            None => format!("{kind}{member}"),
        };
        MigrateError::Member { who, why: Box::new(why) }
    }

    /// Returns the birth name of the actor.
    pub(crate) fn identity(&self, id: ActorId) -> Result<RemoteActorId, WireError> {
        match self.remote_name(id) {
            Some(name) => Ok(name),
            None => self.location(id, None).map(RemoteActorId::from),
        }
    }
}
