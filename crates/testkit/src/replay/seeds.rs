//! Runs under many seeds.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use playhouse::System;

use super::replay_by;
use crate::check::Checker;
use crate::run::{TimerPolicy, panic_message};

/// Runs `program` under each of these seeds, and panics at the first failure. The text has the seed, the commit, the
/// failure and the deliveries until then. The function suits programs with too many orders for
/// [`check`](crate::check()).
///
/// The violations are those of `check`, but the result may depend on the order. [`Checker::simulate`] can allow dead
/// letters or crashes.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse_testkit::simulate;
///
/// struct Echo;
///
/// #[actor]
/// impl Echo {
///     #[message]
///     fn say(&self, n: u32) -> u32 { n }
/// }
///
/// simulate(0..20, |system| {
///     assert_eq!(system.spawn(Echo).ask(Say(7)).wait(), Ok(7));
/// });
/// ```
///
/// # Panics
/// A run fails: the first seed that leads to a failure is in the text.
#[doc(alias = "deterministic_simulation")]
#[doc(alias = "fuzz")]
#[track_caller]
pub fn simulate(seeds: Range<u64>, program: impl Fn(&System)) {
    Checker::new().simulate(seeds, program);
}

impl Checker {
    /// Runs `program` under each of these seeds as [`simulate`] does, with these settings: allowed violations, and
    /// [timers at any moment](Checker::any_time).
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
    /// A run fails: the first seed that leads to a failure is in the text.
    #[track_caller]
    pub fn simulate(&self, seeds: Range<u64>, program: impl Fn(&System)) {
        for seed in seeds {
            let replay = replay_by(self, seed, &program);
            if let Some(failure) = replay.failure() {
                // `replay` lets time pass only when nothing else is left to do.
                let hint = format!("\nor playhouse_testkit::replay({seed}, ..), which has a chart of it");
                let hint = if self.time() == TimerPolicy::AtRest { &*hint } else { "" };
                panic!("under seed {seed} (commit {}): {failure}{hint}", commit());
            }
        }
    }
}

/// Calls `test` with each of these seeds, and adds the seed and the commit to a panic. The function suits other
/// sources of order: a system with [`simulated(seed)`](playhouse::SystemBuilder::simulated), or theaters in a
/// [`playhouse::Simulation`].
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse_testkit::under_seeds;
///
/// under_seeds(0..5, |seed| {
///     let system = System::builder().simulated(seed).start().expect("it starts");
///     system.run_until_idle();
/// });
/// ```
///
/// # Panics
/// `test` panics under a seed.
#[track_caller]
pub fn under_seeds(seeds: Range<u64>, test: impl Fn(u64)) {
    for seed in seeds {
        if let Err(thrown) = catch_unwind(AssertUnwindSafe(|| test(seed))) {
            panic!("under seed {seed} (commit {}): {}", commit(), panic_message(&*thrown));
        }
    }
}

/// Returns the commit of the program, as `git` reports it in the present folder. The text ends with `-changed` if
/// files are not committed, and is `unknown` without a repository.
///
/// # Examples
///
/// ```
/// println!("tested at commit {}", playhouse_testkit::commit());
/// ```
pub fn commit() -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else { return "unknown".to_owned() };
    let is_clean = git(&["status", "--porcelain"]).is_some_and(|changes| changes.is_empty());
    if is_clean { commit } else { format!("{commit}-changed") }
}
