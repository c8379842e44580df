//! The route of a stub: whether it forwards mail.

use std::sync::atomic::{AtomicU8, Ordering};

/// The route of a stub, which tells whether mail was forwarded since the actor left. Shared by the stub and by the
/// layer that lets actors in.
///
/// Before the first forward, no mail is under way that a returning actor would have to wait for. The worker that runs
/// the stub's stage takes the route for the first message, or the layer that lets the actor in closes it
/// ([`StubRoute::close`]); one of the two is first. On a closed route no mail is forwarded: it waits for the actor.
#[derive(Debug, Default)]
pub struct StubRoute(AtomicU8);

const FREE: u8 = 0;
const TAKEN: u8 = 1;
const CLOSED: u8 = 2;

impl StubRoute {
    /// Closes the route: no mail is forwarded any more. Returns false if mail was forwarded before.
    pub fn close(&self) -> bool {
        // The decision travels through the mail of the stub, which orders the rest: no order is needed for this word.
        self.0.compare_exchange(FREE, CLOSED, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.load(Ordering::Relaxed) == CLOSED
    }

    /// Notes that mail is forwarded. Returns false if it has to wait.
    pub(crate) fn take(&self) -> bool {
        match self.0.load(Ordering::Relaxed) {
            TAKEN => true,
            CLOSED => false,
            _ => self.0.compare_exchange(FREE, TAKEN, Ordering::Relaxed, Ordering::Relaxed).is_ok(),
        }
    }
}
