//! Seals: what makes names of actors unforgeable.
//!
//! Only the theater that has made a seal can verify it. See [`directory`](crate::naming) for the others.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

/// The secret of a theater. Only who has it can seal a name, so a name that it never gave away is refused
/// (kumar-fine-grained-actors §9.2).
#[derive(Clone, Copy)]
pub(crate) struct Capability {
    key: [u8; 16],
}

impl Capability {
    pub(crate) fn random() -> Capability {
        Capability::new(rand::random())
    }

    pub(crate) fn new(key: [u8; 16]) -> Capability {
        Capability { key }
    }

    pub(crate) fn of(&self, slot: u64, life: u64) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_u64(slot);
        hasher.write_u64(life);
        hasher.finish()
    }

    /// The seal of a turn of a place: it shows that a marker is this theater's own, and does not give away the name of the place.
    pub(crate) fn of_turn(&self, slot: u64, life: u64, turn: u64) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(b"turn");
        [slot, life, turn].into_iter().for_each(|number| hasher.write_u64(number));
        hasher.finish()
    }

    pub(crate) fn is_right(&self, slot: u64, life: u64, seal: u64) -> bool {
        self.of(slot, life) == seal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_the_secret_can_seal() {
        let (one, other) = (Capability::random(), Capability::random());
        let seal = one.of(3, 7);
        assert!(one.is_right(3, 7, seal));
        assert!(!one.is_right(3, 8, seal) && !one.is_right(4, 7, seal) && !one.is_right(7, 3, seal));
        assert!(!one.is_right(3, 7, seal ^ 1));
        assert!(!other.is_right(3, 7, seal));
        let turn = one.of_turn(3, 7, 0);
        assert!(![seal, one.of_turn(3, 7, 1), one.of_turn(4, 7, 0), other.of_turn(3, 7, 0)].contains(&turn));
    }
}
