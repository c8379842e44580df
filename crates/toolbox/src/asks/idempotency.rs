//! Keys of requests, and a cache of their answers.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, RandomState};

use serde::{Deserialize, Serialize};

/// A key that identifies a request over all its attempts: 128 bits.
///
/// The best key is one that the request has anyway, such as the number of an order: `IdempotencyKey::from(number)`. A
/// `u64` and the 16 bytes of a UUID can be a key.
///
/// # Examples
///
/// ```
/// use playhouse::asks::IdempotencyKey;
///
/// let order = IdempotencyKey::from(4711);
/// assert_eq!(order, IdempotencyKey::from(4711));
/// assert_ne!(IdempotencyKey::random(), IdempotencyKey::random());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IdempotencyKey {
    high: u64,
    low: u64,
}

impl IdempotencyKey {
    /// Returns a random key. The key differs from run to run, in a simulated system too.
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

/// The bytes of a UUID as a key.
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

/// A cache of given answers by the keys of their requests. The cache is part of an actor's state.
///
/// The cache has a fixed capacity, and forgets the oldest answer first.
///
/// # Examples
///
/// ```
/// use playhouse::asks::{AnswerCache, IdempotencyKey};
/// use playhouse::prelude::*;
///
/// struct Account {
///     sum: u64,
///     answers: AnswerCache<u64>,
/// }
///
/// #[actor]
/// impl Account {
///     #[message(derive(Clone))]
///     fn deposit(&mut self, key: IdempotencyKey, amount: u64) -> u64 {
///         if let Some(answer) = self.answers.get(key) {
///             return answer; // a second attempt of the same request
///         }
///         self.sum += amount;
///         self.answers.put(key, self.sum);
///         self.sum
///     }
/// }
///
/// let mut account = Account { sum: 0, answers: AnswerCache::with_room_for(100) };
/// let key = IdempotencyKey::random();
/// assert_eq!(account.deposit(key, 5), 5);
/// assert_eq!(account.deposit(key, 5), 5);
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnswerCache<R> {
    answers: HashMap<IdempotencyKey, R>,
    order: VecDeque<IdempotencyKey>,
    most: usize,
}

impl<R: Clone> AnswerCache<R> {
    /// Creates a cache of the last `most` answers, at least one.
    pub fn with_room_for(most: usize) -> AnswerCache<R> {
        AnswerCache { answers: HashMap::new(), order: VecDeque::new(), most: most.max(1) }
    }

    /// Returns the answer to the request with this key, if the cache still has it.
    pub fn get(&self, key: IdempotencyKey) -> Option<R> {
        self.answers.get(&key).cloned()
    }

    /// Stores an answer, and replaces an earlier answer to the same key.
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
