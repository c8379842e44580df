//! The threads of workers. Each is started before its worker is handed over to it: if no thread can be started, no step
//! has to be undone.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};

use crate::sync::locks::lock;
use crate::worker::Worker;
use crate::worker::inbox::Presence;
use crate::worker::system_core::SystemCore;

/// The size of a worker's stack. Without optimisation, a function has stack space of its own for each move of a value,
/// and asks with messages of 1 MiB need more. The system gives memory only to the part of a stack that is used.
const STACK_BYTES: usize = if cfg!(debug_assertions) { 32 << 20 } else { 8 << 20 };

/// A thread that waits for its worker. It ends if this value is dropped.
pub(crate) struct WorkerThread(SyncSender<Arc<Worker>>);

/// Counts a thread as alive until it is dropped.
struct Alive(Arc<SystemCore>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.threads.alive.fetch_sub(1, Ordering::AcqRel);
        drop(lock(&self.0.quiescence.quiet));
        self.0.quiescence.became_quiet.notify_all();
    }
}

impl SystemCore {
    /// Starts a thread for worker `id`.
    pub(crate) fn start_thread(&self, id: u16) -> io::Result<WorkerThread> {
        let (hand_over, worker) = sync_channel::<Arc<Worker>>(1);
        let name = format!("playhouse-{}-{id}", self.id);
        let thread = std::thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(move || {
            let Ok(worker) = worker.recv() else { return };
            let _alive = Alive(Arc::clone(&worker.system));
            if worker.system.config.pinning {
                crate::sync::pinning::pin_to_core(worker.id as usize);
            }
            worker.enter(|| worker.work());
        })?;
        let mut threads = lock(&self.threads.handles);
        // A thread that has ended keeps its stack until its handle is dropped.
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        Ok(WorkerThread(hand_over))
    }
}

impl WorkerThread {
    /// Hands `worker` over to the thread, which runs it from now on.
    pub(crate) fn run(self, worker: Arc<Worker>) {
        let system = Arc::clone(&worker.system);
        *lock(&system.threads.posts[worker.id as usize]) = Some(Arc::clone(&worker));
        // Awake from the start, because the system is not idle before its workers have made their first exchange.
        {
            let mut inbox = system.worker_table[worker.id as usize].lock();
            if std::mem::replace(&mut inbox.presence, Presence::Awake) == Presence::Parked {
                system.active_more();
            }
        }
        system.threads.alive.fetch_add(1, Ordering::AcqRel);
        self.0.send(worker).expect("the thread waits for its worker");
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use crate::sync::locks::lock;
    use crate::{Config, SystemCore};

    #[test]
    fn a_thread_that_gets_no_worker_ends_and_its_handle_is_dropped() {
        const LIMIT: Duration = Duration::from_secs(60);
        // A simulated system has no threads of its own.
        let system = SystemCore::start(Config { workers: 1, stages: 1, simulated: Some(0), ..Config::new() }).unwrap();
        for _ in 0..2 {
            drop(system.start_thread(0).unwrap());
            let deadline = Instant::now() + LIMIT;
            while !lock(&system.threads.handles).iter().all(|thread| thread.is_finished()) {
                assert!(Instant::now() < deadline, "the thread waits on");
                std::thread::yield_now();
            }
        }
        assert_eq!(lock(&system.threads.handles).len(), 1);
        system.end(LIMIT, &mut |_, _, _| {});
    }
}
