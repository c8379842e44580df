//! Requests that went to another theater, and are taken back there.
//!
//! An asker that gives up takes its request back: the slot or continuation that waits for the answer is over, and the envelope in the mailbox is
//! dropped when its turn comes. If the receiver lives in another theater, the slot is in the asker's theater and the envelope in the receiver's. A
//! [`Recall`] connects the two. The request carries its recall, and each theater that passes the request on tells the recall how to follow.
//!
//! A request that a handler has begun is not taken back. An asker that has given up hears nothing of that: the answer comes, and is dropped. One whose
//! ask is part of a cycle waits on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A link that a request went over, or the request itself in its receiver's mailbox.
pub trait TakesBack: Send + Sync {
    /// Takes back the request with this number, if no handler has begun it. With `cycle`, it is part of a cycle, and the asker waits for the answer: that is
    /// [`AskError::Cycle`](crate::AskError::Cycle) without a path if the request was taken back.
    fn take_back(&self, number: u64, cycle: Option<TooLate>);

    /// The asker's theater is lost. Nobody waits for the answer to a request that a handler has begun; one that waits in a mailbox is handled.
    fn asker_is_lost(&self) {}
}

/// Called if a request was not taken back because a handler has begun it.
pub type TooLate = Box<dyn FnOnce() + Send>;

/// The way after a request that left its theater.
#[derive(Default)]
pub struct Recall(Mutex<State>);

#[derive(Default)]
struct State {
    way: Way,
    /// The request was taken back as part of a cycle. This is done once: what a handler has begun then stays begun.
    for_cycle: bool,
    /// Nobody waits for the answer any more.
    for_good: bool,
}

#[derive(Default)]
enum Way {
    /// The request waits to be sent.
    #[default]
    Unsent,
    Sent(Weak<dyn TakesBack>, u64),
    /// It was taken back before it was sent. The recall follows the request as soon as it is sent.
    TakenBack(Option<TooLate>),
}

impl Recall {
    /// The request was sent by this way, and has this number there.
    pub fn sent(&self, by: &Weak<dyn TakesBack>, number: u64) {
        let before = std::mem::replace(&mut self.state().way, Way::Sent(Weak::clone(by), number));
        if let Way::TakenBack(cycle) = before {
            follow(by, number, cycle);
        }
    }

    /// The request is taken back: once as part of a cycle, and once for good.
    pub(crate) fn take_back(&self, cycle: Option<TooLate>) {
        let (by, number) = {
            let mut state = self.state();
            if state.for_good || state.for_cycle && cycle.is_some() {
                return;
            }
            (state.for_cycle, state.for_good) = (true, cycle.is_none());
            match &state.way {
                Way::Sent(by, number) => (Weak::clone(by), *number),
                Way::Unsent | Way::TakenBack(_) => {
                    state.way = Way::TakenBack(cycle);
                    return;
                }
            }
        };
        follow(&by, number, cycle);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn follow(by: &Weak<dyn TakesBack>, number: u64, cycle: Option<TooLate>) {
    if let Some(by) = by.upgrade() {
        by.take_back(number, cycle);
    }
}

/// Takes the request back for good, if it was given a way.
pub(crate) fn take_back(recall: Option<Arc<Recall>>) {
    if let Some(recall) = recall {
        recall.take_back(None);
    }
}
