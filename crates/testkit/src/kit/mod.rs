//! Tests of single actors in a private system.

mod probe;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use playhouse::{Actor, ActorRef, Message, System, ToRecipient};

pub use self::probe::Probe;
use self::probe::{ProbeActor, Seen};
use crate::run::{RunMode, Schedule, Sent, Session};

/// A private simulated system for tests of one actor or a few. It has virtual time, [probes](Probe) as receivers, and
/// a record of sent messages.
///
/// The system runs only when the test asks for it, on the thread of the test, in the order of sending. Panics of
/// actors are visible to their supervisors and watchers, and in [`Kit::sent_by`].
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
#[doc(alias = "TestKit")]
#[doc(alias = "ActorTestKit")]
#[doc(alias = "BehaviorTestKit")]
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
    /// Creates a system without actors.
    pub fn new() -> Kit {
        Kit { session: Arc::new(Session::start(&Arc::default(), Schedule::default().chooser(), RunMode::Kit)) }
    }

    /// Returns the system, in which the test starts its actors. An `ask(..).wait()` runs the system until the answer
    /// comes.
    pub fn system(&self) -> &System {
        self.session.system()
    }

    /// Starts an actor that keeps its messages for the test, which may answer them: [`Probe::expect_ask`].
    pub fn probe<M: Message>(&self) -> Probe<M> {
        let seen = Seen::default();
        let recipient = self.system().spawn(ProbeActor(Arc::clone(&seen))).recipient();
        Probe { session: Arc::clone(&self.session), recipient, seen, window: Duration::ZERO }
    }

    /// Runs the system until nothing is left to do at the present time.
    pub fn settle(&self) {
        self.run_for(Duration::ZERO);
    }

    /// Runs the system for this virtual time, with everything that happens in it: [`System::run_for`].
    #[doc(alias = "timePasses")]
    #[doc(alias = "ManualTime")]
    pub fn run_for(&self, time: Duration) {
        self.system().run_for(time);
    }

    /// Holds the messages of `actor`, including its start, until it is [released](Kit::release). The test can play
    /// the part of a held child or peer. Stops, kills and watches still reach the actor. An actor that is held before its
    /// start stops when it is released. When it has ended, held messages are dead letters.
    #[doc(alias = "suspend")]
    pub fn hold<A: Actor>(&self, actor: ActorRef<A>) {
        self.session.hold(actor.id(), true);
    }

    /// Releases `actor`: held messages are delivered first.
    pub fn release<A: Actor>(&self, actor: ActorRef<A>) {
        self.session.hold(actor.id(), false);
    }

    /// Returns the living actors of type `B` that `parent` has started, in order.
    pub fn children<B: Actor>(&self, parent: ActorRef<impl Actor>) -> Vec<ActorRef<B>> {
        self.session.children(parent.id()).into_iter().filter_map(ActorRef::of_id).collect()
    }

    /// Returns all messages that `actor` has sent: the delivered ones in their order, and then the waiting ones.
    pub fn sent_by(&self, actor: ActorRef<impl Actor>) -> Vec<Sent> {
        let sent = self.session.sent().into_iter();
        sent.filter(|(from, _)| *from == Some(actor.id())).map(|(_, sent)| sent).collect()
    }
}

impl Drop for Kit {
    /// Ends the system with all its actors. Probes keep their messages.
    fn drop(&mut self) {
        self.session.end();
    }
}
