//! Rules, and what has come of them.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::quiet::text_of;

/// A rule for a `T`, and the test that finds out whether it is kept.
#[derive(Debug)]
pub struct Rule<T: ?Sized> {
    /// What it is called in a [`Report`]: the same in each version.
    pub name: &'static str,
    /// What it asks for.
    pub says: &'static str,
    pub(crate) check: fn(&T) -> Result<(), String>,
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broken {
    /// The rule's name.
    pub rule: &'static str,
    /// What it asks for.
    pub says: &'static str,
    /// What was expected and what was found, or what a panic has said.
    pub why: String,
}

/// What has come of a suite: all of its rules were tried.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "it says whether the rules are kept"]
pub struct Report {
    suite: &'static str,
    kept: Vec<&'static str>,
    broken: Vec<Broken>,
}

impl Report {
    /// Tries all rules, in this way.
    pub(crate) fn of<T: ?Sized>(
        suite: &'static str,
        rules: &[Rule<T>],
        check: impl Fn(&Rule<T>) -> Result<(), String>,
    ) -> Report {
        let (mut kept, mut broken) = (Vec::new(), Vec::new());
        for rule in rules {
            let outcome = catch_unwind(AssertUnwindSafe(|| check(rule)));
            match outcome.unwrap_or_else(|thrown| Err(format!("it has panicked: {}", text_of(&*thrown)))) {
                Ok(()) => kept.push(rule.name),
                Err(why) => broken.push(Broken { rule: rule.name, says: rule.says, why }),
            }
        }
        Report { suite, kept, broken }
    }

    /// The names of the rules that are kept.
    pub fn kept(&self) -> &[&'static str] {
        &self.kept
    }

    /// The rules that are not.
    pub fn broken(&self) -> &[Broken] {
        &self.broken
    }

    /// For a test: nothing, if all rules are kept.
    ///
    /// # Panics
    /// If a rule is broken: with which and why.
    #[track_caller]
    pub fn assert_all_kept(&self) {
        assert!(self.broken.is_empty(), "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (broken, all) = (self.broken.len(), self.kept.len() + self.broken.len());
        if broken == 0 {
            return write!(f, "{}: all {all} rules are kept", self.suite);
        }
        write!(f, "{}: {broken} of {all} rules are broken:", self.suite)?;
        for Broken { rule, says, why } in &self.broken {
            write!(f, "\n- {rule}: {says}\n  but {why}")?;
        }
        Ok(())
    }
}
