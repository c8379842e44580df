//! Probes: receivers that a test looks into.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playhouse::{Actor, Context, DeferredHandler, Message, Recipient, Reply};
use playhouse_actor::ShortType;

use crate::run::{Session, lock};

/// The messages of a probe that the test has not taken, with the rights to answer them.
pub(super) type Seen<M> = Arc<Mutex<VecDeque<(M, Reply<<M as Message>::Reply>)>>>;

/// The actor behind a probe, which keeps its messages.
pub(super) struct ProbeActor<M: Message>(pub(super) Seen<M>);

impl<M: Message> Actor for ProbeActor<M> {}

impl<M: Message> DeferredHandler<M> for ProbeActor<M> {
    fn handle(&mut self, message: M, reply: Reply<M::Reply>, _: &mut Context<Self>) {
        let seen = (message, answered_by_nothing(reply));
        lock(&self.0).push_back(seen);
    }
}

/// Gives the answer at once if it is `()`.
fn answered_by_nothing<T: Send + 'static>(reply: Reply<T>) -> Reply<T> {
    let nothing: Box<dyn Any> = Box::new(());
    match nothing.downcast::<T>() {
        Ok(nothing) => {
            reply.send(*nothing);
            Reply::without_asker()
        }
        Err(_) => reply,
    }
}

/// A recipient whose messages the test examines, and whose answers it gives: see [`Kit::probe`](super::Kit::probe).
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
///
/// A message with a reply is taken with [`expect_ask`](Probe::expect_ask), which returns the right to answer it:
///
/// ```
/// use playhouse_testkit::Kit;
/// use playhouse::prelude::*;
///
/// #[derive(Message)]
/// #[message(reply = f64)]
/// struct ReadTemperature;
///
/// struct Display {
///     sensor: Recipient<ReadTemperature>,
///     shown: Option<f64>,
/// }
///
/// #[actor]
/// impl Display {
///     #[message]
///     fn refresh(&mut self, ctx: &mut Context<Self>) {
///         ctx.ask(self.sensor, ReadTemperature).then(|this, read, _| this.shown = read.ok());
///     }
///     #[message]
///     fn shown(&self) -> Option<f64> {
///         self.shown
///     }
/// }
///
/// let kit = Kit::new();
/// let sensor = kit.probe::<ReadTemperature>();
/// let display = kit.system().spawn(Display { sensor: sensor.recipient(), shown: None });
/// display.tell(Refresh);
/// let (ReadTemperature, reply) = sensor.expect_ask();
/// reply.send(20.5);
/// assert_eq!(display.ask(Shown).wait(), Ok(Some(20.5)));
/// ```
#[doc(alias = "TestProbe")]
#[doc(alias = "TestInbox")]
#[doc(alias = "mock")]
pub struct Probe<M: Message> {
    pub(super) session: Arc<Session>,
    pub(super) recipient: Recipient<M>,
    pub(super) seen: Seen<M>,
    pub(super) window: Duration,
}

impl<M: Message> fmt::Debug for Probe<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Probe<{}>", ShortType(std::any::type_name::<M>()))
    }
}

impl<M: Message> Probe<M> {
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
    /// - No message comes within the window.
    /// - The message's sender waits for an answer other than `()`: [`expect_ask`](Probe::expect_ask) returns the right
    ///   to give it.
    #[doc(alias = "expectMsg")]
    #[doc(alias = "receiveMessage")]
    #[track_caller]
    pub fn expect(&self) -> M {
        let (message, reply) = self.next();
        assert!(
            !reply.is_awaited(),
            "a {} came, and its sender waits for the answer: take it with `expect_ask`, which returns the message and its `Reply`",
            ShortType(std::any::type_name::<M>())
        );
        message
    }

    /// Returns the next message with the right to answer it, and runs the system until it has come.
    ///
    /// The answer is dropped if the message was sent by `tell` or by a timer. An answer of type `()` has been given when
    /// the message came. The asker gets [`AskError::Unanswered`](playhouse::AskError::Unanswered) if the test drops the
    /// `Reply`.
    ///
    /// # Panics
    /// No message comes within the window.
    #[doc(alias = "expectMsg")]
    #[doc(alias = "replyTo")]
    #[track_caller]
    pub fn expect_ask(&self) -> (M, Reply<M::Reply>) {
        self.next()
    }

    #[track_caller]
    fn next(&self) -> (M, Reply<M::Reply>) {
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
        self.session.run(self.session.system().now().saturating_add(self.window), done);
    }
}
