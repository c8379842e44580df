//! Receivers of asks: actors of a known type, and recipients of one message type.

use std::any::type_name;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use playhouse_executor::{Address, MaySend, Port, RawAddress, Requests, Sends, Undelivered};

use crate::actor::names::{ShortType, name_of};
use crate::actor::reference::{ActorRef, TrySendError, admit};
use crate::actor::{Actor, ActorId, ActorState, dead_letter};
use crate::answer::error::AskError;
use crate::answer::reply_to::ReplyTo;
use crate::ask::{Ask, RequestTo};
use crate::message::{HandledBy, Message};

impl<A: Actor> ActorRef<A> {
    /// Prepares a request: `.await` the answer in an async handler or any async code, or `.wait()` for it in a thread
    /// that runs no actor. A sync handler uses [`Context::ask`](crate::Context::ask).
    ///
    /// Nothing is sent before the answer is awaited or waited for.
    #[doc(alias("call", "gen_server_call", "request", "send"))]
    pub fn ask<M, Mode>(self, message: M) -> Ask<M>
    where
        M: HandledBy<A, Mode>,
    {
        Ask::new(self, message)
    }
}

/// A reference to an actor of any type that handles `M`, made by [`actor.recipient::<M>()`](ToRecipient::recipient).
///
/// It offers `tell`, `try_tell` and `ask` like an [`ActorRef`].
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
/// let counter = system.spawn(Counter::default());
/// let adds: Recipient<Add> = counter.recipient();
/// adds.tell(Add(4));
/// assert_eq!(counter.ask(Get).wait()?, 4);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Recipient<M: Message> {
    tells: Port<Posted<M>, Result<(), M>>,
    asks: RequestTo<M>,
}

/// References that can become a [`Recipient`].
///
/// The trait has the parameter `Mode`, which is always inferred, so that `actor.recipient::<Print>()` names the message alone. `Mode` is also why
/// `Recipient<M>` is not `From<ActorRef<A>>`: the mode in which the actor handles the message does not follow from these two types.
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
/// let counter = system.spawn(Counter::default());
/// let receivers: Vec<Recipient<Add>> = vec![counter.recipient(), counter.recipient::<Add>()];
/// receivers.iter().for_each(|receiver| receiver.tell(Add(1)));
/// assert_eq!(counter.ask(Get).wait()?, 2);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ToRecipient<A: Actor, Mode>: Sized {
    /// Returns the same reference without the actor's type: it takes only `M`.
    ///
    /// ```
    /// # use playhouse_actor::*;
    /// struct Printer;
    /// impl Actor for Printer {}
    ///
    /// struct Print(&'static str);
    /// impl Message for Print {
    ///     type Reply = usize;
    /// }
    /// impl Handler<Print> for Printer {
    ///     fn handle(&mut self, print: Print, _: &mut Context<Self>) -> usize {
    ///         print.0.len()
    ///     }
    /// }
    ///
    /// let system = System::start()?;
    /// let printer = system.spawn(Printer).recipient::<Print>();
    /// printer.tell(Print("a"));
    /// assert_eq!(printer.ask(Print("abc")).wait()?, 3);
    /// # system.shutdown()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn recipient<M>(self) -> Recipient<M>
    where
        M: HandledBy<A, Mode>;
}

impl<A: Actor, Mode> ToRecipient<A, Mode> for ActorRef<A> {
    fn recipient<M>(self) -> Recipient<M>
    where
        M: HandledBy<A, Mode>,
    {
        struct ByTell<Mode>(PhantomData<Mode>);
        impl<A: Actor, M: HandledBy<A, Mode>, Mode> Sends<ActorState<A>, Posted<M>, Result<(), M>> for ByTell<Mode> {
            fn send(to: Address<ActorState<A>>, posted: Posted<M>) -> Result<(), M> {
                match posted {
                    Posted::Anyway(message) => {
                        message.post_tell(to);
                        Ok(())
                    }
                    Posted::IfTaken(message) => message.try_post(to),
                }
            }
        }
        Recipient { tells: self.address.port::<Posted<M>, ByTell<Mode>, _>(), asks: self.requests() }
    }
}

/// A receiver of requests of type `M`: an [`ActorRef`] whose actor handles them, a [`Recipient`], or a borrow of one.
///
/// `Mode` is always inferred.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # struct Peel(u32);
/// # impl Message for Peel { type Reply = u32; }
/// # struct Peeled(Result<u32, AskError>);
/// # impl Message for Peeled { type Reply = (); }
/// /// Asks any actor that peels: an `ActorRef` or a `Recipient`.
/// struct Chef<T> {
///     helper: T,
/// }
///
/// impl<T: AskTarget<Peel, ()> + Send + 'static> Actor for Chef<T> {
///     fn started(&mut self, ctx: &mut Context<Self>) {
///         ctx.ask(self.helper, Peel(4)).pipe_to_self(Peeled);
///     }
/// }
/// # impl<T: AskTarget<Peel, ()> + Send + 'static> Handler<Peeled> for Chef<T> {
/// #     fn handle(&mut self, peeled: Peeled, _: &mut Context<Self>) { assert_eq!(peeled.0, Ok(4)); }
/// # }
/// # struct Helper;
/// # impl Actor for Helper {}
/// # impl Handler<Peel> for Helper { fn handle(&mut self, peel: Peel, _: &mut Context<Self>) -> u32 { peel.0 } }
/// # let system = System::start()?;
/// let helper = system.spawn(Helper);
/// system.spawn(Chef { helper: helper.recipient::<Peel>() });
/// # system.run_until_idle();
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "a `{M}` cannot be sent to a `{Self}`",
    label = "expected an `ActorRef`, a `Recipient<{M}>`, or a borrow of one",
    note = "the `ActorRef` of an `OwnedActor` is `*owned`"
)]
pub trait AskTarget<M: Message, Mode>: Copy {
    #[doc(hidden)]
    fn requests(self) -> RequestTo<M>;
    #[doc(hidden)]
    fn tell_it(self, message: M);
    /// Returns the type name of the receiver.
    #[doc(hidden)]
    fn type_for_reports(self) -> &'static str;
}

impl<A: Actor, M: HandledBy<A, Mode>, Mode> AskTarget<M, Mode> for ActorRef<A> {
    fn requests(self) -> RequestTo<M> {
        struct ByAsk<Mode>(PhantomData<Mode>);
        impl<A: Actor, M: HandledBy<A, Mode>, Mode> Requests<ActorState<A>, M, ReplyTo<M::Reply>> for ByAsk<Mode> {
            fn request(
                to: Address<ActorState<A>>,
                message: &mut Option<M>,
                reply: ReplyTo<M::Reply>,
                may_send: Option<MaySend<'_>>,
            ) {
                if let Some(message) = message.take() {
                    message.post_ask(to, reply, may_send);
                }
            }
        }
        self.address.request_port::<M, _, ByAsk<Mode>>()
    }

    fn tell_it(self, message: M) {
        self.tell(message);
    }

    fn type_for_reports(self) -> &'static str {
        type_name::<A>()
    }
}

/// A borrowed reference, such as one that a loop over `&self.workers` gives.
impl<M: Message, Mode, T: AskTarget<M, Mode>> AskTarget<M, Mode> for &T {
    fn requests(self) -> RequestTo<M> {
        (*self).requests()
    }

    fn tell_it(self, message: M) {
        (*self).tell_it(message);
    }

    fn type_for_reports(self) -> &'static str {
        (*self).type_for_reports()
    }
}

impl<M: Message> AskTarget<M, ()> for Recipient<M> {
    fn requests(self) -> RequestTo<M> {
        self.asks
    }

    fn tell_it(self, message: M) {
        self.tell(message);
    }

    fn type_for_reports(self) -> &'static str {
        // The type of an actor that has ended is no longer known.
        self.asks.raw().resident_name().unwrap_or(type_name::<Self>())
    }
}

/// A message on its way through a [`Recipient`].
enum Posted<M> {
    /// Sent without a limit: a thread that runs no actor blocks while the receiver's worker is overloaded.
    Anyway(M),
    /// Given back if the receiver's mailbox is full.
    IfTaken(M),
}

impl<M: Message> Clone for Recipient<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Message> Copy for Recipient<M> {}

impl<M: Message> PartialEq for Recipient<M> {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl<M: Message> Eq for Recipient<M> {}

impl<M: Message> Hash for Recipient<M> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

impl<M: Message> fmt::Debug for Recipient<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = ShortType(type_name::<M>());
        match name_of(self.id()) {
            Some(name) => write!(f, "Recipient<{message}> {name:?}"),
            None => write!(f, "Recipient<{message}>{}", self.id()),
        }
    }
}

impl<M: Message> Recipient<M> {
    /// Sends `message` without an answer, like [`ActorRef::tell`].
    #[inline]
    #[doc(alias("send", "cast", "do_send", "notify"))]
    pub fn tell(self, message: M) {
        let _sent = self.tells.send(Posted::Anyway(message));
    }

    /// Sends `message` if its receiver keeps up, like [`ActorRef::try_tell`].
    ///
    /// # Errors
    /// The errors of [`ActorRef::try_tell`].
    #[doc(alias("try_send"))]
    pub fn try_tell(self, message: M) -> Result<(), TrySendError<M>> {
        let message = admit(self.tells.raw(), message)?;
        self.tells.send(Posted::IfTaken(message)).map_err(TrySendError::Full)
    }

    /// Prepares a request, like [`ActorRef::ask`].
    #[doc(alias("call", "gen_server_call", "request", "send"))]
    pub fn ask(self, message: M) -> Ask<M> {
        Ask::new(self, message)
    }

    /// Returns a recipient that has ended.
    pub(crate) fn nowhere() -> Self {
        struct Nobody;
        impl Actor for Nobody {}
        struct Nothing;
        impl<M: Message> Sends<ActorState<Nobody>, Posted<M>, Result<(), M>> for Nothing {
            fn send(_: Address<ActorState<Nobody>>, _: Posted<M>) -> Result<(), M> {
                dead_letter::<Nobody, M>(Undelivered::Stopped);
                Ok(())
            }
        }
        impl<M: Message> Requests<ActorState<Nobody>, M, ReplyTo<M::Reply>> for Nothing {
            fn request(
                _: Address<ActorState<Nobody>>,
                _: &mut Option<M>,
                reply: ReplyTo<M::Reply>,
                _: Option<MaySend<'_>>,
            ) {
                dead_letter::<Nobody, M>(Undelivered::Stopped);
                reply.send(Err(AskError::Stopped));
            }
        }
        let nobody = RawAddress::nowhere::<ActorState<Nobody>>();
        Recipient { tells: nobody.port::<Posted<M>, Nothing, _>(), asks: nobody.request_port::<M, _, Nothing>() }
    }

    /// Returns whether the actor is known to have ended, like [`ActorRef::is_stopped`].
    pub fn is_stopped(self) -> bool {
        self.tells.raw().is_stale()
    }

    /// Returns the identity of the actor.
    pub fn id(self) -> ActorId {
        ActorId(self.tells.raw())
    }
}
