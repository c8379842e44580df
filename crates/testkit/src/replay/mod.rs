//! Runs that are repeated from their seed.

mod seeds;

use std::fmt;

use playhouse::System;
use playhouse_executor::Choices;

pub use self::seeds::{commit, simulate, under_seeds};
use crate::check::{Checker, Failure};
use crate::drawing::Chart;
use crate::run::{MessageId, RunEnd, Scheduler, Sent, Step, run, sent};

/// Runs `program` once, in an order that is drawn from `seed`. The same seed gives the same run, to the last message.
///
/// The program must repeat itself, as for [`check`](crate::check()).
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse_testkit::replay;
///
/// #[derive(Default)]
/// struct Counter(u64);
///
/// #[actor]
/// impl Counter {
///     #[message]
///     fn count(&mut self) -> u64 {
///         self.0 += 1;
///         self.0
///     }
/// }
///
/// let program = |system: &System| system.spawn(Counter::default()).ask(Count).wait();
/// let run = replay(7, program);
/// assert_eq!(run.result(), Some(&Ok(1)));
/// assert_eq!(run.hash(), replay(7, program).hash());
/// println!("{}", run.chart());
/// ```
#[doc(alias = "deterministic")]
pub fn replay<R: PartialEq + fmt::Debug>(seed: u64, program: impl FnOnce(&System) -> R) -> Replay<R> {
    replay_by(&Checker::new(), seed, program)
}

fn replay_by<R: PartialEq + fmt::Debug>(checker: &Checker, seed: u64, program: impl FnOnce(&System) -> R) -> Replay<R> {
    let ran = run(program, &std::sync::Arc::default(), Box::new(RandomScheduler(Choices::new(seed))), checker.time());
    let failure = checker.failure_of(&ran);
    let deliveries = sent(&ran);
    let result = match ran.ended {
        RunEnd::Returned(result) => Some(result),
        _ => None,
    };
    Replay { seed, deliveries, failure, result }
}

struct RandomScheduler(Choices);

impl Scheduler for RandomScheduler {
    fn choose(&mut self, _: &[Step], enabled: &[MessageId]) -> Option<usize> {
        Some(self.0.below(enabled.len()))
    }
}

/// A run under a seed.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse_testkit::{Replay, replay};
///
/// let run: Replay<u32> = replay(1, |_: &System| 42);
/// assert_eq!((run.seed(), run.result()), (1, Some(&42)));
/// assert!(run.failure().is_none() && run.deliveries().is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct Replay<R> {
    seed: u64,
    deliveries: Vec<Sent>,
    failure: Option<Failure>,
    result: Option<R>,
}

impl<R> Replay<R> {
    /// Returns the seed of the order.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the deliveries, in order.
    pub fn deliveries(&self) -> &[Sent] {
        &self.deliveries
    }

    /// Returns the result of the program, or `None` if it panicked or did not end.
    pub fn result(&self) -> Option<&R> {
        self.result.as_ref()
    }

    /// Returns the failure of the run, if any.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Returns a hash of all deliveries, their times and their order. Runs with equal hashes are equal, except by a
    /// collision of 64 bits. The hash is the same on every machine.
    pub fn hash(&self) -> u64 {
        // FNV-1a.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |bytes: &[u8]| {
            for byte in bytes.iter().chain(&[0xff]) {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        for sent in &self.deliveries {
            for text in [&sent.from, &sent.to, &sent.message] {
                add(text.as_bytes());
            }
            add(&sent.at.as_nanos().to_le_bytes());
            add(&[u8::from(sent.wrong.is_some())]);
        }
        hash
    }

    /// Returns the message sequence chart of the run.
    pub fn chart(&self) -> Chart {
        Chart::of(&self.deliveries)
    }
}
