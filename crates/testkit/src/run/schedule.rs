//! Schedules: orders of deliveries, to be repeated.

use std::fmt;
use std::str::FromStr;

use super::choose::{ReplayScheduler, Scheduler};
use super::step::Step;

/// An order of deliveries, to be repeated.
///
/// The text form is the list of choices, such as `0.0.2.1`. A choice is the index of the delivered message among the
/// deliverable ones, in the order of sending. Behind the list, the oldest message is always the next.
///
/// # Examples
///
/// ```
/// use playhouse_testkit::Schedule;
///
/// let schedule: Schedule = "0.0.2.1".parse()?;
/// assert_eq!(schedule.to_string(), "0.0.2.1");
/// # Ok::<(), playhouse_testkit::NoSchedule>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Schedule(Vec<usize>);

impl Schedule {
    pub(crate) fn of(steps: &[Step]) -> Schedule {
        let mut choices: Vec<usize> = steps.iter().map(|step| step.choice).collect();
        while choices.last() == Some(&0) {
            choices.pop();
        }
        Schedule(choices)
    }

    /// Returns a scheduler that makes the same choices again.
    pub(crate) fn chooser(&self) -> Box<dyn Scheduler> {
        let choices = self.0.clone();
        Box::new(ReplayScheduler(choices))
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, choice) in self.0.iter().enumerate() {
            write!(f, "{}{choice}", if nth == 0 { "" } else { "." })?;
        }
        Ok(())
    }
}

/// An error: a text is no schedule.
///
/// # Examples
///
/// ```
/// use playhouse_testkit::Schedule;
///
/// let error = "first".parse::<Schedule>().unwrap_err();
/// assert!(error.to_string().contains("such as 0.0.2.1"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSchedule(String);

impl fmt::Display for NoSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no schedule: a schedule is numbers with dots between them, such as 0.0.2.1", self.0)
    }
}

impl std::error::Error for NoSchedule {}

impl FromStr for Schedule {
    type Err = NoSchedule;

    fn from_str(text: &str) -> Result<Schedule, NoSchedule> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Schedule::default());
        }
        let choices: Result<Vec<usize>, _> = text.split('.').map(str::parse).collect();
        choices.map(Schedule).map_err(|_| NoSchedule(text.to_owned()))
    }
}
