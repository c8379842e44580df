//! Runs that are repeated from their seed.

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use playhouse::System;
use playhouse_executor::Choices;

use crate::chart::Chart;
use crate::check::{Checker, Failure};
use crate::quiet::text_of;
use crate::run::{Choose, Ended, Time, run};
use crate::schedule::{Sent, sent};
use crate::step::{MessageId, Step};

/// Runs `program` once, in an order that is drawn from `seed`: the same seed gives the same run, to the last message.
///
/// The program is one as for [`check`](crate::check()): it has to do the same each time.
pub fn replay<R: PartialEq + fmt::Debug>(seed: u64, program: impl FnOnce(&System) -> R) -> Replay<R> {
    replay_by(&Checker::new(), seed, program)
}

fn replay_by<R: PartialEq + fmt::Debug>(checker: &Checker, seed: u64, program: impl FnOnce(&System) -> R) -> Replay<R> {
    let ran = run(program, &std::sync::Arc::default(), Box::new(Drawn(Choices::new(seed))), checker.time());
    let failure = checker.failure_of(&ran);
    let deliveries = sent(&ran);
    let result = match ran.ended {
        Ended::Returned(result) => Some(result),
        _ => None,
    };
    Replay { seed, deliveries, failure, result }
}

/// Runs `program` under each of these seeds, and panics where something goes wrong: with the seed, the commit, what went wrong,
/// and what was sent until then. For programs that have too many orders for [`check`](crate::check()).
///
/// The same things are wrong as for `check`, but the result need not be the same. [`Checker::simulate`] allows dead letters or crashes.
///
/// # Panics
/// With the first seed under which something goes wrong.
#[track_caller]
pub fn simulate(seeds: Range<u64>, program: impl Fn(&System)) {
    Checker::new().simulate(seeds, program);
}

impl Checker {
    /// Does what [`simulate`] does, with these settings: what is allowed, and [whether timers may fire at any moment](Checker::any_time).
    ///
    /// ```
    /// use playhouse_testkit::Checker;
    ///
    /// Checker::new().allow_dead_letters().simulate(0..100, |system| {
    ///     // ..
    ///     # let _ = system;
    /// });
    /// ```
    ///
    /// # Panics
    /// With the first seed under which something goes wrong.
    #[track_caller]
    pub fn simulate(&self, seeds: Range<u64>, program: impl Fn(&System)) {
        for seed in seeds {
            let replay = replay_by(self, seed, &program);
            if let Some(failure) = replay.failure() {
                // `replay` lets time pass only where nothing else is left to do.
                let hint = format!("\nor playhouse_testkit::replay({seed}, ..), which has a chart of it");
                let hint = if self.time() == Time::AtRest { &*hint } else { "" };
                panic!("under seed {seed} (commit {}): {failure}{hint}", commit());
            }
        }
    }
}

/// Calls `test` with each of these seeds: for what draws its order in another way, a system with
/// [`simulated(seed)`](playhouse::SystemBuilder::simulated) or theaters in a [`playhouse::Simulation`]. Where it panics, the seed
/// and the commit are said.
///
/// # Panics
/// With the first seed under which `test` does.
#[track_caller]
pub fn under_seeds(seeds: Range<u64>, test: impl Fn(u64)) {
    for seed in seeds {
        if let Err(thrown) = catch_unwind(AssertUnwindSafe(|| test(seed))) {
            panic!("under seed {seed} (commit {}): {}", commit(), text_of(&*thrown));
        }
    }
}

struct Drawn(Choices);

impl Choose for Drawn {
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

    /// What went wrong, if anything did.
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

/// The commit that the program was built from, as `git` knows it here: with `-changed` where something was not committed.
/// `unknown` where there is no repository.
pub fn commit() -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else { return "unknown".to_owned() };
    let is_clean = git(&["status", "--porcelain"]).is_some_and(|changes| changes.is_empty());
    if is_clean { commit } else { format!("{commit}-changed") }
}
