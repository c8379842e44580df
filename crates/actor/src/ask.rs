//! Asks: messages with answers. Every ask ends, and its error says why.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context as PollContext, Poll, Waker};
use std::thread::Thread;
use std::time::Duration;

use playhouse_executor::{
    Address, Borrowing, Sleeper, SystemCore, TimerKey, WaitOutside, WaitsOutside, contained, with_current_system,
};

use crate::actor::{Actor, Life};
use crate::actor_ref::ActorRef;
pub use crate::ask_error::{AskError, Phase};
use crate::deadline::{Due, cap};
use crate::message::Message;
use crate::names::Label;
use crate::outside::assert_outside;
use crate::recall::{self, Recall, TakesBack, TooLate};
use crate::waiting::{Attempt, Awaited, Edge, Waiting, polled};

/// Where an answer is waited for.
pub(crate) struct Slot<R> {
    state: Mutex<SlotState<R>>,
}

struct SlotState<R> {
    progress: Progress<R>,
    asker: Option<Asker>,
    thread: Option<Thread>,
    /// When the asker gives up.
    due: Option<Due>,
    /// If the request went to another theater.
    recall: Option<Arc<Recall>>,
    /// The actors along the cycle that the ask is part of, while its request is being taken back for that.
    cycle: Option<Vec<String>>,
    /// A handler in another theater has begun the request.
    has_begun: bool,
    /// The asker's edge in the graph of waiting actors, if the asker is an actor.
    edge: Option<Edge>,
}

/// The future that waits for an answer.
enum Asker {
    /// A future of an actor's handler, which awaits no other answer.
    Handler(Sleeper),
    Task(Waker),
}

/// What a request is handled under.
pub(crate) struct Begun {
    /// When the asker gives up.
    pub(crate) due: Option<Due>,
}

enum Progress<R> {
    Queued,
    Running,
    Answered(Result<R, AskError>),
    /// Nobody waits any more.
    Over,
}

impl<R> Progress<R> {
    /// The answer, if it is there; once.
    fn take(&mut self) -> Option<Result<R, AskError>> {
        match std::mem::replace(self, Progress::Over) {
            Progress::Answered(answer) => Some(answer),
            other => {
                *self = other;
                None
            }
        }
    }
}

impl<R> Slot<R> {
    fn new() -> Arc<Slot<R>> {
        Arc::new(Slot {
            state: Mutex::new(SlotState {
                progress: Progress::Queued,
                asker: None,
                thread: None,
                due: None,
                recall: None,
                cycle: None,
                has_begun: false,
                edge: None,
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, SlotState<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request is going to be handled; none if nobody waits for its answer any more.
    fn begin(&self) -> Option<Begun> {
        let mut state = self.lock();
        match state.progress {
            Progress::Queued => {
                state.progress = Progress::Running;
                Some(Begun { due: state.due })
            }
            _ => None,
        }
    }

    fn answer(&self, answer: Result<R, AskError>) {
        drop(self.answer_with(|_| Some(answer)));
    }

    /// Answers, if nobody has, according to how far the request has come; not if there is no answer for that. Returns the way after a request
    /// that has left.
    fn answer_with(&self, answer: impl FnOnce(Phase) -> Option<Result<R, AskError>>) -> Option<Arc<Recall>> {
        let (waker, recall) = self.note_answer(answer)?;
        if let Some(waker) = waker {
            // The waker is that of whatever polls the ask. If it panics, the actor that answers has no part in that.
            contained(|| waker.wake()).unwrap_or(());
        }
        recall
    }

    /// Does the same as [`Slot::answer_with`] without calling wakers of tasks. Wakes an asker that is an actor or a thread. Returns the waker of any other one.
    fn note_answer(
        &self,
        answer: impl FnOnce(Phase) -> Option<Result<R, AskError>>,
    ) -> Option<(Option<Waker>, Option<Arc<Recall>>)> {
        let (asker, thread, recall) = {
            let mut state = self.lock();
            let phase = match state.progress {
                Progress::Queued => Phase::Queued,
                Progress::Running => Phase::Running,
                Progress::Answered(_) | Progress::Over => return None,
            };
            let mut answer = answer(phase)?;
            if let (Err(AskError::Cycle(path)), Some(cycle)) = (&mut answer, state.cycle.take()) {
                // It was taken back in another theater, which knows no path.
                *path = cycle;
            }
            state.progress = Progress::Answered(answer);
            (state.asker.take(), state.thread.take(), state.recall.take())
        };
        if let Some(thread) = thread {
            thread.unpark();
        }
        let waker = match asker {
            Some(Asker::Handler(sleeper)) => {
                sleeper.wake();
                None
            }
            Some(Asker::Task(waker)) => Some(waker),
            None => None,
        };
        Some((waker, recall))
    }

    fn expire(&self) {
        let recall = self.answer_with(|phase| Some(Err(AskError::Deadline { phase })));
        recall::take_back(recall);
    }

    /// The request goes to another theater; none if nobody waits for its answer any more.
    fn leave(&self) -> Option<Arc<Recall>> {
        let mut state = self.lock();
        if !matches!(state.progress, Progress::Queued) {
            return None;
        }
        state.progress = Progress::Running;
        Some(Arc::clone(state.recall.insert(Arc::default())))
    }

    /// The request, which was begun, is to be sent to the actor `to`. Returns false if it is not: nobody waits for the answer any more, or the asker
    /// would wait for itself.
    fn forward(&self, to: Label) -> bool {
        let edge = {
            let mut state = self.lock();
            if !matches!(state.progress, Progress::Running) {
                return false;
            }
            state.progress = Progress::Queued;
            state.edge
        };
        // Nobody else turns the edge meanwhile, because nobody else has the request.
        let turned = edge.map_or(Ok(()), |edge| edge.turn(to));
        turned.map_err(|path| self.answer(Err(AskError::Cycle(path)))).is_ok()
    }

    fn take(&self) -> Option<Result<R, AskError>> {
        self.lock().progress.take()
    }

    fn abandon(&self) {
        let mut state = self.lock();
        let _unseen = std::mem::replace(&mut state.progress, Progress::Over);
        let _asker = state.asker.take();
        let recall = state.recall.take();
        // The drop of the answer and of the waker follows the release of the lock.
        drop(state);
        recall::take_back(recall);
    }

    fn is_over(&self) -> bool {
        matches!(self.lock().progress, Progress::Answered(_) | Progress::Over)
    }
}

impl<R: Send + 'static> WaitsOutside for Slot<R> {
    fn system_ended(&self) -> Option<Waker> {
        self.note_answer(|_| Some(Err(AskError::Shutdown)))?.0
    }
}

impl<R: Send + 'static> Awaited for Slot<R> {
    fn is_over(&self) -> bool {
        self.is_over()
    }

    fn has_begun(&self) -> bool {
        let state = self.lock();
        matches!(state.progress, Progress::Running) && (state.recall.is_none() || state.has_begun)
    }

    fn end(self: Arc<Self>, path: Vec<String>) {
        // A request that waits here is not handled any more.
        let mut path = Some(path);
        drop(self.answer_with(|phase| match phase {
            Phase::Queued => path.take().map(|path| Err(AskError::Cycle(path))),
            Phase::Running => None,
        }));
        let Some(path) = path else { return };
        let recall = {
            let mut state = self.lock();
            if !matches!(state.progress, Progress::Running) {
                return;
            }
            state.cycle.get_or_insert(path);
            state.recall.clone()
        };
        // If it has left, its receiver's theater answers so, unless a handler has begun it.
        if let Some(recall) = recall {
            let slot = Arc::clone(&self);
            recall.take_back(Some(Box::new(move || slot.lock().has_begun = true)));
        }
    }
}

/// Where an answer goes to. If it is dropped, the asker is told so.
#[doc(hidden)]
pub struct ReplyTo<R> {
    to: Option<Target<R>>,
}

/// What is done with an answer.
type Then<R> = Box<dyn TakeAnswer<R>>;

/// A continuation that is called with the answer of an ask.
pub(crate) trait TakeAnswer<R>: Send {
    /// Takes the answer, on the thread that answers.
    fn take(self: Box<Self>, answer: Result<R, AskError>);

    /// Returns whether who asked still wants the answer, as far as is known.
    fn is_wanted(&self) -> bool {
        true
    }
}

impl<R, F: FnOnce(Result<R, AskError>) + Send> TakeAnswer<R> for F {
    fn take(self: Box<Self>, answer: Result<R, AskError>) {
        self(answer);
    }
}

enum Target<R> {
    Slot(Arc<Slot<R>>),
    Then(Then<R>),
    /// A continuation, and the request may be taken back.
    Pending(Arc<Pending<R>>),
}

/// A continuation that waits for an answer until its deadline, or until the request is taken back.
pub(crate) struct Pending<R> {
    state: Mutex<PendingState<R>>,
}

struct PendingState<R> {
    then: Option<Then<R>>,
    running: bool,
    /// When the asker gives up.
    due: Option<Due>,
    timer: Option<(Arc<SystemCore>, TimerKey)>,
    /// If the request went to another theater.
    recall: Option<Arc<Recall>>,
}

impl<R> Pending<R> {
    fn new(then: Then<R>, due: Option<Due>) -> Arc<Pending<R>> {
        Arc::new(Pending {
            state: Mutex::new(PendingState { then: Some(then), running: false, due, timer: None, recall: None }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, PendingState<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, answer: Result<R, AskError>) {
        if let Some(then) = self.take_then() {
            then.take(answer);
        }
    }

    fn try_answer(&self, answer: R) -> Result<(), R> {
        match self.take_then().filter(|then| then.is_wanted()) {
            Some(then) => {
                then.take(Ok(answer));
                Ok(())
            }
            None => Err(answer),
        }
    }

    /// Ends the wait. Returns what is to be called with the answer, if it was not called before.
    fn take_then(&self) -> Option<Then<R>> {
        let (then, timer) = {
            let mut state = self.lock();
            state.recall = None;
            (state.then.take(), state.timer.take())
        };
        if let Some((system, key)) = timer {
            system.cancel_timer(key);
        }
        then
    }

    fn expire(&self) {
        let (then, phase, recall) = {
            let mut state = self.lock();
            state.timer = None;
            let phase = if state.running { Phase::Running } else { Phase::Queued };
            (state.then.take(), phase, state.recall.take())
        };
        if let Some(then) = then {
            then.take(Err(AskError::Deadline { phase }));
        }
        recall::take_back(recall);
    }

    fn leave(&self) -> Option<Arc<Recall>> {
        let mut state = self.lock();
        state.then.as_ref()?;
        state.running = true;
        Some(Arc::clone(state.recall.insert(Arc::default())))
    }

    /// Whether the request was answered or taken back.
    fn is_over(&self) -> bool {
        self.lock().then.is_none()
    }
}

impl<R: Send> TakesBack for Pending<R> {
    fn asker_is_lost(&self) {
        let then = {
            let mut state = self.lock();
            if state.running && state.recall.is_none() { state.then.take() } else { None }
        };
        if let Some(then) = then {
            then.take(Err(AskError::TheaterLost { may_have_run: true }));
        }
    }

    fn take_back(&self, _: u64, cycle: Option<TooLate>) {
        let (then, recall) = {
            let mut state = self.lock();
            match (state.running, &state.recall) {
                (false, _) => (state.then.take(), None),
                // It went on from here.
                (true, Some(recall)) => (None, Some(Arc::clone(recall))),
                // A handler has begun it, and may have kept the right to answer.
                (true, None) if cycle.is_none() => (state.then.take(), None),
                (true, None) => (None, None),
            }
        };
        match (then, recall, cycle) {
            (Some(then), _, Some(_)) => then.take(Err(AskError::Cycle(Vec::new()))),
            // An asker that has given up takes no answer.
            (Some(then), _, None) => then.take(Err(AskError::Deadline { phase: Phase::Queued })),
            (None, Some(recall), cycle) => recall.take_back(cycle),
            (None, None, Some(too_late)) => too_late(),
            (None, None, None) => {}
        }
    }
}

impl<R: Send + 'static> ReplyTo<R> {
    pub(crate) fn then(then: Then<R>) -> ReplyTo<R> {
        ReplyTo { to: Some(Target::Then(then)) }
    }

    /// A continuation with a deadline, set on `system`.
    pub(crate) fn timed(then: Then<R>, within: Duration, system: &Arc<SystemCore>) -> ReplyTo<R> {
        let pending = Pending::new(then, Some(Due::new(system, within)));
        let expiring = Arc::clone(&pending);
        let key = system.start_timer(
            within,
            Box::new(move || {
                expiring.expire();
                None
            }),
        );
        pending.lock().timer = Some((Arc::clone(system), key));
        ReplyTo { to: Some(Target::Pending(pending)) }
    }

    /// A continuation of a request that can be taken back until a handler has begun it.
    pub(crate) fn held(then: Then<R>) -> (ReplyTo<R>, Weak<dyn TakesBack>) {
        let pending = Pending::new(then, None);
        let held = Arc::downgrade(&pending);
        (ReplyTo { to: Some(Target::Pending(pending)) }, held)
    }

    /// The request is going to be handled; none if nobody waits for its answer any more.
    pub(crate) fn begin(&self) -> Option<Begun> {
        match &self.to {
            Some(Target::Slot(slot)) => slot.begin(),
            Some(Target::Pending(pending)) => {
                let mut state = pending.lock();
                state.running = true;
                state.then.is_some().then_some(Begun { due: state.due })
            }
            Some(Target::Then(_)) => Some(Begun { due: None }),
            None => None,
        }
    }

    /// Whether nobody waits for the answer any more.
    pub(crate) fn is_over(&self) -> bool {
        match &self.to {
            Some(Target::Slot(slot)) => !matches!(slot.lock().progress, Progress::Queued),
            Some(Target::Pending(pending)) => pending.is_over(),
            Some(Target::Then(_)) => false,
            None => true,
        }
    }

    /// The request goes to another theater. Returns the way after it for those that may take it back; none if nobody waits for its answer any more.
    pub(crate) fn leave(&self) -> Option<Option<Arc<Recall>>> {
        match &self.to {
            Some(Target::Slot(slot)) => slot.leave().map(Some),
            Some(Target::Pending(pending)) => pending.leave().map(Some),
            Some(Target::Then(_)) => Some(None),
            None => None,
        }
    }

    /// Whether somebody waits for the answer to a request that was begun.
    pub(crate) fn is_awaited(&self) -> bool {
        match &self.to {
            Some(Target::Slot(slot)) => !slot.is_over(),
            Some(Target::Pending(pending)) => pending.lock().then.as_ref().is_some_and(|then| then.is_wanted()),
            Some(Target::Then(then)) => then.is_wanted(),
            None => false,
        }
    }

    /// The request, which was begun, is to be sent to another actor. Returns false if it is not, since nobody waits for the answer any more.
    pub(crate) fn forward(&self, to: Label) -> bool {
        match &self.to {
            Some(Target::Slot(slot)) => slot.forward(to),
            Some(Target::Pending(pending)) => {
                let mut state = pending.lock();
                state.running = false;
                state.then.as_ref().is_some_and(|then| then.is_wanted())
            }
            Some(Target::Then(then)) => then.is_wanted(),
            None => false,
        }
    }

    pub(crate) fn send(mut self, answer: Result<R, AskError>) {
        self.deliver(answer);
    }

    /// Answers, if somebody waits for that.
    ///
    /// # Errors
    /// The answer, if nobody does.
    pub(crate) fn try_send(mut self, answer: R) -> Result<(), R> {
        match self.to.take() {
            Some(Target::Slot(slot)) => {
                let mut answer = Some(answer);
                drop(slot.answer_with(|_| answer.take().map(Ok)));
                answer.map_or(Ok(()), Err)
            }
            Some(Target::Pending(pending)) => pending.try_answer(answer),
            Some(Target::Then(then)) if then.is_wanted() => {
                then.take(Ok(answer));
                Ok(())
            }
            Some(Target::Then(_)) | None => Err(answer),
        }
    }
}

impl<R> ReplyTo<R> {
    fn deliver(&mut self, answer: Result<R, AskError>) {
        match self.to.take() {
            Some(Target::Slot(slot)) => slot.answer(answer),
            Some(Target::Then(then)) => then.take(answer),
            Some(Target::Pending(pending)) => pending.answer(answer),
            None => {}
        }
    }
}

/// Returns why a request that was begun has no answer.
#[cold]
fn without_answer() -> AskError {
    if std::thread::panicking() {
        return AskError::Panicked;
    }
    let shut_down = with_current_system(|system| system.is_some_and(|system| system.sweeps_here()));
    if shut_down { AskError::Shutdown } else { AskError::Stopped }
}

impl<R> Drop for ReplyTo<R> {
    fn drop(&mut self) {
        if self.to.is_some() {
            self.deliver(Err(without_answer()));
        }
    }
}

/// How a request of type `M` is sent to an `A`.
pub(crate) type PostAsk<A, M> = for<'a> fn(M, Address<Life<A>>, ReplyTo<<M as Message>::Reply>, Option<MaySend<'a>>);

/// Asked before a request is sent that could not be handled on the spot.
#[doc(hidden)]
pub type MaySend<'a> = &'a mut dyn FnMut() -> bool;

/// A request that waits for its answer: see [`ActorRef::ask`]. A future that sends the request when it is polled first.
///
/// # Panics
/// If it is polled after it has returned the answer.
///
/// # Cancel safety
/// If it is dropped before it was polled, nothing is sent. If it is dropped while it waits, the request is taken back if it was
/// not handled yet; a handler that runs goes on, and its answer is dropped. Another theater hears a moment later that a request is taken
/// back; a handler there may begin it meanwhile.
#[must_use = "an ask is sent when it is awaited or waited for"]
pub struct Ask<A: Actor, M: Message> {
    to: ActorRef<A>,
    /// The request, until it is sent.
    request: Option<M>,
    post: PostAsk<A, M>,
    within: Option<Duration>,
    slot: HeldSlot<M::Reply>,
    /// The edge from the asker to the receiver in the graph of waiting actors. The future drops the edge when it returns the answer.
    waiting: Option<Waiting>,
    timer: Option<Deadline>,
    /// For an asker that is no actor of the receiver's system.
    outside: Option<WaitOutside>,
}

/// The slot for the answer: from the first poll until the future has returned the answer. A drop in between takes the request back.
///
/// It has the destructor, and [`Ask`] has none: so a large request can be moved out of an ask that is consumed, without copies on the stack.
struct HeldSlot<R>(Option<Arc<Slot<R>>>);

impl<R> Drop for HeldSlot<R> {
    fn drop(&mut self) {
        if let Some(slot) = &self.0 {
            slot.abandon();
        }
    }
}

// No field is ever pinned.
impl<A: Actor, M: Message> Unpin for Ask<A, M> {}

impl<A: Actor, M: Message> Ask<A, M> {
    pub(crate) fn new(to: ActorRef<A>, message: M, post: PostAsk<A, M>) -> Self {
        let slot = HeldSlot(None);
        Ask { to, request: Some(message), post, within: None, slot, waiting: None, timer: None, outside: None }
    }

    /// Fails with [`AskError::Deadline`] if the answer takes longer. Millisecond resolution. Counted from when the request is sent; so it changes
    /// nothing once the ask was polled.
    ///
    /// An ask that is awaited by a handler that answers an ask itself also ends with what is left of that one's deadline, if
    /// both are in this process and not in different theaters.
    pub fn within(mut self, deadline: Duration) -> Self {
        self.within = Some(deadline);
        self
    }

    /// Sends the request and blocks this thread until the answer is there. In a simulated system: runs it meanwhile.
    ///
    /// # Errors
    /// Why there is no answer.
    ///
    /// # Panics
    /// Inside an actor: it would hold the worker. Use `.await` in an async handler, or [`Context::ask`] in a sync one. Also if it was polled before.
    ///
    /// [`Context::ask`]: crate::Context::ask
    #[track_caller]
    pub fn wait(self) -> Result<M::Reply, AskError> {
        assert_outside("`.wait()`", "`.await` the ask in an async handler, or use `ctx.ask(..).then(..)`");
        let Some(message) = self.request else {
            panic!("`.wait()` was called on an ask that was polled before: `.await` it to its end")
        };
        let to = self.to.address;
        let Some(blocked) = Blocked::begin(to.raw().system(), self.within) else { return Err(AskError::Shutdown) };
        (self.post)(message, to, ReplyTo { to: Some(Target::Slot(Arc::clone(&blocked.slot))) }, None);
        blocked.until_answered()
    }
}

/// A thread that waits for an answer. It knows no message and no receiver, so that its code is there once for all with the same type of answers.
struct Blocked<R> {
    _outside: WaitOutside,
    _timer: Option<Deadline>,
    deadline: Option<Duration>,
    slot: Arc<Slot<R>>,
    system: Arc<SystemCore>,
}

impl<R: Send + 'static> Blocked<R> {
    /// Returns nothing if the system is no more.
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
            // The deadline has passed. The worker with the timer has not got to it, or has ended.
            slot.expire();
            answer = slot.take();
        }
        // Only a simulated system returns without an answer: nothing is left to do in it that could bring one.
        answer.unwrap_or_else(|| {
            slot.abandon();
            Err(AskError::Stopped)
        })
    }
}

/// The timer of an ask.
struct Deadline {
    system: Arc<SystemCore>,
    key: TimerKey,
    /// This is a task, which may run workers.
    borrows: bool,
}

impl Deadline {
    fn start<R: Send + 'static>(
        system: &Arc<SystemCore>,
        within: Duration,
        slot: &Arc<Slot<R>>,
        borrows: bool,
    ) -> Deadline {
        let slot = Arc::clone(slot);
        let borrowing = borrows.then(Borrowing::begin);
        let key = system.start_timer(
            within,
            Box::new(move || {
                slot.expire();
                None
            }),
        );
        if let Some(borrowing) = borrowing {
            borrowing.run_no_actors();
        }
        Deadline { system: Arc::clone(system), key, borrows }
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        let borrowing = self.borrows.then(Borrowing::begin);
        self.system.cancel_timer(self.key);
        if let Some(borrowing) = borrowing {
            borrowing.run_no_actors();
        }
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

impl<A: Actor, M: Message> Ask<A, M> {
    /// Sends the request, or runs its handler on this stack. The slot holds the answer at once if that handler has ended, or if the wait
    /// would close a cycle.
    ///
    /// The edge of a request that becomes a message is added before the message is sent. Another thread may otherwise answer it, or ask the
    /// asker, before the asker's poll has returned. If the request's handler runs on the asker's stack, the edge is added when that handler
    /// has to wait, or a handler above it on the stack.
    fn send(
        (to, within): (ActorRef<A>, Option<Duration>),
        message: M,
        post: PostAsk<A, M>,
        slot: &Arc<Slot<M::Reply>>,
        waker: &Waker,
    ) -> Sent {
        let timed =
            cap(polled(), within).and_then(|within| Some((within, SystemCore::by_id(to.address.raw().system())?)));
        if let Some((within, system)) = &timed {
            slot.lock().due = Some(Due::new(system, *within));
        }
        let reply = ReplyTo { to: Some(Target::Slot(Arc::clone(slot))) };
        let attempt = Attempt::begin(Label::of::<A>(to.id()));
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
        post(
            message,
            to.address,
            reply,
            Some(&mut || {
                becomes_message = true;
                let Some(edge) = wait() else { return false };
                if edge.is_none() {
                    // This asker is no actor, and may run the handler now. If the answer is not there then, the slot is told of the asker.
                    return true;
                }
                // A handler that waits for several answers is polled once for all that have come.
                let sleeper = edge.as_ref().filter(|edge| edge.is_only).and_then(|_| Sleeper::polled_with(waker));
                slot.lock().asker = Some(sleeper.map_or_else(|| Asker::Task(waker.clone()), Asker::Handler));
                sent.waiting = edge;
                // A full mailbox may refuse the request at once.
                sent.wakes = !to.address.raw().is_bounded();
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

/// Whether this thread has run the handlers of so many asks that the task is to let others have their turn. A task that always has its answer at once
/// would never do so by itself.
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

impl<A: Actor, M: Message> Future for Ask<A, M> {
    type Output = Result<M::Reply, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut PollContext<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let request = this.request.take();
        if request.is_some() {
            this.slot.0 = Some(Slot::new());
        }
        let Some(slot) = &this.slot.0 else { panic!("an ask was polled again after it had returned the answer") };
        let sent = request.map(|request| Self::send((this.to, this.within), request, this.post, slot, cx.waker()));
        if sent.as_ref().is_some_and(|sent| sent.was_run_here) && slot.is_over() && has_run_many() {
            // The answer waits until others have had their turn.
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
                // A waker may call any code when it is cloned or dropped. This is done without the lock, and then the answer is looked for
                // again.
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
            let system = this.to.address.raw().system();
            let is_inside = with_current_system(|current| current.is_some_and(|current| current.id() == system));
            if !is_inside {
                // The slot knows the asker by now. An answer that comes at once wakes it.
                this.outside = SystemCore::by_id(system).map(|system| system.wait_outside(slot));
            }
        }
        Poll::Pending
    }
}
