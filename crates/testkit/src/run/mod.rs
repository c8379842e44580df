//! One run of a program, one delivery at a time.
//!
//! The system is simulated and has one worker; what waits in it is taken out of its queue
//! ([`playhouse_executor::Deliveries`]), and whoever [chooses](Choose) says what is handled next. A delivery is a
//! *macro-step* (kumar ch. 2): a handler runs from its beginning to its end, or to its next await.
//!
//! Actors and messages have names that are the same in every run in which the same has happened before: an actor is the
//! so-manyth that its creator started, a message the so-manyth that its sender sent to its receiver.

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

pub(crate) use self::choose::{ByName, Choose};
use self::outcome::stuck;
pub(crate) use self::outcome::{Ended, Ran};
pub(crate) use self::panics::text_of;
use self::panics::{Quiet, take_panic};
pub use self::schedule::{NoSchedule, Schedule};
pub use self::sent::Sent;
pub(crate) use self::sent::sent;
pub(crate) use self::session::Session;
use self::state::{GivenUp, Run};
pub(crate) use self::state::{Purpose, Time};
pub(crate) use self::step::{Cast, MessageId, Origin, Step, Who, Wrong};

/// A run that has come so far is taken for one that never ends.
pub(crate) const DELIVERIES_MAX: usize = 10_000;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `program` in a system of its own, and then until nothing is left to do.
pub(crate) fn run<R>(
    program: impl FnOnce(&System) -> R,
    cast: &Arc<Mutex<Cast>>,
    choose: Box<dyn Choose>,
    time: Time,
) -> Ran<R> {
    let session = Session::start(cast, choose, Purpose::Search(time));
    let quiet = Quiet::begin();
    let returned = catch_unwind(AssertUnwindSafe(|| {
        let result = program(&session.system);
        session.system.run_until_idle();
        result
    }));
    let run = session.finish();
    let ended = match returned {
        Ok(result) => Ended::Returned(result),
        Err(_) if run.endless => Ended::Endless,
        Err(thrown) if thrown.is::<GivenUp>() => Ended::GivenUp,
        Err(thrown) => Ended::Panicked(take_panic().unwrap_or_else(|| text_of(&*thrown))),
    };
    let stuck = if matches!(ended, Ended::Returned(_)) { stuck(&run) } else { Vec::new() };
    let Run { deliveries, people, steps, program, system, .. } = run;
    end(deliveries, system);
    drop(quiet);
    Ran { ended, steps, program, people, stuck }
}

/// Ends the system: what is left in it is ended unseen.
fn end(deliveries: Deliveries, system: System) {
    drop(deliveries);
    system.shutdown_within(Duration::ZERO).expect("a simulated system has no threads that could be stuck");
}
