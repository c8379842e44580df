//! Timers of a system: each is on the wheel of a worker.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::worker;
use crate::worker::outside_delivery::WokenBy;
use crate::worker::run_by_askers;
use crate::worker::system_core::SystemCore;
use crate::worker::timer_wheel::{TimerKey, TimerOp, TimerTask};

impl SystemCore {
    /// Calls `task` after `delay`, on a worker; it may send messages and must not block.
    pub fn start_timer(self: &Arc<Self>, delay: Duration, task: TimerTask) -> TimerKey {
        self.open_more();
        let at_ns =
            self.now_ns().saturating_add(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX / 2)).min(u64::MAX / 2);
        let mut task = Some(task);
        if let Some(worker) = worker::current().filter(|w| w.system_id == self.id) {
            let key = worker.with_core(|core| {
                let id = core.next_timer;
                core.next_timer += 2;
                core.wheel.start(id, at_ns, task.take().expect("the task is taken once"));
                TimerKey { worker: worker.id, id }
            });
            if let Some(key) = key {
                return key;
            }
        }
        // Odd ids: from outside.
        let id = self.next_timer.fetch_add(2, Ordering::Relaxed) | 1;
        let worker = (id / 2 % self.config.workers as u64) as u16;
        self.timer_op(worker, TimerOp::Start { id, at_ns, task: task.expect("not taken by a worker") });
        TimerKey { worker, id }
    }

    /// Forgets a timer. One that fires at this moment may still fire.
    pub fn cancel_timer(&self, key: TimerKey) {
        if let Some(worker) = worker::current().filter(|w| w.system_id == self.id && w.id == key.worker)
            && let Some(task) = worker.with_core(|core| core.wheel.cancel(key.id))
        {
            if let Some(task) = task {
                self.open_less();
                // Outside of the core, because a message of the program is dropped with it.
                drop(task);
            }
            return;
        }
        self.timer_op(key.worker, TimerOp::Cancel { id: key.id });
    }

    fn timer_op(&self, worker: u16, op: TimerOp) {
        let shared = &self.worker_table[worker as usize];
        let mut inbox = shared.lock();
        inbox.timer_ops.push(op);
        self.arrived_for(shared, inbox, worker, WokenBy::asker_if(run_by_askers::take_asks()));
    }
}
