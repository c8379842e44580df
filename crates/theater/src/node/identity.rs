//! The proof that a theater belongs to the cluster, and that it is the incarnation that it claims to be.
//!
//! # Incarnations
//!
//! Each incarnation of a theater has a key pair (Ed25519) that never leaves its process. The number of the incarnation is the
//! beginning of the SHA-256 of the public key. A theater signs the opening of each connection. Therefore no other process can
//! claim an incarnation: not for a new link, and neither to resume a session nor to replace a link.
//!
//! # The opening
//!
//! | from | word | with |
//! |---|---|---|
//! | caller | [`Knock`] | a nonce, its public key |
//! | called | [`Challenge`] | a nonce, its public key, proof of the cookie, signature |
//! | caller | [`Proof`] | the cluster's name, proof of the cookie, signature |
//!
//! The proofs of the cookie are HMAC-SHA-256. Proofs and signatures are over the direction, both nonces, both public keys and, on
//! an encrypted connection, a value of the TLS session ([`Cipher::binding`](crate::transport::tls::Cipher::binding)). The
//! caller's proof also covers the cluster's name. An end that has not proved itself learns neither the cookie nor the cluster's
//! name: the caller names the cluster after the called end has proved itself, and the called end after the caller has.
//!
//! **Not prevented:** without TLS, a process between the two may pass the opening on, and change the bytes after it.

use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use ring::{digest, hmac};
use serde::{Deserialize, Serialize};

use crate::node::cookie::Cookie;

/// 32 bytes: a nonce, a public key, or an HMAC.
pub(crate) type Word32 = [u8; 32];

/// The first word of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Knock {
    pub(crate) nonce: Word32,
    pub(crate) key: Word32,
    /// The caller has a cookie.
    pub(crate) has_cookie: bool,
}

/// The first word of the end that was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Challenge {
    pub(crate) nonce: Word32,
    pub(crate) key: Word32,
    pub(crate) has_cookie: bool,
    pub(crate) mac: Word32,
    pub(crate) signature: [Word32; 2],
}

/// The second word of a caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Proof {
    pub(crate) cluster: String,
    pub(crate) mac: Word32,
    pub(crate) signature: [Word32; 2],
}

/// The secrets of one incarnation of a theater.
pub(crate) struct Credentials {
    key: Ed25519KeyPair,
    cookie: Option<Cookie>,
    pub(crate) incarnation: u64,
}

/// One opening, from the view of one end.
pub(crate) struct Exchange<'a> {
    credentials: &'a Credentials,
    /// The text that both ends sign, without the direction and the cluster.
    text: Vec<u8>,
    /// The other end's key.
    theirs: Word32,
    /// True for an end with a cookie: this end, the other end.
    have_cookies: [bool; 2],
}

/// The direction of a proof. It keeps a proof from being sent back to its maker.
#[derive(Clone, Copy)]
enum By {
    Caller,
    Called,
}

impl By {
    fn label(self) -> &'static [u8] {
        match self {
            By::Caller => b"playhouse 2, by the caller",
            By::Called => b"playhouse 2, by the called",
        }
    }

    /// Returns the reason for which the proof of this end is refused. Both ends can read it, because it names them by their part in the call.
    fn fault(self, fault: Fault) -> &'static str {
        match (self, fault) {
            (By::Caller, Fault::Cookie) => "the caller's cookie differs from the called theater's",
            (By::Caller, Fault::NoCookie) => "the caller has no cookie, and the called theater has one",
            (By::Caller, Fault::NeedlessCookie) => "the caller has a cookie, and the called theater has none",
            (By::Caller, Fault::Incarnation) => "the caller does not prove its incarnation",
            (By::Called, Fault::Cookie) => "the called theater's cookie differs from the caller's",
            (By::Called, Fault::NoCookie) => "the called theater has no cookie, and the caller has one",
            (By::Called, Fault::NeedlessCookie) => "the called theater has a cookie, and the caller has none",
            (By::Called, Fault::Incarnation) => "the called theater does not prove its incarnation",
        }
    }
}

/// A fault of a proof.
#[derive(Clone, Copy)]
enum Fault {
    Cookie,
    NoCookie,
    NeedlessCookie,
    Incarnation,
}

/// Returns the number of the incarnation with this public key.
fn incarnation_of(key: &Word32) -> u64 {
    let hash = digest::digest(&digest::SHA256, key);
    let (first, _) = hash.as_ref().split_first_chunk().expect("a hash has 32 bytes");
    u64::from_le_bytes(*first)
}

impl Credentials {
    /// Makes the credentials of a new incarnation.
    pub(crate) fn new(cookie: Option<Cookie>) -> Credentials {
        let seed: Word32 = rand::random();
        let key = Ed25519KeyPair::from_seed_unchecked(&seed).expect("a seed has 32 bytes");
        let mut credentials = Credentials { key, cookie, incarnation: 0 };
        credentials.incarnation = incarnation_of(&credentials.public());
        credentials
    }

    fn public(&self) -> Word32 {
        self.key.public_key().as_ref().try_into().expect("a public key has 32 bytes")
    }

    /// Returns the first word of a call.
    pub(crate) fn knock(&self) -> Knock {
        Knock { nonce: rand::random(), key: self.public(), has_cookie: self.cookie.is_some() }
    }

    /// Returns the answer to a caller's first word. `binding` is the value of the TLS session, if there is one.
    pub(crate) fn challenge(&self, knock: &Knock, binding: &[u8]) -> (Challenge, Exchange<'_>) {
        let (nonce, has_cookie) = (rand::random(), self.cookie.is_some());
        let mut challenge = Challenge { nonce, key: self.public(), has_cookie, mac: [0; 32], signature: [[0; 32]; 2] };
        let exchange = self.exchange(knock, &challenge, binding, By::Called);
        (challenge.mac, challenge.signature) = exchange.prove(By::Called, "");
        (challenge, exchange)
    }

    fn exchange(&self, knock: &Knock, challenge: &Challenge, binding: &[u8], by: By) -> Exchange<'_> {
        let cookies = [u8::from(knock.has_cookie), u8::from(challenge.has_cookie)];
        let parts: [&[u8]; 6] = [&knock.nonce, &challenge.nonce, &knock.key, &challenge.key, &cookies, binding];
        let (theirs, have_cookies) = match by {
            By::Caller => (challenge.key, [knock.has_cookie, challenge.has_cookie]),
            By::Called => (knock.key, [challenge.has_cookie, knock.has_cookie]),
        };
        Exchange { credentials: self, text: parts.concat(), theirs, have_cookies }
    }

    /// Returns the caller's answer to a challenge.
    ///
    /// # Errors
    /// The reason why the other end is refused.
    pub(crate) fn answer(
        &self,
        knock: &Knock,
        challenge: &Challenge,
        binding: &[u8],
        cluster: &str,
    ) -> Result<(Proof, u64), &'static str> {
        let exchange = self.exchange(knock, challenge, binding, By::Caller);
        let theirs = exchange.check(By::Called, "", &challenge.mac, &challenge.signature)?;
        let (mac, signature) = exchange.prove(By::Caller, cluster);
        Ok((Proof { cluster: cluster.to_owned(), mac, signature }, theirs))
    }
}

impl Exchange<'_> {
    /// Returns the incarnation of the caller.
    ///
    /// # Errors
    /// The reason why the caller is refused.
    pub(crate) fn check_caller(&self, proof: &Proof) -> Result<u64, &'static str> {
        self.check(By::Caller, &proof.cluster, &proof.mac, &proof.signature)
    }

    fn signed(&self, by: By, cluster: &str) -> Vec<u8> {
        // Only the last part has a variable length; the length of the text is the same for both ends.
        [by.label(), &self.text, cluster.as_bytes()].concat()
    }

    fn prove(&self, by: By, cluster: &str) -> (Word32, [Word32; 2]) {
        let text = self.signed(by, cluster);
        let mac = match &self.credentials.cookie {
            Some(cookie) => hmac::sign(cookie.key(), &text).as_ref().try_into().expect("an HMAC has 32 bytes"),
            None => [0; 32],
        };
        let signature = self.credentials.key.sign(&text);
        let (first, second) = signature.as_ref().split_at(32);
        let half = |half: &[u8]| half.try_into().expect("a signature has 64 bytes");
        (mac, [half(first), half(second)])
    }

    fn check(&self, by: By, cluster: &str, mac: &Word32, signature: &[Word32; 2]) -> Result<u64, &'static str> {
        let text = self.signed(by, cluster);
        match (self.have_cookies, &self.credentials.cookie) {
            ([true, true], Some(cookie)) => {
                hmac::verify(cookie.key(), &text, mac).map_err(|_| by.fault(Fault::Cookie))?;
            }
            ([false, false], None) => {}
            ([true, _], _) => return Err(by.fault(Fault::NoCookie)),
            _ => return Err(by.fault(Fault::NeedlessCookie)),
        }
        let key = UnparsedPublicKey::new(&ED25519, self.theirs);
        key.verify(&text, signature.as_flattened()).map_err(|_| by.fault(Fault::Incarnation))?;
        Ok(incarnation_of(&self.theirs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie(secret: &str) -> Option<Cookie> {
        Some(Cookie::new(secret).unwrap())
    }

    /// Runs an opening; both ends learn the other one's incarnation.
    fn open(calls: &Credentials, answers: &Credentials, bindings: [&[u8]; 2]) -> Result<[u64; 2], &'static str> {
        let knock = calls.knock();
        let (challenge, exchange) = answers.challenge(&knock, bindings[1]);
        let (proof, answered) = calls.answer(&knock, &challenge, bindings[0], "cluster")?;
        Ok([exchange.check_caller(&proof)?, answered])
    }

    // GUARANTEE: One user, one cookie
    #[test]
    fn ends_with_the_same_cookie_learn_each_others_incarnations() {
        for cookies in [cookie("a cookie for tests"), None] {
            let [one, other] = [(); 2].map(|()| Credentials::new(cookies.clone()));
            assert_ne!(one.incarnation, other.incarnation);
            assert_eq!(open(&one, &other, [b"tls"; 2]), Ok([one.incarnation, other.incarnation]));
        }
    }

    // GUARANTEE: One user, one cookie
    #[test]
    fn another_cookie_and_a_missing_one_are_refused_before_the_cluster_is_named() {
        let one = Credentials::new(cookie("a cookie for tests"));
        let other = Credentials::new(cookie("another cookie for tests"));
        let none = Credentials::new(None);
        assert_eq!(open(&one, &other, [b""; 2]), Err("the called theater's cookie differs from the caller's"));
        assert_eq!(open(&one, &none, [b""; 2]), Err("the called theater has no cookie, and the caller has one"));
        assert_eq!(open(&none, &one, [b""; 2]), Err("the called theater has a cookie, and the caller has none"));
    }

    // GUARANTEE: An incarnation is one process
    #[test]
    fn a_proof_holds_for_its_own_opening_only() {
        let [one, other] = [(); 2].map(|()| Credentials::new(cookie("a cookie for tests")));
        let knock = one.knock();
        let (challenge, exchange) = other.challenge(&knock, b"");
        let (proof, _) = one.answer(&knock, &challenge, b"", "cluster").unwrap();
        assert_eq!(exchange.check_caller(&proof), Ok(one.incarnation));
        // Another cluster, a proof of the other direction, another nonce, another session of TLS.
        let forged = Proof { cluster: "clusters".to_owned(), ..proof.clone() };
        assert!(exchange.check_caller(&forged).is_err());
        let reflected = Proof { mac: challenge.mac, signature: challenge.signature, cluster: String::new() };
        assert!(exchange.check_caller(&reflected).is_err());
        let (_, again) = other.challenge(&knock, b"");
        assert!(again.check_caller(&proof).is_err());
        assert!(open(&one, &other, [b"one session", b"another one"]).is_err());
    }

    // GUARANTEE: An incarnation is one process
    #[test]
    fn a_key_that_is_not_ones_own_proves_nothing() {
        let [one, other, forger] = [(); 3].map(|()| Credentials::new(cookie("a cookie for tests")));
        let knock = Knock { key: one.public(), ..forger.knock() };
        let (challenge, exchange) = other.challenge(&knock, b"");
        let (proof, _) = forger.answer(&knock, &challenge, b"", "cluster").unwrap();
        assert_eq!(exchange.check_caller(&proof), Err("the caller does not prove its incarnation"));
    }
}
