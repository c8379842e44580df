//! Input and output by the workers themselves: an idle worker waits for both messages and sockets.
//!
//! At any time at most one worker *polls* (`SystemCore::polling`). It waits in the reactor instead of on its thread's
//! token, so what arrives is decoded, and most often also handled, by the thread that the kernel woke: no hand-over. Who
//! has something for a polling worker wakes the reactor. Busy workers poll now and then, if nobody else does.
//!
//! # Order (I2)
//!
//! What the reactor dispatches is sent like what a timer sends: from the worker's own logs, by the route of now. All logs
//! are flushed before the role of the poller is given up, and the next poller takes its mail before it dispatches; so what
//! that dispatches, on whichever worker, stands behind it wherever it goes.
//!
//! # No lost wake-up (I3)
//!
//! A worker that polls is parked like any other ([`crate::scheduler::idle`]); only that "unpark its thread" is "wake the reactor",
//! which remembers a wake-up that comes before the wait, as a thread's token does. Which of the two it is, is written under
//! the inbox lock together with the presence.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::sync::jitter::seam;
use crate::system::SystemCore;
use crate::worker::user_code::{self, contained};
use crate::worker::{Worker, current};

/// A source of events besides messages, and a place for what workers write: see `SystemCore::set_reactor`.
pub trait Reactor: Send + Sync + 'static {
    /// Waits for events, for [`Reactor::wake`], or until `timeout` has passed; zero: only looks. True: there is something to
    /// be dispatched. Not called by two threads at one time.
    fn wait(&self, timeout: Option<Duration>) -> bool;
    /// Handles the events that were found by `wait`: may send messages and must not block. By the same thread.
    fn dispatch(&self);
    /// Ends a `wait` that is under way, or the next one.
    fn wake(&self);
    /// Writes out what this thread has left to be written: called after each gulp in which [`flush_soon`] was called.
    fn flush(&self);
}

/// What so many messages, at most, have left to be written is written together.
const GOES_ALONG_MAX: u64 = 64;
/// A busy worker looks for events at most so often.
const POLL_EVERY_NS: u64 = 50_000;

/// Has [`Reactor::flush`] called by this thread after the present gulp. False: this thread is no worker (any more), and the
/// caller flushes itself.
pub fn flush_soon() -> bool {
    let Some(worker) = current() else { return false };
    if !worker.unwritten.get() {
        if worker.with_core(|_| ()).is_none() {
            return false;
        }
        worker.unwritten.set(true);
    }
    true
}

/// Calls [`Reactor::wait`]. A panic in it finds nothing, and the role of the poller is given up as ever.
pub(crate) fn found(reactor: &dyn Reactor, timeout: Option<Duration>) -> bool {
    contained(|| reactor.wait(timeout)).unwrap_or(false)
}

impl SystemCore {
    /// Has the workers poll `reactor`. Once; false: there is one already.
    pub fn set_reactor(&self, reactor: Arc<dyn Reactor>) -> bool {
        let set = self.reactor.set(reactor).is_ok();
        if set {
            // Those who are parked have parked without it.
            for worker in 0..self.config.workers as u16 {
                self.rouse(worker);
            }
        }
        set
    }
}

impl Worker {
    /// Takes the role of the poller, if there is a reactor and nobody has it.
    pub(crate) fn begin_to_poll(&self) -> Option<&dyn Reactor> {
        let reactor = self.system.reactor.get()?;
        if self.id as usize >= self.system.config.workers || self.system.polling.load(Ordering::Relaxed) {
            return None;
        }
        // Acquire: pairs with the Release in `end_to_poll`; what the last poller did is seen.
        (!self.system.polling.swap(true, Ordering::Acquire)).then_some(&**reactor)
    }

    pub(crate) fn end_to_poll(&self) {
        self.system.polling.store(false, Ordering::Release);
    }

    /// Dispatches what was found. In RUNTIME, awake, by the poller.
    pub(crate) fn dispatch(&self, reactor: &dyn Reactor) {
        // While this worker rested, its stages may have been adopted: they are sent to by the route of now (I1).
        self.flush();
        // What the last poller has sent here comes before what this one puts into its own queue. It was flushed before the
        // role was given up, so its flag is seen.
        if self.shared().mail.is_up() {
            self.take_mail();
        }
        let before = self.backlog_bytes();
        // It reads messages, which is user code.
        self.call_user(|| reactor.dispatch());
        seam(4);
        // What comes from outside counts as sent by others, though this worker has put it before itself.
        self.note_mail(self.backlog_bytes() - before);
        self.weigh();
        self.flush();
        self.write_out_in_time();
    }

    /// Writes out what was left to be written, unless there is more to do at once, and little was done since: what comes of
    /// that goes along. (A worker that takes what another one reads gets it in small portions, and each would be a system
    /// call: 0.6 per migration instead of 0.05.)
    pub(crate) fn write_out_in_time(&self) {
        let handled = self.handled.get();
        if !self.unwritten.get() {
            return self.written_at.set(handled);
        }
        let more = self.shared().mail.is_up() || self.waiting_bytes() > 0;
        // The count begins anew now and then: then it is time.
        if !more || handled.wrapping_sub(self.written_at.get()) >= GOES_ALONG_MAX {
            self.written_at.set(handled);
            self.write_out();
        }
    }

    /// Writes out what was left to be written.
    pub(crate) fn write_out(&self) {
        if self.unwritten.replace(false)
            && let Some(reactor) = self.system.reactor.get()
        {
            // It writes to the program's transport.
            user_code::call(|| reactor.flush()).unwrap_or(());
        }
    }

    /// A busy worker looks for events, if nobody has for some time. In RUNTIME.
    pub(crate) fn poll_now_and_then(&self, now_ns: u64) {
        // A thread outside runs this worker. The worker's own thread polls.
        if self.lending.is_borrowed.get() {
            return;
        }
        if self.system.reactor.get().is_none() || now_ns < self.system.next_poll_ns.load(Ordering::Relaxed) {
            return;
        }
        let Some(reactor) = self.begin_to_poll() else { return };
        self.system.next_poll_ns.store(now_ns + POLL_EVERY_NS, Ordering::Relaxed);
        if found(reactor, Some(Duration::ZERO)) {
            self.dispatch(reactor);
        }
        self.end_to_poll();
    }
}
