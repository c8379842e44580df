//! User code: all code that a program has written. Handlers, hooks, guards, and the drops of messages, states, futures,
//! wakers and panic payloads.
//!
//! # The rule
//!
//! User code may do anything that is safe: send, spawn, set and cancel timers, panic, block. Therefore
//!
//! 1. it runs in phase USER, because all runtime calls that it makes then find the worker as a handler finds it,
//! 2. it runs while no reference to the [`Core`](crate::worker::core::Core), to a cell's cold part or to the route
//!    exists, and while no lock is held that it could want. References to a resident's extra part may exist, because
//!    only the actor's own context leads to them. Two locks are known to be held. One is that of a timer's clock, while
//!    its message is cloned or its guard is asked. The other is that of the choices of a simulated system, which the
//!    thread takes that has the turn (`turns.rs`),
//! 3. it runs under a catch, because a panic is to end only the code that has panicked.
//!
//! Records that the run loop runs meet the rule by themselves. Code that comes up in RUNTIME is called with
//! [`Worker::call_user`]. This is only possible between two gulps, when all logs may be opened. At other points in
//! RUNTIME no user code is called: cancelled timers wait in `Core::cancelled`, and records that the system no longer
//! takes wait in an inbox for the sweep (`quiescence.rs`).
//!
//! A worker has claimed no record while it calls user code from RUNTIME, and the monitor therefore never takes it over
//! during the call.

use std::any::Any;
use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Once;

use crate::message::envelope::MailKind;
use crate::worker::{Worker, current};

/// The number of panics in a row that [`discard`] ends, each in the drop of the payload of the one before.
const BOMBS_MAX: usize = 16;

/// Runs `f`, which may be user code. Returns `None` if it panics. The panic hook has reported the panic by then.
pub fn contained<R>(f: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => Some(result),
        Err(payload) => {
            discard_at_once(payload);
            None
        }
    }
}

/// Drops the payload of a panic whose origin is of no interest. Not inlined, because each type of actors and messages
/// has calls of [`contained`].
#[cold]
#[inline(never)]
fn discard_at_once(payload: Box<dyn Any + Send>) {
    let _nobody_asks = ORIGIN.try_with(RefCell::take);
    discard(payload);
}

/// The circumstances of a crash, without its text.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The crash was reported already.
    pub is_reported: bool,
    /// The kind and the name of what the actor was running.
    pub during: Option<(MailKind, &'static str)>,
    /// The file, line and column of the panic, or of the call of `fail`. Unknown for a panic that was passed on from
    /// another thread, or if the program has replaced the panic hook since its first system was started.
    pub place: Option<String>,
}

thread_local! {
    /// The origin of the panic that is unwinding, as far as it is known, and the text of the panic that the origin's
    /// `place` belongs to.
    static ORIGIN: RefCell<(Origin, Option<String>)> =
        const { RefCell::new((Origin { is_reported: false, during: None, place: None }, None)) };
}

/// Installs a panic hook that notes the places of panics on workers. The former hook is still called.
pub(crate) fn note_places() {
    static ONCE: Once = Once::new();
    if std::thread::panicking() {
        // The hook cannot be changed during a panic. The next system will do it.
        return;
    }
    ONCE.call_once(|| {
        let former = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if current().is_some() {
                let place = info.location().map(Location::to_string);
                let text = text_of(info.payload()).map(str::to_owned);
                let _none = ORIGIN.try_with(|origin| {
                    if let Ok(mut origin) = origin.try_borrow_mut() {
                        *origin = (Origin { place, ..Origin::default() }, text);
                    }
                });
            }
            former(info);
        }));
    });
}

/// Runs `run`, and notes `about` if it panics.
#[inline(always)]
pub fn during<R>(about: impl Fn() -> (MailKind, &'static str), run: impl FnOnce() -> R) -> R {
    let during = During(about);
    let result = run();
    std::mem::forget(during);
    result
}

/// A guard that notes the running code when a panic drops it.
pub(crate) struct During<F: Fn() -> (MailKind, &'static str)>(pub(crate) F);

impl<F: Fn() -> (MailKind, &'static str)> Drop for During<F> {
    #[inline(never)]
    #[cold]
    fn drop(&mut self) {
        note_unwinding((self.0)());
    }
}

fn note_unwinding(about: (MailKind, &'static str)) {
    if std::thread::panicking() {
        // The innermost one is kept.
        let _none = ORIGIN.try_with(|origin| origin.borrow_mut().0.during.get_or_insert(about).0);
    }
}

/// Drops the payload of a panic. If its drop panics, the payload of that panic is dropped, too, and so on. After 16
/// such panics the last payload is forgotten.
pub fn discard(payload: Box<dyn Any + Send>) {
    let mut payload = payload;
    for _ in 0..BOMBS_MAX {
        match catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            Ok(()) => return,
            Err(next) => payload = next,
        }
    }
    std::mem::forget(payload);
}

/// Calls user code on any thread, as the rule demands. On a worker in RUNTIME, only between two gulps.
pub(crate) fn call<R>(f: impl FnOnce() -> R) -> Option<R> {
    match current() {
        Some(worker) if !worker.ownership.is_user() => worker.call_user(f),
        _ => contained(f),
    }
}

/// The payload of a panic. Its drop never panics.
pub struct Payload(ManuallyDrop<Box<dyn Any + Send>>, Origin);

impl Payload {
    pub(crate) fn origin(&self) -> &Origin {
        &self.1
    }

    pub(crate) fn origin_mut(&mut self) -> &mut Origin {
        &mut self.1
    }

    /// Creates a payload that holds `value`, like that of a panic with it. Its origin is not known.
    pub fn new(value: impl Any + Send) -> Payload {
        Payload(ManuallyDrop::new(Box::new(value)), Origin::default())
    }
}

impl Deref for Payload {
    type Target = dyn Any + Send;

    fn deref(&self) -> &Self::Target {
        &**self.0
    }
}

/// Converts a panic that this thread has just caught: the payload has the origin that was noted last. The place is left
/// out if it belongs to another panic, as after `resume_unwind`, which calls no hook.
impl From<Box<dyn Any + Send>> for Payload {
    fn from(payload: Box<dyn Any + Send>) -> Payload {
        let (mut origin, text) = ORIGIN.try_with(RefCell::take).unwrap_or_default();
        if text.as_deref() != text_of(&*payload) {
            origin.place = None;
        }
        Payload(ManuallyDrop::new(payload), origin)
    }
}

/// Returns the text of a panic, if it has one.
pub(crate) fn text_of(payload: &(dyn Any + Send)) -> Option<&str> {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Payload")
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        // SAFETY: taken once, because this value is being dropped.
        discard(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

/// An error of a program. Its drop never panics, and neither does its text.
pub struct Failure(ManuallyDrop<Box<dyn Error + Send>>, Origin);

impl Failure {
    /// Notes the code that the actor was running when it failed.
    pub(crate) fn note(&mut self, about: (MailKind, &'static str)) {
        self.1.during = Some(about);
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.1
    }

    pub(crate) fn origin_mut(&mut self) -> &mut Origin {
        &mut self.1
    }

    /// Creates an error of the program, at the place of the caller.
    #[track_caller]
    pub fn new(error: Box<dyn Error + Send + Sync>) -> Failure {
        let place = Some(Location::caller().to_string());
        Failure(ManuallyDrop::new(error), Origin { place, ..Origin::default() })
    }

    /// Creates an error of the runtime itself, which has no place in the program.
    pub fn without_place(error: impl Error + Send + 'static) -> Failure {
        Failure(ManuallyDrop::new(Box::new(error)), Origin::default())
    }

    /// Returns the text of the error.
    pub(crate) fn text(&self) -> String {
        contained(|| self.0.to_string()).unwrap_or_else(|| "an error whose `Display` panicked".to_owned())
    }
}

impl Deref for Failure {
    type Target = dyn Error + Send;

    fn deref(&self) -> &Self::Target {
        &**self.0
    }
}

impl Drop for Failure {
    fn drop(&mut self) {
        // SAFETY: taken once, because this value is being dropped.
        let error = unsafe { ManuallyDrop::take(&mut self.0) };
        contained(|| drop(error)).unwrap_or(());
    }
}

impl Worker {
    /// Calls user code from RUNTIME, between two gulps. Returns `None` if it panics.
    pub(crate) fn call_user<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        debug_assert!(
            !self.ownership.is_user(),
            "`call_user` was called in USER: user code calls other user code directly"
        );
        // No record is claimed from this point on.
        self.ownership.begin();
        let result = contained(f);
        let kept = self.enter_runtime();
        debug_assert!(kept, "a worker that has claimed nothing was taken over");
        result
    }

    /// Drops the tasks of cancelled timers, with the messages in them. In RUNTIME, between two gulps.
    pub(crate) fn drop_cancelled(&self) {
        // SAFETY: in RUNTIME; short borrow.
        let cancelled = std::mem::take(&mut unsafe { self.core() }.cancelled);
        for task in cancelled {
            self.call_user(|| drop(task));
            self.system.open_less();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::{Config, SystemCore};

    static DROPPED: AtomicUsize = AtomicUsize::new(0);

    /// A payload whose drop panics with another one.
    struct Bomb(usize);

    impl Drop for Bomb {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
            if self.0 > 0 {
                std::panic::panic_any(Bomb(self.0 - 1));
            }
        }
    }

    #[test]
    fn payloads_whose_drops_panic_end_nothing() {
        let before = DROPPED.load(Ordering::Relaxed);
        assert_eq!(contained(|| std::panic::panic_any(Bomb(3))), None::<()>);
        assert_eq!(DROPPED.load(Ordering::Relaxed) - before, 4);
        // The last one of too many is forgotten.
        drop(Payload::new(Bomb(1_000)));
        assert_eq!(DROPPED.load(Ordering::Relaxed) - before, 4 + BOMBS_MAX);
        assert_eq!(contained(|| 7), Some(7));
    }

    /// Notes the phase in which it is dropped, and panics.
    struct Phase(Arc<AtomicUsize>);

    impl Drop for Phase {
        fn drop(&mut self) {
            let is_user = current().is_some_and(|worker| worker.ownership.is_user());
            self.0.fetch_add(if is_user { 1 } else { 1_000 }, Ordering::Relaxed);
            panic!("meant");
        }
    }

    #[test]
    fn a_worker_that_drops_the_last_handle_of_another_system_drops_its_hooks_as_user_code() {
        let start = || {
            let config = Config { workers: 1, stages: 1, simulated: Some(0), ..Config::new() };
            SystemCore::start(config).unwrap()
        };
        let (here, other) = (start(), start());
        let dropped = Arc::<AtomicUsize>::default();
        let phase = Phase(Arc::clone(&dropped));
        other.on_dead_letter(Box::new(move |_, _, _| {
            let _ = &phase;
        }));
        other.end(Duration::ZERO, &mut |_, _, _| {});
        assert_eq!((Arc::strong_count(&other), dropped.load(Ordering::Relaxed)), (1, 0));
        let steps = here.steps().unwrap();
        let turn = steps.turn();
        // Between two gulps.
        steps.workers()[0].enter(|| drop(other));
        drop(turn);
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
        here.end(Duration::ZERO, &mut |_, _, _| {});
    }
}
