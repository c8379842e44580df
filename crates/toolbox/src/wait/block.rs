//! Blocking a thread until a future is ready.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use playhouse_actor::{ActorId, assert_outside};
use playhouse_executor::SystemCore;

/// Returns the system of this actor or of its stub, or `None` after the end of the system.
pub(crate) fn system_of(actor: ActorId) -> Option<Arc<SystemCore>> {
    SystemCore::by_id(actor.address().system())
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks this thread until `future` is ready. In a simulated system, this thread runs the system until then.
///
/// Returns `None` if the simulated system has nothing left to do that could make the future ready.
///
/// # Panics
/// The call is made inside an actor.
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
