//! The choice of the next delivery.

use super::step::{MessageId, Step};

/// A scheduler: chooses the next delivery of a run.
pub(crate) trait Scheduler: Send {
    /// Returns an index of `enabled`, whose messages are in the order of sending. `None` abandons the run.
    fn choose(&mut self, steps: &[Step], enabled: &[MessageId]) -> Option<usize>;
}

pub(super) struct ReplayScheduler(pub(super) Vec<usize>);

impl Scheduler for ReplayScheduler {
    fn choose(&mut self, steps: &[Step], enabled: &[MessageId]) -> Option<usize> {
        let choice = self.0.get(steps.len()).copied().unwrap_or(0);
        Some(choice.min(enabled.len() - 1))
    }
}

/// A scheduler that delivers these messages in this order, and then the oldest message.
pub(crate) struct MessageOrder(pub(crate) Vec<MessageId>);

impl Scheduler for MessageOrder {
    fn choose(&mut self, steps: &[Step], enabled: &[MessageId]) -> Option<usize> {
        match self.0.get(steps.len()) {
            Some(id) => enabled.iter().position(|enabled| enabled == id),
            None => Some(0),
        }
    }
}
