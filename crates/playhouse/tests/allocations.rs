//! The message path does not allocate. The test has its own program, because it counts by an allocator of its own.

mod support;

use std::alloc::{GlobalAlloc, Layout, System as Heap};
use std::sync::atomic::{AtomicU64, Ordering};

use playhouse::prelude::*;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, and `System` gets the same arguments.
        unsafe { Heap.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, and `System` gets the same arguments.
        unsafe { Heap.dealloc(at, layout) }
    }
}

#[global_allocator]
static HEAP: Counting = Counting;

struct Busy {
    left: u64,
    other: Option<ActorRef<Busy>>,
}

impl Actor for Busy {}

#[derive(Message, Clone, Copy)]
struct Sync;

#[derive(Message, Clone, Copy)]
struct Async;

#[derive(Message, Clone, Copy)]
struct Meet(ActorRef<Busy>);

#[derive(Message)]
#[message(reply = u64)]
struct Left;

impl Handler<Meet> for Busy {
    fn handle(&mut self, Meet(other): Meet, _: &mut Context<Self>) {
        self.other = Some(other);
    }
}

impl Handler<Left> for Busy {
    fn handle(&mut self, _: Left, _: &mut Context<Self>) -> u64 {
        self.left
    }
}

impl Busy {
    fn next(&mut self, ctx: &Context<Self>) -> Option<ActorRef<Busy>> {
        self.left = self.left.checked_sub(1)?;
        Some(self.other.unwrap_or(ctx.this()))
    }
}

impl Handler<Sync> for Busy {
    fn handle(&mut self, message: Sync, ctx: &mut Context<Self>) {
        if let Some(to) = self.next(ctx) {
            to.tell(message);
        }
    }
}

impl AsyncHandler<Async> for Busy {
    async fn handle(&mut self, message: Async, ctx: &mut Context<Self>) {
        if let Some(to) = self.next(ctx) {
            to.tell(message);
        }
    }
}

// GUARANTEE: No allocation per message
/// The program has one test only, because the counter is the whole program's.
#[test]
fn messages_and_handlers_that_are_ready_do_not_allocate() {
    const MESSAGES: u64 = 20_000;
    support::finishes(|| {
        let system = support::threads(1);
        let pair: Vec<_> = (0..2).map(|_| system.spawn(Busy { left: 3 * MESSAGES, other: None })).collect();
        pair[0].tell(Meet(pair[1]));
        pair[1].tell(Meet(pair[0]));
        for round in 0..3 {
            for (what, start) in [("sync", true), ("async", false)] {
                system.run_until_idle();
                let before = ALLOCATIONS.load(Ordering::Relaxed);
                let left = pair[0].ask(Left).wait().unwrap();
                if start {
                    pair[0].tell(Sync);
                } else {
                    pair[0].tell(Async);
                }
                system.run_until_idle();
                let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
                let done = left - pair[0].ask(Left).wait().unwrap();
                // The first round warms the pools up. In the later rounds only the ask above may allocate.
                if round > 0 && done > 0 {
                    assert!(allocations < 50, "{allocations} allocations for {done} {what} messages");
                }
            }
        }
        system.shutdown().unwrap();
    });
}
