//! Which message is delivered next.

use super::step::{MessageId, Step};

/// Says what is delivered next.
pub(crate) trait Scheduler: Send {
    /// One of `enabled`, which are in the order of sending. None: this run is of no interest any more.
    fn choose(&mut self, steps: &[Step], enabled: &[MessageId]) -> Option<usize>;
}

pub(super) struct ReplayScheduler(pub(super) Vec<usize>);

impl Scheduler for ReplayScheduler {
    fn choose(&mut self, steps: &[Step], enabled: &[MessageId]) -> Option<usize> {
        let choice = self.0.get(steps.len()).copied().unwrap_or(0);
        Some(choice.min(enabled.len() - 1))
    }
}

/// Delivers these messages in this order, and then the oldest.
pub(crate) struct MessageOrder(pub(crate) Vec<MessageId>);

impl Scheduler for MessageOrder {
    fn choose(&mut self, steps: &[Step], enabled: &[MessageId]) -> Option<usize> {
        match self.0.get(steps.len()) {
            Some(id) => enabled.iter().position(|enabled| enabled == id),
            None => Some(0),
        }
    }
}
