//! Requests to a supervisor: to start a child, and to find one.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use playhouse_executor::{Mailbox, with_current_system};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::actor::Actor;
use crate::actor::context::Context;
use crate::actor::reference::ActorRef;
use crate::actor::spawn::{Placement, SpawnError, spawn_named};
use crate::message::{Handler, Message};
use crate::remote::registry::Remote;
use crate::supervise::child::{Child, StartChild};
use crate::supervise::remote::{Host, MakeRemoteChild, make_remote_child};
use crate::supervise::{ChildEntry, ChildHandle, Supervisor, new_key};

/// A request to start a supervised child: ask a [`Supervisor`] with it. The answer is the child's reference, valid over
/// all restarts.
///
/// The answer is a [`SpawnError`] if the supervisor has a living child of that name, or if the child cannot be started.
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
/// let child = ChildSpec::new("apples", || Counter(10)).placement(Placement::Spread);
/// let counter = supervisor.ask(child).wait()??;
/// assert_eq!(counter.ask(Get).wait()?, 10);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("child_spec", "supervise"))]
#[must_use = "a child is started when its supervisor is asked for it"]
pub struct ChildSpec<A> {
    name: String,
    placement: Placement,
    mailbox: Option<Mailbox>,
    remote_child: Option<(Arc<dyn Host>, MakeRemoteChild<A>)>,
    factory: Box<dyn FnMut() -> A + Send>,
}

impl<A> fmt::Debug for ChildSpec<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChildSpec({:?})", self.name)
    }
}

impl<A: Actor> ChildSpec<A> {
    /// Returns the specification of a child called `name`. `factory` makes its state now, and again for each restart.
    ///
    /// A supervisor has at most 1 child of each name: a second one is an error.
    pub fn new(name: impl Into<String>, factory: impl FnMut() -> A + Send + 'static) -> Self {
        let (placement, mailbox) = (Placement::Near, None);
        ChildSpec { name: name.into(), placement, mailbox, remote_child: None, factory: Box::new(factory) }
    }

    /// Sets the bound of the child's mailbox. It stays over all restarts, and has no effect on a child in another
    /// theater. Default: no bound of its own.
    pub fn mailbox(mut self, mailbox: Mailbox) -> Self {
        self.mailbox = Some(mailbox);
        self
    }

    /// Sets the placement of the child. It stays over all restarts. Default: near its supervisor.
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// Starts the child in another theater, a `Peer`. The factory makes its state in this theater, and the state is
    /// sent, as by `spawn_at`. The [`placement`](Self::placement) has no effect on it.
    ///
    /// A crashed child is parked with its mailbox in its theater until the directive arrives. A restart sends a new
    /// state. The supervisor receives the text of the panic or the error, and not the error itself: see
    /// [`SupervisionPolicy::when`](crate::SupervisionPolicy::when).
    ///
    /// The loss of the child's theater is a crash with a [`TheaterLost`](crate::TheaterLost), one for all children of that theater. The
    /// restart calls the theater's address again. If a theater answers, the children are started anew in it. They are
    /// *other actors* then: references to the former ones are invalid, and [`FindChild`] returns the new ones.
    ///
    /// If no theater answers, that is another crash. With a [backoff](crate::SupervisionPolicy::backoff) the supervisor calls
    /// repeatedly; without one it soon gives up. In the other direction, a child whose supervisor has ended or is lost
    /// is stopped.
    pub fn at<H: Host + Clone>(mut self, theater: &H) -> Self
    where
        A: Remote + Serialize + DeserializeOwned,
    {
        self.remote_child = Some((Arc::new(theater.clone()), make_remote_child::<A>));
        self
    }
}

impl<A: Actor> Message for ChildSpec<A> {
    type Reply = Result<ActorRef<A>, SpawnError>;
}

impl<A: Actor> Handler<ChildSpec<A>> for Supervisor {
    fn handle(&mut self, mut child: ChildSpec<A>, ctx: &mut Context<Self>) -> Result<ActorRef<A>, SpawnError> {
        if let Some(known) = self.children.iter().find(|kept| kept.name == child.name && !kept.has_ended()) {
            let why = match known.child.id() {
                Some(id) => format!("its supervisor has a child of that name, {id}"),
                None => "its supervisor has a child of that name".to_owned(),
            };
            return Err(SpawnError::new::<A>(Some(&child.name), why));
        }
        let key = new_key(&mut self.keys, ctx);
        if let Some((host, make_remote_child)) = child.remote_child {
            let mut remote_child = make_remote_child(host, child.factory);
            let started = remote_child.start(ctx.this(), key, &child.name, child.placement);
            let id = started.map_err(|why| SpawnError::new::<A>(Some(&child.name), why.to_string()))?;
            let (name, placement) = (child.name, child.placement);
            self.children.push(ChildEntry { key, name, placement, child: ChildHandle::Remote(remote_child) });
            return Ok(ActorRef::of_id_or_ended(id).unwrap_or_else(ActorRef::nowhere));
        }
        let actor = (child.factory)();
        let known = Child::with_factory(ctx.this(), key, child.factory);
        let started = with_current_system(|system| {
            let system = system.expect("a handler runs on a worker");
            let start = |name| StartChild { name, child: known };
            spawn_named(system, child.placement, child.mailbox, child.name.clone(), actor, start)
        })?;
        let (name, placement) = (child.name, child.placement);
        self.children.push(ChildEntry { key, name, placement, child: ChildHandle::Local(Box::new(started), 0) });
        Ok(started)
    }
}

/// A request for a [`Supervisor`]'s child of a name. The answer is `None` if the supervisor has no such child, or if
/// the child is no `A`, or has ended.
///
/// It is needed for children in other theaters only, because these are other actors after a loss of their theater.
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
/// assert_eq!(supervisor.ask(FindChild::new("apples")).wait()?, Some(counter));
/// assert_eq!(supervisor.ask(FindChild::<Counter>::new("pears")).wait()?, None);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FindChild<A> {
    name: String,
    actor: PhantomData<fn() -> A>,
}

impl<A> fmt::Debug for FindChild<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FindChild({:?})", self.name)
    }
}

impl<A: Actor> FindChild<A> {
    /// Returns the request for the child called `name`.
    pub fn new(name: impl Into<String>) -> FindChild<A> {
        FindChild { name: name.into(), actor: PhantomData }
    }
}

impl<A: Actor> Message for FindChild<A> {
    type Reply = Option<ActorRef<A>>;
}

impl<A: Actor> Handler<FindChild<A>> for Supervisor {
    fn handle(&mut self, find: FindChild<A>, _: &mut Context<Self>) -> Option<ActorRef<A>> {
        // A child that has ended, and has not been removed yet, may have a successor of its name.
        self.children
            .iter()
            .rev()
            .find(|kept| kept.name == find.name)
            .and_then(|kept| ActorRef::of_id(kept.child.id()?))
    }
}
