//! Probes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playhouse::{Actor, Context, Handler, Message, Recipient, ShortType};

use crate::run::{Session, lock};

/// Keeps what it is sent.
pub(super) struct ProbeActor<M>(pub(super) Arc<Mutex<VecDeque<M>>>);

impl<M: Message> Actor for ProbeActor<M> {}

impl<M: Message<Reply = ()>> Handler<M> for ProbeActor<M> {
    fn handle(&mut self, message: M, _: &mut Context<Self>) {
        lock(&self.0).push_back(message);
    }
}

/// A recipient of messages for a test to look at: [`Kit::probe`].
pub struct Probe<M: Message> {
    pub(super) session: Arc<Session>,
    pub(super) recipient: Recipient<M>,
    pub(super) seen: Arc<Mutex<VecDeque<M>>>,
    pub(super) window: Duration,
}

impl<M: Message> fmt::Debug for Probe<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Probe<{}>", ShortType(std::any::type_name::<M>()))
    }
}

impl<M: Message<Reply = ()>> Probe<M> {
    /// What to give to the actor that is tested.
    pub fn recipient(&self) -> Recipient<M> {
        self.recipient
    }

    /// The same probe, for which so much virtual time may pass in each [`expect`](Probe::expect), and passes in each
    /// [`expect_none`](Probe::expect_none). Otherwise none does.
    pub fn within(&self, time: Duration) -> Probe<M> {
        let Probe { session, recipient, seen, .. } = self;
        Probe { session: Arc::clone(session), recipient: *recipient, seen: Arc::clone(seen), window: time }
    }

    /// The next message; runs the system until it is there.
    ///
    /// # Panics
    /// If none comes in the time there is.
    #[track_caller]
    pub fn expect(&self) -> M {
        self.run(&mut || !lock(&self.seen).is_empty());
        let next = lock(&self.seen).pop_front();
        next.unwrap_or_else(|| {
            panic!(
                "a {} was expected within {:?}, and none came: nothing is left to do in that time",
                ShortType(std::any::type_name::<M>()),
                self.window
            )
        })
    }

    /// Runs the system for the time there is.
    ///
    /// # Panics
    /// If a message comes, or was there.
    #[track_caller]
    pub fn expect_none(&self) {
        self.run(&mut || false);
        let seen = lock(&self.seen).len();
        assert!(
            seen == 0,
            "no {} was expected within {:?}, and {seen} came",
            ShortType(std::any::type_name::<M>()),
            self.window
        );
    }

    fn run(&self, done: &mut dyn FnMut() -> bool) {
        self.session.run(self.session.system().now() + self.window, done);
    }
}
