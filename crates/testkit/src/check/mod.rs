//! Model checking: a program under all orders of its messages.

mod causality;
mod explorer;
mod failure;
mod report;

use std::fmt;
use std::sync::{Arc, Mutex};

use playhouse::System;

use self::causality::Causality;
use self::explorer::Explorer;
pub use self::failure::{Failure, Violation};
pub use self::report::Report;
use crate::run::{
    ActorNumbers, Fault, FinishedRun, MessageId, MessageOrder, RunEnd, Schedule, Scheduler, Step, TimerPolicy, lock,
    run,
};

/// Schedules that are tried at most, where nothing else is asked for.
const SCHEDULES_MAX: u64 = 100_000;

/// Runs `program` under all orders of its messages, and panics with the shortest schedule in which something goes fault:
/// where the program or an actor panics, an actor calls `ctx.fail`, a message becomes a dead letter, an async handler waits for
/// ever, or the program returns something else than under another order. [`Checker`] has settings, and a report.
///
/// The program is run again and again, each time from its beginning in a new simulated system. It sends what it likes, waits
/// ([`System::run_until_idle`], `ask(..).wait()`), asserts, and returns what is to be the same under all orders. It has to do
/// the same each time: no randomness, no clock but the system's, nothing left over from the run before.
///
/// # Examples
///
/// Two actors write to a third. Each pair keeps its order; between the two, there are six.
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse_testkit::check;
///
/// #[derive(Default)]
/// struct Sum(u64);
///
/// #[actor]
/// impl Sum {
///     #[message]
///     fn add(&mut self, n: u64) { self.0 += n }
///     #[message]
///     fn get(&self) -> u64 { self.0 }
/// }
///
/// struct Giver(ActorRef<Sum>);
///
/// #[actor]
/// impl Giver {
///     #[started]
///     fn give(&mut self) {
///         self.0.tell(Add(1));
///         self.0.tell(Add(2));
///     }
/// }
///
/// let report = check(|system| {
///     let sum = system.spawn(Sum::default());
///     system.spawn(Giver(sum));
///     system.spawn(Giver(sum));
///     system.run_until_idle();
///     sum.ask(Get).wait()
/// });
/// assert_eq!(report.schedules(), 6);
/// ```
///
/// # Panics
/// With what went fault, and how. Also where the orders are too many (100,000), or the program does not do the same again.
#[track_caller]
pub fn check<R: PartialEq + fmt::Debug>(program: impl Fn(&System) -> R) -> Report {
    let report = Checker::new().run(program);
    assert!(report.is_passed(), "{report}");
    report
}

/// A search over all orders of a program's messages: [`check`] with settings.
///
/// It knows of two steps whether they commute by whom they are for. What actors share in another way than by messages (a
/// lock, a counter) it does not see, and may miss orders that make a difference there. Timers fire when nothing else is left
/// to do ([`Checker::any_time`] changes that). The lanes have no order among each other: an urgent message may come before or after an earlier
/// one.
#[derive(Clone, Debug)]
#[must_use]
pub struct Checker {
    schedules_max: u64,
    reduces: bool,
    counts: bool,
    time: TimerPolicy,
    dead_letters: bool,
    crashes: bool,
}

impl Default for Checker {
    fn default() -> Self {
        Checker::new()
    }
}

impl Checker {
    /// As [`check`] is.
    pub fn new() -> Checker {
        Checker {
            schedules_max: SCHEDULES_MAX,
            reduces: true,
            counts: false,
            time: TimerPolicy::AtRest,
            dead_letters: false,
            crashes: false,
        }
    }

    /// How many schedules are tried at most. Default: 100,000.
    pub fn limit(mut self, schedules: u64) -> Self {
        self.schedules_max = schedules;
        self
    }

    /// Tries each and every order, also those that differ only in what commutes: to see what the reduction saves.
    pub fn without_reduction(mut self) -> Self {
        self.reduces = false;
        self
    }

    /// Counts the orders that there would be without reduction: [`Report::orders`]. It takes time where much commutes.
    pub fn count_orders(mut self) -> Self {
        self.counts = true;
        self
    }

    /// Timers may fire at any moment, the next one first: also while messages wait, as where a machine is slow. It takes many
    /// more schedules, since when time passes makes a difference to everything.
    pub fn any_time(mut self) -> Self {
        self.time = TimerPolicy::AnyTime;
        self
    }

    /// A message that reaches nobody is nothing wrong.
    pub fn allow_dead_letters(mut self) -> Self {
        self.dead_letters = true;
        self
    }

    /// An actor that crashes is nothing fault: its supervisor sees to that.
    pub fn allow_crashes(mut self) -> Self {
        self.crashes = true;
        self
    }

    /// Runs `program` under all orders. Where something goes fault, the search goes on to its end, and the shortest schedule
    /// of all in which something does is reported: steps that have nothing to do with it are left out.
    pub fn run<R: PartialEq + fmt::Debug>(&self, program: impl Fn(&System) -> R) -> Report {
        let numbers: Arc<Mutex<ActorNumbers>> = Arc::default();
        let explorer = Arc::new(Mutex::new(Explorer::new(self.reduces)));
        let mut report =
            Report { schedules: 0, given_up: 0, deliveries: 0, orders: 0, is_complete: false, failure: None };
        let mut first: Option<R> = None;
        let mut shortest: Option<(Vec<MessageId>, Violation)> = None;
        loop {
            lock(&explorer).begin();
            let ran = run(&program, &numbers, Box::new(SharedExplorer(Arc::clone(&explorer))), self.time);
            report.deliveries += ran.steps.len() as u64;
            if lock(&explorer).diverged {
                report.failure = Some(Failure::of(&ran, ran.steps.len(), Violation::NotRepeatable));
                return report;
            }
            match ran.ended {
                RunEnd::Abandoned => report.given_up += 1,
                RunEnd::Endless => {
                    // What is behind it would be as long.
                    report.schedules += 1;
                    report.failure = Some(Failure::of(&ran, ran.steps.len(), Violation::Endless));
                    return report;
                }
                RunEnd::Returned(_) | RunEnd::Panicked(_) => {
                    report.schedules += 1;
                    if self.counts {
                        report.orders = report.orders.saturating_add(Causality::of(&ran.steps).orders());
                    }
                }
            }
            for (at, violation) in self.violations(&ran, first.as_ref()) {
                let ids = needed_for(&ran, at);
                if shortest.as_ref().is_none_or(|(known, _)| ids.len() < known.len()) {
                    shortest = Some((ids, violation));
                }
            }
            let FinishedRun { ended, steps, .. } = ran;
            if let (None, RunEnd::Returned(result)) = (&first, ended) {
                first = Some(result);
            }
            if !lock(&explorer).next(&steps) {
                report.is_complete = true;
                break;
            }
            if report.schedules + report.given_up >= self.schedules_max {
                break;
            }
        }
        if let Some((ids, found)) = shortest {
            // Once more, without what it does not need.
            let ran = run(&program, &numbers, Box::new(MessageOrder(ids)), self.time);
            let (at, violation) = self.violation(&ran, first.as_ref()).unwrap_or((ran.steps.len(), found));
            report.failure = Some(Failure::of(&ran, at, violation));
        }
        report
    }

    /// Runs `program` in the order of a schedule that a report has shown (and once in the order of sending, to compare the
    /// results). What goes fault, if it does.
    pub fn replay<R: PartialEq + fmt::Debug>(
        &self,
        schedule: &Schedule,
        program: impl Fn(&System) -> R,
    ) -> Option<Failure> {
        let first = match run(&program, &Arc::default(), Schedule::default().chooser(), self.time).ended {
            RunEnd::Returned(result) => Some(result),
            _ => None,
        };
        let ran = run(&program, &Arc::default(), schedule.chooser(), self.time);
        let (at, violation) = self.violation(&ran, first.as_ref())?;
        Some(Failure::of(&ran, at, violation))
    }

    pub(crate) fn time(&self) -> TimerPolicy {
        self.time
    }

    /// What went wrong in a run whose result is not compared.
    pub(crate) fn failure_of<R: PartialEq + fmt::Debug>(&self, ran: &FinishedRun<R>) -> Option<Failure> {
        let (at, violation) = self.violation(ran, None)?;
        Some(Failure::of(ran, at, violation))
    }

    /// What went wrong first in a run, and by which step; or behind the last one.
    fn violation<R: PartialEq + fmt::Debug>(
        &self,
        ran: &FinishedRun<R>,
        first: Option<&R>,
    ) -> Option<(usize, Violation)> {
        self.violations(ran, first).into_iter().next()
    }

    /// All that went wrong in a run.
    fn violations<R: PartialEq + fmt::Debug>(
        &self,
        ran: &FinishedRun<R>,
        first: Option<&R>,
    ) -> Vec<(usize, Violation)> {
        let in_step = |(at, step): (usize, &Step)| match &step.fault {
            Some(Fault::Crash(why)) if !self.crashes => {
                Some((at, Violation::Crash { actor: ran.name(step.id.to), why: why.clone() }))
            }
            Some(Fault::DeadLetter(what)) if !self.dead_letters => Some((at, Violation::DeadLetter(what.clone()))),
            _ => None,
        };
        let mut violations: Vec<(usize, Violation)> = ran.steps.iter().enumerate().filter_map(in_step).collect();
        let at_end = match &ran.ended {
            RunEnd::Abandoned => None,
            RunEnd::Panicked(why) => Some(Violation::Panic(why.clone())),
            RunEnd::Endless => Some(Violation::Endless),
            RunEnd::Returned(_) if !ran.stuck.is_empty() => Some(Violation::Deadlock(ran.stuck.clone())),
            RunEnd::Returned(result) => first
                .filter(|first| *first != result)
                .map(|first| Violation::OtherResult { this: format!("{result:?}"), first: format!("{first:?}") }),
        };
        violations.extend(at_end.map(|violation| (ran.steps.len(), violation)));
        violations
    }
}

/// The messages that have to be delivered for what goes wrong in step `at`, or behind the last one: what comes before it, and
/// for a panic of the program what the program has waited for.
fn needed_for<R>(ran: &FinishedRun<R>, at: usize) -> Vec<MessageId> {
    let causality = Causality::of(&ran.steps);
    let needed = |step: &usize| match &ran.ended {
        _ if at < ran.steps.len() => *step == at || causality.past(at).contains(*step),
        RunEnd::Panicked(_) => causality.causes_of(&ran.program).contains(*step),
        _ => true,
    };
    (0..ran.steps.len()).filter(needed).map(|step| ran.steps[step].id).collect()
}

/// The explorer outlives each run.
struct SharedExplorer(Arc<Mutex<Explorer>>);

impl Scheduler for SharedExplorer {
    fn choose(&mut self, steps: &[Step], enabled: &[MessageId]) -> Option<usize> {
        lock(&self.0).choose(steps, enabled)
    }
}
