//! The start of a system.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::load::relays::Relays;
use crate::load::stage_backpressure::StageBackpressure;
use crate::load::standing::Sources;
use crate::message::mailbox_bound::BoundedMailboxes;
use crate::policy::config::{Config, limits};
use crate::policy::costs;
use crate::policy::idle_set::IdleWorkers;
use crate::scheduler::monitor;
use crate::sync::locks::lock;
use crate::worker::Worker;
use crate::worker::after_takeover::Stuck;
use crate::worker::core::Core;
use crate::worker::inbox::WorkerTable;
use crate::worker::simulation::Simulation;
use crate::worker::system_core::{
    Clock, Idleness, Observation, Outside, Poller, Quiescence, Routing, SLOTS, SYSTEMS_MAX, Shutdown, SystemCore,
    Threads,
};
use crate::{user_code, worker};

impl SystemCore {
    /// Starts a system.
    ///
    /// # Errors
    /// All wrong settings; or that a thread could not be started, or that 4,095 systems run already.
    pub fn start(config: Config) -> Result<Arc<SystemCore>, Vec<String>> {
        let wrong = config.check();
        if !wrong.is_empty() {
            return Err(wrong);
        }
        user_code::note_places(|| worker::current().is_some());
        let dedicated = if config.simulated.is_some() { 0 } else { limits::DEDICATED_MAX };
        let workers = config.workers + dedicated;
        let shared = config.stages + config.links;
        let stages = shared + dedicated;
        // In turn, because addresses into a system that has ended should not meet another one under its number for
        // long.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let from = NEXT.fetch_add(1, Ordering::Relaxed);
        let (at, slot) = (0..SYSTEMS_MAX - 1)
            .map(|turn| 1 + (from + turn) % (SYSTEMS_MAX - 1))
            .find_map(|at| {
                let guard = lock(&SLOTS[at].system);
                guard.is_none().then_some((at, guard))
            })
            .ok_or_else(|| {
                vec![format!("{} systems run in this process already, which is the limit", SYSTEMS_MAX - 1)]
            })?;
        let mut slot = slot;
        let random = config.simulated.unwrap_or_else(|| RandomState::new().hash_one(at));
        let shares_work = config.workers > 1 && config.simulated.is_none();
        let runs = |stage| if stage < shared { stage % config.workers } else { config.workers + stage - shared } as u16;
        let system = Arc::new(SystemCore {
            id: at as u16,
            clock: if config.simulated.is_some() {
                Clock::Virtual(AtomicU64::new(0))
            } else {
                Clock::Real(Instant::now())
            },
            simulation: config.simulated.map(Simulation::new),
            worker_table: WorkerTable::new(config.workers, dedicated),
            routing: Routing {
                route: (0..stages).map(|stage| AtomicU16::new(runs(stage))).collect(),
                full: (0..stages).map(|_| StageBackpressure::default()).collect(),
                relays: Relays::new(stages),
                sources: Sources::default(),
            },
            idle: Idleness {
                active: AtomicU64::new(0),
                parked: AtomicUsize::new(0),
                workers: IdleWorkers::of(config.workers),
                // With 1 worker, and in simulation, no thread is woken to share work.
                wake_ns: if shares_work { costs::wake_ns() } else { 10_000 },
                cores: if shares_work { costs::cores() } else { config.workers },
            },
            quiescence: Quiescence::default(),
            shutdown: Shutdown::default(),
            threads: Threads {
                posts: (0..workers).map(|_| Mutex::new(None)).collect(),
                handles: Mutex::default(),
                alive: AtomicUsize::new(0),
                dedicated: Mutex::new((shared as u16..stages as u16).rev().collect()),
                detached: AtomicUsize::new(0),
                stuck: Stuck::default(),
                handled_detached: AtomicU64::new(0),
                monitor_nap: (Mutex::new(false), Condvar::new()),
                monitor_sleeps: AtomicBool::new(false),
            },
            poller: Poller::default(),
            observation: Observation::default(),
            outside: Outside {
                allocators: (0..workers).map(|_| Mutex::default()).collect(),
                spawned: AtomicU64::new(0),
                dead_letters: AtomicU64::new(0),
            },
            mailboxes: BoundedMailboxes::default(),
            next_spread: AtomicUsize::new(0),
            next_timer: AtomicU64::new(0),
            random: AtomicU64::new(random),
            above: OnceLock::new(),
            config,
        });
        *slot = Some(Arc::clone(&system));
        SLOTS[at].epoch.fetch_add(1, Ordering::Release);
        drop(slot);
        for id in 0..system.config.workers as u16 {
            if system.simulation.is_some() {
                *lock(&system.threads.posts[id as usize]) = Some(system.new_worker(id));
                continue;
            }
            match system.start_thread(id) {
                Ok(thread) => thread.run(system.new_worker(id)),
                Err(error) => {
                    system.end(Duration::from_secs(1), &mut |_, _, _| {});
                    return Err(vec![format!("a worker thread could not be started: {error}")]);
                }
            }
        }
        if system.simulation.is_none() {
            let weak = Arc::downgrade(&system);
            let name = format!("playhouse-{}-monitor", system.id);
            let handle = std::thread::Builder::new().name(name).spawn(move || monitor::watch(&weak));
            match handle {
                Ok(handle) => lock(&system.threads.handles).push(handle),
                Err(error) => {
                    system.end(Duration::from_secs(1), &mut |_, _, _| {});
                    return Err(vec![format!("the monitor thread could not be started: {error}")]);
                }
            }
        }
        Ok(system)
    }

    pub(super) fn new_worker(self: &Arc<Self>, id: u16) -> Arc<Worker> {
        let seed = self.config.simulated.unwrap_or(0x9e37_79b9) as u32 ^ (u32::from(id) + 1).wrapping_mul(0x85eb_ca6b);
        let signal = Arc::clone(&self.worker_table[id as usize].lock().signal);
        Arc::new(Worker::new(self, id, signal, Core::new(seed)))
    }
}
