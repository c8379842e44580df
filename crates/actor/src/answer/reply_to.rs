//! The targets of answers: a slot at which an asker waits, or a continuation.

use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::Waker;
use std::thread::Thread;
use std::time::Duration;

use playhouse_executor::{Sleeper, SystemCore, TimerKey, WaitsOutside, contained, with_current_system};

use crate::actor::names::Label;
use crate::answer::error::{AskError, AskPhase};
use crate::answer::inherited_deadline::Due;
use crate::answer::recall::{self, ForCycle, Recall, RequestLocation, TakesBack, TooLate};
use crate::answer::wait_graph::{Awaited, Edge, Stage};
use crate::lock::lock;

/// A slot at which an asker waits for an answer.
pub(crate) struct Slot<R> {
    state: Mutex<SlotState<R>>,
}

pub(crate) struct SlotState<R> {
    pub(crate) progress: Progress<R>,
    pub(crate) asker: Option<Asker>,
    pub(crate) thread: Option<Thread>,
    /// The time at which the asker gives up.
    pub(crate) due: Option<Due>,
    /// The recall of a request that went to another theater.
    recall: Option<Arc<Recall>>,
    /// The actors along the cycle that the ask is part of, while its request is being taken back because of the cycle.
    cycle: Option<Vec<String>>,
    /// A handler in another theater has begun the request. Holds the number of forwards up to then.
    begun: Option<u32>,
    /// The asker's edge in the graph of waiting actors, if the asker is an actor.
    pub(crate) edge: Option<Edge>,
}

/// The future that waits for an answer.
pub(crate) enum Asker {
    /// A future of an actor's handler, which awaits no other answer.
    Handler(Sleeper),
    Task(Waker),
}

/// The conditions under which a request is handled.
pub(crate) struct Begun {
    /// The time at which the asker gives up.
    pub(crate) due: Option<Due>,
}

pub(crate) enum Progress<R> {
    Queued,
    Running,
    Answered(Result<R, AskError>),
    /// No asker waits any more.
    Over,
}

impl<R> Progress<R> {
    /// Takes the answer, if it has come. It can be taken once.
    pub(crate) fn take(&mut self) -> Option<Result<R, AskError>> {
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
    pub(crate) fn new() -> Arc<Slot<R>> {
        Arc::new(Slot {
            state: Mutex::new(SlotState {
                progress: Progress::Queued,
                asker: None,
                thread: None,
                due: None,
                recall: None,
                cycle: None,
                begun: None,
                edge: None,
            }),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, SlotState<R>> {
        lock(&self.state)
    }

    /// Notes that the request is going to be handled. Returns `None` if no asker waits for its answer any more.
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

    pub(crate) fn answer(&self, answer: Result<R, AskError>) {
        drop(self.answer_with(|_| Some(answer)));
    }

    /// Gives the answer that `answer` makes of the request's progress, if there is none yet and `answer` returns one.
    /// Returns the recall of a request that has left this theater.
    fn answer_with(&self, answer: impl FnOnce(AskPhase) -> Option<Result<R, AskError>>) -> Option<Arc<Recall>> {
        let (waker, recall) = self.note_answer(answer)?;
        if let Some(waker) = waker {
            // The waker belongs to any executor. A panic in it must not reach the actor that answers.
            contained(|| waker.wake()).unwrap_or(());
        }
        recall
    }

    /// Does the same as [`Slot::answer_with`] without calling wakers of tasks. Wakes an asker that is an actor or a
    /// thread. Returns the waker of any other asker.
    fn note_answer(
        &self,
        answer: impl FnOnce(AskPhase) -> Option<Result<R, AskError>>,
    ) -> Option<(Option<Waker>, Option<Arc<Recall>>)> {
        let (asker, thread, recall) = {
            let mut state = self.lock();
            let phase = match state.progress {
                Progress::Queued => AskPhase::Queued,
                Progress::Running => AskPhase::Running,
                Progress::Answered(_) | Progress::Over => return None,
            };
            let mut answer = answer(phase)?;
            if let (Err(AskError::Cycle(path)), Some(cycle)) = (&mut answer, state.cycle.take()) {
                // The request was taken back in another theater, which knows no path.
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

    pub(crate) fn expire(&self) {
        let recall = self.answer_with(|phase| Some(Err(AskError::Deadline { phase })));
        recall::take_back(recall);
    }

    /// Notes that the request goes to another theater. Returns `None` if no asker waits for its answer any more.
    fn leave(&self) -> Option<Arc<Recall>> {
        let mut state = self.lock();
        if !matches!(state.progress, Progress::Queued) {
            return None;
        }
        state.progress = Progress::Running;
        Some(Arc::clone(state.recall.insert(Arc::default())))
    }

    /// Notes that the begun request is forwarded to the actor `to`. Returns `false` if it must not be sent: no asker
    /// waits for the answer any more, or the asker would wait for itself.
    fn forward(&self, to: Label) -> bool {
        let edge = {
            let mut state = self.lock();
            if !matches!(state.progress, Progress::Running) {
                return false;
            }
            state.progress = Progress::Queued;
            state.edge
        };
        // No other thread redirects the edge at the same time, because no other thread has the request.
        let turned = edge.map_or(Ok(()), |edge| edge.turn(to));
        turned.map_err(|path| self.answer(Err(AskError::Cycle(path)))).is_ok()
    }

    pub(crate) fn take(&self) -> Option<Result<R, AskError>> {
        self.lock().progress.take()
    }

    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        let _unseen = std::mem::replace(&mut state.progress, Progress::Over);
        let _asker = state.asker.take();
        let recall = state.recall.take();
        // The drop of the answer and of the waker follows the release of the lock.
        drop(state);
        recall::take_back(recall);
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.lock().progress, Progress::Answered(_) | Progress::Over)
    }
}

impl<R: Send + 'static> WaitsOutside for Slot<R> {
    fn system_ended(&self) -> Option<Waker> {
        self.note_answer(|_| Some(Err(AskError::Shutdown)))?.0
    }
}

impl<R: Send + 'static> Awaited for Slot<R> {
    fn stage(&self) -> Option<Stage> {
        let (recall, begun) = {
            let state = self.lock();
            match (&state.progress, &state.recall) {
                (Progress::Answered(_) | Progress::Over, _) => return None,
                (Progress::Queued, _) => return Some(Stage::Queued),
                (Progress::Running, None) => return Some(Stage::Begun),
                (Progress::Running, Some(recall)) => (Arc::clone(recall), state.begun),
            }
        };
        Some(Stage::Away { begun, whereabouts: recall.whereabouts() })
    }

    fn end(self: Arc<Self>, path: Vec<String>, forwards: u32) {
        // A request that waits in this theater is not handled any more.
        let mut path = Some(path);
        drop(self.answer_with(|phase| match phase {
            AskPhase::Queued => path.take().map(|path| Err(AskError::Cycle(path))),
            AskPhase::Running => None,
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
        // If the request has left, its receiver's theater gives this answer, unless a handler has begun it.
        if let Some(recall) = recall {
            let slot = Arc::clone(&self);
            let too_late: TooLate = Box::new(move |forwards| {
                let mut state = slot.lock();
                state.begun = Some(forwards);
                // The ask may be part of another cycle later.
                let _path = state.cycle.take();
            });
            recall.take_back(Some(ForCycle { forwards, too_late }));
        }
    }
}

/// The target of one answer. If it is dropped, the asker gets an error.
#[doc(hidden)]
pub struct ReplyTo<R> {
    to: Option<Target<R>>,
}

/// The continuation of an asker.
type Then<R> = Box<dyn TakeAnswer<R>>;

/// A continuation that is called with the answer of an ask.
pub(crate) trait TakeAnswer<R>: Send {
    /// Takes the answer, on the thread that answers.
    fn take(self: Box<Self>, answer: Result<R, AskError>);

    /// Returns whether the asker is known to need the answer still.
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
    /// A continuation of a request that may be taken back.
    Pending(Arc<Pending<R>>),
}

/// A continuation that waits for an answer until its deadline, or until the request is taken back.
pub(crate) struct Pending<R> {
    state: Mutex<PendingState<R>>,
}

struct PendingState<R> {
    then: Option<Then<R>>,
    running: bool,
    /// The time at which the asker gives up.
    due: Option<Due>,
    timer: Option<(Arc<SystemCore>, TimerKey)>,
    /// The recall of a request that went to another theater.
    recall: Option<Arc<Recall>>,
    /// The last actor that the request was forwarded to.
    forwarded_to: Option<Label>,
    /// The number of forwards of the request.
    forwards: u32,
}

impl<R> Pending<R> {
    fn new(then: Then<R>, due: Option<Due>) -> Arc<Pending<R>> {
        Arc::new(Pending {
            state: Mutex::new(PendingState {
                then: Some(then),
                running: false,
                due,
                timer: None,
                recall: None,
                forwarded_to: None,
                forwards: 0,
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, PendingState<R>> {
        lock(&self.state)
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

    /// Ends the wait. Returns the continuation, if it was not called before.
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
            let phase = if state.running { AskPhase::Running } else { AskPhase::Queued };
            (state.then.take(), phase, state.recall.take())
        };
        if let Some(then) = then {
            then.take(Err(AskError::Deadline { phase }));
        }
        recall::take_back(recall);
    }

    /// Notes that the begun request is forwarded to the actor `to`. Returns `false` if no asker waits for the answer
    /// any more.
    fn forward(&self, to: Label) -> bool {
        let mut state = self.lock();
        let is_wanted = state.then.as_ref().is_some_and(|then| then.is_wanted());
        if is_wanted {
            state.running = false;
            state.forwarded_to = Some(to);
            state.forwards = state.forwards.saturating_add(1);
        }
        is_wanted
    }

    fn leave(&self) -> Option<Arc<Recall>> {
        let mut state = self.lock();
        state.then.as_ref()?;
        state.running = true;
        Some(Arc::clone(state.recall.insert(Arc::default())))
    }

    /// Returns whether the request was answered or taken back.
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

    fn take_back(&self, _: u64, cycle: Option<ForCycle>) {
        let (then, recall, forwards) = {
            let mut state = self.lock();
            // The request has another receiver by now than the one in the cycle.
            let has_gone_on = cycle.as_ref().is_some_and(|cycle| state.forwards > cycle.forwards);
            let (then, recall) = match (state.running, &state.recall) {
                _ if has_gone_on => (None, None),
                (false, _) => (state.then.take(), None),
                // The request was forwarded from this theater.
                (true, Some(recall)) => (None, Some(Arc::clone(recall))),
                // A handler has begun the request, and may have kept the right to answer.
                (true, None) if cycle.is_none() => (state.then.take(), None),
                (true, None) => (None, None),
            };
            (then, recall, state.forwards)
        };
        match (then, recall, cycle) {
            (Some(then), _, Some(_)) => then.take(Err(AskError::Cycle(Vec::new()))),
            // An asker that has given up takes no answer.
            (Some(then), _, None) => then.take(Err(AskError::Deadline { phase: AskPhase::Queued })),
            (None, Some(recall), None) => recall.take_back(None),
            (None, Some(recall), Some(ForCycle { forwards: in_all, too_late })) => recall.take_back(Some(ForCycle {
                forwards: in_all.saturating_sub(forwards),
                too_late: Box::new(move |further| too_late(forwards.saturating_add(further))),
            })),
            (None, None, Some(cycle)) => (cycle.too_late)(forwards.min(cycle.forwards)),
            (None, None, None) => {}
        }
    }

    fn whereabouts(&self, _: u64) -> RequestLocation {
        let (to, forwards, recall) = {
            let state = self.lock();
            (state.forwarded_to, state.forwards, state.recall.clone())
        };
        let further = recall.map_or(RequestLocation::default(), |recall| recall.whereabouts());
        let forwards = forwards.saturating_add(further.forwards);
        RequestLocation { to: further.to.or(to), forwards, route: further.route }
    }
}

impl<R: Send + 'static> ReplyTo<R> {
    /// Returns the target of an answer that is awaited at this slot.
    pub(crate) fn slot(slot: &Arc<Slot<R>>) -> ReplyTo<R> {
        ReplyTo { to: Some(Target::Slot(Arc::clone(slot))) }
    }

    pub(crate) fn then(then: Then<R>) -> ReplyTo<R> {
        ReplyTo { to: Some(Target::Then(then)) }
    }

    /// Returns a continuation with a deadline, set on `system`.
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

    /// Returns a continuation of a request that can be taken back until a handler has begun it.
    pub(crate) fn held(then: Then<R>) -> (ReplyTo<R>, Weak<dyn TakesBack>) {
        let pending = Pending::new(then, None);
        let held = Arc::downgrade(&pending);
        (ReplyTo { to: Some(Target::Pending(pending)) }, held)
    }

    /// Notes that the request is going to be handled. Returns `None` if no asker waits for its answer any more.
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

    /// Returns whether no asker waits for the answer any more.
    pub(crate) fn is_over(&self) -> bool {
        match &self.to {
            Some(Target::Slot(slot)) => !matches!(slot.lock().progress, Progress::Queued),
            Some(Target::Pending(pending)) => pending.is_over(),
            Some(Target::Then(_)) => false,
            None => true,
        }
    }

    /// Notes that the request goes to another theater. Returns its recall, if its asker may take it back. Returns
    /// `None` if no asker waits for its answer any more.
    pub(crate) fn leave(&self) -> Option<Option<Arc<Recall>>> {
        match &self.to {
            Some(Target::Slot(slot)) => slot.leave().map(Some),
            Some(Target::Pending(pending)) => pending.leave().map(Some),
            Some(Target::Then(_)) => Some(None),
            None => None,
        }
    }

    /// Returns whether an asker waits for the answer to a request that was begun.
    pub(crate) fn is_awaited(&self) -> bool {
        match &self.to {
            Some(Target::Slot(slot)) => !slot.is_over(),
            Some(Target::Pending(pending)) => pending.lock().then.as_ref().is_some_and(|then| then.is_wanted()),
            Some(Target::Then(then)) => then.is_wanted(),
            None => false,
        }
    }

    /// Notes that the begun request is forwarded to another actor. Returns `false` if it must not be sent, because no
    /// asker waits for the answer any more.
    pub(crate) fn forward(&self, to: Label) -> bool {
        match &self.to {
            Some(Target::Slot(slot)) => slot.forward(to),
            Some(Target::Pending(pending)) => pending.forward(to),
            Some(Target::Then(then)) => then.is_wanted(),
            None => false,
        }
    }

    pub(crate) fn send(mut self, answer: Result<R, AskError>) {
        self.deliver(answer);
    }

    /// Gives the answer, if an asker waits for it.
    ///
    /// # Errors
    /// Gives the answer back if no asker waits for it.
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

/// Returns the error of a request that was begun and has no answer.
#[cold]
fn without_answer() -> AskError {
    if std::thread::panicking() {
        return AskError::Panicked;
    }
    let shut_down = with_current_system(|system| system.is_some_and(|system| system.sweeps_on_this_thread()));
    if shut_down { AskError::Shutdown } else { AskError::Stopped }
}

impl<R> Drop for ReplyTo<R> {
    fn drop(&mut self) {
        if self.to.is_some() {
            self.deliver(Err(without_answer()));
        }
    }
}
