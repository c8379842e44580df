//! Seals: what makes names of actors unforgeable.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

/// The secret of a theater. Only who has it can seal a name, so a name that it never gave away is refused
/// (kumar-fine-grained-actors §9.2).
#[derive(Clone, Copy)]
pub(crate) struct Seal {
    key: [u8; 16],
}

impl Seal {
    pub(crate) fn random() -> Seal {
        Seal { key: rand::random() }
    }

    pub(crate) fn of(&self, slot: u64, life: u64) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_u64(slot);
        hasher.write_u64(life);
        hasher.finish()
    }

    pub(crate) fn is_right(&self, slot: u64, life: u64, seal: u64) -> bool {
        self.of(slot, life) == seal
    }
}
