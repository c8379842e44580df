//! The deadline of an ask: its setting, and the timer that ends the ask.

use std::sync::Arc;
use std::time::Duration;

use playhouse_executor::{Borrowing, SystemCore, TimerKey};

use crate::answer::reply_to::Slot;
use crate::ask::Ask;
use crate::message::Message;

impl<M: Message> Ask<M> {
    /// Sets a deadline: the ask fails with [`AskError::Deadline`](crate::AskError::Deadline) if the answer takes longer. The resolution is 1 ms.
    ///
    /// The time counts from the send of the request. A call after the first poll has therefore no effect.
    ///
    /// A handler that answers an ask with a deadline may await this ask. This ask then also ends at that deadline, if
    /// both asks are in this process and not in different theaters.
    pub fn within(mut self, deadline: Duration) -> Self {
        self.within = Some(deadline);
        self
    }
}

/// The timer of an ask.
pub(super) struct Deadline {
    system: Arc<SystemCore>,
    key: TimerKey,
    /// The asker is a task, which may run workers.
    borrows: bool,
}

impl Deadline {
    pub(super) fn start<R: Send + 'static>(
        system: &Arc<SystemCore>,
        within: Duration,
        slot: &Arc<Slot<R>>,
        borrows: bool,
    ) -> Deadline {
        let slot = Arc::clone(slot);
        let borrowing = borrows.then(Borrowing::begin);
        let key = system.start_timer(
            within,
            Box::new(move || {
                slot.expire();
                None
            }),
        );
        if let Some(borrowing) = borrowing {
            borrowing.run_no_actors();
        }
        Deadline { system: Arc::clone(system), key, borrows }
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        let borrowing = self.borrows.then(Borrowing::begin);
        self.system.cancel_timer(self.key);
        if let Some(borrowing) = borrowing {
            borrowing.run_no_actors();
        }
    }
}
