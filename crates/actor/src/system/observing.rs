//! Observation of a system: its handlers' times, and slow handlers.

use crate::observe::{ActivityCounter, HandlerTimes, Observing, SlowHandler, TimedHandlers};
use crate::system::System;

impl System {
    /// Returns the times of handlers by types of actors and messages, the longest sum first. The list is empty if timing
    /// was never on.
    ///
    /// The times cover the handlers that ran while timing was on, by
    /// [`SystemBuilder::handler_times`](crate::SystemBuilder::handler_times) or [`System::time_handlers`].
    ///
    /// The waits of an async handler are not counted; its parts are added up. Starts, stops and other requests are
    /// listed under names of their own. In a simulation all times are zero, because no time passes in handlers.
    pub fn handler_times(&self) -> Vec<HandlerTimes> {
        Observing::of(self.core()).handler_times()
    }

    /// Times each handler while the returned guard lives. Timing costs each message about 0.1 µs; it costs nothing
    /// while it is off.
    pub fn time_handlers(&self) -> TimedHandlers {
        TimedHandlers::new(self.core())
    }

    /// Calls `hook` for each slow handler: when it has run for longer than
    /// [`SystemBuilder::slow_handlers`](crate::SystemBuilder::slow_handlers) allows and still runs, and again when it
    /// has returned. A handler that returns within the few milliseconds between two checks is reported once. Hooks run
    /// in the order of their registration; none is ever removed. Without a limit no hook is called.
    ///
    /// The hook is called on a thread of the system, and must not block. For a handler that still runs, that thread is
    /// the monitor of stuck handlers. Messages of the hook are sent at once, regardless of the receiver's backlog; a
    /// full mailbox refuses them.
    pub fn on_slow_handler(&self, hook: impl Fn(&SlowHandler) + Send + Sync + 'static) {
        Observing::of(self.core()).on_slow_handler(hook);
    }

    /// Counts the activity of each actor while the returned guard lives.
    #[doc(hidden)]
    pub fn look(&self) -> ActivityCounter {
        ActivityCounter::new(self.core())
    }
}
