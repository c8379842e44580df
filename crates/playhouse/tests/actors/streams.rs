//! Streams that are attached to actors.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as PollContext, Poll, Waker};

use crate::support::{Log, finishes, lock, simulated, threads};
use futures_core::Stream;
use playhouse::prelude::*;
use playhouse::{StreamKey, Undelivered};

/// The state that both ends of a source share.
#[derive(Default)]
struct Shared {
    items: VecDeque<Option<u32>>,
    waker: Option<Waker>,
    /// The number of items that were taken.
    taken: u32,
    is_dropped: bool,
    /// Each item is yielded with a wake, as a stream may do.
    wakes: bool,
}

#[derive(Clone, Default)]
struct Source(Arc<Mutex<Shared>>);

impl Source {
    fn put(&self, items: impl IntoIterator<Item = Option<u32>>) {
        let waker = {
            let mut shared = lock(&self.0);
            shared.items.extend(items);
            shared.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    fn numbers(&self, numbers: std::ops::Range<u32>) {
        self.put(numbers.map(Some));
    }

    fn stream(&self) -> Items {
        Items(self.clone())
    }

    fn taken(&self) -> u32 {
        lock(&self.0).taken
    }

    fn is_dropped(&self) -> bool {
        lock(&self.0).is_dropped
    }
}

/// The stream's end of a source. An item of `u32::MAX` panics.
struct Items(Source);

impl Stream for Items {
    type Item = u32;

    fn poll_next(self: Pin<&mut Self>, cx: &mut PollContext<'_>) -> Poll<Option<u32>> {
        let mut shared = lock(&self.0.0);
        match shared.items.pop_front() {
            Some(item) => {
                shared.taken += 1;
                if shared.wakes {
                    cx.waker().wake_by_ref();
                }
                drop(shared);
                assert_ne!(item, Some(u32::MAX), "as it should");
                Poll::Ready(item)
            }
            None => {
                shared.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        lock(&self.0.0).is_dropped = true;
    }
}

/// Logs the items that it gets.
struct Reader {
    log: Log<u32>,
    keys: Vec<StreamKey>,
    /// The maximum of items that were taken and not handled.
    ahead: Option<(Source, Arc<AtomicU32>)>,
    handled: u32,
}

#[actor]
impl Reader {
    fn new(log: &Log<u32>) -> Reader {
        Reader { log: log.clone(), keys: Vec::new(), ahead: None, handled: 0 }
    }

    #[message]
    fn item(&mut self, item: u32) {
        self.handled += 1;
        if let Some((source, most)) = &self.ahead {
            most.fetch_max(source.taken() - self.handled, Ordering::Relaxed);
        }
        self.log.push(item);
    }

    #[message(name = "LateItem")]
    async fn late_item(&mut self, item: u32, ctx: &mut Context<Self>) {
        ctx.sleep(std::time::Duration::from_millis(1)).await;
        self.log.push(item);
    }

    #[message]
    fn read(&mut self, source: Source, ctx: &mut Context<Self>) {
        self.keys.push(ctx.attach(source.stream(), Item));
    }

    #[message(name = "ReadLate")]
    fn read_late(&mut self, source: Source, ctx: &mut Context<Self>) {
        self.keys.push(ctx.attach(source.stream(), LateItem));
    }

    #[message]
    fn detach(&mut self, ctx: &mut Context<Self>) -> Vec<bool> {
        self.keys.iter().map(|key| ctx.detach(*key)).collect()
    }

    #[message]
    fn end(&mut self, ctx: &mut Context<Self>) {
        ctx.stop();
    }

    #[message]
    fn crash(&mut self) {
        panic!("as it is told");
    }

    #[message]
    fn count(&self) -> u32 {
        self.handled
    }
}

// GUARANTEE: Streams
#[test]
fn an_actor_handles_the_items_of_its_streams_in_order_until_they_end() {
    for seed in 0..50 {
        let system = simulated(seed);
        let log = Log::new();
        let reader = system.spawn(Reader::new(&log));
        let [one, late] = [Source::default(), Source::default()];
        one.numbers(0..40);
        reader.tell(Read(one.clone()));
        reader.tell(ReadLate(late.clone()));
        system.run_until_idle();
        late.numbers(100..140);
        one.numbers(40..100);
        system.run_until_idle();
        one.put([None]);
        late.numbers(140..141);
        system.run_until_idle();
        assert!(one.is_dropped() && !late.is_dropped());
        let (late_ones, ones): (Vec<u32>, Vec<u32>) = log.take().into_iter().partition(|item| *item >= 100);
        assert_eq!((ones, late_ones), ((0..100).collect(), (100..141).collect()), "seed {seed}");
        assert_eq!(reader.ask(Detach).wait(), Ok(vec![false, true]));
        assert!(late.is_dropped());
        late.numbers(0..9);
        system.run_until_idle();
        assert!(log.take().is_empty());
    }
}

// GUARANTEE: Streams
#[test]
fn a_stream_is_not_polled_before_its_items_are_handled() {
    for seed in 0..50 {
        let system = simulated(seed);
        let (source, most) = (Source::default(), Arc::<AtomicU32>::default());
        lock(&source.0).wakes = seed.is_multiple_of(2);
        source.numbers(0..1_000);
        let log = Log::new();
        let ahead = Some((source.clone(), Arc::clone(&most)));
        let reader = system.spawn(Reader { ahead, ..Reader::new(&log) });
        reader.tell(Read(source));
        system.run_until_idle();
        assert_eq!(log.take().len(), 1_000);
        let most = most.load(Ordering::Relaxed);
        assert!((1..16).contains(&most), "{most}");
    }
}

// GUARANTEE: Streams
#[test]
fn a_full_mailbox_loses_no_item() {
    for seed in 0..50 {
        let system = simulated(seed);
        let lost = Log::new();
        let losses = lost.clone();
        system.on_dead_letter(move |letter| losses.push(letter.why == Undelivered::Full));
        let log = Log::new();
        let options = SpawnOptions::new().mailbox(Mailbox::bounded(3));
        let reader = system.spawn_with(options, Reader::new(&log));
        let source = Source::default();
        source.numbers(0..500);
        reader.tell(Read(source.clone()));
        system.run_until_idle();
        source.numbers(500..600);
        system.run_until_idle();
        assert_eq!(log.take(), (0..600).collect::<Vec<_>>(), "seed {seed}");
        assert!(lost.take().is_empty());
    }
}

// GUARANTEE: Streams
#[test]
fn a_stream_ends_with_its_actor() {
    for end in ["stop", "kill", "crash", "end", "shutdown"] {
        let system = simulated(7);
        let log = Log::new();
        let reader = system.spawn(Reader::new(&log));
        let source = Source::default();
        reader.tell(Read(source.clone()));
        system.run_until_idle();
        assert!(!source.is_dropped());
        match end {
            "stop" => reader.stop(),
            "kill" => reader.kill(),
            "crash" => reader.tell(Crash),
            "end" => reader.tell(End),
            _ => drop(system.clone().shutdown().unwrap()),
        }
        system.run_until_idle();
        assert!(source.is_dropped(), "{end}");
        // Its waker does no harm.
        source.numbers(0..3);
        system.run_until_idle();
        assert!(log.take().is_empty());
    }
}

/// Always has an item; or never, and wakes itself.
struct Busy {
    has_items: bool,
}

impl Stream for Busy {
    type Item = u32;

    fn poll_next(self: Pin<&mut Self>, cx: &mut PollContext<'_>) -> Poll<Option<u32>> {
        if self.has_items {
            return Poll::Ready(Some(1));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

// GUARANTEE: Streams
#[test]
fn a_stream_without_an_end_holds_up_no_shutdown() {
    finishes(|| {
        for has_items in [true, false] {
            struct Flooded(u64);
            #[actor]
            impl Flooded {
                #[message]
                fn flood(&mut self, has_items: bool, ctx: &mut Context<Self>) {
                    ctx.attach(Busy { has_items }, Drip);
                }
                #[message]
                fn drip(&mut self, by: u32) {
                    self.0 += u64::from(by);
                }
                #[message]
                fn drops(&self) -> u64 {
                    self.0
                }
            }
            let system = threads(2);
            let flooded = system.spawn(Flooded(0));
            flooded.tell(Flood(has_items));
            while flooded.ask(Drops).wait().unwrap() < 1_000 && has_items {}
            let ended = system.shutdown_within(crate::support::LIMIT).unwrap();
            assert!(ended.took < crate::support::LIMIT / 4, "{ended:?}");
        }
    });
}

// GUARANTEE: Streams
#[test]
fn a_restart_drops_the_streams_of_the_former_state() {
    let system = simulated(8);
    let log = Log::new();
    let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
    let reader = {
        let log = log.clone();
        supervisor.ask(ChildSpec::new("reader", move || Reader::new(&log))).wait().unwrap().unwrap()
    };
    let source = Source::default();
    reader.tell(Read(source.clone()));
    source.numbers(0..2);
    system.run_until_idle();
    reader.tell(Crash);
    system.run_until_idle();
    assert!(source.is_dropped());
    let next = Source::default();
    reader.tell(Read(next.clone()));
    next.numbers(2..4);
    system.run_until_idle();
    assert_eq!(log.take(), [0, 1, 2, 3]);
}

// GUARANTEE: Streams
#[test]
fn a_panic_in_a_stream_is_a_crash_of_its_actor() {
    let system = simulated(9);
    let log = Log::new();
    let reports = Log::new();
    let reported = reports.clone();
    system.on_crash(move |report| reported.push(report.to_string()));
    let reader = system.spawn(Reader::new(&log));
    let source = Source::default();
    source.put([Some(1), Some(u32::MAX), Some(2)]);
    reader.tell(Read(source.clone()));
    system.run_until_idle();
    assert!(source.is_dropped());
    assert_eq!(reader.ask(Count).wait(), Err(AskError::Stopped));
    let reports = reports.take();
    assert!(reports.len() == 1 && reports[0].contains("crashed in an attached stream: it panicked"), "{reports:?}");
}

// GUARANTEE: Streams
#[test]
fn items_that_other_threads_put_come_while_the_actor_does_other_things() {
    finishes(|| {
        const EACH: u32 = 2_000;
        let system = threads(2);
        let log = Log::new();
        let reader = system.spawn(Reader::new(&log));
        let sources: Vec<Source> = (0..4).map(|_| Source::default()).collect();
        sources.iter().for_each(|source| reader.tell(Read(source.clone())));
        std::thread::scope(|scope| {
            for (at, source) in (0..).zip(&sources) {
                scope.spawn(move || {
                    for item in 0..EACH {
                        source.numbers(at * EACH + item..at * EACH + item + 1);
                    }
                });
            }
        });
        while reader.ask(Count).wait() != Ok(4 * EACH) {}
        let items = log.take();
        for at in 0..4 {
            let of_source: Vec<u32> = items.iter().copied().filter(|item| item / EACH == at).collect();
            assert_eq!(of_source, (at * EACH..(at + 1) * EACH).collect::<Vec<_>>());
        }
        // Streams that wait do not delay the end.
        let ended = system.shutdown().unwrap();
        assert!(sources.iter().all(Source::is_dropped), "{ended:?}");
    });
}
