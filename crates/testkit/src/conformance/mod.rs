//! Suites of rules, for parts that others put in place of Playhouse's own: their [transports](transport).
//!
//! A suite goes through all its rules, whatever comes of them, and gives a [`Report`].

pub mod transport;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

/// What a rule is checked with.
type Check = Box<dyn FnOnce() -> Result<(), String> + Send>;

/// What was found of each rule of a suite.
#[derive(Debug)]
#[must_use = "it says which rules are broken"]
pub struct Report {
    rules: Vec<(&'static str, Result<(), String>)>,
}

impl Report {
    /// Checks one rule after the other, each on a thread of its own. One that has not been decided after `limit` is broken.
    fn of(rules: Vec<(&'static str, Check)>, limit: Duration) -> Report {
        let decide = |check: Check| {
            let (tell, told) = mpsc::channel();
            let decided = move || {
                let outcome = catch_unwind(AssertUnwindSafe(check));
                drop(tell.send(outcome.unwrap_or_else(|panic| Err(format!("it panics: {}", words(&*panic))))));
            };
            match std::thread::Builder::new().spawn(decided) {
                // The thread is left behind where it does not end.
                Ok(_) => told.recv_timeout(limit).unwrap_or_else(|_| Err(format!("nothing happens for {limit:?}"))),
                Err(error) => Err(format!("there is no thread to check it by: {error}")),
            }
        };
        Report { rules: rules.into_iter().map(|(rule, check)| (rule, decide(check))).collect() }
    }

    /// The rules that are broken, each with what was found.
    pub fn broken(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.rules.iter().filter_map(|(rule, found)| Some((*rule, found.as_ref().err()?.as_str())))
    }

    /// # Panics
    /// With the report, if a rule is broken.
    pub fn assert_all_kept(&self) {
        assert!(self.broken().next().is_none(), "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} of {} rules are broken", self.broken().count(), self.rules.len())?;
        for (rule, found) in &self.rules {
            match found {
                Ok(()) => writeln!(f, "  kept    {rule}")?,
                Err(found) => writeln!(f, "  BROKEN  {rule}: {found}")?,
            }
        }
        Ok(())
    }
}

fn words(panic: &(dyn std::any::Any + Send)) -> &str {
    let owned = || panic.downcast_ref::<String>().map(String::as_str);
    panic.downcast_ref::<&str>().copied().or_else(owned).unwrap_or("with something that is no text")
}
