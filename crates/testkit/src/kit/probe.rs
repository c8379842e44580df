//! Probes: receivers that a test looks into.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playhouse::{Actor, Context, Handler, Message, Recipient};
use playhouse_actor::ShortType;

use crate::run::{Session, lock};

/// The actor behind a probe, which keeps its messages.
pub(super) struct ProbeActor<M>(pub(super) Arc<Mutex<VecDeque<M>>>);

impl<M: Message> Actor for ProbeActor<M> {}

impl<M: Message<Reply = ()>> Handler<M> for ProbeActor<M> {
    fn handle(&mut self, message: M, _: &mut Context<Self>) {
        lock(&self.0).push_back(message);
    }
}

/// A recipient whose messages the test examines: see [`Kit::probe`](super::Kit::probe).
///
/// # Examples
///
/// ```
/// use playhouse_testkit::{Kit, Probe};
/// use playhouse::prelude::*;
///
/// #[derive(Message, Debug, PartialEq)]
/// struct Pong(u32);
///
/// let kit = Kit::new();
/// let probe: Probe<Pong> = kit.probe();
/// probe.recipient().tell(Pong(1));
/// assert_eq!(probe.expect(), Pong(1));
/// probe.expect_none();
/// ```
#[doc(alias = "TestProbe")]
#[doc(alias = "TestInbox")]
#[doc(alias = "mock")]
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
    /// Returns the recipient to give to the tested actor.
    pub fn recipient(&self) -> Recipient<M> {
        self.recipient
    }

    /// Returns the same probe with a window of virtual time. [`expect`](Probe::expect) may use the window, and
    /// [`expect_none`](Probe::expect_none) uses all of it. Default: no time.
    pub fn within(&self, time: Duration) -> Probe<M> {
        let Probe { session, recipient, seen, .. } = self;
        Probe { session: Arc::clone(session), recipient: *recipient, seen: Arc::clone(seen), window: time }
    }

    /// Returns the next message, and runs the system until it has come.
    ///
    /// # Panics
    /// No message comes within the window.
    #[doc(alias = "expectMsg")]
    #[doc(alias = "receiveMessage")]
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

    /// Runs the system for the window.
    ///
    /// # Panics
    /// A message has come, or comes within the window.
    #[doc(alias = "expectNoMessage")]
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
