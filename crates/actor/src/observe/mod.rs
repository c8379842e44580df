//! Observation of a running system: handler times, slow handlers, the figures of `top`; and spans, if they are compiled
//! in.
//!
//! The executor reports each handler while an observation is switched on ([`Observer`]), and has no observer on the
//! message path otherwise.

pub(crate) mod histogram;
#[cfg(feature = "tracing")]
pub(crate) mod spans;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playhouse_executor::{HandlerOutcome, Handling, MailKind, Observer, RawAddress, SystemCore, contained};
use rustc_hash::FxHashMap;

use crate::actor::ActorId;
use crate::actor::names::{Label, ShortType};
use crate::lock::lock;
use crate::observe::histogram::Histogram;

/// The number of actors that are counted one by one for each worker. The messages of further actors are counted
/// together.
const ACTORS_MAX: usize = 4096;

/// The observer of a system.
pub(crate) struct Observing {
    /// Locked during a change of the switched-on observations.
    changes: Mutex<()>,
    /// The number of users of times.
    times_wanted: AtomicUsize,
    /// The number of users of each actor's activity.
    actors_wanted: AtomicUsize,
    /// The limit for slow handlers; `u64::MAX`: no limit.
    slow_ns: AtomicU64,
    slow: Hooks<SlowHandler>,
    reports: Hooks<dyn Report>,
    /// `true` if crashes and decisions of supervisors are printed on stderr.
    prints_crashes: AtomicBool,
    /// One for each worker, because workers would otherwise wait for each other.
    shards: Box<[Mutex<Shard>]>,
    /// The waiting async handlers: the message, and the time that its handler has run up to now.
    waiting: Mutex<FxHashMap<RawAddress, (&'static str, Duration)>>,
    #[cfg(feature = "tracing")]
    pub(crate) spans: crate::observe::spans::Spans,
}

/// A report that is printed, and for which a program may have hooks.
pub(crate) trait Report: fmt::Display + Any {
    /// Makes the report an event of the `tracing` crate.
    #[cfg(feature = "tracing")]
    fn trace(&self);
}

type Hook<T> = Arc<dyn Fn(&T) + Send + Sync>;

/// User functions that are called with each report.
struct Hooks<T: ?Sized>(Mutex<Vec<Hook<T>>>);

impl<T: ?Sized> Hooks<T> {
    const fn new() -> Hooks<T> {
        Hooks(Mutex::new(Vec::new()))
    }

    fn add(&self, hook: impl Fn(&T) + Send + Sync + 'static) {
        lock(&self.0).push(Arc::new(hook));
    }

    fn call(&self, report: &T) {
        // No hook is called under a lock.
        let hooks = lock(&self.0).clone();
        for hook in hooks {
            // The hook is the user's code, and runs on a thread of the system.
            contained(|| hook(report));
        }
    }
}

#[derive(Default)]
struct Shard {
    /// Times by the addresses of both types' names: one type may have several addresses.
    times: FxHashMap<(usize, usize), (&'static str, &'static str, Histogram)>,
    doings: ActivityCounts,
}

/// The activity of actors since the last request.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct ActivityCounts {
    /// By actor: its type, the messages it has handled, and the time that they took. Holds the first 4,096 actors of
    /// each worker.
    pub actors: FxHashMap<RawAddress, (&'static str, u64, Duration)>,
    /// The messages of all actors, by stage.
    pub stages: BTreeMap<u16, u64>,
    /// The time that each worker was in handlers.
    pub busy: BTreeMap<u16, Duration>,
}

/// Returns the text as one line with its end: characters that would end it, or move the cursor of a terminal, are escaped.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len() + 1);
    for char in text.chars() {
        match char {
            '\u{2028}' | '\u{2029}' => line.extend(char.escape_default()),
            _ if char.is_control() => line.extend(char.escape_default()),
            _ => line.push(char),
        }
    }
    line.push('\n');
    line
}

impl Observing {
    pub(crate) fn new(workers: usize) -> Observing {
        Observing {
            changes: Mutex::default(),
            times_wanted: AtomicUsize::new(0),
            actors_wanted: AtomicUsize::new(0),
            slow_ns: AtomicU64::new(u64::MAX),
            slow: Hooks::new(),
            reports: Hooks::new(),
            prints_crashes: AtomicBool::new(true),
            shards: (0..workers).map(|_| Mutex::default()).collect(),
            waiting: Mutex::default(),
            #[cfg(feature = "tracing")]
            spans: crate::observe::spans::Spans::default(),
        }
    }

    pub(crate) fn of(core: &SystemCore) -> &Observing {
        core.observer().expect("a system has an observer from its start on")
    }

    /// Switches observations on or off.
    fn change(core: &SystemCore, change: impl FnOnce(&Observing)) {
        let this = Observing::of(core);
        // A concurrent change must not switch off an observation that this one has switched on.
        let _alone = lock(&this.changes);
        change(this);
        #[cfg(feature = "tracing")]
        let spans = this.spans.wanted();
        #[cfg(not(feature = "tracing"))]
        let spans = false;
        let times = this.times_wanted.load(Ordering::Relaxed) + this.actors_wanted.load(Ordering::Relaxed) > 0;
        core.look_on(times || spans || this.slow_ns.load(Ordering::Relaxed) != u64::MAX, spans);
    }

    fn slow(&self, handling: &Handling, took: Duration, running: bool) {
        let slow =
            SlowHandler { actor: handling.actor, who: ActorId(handling.to), message: handling.message, took, running };
        #[cfg(feature = "tracing")]
        contained(|| self.spans.tell_of_slow(&slow));
        self.slow.call(&slow);
    }

    /// Returns the times of all handlers, the longest total first.
    pub(crate) fn handler_times(&self) -> Vec<HandlerTimes> {
        let mut merged = BTreeMap::<(&str, &str), Histogram>::new();
        for shard in &self.shards {
            for (actor, message, histogram) in lock(shard).times.values() {
                merged.entry((*actor, *message)).or_insert_with(Histogram::new).add(histogram);
            }
        }
        let times = merged.into_iter().map(|((actor, message), histogram)| HandlerTimes {
            actor,
            message,
            count: histogram.count,
            total: Duration::from_nanos(histogram.total_ns),
            max: Duration::from_nanos(histogram.max_ns),
            histogram,
        });
        let mut times: Vec<_> = times.collect();
        times.sort_by_key(|times| std::cmp::Reverse(times.total));
        times
    }

    pub(crate) fn on_slow_handler(&self, hook: impl Fn(&SlowHandler) + Send + Sync + 'static) {
        self.slow.add(hook);
    }

    /// Calls `hook` for each report of the type `R`.
    pub(crate) fn on_report<R: Report>(&self, hook: impl Fn(&R) + Send + Sync + 'static) {
        self.reports.add(move |report| {
            let report: &dyn Any = report;
            if let Some(report) = report.downcast_ref() {
                hook(report);
            }
        });
    }

    /// Prints the report, makes it an event of the `tracing` crate, and calls the hooks for it.
    pub(crate) fn report(&self, report: &impl Report) {
        self.print(report);
        #[cfg(feature = "tracing")]
        contained(|| report.trace());
        self.reports.call(report);
    }

    /// Prints the report as one line, to the output of Rust's own panic hook: a test captures the prints of its own
    /// thread. A report that cannot be printed is lost, because stderr may be closed.
    fn print(&self, report: &impl fmt::Display) {
        if self.prints_crashes.load(Ordering::Relaxed) {
            // One write, because other threads print as well.
            let line = one_line(&format!("playhouse: {report}"));
            contained(|| eprint!("{line}"));
        }
    }

    fn is_slow(&self, took: Duration) -> bool {
        took.as_nanos() > u128::from(self.slow_ns.load(Ordering::Relaxed))
    }

    /// Returns the message of a finished handler, and the time that it has run over all its parts. Returns `None` if
    /// the handler has not finished.
    fn whole(&self, handling: &Handling, came: HandlerOutcome, took: Duration) -> Option<(&'static str, Duration)> {
        match (came, handling.kind) {
            (HandlerOutcome::Deferred | HandlerOutcome::Gone, _) => None,
            (HandlerOutcome::Waits, _) => {
                let mut waiting = lock(&self.waiting);
                waiting.entry(handling.to).or_insert((handling.message, Duration::ZERO)).1 += took;
                None
            }
            (HandlerOutcome::Done, MailKind::WakeUp) => {
                lock(&self.waiting).remove(&handling.to).map(|(message, before)| (message, before + took))
            }
            (HandlerOutcome::Done, MailKind::Control) => {
                // The request may have ended a handler that waited.
                lock(&self.waiting).remove(&handling.to);
                Some((handling.message, took))
            }
            (HandlerOutcome::Done, _) => Some((handling.message, took)),
        }
    }
}

impl Observer for Observing {
    fn begins(&self, _handling: &Handling) {
        #[cfg(feature = "tracing")]
        self.spans.begin(_handling);
    }

    fn ends(&self, handling: &Handling, came: HandlerOutcome, took: Duration) {
        #[cfg(feature = "tracing")]
        contained(|| self.spans.end(handling, came));
        if let Some((message, whole)) = self.whole(handling, came, took)
            && self.times_wanted.load(Ordering::Relaxed) + self.actors_wanted.load(Ordering::Relaxed) > 0
        {
            let mut shard = lock(&self.shards[usize::from(handling.worker) % self.shards.len()]);
            let Shard { times, doings } = &mut *shard;
            let key = (handling.actor.as_ptr().addr(), message.as_ptr().addr());
            times.entry(key).or_insert_with(|| (handling.actor, message, Histogram::new())).2.note(whole);
            if self.actors_wanted.load(Ordering::Relaxed) > 0 {
                *doings.stages.entry(handling.to.stage()).or_default() += 1;
                *doings.busy.entry(handling.worker).or_default() += whole;
                if doings.actors.len() < ACTORS_MAX || doings.actors.contains_key(&handling.to) {
                    let done = doings.actors.entry(handling.to).or_insert((handling.actor, 0, Duration::ZERO));
                    (done.1, done.2) = (done.1 + 1, done.2 + whole);
                }
            }
        }
        if !matches!(came, HandlerOutcome::Deferred | HandlerOutcome::Gone) && self.is_slow(took) {
            self.slow(handling, took, false);
        }
    }

    fn still_runs(&self, handling: &Handling, so_long: Duration) -> bool {
        let slow = self.is_slow(so_long);
        if slow {
            self.slow(handling, so_long, true);
        }
        slow
    }

    fn cause(&self) -> Option<NonZeroU64> {
        #[cfg(feature = "tracing")]
        return self.spans.cause();
        #[cfg(not(feature = "tracing"))]
        None
    }

    fn lost(&self, _cause: NonZeroU64) {
        #[cfg(feature = "tracing")]
        self.spans.forget(_cause);
    }
}

/// The times that the handlers of one type of actor took for one type of message: see [`System::handler_times`](crate::System::handler_times).
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
/// # let system = System::builder().handler_times(true).start()?;
/// let counter = system.spawn(Counter::default());
/// counter.tell(Add(1));
/// system.run_until_idle();
/// let times = system.handler_times();
/// let adds: &HandlerTimes = times.iter().find(|times| times.message.ends_with("Add")).unwrap();
/// assert_eq!(adds.count, 1);
/// assert!(adds.quantile(0.99) >= adds.quantile(0.5));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HandlerTimes {
    /// The type of the actor, with its path: `shop::Till`.
    pub actor: &'static str,
    /// The type of the message, with its path.
    pub message: &'static str,
    /// The number of handled messages.
    pub count: u64,
    /// The sum of the times.
    pub total: Duration,
    /// The longest time.
    pub max: Duration,
    histogram: Histogram,
}

impl HandlerTimes {
    /// Returns the time that `share` (from 0 to 1) of the handlers did not exceed: 1 in 100 handlers took longer than
    /// `quantile(0.99)`. The result is at most 6.25 % too long.
    pub fn quantile(&self, share: f64) -> Duration {
        self.histogram.quantile(share)
    }

    /// Returns the average time.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.histogram.total_ns / self.count.max(1))
    }
}

/// Writes one line: `Till Sell: 1000 in 2.5ms, median 2.4µs, p99 3.1µs, longest 12µs`.
impl fmt::Display for HandlerTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HandlerTimes { actor, message, count, total, max, .. } = self;
        let (median, p99) = (self.quantile(0.5), self.quantile(0.99));
        let (actor, message) = (ShortType(actor), ShortType(message));
        write!(f, "{actor} {message}: {count} in {total:.1?}, median {median:.1?}, p99 {p99:.1?}, longest {max:.1?}")
    }
}

/// The report of a handler that took, or takes, longer than
/// [`SystemBuilder::slow_handlers`](crate::SystemBuilder::slow_handlers) allows. It is displayed as
/// `Till "two" took 31.2ms for Sell`, or `Till "two" has been at Sell for 12.1ms`.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// use std::time::Duration;
///
/// let system = System::builder().slow_handlers(Duration::from_millis(10)).start()?;
/// system.on_slow_handler(|slow: &SlowHandler| eprintln!("{slow}"));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("starvation"))]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlowHandler {
    /// The type of the actor, with its path.
    pub actor: &'static str,
    /// The identity of the actor.
    pub who: ActorId,
    /// The type of the message, with its path; `wake-up` for the part of an async handler after an await.
    pub message: &'static str,
    /// The time that the handler has run.
    pub took: Duration,
    /// `true` if the handler is still running. It is reported again when it returns.
    pub running: bool,
}

impl fmt::Display for SlowHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (who, message, took) = (Label::of_type(self.actor, self.who), ShortType(self.message), self.took);
        if self.running {
            write!(f, "{who} has been at {message} for {took:.1?}")
        } else {
            write!(f, "{who} took {took:.1?} for {message}")
        }
    }
}

/// A guard that keeps the timing of handlers on: see [`System::time_handlers`](crate::System::time_handlers).
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
/// let timed: TimedHandlers = system.time_handlers();
/// counter.tell(Add(1));
/// system.run_until_idle();
/// drop(timed); // handlers are not timed any more
/// assert!(!system.handler_times().is_empty());
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "handlers are timed only as long as this lives"]
pub struct TimedHandlers {
    core: Arc<SystemCore>,
}

impl TimedHandlers {
    pub(crate) fn new(core: &Arc<SystemCore>) -> TimedHandlers {
        Observing::change(core, |this| _ = this.times_wanted.fetch_add(1, Ordering::Relaxed));
        TimedHandlers { core: Arc::clone(core) }
    }
}

impl Drop for TimedHandlers {
    fn drop(&mut self) {
        Observing::change(&self.core, |this| _ = this.times_wanted.fetch_sub(1, Ordering::Relaxed));
    }
}

/// A guard that keeps the counts of actors' activity on.
#[doc(hidden)]
#[derive(Debug)]
pub struct ActivityCounter {
    core: Arc<SystemCore>,
}

impl ActivityCounter {
    pub(crate) fn new(core: &Arc<SystemCore>) -> ActivityCounter {
        Observing::change(core, |this| _ = this.actors_wanted.fetch_add(1, Ordering::Relaxed));
        ActivityCounter { core: Arc::clone(core) }
    }

    /// Returns the activity since the last call by any user.
    pub fn take(&self) -> ActivityCounts {
        let mut all = ActivityCounts::default();
        for shard in &Observing::of(&self.core).shards {
            let ActivityCounts { actors, stages, busy } = std::mem::take(&mut lock(shard).doings);
            for (stage, handled) in stages {
                *all.stages.entry(stage).or_default() += handled;
            }
            for (worker, took) in busy {
                *all.busy.entry(worker).or_default() += took;
            }
            for (who, (actor, handled, took)) in actors {
                let done = all.actors.entry(who).or_insert((actor, 0, Duration::ZERO));
                (done.1, done.2) = (done.1 + handled, done.2 + took);
            }
        }
        all
    }
}

impl Drop for ActivityCounter {
    fn drop(&mut self) {
        Observing::change(&self.core, |this| _ = this.actors_wanted.fetch_sub(1, Ordering::Relaxed));
    }
}

/// The observations that are on from the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed {
    pub(crate) times: bool,
    pub(crate) prints_crashes: bool,
    pub(crate) slow: Option<Duration>,
    #[cfg(feature = "tracing")]
    pub(crate) spans: bool,
}

impl Default for Observed {
    fn default() -> Observed {
        Observed {
            times: false,
            prints_crashes: true,
            slow: None,
            #[cfg(feature = "tracing")]
            spans: false,
        }
    }
}

impl Observed {
    /// Begins the observation of a system that has just been started.
    pub(crate) fn begin(self, core: &Arc<SystemCore>) {
        core.set_observer(Arc::new(Observing::new(core.config().workers)));
        Observing::change(core, |observing| {
            observing.prints_crashes.store(self.prints_crashes, Ordering::Relaxed);
            observing.times_wanted.store(usize::from(self.times), Ordering::Relaxed);
            let slow_ns = self.slow.map_or(u64::MAX, |limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
            observing.slow_ns.store(slow_ns, Ordering::Relaxed);
            #[cfg(feature = "tracing")]
            observing.spans.want(self.spans);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn a_report_is_one_line_whatever_its_text_contains() {
        assert_eq!(
            one_line("a\r\nplayhouse: \u{1b}[2J\u{85}\u{2028}ä"),
            "a\\r\\nplayhouse: \\u{1b}[2J\\u{85}\\u{2028}ä\n"
        );
    }
}
