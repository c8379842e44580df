//! Asks: messages with answers. Every ask ends, and its error says why.

pub(crate) mod context;
pub(crate) mod deadline;
pub(crate) mod recipient;
pub(crate) mod reentrant;
pub(crate) mod reply;
pub(crate) mod returning;

use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as PollContext, Poll, Waker};
use std::time::Duration;

use playhouse_executor::{Borrowing, RequestPort, Sleeper, SystemCore, WaitOutside, with_current_system};

use crate::actor::ActorId;
use crate::actor::names::Label;
use crate::actor::outside::assert_outside;
use crate::answer::error::AskError;
use crate::answer::inherited_deadline::{Due, cap};
use crate::answer::reply_to::{Asker, ReplyTo, Slot};
use crate::answer::wait_graph::{Attempt, Waiting, polled};
use crate::ask::deadline::Deadline;
use crate::ask::recipient::AskTarget;
use crate::message::Message;

/// The port to a receiver of requests of type `M`.
pub(crate) type RequestTo<M> = RequestPort<M, ReplyTo<<M as Message>::Reply>>;

/// A request and its answer: see [`ActorRef::ask`](crate::ActorRef::ask). The future sends the request at its first
/// poll.
///
/// # Panics
/// If the future is polled after it has returned the answer.
///
/// # Cancel safety
/// An ask that is dropped before its first poll sends nothing. An ask that is dropped while it waits takes its request
/// back if no handler has begun it. A handler that runs continues, and its answer is dropped.
///
/// Another theater learns a moment later that a request is taken back. A handler of that theater may begin the request
/// in between.
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
/// # use std::time::Duration;
/// let counter = system.spawn(Counter::default());
/// let answer = counter.ask(Get).within(Duration::from_secs(1)).wait()?;
/// assert_eq!(answer, 0);
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "an ask is sent when it is awaited or waited for"]
pub struct Ask<M: Message> {
    to: RequestTo<M>,
    /// The type of the receiver, for reports.
    actor: &'static str,
    /// The request, until it is sent.
    request: Option<M>,
    within: Option<Duration>,
    slot: HeldSlot<M::Reply>,
    /// The edge from the asker to the receiver in the graph of waiting actors. The future drops the edge when it
    /// returns the answer.
    waiting: Option<Waiting>,
    timer: Option<Deadline>,
    /// The waiting state of an asker that is no actor of the receiver's system.
    outside: Option<WaitOutside>,
}

/// The slot for the answer: from the first poll until the future has returned the answer. A drop in between takes the
/// request back.
///
/// This type has the destructor, and [`Ask`] has none: a large request can therefore be moved out of an ask that is
/// consumed, without copies on the stack.
struct HeldSlot<R>(Option<Arc<Slot<R>>>);

impl<R> Drop for HeldSlot<R> {
    fn drop(&mut self) {
        if let Some(slot) = &self.0 {
            slot.abandon();
        }
    }
}

// No field is ever pinned.
impl<M: Message> Unpin for Ask<M> {}

impl<M: Message> Ask<M> {
    #[inline]
    pub(crate) fn new<Mode>(to: impl AskTarget<M, Mode>, message: M) -> Self {
        let (to, actor, slot) = (to.requests(), to.type_for_reports(), HeldSlot(None));
        Ask { to, actor, request: Some(message), within: None, slot, waiting: None, timer: None, outside: None }
    }

    /// Sends the request with the answer's target that `reply` makes. `reply` receives the deadline, if there is one.
    #[inline]
    pub(crate) fn send_for(mut self, reply: impl FnOnce(Option<Duration>) -> ReplyTo<M::Reply>) {
        let reply = reply(self.within);
        self.to.request(&mut self.request, reply, None);
    }

    /// Sends the request and blocks this thread until the answer comes. In a simulated system, this call runs the
    /// system until then.
    ///
    /// # Errors
    /// [`AskError`]: the reason for which there is no answer.
    ///
    /// # Panics
    /// Inside an actor, because it would hold the worker. Use `.await` in an async handler, or [`Context::ask`] in a
    /// sync one.
    ///
    /// If the ask was polled before.
    ///
    /// [`Context::ask`]: crate::Context::ask
    #[track_caller]
    pub fn wait(mut self) -> Result<M::Reply, AskError> {
        assert_outside("`.wait()`", "`.await` the ask in an async handler, or use `ctx.ask(..).then(..)`");
        if self.request.is_none() {
            panic!("`.wait()` was called on an ask that was polled before: `.await` it to its end")
        }
        let Some(blocked) = Blocked::begin(self.to.raw().system(), self.within) else {
            return Err(if self.to.raw().is_nowhere() { AskError::Stopped } else { AskError::Shutdown });
        };
        self.to.request(&mut self.request, ReplyTo::slot(&blocked.slot), None);
        blocked.until_answered()
    }
}

/// A thread that waits for an answer. It knows no message and no receiver, so its code is compiled once for each type
/// of answers.
struct Blocked<R> {
    _outside: WaitOutside,
    _timer: Option<Deadline>,
    deadline: Option<Duration>,
    slot: Arc<Slot<R>>,
    system: Arc<SystemCore>,
}

impl<R: Send + 'static> Blocked<R> {
    /// Begins to wait. Returns `None` if the system does not exist any more.
    #[inline(never)]
    fn begin(system: u16, within: Option<Duration>) -> Option<Blocked<R>> {
        let system = SystemCore::by_id(system)?;
        let slot = Slot::new();
        {
            let mut state = slot.lock();
            state.thread = Some(std::thread::current());
            state.due = within.map(|within| Due::new(&system, within));
        }
        let deadline = within.map(|within| system.now().saturating_add(within));
        let timer = within.map(|within| Deadline::start(&system, within, &slot, false));
        let outside = system.wait_outside(&slot);
        Some(Blocked { _outside: outside, _timer: timer, deadline, slot, system })
    }

    #[inline(never)]
    fn until_answered(self) -> Result<R, AskError> {
        let Blocked { system, slot, deadline, .. } = &self;
        let mut answer = None;
        system.block_until(*deadline, &mut || {
            answer = answer.take().or_else(|| slot.take());
            answer.is_some()
        });
        if answer.is_none() && system.config().simulated.is_none() {
            // The deadline has passed. The worker with the timer has not reached it yet, or has ended.
            slot.expire();
            answer = slot.take();
        }
        // Only a simulated system returns without an answer: nothing is left to do in it that could bring one, or
        // another thread has ended it. In the second case the request was dropped, unless this thread came too late to
        // send it.
        answer.or_else(|| slot.take()).unwrap_or_else(|| {
            slot.abandon();
            Err(if system.is_closed() { AskError::Shutdown } else { AskError::Unanswered })
        })
    }
}

/// The result of [`Ask::send`].
struct Sent {
    /// The ask's deadline, and the system that keeps the time.
    timed: Option<(Duration, Arc<SystemCore>)>,
    waiting: Option<Waiting>,
    /// The request has become a message, and its answer will wake the asker.
    wakes: bool,
    /// The asker is no actor, and has run the receiver's worker.
    was_run_here: bool,
}

impl<M: Message> Ask<M> {
    /// Sends the request, or runs its handler on this stack. The slot holds the answer at once if that handler has
    /// ended, or if the wait would close a cycle.
    ///
    /// The edge of a request that becomes a message is added before the message is sent. Another thread may otherwise answer it, or ask the
    /// asker, before the asker's poll has returned. If the request's handler runs on the asker's stack, the edge is added when that handler
    /// has to wait, or a handler above it on the stack.
    fn send(
        (to, actor): (RequestTo<M>, &'static str),
        within: Option<Duration>,
        message: &mut Option<M>,
        slot: &Arc<Slot<M::Reply>>,
        waker: &Waker,
    ) -> Sent {
        let timed = cap(polled(), within).and_then(|within| Some((within, SystemCore::by_id(to.raw().system())?)));
        if let Some((within, system)) = &timed {
            slot.lock().due = Some(Due::new(system, *within));
        }
        let reply = ReplyTo::slot(slot);
        let attempt = Attempt::begin(Label::of_type(actor, ActorId(to.raw())));
        let mut sent = Sent { timed, waiting: None, wakes: false, was_run_here: false };
        // Returns `Some(None)` for an asker that is no actor, and `None` if the edge closes a cycle.
        let wait = || {
            let Some(attempt) = &attempt else { return Some(None) };
            match attempt.note(Arc::<Slot<M::Reply>>::clone(slot)) {
                Ok(waiting) => {
                    slot.lock().edge = Some(waiting.edge);
                    Some(Some(waiting))
                }
                Err(path) => {
                    slot.answer(Err(AskError::Cycle(path)));
                    None
                }
            }
        };
        let mut becomes_message = false;
        let borrowing = attempt.is_none().then(Borrowing::begin);
        to.request(
            message,
            reply,
            Some(&mut || {
                becomes_message = true;
                let Some(edge) = wait() else { return false };
                if edge.is_none() {
                    // This asker is no actor, and may run the handler now. If the slot has no answer after that, it
                    // records the asker.
                    return true;
                }
                // A handler that waits for several answers is polled once for all that have come.
                let sleeper = edge.as_ref().filter(|edge| edge.is_only).and_then(|_| Sleeper::polled_with(waker));
                slot.lock().asker = Some(sleeper.map_or_else(|| Asker::Task(waker.clone()), Asker::Handler));
                sent.waiting = edge;
                // A full mailbox may refuse the request at once.
                sent.wakes = !to.raw().is_bounded();
                true
            }),
        );
        if let Some(borrowing) = borrowing {
            sent.was_run_here = borrowing.run(|| slot.is_over());
        }
        if !becomes_message && attempt.is_some() && !slot.is_over() {
            // The handler was begun on this stack, and waits.
            sent.waiting = wait().flatten();
        }
        sent
    }
}

/// Returns whether this thread has run the handlers of many asks, and its task must yield to other tasks. A task whose
/// answers are always ready would never yield by itself.
fn has_run_many() -> bool {
    /// About 20 µs of short handlers.
    const MANY: u32 = 64;
    thread_local! {
        static RUN: Cell<u32> = const { Cell::new(0) };
    }
    let run = RUN.get() + 1;
    RUN.set(run % MANY);
    run == MANY
}

impl<M: Message> Future for Ask<M> {
    type Output = Result<M::Reply, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut PollContext<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let is_first = this.request.is_some();
        if is_first {
            this.slot.0 = Some(Slot::new());
        }
        let Some(slot) = &this.slot.0 else { panic!("an ask was polled again after it had returned the answer") };
        let sent =
            is_first.then(|| Self::send((this.to, this.actor), this.within, &mut this.request, slot, cx.waker()));
        if sent.as_ref().is_some_and(|sent| sent.was_run_here) && slot.is_over() && has_run_many() {
            // The task yields before it returns the answer.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let wakes = sent.as_ref().is_some_and(|sent| sent.wakes);
        if !wakes {
            let mut state = slot.lock();
            if let Some(answer) = state.progress.take() {
                drop(state);
                (this.slot.0, this.waiting, this.outside) = (None, None, None);
                return Poll::Ready(answer);
            }
            let is_known = matches!(&state.asker, Some(Asker::Task(waker)) if waker.will_wake(cx.waker()));
            if !is_known {
                // A waker may call any code when it is cloned or dropped. Both therefore happen without the lock, and
                // the answer is checked again afterwards.
                drop(state);
                let waker = cx.waker().clone();
                state = slot.lock();
                if let Some(answer) = state.progress.take() {
                    drop(state);
                    drop(waker);
                    (this.slot.0, this.waiting, this.outside) = (None, None, None);
                    return Poll::Ready(answer);
                }
                let former = state.asker.replace(Asker::Task(waker));
                drop(state);
                drop(former);
            }
        }
        if let Some(Sent { timed, waiting, .. }) = sent {
            this.timer = timed.map(|(within, system)| Deadline::start(&system, within, slot, true));
            this.waiting = waiting;
            let system = this.to.raw().system();
            let is_inside = with_current_system(|current| current.is_some_and(|current| current.id() == system));
            if !is_inside {
                // The slot knows the asker by now. An answer that comes at once wakes it.
                this.outside = SystemCore::by_id(system).map(|system| system.wait_outside(slot));
            }
        }
        Poll::Pending
    }
}
