//! What a handler is given: its actor's own view of the world.

use std::error::Error;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use playhouse_executor::{Address, Failure, Port, Sends, with_current_system, wrap_cx};
use serde::{Deserialize, Serialize};

use crate::actor::any::{ActorType, AnyActor};
use crate::actor::group::Group;
use crate::actor::reference::{ActorRef, AskTarget};
use crate::actor::spawn::{SpawnError, SpawnOptions};
use crate::actor::{Actor, ActorId, ActorState, Notify, Terminated, Watch, Watcher};
use crate::ask::reply_to::{ReplyTo, TakeAnswer};
use crate::ask::{Ask, AskError};
use crate::message::mail::{Continuation, Pipe, Start, TerminatedMail};
use crate::message::{HandledBy, Message, Repeated};
use crate::migration::Mobile;
use crate::system::System;
use crate::timer::receive_timeout::Idle;
use crate::timer::timers::{Copying, Pace, Timer};

wrap_cx! {
    /// The context of a handler, given besides its message.
    pub struct Context<A: Actor>(ActorState<A>);
}

/// Names a timer of an actor. An actor that moves takes its timers along, so it can keep the key in its state. To another actor the key means
/// nothing, or one of that actor's own timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TimerKey(u64);

impl<A: Actor> Context<A> {
    pub(crate) fn id(&self) -> ActorId {
        ActorId(self.cx.address().raw())
    }

    /// What an asker is told where the handler has returned `answer`.
    #[inline]
    pub(crate) fn unless_failed<R>(&mut self, answer: R) -> Result<R, AskError> {
        if self.cx.has_failed() { Err(AskError::Panicked) } else { Ok(answer) }
    }

    /// Whether the handler that runs has called [`Context::fail`].
    pub(crate) fn has_failed(&mut self) -> bool {
        self.cx.has_failed()
    }

    /// The actor itself.
    #[doc(alias = "me")]
    #[doc(alias = "myself")]
    #[doc(alias = "self_ref")]
    #[doc(alias = "actor_ref")]
    #[doc(alias = "address")]
    #[inline(always)]
    pub fn this(&self) -> ActorRef<A> {
        ActorRef::new(self.cx.address())
    }

    /// Starts an actor near this one, which goes on when this one ends (children that end and are restarted with their parent are those of a
    /// [`Supervisor`](crate::Supervisor)): on a stage of the same worker, by turns; a [dedicated](crate::Placement::Dedicated)
    /// actor's children are put on any stage.
    ///
    /// The child's `started` is run before any message to it. When else is left open: mostly before this returns, but as a
    /// message of its own for a dedicated actor's child, for one of a large family, and while others wait for the worker.
    #[inline]
    pub fn spawn<B: Actor>(&mut self, actor: B) -> ActorRef<B> {
        match playhouse_executor::spawn_near(ActorState { actor }, Start) {
            Ok(address) => ActorRef::new(address),
            Err((incarnation, _)) => self.system().spawn(incarnation.actor),
        }
    }

    /// Starts an actor with options.
    ///
    /// # Panics
    /// Where [`Context::try_spawn_with`] returns an error.
    pub fn spawn_with<B: Actor>(&mut self, options: SpawnOptions, actor: B) -> ActorRef<B> {
        self.try_spawn_with(options, actor).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts an actor with options.
    ///
    /// # Errors
    /// The placement is not possible in this system.
    pub fn try_spawn_with<B: Actor>(&mut self, options: SpawnOptions, actor: B) -> Result<ActorRef<B>, SpawnError> {
        with_current_system(|system| {
            crate::actor::spawn::spawn(system.expect("a handler runs on a worker"), options, actor)
        })
    }

    /// The group of this actor: actors started in it share this actor's stage, and are members of its group.
    ///
    /// An actor that was started in none is no member of one: what this returns then is its stage only, and who is started there
    /// moves alone.
    ///
    /// A [dedicated](crate::Placement::Dedicated) actor's thread takes nobody else: its group shares one of the common
    /// stages, the same at each call.
    pub fn group(&self) -> Group {
        // The stages of dedicated actors are numbered behind the common ones.
        let (system, address) = (self.system(), self.cx.address().raw());
        let stage = usize::from(address.stage()) % system.stages();
        Group::around(ActorId(address), stage as u16, &system)
    }

    /// Stops this actor after this message. What is queued for it becomes dead letters.
    #[inline]
    pub fn stop(&mut self) {
        self.cx.stop();
    }

    /// Ends this message as a crash: the supervisor is told `error`, as it would be told a panic. The error may also be a text.
    /// A supervisor tells errors apart by their types, so one that it is to know has a type of its own.
    ///
    /// The handler still runs to its end. Its answer is dropped, and the asker gets [`AskError::Panicked`]. If it calls [`Context::stop`] later, the actor
    /// ends by the error, and its supervisor does not decide.
    #[track_caller]
    pub fn fail(&mut self, error: impl Into<Box<dyn Error + Send + Sync>>) {
        self.cx.fail(Failure::new(error.into()));
    }

    /// Does the same as [`Context::fail`] for a library that acts for the program. The report names no place, because the library's lines would not help its reader.
    #[doc(hidden)]
    pub fn fail_without_place(&mut self, error: impl Error + Send + 'static) {
        self.cx.fail(Failure::without_place(error));
    }

    /// Sends `message` to `to`; the answer is handled by the function given to `then`, or as what `pipe_to_self` makes of it, as a message of its own.
    ///
    /// This actor goes on with other messages meanwhile.
    pub fn ask<M: Message, Mode>(&mut self, to: impl AskTarget<M, Mode>, message: M) -> ContextAsk<'_, A, M> {
        ContextAsk { ctx: self, ask: Ask::new(to, message) }
    }

    /// Asks for a [`terminated`](Actor::terminated) call when `who` ends; at once if it has ended. Watching twice is
    /// watching once.
    ///
    /// A mobile actor goes on watching `who` from each theater that it moves to, if other theaters may send to `who`. If `who` has ended
    /// meanwhile, the reason is [`NotAlive`](crate::StopReason::NotAlive).
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

    /// `moves_along`: the notice is for one of those that the actor is known to watch.
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

    /// As [`Context::watch`], for an actor of any type.
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

    /// Takes such a watch back, as [`Context::unwatch`].
    pub fn unwatch_any(&mut self, who: AnyActor) {
        who.unwatch(Watcher::last(self.id()));
        self.forget_watched(who.id());
    }

    /// Takes a watch back. A notice that is under way may still arrive.
    pub fn unwatch<B: Actor>(&mut self, who: ActorRef<B>) {
        who.address.send_control(Watch::End { watcher: Watcher::last(self.id()) });
        self.forget_watched(who.id());
    }

    /// Forgets that the actor watches `who`. Returns whether it did.
    pub(crate) fn forget_watched(&mut self, who: ActorId) -> bool {
        let forgotten = self.cx.with_extra_if_any(|extra| {
            let nth = extra.watching.iter().position(|watched| watched.id() == who)?;
            Some(extra.watching.remove(nth))
        });
        forgotten.flatten().is_some()
    }

    /// Sends `message` to this actor after `delay` (millisecond resolution, never early).
    pub fn send_after<M, Mode>(&mut self, delay: Duration, message: M) -> TimerKey
    where
        M: HandledBy<A, Mode>,
    {
        self.start_timer((delay, Pace::Once), message, None)
    }

    /// Sends a clone of `message` to this actor again and again, once in each `period`, counted from now: its beat does not
    /// shift, however late some of them come or are handled.
    ///
    /// At most one of its messages waits. Where one is due while the last one was not handled yet, it is left out, and so are
    /// those of periods in which nothing could be sent (the worker was busy, the computer asleep).
    ///
    /// # Panics
    /// If `period` is zero.
    pub fn send_every<M, Mode>(&mut self, period: Duration, message: M) -> TimerKey
    where
        M: HandledBy<A, Mode> + Repeated,
    {
        assert!(!period.is_zero(), "send_every with a period of zero would never let anything else run");
        self.start_timer((period, Pace::Every(period)), message, Some(|message| Ok(message.clone())))
    }

    /// Sends a clone of `message` to this actor again and again, first after `pause`, each `pause` after the former was
    /// *handled*, to the end of an async handler. So there is always so much time for others.
    ///
    /// # Panics
    /// If `pause` is zero.
    pub fn send_with_fixed_delay<M, Mode>(&mut self, pause: Duration, message: M) -> TimerKey
    where
        M: HandledBy<A, Mode> + Repeated,
    {
        assert!(!pause.is_zero(), "send_spaced with a pause of zero would never let anything else run");
        self.start_timer((pause, Pace::Spaced(pause)), message, Some(|message| Ok(message.clone())))
    }

    /// Has a timer of this actor go on when the actor is restarted, at the same beat. Others end with the state that has set
    /// them.
    ///
    /// [`started`](Actor::started) is called after each restart: what it sets needs not be kept, and would be there twice.
    /// False: there is no such timer (any more).
    pub fn keep_timer(&mut self, key: TimerKey) -> bool {
        let keep = |timer: &mut Timer| timer.kept = true;
        self.cx.with_extra_if_any(|extra| extra.timers.get_mut(&key.0).map(keep).is_some()).unwrap_or(false)
    }

    /// Has [`receive_timeout`](Actor::receive_timeout) called whenever this actor has handled no message for so long (millisecond
    /// resolution, never early), instead of what was set before.
    ///
    /// Whatever a handler handles counts as a message, also timers, answers and death notices; requests such as a watch do not.
    /// The time begins when a handler has ended, and now. The timeout goes along to another theater, where its time begins
    /// anew. It ends with a restart: `started` may set it again.
    ///
    /// As with a periodic timer, the system is never idle meanwhile.
    ///
    /// # Panics
    /// If `after` is zero.
    pub fn set_receive_timeout(&mut self, after: Duration) {
        assert!(!after.is_zero(), "a receive timeout of zero would be over all the time");
        self.cancel_receive_timeout();
        let address = self.cx.address();
        self.cx.note_handled(true);
        self.cx.with_extra(|extra| {
            extra.next_timer += 1;
            extra.idle = Some(Idle::begin(address, extra.next_timer, after));
        });
    }

    /// Takes the receive timeout back, if there is one.
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

    /// Forgets a timer of this actor: its message will not be handled, even if it has been sent already.
    pub fn cancel(&mut self, key: TimerKey) {
        if let Some(timer) = self.cx.with_extra_if_any(|extra| extra.timers.remove(&key.0)).flatten() {
            timer.stop();
        }
    }

    /// Asks for this actor to be taken to the theater at `theater`. It leaves between two messages, soon after this one: until then it handles here what
    /// it is sent, and what comes later follows it, in order. A request that it has made before it leaves by another one, and whose turn has not come by then,
    /// is forgotten.
    ///
    /// With it go all actors of its [group](crate::Group) that live here, once they are all between two messages.
    ///
    /// There, [`migrated`](Actor::migrated) is called. Where it cannot be taken there, [`migration_failed`](Actor::migration_failed) is called
    /// here, and it goes on as if nothing had been. Where it is in that theater already, and where the request is forgotten, neither is called.
    pub fn migrate_to(&mut self, theater: std::net::SocketAddr)
    where
        A: Mobile,
    {
        crate::migration::migrate(self.cx.address(), theater);
    }

    /// The system that this actor lives in.
    pub fn system(&self) -> System {
        with_current_system(|system| System::of(system.expect("a handler runs on a worker")))
    }

    /// Time since the system's start; virtual in simulation.
    pub fn now(&self) -> Duration {
        with_current_system(|system| system.expect("a handler runs on a worker").now())
    }

    /// The number of this actor's life here: a larger one after each restart, and when it has come back from another theater. A `then`
    /// is called in whichever life the answer finds; this tells it whether that is the one that has asked.
    pub fn incarnation(&mut self) -> u64 {
        self.cx.with_extra_if_any(|extra| extra.incarnation).unwrap_or(0)
    }

    /// The name given to this actor, if one was.
    pub fn name(&mut self) -> Option<Arc<str>> {
        self.cx.with_extra_if_any(|extra| extra.name.as_ref().map(|name| Arc::clone(name.text()))).flatten()
    }
}

impl<A: Actor> std::fmt::Debug for Context<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Context({:?})", self.this())
    }
}

/// A request of an actor, waiting to be told what to do with the answer.
///
/// An async handler may await it: `ctx.ask(to, message).await` is `to.ask(message).await`, and keeps the actor from other messages until the answer is there.
#[must_use = "nothing is sent before `then`, `pipe_to_self` or `.await`"]
pub struct ContextAsk<'a, A: Actor, M: Message> {
    ctx: &'a mut Context<A>,
    /// Not sent yet.
    ask: Ask<M>,
}

impl<A: Actor, M: Message> IntoFuture for ContextAsk<'_, A, M> {
    type Output = Result<M::Reply, AskError>;
    type IntoFuture = Ask<M>;

    fn into_future(self) -> Ask<M> {
        self.ask
    }
}

/// Implemented by no type: the bound of [`ContextAsk::wait`].
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "an actor does not wait for an answer: it would hold its worker",
    label = "a handler would block here",
    note = "in a handler, write `.then(|this, answer, ctx| ..)` or `.pipe_to_self(..)`; in an `async` handler, `.await`"
)]
pub trait MayBlock {}

impl<A: Actor, M: Message> ContextAsk<'_, A, M> {
    /// Answers [`AskError::Deadline`] if the answer takes longer. Millisecond resolution.
    pub fn within(mut self, deadline: Duration) -> Self {
        self.ask = self.ask.within(deadline);
        self
    }

    /// There is no such thing: the compiler says what to write.
    #[doc(hidden)]
    pub fn wait(self) -> Result<M::Reply, AskError>
    where
        Self: MayBlock,
    {
        unreachable!("no type may block")
    }

    /// Sends the request. `then` is called with the answer as a message of this actor, also if it was restarted meanwhile
    /// ([`Context::incarnation`] tells); not at all if it has ended.
    ///
    /// A closure cannot follow an actor to another theater. If the actor is there when the answer comes, the answer is a dead letter, and `then` is not
    /// called: see [`pipe_to_self`](ContextAsk::pipe_to_self) for actors that move.
    pub fn then<F>(self, then: F)
    where
        F: FnOnce(&mut A, Result<M::Reply, AskError>, &mut Context<A>) + Send + 'static,
    {
        let asker = self.ctx.cx.address();
        self.send(Box::new(Continuation { asker, then, request: PhantomData::<fn(M)> }));
    }

    /// Sends the request. This actor is sent what `message` makes of the answer, as any other message: behind what it was sent before, in whichever
    /// life and whichever theater it is then.
    ///
    /// `message` is called once, in the theater that was asked from; it is dropped if the actor has ended. The message needs a wire form if the
    /// actor may be in another theater. If the actor has left and the theater that was asked from ends before the answer comes, the answer is a
    /// dead letter.
    ///
    /// # Panics
    /// If `message` panics, the actor crashes. If the actor is in another theater then, nothing is sent and the panic is reported.
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
