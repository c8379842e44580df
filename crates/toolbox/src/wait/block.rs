//! How a thread outside waits for a future.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use playhouse_actor::{ActorId, assert_outside};
use playhouse_executor::SystemCore;

/// The system that this actor, or the place of it, is in; none after its end.
pub(crate) fn system_of(actor: ActorId) -> Option<Arc<SystemCore>> {
    SystemCore::by_id(actor.address().system())
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks this thread until `future` is ready; in a simulated system, runs it meanwhile. None: there is nothing left to do
/// in a simulated system that could make it ready.
///
/// # Panics
/// Inside an actor.
#[track_caller]
pub(crate) fn block_on<F: Future>(system: &Arc<SystemCore>, future: F) -> Option<F::Output> {
    assert_outside("`.wait()`", "`.await` it in an async handler, or use `.then(ctx, ..)`");
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    let mut output = None;
    system.block_until(None, &mut || {
        if output.is_none()
            && let Poll::Ready(ready) = future.as_mut().poll(&mut Context::from_waker(&waker))
        {
            output = Some(ready);
        }
        output.is_some()
    });
    output
}
