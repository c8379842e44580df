//! A subscriber of `tracing` that panics harms no handler and no message. The file has one test, because the subscriber
//! is the process's.
#![cfg(feature = "tracing")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playhouse::prelude::*;
use tracing_core::span::{Attributes, Current, Id, Record};
use tracing_core::{Event, Interest, Metadata, Subscriber};

mod support;
use support::{LIMIT, finishes, lock};

/// The methods of a subscriber.
#[derive(Clone, Copy, Debug)]
enum Method {
    Enabled,
    NewSpan,
    FollowsFrom,
    Event,
    Enter,
    Exit,
    CloneSpan,
    TryClose,
    CurrentSpan,
}

const METHODS: [Method; 9] = [
    Method::Enabled,
    Method::NewSpan,
    Method::FollowsFrom,
    Method::Event,
    Method::Enter,
    Method::Exit,
    Method::CloneSpan,
    Method::TryClose,
    Method::CurrentSpan,
];

/// The number of due panics of each method.
static DUE: [AtomicU64; METHODS.len()] = [const { AtomicU64::new(0) }; METHODS.len()];

impl Method {
    fn arm(self, panics: u64) {
        DUE[self as usize].store(panics, Ordering::Relaxed);
    }

    /// Returns the number of due panics.
    fn left(self) -> u64 {
        DUE[self as usize].load(Ordering::Relaxed)
    }

    fn called(self) {
        let less = |left: u64| left.checked_sub(1);
        if DUE[self as usize].fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            // This panic prints nothing on the terminal.
            std::panic::resume_unwind(Box::new("meant: a subscriber"));
        }
    }
}

type Kind = &'static Metadata<'static>;

thread_local! {
    /// The spans that the thread is in.
    static ENTERED: RefCell<Vec<(Id, Kind)>> = const { RefCell::new(Vec::new()) };
}

/// Knows the kinds of all spans that ever existed.
#[derive(Default)]
struct Panics(Mutex<BTreeMap<u64, Kind>>);

impl Subscriber for Panics {
    fn register_callsite(&self, _: Kind) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        Method::Enabled.called();
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        Method::NewSpan.called();
        let mut kinds = lock(&self.0);
        let id = kinds.len() as u64 + 1;
        kinds.insert(id, span.metadata());
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {
        Method::FollowsFrom.called();
    }

    fn event(&self, _: &Event<'_>) {
        Method::Event.called();
    }

    fn enter(&self, span: &Id) {
        Method::Enter.called();
        let kind = lock(&self.0)[&span.into_u64()];
        ENTERED.with_borrow_mut(|entered| entered.push((span.clone(), kind)));
    }

    fn exit(&self, _: &Id) {
        Method::Exit.called();
        ENTERED.with_borrow_mut(|entered| entered.pop());
    }

    fn clone_span(&self, span: &Id) -> Id {
        Method::CloneSpan.called();
        span.clone()
    }

    fn try_close(&self, _: Id) -> bool {
        Method::TryClose.called();
        true
    }

    fn current_span(&self) -> Current {
        Method::CurrentSpan.called();
        let current = ENTERED.with_borrow(|entered| entered.last().cloned());
        current.map_or_else(Current::none, |(id, kind)| Current::new(id, kind))
    }
}

/// Counts the drops of messages.
#[derive(Clone, Default)]
struct Dropped(Arc<AtomicU64>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Clerk {
    open: bool,
    handled: u64,
}

#[actor]
impl Clerk {
    #[message]
    fn count(&mut self, _message: Dropped) -> u64 {
        self.handled += 1;
        self.handled
    }
    /// Waits for its guard.
    #[message(when = "self.open")]
    fn count_when_open(&mut self, _message: Dropped) {
        self.handled += 1;
    }
    #[message]
    fn open(&mut self) {
        self.open = true;
    }
    /// Waits for another actor.
    #[message]
    async fn fetch(&mut self, from: ActorRef<Clerk>, message: Dropped) -> Result<u64, AskError> {
        from.ask(Count(message)).within(LIMIT).await
    }
    #[message]
    fn crash(&mut self, _message: Dropped) {
        // This panic prints nothing on the terminal.
        std::panic::resume_unwind(Box::new("meant: a handler"));
    }
}

/// Plays a small program while `method` panics `panics` times. Returns the number of timed handlers.
fn play(method: Method, panics: u64) -> u64 {
    let told = Arc::new(AtomicU64::new(0));
    let slow = Arc::clone(&told);
    let system =
        System::builder().workers(1).tracing(true).slow_handlers(Duration::ZERO).handler_times(true).start().unwrap();
    system.on_slow_handler(move |_| _ = slow.fetch_add(1, Ordering::Relaxed));
    let [first, second] = [(); 2].map(|()| system.spawn(Clerk::default()));
    let dropped = Dropped::default();
    let mut sent = 0;
    let mut message = || {
        sent += 1;
        Dropped(Arc::clone(&dropped.0))
    };
    let at = (method, panics);
    let request = tracing::info_span!("request").entered();
    method.arm(panics);
    for n in 1..=3 {
        assert_eq!(first.ask(Count(message())).within(LIMIT).wait(), Ok(n), "{at:?}");
        first.tell(CountWhenOpen(message()));
    }
    assert_eq!(first.ask(Fetch(second, message())).within(LIMIT).wait(), Ok(Ok(1)), "{at:?}");
    first.tell(Open);
    system.run_until_idle();
    assert_eq!(first.ask(Count(message())).within(LIMIT).wait(), Ok(7), "{at:?}");
    // These messages' spans still exist when the system ends.
    for _ in 0..3 {
        second.tell(CountWhenOpen(message()));
    }
    assert_eq!(first.ask(Crash(message())).within(LIMIT).wait(), Err(AskError::Panicked), "{at:?}");
    // A dead letter.
    first.tell(Count(message()));
    system.run_until_idle();
    let timed = system.handler_times().iter().map(|times| times.count).sum();
    let report = system.shutdown_within(LIMIT).unwrap();
    assert!(panics == 0 || method.left() < panics, "{at:?} was not met");
    method.arm(0);
    request.exit();
    assert_eq!(report.stats.total.crashes, 1, "{at:?}");
    assert_eq!(dropped.0.load(Ordering::Relaxed), sent, "{at:?}");
    assert!(told.load(Ordering::Relaxed) > 0, "{at:?}");
    timed
}

// GUARANTEE: Subscribers harm nothing
#[test]
fn a_subscriber_that_panics_harms_no_handler_and_no_message() {
    tracing::subscriber::set_global_default(Panics::default()).unwrap();
    finishes(|| {
        for method in METHODS {
            let timed = play(method, 0);
            for panics in [1, u64::MAX] {
                assert_eq!(play(method, panics), timed, "{method:?} {panics}");
            }
        }
    });
}
