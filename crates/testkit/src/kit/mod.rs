//! Actors in a system of their own, driven by a test.

mod probe;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playhouse::{Actor, ActorRef, Message, System, ToRecipient};

pub use self::probe::Probe;
use self::probe::ProbeActor;
use crate::run::{RunMode, Schedule, Sent, Session};

/// A private simulated system for tests of one actor, or of a few: with virtual time, with [probes](Probe) for others to send
/// to, and with a look at who sent what.
///
/// It runs while it is asked to, on the thread of the test, and in the order of sending. Panics of actors are theirs: they are
/// seen by their supervisors and watchers, and in [`Kit::sent_by`].
///
/// # Examples
///
/// ```
/// use playhouse::prelude::*;
/// use playhouse_testkit::Kit;
/// use std::time::Duration;
///
/// #[derive(Message, Debug, PartialEq)]
/// struct Tick(u32);
///
/// struct Metronome(Recipient<Tick>, u32);
///
/// #[actor]
/// impl Metronome {
///     #[started]
///     fn wind_up(&mut self, ctx: &mut Context<Self>) {
///         ctx.send_after(Duration::from_secs(1), Swing);
///     }
///     #[message]
///     fn swing(&mut self, ctx: &mut Context<Self>) {
///         self.1 += 1;
///         self.0.tell(Tick(self.1));
///         self.wind_up(ctx);
///     }
/// }
///
/// let kit = Kit::new();
/// let ear = kit.probe::<Tick>();
/// kit.system().spawn(Metronome(ear.recipient(), 0));
/// ear.expect_none();                                      // no time has passed
/// let soon = ear.within(Duration::from_secs(1));
/// assert_eq!(soon.expect(), Tick(1));
/// assert_eq!(soon.expect(), Tick(2));
/// ear.within(Duration::from_millis(999)).expect_none();
/// ```
pub struct Kit {
    session: Arc<Session>,
}

impl Default for Kit {
    fn default() -> Self {
        Kit::new()
    }
}

impl fmt::Debug for Kit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kit({:?})", self.session.system())
    }
}

impl Kit {
    /// A system without actors.
    pub fn new() -> Kit {
        Kit { session: Arc::new(Session::start(&Arc::default(), Schedule::default().chooser(), RunMode::Kit)) }
    }

    /// The system: to start the actors in that are tested. An `ask(..).wait()` runs it until the answer is there.
    pub fn system(&self) -> &System {
        self.session.system()
    }

    /// An actor that keeps what it is sent, for the test to look at.
    pub fn probe<M: Message<Reply = ()>>(&self) -> Probe<M> {
        let seen: Arc<Mutex<VecDeque<M>>> = Arc::default();
        let recipient = self.system().spawn(ProbeActor(Arc::clone(&seen))).recipient();
        Probe { session: Arc::clone(&self.session), recipient, seen, window: Duration::ZERO }
    }

    /// Has all handled that can be without time passing.
    pub fn settle(&self) {
        self.run_for(Duration::ZERO);
    }

    /// Lets so much virtual time pass, with all that is to be done in it: [`System::run_for`].
    pub fn run_for(&self, time: Duration) {
        self.system().run_for(time);
    }

    /// Delivers no message to `actor` until it is [released](Kit::release): a child or a peer that does nothing, so that the
    /// test can play its part. Its start is held too. Stops, kills and watches reach it,
    /// and when it has ended, what was held is a dead letter.
    pub fn hold<A: Actor>(&self, actor: ActorRef<A>) {
        self.session.hold(actor.id(), true);
    }

    /// Delivers again to `actor`, first what was held.
    pub fn release<A: Actor>(&self, actor: ActorRef<A>) {
        self.session.hold(actor.id(), false);
    }

    /// The actors of type `B` that `parent` has started, in order; those that have ended are not among them.
    pub fn children<B: Actor>(&self, parent: ActorRef<impl Actor>) -> Vec<ActorRef<B>> {
        self.session.children(parent.id()).into_iter().filter_map(ActorRef::of_id).collect()
    }

    /// All that `actor` has sent, to whomever: in the order of delivery, and then what waits.
    pub fn sent_by(&self, actor: ActorRef<impl Actor>) -> Vec<Sent> {
        let sent = self.session.sent().into_iter();
        sent.filter(|(from, _)| *from == Some(actor.id())).map(|(_, sent)| sent).collect()
    }
}

impl Drop for Kit {
    /// Ends the system with all that is in it. Its probes keep what they have.
    fn drop(&mut self) {
        self.session.end();
    }
}
