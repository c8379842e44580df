//! Requests to a cell whose state is absent or borrowed.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use playhouse_executor::{
    Address, AsyncEnvelope, Config, Control, ControlCx, Crash, Cx, Ending, Envelope, Resident, StageChoice, StubRoute,
    SystemCore, Undelivered,
};

struct Plain(u64);

impl Resident for Plain {
    type Extra = u64;

    fn name() -> &'static str {
        "Plain"
    }
    fn ended(&mut self, _: Option<Box<u64>>, _: Ending, _: &mut Cx<Self>) {}
    fn crashed(crash: Crash, cx: &mut ControlCx<Self>) {
        cx.give_up(crash);
    }
}

struct Start;

impl Envelope<Plain> for Start {
    fn run(self, _: &mut Plain, _: &mut Cx<Plain>) {}
    fn bounce(self, _: Undelivered) {}
}

/// Borrows the state until its drop, and then uses the state again.
struct Borrow(Arc<AtomicUsize>);

struct Uses<'a>(&'a mut Plain, Arc<AtomicUsize>);

impl Drop for Uses<'_> {
    fn drop(&mut self) {
        self.0.0 += 1;
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

impl AsyncEnvelope<Plain> for Borrow {
    async fn run(self, state: &mut Plain, _: &mut Cx<Plain>) {
        let _uses = Uses(state, self.0);
        pending().await
    }
    fn bounce(self, _: Undelivered) {}
}

struct Request<F>(F);

impl<F: FnOnce(&mut ControlCx<Plain>) + Send + 'static> Control<Plain> for Request<F> {
    fn run(self, cx: &mut ControlCx<Plain>) {
        (self.0)(cx);
    }
}

fn plain() -> (Arc<SystemCore>, Address<Plain>) {
    let system = SystemCore::start(Config { workers: 1, stages: 1, simulated: Some(0), ..Config::new() }).unwrap();
    let plain = system.spawn(Plain(0), StageChoice::At(0), Start).ok().unwrap();
    system.run_until_idle();
    (system, plain)
}

/// Runs `request` on the actor and returns what it found.
fn find<R: Send + 'static>(
    system: &Arc<SystemCore>,
    plain: Address<Plain>,
    request: impl FnOnce(&mut ControlCx<Plain>) -> R + Send + 'static,
) -> R {
    let (send, receive) = std::sync::mpsc::channel();
    plain.send_control(Request(move |cx: &mut ControlCx<Plain>| {
        let _ = send.send(request(cx));
    }));
    system.run_until_idle();
    receive.recv().expect("the request was carried out")
}

#[test]
fn an_actor_that_is_held_has_no_suspended_handler() {
    let (system, plain) = plain();
    let dropped = Arc::<AtomicUsize>::default();
    plain.send_async(Borrow(Arc::clone(&dropped)));
    system.run_until_idle();
    let state = find(&system, plain, |cx| {
        assert!(cx.is_suspended() && cx.state().is_none());
        cx.hold();
        cx.state().map(|state| state.0)
    });
    assert_eq!((state, dropped.load(Ordering::Relaxed)), (Some(1), 1));
    plain.send_control(Request(ControlCx::resume));
    system.end(Duration::ZERO, &mut |_, _, _| {});
}

#[test]
fn an_actor_that_has_departed_has_no_state() {
    let (system, plain) = plain();
    let had = find(&system, plain, |cx| {
        cx.freeze();
        let before = cx.state().is_some();
        cx.depart(Arc::new(StubRoute::default()));
        let after = cx.state().is_some();
        cx.kill();
        (before, after)
    });
    assert_eq!(had, (true, false));
    system.end(Duration::ZERO, &mut |_, _, _| {});
}
