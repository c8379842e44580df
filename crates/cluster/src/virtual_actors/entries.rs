//! The activations of a directory, by key and by slot.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use playhouse_actor::{ActorId, ActorRef};
use siphasher::sip::SipHasher13;

use super::active::Active;
use super::actor::VirtualActor;
use crate::membership::Time;

/// Returns the hash of a key of a kind, which is the same in all members.
pub(super) fn hash_of(kind: &str, key: &str) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(kind.as_bytes());
    // No text has this byte.
    hasher.write_u8(0xff);
    hasher.write(key.as_bytes());
    hasher.finish()
}

/// The phase of an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It takes calls.
    Active,
    /// It is passivated, and is killed at this time if there is one.
    Passivating(Option<Time>),
    /// It was killed.
    Killed,
}

/// An activation.
pub(super) struct Entry<A: VirtualActor> {
    pub(super) active: Arc<Active<A>>,
    pub(super) actor: ActorRef<A>,
    pub(super) activated_at: Time,
    pub(super) phase: Phase,
}

/// All activations of a directory, until they have ended. The iteration order depends on nothing but the keys.
pub(super) struct Entries<A: VirtualActor> {
    by_key: HashMap<Arc<str>, Entry<A>, BuildHasherDefault<SipHasher13>>,
    by_actor: BTreeMap<ActorId, Arc<str>>,
    by_slot: BTreeMap<usize, BTreeSet<Arc<str>>>,
}

impl<A: VirtualActor> Entries<A> {
    pub(super) fn new() -> Entries<A> {
        Entries { by_key: HashMap::default(), by_actor: BTreeMap::new(), by_slot: BTreeMap::new() }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Entry<A>> {
        self.by_key.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Entry<A>> {
        self.by_key.get_mut(key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry<A>> {
        self.by_key.values()
    }

    pub(super) fn insert(&mut self, entry: Entry<A>) {
        let key = &entry.active.activation.key;
        self.by_actor.insert(entry.actor.id(), Arc::clone(key));
        self.by_slot.entry(entry.active.activation.slot).or_default().insert(Arc::clone(key));
        self.by_key.insert(Arc::clone(key), entry);
    }

    /// Removes the activation of an actor that has ended.
    pub(super) fn remove(&mut self, actor: ActorId) -> Option<Entry<A>> {
        let key = self.by_actor.remove(&actor)?;
        let entry = self.by_key.remove(&key)?;
        let slot = entry.active.activation.slot;
        if let Some(keys) = self.by_slot.get_mut(&slot) {
            keys.remove(&key);
            if keys.is_empty() {
                self.by_slot.remove(&slot);
            }
        }
        Some(entry)
    }

    /// Returns the keys of a slot that are active, or have not ended.
    pub(super) fn of_slot(&self, slot: usize) -> Vec<Arc<str>> {
        self.by_slot.get(&slot).into_iter().flatten().cloned().collect()
    }

    pub(super) fn is_unused(&self, slot: usize) -> bool {
        !self.by_slot.contains_key(&slot)
    }
}

#[cfg(test)]
mod tests {
    use super::hash_of;

    #[test]
    fn the_hash_of_a_key_stays_the_same_and_depends_on_the_kind() {
        assert_eq!(
            hash_of("shop.Account", "42"),
            3_868_079_018_536_331_229,
            "another value moves keys between the members of two versions"
        );
        assert_ne!(hash_of("a", "bc"), hash_of("ab", "c"));
    }
}
