//! References in frames of a link.

use playhouse_actor::away::{Forwarder, MakeStub, RefCodec, RefName, StubPlacement};

use super::*;
use crate::naming::{BadName, RemoteActorId, SlotName};

impl RefCodec for Link {
    fn name_of(&self, id: ActorId) -> Result<RefName, WireError> {
        if let Some(handle) = lock(&self.stubs).handles.get(&id) {
            return Ok(RefName::Yours(*handle));
        }
        let is_mobile = |id: ActorId| self.registry.migration_vtable(id).is_some();
        self.directory.name_for_others(id, Some(self.incarnation), is_mobile)
    }

    fn meet(&self, name: RefName, stub: MakeStub<'_>) -> Result<ActorId, WireError> {
        // An actor that has ended, or was never in this theater, becomes a reference that no actor receives. The value that holds the reference stays
        // valid.
        let no_actor = ActorId::nobody;
        match name {
            RefName::Yours(handle) => Ok(self.target(handle).unwrap_or_else(no_actor)),
            RefName::Mine { slot, incarnation, capability } => {
                let remote = self.its(SlotName { slot, incarnation, capability });
                match self.met(&remote)? {
                    Some(id) => Ok(id),
                    None => self.settle_in_peer(self.incarnation, (remote, remote), stub),
                }
            }
            RefName::Moved { born, at } => {
                let (born, here) = (RemoteActorId::from(born), self.directory.incarnation);
                let known = self.met(&born)?;
                // An actor of this theater that was lost is alive after all: it has another stub from now on.
                let was_lost = born.theater == here && at.theater != here;
                let was_lost = was_lost && known.is_some_and(|id| self.directory.was_lost(id));
                if let Some(id) = known.filter(|_| !was_lost) {
                    return Ok(id);
                }
                if born.theater == here && !was_lost {
                    return Ok(no_actor());
                }
                if at.theater == here {
                    return Ok(self
                        .directory
                        .own_or_ended(RemoteActorId::from(at).slot_name())
                        .unwrap_or_else(no_actor));
                }
                let id = if let Some(link) = self.link_table.link(at.theater) {
                    link.settle_in_peer(self.incarnation, (born, at.into()), stub)?
                } else if at.address.is_some() {
                    self.stub_without_link((born, at.into()), stub)?
                } else {
                    return Err(WireError::new("a reference to an actor in a theater that cannot be called"));
                };
                self.directory.note_stub(id, at.into(), None);
                Ok(id)
            }
            RefName::Other { theater, address, slot, incarnation, capability } => {
                let remote = RemoteActorId { theater, address: Some(address), slot, incarnation, capability };
                if let Some(id) = self.met(&remote)? {
                    return Ok(id);
                }
                if theater == self.directory.incarnation {
                    return Ok(no_actor());
                }
                if let Some(link) = self.link_table.link(theater) {
                    return link.settle_in_peer(self.incarnation, (remote, remote), stub);
                }
                self.stub_without_link((remote, remote), stub)
            }
            RefName::Member { group, born, at } => {
                // Only for a new stub, because a group without members would be kept for every invented name.
                let beside: MakeStub<'_> = &|core: &SystemCore, _, forwarder: Arc<dyn Forwarder>| {
                    let stage = self.directory.groups().stage_of(group, || self.core.next_stage());
                    stub(core, StubPlacement::Group(stage), forwarder)
                };
                let name = match at {
                    None => {
                        RefName::Mine { slot: born.slot, incarnation: born.incarnation, capability: born.capability }
                    }
                    Some(at) => RefName::Moved { born, at },
                };
                let id = self.meet(name, beside)?;
                // The groups of actors that were born in this theater are known.
                let is_own = at.is_some() && born.theater == self.directory.incarnation;
                if let Some((_, entry)) = self.registry.migration_vtable(id).filter(|_| !is_own) {
                    self.directory.groups().join(group, id, (entry.actor_name)());
                }
                Ok(id)
            }
        }
    }
}

impl Link {
    /// Returns the stub of the actor with the other end's name `far`, if there is one.
    fn met(&self, remote: &RemoteActorId) -> Result<Option<ActorId>, BadName> {
        self.directory.met(self.incarnation, remote).inspect_err(|why| self.note_bad_name(remote, *why))
    }

    fn stub_without_link(
        &self,
        names: (RemoteActorId, RemoteActorId),
        stub: MakeStub<'_>,
    ) -> Result<ActorId, WireError> {
        let node = self.node().ok_or_else(|| WireError::new("this theater has ended"))?;
        node.stub_without_link(self.incarnation, names, stub)
    }

    /// Notes a bad name. A theater that contradicts itself breaks the protocol. Names of actors of third theaters may come from these.
    fn note_bad_name(&self, remote: &RemoteActorId, why: BadName) {
        if remote.theater == self.incarnation && why != BadName::TooMany {
            self.fault(Fault::Name(why));
        }
    }

    /// Makes the stub of an actor with the birth name `born`, which is in the other theater as `far`, according to the theater `teller`.
    fn settle_in_peer(
        &self,
        teller: u64,
        (born, remote): (RemoteActorId, RemoteActorId),
        stub: MakeStub<'_>,
    ) -> Result<ActorId, WireError> {
        self.may_name_more()?;
        let id = self.name_next(
            |_| Ok(()),
            |core, stage, proxy| {
                let id = stub(core, StubPlacement::Link(stage), proxy);
                (id, id)
            },
            |handle, _| Head::Name { handle, name: remote.slot_name() },
        )?;
        self.directory.note(teller, id, born)?;
        Ok(id)
    }

    /// Makes this link the route to the actor, which has a stub already.
    pub(crate) fn adopt(&self, id: ActorId, remote: &RemoteActorId) -> Result<Arc<Proxy>, WireError> {
        self.name_next(
            |_| Ok(()),
            |_, _, proxy| (id, proxy),
            |handle, _| Head::Name { handle, name: remote.slot_name() },
        )
    }
}
