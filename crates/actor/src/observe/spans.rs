//! Spans for handlers, linked to their causes.
//!
//! A message carries a number ([`Observer::cause`](playhouse_executor::Observer::cause)). The span in which the message
//! was sent is kept under that number until the message is handled.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem;
use std::num::NonZeroU64;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use playhouse_executor::{HandlerOutcome, Handling, MailKind, RawAddress, contained};
use rustc_hash::FxHashMap;
use tracing::Span;

use crate::actor::ActorId;
use crate::actor::names::{Label, ShortType};
use crate::lock::lock;
use crate::observe::SlowHandler;

/// The number of causes kept. Older ones are dropped, because the causes of messages that got lost with a system would
/// be kept forever.
const CAUSES_MAX: usize = 65_536;

/// A span. Its drop calls the subscriber, and never panics. Otherwise two panics would end the process when several
/// spans are dropped together.
pub(crate) struct KeptSpan(Span);

impl KeptSpan {
    fn enter(&self) {
        self.0.with_subscriber(|(id, subscriber)| subscriber.enter(id));
    }

    fn exit(&self) {
        self.0.with_subscriber(|(id, subscriber)| subscriber.exit(id));
    }
}

impl Drop for KeptSpan {
    fn drop(&mut self) {
        let span = mem::replace(&mut self.0, Span::none());
        contained(|| drop(span)).unwrap_or(());
    }
}

#[derive(Default)]
struct Causes {
    last: u64,
    spans: BTreeMap<u64, KeptSpan>,
}

/// The spans of a system.
#[derive(Default)]
pub(crate) struct Spans {
    wanted: AtomicBool,
    causes: Mutex<Causes>,
    /// The spans of waiting async handlers.
    waiting: Mutex<FxHashMap<RawAddress, KeptSpan>>,
}

/// A handler's span, which its thread is in, and the cause that its message came with.
type Entered = (KeptSpan, Option<(NonZeroU64, KeptSpan)>);

thread_local! {
    /// The spans of the handlers that run on this thread; `None` for a handler without a span. In the destructors of
    /// the thread's other thread-locals this one may be destroyed. Handlers have no spans then.
    static ENTERED: RefCell<Vec<Option<Entered>>> = const { RefCell::new(Vec::new()) };
}

// No span is closed under a lock, because the close calls the subscriber.
impl Spans {
    pub(crate) fn want(&self, wanted: bool) {
        self.wanted.store(wanted, Ordering::Relaxed);
    }

    pub(crate) fn wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Keeps the span that this thread is in.
    pub(crate) fn cause(&self) -> Option<NonZeroU64> {
        let span = Span::current();
        if span.is_none() {
            return None;
        }
        let (number, _forgotten) = {
            let mut causes = lock(&self.causes);
            causes.last += 1;
            let number = causes.last;
            causes.spans.insert(number, KeptSpan(span));
            let oldest = if causes.spans.len() > CAUSES_MAX { causes.spans.pop_first() } else { None };
            (number, oldest)
        };
        NonZeroU64::new(number)
    }

    pub(crate) fn forget(&self, cause: NonZeroU64) -> Option<KeptSpan> {
        lock(&self.causes).spans.remove(&cause.get())
    }

    pub(crate) fn begin(&self, handling: &Handling) {
        // Adds an entry for each handler, even if the subscriber panics, because `end` takes the last entry.
        let has_place = ENTERED.try_with(|all| all.borrow_mut().push(None)).is_ok();
        if has_place && self.wanted() {
            let entered = self.enter(handling);
            let place = |all: &RefCell<Vec<_>>| all.borrow_mut().last_mut().map(|last| *last = Some(entered));
            ENTERED.with(place);
        }
    }

    fn enter(&self, handling: &Handling) -> Entered {
        let cause = handling.cause.and_then(|number| Some((number, self.forget(number)?)));
        let span = if handling.kind == MailKind::WakeUp { lock(&self.waiting).remove(&handling.to) } else { None };
        let span = span.unwrap_or_else(|| {
            let (who, message) = (Label::of_type(handling.actor, ActorId(handling.to)), ShortType(handling.message));
            let span =
                KeptSpan(tracing::info_span!(target: "playhouse", parent: None, "handle", actor = %who, %message));
            span.0.follows_from(cause.as_ref().and_then(|(_, cause)| cause.0.id()));
            span
        });
        span.enter();
        (span, cause)
    }

    pub(crate) fn end(&self, handling: &Handling, came: HandlerOutcome) {
        let entered = ENTERED.try_with(|all| all.borrow_mut().pop());
        let Some((span, cause)) = entered.ok().flatten().flatten() else { return };
        contained(|| span.exit());
        match came {
            HandlerOutcome::Done => {
                // A request may have ended a handler that waited.
                let _ended = match handling.kind {
                    MailKind::Control => lock(&self.waiting).remove(&handling.to),
                    _ => None,
                };
            }
            HandlerOutcome::Waits => {
                let _of_a_former_one = lock(&self.waiting).insert(handling.to, span);
            }
            HandlerOutcome::Gone => {}
            // The message comes again, with the same cause.
            HandlerOutcome::Deferred => {
                if let Some((number, cause)) = cause {
                    lock(&self.causes).spans.insert(number.get(), cause);
                }
            }
        }
    }

    pub(crate) fn tell_of_slow(&self, slow: &SlowHandler) {
        if self.wanted() {
            tracing::warn!(target: "playhouse", "{slow}");
        }
    }
}
