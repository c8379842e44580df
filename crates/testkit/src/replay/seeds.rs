//! Many seeds, one after the other.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use playhouse::System;

use super::replay_by;
use crate::check::Checker;
use crate::run::{TimerPolicy, panic_message};

/// Runs `program` under each of these seeds, and panics where something goes fault: with the seed, the commit, what went fault,
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
                let hint = if self.time() == TimerPolicy::AtRest { &*hint } else { "" };
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
            panic!("under seed {seed} (commit {}): {}", commit(), panic_message(&*thrown));
        }
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
