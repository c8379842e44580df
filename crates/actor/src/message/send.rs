//! Sends to an actor: messages, and the requests that every actor understands.

use std::fmt;
use std::ops::Deref;

use playhouse_executor::{AwayCx, Control, ControlCx, Lane, MailKind};

use crate::actor::context::Context;
use crate::actor::reference::{ActorRef, TrySendError, admit};
use crate::actor::{Actor, ActorState};
use crate::message::HandledBy;
use crate::message::forward::{self, ForwardedMessage};
use crate::message::mail::Mark;

impl<A: Actor> ActorRef<A> {
    /// Sends `message` without an answer: fire and forget. It may be called from any thread.
    ///
    /// The messages of one actor (or thread) to another are handled in the order in which they were sent. In a handler
    /// this call never blocks: an actor that sends faster than the receiver handles is paused for a while after its
    /// handler returns.
    ///
    /// # Blocking
    /// A thread that runs no actor is *blocked* while the receiver's worker is overloaded. The thread of an async
    /// runtime is blocked, too, with all tasks that it would run.
    ///
    /// Async code outside of actors uses [`ask(..).await`](ActorRef::ask), which never blocks and continues when the
    /// message was handled, or [`try_tell`](ActorRef::try_tell), which gives the message back.
    #[inline(always)]
    #[doc(alias("send", "cast", "do_send", "notify", "fire_and_forget"))]
    pub fn tell<M, Mode>(self, message: M)
    where
        M: HandledBy<A, Mode>,
    {
        message.post_tell(self.address);
    }

    /// Sends `message` in the urgent lane: it overtakes messages sent by `tell`, and never blocks or pauses its sender.
    #[doc(alias("priority", "send_urgent"))]
    pub fn tell_urgent<M, Mode>(self, message: M)
    where
        M: HandledBy<A, Mode>,
    {
        message.post_urgent(self.address);
    }

    /// Sends `message` if its receiver keeps up. This call never blocks.
    ///
    /// # Errors
    /// [`TrySendError::Stopped`] if the receiver is known to have ended. [`TrySendError::Full`] in 2 cases:
    /// - the receiver's worker is overloaded, and has not handled twice as much mail as it has admitted from such
    ///   senders;
    /// - the receiver's mailbox is bounded and full. With [`OnFull::DropOldest`](crate::OnFull::DropOldest) it counts
    ///   as full only if no message in it can be dropped.
    ///
    /// Both give the message back.
    #[doc(alias("try_send"))]
    pub fn try_tell<M, Mode>(self, message: M) -> Result<(), TrySendError<M>>
    where
        M: HandledBy<A, Mode>,
    {
        let message = admit(self.address.raw(), message)?;
        message.try_post(self.address).map_err(TrySendError::Full)
    }

    /// Stops the actor after the message that it is handling. Messages queued for it become dead letters.
    #[doc(alias("exit", "stop_gracefully", "shutdown"))]
    pub fn stop(self) {
        self.address.send_control(Request::Stop);
    }

    /// Stops the actor after it has handled all messages sent to it before this call.
    #[doc(alias("poison_pill", "stop_when_idle"))]
    pub fn drain(self) {
        self.address.send_control_in_order(Request::Stop);
    }

    /// Ends the actor without its `stopped` hook. An async handler that waits is dropped; a handler that runs is not
    /// interrupted.
    #[doc(alias("exit", "terminate"))]
    pub fn kill(self) {
        self.address.send_control(Request::Kill);
    }

    /// Drops `mark` when the actor has handled all messages sent to it before, or never will. For a remote actor,
    /// `mark` is dropped when these messages are on their way.
    #[doc(hidden)]
    pub fn mark(self, mark: impl Send + 'static) {
        self.address.send_request(Mark(mark));
    }
}

/// Requests that every actor understands.
pub(crate) enum Request {
    Stop,
    Kill,
}

impl Request {
    #[inline(never)]
    fn forwarded(self, lane: Lane) -> ForwardedMessage<'static> {
        match self {
            Request::Stop => ForwardedMessage::Stop { drain: lane != Lane::System },
            Request::Kill => ForwardedMessage::Kill,
        }
    }
}

impl<A: Actor> Control<ActorState<A>> for Request {
    fn run(self, cx: &mut ControlCx<ActorState<A>>) {
        match self {
            Request::Stop => cx.stop(),
            Request::Kill => cx.kill(),
        }
    }

    fn describe(&self) -> (MailKind, &'static str) {
        (MailKind::Control, if matches!(self, Request::Stop) { "stop" } else { "kill" })
    }

    fn send_on(self, cx: &mut AwayCx<ActorState<A>>) {
        // A request that cannot be forwarded is dropped: an unreachable actor counts as stopped.
        let _ = forward::carry(self.forwarded(cx.lane()), cx);
    }
}

/// A reference that stops its actor when it is dropped: see [`System::spawn_owned`](crate::System::spawn_owned) and
/// [`Context::spawn_owned`](crate::Context::spawn_owned).
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
/// let owned = system.spawn_owned(Counter::default());
/// owned.tell(Add(1)); // it derefs to the `ActorRef`
/// assert_eq!(owned.ask(Get).wait()?, 1);
/// let ended = owned.ended();
/// drop(owned);
/// assert_eq!(ended.wait(), StopReason::Stopped);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "the actor is stopped when this is dropped"]
pub struct OwnedActor<A: Actor>(pub(crate) ActorRef<A>);

impl<A: Actor> Context<A> {
    /// Starts a child near this actor. The child is stopped when the result is dropped. If this actor keeps the result in
    /// its state, the child ends with it, also by a crash, a kill or a restart.
    ///
    /// ```
    /// # use playhouse_actor::*;
    /// struct Device;
    /// impl Actor for Device {}
    ///
    /// #[derive(Default)]
    /// struct DeviceGroup {
    ///     devices: Vec<OwnedActor<Device>>,
    /// }
    ///
    /// impl Actor for DeviceGroup {
    ///     fn started(&mut self, ctx: &mut Context<Self>) {
    ///         self.devices.push(ctx.spawn_owned(Device));
    ///     }
    /// }
    /// # let system = System::start()?;
    /// # system.spawn(DeviceGroup::default());
    /// # system.shutdown()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawn_owned<B: Actor>(&mut self, actor: B) -> OwnedActor<B> {
        OwnedActor(self.spawn(actor))
    }
}

impl<A: Actor> Deref for OwnedActor<A> {
    type Target = ActorRef<A>;

    fn deref(&self) -> &ActorRef<A> {
        &self.0
    }
}

impl<A: Actor> fmt::Debug for OwnedActor<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnedActor({:?})", self.0)
    }
}

impl<A: Actor> Drop for OwnedActor<A> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
