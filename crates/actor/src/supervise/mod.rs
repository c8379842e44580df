//! Supervision: actors that restart others.
//!
//! A [`Supervisor`] is an ordinary actor. A supervised child that crashes is parked, with its mailbox, until its
//! supervisor has decided. A restarted child keeps its address and its mailbox; the factory that it was started with
//! makes its new state. A panic (or [`Context::fail`]) goes to the supervisor, and a returned `Err` goes to the asker:
//! the two are never mixed. Children in other theaters: `remote_child`.

pub(crate) mod child;
pub(crate) mod child_spec;
pub(crate) mod crash_report;
pub(crate) mod policy;
pub(crate) mod remote;
pub(crate) mod remote_child;
mod restart;

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use crate::actor::context::Context;
use crate::actor::reference::ActorRef;
use crate::actor::spawn::Placement;
use crate::actor::{Actor, ActorId};
use crate::message::send::Request;
use crate::supervise::policy::SupervisionPolicy;
use crate::supervise::remote::{ChildLocation, RemoteChild};
use crate::supervise::restart::Verdict;

/// An actor that starts children and restarts them when they crash. The children are stopped when the supervisor ends.
///
/// Ask it for a [`ChildSpec`](crate::ChildSpec) to start a child.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # #[derive(Default)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Clone)]
/// # struct Add(u64);
/// # impl Message for Add { type Reply = (); }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # struct Get;
/// # impl Message for Get { type Reply = u64; }
/// # impl Handler<Get> for Counter {
/// #     fn handle(&mut self, _: Get, _: &mut Context<Self>) -> u64 { self.0 }
/// # }
/// # let system = System::start()?;
/// let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
/// let counter = supervisor.ask(ChildSpec::new("apples", Counter::default)).wait()??;
/// counter.tell(Add(1)); // the reference stays valid over restarts
/// assert_eq!(counter.ask(Get).wait()?, 1);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Supervisor {
    policy: SupervisionPolicy,
    children: Vec<ChildEntry>,
    crashes: VecDeque<Duration>,
    /// The number of keys given to children.
    keys: u64,
    /// Theaters of children whose loss was counted as a crash, with the time of the loss.
    lost: Vec<(u64, Duration)>,
}

struct ChildEntry {
    key: u64,
    name: String,
    placement: Placement,
    child: ChildHandle,
}

enum ChildHandle {
    /// A child that makes its own new states, and the number of its restarts.
    Local(Box<dyn Supervisable>, u64),
    /// A child that is in another theater, or has been: the supervisor makes its new states.
    Remote(RemoteChild),
}

impl ChildEntry {
    /// Returns whether the child has ended, and its report is under way. A child lost with its theater has not ended,
    /// because it is going to start again.
    fn has_ended(&self) -> bool {
        match &self.child {
            ChildHandle::Local(child, _) => child.id().address().is_stale(),
            ChildHandle::Remote(child) => {
                child.whereabouts == ChildLocation::InTheater && child.id().is_some_and(|id| id.address().is_stale())
            }
        }
    }
}

impl ChildHandle {
    fn id(&self) -> Option<ActorId> {
        match self {
            ChildHandle::Local(child, _) => Some(child.id()),
            ChildHandle::Remote(child) => child.id(),
        }
    }

    /// Returns whether it is a child of that theater with these known whereabouts.
    fn is_at(&self, theater: u64, whereabouts: ChildLocation) -> bool {
        matches!(self, ChildHandle::Remote(child) if child.whereabouts == whereabouts && child.theater() == Some(theater))
    }
}

impl fmt::Debug for ChildEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Drop for ChildEntry {
    fn drop(&mut self) {
        match &mut self.child {
            ChildHandle::Local(child, _) => child.stop(),
            ChildHandle::Remote(child) => child.dismiss(),
        }
    }
}

/// Returns a key for a child. No two incarnations of a supervisor return the same key, because reports about an earlier
/// incarnation's children may still be under way in the next. The key does not depend on other actors of the process,
/// so a simulation with the same seed sends the same keys.
fn new_key(keys: &mut u64, ctx: &mut Context<Supervisor>) -> u64 {
    *keys += 1;
    (ctx.incarnation() << 32) | *keys
}

trait Supervisable: Send {
    fn verdict(&self, verdict: Verdict);
    fn stop(&self);
    fn id(&self) -> ActorId;
}

impl<A: Actor> Supervisable for ActorRef<A> {
    fn verdict(&self, verdict: Verdict) {
        self.address.send_control(verdict);
    }

    fn stop(&self) {
        self.address.send_control(Request::Stop);
    }

    fn id(&self) -> ActorId {
        ActorRef::id(*self)
    }
}

impl Supervisor {
    /// Returns a supervisor without children.
    pub fn new(policy: SupervisionPolicy) -> Supervisor {
        Supervisor { policy, children: Vec::new(), crashes: VecDeque::new(), keys: 0, lost: Vec::new() }
    }

    fn position(&self, key: u64) -> Option<usize> {
        self.children.iter().position(|kept| kept.key == key)
    }
}

impl Actor for Supervisor {}
