//! Notes of departing actors: see [`crate::migration::authority`].

use std::net::SocketAddr;

use playhouse_actor::ActorId;

use crate::naming::directory::Directory;
use crate::naming::identities::{BirthName, Epoch, Host, SlotName};

impl Directory {
    /// Returns the epoch of the next departure of an actor that lives in this theater.
    pub(crate) fn next_epoch(&self, id: ActorId) -> Epoch {
        let known = self.known();
        if let Some(moved) = known.moved.get(&id).filter(|_| known.names.contains_key(&id)) {
            // The number may come from a peer.
            return Epoch { hops: moved.epoch.hops.saturating_add(1), ..moved.epoch };
        }
        drop(known);
        let (slot, incarnation) = self.stub_of(id);
        Epoch { departure: self.capability_of_reroute(slot, incarnation, self.next_number()), hops: 0 }
    }

    /// Notes that the actor is about to leave this theater, or to come to it, with this epoch.
    pub(crate) fn note_epoch(&self, id: ActorId, epoch: Epoch) {
        if let Some(moved) = self.known().moved.get_mut(&id) {
            let is_older = epoch.departure == moved.epoch.departure && epoch.hops < moved.epoch.hops;
            moved.epoch = if is_older { moved.epoch } else { epoch };
        }
    }

    /// Keeps the address of the birth theater of this stub's actor, if none is known.
    pub(crate) fn note_birth_address(&self, id: ActorId, address: Option<SocketAddr>) {
        if let Some(name) = self.known().names.get_mut(&id) {
            name.address = name.address.or(address);
        }
    }

    /// Notes that an actor that was born in this theater is about to leave one of these theaters for the other one. A later departure may be noted
    /// already.
    pub(crate) fn note_departure(&self, name: SlotName, epoch: Epoch, hosts: [Host; 2]) {
        let Some(id) = self.born_in_this_theater(name.born_in(self.incarnation)) else { return };
        let mut known = self.known();
        let Some(moved) = known.moved.get_mut(&id) else { return };
        let is_later = epoch.departure == moved.epoch.departure && epoch.hops > moved.epoch.hops;
        if moved.view.route().is_some() && is_later {
            moved.epoch = epoch;
            moved.hosts = Some(Box::new(hosts));
        }
    }

    /// Returns the epoch of the last departure of an actor.
    #[cfg(test)]
    pub(crate) fn epoch_of(&self, id: ActorId) -> Epoch {
        self.known().moved[&id].epoch
    }

    /// Returns the stub of the actor with this name, if it was born in this theater.
    pub(crate) fn born_in_this_theater(&self, name: BirthName) -> Option<ActorId> {
        // An actor that had ended in this theater may have come back.
        let stub = || self.known_as(name).or_else(|| self.own(name.slot_name()));
        (name.theater == self.incarnation).then(stub).flatten()
    }

    /// Returns the noted theaters that may have an actor that was born in this theater.
    pub(crate) fn hosts(&self, id: ActorId) -> Vec<Host> {
        let known = self.known();
        let Some(moved) = known.moved.get(&id) else { return Vec::new() };
        let route = moved.view.route().map(|at| Host { theater: at.theater, address: at.address });
        moved.hosts.iter().flat_map(|hosts| **hosts).chain(route).collect()
    }
}
