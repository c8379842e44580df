//! Input and output by the workers themselves: an idle worker waits for both messages and sockets.
//!
//! At any time at most one worker *polls* (`Poller::polling`). It waits in the reactor instead of on its thread's
//! token. The thread that the kernel woke therefore decodes the data, and most often also handles it, without a
//! hand-over. A thread with mail for a polling worker wakes the reactor. Busy workers poll now and then, if no other
//! worker does.
//!
//! # Order (I2)
//!
//! Messages that the reactor dispatches are sent like those of a timer: from the worker's own logs, by the updated
//! route. All logs are flushed before the role of the poller is given up, and the next poller takes its mail before it
//! dispatches. Messages of the later dispatch, on any worker, therefore go behind the earlier ones at each receiver.
//!
//! # No lost wake-up (I3)
//!
//! A worker that polls is parked like any other ([`crate::scheduler::idle`]), but "unpark its thread" is "wake the
//! reactor". The reactor remembers a wake-up that comes before the wait, like a thread's token. The choice between the
//! two is written under the inbox lock together with the presence.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::sync::jitter::seam;
use crate::user_code::contained;
use crate::worker::reactor::Reactor;
use crate::worker::system_core::SystemCore;
use crate::worker::{Worker, current, user_calls};

/// While more work waits, the data of this number of messages is written together, or that of the messages of
/// [`GOES_ALONG_NS`] if those are more.
const GOES_ALONG: u64 = 64;
/// The work, by estimate, whose data is written together. A gulp is shorter, above all while a worker is idle, and a
/// write after each gulp takes longer than the gulp's fine messages.
const GOES_ALONG_NS: u64 = 50_000;
/// The least time between two polls of a busy worker.
const POLL_EVERY_NS: u64 = 50_000;

/// Has [`Reactor::flush`] called by this thread after the present gulp. Returns false if this thread is no worker (any
/// more); the caller then flushes itself.
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

/// Calls [`Reactor::wait`]. A panic in it counts as no event, and the worker gives up the role of the poller as usual.
pub(crate) fn found(reactor: &dyn Reactor, timeout: Option<Duration>) -> bool {
    contained(|| reactor.wait(timeout)).unwrap_or(false)
}

impl SystemCore {
    /// Has the workers poll `reactor`. Can be called once; returns false if there is a reactor already.
    pub fn set_reactor(&self, reactor: Arc<dyn Reactor>) -> bool {
        let set = self.poller.reactor.set(reactor).is_ok();
        if set {
            // Parked workers have parked without the reactor.
            for worker in 0..self.config.workers as u16 {
                self.rouse(worker);
            }
        }
        set
    }
}

impl Worker {
    /// Takes the role of the poller, if there is a reactor and no worker has the role.
    pub(crate) fn begin_to_poll(&self) -> Option<&dyn Reactor> {
        let reactor = self.system.poller.reactor.get()?;
        if self.id as usize >= self.system.config.workers || self.system.poller.polling.load(Ordering::Relaxed) {
            return None;
        }
        // Acquire: pairs with the Release in `end_to_poll`, and shows what the last poller did.
        (!self.system.poller.polling.swap(true, Ordering::Acquire)).then_some(&**reactor)
    }

    pub(crate) fn end_to_poll(&self) {
        self.system.poller.polling.store(false, Ordering::Release);
    }

    /// Dispatches the events that were found. In RUNTIME, awake, by the poller.
    pub(crate) fn dispatch(&self, reactor: &dyn Reactor) {
        // While this worker was idle, its stages may have been adopted. The updated route is therefore used (I1).
        self.flush();
        // Messages that the last poller has sent to this worker come before those that this one puts into its own
        // queue. They were flushed before the role was given up, and the flag therefore shows them.
        if self.shared().mail.is_up() {
            self.take_mail();
        }
        let before = self.backlog_bytes();
        // The reactor reads messages, which runs user code.
        self.call_user(|| reactor.dispatch());
        seam(4);
        // Messages from outside count as sent by others, although this worker has put them into its own queue.
        self.note_mail(self.backlog_bytes() - before);
        self.weigh();
        self.flush();
        self.write_out_in_time();
    }

    /// Writes out the data that was left to be written, unless more work waits and little was done since; later data is
    /// then written along. (A worker that takes another one's reads gets them in small portions, and each would be a
    /// system call: 0.6 per migration instead of 0.05.)
    pub(crate) fn write_out_in_time(&self) {
        let handled = self.handled.get();
        if !self.unwritten.get() {
            return self.written_at.set(handled);
        }
        let more = self.shared().mail.is_up() || self.waiting_bytes() > 0;
        let along = (GOES_ALONG_NS / self.next_ns.get().max(1)).min(self.system.config.throughput).max(GOES_ALONG);
        // The count starts again now and then, and the data is then due.
        if !more || handled.wrapping_sub(self.written_at.get()) >= along {
            self.written_at.set(handled);
            self.write_out();
        }
    }

    /// Writes out the data that was left to be written.
    pub(crate) fn write_out(&self) {
        if self.unwritten.replace(false)
            && let Some(reactor) = self.system.poller.reactor.get()
        {
            // The reactor writes to the program's transport.
            user_calls::call(|| reactor.flush()).unwrap_or(());
        }
    }

    /// Looks for events on a busy worker, if no worker has for some time. In RUNTIME.
    pub(crate) fn poll_now_and_then(&self, now_ns: u64) {
        // A thread outside runs this worker. The worker's own thread polls.
        if self.lending.is_borrowed.get() {
            return;
        }
        if self.system.poller.reactor.get().is_none()
            || now_ns < self.system.poller.next_poll_ns.load(Ordering::Relaxed)
        {
            return;
        }
        let Some(reactor) = self.begin_to_poll() else { return };
        self.system.poller.next_poll_ns.store(now_ns + POLL_EVERY_NS, Ordering::Relaxed);
        if found(reactor, Some(Duration::ZERO)) {
            self.dispatch(reactor);
        }
        self.end_to_poll();
    }
}
