//! Calls that block their thread, and that actors must not make.

use std::sync::Arc;

use playhouse_executor::{SystemCore, actor_at_work, with_current_system};

use crate::actor::ActorId;
use crate::actor::names::Label;

/// Panics if this thread runs an actor, because `call` would hold its worker. `instead` names the right call.
#[doc(hidden)]
#[track_caller]
pub fn assert_outside(call: &str, instead: &str) {
    if with_current_system(|system| system.is_some()) {
        panic!("{call} was called inside {}, whose worker it would hold: {instead}", this_actor());
    }
}

/// Panics if this thread runs an actor of this system, because `call` would wait for itself.
#[track_caller]
pub(crate) fn assert_outside_of(system: &Arc<SystemCore>, call: &str, instead: &str) {
    if with_current_system(|current| current.is_some_and(|current| Arc::ptr_eq(current, system))) {
        panic!("{call} was called inside {} of the same system, which would wait for itself: {instead}", this_actor());
    }
}

fn this_actor() -> String {
    match actor_at_work() {
        Some((who, actor)) => format!("the actor {}", Label::of_type(actor, ActorId(who))),
        None => "an actor".to_owned(),
    }
}
