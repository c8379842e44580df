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

/// The default limit of schedules.
const SCHEDULES_MAX: u64 = 100_000;

/// Runs `program` under all orders of its messages, and panics with the shortest schedule that leads to a violation.
/// Violations are: the program or an actor panics, an actor calls `ctx.fail`, a message becomes a dead letter, an
/// async handler waits forever, or the result depends on the order. [`Checker`] has settings, and a report.
///
/// The program is run many times, each time in a new simulated system. It may send, wait ([`System::run_until_idle`],
/// `ask(..).wait()`) and assert, and it returns a result that must not depend on the order. The program must repeat
/// itself: it uses no randomness, no clock but the system's, and keeps nothing between runs.
///
/// # Examples
///
/// Two actors send to a third. Each pair of messages keeps its order, and six orders remain.
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
/// A violation is found: the text has the violation and its schedule. There are more than 100,000 schedules. The
/// program does not repeat itself.
#[doc(alias = "model_checker")]
#[doc(alias = "loom")]
#[doc(alias = "shuttle")]
#[doc(alias = "concuerror")]
#[track_caller]
pub fn check<R: PartialEq + fmt::Debug>(program: impl Fn(&System) -> R) -> Report {
    let report = Checker::new().run(program);
    assert!(report.is_passed(), "{report}");
    report
}

/// A search over all orders of a program's messages: [`check`] with settings.
///
/// The search decides by the receivers whether two steps commute. It does not see what actors share in another way,
/// such as a lock or a counter, and may miss orders that matter there. Timers fire when nothing else is left to do,
/// unless [`Checker::any_time`] is set. The lanes are unordered: an urgent message may come before or after an
/// earlier message.
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse_testkit::Checker;
///
/// #[derive(Message)]
/// struct Note;
///
/// struct Reader;
/// impl Actor for Reader {}
/// impl Handler<Note> for Reader {
///     fn handle(&mut self, _: Note, ctx: &mut Context<Self>) {
///         ctx.stop();
///     }
/// }
///
/// let report = Checker::new().allow_dead_letters().run(|system| {
///     let reader = system.spawn(Reader);
///     reader.tell(Note);
///     reader.tell(Note); // a dead letter
///     system.run_until_idle();
/// });
/// assert!(report.is_passed(), "{report}");
/// ```
#[doc(alias = "model_checker")]
#[doc(alias = "DPOR")]
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
    /// Creates a checker with the settings of [`check`].
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

    /// Sets the largest number of schedules. Default: 100,000.
    pub fn limit(mut self, schedules: u64) -> Self {
        self.schedules_max = schedules;
        self
    }

    /// Tries every order, including those that differ only in commuting steps. It shows the gain of the reduction.
    pub fn without_reduction(mut self) -> Self {
        self.reduces = false;
        self
    }

    /// Counts the orders without reduction, for [`Report::orders`]. The count takes long if many steps commute.
    pub fn count_orders(mut self) -> Self {
        self.counts = true;
        self
    }

    /// Lets timers fire at any moment, also while messages wait, as on a slow machine. Timers fire in the order of
    /// their deadlines. The setting needs many more schedules, because the time of each timer matters.
    pub fn any_time(mut self) -> Self {
        self.time = TimerPolicy::AnyTime;
        self
    }

    /// Accepts messages that reach no actor.
    pub fn allow_dead_letters(mut self) -> Self {
        self.dead_letters = true;
        self
    }

    /// Accepts actors that crash, because their supervisors handle that.
    pub fn allow_crashes(mut self) -> Self {
        self.crashes = true;
        self
    }

    /// Runs `program` under all orders. After a violation, the search goes on to its end, and the report has the
    /// shortest schedule of a violation, without the steps that it does not need.
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
                    // The runs behind it would be as long.
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
            // The run is repeated without the steps that it does not need.
            let ran = run(&program, &numbers, Box::new(MessageOrder(ids)), self.time);
            let (at, violation) = self.violation(&ran, first.as_ref()).unwrap_or((ran.steps.len(), found));
            report.failure = Some(Failure::of(&ran, at, violation));
        }
        report
    }

    /// Runs `program` in the order of a schedule of a report, and once in the order of sending to compare the
    /// results. Returns the failure, if any.
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

    /// Returns the failure of a run whose result is not compared.
    pub(crate) fn failure_of<R: PartialEq + fmt::Debug>(&self, ran: &FinishedRun<R>) -> Option<Failure> {
        let (at, violation) = self.violation(ran, None)?;
        Some(Failure::of(ran, at, violation))
    }

    /// Returns the first violation of a run and its step, which may be behind the last step.
    fn violation<R: PartialEq + fmt::Debug>(
        &self,
        ran: &FinishedRun<R>,
        first: Option<&R>,
    ) -> Option<(usize, Violation)> {
        self.violations(ran, first).into_iter().next()
    }

    /// Returns all violations of a run.
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

/// Returns the messages that lead to the violation in step `at`, or behind the last step. They are the steps before
/// it, and for a panic of the program the steps that the program has waited for.
fn needed_for<R>(ran: &FinishedRun<R>, at: usize) -> Vec<MessageId> {
    let causality = Causality::of(&ran.steps);
    let needed = |step: &usize| match &ran.ended {
        _ if at < ran.steps.len() => *step == at || causality.past(at).contains(*step),
        RunEnd::Panicked(_) => causality.causes_of(&ran.program).contains(*step),
        _ => true,
    };
    (0..ran.steps.len()).filter(needed).map(|step| ran.steps[step].id).collect()
}

/// The scheduler of a run. The explorer outlives each run.
struct SharedExplorer(Arc<Mutex<Explorer>>);

impl Scheduler for SharedExplorer {
    fn choose(&mut self, steps: &[Step], enabled: &[MessageId]) -> Option<usize> {
        lock(&self.0).choose(steps, enabled)
    }
}
