//! Capabilities (message authentication codes), which make names of actors unforgeable.
//!
//! Only the theater that has made a capability can verify it. See [`naming`](crate::naming) for the others.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

use crate::naming::identities::SlotName;

/// The secret of a theater. Only its owner can make the capability of a name, so a name that it never gave away is refused (kumar-fine-grained-actors
/// §9.2).
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

    pub(crate) fn of(&self, slot: u64, incarnation: u64) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_u64(slot);
        hasher.write_u64(incarnation);
        hasher.finish()
    }

    /// Returns the capability of a reroute of a stub. It shows that a marker is this theater's own, and does not give away the name of the stub.
    pub(crate) fn of_reroute(&self, slot: u64, incarnation: u64, reroute: u64) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(b"turn");
        [slot, incarnation, reroute].into_iter().for_each(|number| hasher.write_u64(number));
        hasher.finish()
    }

    /// Returns whether the theater has given away this name.
    pub(crate) fn is_right(&self, SlotName { slot, incarnation, capability }: SlotName) -> bool {
        self.of(slot, incarnation) == capability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_holder_of_the_secret_can_make_a_capability() {
        let (one, other) = (Capability::random(), Capability::random());
        let capability = one.of(3, 7);
        let name = |slot, incarnation, capability| SlotName { slot, incarnation, capability };
        assert!(one.is_right(name(3, 7, capability)));
        assert!(
            !one.is_right(name(3, 8, capability))
                && !one.is_right(name(4, 7, capability))
                && !one.is_right(name(7, 3, capability))
        );
        assert!(!one.is_right(name(3, 7, capability ^ 1)));
        assert!(!other.is_right(name(3, 7, capability)));
        let reroute = one.of_reroute(3, 7, 0);
        assert!(
            ![capability, one.of_reroute(3, 7, 1), one.of_reroute(4, 7, 0), other.of_reroute(3, 7, 0)]
                .contains(&reroute)
        );
    }
}
