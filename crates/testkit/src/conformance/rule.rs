//! Rules, and the report of a suite.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::run::panic_message;

/// A rule for a `T`, with the test that decides whether it holds.
///
/// # Examples
///
/// ```
/// use playhouse_testkit::conformance::store::RULES;
///
/// for rule in RULES {
///     println!("{}: {}", rule.name, rule.says);
/// }
/// ```
#[derive(Debug)]
pub struct Rule<T> {
    /// The name of the rule in a [`Report`], the same in each version.
    pub name: &'static str,
    /// The demand of the rule.
    pub says: &'static str,
    pub(crate) check: fn(&T) -> Result<(), String>,
}

impl<T: Send + Sync + 'static> Rule<T> {
    pub(crate) fn decide(&self, subject: &Arc<T>, limit: Duration) -> Result<(), String> {
        let (tell, told) = mpsc::channel();
        let (check, subject) = (self.check, Arc::clone(subject));
        // A test that waits forever is left behind on its thread.
        std::thread::spawn(move || drop(tell.send(catch_unwind(AssertUnwindSafe(|| check(&subject))))));
        match told.recv_timeout(limit) {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(thrown)) => Err(format!("it has panicked: {}", panic_message(&*thrown))),
            Err(_) => Err(format!("the rule is undecided after {limit:?}")),
        }
    }
}

/// A rule that does not hold.
///
/// # Examples
///
/// ```
/// use playhouse::durable::MemoryStore;
/// use playhouse_testkit::conformance::{Broken, store};
///
/// let report = store::check(|| MemoryStore::new); // each handle has a storage of its own
/// let broken: &Broken = &report.broken()[0];
/// println!("{}: {}, but {}", broken.rule, broken.says, broken.why);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broken {
    /// The name of the rule.
    pub rule: &'static str,
    /// The demand of the rule.
    pub says: &'static str,
    /// The expectation and the finding, or the message of a panic.
    pub why: String,
}

/// The report of a suite, in which all rules were tried.
///
/// # Examples
///
/// ```
/// use playhouse::durable::MemoryStore;
/// use playhouse_testkit::conformance::{Report, store};
///
/// let report: Report = store::check(|| {
///     let storage = MemoryStore::new();
///     move || storage.clone()
/// });
/// assert_eq!(report.kept().len(), store::RULES.len());
/// ```
#[doc(alias = "TCK")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a report is read for broken rules"]
pub struct Report {
    suite: &'static str,
    kept: Vec<&'static str>,
    broken: Vec<Broken>,
}

impl Report {
    /// Tries all rules, each for at most this time.
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

    /// Returns the names of the rules that hold.
    pub fn kept(&self) -> &[&'static str] {
        &self.kept
    }

    /// Returns the rules that do not hold.
    pub fn broken(&self) -> &[Broken] {
        &self.broken
    }

    /// Asserts that all rules hold, for a test.
    ///
    /// # Panics
    /// A rule does not hold: the text has the rules and the causes.
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
            "waits: 2 of 3 rules are broken:\n- second: it ends\n  but the rule is undecided after 3s\n\
             - third: it is not kept\n  but no"
        );
    }
}
