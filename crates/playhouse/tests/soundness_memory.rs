//! Systems leave no memory behind. The test has its own program, because it counts by an allocator of its own.

mod support;

use std::alloc::{GlobalAlloc, Layout, System as Heap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use playhouse::prelude::*;

struct Counting;

static BYTES: AtomicI64 = AtomicI64::new(0);

// SAFETY: every call goes to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, and `System` gets the same arguments.
        unsafe { Heap.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller keeps `GlobalAlloc`'s contract, and `System` gets the same arguments.
        unsafe { Heap.dealloc(at, layout) }
    }
}

#[global_allocator]
static HEAP: Counting = Counting;

#[derive(Default)]
struct Busy {
    children: Vec<ActorRef<Busy>>,
}

#[actor]
impl Busy {
    #[message]
    fn grow(&mut self, children: u32, ctx: &mut Context<Self>) {
        self.children.extend((0..children).map(|_| ctx.spawn(Busy::default())));
        ctx.send_after(Duration::from_secs(3_000), Later(vec![0; 1_000]));
        self.children.iter().for_each(|child| child.tell(Nothing));
    }

    #[message]
    fn later(&mut self, bytes: Vec<u8>) {
        drop(bytes);
    }

    #[message]
    fn nothing(&mut self) {}

    #[message]
    fn count(&self) -> usize {
        self.children.len()
    }

    /// Waits to the end of the system.
    #[message]
    async fn wait(&mut self) {
        std::future::pending::<()>().await;
    }
}

fn use_and_end(system: System) {
    let all: Vec<_> = (0..20).map(|_| system.spawn(Busy::default())).collect();
    for busy in &all {
        busy.tell(Grow(10));
        assert_eq!(busy.ask(Count).wait(), Ok(10));
        busy.tell(Wait);
    }
    system.shutdown_within(Duration::ZERO).unwrap();
}

// GUARANTEE: Systems leave no memory behind
/// The program has one test only, because the counter is the whole program's.
#[test]
fn systems_that_have_ended_leave_no_memory_behind() {
    /// The allowed growth: a chunk of cells for another size of states, and the growth of the lists of vacant cells.
    const SLACK: i64 = 64 * 1024;
    support::finishes(|| {
        for simulated in [false, true] {
            let start = || {
                let builder = System::builder().workers(2);
                if simulated { builder.simulated(1) } else { builder }.start().unwrap()
            };
            (0..10).for_each(|_| use_and_end(start()));
            let before = BYTES.load(Ordering::Relaxed);
            (0..100).for_each(|_| use_and_end(start()));
            let kept = BYTES.load(Ordering::Relaxed) - before;
            assert!(kept < SLACK, "{kept} bytes are kept after 100 systems, simulated: {simulated}");
        }
    });
}
