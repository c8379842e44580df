//! Runs that are repeated from their seed.

mod seeds;

use std::fmt;

use playhouse::System;
use playhouse_executor::Choices;

pub use self::seeds::{commit, simulate, under_seeds};
use crate::check::{Checker, Failure};
use crate::drawing::Chart;
use crate::run::{MessageId, RunEnd, Scheduler, Sent, Step, run, sent};

/// Runs `program` once, in an order that is drawn from `seed`: the same seed gives the same run, to the last message.
///
/// The program is one as for [`check`](crate::check()): it has to do the same each time.
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
#[derive(Clone, Debug)]
pub struct Replay<R> {
    seed: u64,
    deliveries: Vec<Sent>,
    failure: Option<Failure>,
    result: Option<R>,
}

impl<R> Replay<R> {
    /// The seed that its order was drawn from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What was delivered, in order.
    pub fn deliveries(&self) -> &[Sent] {
        &self.deliveries
    }

    /// What the program has returned. None: it panicked, or did not come to its end.
    pub fn result(&self) -> Option<&R> {
        self.result.as_ref()
    }

    /// What went fault, if anything did.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// A number for all that was delivered and when, in its order: two runs are equal if theirs are (but for one in 2^64 that
    /// differ). The same on every machine.
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

    /// The message sequence chart of it.
    pub fn chart(&self) -> Chart {
        Chart::of(&self.deliveries)
    }
}
