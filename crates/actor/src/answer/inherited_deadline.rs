//! Deadlines that pass on to the asks that an ask causes.
//!
//! While an async handler answers an ask that has a deadline, each ask that it awaits ends with that deadline at the
//! latest. No actor thus works for an asker that has given up. An ask by `ctx.ask(..).then(..)` is not concerned: it
//! serves the actor and not the answer, which was given when that handler returned. A handler whose ask has no deadline
//! pays for one comparison.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use playhouse_executor::SystemCore;

use crate::actor::ActorId;
use crate::answer::wait_graph::polling;

thread_local! {
    /// The deadline of the ask whose handler this thread polls.
    static ANSWERING: Cell<Option<(ActorId, Due)>> = const { Cell::new(None) };
}

/// The end of an ask's time, in the time of a system.
#[derive(Clone, Copy)]
pub(crate) struct Due {
    system: u16,
    at: Duration,
}

impl Due {
    pub(crate) fn new(system: &SystemCore, within: Duration) -> Due {
        Due { system: system.id(), at: system.now().saturating_add(within) }
    }

    fn left(self) -> Duration {
        SystemCore::by_id(self.system).map_or(Duration::ZERO, |system| self.at.saturating_sub(system.now()))
    }
}

/// Polls `future` as part of `actor`'s handler, which answers an ask that is over when it is `due`.
pub(crate) async fn as_answering<F: Future>(actor: ActorId, due: Option<Due>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(move |cx| {
        let _polled = polling(actor);
        let _answering = due.map(|due| Restore(ANSWERING.replace(Some((actor, due)))));
        future.as_mut().poll(cx)
    })
    .await
}

struct Restore(Option<(ActorId, Due)>);

impl Drop for Restore {
    fn drop(&mut self) {
        ANSWERING.set(self.0);
    }
}

/// Returns the time that an ask of `asker` may take.
pub(crate) fn cap(asker: Option<ActorId>, within: Option<Duration>) -> Option<Duration> {
    match (asker, ANSWERING.get()) {
        // Handlers without an ask to answer may be polled on the stack of a handler that answers one.
        (Some(asker), Some((answering, due))) if asker == answering => {
            let left = due.left();
            Some(within.map_or(left, |within| within.min(left)))
        }
        _ => within,
    }
}
