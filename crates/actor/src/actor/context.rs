//! The context of handlers: an actor's access to its system, its timers and its watches.

use std::error::Error;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use playhouse_executor::{Address, Failure, Port, Sends, with_current_system, wrap_cx};
use serde::{Deserialize, Serialize};

use crate::actor::any::{ActorType, AnyActor};
use crate::actor::reference::{ActorRef, AskTarget};
use crate::actor::spawn::{SpawnError, SpawnOptions};
use crate::actor::{Actor, ActorId, ActorState, Notify, Terminated, Watch, Watcher};
use crate::ask::reply_to::{ReplyTo, TakeAnswer};
use crate::ask::{Ask, AskError};
use crate::message::clock::{Copying, Pace};
use crate::message::mail::{Continuation, Pipe, Start, TerminatedMail};
use crate::message::{HandledBy, Message, Repeated};
use crate::timer::receive_timeout::Idle;
use crate::timer::timers::Timer;

wrap_cx! {
    /// The context of a handler, given to it together with the message.
    ///
    /// # Examples
    ///
    /// ```
    /// use playhouse_actor::*;
    /// use std::time::Duration;
    ///
    /// struct Blink;
    /// impl Message for Blink {
    ///     type Reply = ();
    /// }
    ///
    /// struct Lamp {
    ///     blinks: u32,
    /// }
    /// impl Actor for Lamp {}
    /// impl Handler<Blink> for Lamp {
    ///     fn handle(&mut self, _: Blink, ctx: &mut Context<Self>) {
    ///         self.blinks += 1;
    ///         if self.blinks < 3 {
    ///             ctx.send_after(Duration::from_millis(1), Blink);
    ///         } else {
    ///             ctx.stop();
    ///         }
    ///     }
    /// }
    /// # let system = System::start()?;
    /// let lamp = system.spawn(Lamp { blinks: 0 });
    /// let ended = lamp.ended();
    /// lamp.tell(Blink);
    /// assert_eq!(ended.wait(), StopReason::Stopped);
    /// # system.shutdown()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub struct Context<A: Actor>(ActorState<A>);
}

/// A key that names a timer of an actor.
///
/// A mobile actor takes its timers along, so it can keep the key in its state. Given to another actor, the key names no
/// timer, or one of that actor's own.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use std::time::Duration;
/// # #[derive(Clone)]
/// # struct Tick;
/// # impl Message for Tick { type Reply = (); }
/// # struct Stop;
/// # impl Message for Stop { type Reply = bool; }
/// struct Clock {
///     timer: Option<TimerKey>,
/// }
///
/// impl Actor for Clock {
///     fn started(&mut self, ctx: &mut Context<Self>) {
///         self.timer = Some(ctx.send_every(Duration::from_secs(1), Tick));
///     }
/// }
/// # impl Handler<Tick> for Clock { fn handle(&mut self, _: Tick, _: &mut Context<Self>) {} }
///
/// impl Handler<Stop> for Clock {
///     fn handle(&mut self, _: Stop, ctx: &mut Context<Self>) -> bool {
///         let Some(timer) = self.timer.take() else { return false };
///         ctx.cancel(timer);
///         true
///     }
/// }
/// # let system = System::start()?;
/// # assert!(system.spawn(Clock { timer: None }).ask(Stop).wait()?);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TimerKey(u64);

impl<A: Actor> Context<A> {
    pub(crate) fn id(&self) -> ActorId {
        ActorId(self.cx.address().raw())
    }

    /// Returns the answer for the asker, when the handler has returned `answer`.
    #[inline]
    pub(crate) fn unless_failed<R>(&mut self, answer: R) -> Result<R, AskError> {
        if self.cx.has_failed() { Err(AskError::Panicked) } else { Ok(answer) }
    }

    /// Returns whether the running handler has called [`Context::fail`].
    pub(crate) fn has_failed(&mut self) -> bool {
        self.cx.has_failed()
    }

    /// Returns the reference to this actor.
    #[doc(alias = "me")]
    #[doc(alias = "myself")]
    #[doc(alias = "self_ref")]
    #[doc(alias = "actor_ref")]
    #[doc(alias = "address")]
    #[inline(always)]
    pub fn this(&self) -> ActorRef<A> {
        ActorRef::new(self.cx.address())
    }

    /// Starts an actor near this one: on a stage of the same worker, in turn. The children of a
    /// [dedicated](crate::Placement::Dedicated) actor go to any stage.
    ///
    /// The child continues when this actor ends. Children that end and restart with their parent are those of a
    /// [`Supervisor`](crate::Supervisor).
    ///
    /// The child's `started` runs before any message to it. The exact time is unspecified:
    /// - mostly before this call returns;
    /// - as a message of its own for the child of a dedicated actor, for a child of a large family, and while other
    ///   actors wait for the worker.
    #[inline]
    #[doc(alias("start", "actor_of", "create"))]
    pub fn spawn<B: Actor>(&mut self, actor: B) -> ActorRef<B> {
        match playhouse_executor::spawn_near(ActorState { actor }, Start) {
            Ok(address) => ActorRef::new(address),
            Err((state, _)) => self.spawn_with(SpawnOptions::new(), state.actor),
        }
    }

    /// Starts an actor with [options](SpawnOptions).
    ///
    /// # Panics
    /// If [`Context::try_spawn_with`] returns an error.
    #[doc(alias("start", "actor_of", "create"))]
    pub fn spawn_with<B: Actor>(&mut self, options: SpawnOptions, actor: B) -> ActorRef<B> {
        self.try_spawn_with(options, actor).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts an actor with [options](SpawnOptions).
    ///
    /// # Errors
    /// [`SpawnError`] if the placement is not possible in this system.
    pub fn try_spawn_with<B: Actor>(&mut self, options: SpawnOptions, actor: B) -> Result<ActorRef<B>, SpawnError> {
        with_current_system(|system| {
            crate::actor::spawn::spawn(system.expect("a handler runs on a worker"), options, actor)
        })
    }

    /// Stops this actor after this message. Messages queued for it become dead letters.
    #[inline]
    #[doc(alias("exit", "stop_self", "terminate"))]
    pub fn stop(&mut self) {
        self.cx.stop();
    }

    /// Ends this message as a crash: the supervisor receives `error`, as it would receive a panic.
    ///
    /// The error may be a text. A supervisor tells errors apart by their types, so an error with a directive of its own
    /// needs a type of its own.
    ///
    /// The handler still runs to its end. Its answer is dropped, and the asker gets [`AskError::Panicked`]. If the
    /// handler calls [`Context::stop`] later, the actor ends by the error, and its supervisor does not decide.
    #[track_caller]
    #[doc(alias("escalate", "abort", "raise"))]
    pub fn fail(&mut self, error: impl Into<Box<dyn Error + Send + Sync>>) {
        self.cx.fail(Failure::new(error.into()));
    }

    /// Does the same as [`Context::fail`] for a library that acts for the program. The report names no source location,
    /// because the library's lines would not help its reader.
    #[doc(hidden)]
    pub fn fail_without_place(&mut self, error: impl Error + Send + 'static) {
        self.cx.fail(Failure::without_place(error));
    }

    /// Sends `message` to `to` when the returned [`ContextAsk`] is completed by `then`, `pipe_to_self` or `.await`.
    ///
    /// With `then` and `pipe_to_self` the answer arrives as a message of its own. This actor handles other messages
    /// until then.
    #[doc(alias("call", "gen_server_call", "request", "send"))]
    pub fn ask<M: Message, Mode>(&mut self, to: impl AskTarget<M, Mode>, message: M) -> ContextAsk<'_, A, M> {
        ContextAsk { ctx: self, ask: Ask::new(to, message) }
    }

    /// Requests a [`terminated`](Actor::terminated) call for the end of `who`. The call comes at once if `who` has
    /// ended.
    ///
    /// Watching the same actor twice has the effect of one watch. [`Context::unwatch`] ends the watch.
    ///
    /// A mobile actor continues to watch `who` from each theater that it migrates to, if other theaters may send to
    /// `who`. If `who` has ended during a migration, the reason is [`NotAlive`](crate::StopReason::NotAlive).
    #[doc(alias("monitor", "link"))]
    pub fn watch<B: Actor>(&mut self, who: ActorRef<B>) {
        let known = if ActorType::moves::<A>() { ActorType::of::<B>() } else { None };
        match known {
            Some(known) => self.watch_any(known.actor(who.id())),
            None => {
                let (watcher, notify) = self.watcher(false);
                who.address.send_control(Watch::Begin { watcher, notify, who: who.id() });
            }
        }
    }

    /// Returns a new watch of this actor. `moves_along`: the watched actor is recorded, and is watched again after a
    /// migration.
    fn watcher(&self, moves_along: bool) -> (Watcher, Notify) {
        struct ByDown<const MOVES_ALONG: bool>;
        impl<A: Actor, const MOVES_ALONG: bool> Sends<ActorState<A>, Terminated> for ByDown<MOVES_ALONG> {
            fn send(to: Address<ActorState<A>>, terminated: Terminated) {
                to.send(TerminatedMail::<MOVES_ALONG>(terminated));
            }
        }
        let notify: Port<Terminated> = if moves_along {
            self.cx.address().port::<Terminated, ByDown<true>, ()>()
        } else {
            self.cx.address().port::<Terminated, ByDown<false>, ()>()
        };
        (Watcher::next(self.id()), Notify::Port(notify))
    }

    /// Watches an actor of any type, like [`Context::watch`].
    #[doc(alias("monitor", "link"))]
    pub fn watch_any(&mut self, who: AnyActor) {
        let moves_along = ActorType::moves::<A>();
        if moves_along {
            self.cx.with_extra(|extra| {
                if !extra.watching.contains(&who) {
                    extra.watching.push(who);
                }
            });
        }
        let (watcher, notify) = self.watcher(moves_along);
        who.watch(watcher, notify);
    }

    /// Ends a watch on an actor of any type, like [`Context::unwatch`].
    #[doc(alias("demonitor", "unlink"))]
    pub fn unwatch_any(&mut self, who: AnyActor) {
        who.unwatch(Watcher::last(self.id()));
        self.forget_watched(who.id());
    }

    /// Ends a watch. A notice that is already under way may still arrive.
    #[doc(alias("demonitor", "unlink"))]
    pub fn unwatch<B: Actor>(&mut self, who: ActorRef<B>) {
        who.address.send_control(Watch::End { watcher: Watcher::last(self.id()) });
        self.forget_watched(who.id());
    }

    /// Removes `who` from the recorded watched actors. Returns whether it was recorded.
    pub(crate) fn forget_watched(&mut self, who: ActorId) -> bool {
        let forgotten = self.cx.with_extra_if_any(|extra| {
            let nth = extra.watching.iter().position(|watched| watched.id() == who)?;
            Some(extra.watching.remove(nth))
        });
        forgotten.flatten().is_some()
    }

    /// Sends `message` to this actor after `delay`.
    ///
    /// The resolution is 1 ms, and the message never comes early. [`Context::cancel`] cancels the timer.
    #[doc(alias("schedule_once", "notify_later", "run_later"))]
    pub fn send_after<M, Mode>(&mut self, delay: Duration, message: M) -> TimerKey
    where
        M: HandledBy<A, Mode>,
    {
        self.start_timer((delay, Pace::Once), message, None)
    }

    /// Sends a clone of `message` to this actor once in each `period`, at a fixed rate counted from now. Late messages
    /// do not shift the later ones.
    ///
    /// At most 1 message of the timer waits. A message is left out if it is due while the former one is unhandled.
    /// Periods in which nothing could be sent (the worker was busy, the computer asleep) are left out, too.
    ///
    /// # Panics
    /// If `period` is zero.
    #[doc(alias("schedule", "run_interval", "schedule_at_fixed_rate", "send_interval"))]
    pub fn send_every<M, Mode>(&mut self, period: Duration, message: M) -> TimerKey
    where
        M: HandledBy<A, Mode> + Repeated,
    {
        assert!(
            !period.is_zero(),
            "`send_every` needs a period above zero: a period of zero would let no other message run"
        );
        self.start_timer((period, Pace::Every(period)), message, Some(|message| Ok(message.clone())))
    }

    /// Sends a clone of `message` to this actor repeatedly: first after `pause`, then each time `pause` after the
    /// former was *handled*.
    ///
    /// The former message is handled when its handler has ended, also an async one. Other mail therefore always has at
    /// least `pause` between two of these messages.
    ///
    /// # Panics
    /// If `pause` is zero.
    #[doc(alias("schedule_with_fixed_delay", "send_spaced"))]
    pub fn send_with_fixed_delay<M, Mode>(&mut self, pause: Duration, message: M) -> TimerKey
    where
        M: HandledBy<A, Mode> + Repeated,
    {
        assert!(
            !pause.is_zero(),
            "`send_with_fixed_delay` needs a pause above zero: a pause of zero would let no other message run"
        );
        self.start_timer((pause, Pace::Spaced(pause)), message, Some(|message| Ok(message.clone())))
    }

    /// Keeps a timer of this actor over restarts, in its rhythm. Other timers end with the state that has started them.
    ///
    /// [`started`](Actor::started) is called after each restart: a timer that it starts must not be kept, because a
    /// second one would run after the restart.
    ///
    /// Returns `false` if the actor has no such timer, or no longer.
    pub fn keep_timer(&mut self, key: TimerKey) -> bool {
        let keep = |timer: &mut Timer| timer.kept = true;
        self.cx.with_extra_if_any(|extra| extra.timers.get_mut(&key.0).map(keep).is_some()).unwrap_or(false)
    }

    /// Calls [`receive_timeout`](Actor::receive_timeout) whenever this actor has handled no message for the time
    /// `after`. It replaces an earlier receive timeout.
    ///
    /// The resolution is 1 ms, and the call never comes early.
    ///
    /// Every handled item counts as a message, also timers, answers and death notices. Requests such as a watch do not
    /// count.
    ///
    /// The time begins now, and anew at the end of each handler. A migrating actor takes the timeout along, and the
    /// time begins anew in the target theater. The timeout ends with a restart: `started` may set it again.
    ///
    /// The system is never idle while a receive timeout is set, because it acts like a periodic timer.
    ///
    /// # Panics
    /// If `after` is zero.
    #[doc(alias("idle_timeout"))]
    pub fn set_receive_timeout(&mut self, after: Duration) {
        assert!(
            !after.is_zero(),
            "`set_receive_timeout` needs a time above zero: a timeout of zero would expire without end"
        );
        self.cancel_receive_timeout();
        let address = self.cx.address();
        self.cx.note_handled(true);
        self.cx.with_extra(|extra| {
            extra.next_timer += 1;
            extra.idle = Some(Idle::begin(address, extra.next_timer, after));
        });
    }

    /// Cancels the receive timeout, if one is set.
    pub fn cancel_receive_timeout(&mut self) {
        if let Some(idle) = self.cx.with_extra_if_any(|extra| extra.idle.take()).flatten() {
            idle.cancel();
            self.cx.note_handled(false);
        }
    }

    fn start_timer<M, Mode>(&mut self, times: (Duration, Pace), message: M, copy: Option<Copying<M>>) -> TimerKey
    where
        M: HandledBy<A, Mode>,
    {
        let address = self.cx.address();
        self.cx.with_extra(|extra| {
            extra.next_timer += 1;
            let id = extra.next_timer;
            extra.timers.insert(id, Timer::start::<A, M, Mode>(address, id, times, message, copy));
            TimerKey(id)
        })
    }

    /// Cancels a timer of this actor. Its message is not handled, even if it has been sent already. An unknown key has
    /// no effect.
    #[doc(alias("cancel_timer", "cancel_future"))]
    pub fn cancel(&mut self, key: TimerKey) {
        if let Some(timer) = self.cx.with_extra_if_any(|extra| extra.timers.remove(&key.0)).flatten() {
            timer.stop();
        }
    }

    /// Returns the time since the system's start. The time is virtual in a simulation.
    pub fn now(&self) -> Duration {
        with_current_system(|system| system.expect("a handler runs on a worker").now())
    }

    /// Returns the incarnation of this actor: a number that is larger after each restart, and after each return from
    /// another theater.
    ///
    /// A `then` runs in the incarnation that the answer finds. Compare the numbers to learn whether the same
    /// incarnation has asked.
    pub fn incarnation(&mut self) -> u64 {
        self.cx.with_extra_if_any(|extra| extra.incarnation).unwrap_or(0)
    }

    /// Returns the name given to this actor, if there is one.
    pub fn name(&mut self) -> Option<Arc<str>> {
        self.cx.with_extra_if_any(|extra| extra.name.as_ref().map(|name| Arc::clone(name.text()))).flatten()
    }
}

impl<A: Actor> std::fmt::Debug for Context<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Context({:?})", self.this())
    }
}

/// A request of an actor that is not sent yet: choose how the answer is handled.
///
/// An async handler may await it: `ctx.ask(to, message).await` is `to.ask(message).await`. The actor handles no other
/// messages until the answer comes.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use std::{sync::mpsc, time::Duration};
/// # struct Price(&'static str);
/// # impl Message for Price { type Reply = u32; }
/// # struct Shop;
/// # impl Actor for Shop {}
/// # impl Handler<Price> for Shop { fn handle(&mut self, _: Price, _: &mut Context<Self>) -> u32 { 3 } }
/// struct Customer {
///     shop: ActorRef<Shop>,
///     paid: mpsc::Sender<u32>,
/// }
///
/// impl Actor for Customer {
///     fn started(&mut self, ctx: &mut Context<Self>) {
///         ctx.ask(self.shop, Price("apple")).within(Duration::from_secs(1)).then(|this, answer, _| {
///             this.paid.send(answer.unwrap_or(0)).unwrap();
///         });
///     }
/// }
/// # let system = System::start()?;
/// # let (paid, received) = mpsc::channel();
/// # system.spawn(Customer { shop: system.spawn(Shop), paid });
/// # assert_eq!(received.recv()?, 3);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is sent before `then`, `pipe_to_self` or `.await`"]
pub struct ContextAsk<'a, A: Actor, M: Message> {
    ctx: &'a mut Context<A>,
    /// The request, not sent yet.
    ask: Ask<M>,
}

impl<A: Actor, M: Message> IntoFuture for ContextAsk<'_, A, M> {
    type Output = Result<M::Reply, AskError>;
    type IntoFuture = Ask<M>;

    fn into_future(self) -> Ask<M> {
        self.ask
    }
}

/// A trait that no type implements: the bound of [`ContextAsk::wait`].
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "an actor does not wait for an answer: it would hold its worker",
    label = "a handler would block here",
    note = "in a handler, write `.then(|this, answer, ctx| ..)` or `.pipe_to_self(..)`; in an `async` handler, `.await`"
)]
pub trait MayBlock {}

impl<A: Actor, M: Message> ContextAsk<'_, A, M> {
    /// Sets a deadline: the answer is [`AskError::Deadline`] if it takes longer. The resolution is 1 ms.
    pub fn within(mut self, deadline: Duration) -> Self {
        self.ask = self.ask.within(deadline);
        self
    }

    /// Cannot be called: the compiler's error says what to write.
    #[doc(hidden)]
    pub fn wait(self) -> Result<M::Reply, AskError>
    where
        Self: MayBlock,
    {
        unreachable!("no type may block")
    }

    /// Sends the request, and calls `then` with the answer as a message of this actor.
    ///
    /// `then` is called also after a restart of this actor ([`Context::incarnation`] tells), and not at all after its
    /// end.
    ///
    /// A closure cannot follow an actor to another theater. If the actor has migrated before the answer comes, the
    /// answer is a dead letter, and `then` is not called. Mobile actors use [`pipe_to_self`](ContextAsk::pipe_to_self).
    pub fn then<F>(self, then: F)
    where
        F: FnOnce(&mut A, Result<M::Reply, AskError>, &mut Context<A>) + Send + 'static,
    {
        let asker = self.ctx.cx.address();
        self.send(Box::new(Continuation { asker, then, request: PhantomData::<fn(M)> }));
    }

    /// Sends the request, and sends this actor the message that `message` makes of the answer.
    ///
    /// The new message queues behind earlier mail, like any other. It reaches the actor in any incarnation and any
    /// theater.
    ///
    /// `message` is called once, in the theater that asked. It is dropped if the actor has ended.
    ///
    /// The new message needs a wire form if the actor may be in another theater. If the actor has migrated and the
    /// asking theater ends before the answer comes, the answer is a dead letter.
    ///
    /// # Panics
    /// If `message` panics, the actor crashes. If the actor is in another theater by then, nothing is sent and the
    /// panic is reported.
    ///
    /// # Examples
    ///
    /// ```
    /// # use playhouse_actor::*;
    /// # struct Peel(u32);
    /// # impl Message for Peel { type Reply = u32; }
    /// # struct Helper;
    /// # impl Actor for Helper {}
    /// # impl Handler<Peel> for Helper {
    /// #     fn handle(&mut self, peel: Peel, _: &mut Context<Self>) -> u32 { peel.0 }
    /// # }
    /// struct Peeled(Result<u32, AskError>);
    /// # impl Message for Peeled { type Reply = (); }
    /// # struct Chef { helper: ActorRef<Helper>, peeled: u32 }
    /// # impl Actor for Chef {}
    /// impl Handler<Peel> for Chef {
    ///     fn handle(&mut self, peel: Peel, ctx: &mut Context<Self>) -> u32 {
    ///         ctx.ask(self.helper, peel).pipe_to_self(Peeled);
    ///         self.peeled
    ///     }
    /// }
    /// impl Handler<Peeled> for Chef {
    ///     fn handle(&mut self, peeled: Peeled, _: &mut Context<Self>) {
    ///         self.peeled += peeled.0.unwrap_or(0);
    ///     }
    /// }
    /// # let system = System::start().unwrap();
    /// # let helper = system.spawn(Helper);
    /// let chef = system.spawn(Chef { helper, peeled: 0 });
    /// chef.tell(Peel(4));
    /// system.run_until_idle();
    /// assert_eq!(chef.ask(Peel(1)).wait(), Ok(4));
    /// # system.shutdown().unwrap();
    /// ```
    #[doc(alias("pipe_to", "pipe"))]
    pub fn pipe_to_self<N, Mode>(self, message: impl FnOnce(Result<M::Reply, AskError>) -> N + Send + 'static)
    where
        N: HandledBy<A, Mode>,
    {
        let asker = self.ctx.this();
        let tell = move |answer| asker.tell(message(answer));
        self.send(Box::new(Pipe { asker: asker.address, tell, request: PhantomData::<fn(M)> }));
    }

    fn send(self, back: Box<dyn TakeAnswer<M::Reply>>) {
        self.ask.send_for(|within| match within {
            None => ReplyTo::then(back),
            Some(within) => {
                with_current_system(|system| ReplyTo::timed(back, within, system.expect("a handler runs on a worker")))
            }
        });
    }
}
