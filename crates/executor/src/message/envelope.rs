//! The interface to the layer above: the types that live in cells, the envelopes that run on them, and the contexts
//! that these get. The executor knows cells and envelopes; it does not know actors, messages or replies.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::time::Duration;

use crate::memory::cell::{Cell, Cold, status};
use crate::memory::record::{Outcome, Undelivered};
use crate::message::address::Address;
use crate::message::away::AwayCx;
use crate::user_code::crash::{Crash, Ending, Failure};
use crate::user_code::during;
use crate::user_code::mail_kind::MailKind;

/// The decision about an envelope whose turn has come.
#[derive(Debug)]
pub enum Admission {
    /// The envelope is run.
    Run,
    /// The envelope waits, and is asked again after each envelope that is run on the same state, the oldest first.
    Wait,
    /// The envelope is dropped.
    Drop,
    /// The envelope is bounced.
    Bounce(Undelivered),
}

/// A type whose values live in cells.
pub trait Resident: Send + Sized + 'static {
    /// The part of the state that few actors need, kept outside the cell and allocated at first use.
    type Extra: Send + Default + 'static;

    /// Returns the name of the type in reports.
    fn name() -> &'static str;

    /// Called once at the end of the actor, before the state is dropped. Not followed by any other call.
    fn ended(&mut self, extra: Option<Box<Self::Extra>>, ending: Ending, cx: &mut Cx<Self>);

    /// Decides about a crash of a handler through `cx`: stop, resume, or wait for a supervisor.
    fn crashed(crash: Crash, cx: &mut ControlCx<Self>);
}

/// A message for an `S`, whose handler runs to completion.
pub trait Envelope<S: Resident>: Send + Sized + 'static {
    /// Runs the handler. Called at most once, by the worker that runs the cell's stage.
    ///
    /// The envelope cannot keep its `cx` beyond the run:
    /// ```compile_fail,E0521
    /// use playhouse_executor::{Cx, Envelope, Resident, Undelivered};
    /// use std::sync::Mutex;
    ///
    /// struct Keep<S: Resident>(&'static Mutex<Option<&'static mut Cx<S>>>);
    ///
    /// impl<S: Resident> Envelope<S> for Keep<S> {
    ///     fn run(self, _: &mut S, cx: &mut Cx<S>) {
    ///         *self.0.lock().unwrap() = Some(cx);
    ///     }
    ///     fn bounce(self, _: Undelivered) {}
    /// }
    /// ```
    fn run(self, state: &mut S, cx: &mut Cx<S>);
    /// Decides whether the envelope runs now: asked when its turn has come.
    #[inline(always)]
    fn admission(&self, _state: &S, _cx: &mut Cx<S>) -> Admission {
        Admission::Run
    }
    /// Handles a message that could not be delivered.
    fn bounce(self, why: Undelivered);
    /// Returns the kind of the envelope, and the name of its message in reports.
    fn describe() -> (MailKind, &'static str) {
        (MailKind::Message, std::any::type_name::<Self>())
    }
    /// Returns the envelope's share of a mailbox that is bounded by bytes.
    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
    /// Forwards the message to the theater of the actor, if that is possible.
    fn send_on(self, _cx: &mut AwayCx<S>) {
        self.bounce(Undelivered::Stopped);
    }
}

/// A message for an `S`, whose handler may wait.
pub trait AsyncEnvelope<S: Resident>: Send + Sized + 'static {
    /// Starts the handler. The future is polled only by the worker that runs the cell's stage, and no other envelope of
    /// this cell runs until the future has ended.
    fn run<'a>(self, state: &'a mut S, cx: &'a mut Cx<S>) -> impl Future<Output = ()> + Send + 'a;
    /// Decides whether the envelope runs now: asked when its turn has come.
    #[inline(always)]
    fn admission(&self, _state: &S, _cx: &mut Cx<S>) -> Admission {
        Admission::Run
    }
    /// Handles a message that could not be delivered.
    fn bounce(self, why: Undelivered);
    /// Returns the kind of the envelope, and the name of its message in reports.
    fn describe() -> (MailKind, &'static str) {
        (MailKind::Message, std::any::type_name::<Self>())
    }
    /// Returns the envelope's share of a mailbox that is bounded by bytes.
    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
    /// Forwards the message to the theater of the actor, if that is possible.
    fn send_on(self, _cx: &mut AwayCx<S>) {
        self.bounce(Undelivered::Stopped);
    }
}

/// A request to the cell itself, which passes by the actor's mailbox if the actor is suspended.
pub trait Control<S: Resident>: Send + Sized + 'static {
    /// Returns whether the request is carried out also while all others wait: at a [frozen](ControlCx::freeze) cell.
    fn passes(&self) -> bool {
        false
    }
    /// Carries the request out.
    fn run(self, cx: &mut ControlCx<S>);
    /// Handles a request to an actor that has ended.
    fn bounce(self, _why: Undelivered) {}
    /// Returns the kind of the request, and its name in reports.
    fn describe(&self) -> (MailKind, &'static str) {
        (MailKind::Control, std::any::type_name::<Self>())
    }
    /// Forwards the request to the theater of the actor, if that is possible.
    fn send_on(self, _cx: &mut AwayCx<S>) {
        self.bounce(Undelivered::Stopped);
    }
}

/// A request of any type. There are some 20 types of requests to each type of actors. Without a box, each of them would
/// have code of its own for each method of sending and running it.
pub(crate) struct AnyControl<S: Resident>(Box<dyn BoxedControl<S>>);

impl<S: Resident> AnyControl<S> {
    pub(crate) fn new<C: Control<S>>(control: C) -> AnyControl<S> {
        AnyControl(Box::new(control))
    }
}

/// An object-safe form of [`Control`].
trait BoxedControl<S: Resident>: Send {
    fn passes(&self) -> bool;
    fn run(self: Box<Self>, cx: &mut ControlCx<S>);
    fn bounce(self: Box<Self>, why: Undelivered);
    fn describe(&self) -> (MailKind, &'static str);
    fn send_on(self: Box<Self>, cx: &mut AwayCx<S>);
}

impl<S: Resident, C: Control<S>> BoxedControl<S> for C {
    fn passes(&self) -> bool {
        Control::passes(self)
    }

    fn run(self: Box<Self>, cx: &mut ControlCx<S>) {
        Control::run(*self, cx);
    }

    fn bounce(self: Box<Self>, why: Undelivered) {
        Control::bounce(*self, why);
    }

    fn describe(&self) -> (MailKind, &'static str) {
        Control::describe(self)
    }

    fn send_on(self: Box<Self>, cx: &mut AwayCx<S>) {
        Control::send_on(*self, cx);
    }
}

impl<S: Resident> Control<S> for AnyControl<S> {
    fn passes(&self) -> bool {
        self.0.passes()
    }

    fn run(self, cx: &mut ControlCx<S>) {
        self.0.run(cx);
    }

    fn bounce(self, why: Undelivered) {
        self.0.bounce(why);
    }

    fn describe(&self) -> (MailKind, &'static str) {
        self.0.describe()
    }

    fn send_on(self, cx: &mut AwayCx<S>) {
        self.0.send_on(cx);
    }
}

/// The context of an envelope while it runs: its cell, and its decisions about the actor.
pub struct Cx<S> {
    cell: NonNull<Cell>,
    outcome: Outcome,
    state: PhantomData<fn(S)>,
}

// SAFETY: a Cx only names the cell. It is used by the thread that runs the cell's stage, also when a suspended
// handler that owns one moves with its stage to another worker.
unsafe impl<S> Send for Cx<S> {}

/// # Safety
/// This thread runs the cell's stage, and no reference to the cold part is held.
#[cold]
#[inline(never)]
unsafe fn note_failure(cell: NonNull<Cell>, about: (MailKind, &'static str)) {
    // SAFETY: this thread runs the cell's stage, and no reference to the cold part is held.
    let cold = unsafe { Cell::cold(cell) };
    if let Some(Cold { failure: Some(Crash::Error(error)), .. }) = cold.as_deref_mut() {
        error.note(about);
    }
}

impl<S: Resident> Cx<S> {
    #[inline(always)]
    pub(crate) fn new(cell: NonNull<Cell>) -> Self {
        Cx { cell, outcome: Outcome::Continue, state: PhantomData }
    }

    #[inline(always)]
    pub(crate) fn outcome(&self) -> Outcome {
        self.outcome
    }

    pub(crate) fn cell(&self) -> NonNull<Cell> {
        self.cell
    }

    /// Returns the address of the actor that runs.
    #[inline(always)]
    pub fn address(&self) -> Address<S> {
        // SAFETY: the cell is occupied by an S while a Cx for it exists.
        unsafe { Address::of_resident(self.cell) }
    }

    /// Stops the actor after this message.
    #[inline]
    pub fn stop(&mut self) {
        self.outcome = Outcome::Stop;
    }

    /// Crashes the actor with `error` after this message.
    pub fn fail(&mut self, error: Failure) {
        // SAFETY: this thread runs the cell's stage, and this function holds no reference to the cold part.
        let former = unsafe { Cell::cold_mut(self.cell) }.failure.replace(Crash::Error(error));
        self.outcome = Outcome::Fail;
        drop(former);
    }

    /// Notes the code that the actor was running, if it has failed.
    #[inline(always)]
    pub(crate) fn note_failure(&self, about: impl FnOnce() -> (MailKind, &'static str)) {
        // Many actors stop, and few of them fail. An actor that has failed has a cold part.
        // SAFETY: this thread runs the cell's stage, and this function holds no reference to the cold part.
        let has_cold_part = || unsafe { Cell::cold(self.cell) }.is_some();
        if self.outcome == Outcome::Fail || self.outcome == Outcome::Stop && has_cold_part() {
            // SAFETY: this thread runs the cell's stage, and this function holds no reference to the cold part.
            unsafe { note_failure(self.cell, about()) };
        }
    }

    /// Returns whether [`Cx::fail`] was called for this message.
    #[inline]
    pub fn has_failed(&mut self) -> bool {
        // SAFETY: this thread runs the cell's stage, and this function holds no reference to the cold part.
        self.outcome != Outcome::Continue
            && unsafe { Cell::cold(self.cell) }.as_ref().is_some_and(|cold| cold.failure.is_some())
    }

    /// Calls `f` with the extra part, which is made at the first use.
    ///
    /// A handler that waits keeps no reference to it, because requests to the actor are carried out during the wait,
    /// and use it.
    #[inline]
    pub fn with_extra<R>(&mut self, f: impl FnOnce(&mut S::Extra) -> R) -> R {
        // SAFETY: this thread runs the cell's stage, and no other thread therefore uses the cell. No request to the
        // cell and no other envelope for it runs before `f` has returned, and the borrow of `self` keeps `f` from
        // getting a second reference.
        f(unsafe { extra_of::<S>(self.cell) })
    }

    /// Calls `f` with the extra part, if there is one.
    #[inline]
    pub fn with_extra_if_any<R>(&mut self, f: impl FnOnce(&mut S::Extra) -> R) -> Option<R> {
        // SAFETY: this thread runs the cell's stage, and the borrow of `self` keeps `f` from getting a second
        // reference.
        let cold = unsafe { Cell::cold(self.cell) }.as_mut()?;
        let extra = cold.extra.as_mut()?.downcast_mut().expect("the extra part of a cell has its own type");
        Some(f(extra))
    }
}

/// Defines the type that stands for a [`Cx`] in the layer above: the same bytes, with other methods.
///
/// An envelope is lent its `Cx` for its run and can neither keep it nor exchange it for another one. The same holds for
/// the type that is defined, because a reference to it can only be made from a reference to a `Cx`.
///
/// # Examples
/// ```
/// use playhouse_executor::{Resident, wrap_cx};
///
/// wrap_cx! {
///     /// The context of a handler, given besides its message.
///     pub struct Context<S: Resident>(S);
/// }
///
/// impl<S: Resident> Context<S> {
///     pub fn stop(&mut self) {
///         self.cx.stop();
///     }
/// }
/// ```
#[macro_export]
macro_rules! wrap_cx {
    ($(#[$attribute:meta])* $vis:vis struct $name:ident<$param:ident: $bound:path>($resident:ty);) => {
        $(#[$attribute])*
        #[repr(transparent)]
        $vis struct $name<$param: $bound> {
            pub(crate) cx: $crate::Cx<$resident>,
        }

        impl<$param: $bound> $name<$param> {
            /// Returns the context for this `Cx`.
            #[inline(always)]
            pub(crate) fn of(cx: &mut $crate::Cx<$resident>) -> &mut Self {
                // SAFETY: the type is transparent, and its only field is the `Cx`.
                unsafe { &mut *::std::ptr::from_mut(cx).cast::<Self>() }
            }
        }
    };
}

pub(crate) unsafe fn extra_of<'a, S: Resident>(cell: NonNull<Cell>) -> &'a mut S::Extra {
    // SAFETY: the caller runs the cell's stage and holds no other reference to the cold part.
    let cold = unsafe { Cell::cold_mut(cell) };
    cold.extra
        .get_or_insert_with(|| Box::new(S::Extra::default()))
        .downcast_mut()
        .expect("the extra part of a cell has its own type")
}

/// A decision about the end of an actor that is not carried out yet.
pub struct Decided {
    outcome: Outcome,
    failure: Option<Crash>,
}

/// The context of a [`Control`]. The actor may be in the middle of a suspended handler.
pub struct ControlCx<S> {
    cell: NonNull<Cell>,
    outcome: Outcome,
    state: PhantomData<fn(S)>,
}

impl<S: Resident> ControlCx<S> {
    pub(crate) fn new(cell: NonNull<Cell>) -> Self {
        ControlCx { cell, outcome: Outcome::Continue, state: PhantomData }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        self.outcome
    }

    pub(crate) fn cell(&self) -> NonNull<Cell> {
        self.cell
    }

    /// Returns whether the code that was run has ended the actor, or failed.
    pub fn is_ending(&self) -> bool {
        matches!(self.outcome, Outcome::Stop | Outcome::Kill | Outcome::Fail)
    }

    pub(crate) fn set_outcome(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }

    /// Returns the address of the actor.
    pub fn address(&self) -> Address<S> {
        // SAFETY: the cell is occupied by an S while a ControlCx for it exists.
        unsafe { Address::of_resident(self.cell) }
    }

    /// Returns the extra part, which is made at first use.
    pub fn extra(&mut self) -> &mut S::Extra {
        // SAFETY: this thread runs the cell's stage; the borrow of `self` excludes a second reference.
        unsafe { extra_of::<S>(self.cell) }
    }

    /// Returns the time at which the actor has handled its last message, or at which the notes began; in the system's
    /// time. Returns `None` if it is not noted.
    pub fn handled_at(&self) -> Option<Duration> {
        // SAFETY: the cell is alive while the control runs; this thread runs its stage, and the reference is short.
        unsafe {
            let noted = self.cell.as_ref().has_status(status::NOTED);
            noted.then(|| Duration::from_nanos(Cell::cold_mut(self.cell).handled_ns))
        }
    }

    /// Has the guards of waiting messages asked again after this control, because the state may have changed.
    pub fn look_at_guards(&mut self) {
        // SAFETY: the cell is alive while the control runs.
        if self.outcome == Outcome::Continue && unsafe { self.cell.as_ref() }.has_status(status::GUARDED) {
            self.outcome = Outcome::Resume;
        }
    }

    /// Returns whether a handler is suspended in an await.
    pub fn is_suspended(&self) -> bool {
        // SAFETY: the cell is alive while the control runs.
        unsafe { self.cell.as_ref() }.has_status(status::SUSPENDED)
    }

    /// Returns whether the actor has crashed and waits for its supervisor.
    pub fn is_crashed(&self) -> bool {
        // SAFETY: the cell is alive while the control runs.
        unsafe { self.cell.as_ref() }.has_status(status::CRASHED)
    }

    /// Returns the actor's state, unless a suspended handler holds it or it has [departed](ControlCx::depart).
    pub fn state(&mut self) -> Option<&mut S> {
        // SAFETY: the cell is alive while the control runs.
        if self.is_suspended() || unsafe { self.cell.as_ref() }.has_status(status::AWAY) {
            return None;
        }
        // SAFETY: this thread runs the stage (I1), no future borrows the state, and the cell holds one.
        Some(unsafe { Cell::state::<S>(self.cell) })
    }

    /// Stops the actor: now, or when its suspended handler or its first message has ended.
    pub fn stop(&mut self) {
        // SAFETY: the cell is alive while the control runs.
        let unstarted = unsafe { self.cell.as_ref() }.has_status(status::NEW);
        if self.is_suspended() || unstarted {
            // SAFETY: this thread runs the cell's stage.
            unsafe { Cell::cold_mut(self.cell) }.stop_after = true;
        } else {
            self.outcome = Outcome::Stop;
        }
    }

    /// Ends the actor at once; a suspended handler is dropped.
    pub fn kill(&mut self) {
        self.outcome = Outcome::Kill;
    }

    /// Ends the crashed actor: [`Resident::ended`] gets `crash`.
    pub fn give_up(&mut self, crash: Crash) {
        // SAFETY: this thread runs the cell's stage.
        let former = unsafe { Cell::cold_mut(self.cell) }.failure.replace(crash);
        self.outcome = Outcome::Stop;
        drop(former);
    }

    /// Runs `envelope` on the actor as part of this control, and takes over the envelope's decision about the actor.
    ///
    /// # Panics
    /// If a handler is suspended, or if the actor is away.
    pub fn run<E: Envelope<S>>(&mut self, envelope: E) {
        let mut cx = Cx::new(self.cell);
        let state = self.state().expect("the actor is suspended or away: it can run no other envelope");
        during(E::describe, || envelope.run(state, &mut cx));
        cx.note_failure(E::describe);
        if cx.outcome() != Outcome::Continue {
            self.outcome = cx.outcome();
        }
    }

    /// Does the same as [`ControlCx::run`], but returns the envelope's decision about the actor, also one by a panic.
    /// It is [carried out](ControlCx::carry_out) later.
    ///
    /// # Panics
    /// The same as for [`ControlCx::run`].
    pub fn run_ahead<E: Envelope<S>>(&mut self, envelope: E) -> Option<Decided> {
        let mut cx = Cx::new(self.cell);
        let state = self.state().expect("the actor is suspended or away: it can run no other envelope");
        let run = || during(E::describe, || envelope.run(state, &mut cx));
        let panic = catch_unwind(AssertUnwindSafe(run)).err();
        cx.note_failure(E::describe);
        // SAFETY: this thread runs the cell's stage; a short borrow.
        let failure = unsafe { Cell::cold(self.cell) }.as_mut().and_then(|cold| cold.failure.take());
        match panic {
            // If the envelope has failed before, the panic is reported.
            Some(panic) => Some(Decided { outcome: Outcome::Fail, failure: Some(Crash::Panic(panic.into())) }),
            None => (cx.outcome() != Outcome::Continue).then_some(Decided { outcome: cx.outcome(), failure }),
        }
    }

    /// Carries out a decision that was taken [ahead](ControlCx::run_ahead).
    pub fn carry_out(&mut self, Decided { outcome, failure }: Decided) {
        // SAFETY: this thread runs the cell's stage; a short borrow.
        let former = unsafe { Cell::cold_mut(self.cell) };
        let former = std::mem::replace(&mut former.failure, failure);
        self.outcome = outcome;
        drop(former);
    }

    /// Returns whether the code that was run has failed: see [`Cx::fail`].
    pub fn has_failed(&self) -> bool {
        self.outcome == Outcome::Fail
    }

    /// Lets a held actor go on with its parked messages.
    pub fn resume(&mut self) {
        // SAFETY: the cell is alive while the control runs; its status is written by this thread only (I1).
        unsafe { self.cell.as_ref() }.set_status(status::CRASHED, false);
        self.outcome = Outcome::Resume;
    }
}
