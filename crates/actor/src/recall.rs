//! Requests that went to another theater, and are taken back there.
//!
//! An asker that gives up takes its request back: the slot or continuation that waits for the answer is over, and the envelope in the mailbox is
//! dropped when its turn comes. Where the receiver lives in another theater, the answer is waited for here and the envelope is there. A
//! [`Recall`] connects the two. The request carries it on its way, and each theater that sends the request on tells it how to follow.
//!
//! A request that a handler has begun is not taken back. The asker hears nothing of that: the answer comes, and is dropped.

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What a request went over, or the request itself in its receiver's mailbox.
pub trait TakesBack: Send + Sync {
    /// Takes back the request with this number, if no handler has begun it. `cycle`: its asker and receiver wait for each other along this path. The
    /// asker waits for the answer, which is [`AskError::Cycle`](crate::AskError::Cycle) if the request was taken back.
    fn take_back(&self, number: u64, cycle: Option<Vec<String>>);
}

/// The way after a request that left its theater.
#[derive(Default)]
pub struct Recall(Mutex<Way>);

#[derive(Default)]
enum Way {
    /// The request waits to be sent.
    #[default]
    Unsent,
    Sent(Weak<dyn TakesBack>, u64),
    /// It was taken back before it was sent. It follows the request.
    TakenBack(Option<Vec<String>>),
}

impl Recall {
    /// The request was sent by this way, and has this number there.
    pub fn sent(&self, by: &Weak<dyn TakesBack>, number: u64) {
        let before = self.replace(Way::Sent(Weak::clone(by), number));
        if let Way::TakenBack(cycle) = before {
            follow(by, number, cycle);
        }
    }

    /// The asker takes the request back.
    pub(crate) fn take_back(&self, cycle: Option<Vec<String>>) {
        let (by, number) = {
            let mut way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match &*way {
                Way::Sent(by, number) => (Weak::clone(by), *number),
                Way::Unsent | Way::TakenBack(_) => {
                    *way = Way::TakenBack(cycle);
                    return;
                }
            }
        };
        follow(&by, number, cycle);
    }

    fn replace(&self, way: Way) -> Way {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), way)
    }
}

fn follow(by: &Weak<dyn TakesBack>, number: u64, cycle: Option<Vec<String>>) {
    if let Some(by) = by.upgrade() {
        by.take_back(number, cycle);
    }
}

/// Takes the request back, if it was given a way.
pub(crate) fn take_back(recall: Option<Arc<Recall>>) {
    if let Some(recall) = recall {
        recall.take_back(None);
    }
}
