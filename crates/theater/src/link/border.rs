//! References on a link.

use playhouse_actor::away::{Berth, Border, Carrier, Place, RefName};

use super::*;
use crate::directory::Far;
use crate::distant::Distant;

impl Border for Link {
    fn name_of(&self, id: ActorId) -> Result<RefName, WireError> {
        if let Some(handle) = lock(&self.places).handles.get(&id) {
            return Ok(RefName::Yours(*handle));
        }
        self.directory.name_for_others(id)
    }

    fn meet(&self, name: RefName, place: Place<'_>) -> Result<ActorId, WireError> {
        // Who has ended, or was never here: what is sent to it is heard by nobody. Whatever holds the reference is none the worse.
        let nobody = ActorId::nobody;
        match name {
            RefName::Yours(handle) => Ok(self.target(handle).unwrap_or_else(nobody)),
            RefName::Mine { slot, life, seal } => {
                let far = Far { theater: self.incarnation, address: self.advertised, slot, life, seal };
                self.meet_there(far, far, place)
            }
            RefName::Moved { theater, slot, life, seal, .. } if theater == self.directory.incarnation => {
                Ok(self.directory.own(slot, life, seal).unwrap_or_else(nobody))
            }
            RefName::Moved { theater, slot, life, seal, at } => {
                let born = Far { theater, address: None, slot, life, seal };
                if let Some(id) = self.directory.met(&born) {
                    return Ok(id);
                }
                if at.theater == self.directory.incarnation {
                    return Ok(self.directory.own(at.slot, at.life, at.seal).unwrap_or_else(nobody));
                }
                let id = if let Some(link) = self.directory.link(at.theater) {
                    link.meet_there(born, at.into(), place)?
                } else if at.address.is_some() {
                    Distant::settle(&self.directory, born, at.into(), place)
                } else {
                    return Err(WireError::new("a reference to an actor in a theater that cannot be called"));
                };
                self.directory.note_moved(id, Some(at.into()));
                Ok(id)
            }
            RefName::Other { theater, slot, life, seal, .. } if theater == self.directory.incarnation => {
                Ok(self.directory.own(slot, life, seal).unwrap_or_else(nobody))
            }
            RefName::Other { theater, address, slot, life, seal } => {
                let far = Far { theater, address: Some(address), slot, life, seal };
                if let Some(id) = self.directory.met(&far) {
                    return Ok(id);
                }
                if let Some(link) = self.directory.link(theater) {
                    return link.meet_there(far, far, place);
                }
                Ok(Distant::settle(&self.directory, far, far, place))
            }
            RefName::Member { group, theater, slot, life, seal, at } => {
                let stage = self.directory.groups().stage_of(group, || self.core.next_stage());
                let beside: Place<'_> =
                    &|core: &SystemCore, _, carrier: Arc<dyn Carrier>| place(core, Berth::Group(stage), carrier);
                let name = match at {
                    None => RefName::Mine { slot, life, seal },
                    Some(at) => RefName::Moved { theater, slot, life, seal, at },
                };
                let id = self.meet(name, beside)?;
                if let Some((_, entry)) = self.registry.moves(id) {
                    self.directory.groups().join(group, id, (entry.actor_name)());
                }
                Ok(id)
            }
        }
    }
}

impl Link {
    /// The place of an actor that was born as `born`, and is in the other theater as `far`.
    fn meet_there(&self, born: Far, far: Far, place: Place<'_>) -> Result<ActorId, WireError> {
        if let Some(id) = self.directory.met(&born) {
            return Ok(id);
        }
        let id = self.name_next(
            |handle, out| Head::Name { handle, slot: far.slot, life: far.life, seal: far.seal }.write(out),
            |core, stage, proxy| {
                let id = place(core, Berth::Link(stage), Arc::new(proxy));
                (id, id)
            },
        )?;
        self.directory.note(id, born);
        Ok(id)
    }

    /// From now on this link is the way to the actor, whose place there is already.
    pub(crate) fn adopt(&self, id: ActorId, far: &Far) -> Result<Proxy, WireError> {
        self.name_next(
            |handle, out| Head::Name { handle, slot: far.slot, life: far.life, seal: far.seal }.write(out),
            |_, _, proxy| (id, proxy),
        )
    }
}
