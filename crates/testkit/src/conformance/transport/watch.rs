//! Readiness events of a wire.

use std::io::ErrorKind;
use std::time::Instant;

use mio::{Events, Interest, Poll, Token};
use playhouse::transport::{Registration, Wire};

use super::subject::{describe, ensure};
use super::{Outcome, WAIT_MAX};

/// A poll of one wire, whose events are edge-triggered.
pub(super) struct Watch {
    pub(super) poll: Poll,
    pub(super) events: Events,
}

impl Watch {
    pub(super) fn on(wire: &dyn Wire) -> Result<Watch, String> {
        describe("setting it not to block", wire.set_nonblocking(true))?;
        Watch::new(Interest::READABLE | Interest::WRITABLE, |registration| wire.register(registration))
    }

    pub(super) fn new(
        interest: Interest,
        register: impl FnOnce(Registration<'_>) -> std::io::Result<()>,
    ) -> Result<Watch, String> {
        let poll = describe("polling", Poll::new())?;
        describe("registering", register(Registration::new(poll.registry(), Token(0), interest)))?;
        Ok(Watch { poll, events: Events::with_capacity(8) })
    }

    pub(super) fn until(&mut self, what: &str, mut told: impl FnMut(&mio::event::Event) -> bool) -> Outcome {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            ensure(!left.is_zero(), || format!("the registration does not report {what}"))?;
            match self.poll.poll(&mut self.events, Some(left)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                result => describe("polling", result)?,
            }
            if self.events.iter().any(&mut told) {
                return Ok(());
            }
        }
    }
}
