//! A child's knowledge of its supervisor, and its reports: it has crashed, is about to migrate, or has ended.

use std::sync::Arc;
use std::time::Duration;

use playhouse_executor::{Crash, Cx, Envelope, MailKind, Undelivered};

use crate::actor::context::Context;
use crate::actor::names::Name;
use crate::actor::reference::ActorRef;
use crate::actor::spawn::Start;
use crate::actor::spawn::take_name;
use crate::actor::{Actor, ActorState, Notify, Watcher};
use crate::supervise::policy::Directive;
use crate::supervise::remote::{Portable, RemoteChild, SupervisedRemotely, SupervisorLink};
use crate::supervise::restart::Verdict;
use crate::supervise::{Supervisable, Supervisor};

/// A child's knowledge of its supervisor.
pub(crate) struct Child<A> {
    supervisor: ActorRef<Supervisor>,
    key: u64,
    /// The child is parked until its supervisor decides, with the state that it had when it crashed.
    pub(crate) crashed: bool,
    pub(super) restarts: Restarts<A>,
}

/// The state of a cell with the actor's knowledge of its supervisor.
pub(crate) trait HasChild<A> {
    fn child(&mut self) -> &mut Option<Child<A>>;
    /// Replaces the old state by a new one. The old state's timers end with it, except the kept ones.
    fn renew(&mut self);
}

/// The maker of new states for a child.
pub(super) enum Restarts<A> {
    /// The child itself, and the number of its restarts.
    Itself { factory: Box<dyn FnMut() -> A + Send>, count: u64 },
    /// The supervisor, which may be in another theater.
    Supervisor(SupervisedRemotely),
}

impl<A: Actor> Child<A> {
    /// Returns the state of a child that makes its own new states.
    pub(super) fn with_factory(
        supervisor: ActorRef<Supervisor>,
        key: u64,
        factory: Box<dyn FnMut() -> A + Send>,
    ) -> Child<A> {
        Child { supervisor, key, crashed: false, restarts: Restarts::Itself { factory, count: 0 } }
    }

    /// Returns the state of a child whose supervisor may be in another theater.
    pub(crate) fn with_link(SupervisorLink { supervisor, key, crashes, heard }: SupervisorLink) -> Child<A> {
        Child {
            supervisor,
            key,
            crashed: false,
            restarts: Restarts::Supervisor(SupervisedRemotely::that_crashed(crashes, heard)),
        }
    }

    /// Returns the link that the child takes along to another theater.
    pub(crate) fn supervisor_link(&self) -> SupervisorLink {
        let (crashes, heard) = match &self.restarts {
            Restarts::Itself { .. } => (0, 0),
            Restarts::Supervisor(supervised_remotely) => supervised_remotely.counts(),
        };
        SupervisorLink { supervisor: self.supervisor, key: self.key, crashes, heard }
    }

    /// Prepares a migration of the child. The supervisor makes the child's new states from now on, and watches for the
    /// loss of the target theater: returns that watch.
    pub(crate) fn begin_migration(&mut self, child: ActorRef<A>) -> Option<(Watcher, Notify)>
    where
        A: Portable,
    {
        if self.supervised_remotely().is_some() {
            return None;
        }
        let former =
            std::mem::replace(&mut self.restarts, Restarts::Supervisor(SupervisedRemotely::that_crashed(0, 0)));
        let Restarts::Itself { factory, count } = former else { return None };
        let SupervisorLink { supervisor, key, .. } = self.supervisor_link();
        // Urgent, because it has to arrive before any report from the child's next theater.
        supervisor.address.send_urgent(ChildMigrates {
            key,
            remote_child: RemoteChild::migrating_child(child, factory),
            count,
        });
        SupervisedRemotely::watch(child, self.supervisor_link());
        Some(RemoteChild::watch_of(supervisor, key, child.id()))
    }

    pub(crate) fn supervised_remotely(&mut self) -> Option<&mut SupervisedRemotely> {
        match &mut self.restarts {
            Restarts::Itself { .. } => None,
            Restarts::Supervisor(supervised_remotely) => Some(supervised_remotely),
        }
    }

    /// Returns a call that reports `crash` to the supervisor.
    pub(crate) fn report(&mut self, crash: Crash, child: ActorRef<A>) -> Box<dyn FnOnce()> {
        let (supervisor, key, supervisor_link) = (self.supervisor, self.key, self.supervisor_link());
        match &mut self.restarts {
            Restarts::Itself { .. } => ChildCrashed { key, crash, child: Box::new(child) }.report(supervisor),
            Restarts::Supervisor(supervised_remotely) => {
                Box::new(supervised_remotely.crashed(crash, supervisor_link, child))
            }
        }
    }

    /// Ends the supervision. Returns the crash for which the child is parked, if it is.
    pub(crate) fn unbind(self) -> Option<Crash> {
        let supervisor_link = self.supervisor_link();
        match self.restarts {
            Restarts::Itself { .. } => None,
            Restarts::Supervisor(supervised_remotely) => {
                SupervisedRemotely::unwatch(supervisor_link);
                supervised_remotely.into_crash()
            }
        }
    }

    pub(crate) fn ended(self) {
        match self.restarts {
            Restarts::Itself { .. } => ChildEnded { key: self.key }.tell(self.supervisor),
            Restarts::Supervisor(_) => SupervisedRemotely::ended(self.supervisor_link()),
        }
    }
}

pub(crate) struct StartChild<A> {
    pub(crate) name: Arc<Name>,
    pub(crate) child: Child<A>,
}

impl<A: Actor> Envelope<ActorState<A>> for StartChild<A> {
    fn run(mut self, state: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        take_name(cx, self.name);
        if self.child.supervised_remotely().is_some() {
            SupervisedRemotely::watch(ActorRef::new(cx.address()), self.child.supervisor_link());
        }
        cx.with_extra(|extra| *extra.child() = Some(self.child));
        Start.run(state, cx)
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Start, "start")
    }

    fn bounce(self, _: Undelivered) {}
}

pub(super) struct ChildCrashed {
    key: u64,
    crash: Crash,
    child: Box<dyn Supervisable>,
}

impl ChildCrashed {
    #[inline(never)]
    fn report(self, supervisor: ActorRef<Supervisor>) -> Box<dyn FnOnce()> {
        Box::new(move || supervisor.address.send_urgent(self))
    }
}

impl Envelope<ActorState<Supervisor>> for ChildCrashed {
    fn run(self, state: &mut ActorState<Supervisor>, cx: &mut Cx<ActorState<Supervisor>>) {
        let ctx = Context::of(cx);
        let supervisor = &mut state.actor;
        match supervisor.position(self.key) {
            None => self.child.verdict(Verdict::GiveUp(self.crash)),
            Some(at) => match supervisor.policy.decide(&self.crash) {
                Directive::Restart => supervisor.restart(self.key, self.crash, ctx),
                Directive::Resume => {
                    supervisor.decided(at, &self.crash, (Directive::Resume, Duration::ZERO), ctx);
                    self.child.verdict(Verdict::Resume);
                }
                Directive::Stop => {
                    supervisor.decided(at, &self.crash, (Directive::Stop, Duration::ZERO), ctx);
                    self.child.verdict(Verdict::GiveUp(self.crash));
                }
                Directive::Escalate => supervisor.give_up(at, self.crash, ctx),
            },
        }
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Control, "crashed")
    }

    /// The supervisor has ended: the child will not be restarted.
    fn bounce(self, _: Undelivered) {
        self.child.verdict(Verdict::GiveUp(self.crash));
    }
}

/// A notice that a child is about to migrate for the first time.
pub(super) struct ChildMigrates {
    key: u64,
    remote_child: RemoteChild,
    count: u64,
}

impl Envelope<ActorState<Supervisor>> for ChildMigrates {
    fn run(self, state: &mut ActorState<Supervisor>, cx: &mut Cx<ActorState<Supervisor>>) {
        state.actor.child_migrates(self.key, self.remote_child, self.count, Context::of(cx));
    }

    /// The supervisor has ended, and the child learns of that by its watch.
    fn bounce(self, _: Undelivered) {}
}

pub(super) struct ChildEnded {
    key: u64,
}

impl ChildEnded {
    #[inline(never)]
    fn tell(self, supervisor: ActorRef<Supervisor>) {
        supervisor.address.send(self);
    }
}

impl Envelope<ActorState<Supervisor>> for ChildEnded {
    fn run(self, state: &mut ActorState<Supervisor>, _: &mut Cx<ActorState<Supervisor>>) {
        state.actor.forget(self.key);
    }

    fn describe() -> (MailKind, &'static str) {
        (MailKind::Control, "ended")
    }

    fn bounce(self, _: Undelivered) {}
}
