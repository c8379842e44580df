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
//! [`Worker::call_user`](crate::worker::Worker::call_user). This is only possible between two gulps, when all logs may
//! be opened. At other points in RUNTIME no user code is called: cancelled timers wait in `Core::cancelled`, and
//! records that the system no longer takes wait in an inbox for the sweep (`quiescence.rs`).
//!
//! A worker has claimed no record while it calls user code from RUNTIME, and the monitor therefore never takes it over
//! during the call.

pub(crate) mod crash;
pub(crate) mod mail_kind;

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Once;

use crate::user_code::crash::{Origin, text_of};
use crate::user_code::mail_kind::MailKind;

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

thread_local! {
    /// The origin of the panic that is unwinding, as far as it is known, and the text of the panic that the origin's
    /// `place` belongs to.
    static ORIGIN: RefCell<(Origin, Option<String>)> =
        const { RefCell::new((Origin { is_reported: false, during: None, place: None }, None)) };
}

/// Installs a panic hook that notes the places of panics on workers. The former hook is still called.
pub(crate) fn note_places(is_worker: fn() -> bool) {
    static ONCE: Once = Once::new();
    if std::thread::panicking() {
        // The hook cannot be changed during a panic. The next system will do it.
        return;
    }
    ONCE.call_once(|| {
        let former = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if is_worker() {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::worker::current;
    use crate::{Config, Payload, SystemCore};

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
