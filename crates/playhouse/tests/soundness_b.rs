//! Systems that are used by several threads, at the ends of threads, and at their own ends.

mod support;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};

use playhouse::Undelivered;
use playhouse::prelude::*;
use support::{finishes, simulated, threads};

// -- the destructors of thread-locals --------------------------------------------------------------------------------

#[derive(Default)]
struct Counter {
    total: u32,
    inner: Option<ActorRef<Counter>>,
}

#[actor]
impl Counter {
    #[message]
    fn add(&mut self) {
        self.total += 1;
    }

    #[message]
    fn total(&self) -> u32 {
        self.total
    }

    /// Asks on behalf of its asker.
    #[message]
    async fn inner_total(&mut self) -> u32 {
        let inner = self.inner.expect("it was made with one");
        inner.ask(Total).await.expect("the inner counter lives")
    }
}

/// Calls a function when it is dropped, and tells what came of it.
struct AtExit<R: Send>(Option<Box<dyn FnOnce() -> R>>, Sender<std::thread::Result<R>>);

impl<R: Send> Drop for AtExit<R> {
    fn drop(&mut self) {
        let call = self.0.take().expect("it is dropped once");
        let _ = self.1.send(catch_unwind(AssertUnwindSafe(call)));
    }
}

/// Calls `before` on a new thread, and `at_exit` in the destructor of a thread-local that is destroyed behind all those that `before` has
/// used.
fn at_thread_exit<R: Send + 'static>(before: impl FnOnce() + Send, at_exit: impl FnOnce() -> R + Send + 'static) -> R {
    thread_local! {
        static LAST: RefCell<Option<Box<dyn std::any::Any>>> = const { RefCell::new(None) };
    }
    let (result, results) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            LAST.set(Some(Box::new(AtExit(Some(Box::new(at_exit)), result))));
            before();
        });
    });
    results.recv().expect("the destructor has run").unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[test]
fn a_full_mailbox_refuses_what_the_destructor_of_a_thread_local_sends() {
    finishes(|| {
        let system = threads(1);
        let (refused, letters) = channel();
        system.on_dead_letter(move |letter| {
            let _ = refused.send(letter.why);
        });
        let bounded = || SpawnOptions::new().mailbox(Mailbox::bounded(1));
        let counter = system.spawn_with(bounded(), Counter::default());
        let (gate, open) = channel::<()>();
        let blocker = system.spawn(Blocker);
        blocker.tell(Block(open));
        counter.tell(Add);
        // The worker waits in the blocker. The counter's mailbox is therefore full.
        let answer = at_thread_exit(
            move || counter.tell(Add),
            move || {
                counter.tell(Add);
                counter.ask(Total).wait()
            },
        );
        assert_eq!(answer, Err(AskError::Full));
        drop(gate);
        system.run_until_idle();
        assert_eq!(counter.ask(Total).wait(), Ok(1));
        system.shutdown().unwrap();
        assert_eq!(letters.try_iter().collect::<Vec<_>>(), [Undelivered::Full; 2]);
    });
}

struct Blocker;

#[actor]
impl Blocker {
    #[message]
    fn block(&mut self, until: std::sync::mpsc::Receiver<()>) {
        let _ = until.recv();
    }
}

#[test]
fn a_simulated_system_runs_in_the_destructor_of_a_thread_local() {
    finishes(|| {
        let system = simulated(1);
        let inner = system.spawn(Counter { total: 3, inner: None });
        let outer = system.spawn(Counter { total: 0, inner: Some(inner) });
        let ask = move || outer.ask(InnerTotal).wait();
        let answer = at_thread_exit(
            move || {
                assert_eq!(ask(), Ok(3));
            },
            ask,
        );
        assert_eq!(answer, Ok(3));
        system.shutdown().unwrap();
    });
}
