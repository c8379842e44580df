//! Recalls: requests that went to another theater, and are taken back in it.
//!
//! An asker that gives up takes its request back: the slot or continuation that waits for the answer is over, and the
//! envelope in the mailbox is dropped when it is reached. If the receiver is in another theater, the slot is in the
//! asker's theater and the envelope in the receiver's. A [`Recall`] connects the two. The request carries its recall,
//! and each theater that forwards the request tells the recall how to follow.
//!
//! A request that a handler has begun is not taken back. An asker that has given up does not learn of that: the answer
//! comes, and is dropped. An asker whose ask is part of a cycle continues to wait.
//!
//! A handler that has begun a request may forward it, also in a theater that is not the asker's. The request then waits
//! in a mailbox again, and can be taken back again. Each theater on its route counts the forwards of the request in
//! that theater ([`RequestLocation`]). The asker receives that count together with the news that the request was begun,
//! so it knows the receiver that the news is about.

use std::sync::{Arc, Mutex, MutexGuard, Weak};

use crate::actor::ActorId;
use crate::actor::names::Label;
use crate::lock::lock;

/// A link that a request went over, or the request itself in its receiver's mailbox.
pub trait TakesBack: Send + Sync {
    /// Takes back the request with this number, if no handler has begun it. With `cycle`, the request is part of a
    /// cycle, and the asker waits for the answer. The answer is [`AskError::Cycle`](crate::AskError::Cycle) without a
    /// path if the request was taken back.
    fn take_back(&self, number: u64, cycle: Option<ForCycle>);

    /// Returns the knowledge about the request with this number.
    fn whereabouts(&self, number: u64) -> RequestLocation;

    /// Notes that the asker's theater is lost. No asker waits any more for the answer to a request that a handler has
    /// begun. A request that waits in a mailbox is handled.
    fn asker_is_lost(&self) {}
}

/// Called if a request was not taken back because a handler has begun it. The argument is the number of forwards of the
/// request up to then, outside of this theater.
pub type TooLate = Box<dyn FnOnce(u32) + Send>;

/// The conditions of a take-back because of a cycle.
pub struct ForCycle {
    /// The number of forwards of the request, outside of this theater, when it was part of the cycle. A request that
    /// was forwarded again is not taken back.
    pub forwards: u32,
    /// Called if the request is not taken back.
    pub too_late: TooLate,
}

/// The knowledge of one theater about a request that has come to it, or that has left it.
#[derive(Clone, Copy, Default)]
pub struct RequestLocation {
    /// The last actor that the request was forwarded to in this theater.
    pub(crate) to: Option<Label>,
    /// The number of forwards in this theater.
    pub forwards: u32,
    /// The theater that the request was sent to, and its number on the link with that theater.
    pub route: Option<(u64, u64)>,
}

impl RequestLocation {
    /// Returns the knowledge about a request that was sent to the theater `theater`, with this number.
    pub fn sent(theater: u64, number: u64) -> Self {
        RequestLocation { route: Some((theater, number)), ..Self::default() }
    }

    /// Returns the last actor that the request was forwarded to in this theater, and its label.
    pub fn forwarded_to(&self) -> Option<(ActorId, String)> {
        self.to.map(|label| (label.id, label.to_string()))
    }
}

/// The means to follow a request that left its theater.
#[derive(Default)]
pub struct Recall(Mutex<State>);

#[derive(Default)]
struct State {
    route: RecallRoute,
    /// `true` if the request is being taken back as part of a cycle. At most 1 such take-back runs at a time.
    for_cycle: bool,
    /// No asker waits for the answer any more.
    for_good: bool,
}

#[derive(Default)]
enum RecallRoute {
    /// The request waits to be sent.
    #[default]
    Unsent,
    Sent(Weak<dyn TakesBack>, u64),
    /// The request was taken back before it was sent. The recall follows the request as soon as it is sent.
    TakenBack(Option<ForCycle>),
}

impl Recall {
    /// Notes that the request was sent over this link, with this number on it.
    pub fn sent(&self, by: &Weak<dyn TakesBack>, number: u64) {
        let before = std::mem::replace(&mut self.state().route, RecallRoute::Sent(Weak::clone(by), number));
        if let RecallRoute::TakenBack(cycle) = before {
            follow(by, number, cycle);
        }
    }

    /// Takes the request back: as part of a cycle, or once for good.
    pub(crate) fn take_back(self: &Arc<Self>, cycle: Option<ForCycle>) {
        let cycle = cycle.map(|ForCycle { forwards, too_late }| {
            // A weak reference, because the recall may own its callback.
            let recall = Arc::downgrade(self);
            let too_late = Box::new(move |forwards| {
                if let Some(recall) = recall.upgrade() {
                    recall.state().for_cycle = false;
                }
                too_late(forwards);
            });
            ForCycle { forwards, too_late }
        });
        let (by, number) = {
            let mut state = self.state();
            if state.for_good || state.for_cycle && cycle.is_some() {
                return;
            }
            (state.for_cycle, state.for_good) = (true, cycle.is_none());
            match &state.route {
                RecallRoute::Sent(by, number) => (Weak::clone(by), *number),
                RecallRoute::Unsent | RecallRoute::TakenBack(_) => {
                    state.route = RecallRoute::TakenBack(cycle);
                    return;
                }
            }
        };
        follow(&by, number, cycle);
    }

    /// Returns the knowledge of the target of the send about the request.
    pub(crate) fn whereabouts(&self) -> RequestLocation {
        let sent = match &self.state().route {
            RecallRoute::Sent(by, number) => by.upgrade().map(|by| (by, *number)),
            RecallRoute::Unsent | RecallRoute::TakenBack(_) => None,
        };
        sent.map_or(RequestLocation::default(), |(by, number)| by.whereabouts(number))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

fn follow(by: &Weak<dyn TakesBack>, number: u64, cycle: Option<ForCycle>) {
    if let Some(by) = by.upgrade() {
        by.take_back(number, cycle);
    }
}

/// Takes the request back for good, if it has a recall.
pub(crate) fn take_back(recall: Option<Arc<Recall>>) {
    if let Some(recall) = recall {
        recall.take_back(None);
    }
}
