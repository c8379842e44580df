//! The timers of a worker: requests for them, firing, and the drops of cancelled ones.

use crate::sync::jitter::seam;
use crate::worker::Worker;
use crate::worker::timer_wheel::TimerOp;

impl Worker {
    pub(crate) fn apply_timer(&self, op: TimerOp) {
        // SAFETY: in RUNTIME; short borrow.
        let core = unsafe { self.core() };
        match op {
            TimerOp::Start { id, at_ns, task } => core.wheel.start(id, at_ns, task),
            TimerOp::Cancel { id } => core.cancelled.extend(core.wheel.cancel(id)),
        }
    }

    /// Runs the timers that are due. Their tasks send messages; they run no handlers.
    pub(crate) fn fire_timers(&self, now_ns: u64) {
        // While this worker was idle, its stages may have been adopted. The updated route is therefore used for what
        // timers send (I1).
        self.flush();
        // SAFETY: in RUNTIME; short borrow.
        let due = unsafe { self.core() }.wheel.advance(now_ns);
        for (id, mut task) in due {
            self.ledger.timers_fired.add(1);
            self.firing.set(true);
            // `call_user` drops a task that is done or has panicked.
            let again = self.call_user(move || task().map(|again| (again, task))).flatten();
            self.firing.set(false);
            match again {
                Some((again, task)) => {
                    let again_ns = u64::try_from(again.as_nanos()).unwrap_or(u64::MAX);
                    let at_ns = self.system.now_ns().saturating_add(again_ns).min(u64::MAX / 2);
                    self.apply_timer(TimerOp::Start { id, at_ns, task });
                }
                None => self.system.open_less(),
            }
        }
        seam(50);
        // This may be the last step before the worker becomes idle (I3).
        self.flush();
    }

    /// Drops the tasks of cancelled timers, with the messages in them. In RUNTIME, between two gulps.
    pub(crate) fn drop_cancelled(&self) {
        // SAFETY: in RUNTIME; short borrow.
        let cancelled = std::mem::take(&mut unsafe { self.core() }.cancelled);
        for task in cancelled {
            self.call_user(|| drop(task));
            self.system.open_less();
        }
    }
}
