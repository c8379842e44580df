//! Async handlers: their futures are polled at once, and again when a waker has sent mail.
//!
//! The handler's future is built and polled in a block of memory. Each thread keeps some blocks of up to 4 KiB for
//! later handlers. A future that is ready at once (most are) is dropped in place, and the thread keeps its block. Such
//! a handler allocates nothing if the thread had a block. If the future is not ready, the block belongs to the actor
//! until the handler has ended. The actor is *suspended*: the future borrows the actor's state, and ordinary messages
//! go to the actor's deferred list until the future is done. Wake-ups arrive as control mail.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll as TaskPoll, RawWaker, RawWakerVTable, Wake, Waker};

use crate::dispatch::control::Poll;
use crate::dispatch::send;
use crate::dispatch::thunks::ControlMail;
use crate::memory::cell::{Cell, status};
use crate::memory::raw_address::{Lane, RawAddress};
use crate::memory::record::Outcome;
use crate::memory::suspended::{Suspended, WakeTarget};
use crate::message::envelope::{AsyncEnvelope, Cx, Resident};
use crate::user_code::During;
use crate::worker;

/// Starts an async handler by one poll at once, and suspends the actor if the handler has not ended.
///
/// # Safety
/// The same as for a thunk with `Op::Run`.
pub(crate) unsafe fn start<S: Resident, E: AsyncEnvelope<S>>(cell: NonNull<Cell>, envelope: E) -> Outcome {
    // SAFETY: nothing else touches the state while the future lives: ordinary mail is deferred while the actor is
    // suspended, control mail gets no state, and `stop` drops the future first.
    let state = unsafe { Cell::state::<S>(cell) };
    let mut cx = Cx::<S>::new(cell);
    let make = || async move {
        let during = During(E::describe);
        envelope.run(state, &mut cx).await;
        std::mem::forget(during);
        cx.note_failure(E::describe);
        cx.outcome()
    };
    // SAFETY: the future borrows the state, which nothing else touches while the future lives.
    let mut suspended = unsafe { Suspended::new(poll_address::<S>, make) };
    // SAFETY: this thread runs the cell's stage. Few actors have a cold part, and it is not made for this.
    let target = unsafe { (*Cell::cold(cell)).as_mut().and_then(|cold| cold.waking.take()) };
    let own = OwnWaker::new(cell, suspended.send, target);
    let polled = suspended.poll(&mut Context::from_waker(&own.waker()));
    if let Some(target) = own.target.into_inner() {
        // SAFETY: this thread runs the cell's stage, and holds no other reference to the cold part.
        unsafe { Cell::cold_mut(cell) }.waking = Some(target);
    }
    match polled {
        TaskPoll::Ready(outcome) => outcome,
        TaskPoll::Pending => {
            // SAFETY: this thread runs the cell's stage, and holds no other reference to the cold part.
            let cold = unsafe { Cell::cold_mut(cell) };
            cold.suspended = Some(suspended);
            // SAFETY: the cell is alive; its status is written by this thread only (I1).
            unsafe { cell.as_ref() }.set_status(status::SUSPENDED, true);
            worker::note_suspended(true);
            Outcome::Continue
        }
    }
}

/// Polls the suspended handler of `cell`, if there still is one.
pub(crate) fn poll(cell: NonNull<Cell>, settle: &mut dyn FnMut(Outcome)) {
    // SAFETY: called from control mail, by the thread that runs the cell's stage.
    let cold = unsafe { Cell::cold_mut(cell) };
    if let Some(target) = &cold.waking {
        // Acquires the writes of the wakers; from this point on, a new wake-up sends new mail.
        target.queued.swap(false, Ordering::AcqRel);
    }
    // Both are taken out for the poll: the handler may look at its cold part while it runs.
    let Some(mut suspended) = cold.suspended.take() else { return };
    let own = OwnWaker::new(cell, suspended.send, cold.waking.take());
    let polled = suspended.poll(&mut Context::from_waker(&own.waker()));
    // SAFETY: this thread runs the cell's stage. No earlier reference is used any more, and this one is not used while
    // a handler is dropped.
    unsafe { Cell::cold_mut(cell) }.waking = own.target.into_inner();
    match polled {
        // SAFETY: this thread runs the cell's stage, and holds no other reference to the cold part.
        TaskPoll::Pending => unsafe { Cell::cold_mut(cell) }.suspended = Some(suspended),
        TaskPoll::Ready(outcome) => {
            drop(suspended);
            // SAFETY: this thread runs the cell's stage, and holds no other reference to the cold part.
            let stop_after = std::mem::take(&mut unsafe { Cell::cold_mut(cell) }.stop_after);
            // SAFETY: the cell is alive; its status is written by this thread only (I1), and the reference to the cold
            // part is not used any more.
            unsafe {
                cell.as_ref().set_status(status::SUSPENDED, false);
                Cell::note_handled(cell);
            }
            worker::note_suspended(false);
            settle(match outcome {
                Outcome::Continue if stop_after => Outcome::Stop,
                Outcome::Continue => Outcome::Resume,
                decided => decided,
            });
        }
    }
}

impl Wake for WakeTarget {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // AcqRel: the following poll sees all writes from before the wake-up (pairs with the swap in `poll`).
        if !self.queued.swap(true, Ordering::AcqRel) || worker::runs_single_deliveries() {
            (self.send)(self.address);
        }
    }
}

/// From a worker, the mail goes behind its earlier messages, and a handler that yields therefore lets others go on.
/// From outside it goes in the system lane, which never makes the waker wait. `send_control` is not used, because it
/// boxes, which would take longer.
fn poll_address<S: Resident>(address: RawAddress) {
    match worker::current() {
        Some(worker) if worker.system_id == address.system() => send::post_request::<S, _>(address, ControlMail(Poll)),
        _ => send::post_lane::<S, _>(address, Lane::System, ControlMail(Poll)),
    }
}

/// The address of an actor whose suspended handler awaits a single answer. [`Sleeper::wake`] needs no `WakeTarget`,
/// whose cache line two workers would write.
pub struct Sleeper {
    address: RawAddress,
    send: fn(RawAddress),
}

impl Sleeper {
    /// Returns the actor whose handler is being polled with `waker`. Returns `None` for any other waker, and for a
    /// clone.
    pub fn polled_with(waker: &Waker) -> Option<Sleeper> {
        if !std::ptr::eq(waker.vtable(), &OWN) {
            return None;
        }
        // SAFETY: a waker with this table is one of `OwnWaker::waker`, and the OwnWaker outlives it.
        let own = unsafe { &*waker.data().cast::<OwnWaker>() };
        Some(Sleeper { address: own.address, send: own.send })
    }

    /// Sends the mail that polls the handler, even if such mail is under way already.
    pub fn wake(self) {
        (self.send)(self.address);
    }
}

/// The waker of a poll, on the stack. Each clone of it is the waker of a [`WakeTarget`]. Other threads may use it
/// during the poll.
struct OwnWaker {
    address: RawAddress,
    send: fn(RawAddress),
    /// The actor's target, made when the waker is cloned for the first time.
    target: OnceLock<Arc<WakeTarget>>,
}

impl OwnWaker {
    fn new(cell: NonNull<Cell>, send: fn(RawAddress), target: Option<Arc<WakeTarget>>) -> Self {
        OwnWaker { address: RawAddress::of(cell), send, target: target.map_or_else(OnceLock::new, OnceLock::from) }
    }

    fn waker(&self) -> ManuallyDrop<Waker> {
        // SAFETY: the vtable functions treat the data as an OwnWaker, which outlives the borrowed waker; clones are
        // wakers of their own. They share an OwnWaker between threads, and it is `Sync`.
        ManuallyDrop::new(unsafe { Waker::from_raw(RawWaker::new(std::ptr::from_ref(self).cast(), &OWN)) })
    }

    fn target(&self) -> Arc<WakeTarget> {
        let target = || WakeTarget { address: self.address, send: self.send, queued: AtomicBool::new(false) };
        Arc::clone(self.target.get_or_init(|| Arc::new(target())))
    }
}

const _: () = {
    const fn is_sync<T: Sync>() {}
    is_sync::<OwnWaker>();
};

static OWN: RawWakerVTable = RawWakerVTable::new(
    |data| {
        // SAFETY: see `OwnWaker::waker`.
        let own = unsafe { &*data.cast::<OwnWaker>() };
        let waker = ManuallyDrop::new(Waker::from(own.target()));
        RawWaker::new(waker.data(), waker.vtable())
    },
    // SAFETY: see `OwnWaker::waker`.
    |data| unsafe { &*data.cast::<OwnWaker>() }.target().wake(),
    // SAFETY: see `OwnWaker::waker`.
    |data| unsafe { &*data.cast::<OwnWaker>() }.target().wake(),
    |_| {},
);

/// Miri runs these tests too: see CONTRIBUTING.md.
#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn};
    use std::panic::resume_unwind;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Poll;
    use std::thread;
    use std::time::Duration;

    use crate::*;

    /// Counts handlers that have begun, or were dropped.
    static BEGUN: AtomicUsize = AtomicUsize::new(0);
    static DROPPED: AtomicUsize = AtomicUsize::new(0);

    struct Waiter;

    impl Resident for Waiter {
        type Extra = u64;
        fn name() -> &'static str {
            "Waiter"
        }
        fn ended(&mut self, _: Option<Box<u64>>, _: Ending, _: &mut Cx<Self>) {}
        fn crashed(_: Crash, cx: &mut ControlCx<Self>) {
            cx.resume();
        }
    }

    struct Start;

    impl Envelope<Waiter> for Start {
        fn run(self, _: &mut Waiter, _: &mut Cx<Waiter>) {}
        fn bounce(self, _: Undelivered) {}
    }

    fn waiter() -> (std::sync::Arc<SystemCore>, Address<Waiter>) {
        let system = SystemCore::start(Config { workers: 1, stages: 1, simulated: Some(0), ..Config::new() }).unwrap();
        let waiter = system.spawn(Waiter, StageChoice::At(0), Start).ok().unwrap();
        (system, waiter)
    }

    /// Clones the waker of its first poll on several threads.
    struct Lend;

    impl AsyncEnvelope<Waiter> for Lend {
        async fn run(self, _: &mut Waiter, _: &mut Cx<Waiter>) {
            poll_fn(|poll| {
                const THREADS: usize = 3;
                let (waker, gate) = (poll.waker(), Barrier::new(THREADS));
                thread::scope(|scope| {
                    for _ in 0..THREADS {
                        scope.spawn(|| {
                            gate.wait();
                            let clone = waker.clone();
                            clone.wake_by_ref();
                        });
                    }
                });
                Poll::Ready(())
            })
            .await;
        }
        fn bounce(self, _: Undelivered) {}
    }

    #[test]
    fn several_threads_clone_the_waker_of_a_poll() {
        for _ in 0..if cfg!(miri) { 2 } else { 100 } {
            let (system, waiter) = waiter();
            waiter.send_async(Lend);
            system.run_until_idle();
            system.end(Duration::ZERO, &mut |_, _, _| {});
        }
    }

    /// Uses the cold part of its cell when it is dropped.
    struct Uses<'a>(&'a mut Cx<Waiter>);

    impl Drop for Uses<'_> {
        fn drop(&mut self) {
            self.0.with_extra(|extra| *extra += 1);
            self.0.note_handled(true);
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until it is dropped, panics when it is polled a second time, or ends then.
    enum Hold {
        ForEver,
        Panics,
        Ends,
    }

    impl AsyncEnvelope<Waiter> for Hold {
        async fn run(self, _: &mut Waiter, cx: &mut Cx<Waiter>) {
            let uses = Uses(cx);
            BEGUN.fetch_add(1, Ordering::Relaxed);
            let mut woken = false;
            let yielded = poll_fn(move |poll| {
                poll.waker().wake_by_ref();
                if std::mem::replace(&mut woken, true) { Poll::Ready(()) } else { Poll::Pending }
            });
            match self {
                Hold::ForEver => pending().await,
                Hold::Panics => {
                    yielded.await;
                    resume_unwind(Box::new("meant"));
                }
                Hold::Ends => yielded.await,
            }
            drop(uses);
        }
        fn bounce(self, _: Undelivered) {}
    }

    struct Interrupt;

    impl Control<Waiter> for Interrupt {
        fn run(self, cx: &mut ControlCx<Waiter>) {
            cx.interrupt();
        }
    }

    struct Fail;

    impl Control<Waiter> for Fail {
        fn run(self, _: &mut ControlCx<Waiter>) {
            resume_unwind(Box::new("meant"));
        }
    }

    #[test]
    fn values_of_a_dropped_handler_may_use_the_rare_part_of_its_cell() {
        let (system, waiter) = waiter();
        for hold in [Hold::Panics, Hold::Ends, Hold::ForEver] {
            waiter.send_async(hold);
            system.run_until_idle();
        }
        waiter.send_control(Interrupt);
        waiter.send_async(Hold::ForEver);
        system.run_until_idle();
        waiter.send_control(Fail);
        waiter.send_async(Hold::ForEver);
        system.run_until_idle();
        system.end(Duration::ZERO, &mut |_, _, _| {});
        assert_eq!((BEGUN.load(Ordering::Relaxed), DROPPED.load(Ordering::Relaxed)), (5, 5));
    }
}
