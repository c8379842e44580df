//! Futures that wait for time.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as PollContext, Poll, Waker};
use std::time::Duration;

use playhouse_executor::{SystemCore, TimerKey, with_current_system};

use crate::actor::Actor;
use crate::actor::context::Context;
use crate::lock::lock;

/// A future that is ready after some time of a system. The time is virtual in a simulation, and begins at the first
/// poll. See [`Context::sleep`].
///
/// # Cancel safety
/// A sleep that is dropped has no further effect.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use std::time::Duration;
/// # struct Boil;
/// # impl Message for Boil { type Reply = Duration; }
/// # struct Kettle;
/// # impl Actor for Kettle {}
/// impl AsyncHandler<Boil> for Kettle {
///     async fn handle(&mut self, _: Boil, ctx: &mut Context<Self>) -> Duration {
///         let begun = ctx.now();
///         ctx.sleep(Duration::from_secs(180)).await;
///         ctx.now() - begun
///     }
/// }
///
/// let system = System::builder().simulated(1).start()?; // virtual time
/// assert_eq!(system.spawn(Kettle).ask(Boil).wait()?, Duration::from_secs(180));
/// # system.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing sleeps until it is awaited"]
pub struct Sleep {
    system: Arc<SystemCore>,
    delay: Duration,
    key: Option<TimerKey>,
    alarm: Arc<Mutex<Alarm>>,
}

#[derive(Default)]
struct Alarm {
    rung: bool,
    waker: Option<Waker>,
}

impl Sleep {
    #[doc(hidden)]
    pub fn new(system: &Arc<SystemCore>, delay: Duration) -> Sleep {
        Sleep { system: Arc::clone(system), delay, key: None, alarm: Arc::default() }
    }
}

impl<A: Actor> Context<A> {
    /// Returns a future that is ready after `delay`: for async handlers. The resolution is 1 ms, and the future is
    /// never early.
    ///
    /// The actor handles no other messages during the sleep, and the worker runs other actors. In a simulation the time
    /// is virtual.
    ///
    /// ```
    /// # use playhouse_actor::*;
    /// use std::time::Duration;
    ///
    /// struct Oven;
    /// impl Actor for Oven {}
    ///
    /// struct Bake;
    /// impl Message for Bake {
    ///     type Reply = Duration;
    /// }
    /// impl AsyncHandler<Bake> for Oven {
    ///     async fn handle(&mut self, _: Bake, ctx: &mut Context<Self>) -> Duration {
    ///         ctx.sleep(Duration::from_secs(1_200)).await;
    ///         ctx.now()
    ///     }
    /// }
    ///
    /// let system = System::builder().simulated(1).start()?;
    /// assert_eq!(system.spawn(Oven).ask(Bake).wait()?, Duration::from_secs(1_200));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// Outside of a system, because a context is only used in one.
    pub fn sleep(&self, delay: Duration) -> Sleep {
        with_current_system(|system| Sleep::new(system.expect("a handler runs on a worker"), delay))
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut PollContext<'_>) -> Poll<()> {
        let former = {
            let mut alarm = lock(&self.alarm);
            if alarm.rung {
                return Poll::Ready(());
            }
            alarm.waker.replace(cx.waker().clone())
        };
        // The waker is dropped without the lock, because a waker may call any code when it is dropped.
        drop(former);
        if self.key.is_none() {
            let alarm = Arc::clone(&self.alarm);
            let ring = move || {
                let waker = {
                    let mut alarm = lock(&alarm);
                    alarm.rung = true;
                    alarm.waker.take()
                };
                waker.into_iter().for_each(Waker::wake);
                None
            };
            self.key = Some(self.system.start_timer(self.delay, Box::new(ring)));
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.system.cancel_timer(key);
        }
    }
}
