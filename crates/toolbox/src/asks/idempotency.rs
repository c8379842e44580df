//! Requests that are known again.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, RandomState};

use serde::{Deserialize, Serialize};

/// What a request is known by, however often it is sent: 128 bits.
///
/// The best key is one that the request has anyway, such as the number of an order: `IdempotencyKey::from(number)` (a `u64`, or the bytes of a UUID).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IdempotencyKey {
    high: u64,
    low: u64,
}

impl IdempotencyKey {
    /// A key that no other request has, by chance. It differs from run to run, in a simulated system too.
    pub fn random() -> IdempotencyKey {
        let half = || RandomState::new().hash_one(0);
        IdempotencyKey { high: half(), low: half() }
    }
}

impl From<u64> for IdempotencyKey {
    fn from(number: u64) -> IdempotencyKey {
        IdempotencyKey { high: 0, low: number }
    }
}

/// The bytes of a UUID.
impl From<[u8; 16]> for IdempotencyKey {
    fn from(bytes: [u8; 16]) -> IdempotencyKey {
        let number = u128::from_be_bytes(bytes);
        IdempotencyKey { high: (number >> 64) as u64, low: number as u64 }
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.high, self.low)
    }
}

/// The answers that an actor has given, by the keys of the requests: part of its state.
///
/// It keeps as many as it was told, and forgets the oldest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnswerCache<R> {
    answers: HashMap<IdempotencyKey, R>,
    order: VecDeque<IdempotencyKey>,
    most: usize,
}

impl<R: Clone> AnswerCache<R> {
    /// One that keeps the last `most` answers, one at least.
    pub fn with_room_for(most: usize) -> AnswerCache<R> {
        AnswerCache { answers: HashMap::new(), order: VecDeque::new(), most: most.max(1) }
    }

    /// The answer that was given to the request with this key, if it is still known.
    pub fn get(&self, key: IdempotencyKey) -> Option<R> {
        self.answers.get(&key).cloned()
    }

    /// Keeps an answer; that to an earlier request with the same key is replaced.
    pub fn put(&mut self, key: IdempotencyKey, answer: R) {
        if self.answers.insert(key, answer).is_none() {
            self.order.push_back(key);
            if self.order.len() > self.most
                && let Some(oldest) = self.order.pop_front()
            {
                self.answers.remove(&oldest);
            }
        }
    }
}
