//! Rules, and what has come of them.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::run::panic_message;

/// A rule for a `T`, and the test that finds out whether it is kept.
#[derive(Debug)]
pub struct Rule<T> {
    /// What it is called in a [`Report`]: the same in each version.
    pub name: &'static str,
    /// What it asks for.
    pub says: &'static str,
    pub(crate) check: fn(&T) -> Result<(), String>,
}

impl<T: Send + Sync + 'static> Rule<T> {
    pub(crate) fn decide(&self, subject: &Arc<T>, limit: Duration) -> Result<(), String> {
        let (tell, told) = mpsc::channel();
        let (check, subject) = (self.check, Arc::clone(subject));
        // Left behind where it waits for ever.
        std::thread::spawn(move || drop(tell.send(catch_unwind(AssertUnwindSafe(|| check(&subject))))));
        match told.recv_timeout(limit) {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(thrown)) => Err(format!("it has panicked: {}", panic_message(&*thrown))),
            Err(_) => Err(format!("nothing has come of it after {limit:?}")),
        }
    }
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
    /// Tries all rules, each for so long.
    pub(crate) fn of<T: Send + Sync + 'static>(
        suite: &'static str,
        rules: &[Rule<T>],
        subject: T,
        limit: Duration,
    ) -> Report {
        let subject = Arc::new(subject);
        let (mut kept, mut broken) = (Vec::new(), Vec::new());
        for rule in rules {
            match rule.decide(&subject, limit) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_waits_for_ever_is_broken_and_the_others_are_tried() {
        const RULES: [Rule<()>; 3] = [
            Rule { name: "first", says: "it is kept", check: |()| Ok(()) },
            Rule {
                name: "second",
                says: "it ends",
                check: |()| loop {
                    std::thread::park();
                },
            },
            Rule { name: "third", says: "it is not kept", check: |()| Err("no".to_owned()) },
        ];
        let report = Report::of("waits", &RULES, (), Duration::from_secs(3));
        assert_eq!(report.kept(), ["first"]);
        assert_eq!(
            report.to_string(),
            "waits: 2 of 3 rules are broken:\n- second: it ends\n  but nothing has come of it after 3s\n\
             - third: it is not kept\n  but no"
        );
    }
}
