//! One run of a program, one delivery at a time.
//!
//! The system is simulated and has one worker. The run takes messages out of the worker's queue
//! ([`playhouse_executor::Deliveries`]), and a [`Scheduler`] chooses the next one. A delivery is a *macro-step*
//! (kumar ch. 2): a handler runs from its beginning to its end, or to its next await.
//!
//! Actors and messages have the same names in every run with the same history. An actor is named by its creator and
//! its number among the creator's actors. A message is named by its sender, its receiver and its number between them.

mod choose;
mod outcome;
mod panics;
mod schedule;
mod sent;
mod session;
mod state;
mod step;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use playhouse::System;
use playhouse_executor::Deliveries;

pub(crate) use self::choose::{MessageOrder, Scheduler};
use self::outcome::stuck;
pub(crate) use self::outcome::{FinishedRun, RunEnd};
pub(crate) use self::panics::panic_message;
use self::panics::{PanicCapture, take_panic};
pub use self::schedule::{NoSchedule, Schedule};
pub use self::sent::Sent;
pub(crate) use self::sent::sent;
pub(crate) use self::session::Session;
use self::state::{Abandoned, RunState};
pub(crate) use self::state::{RunMode, TimerPolicy};
pub(crate) use self::step::{ActorNumbers, Fault, MessageId, Origin, Participant, Step};

/// The number of deliveries after which a run counts as endless.
pub(crate) const DELIVERIES_MAX: usize = 10_000;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `program` in a system of its own, and then until nothing is left to do.
pub(crate) fn run<R>(
    program: impl FnOnce(&System) -> R,
    numbers: &Arc<Mutex<ActorNumbers>>,
    choose: Box<dyn Scheduler>,
    time: TimerPolicy,
) -> FinishedRun<R> {
    let session = Session::start(numbers, choose, RunMode::Search(time));
    let quiet = PanicCapture::begin();
    let returned = catch_unwind(AssertUnwindSafe(|| {
        let result = program(&session.system);
        session.system.run_until_idle();
        result
    }));
    let run = session.finish();
    let ended = match returned {
        Ok(result) => RunEnd::Returned(result),
        Err(_) if run.endless => RunEnd::Endless,
        Err(thrown) if thrown.is::<Abandoned>() => RunEnd::Abandoned,
        Err(thrown) => RunEnd::Panicked(take_panic().unwrap_or_else(|| panic_message(&*thrown))),
    };
    let stuck = if matches!(ended, RunEnd::Returned(_)) { stuck(&run) } else { Vec::new() };
    let RunState { deliveries, actors, steps, program, system, .. } = run;
    end(deliveries, system);
    drop(quiet);
    FinishedRun { ended, steps, program, actors, stuck }
}

/// Ends the system, with all that is left in it.
fn end(deliveries: Deliveries, system: System) {
    drop(deliveries);
    system.shutdown_within(Duration::ZERO).expect("a simulated system has no threads that could be stuck");
}
