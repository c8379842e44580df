//! Streams whose items become messages of an actor.
//!
//! The stream is in the actor's cell, and is polled while the actor runs, when a [`Ready`]
//! arrives. A `Ready` is sent when the stream is attached, when its waker is called, and behind the messages of the
//! items that the stream has given. The actor therefore handles these messages before the stream is polled again, and
//! the stream ends with the actor.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context as PollContext, Poll, Wake, Waker};

use futures_core::Stream;
use playhouse_executor::{Address, AwayCx, Cx, Envelope, MailKind, Undelivered, with_current_system};

use crate::actor::context::Context;
use crate::actor::{Actor, ActorState};
use crate::message::HandledBy;

/// The most items that a stream gives before the actor handles them.
const ITEMS_MAX: usize = 16;

/// A key that names a stream attached to an actor: see [`Context::attach`].
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use std::{pin::Pin, task::{Context as PollContext, Poll}};
/// # struct Pings;
/// # impl futures_core::Stream for Pings {
/// #     type Item = ();
/// #     fn poll_next(self: Pin<&mut Self>, _: &mut PollContext<'_>) -> Poll<Option<()>> { Poll::Pending }
/// # }
/// # struct Ping;
/// # impl Message for Ping { type Reply = (); }
/// # struct Mute;
/// # impl Message for Mute { type Reply = bool; }
/// struct Listener {
///     pings: Option<StreamKey>,
/// }
///
/// impl Actor for Listener {
///     fn started(&mut self, ctx: &mut Context<Self>) {
///         self.pings = Some(ctx.attach(Pings, |()| Ping)); // `Pings` is a stream
///     }
/// }
/// # impl Handler<Ping> for Listener { fn handle(&mut self, _: Ping, _: &mut Context<Self>) {} }
///
/// impl Handler<Mute> for Listener {
///     fn handle(&mut self, _: Mute, ctx: &mut Context<Self>) -> bool {
///         self.pings.take().is_some_and(|pings| ctx.detach(pings))
///     }
/// }
/// # let system = System::start()?;
/// # assert!(system.spawn(Listener { pings: None }).ask(Mute).wait()?);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamKey(u64);

impl<A: Actor> Context<A> {
    /// Attaches `stream`: this actor receives the message that `message` makes of each item, in order, until the stream
    /// ends.
    ///
    /// A stream is a [`Stream`] of the crate futures. The crate tokio-stream makes one of a receiver of tokio
    /// (`ReceiverStream::new`) or of an iterator (`tokio_stream::iter`).
    ///
    /// The stream is polled while the actor runs, and only when the actor has handled the items before: at most 16
    /// items of each stream wait in the mailbox. A message that its guard defers counts as handled.
    ///
    /// If the mailbox is bounded and full, the item waits for room. With
    /// [`OnFull::DropOldest`](crate::OnFull::DropOldest) the oldest messages are dropped instead. In a system with
    /// `SystemBuilder::tokio` the stream is polled in the runtime's context.
    ///
    /// The stream is dropped when it ends, when it is [detached](Context::detach), and when the actor ends, restarts,
    /// or begins a migration, even one that fails. It is no longer polled after a shutdown of the system has begun. The
    /// actor receives no notice of the stream's end: chain an item of your own to the stream for that.
    ///
    /// In a simulation, time passes only when nothing is left to do. It stands still while a stream always has an item,
    /// or wakes itself.
    ///
    /// # Panics
    /// This call does not panic. A panic in the stream or in `message` is a crash of the actor, and drops the stream.
    ///
    /// ```
    /// # use playhouse_actor::{Actor, Context, Handler, Message, System};
    /// # use std::{pin::Pin, task::{Context as PollContext, Poll}};
    /// # struct Numbers(std::ops::Range<u32>);
    /// # impl futures_core::Stream for Numbers {
    /// #     type Item = u32;
    /// #     fn poll_next(mut self: Pin<&mut Self>, _: &mut PollContext<'_>) -> Poll<Option<u32>> { Poll::Ready(self.0.next()) }
    /// # }
    ///
    /// struct Add(u32);
    /// impl Message for Add {
    ///     type Reply = ();
    /// }
    /// struct Sum;
    /// impl Message for Sum {
    ///     type Reply = u32;
    /// }
    ///
    /// struct Counter(u32);
    ///
    /// impl Actor for Counter {
    ///     fn started(&mut self, ctx: &mut Context<Self>) {
    ///         let numbers = Numbers(0..5); // a stream
    ///         ctx.attach(numbers, Add);
    ///     }
    /// }
    /// impl Handler<Add> for Counter {
    ///     fn handle(&mut self, Add(number): Add, _: &mut Context<Self>) {
    ///         self.0 += number;
    ///     }
    /// }
    /// impl Handler<Sum> for Counter {
    ///     fn handle(&mut self, _: Sum, _: &mut Context<Self>) -> u32 {
    ///         self.0
    ///     }
    /// }
    ///
    /// let system = System::start().unwrap();
    /// let counter = system.spawn(Counter(0));
    /// system.run_until_idle();
    /// assert_eq!(counter.ask(Sum).wait(), Ok(10));
    /// ```
    #[doc(alias("add_stream", "attach_stream"))]
    pub fn attach<S, M, Mode>(&mut self, stream: S, message: impl FnMut(S::Item) -> M + Send + 'static) -> StreamKey
    where
        S: Stream + Send + 'static,
        M: HandledBy<A, Mode>,
    {
        static LAST: AtomicU64 = AtomicU64::new(0);
        // Relaxed: the numbers only have to differ.
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let address = self.cx.address();
        let stream_waker = Arc::new(StreamWaker { address, number, state: AtomicU8::new(PENDING) });
        let post = |message: M, to| message.try_post(to);
        let flow =
            Flow { stream: Box::pin(stream), message, post, held: None, stream_waker: Arc::clone(&stream_waker) };
        self.cx.with_extra(|extra| extra.streams().insert(number, Some(Box::new(flow))));
        stream_waker.ring();
        StreamKey(number)
    }

    /// Drops an attached stream. Messages that were made of its items already are handled. Returns whether the stream
    /// was still attached.
    pub fn detach(&mut self, StreamKey(number): StreamKey) -> bool {
        let detached = self.cx.with_extra(|extra| extra.streams().remove(&number));
        detached.is_some()
    }
}

/// The streams of an actor by their numbers. A stream that is being polled is taken out of the map.
pub(crate) type Streams<A> = BTreeMap<u64, Option<Box<dyn Attached<A>>>>;

/// The state of a cell with the actor's streams.
pub(crate) trait HasStreams<A> {
    fn streams(&mut self) -> &mut Streams<A>;
}

/// A stream with items of any type.
pub(crate) trait Attached<A: Actor>: Send {
    /// Sends the actor the items that are ready. Returns whether the stream has ended.
    fn flow(&mut self) -> bool;
}

struct Flow<A: Actor, S, F, M> {
    stream: Pin<Box<S>>,
    message: F,
    post: fn(M, Address<ActorState<A>>) -> Result<(), M>,
    /// The message that had no room in the mailbox.
    held: Option<M>,
    stream_waker: Arc<StreamWaker<A>>,
}

impl<A, S, F, M> Attached<A> for Flow<A, S, F, M>
where
    A: Actor,
    S: Stream + Send + 'static,
    F: FnMut(S::Item) -> M + Send + 'static,
    M: Send + 'static,
{
    fn flow(&mut self) -> bool {
        if with_current_system(|system| system.is_some_and(|system| system.is_draining())) {
            return false;
        }
        self.stream_waker.state.store(POLLED, Ordering::SeqCst);
        let waker = Waker::from(Arc::clone(&self.stream_waker));
        let mut cx = PollContext::from_waker(&waker);
        for _ in 0..ITEMS_MAX {
            let message = match self.held.take() {
                Some(message) => message,
                None => match self.stream.as_mut().poll_next(&mut cx) {
                    Poll::Ready(Some(item)) => (self.message)(item),
                    Poll::Ready(None) => return true,
                    Poll::Pending => {
                        self.stream_waker.is_pending();
                        return false;
                    }
                },
            };
            if let Err(message) = (self.post)(message, self.stream_waker.address) {
                self.held = Some(message);
                break;
            }
        }
        // The `Ready` queues behind the messages that were sent, or behind those that leave no room.
        self.stream_waker.send_ready();
        false
    }
}

/// The stream is not polled before it is woken.
const PENDING: u8 = 0;
/// The stream is being polled.
const POLLED: u8 = 1;
/// The stream was woken while it is being polled. A `Ready` sent now would come before the items of this poll, and 16
/// more could follow behind it.
const WOKEN: u8 = 2;
/// A `Ready` is under way.
const READY: u8 = 3;

/// The waker of a stream.
struct StreamWaker<A: Actor> {
    address: Address<ActorState<A>>,
    number: u64,
    state: AtomicU8,
}

impl<A: Actor> StreamWaker<A> {
    fn ring(&self) {
        let woken = |state| match state {
            PENDING => Some(READY),
            POLLED => Some(WOKEN),
            _ => None,
        };
        if self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, woken) == Ok(PENDING) {
            self.address.send_request(Ready { number: self.number });
        }
    }

    /// Notes that the stream has no item now.
    fn is_pending(&self) {
        if self.state.compare_exchange(POLLED, PENDING, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            self.send_ready();
        }
    }

    /// Sends a `Ready`, because the stream has to be polled again.
    fn send_ready(&self) {
        self.state.store(READY, Ordering::SeqCst);
        self.address.send_request(Ready { number: self.number });
    }
}

impl<A: Actor> Wake for StreamWaker<A> {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

/// A request to poll the stream of this number.
struct Ready {
    number: u64,
}

impl<A: Actor> Envelope<ActorState<A>> for Ready {
    fn run(self, _: &mut ActorState<A>, cx: &mut Cx<ActorState<A>>) {
        let number = self.number;
        let taken = cx.with_extra(|extra| extra.streams().get_mut(&number)?.take());
        let Some(mut attached) = taken else { return };
        let has_ended = attached.flow();
        let dropped = cx.with_extra(|extra| {
            if has_ended {
                extra.streams().remove(&number);
            }
            match extra.streams().get_mut(&number) {
                Some(place) => place.replace(attached),
                // The stream has ended, or was detached.
                None => Some(attached),
            }
        });
        drop(dropped);
    }

    // A bounded mailbox takes it, like an answer.
    fn describe() -> (MailKind, &'static str) {
        (MailKind::Control, "stream")
    }

    fn bounce(self, _: Undelivered) {}

    fn send_on(self, _: &mut AwayCx<ActorState<A>>) {}
}
