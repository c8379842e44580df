//! Shutdowns that are awaited.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use crate::actor::outside::assert_outside_of;
use crate::lock::lock;
use crate::system::{ShutdownError, ShutdownReport, System};

/// A shutdown in a thread of its own: see [`System::shutdown_async`]. The future is ready when the shutdown has ended.
///
/// # Cancel safety
/// The shutdown continues if this future is dropped.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use std::time::Duration;
/// async fn end(system: System) -> Result<(), ShutdownError> {
///     let ending: Ending = system.shutdown_async(Duration::from_secs(5));
///     let report = ending.await?;
///     println!("{report}");
///     Ok(())
/// }
/// ```
#[must_use = "a shutdown tells how it ended when it is awaited"]
pub struct Ending(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    ended: Option<Result<ShutdownReport, ShutdownError>>,
    waker: Option<Waker>,
}

impl Ending {
    /// Runs `shutdown` in a thread, or in this one if there is none.
    #[doc(hidden)]
    pub fn of(shutdown: impl FnOnce() -> Result<ShutdownReport, ShutdownError> + Send + 'static) -> Ending {
        let state = Arc::<Mutex<State>>::default();
        let ending = Ending(Arc::clone(&state));
        let shutdown = Arc::new(Mutex::new(Some(shutdown)));
        let run = {
            let shutdown = Arc::clone(&shutdown);
            move || {
                let shutdown = lock(&shutdown).take();
                let Some(shutdown) = shutdown else { return };
                let ended = shutdown();
                let waker = {
                    let mut state = lock(&state);
                    state.ended = Some(ended);
                    state.waker.take()
                };
                waker.into_iter().for_each(Waker::wake);
            }
        };
        if thread::Builder::new().name("playhouse-end".to_owned()).spawn(run.clone()).is_err() {
            run();
        }
        ending
    }
}

impl Future for Ending {
    type Output = Result<ShutdownReport, ShutdownError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let waker = cx.waker().clone();
        let mut state = lock(&self.0);
        if let Some(ended) = state.ended.take() {
            return Poll::Ready(ended);
        }
        let former = state.waker.replace(waker);
        drop(state);
        // The waker is dropped without the lock, because a waker may call any code when it is dropped.
        drop(former);
        Poll::Pending
    }
}

impl System {
    /// Shuts the system down like [`System::shutdown_within`], in a thread of its own: for async code outside of
    /// actors. The caller's thread is not blocked.
    ///
    /// ```
    /// # use playhouse_actor::System;
    /// use std::time::Duration;
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let system = System::start()?;
    /// let report = system.shutdown_async(Duration::from_secs(5)).await?;
    /// assert_eq!(report.undelivered, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ShutdownError`] if actors are stuck, as for [`System::shutdown`].
    ///
    /// # Panics
    /// Inside an actor of this system.
    #[track_caller]
    pub fn shutdown_async(self, limit: Duration) -> Ending {
        assert_outside_of(
            self.core(),
            "`shutdown_async`",
            "call it outside of actors, which can tell a task there that it is time",
        );
        Ending::of(move || self.shutdown_within(limit))
    }
}
