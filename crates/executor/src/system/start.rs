//! The start of a system.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::load::relays::Relays;
use crate::load::stage_backpressure::StageBackpressure;
use crate::load::standing::Sources;
use crate::message::dead_letters::DeadLetterHooks;
use crate::message::mailbox_bound::BoundedMailboxes;
use crate::observe::observed::Observers;
use crate::policy::config::{Config, limits};
use crate::policy::costs;
use crate::policy::idle_set::IdleWorkers;
use crate::scheduler::monitor;
use crate::sync::locks::lock;
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::handoff::Stuck;
use crate::worker::inbox::WorkerTable;
use crate::worker::outsiders::Outsiders;
use crate::worker::simulation::Simulation;
use crate::worker::system_core::{Clock, Outside, SLOTS, SYSTEMS_MAX, SystemCore};
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
        let system = Arc::new(SystemCore {
            id: at as u16,
            worker_table: WorkerTable::new(config.workers, dedicated),
            route: (0..stages)
                .map(|stage| {
                    AtomicU16::new(
                        if stage < shared { stage % config.workers } else { config.workers + stage - shared } as u16,
                    )
                })
                .collect(),
            full: (0..stages).map(|_| StageBackpressure::default()).collect(),
            sources: Sources::default(),
            relays: Relays::new(stages),
            clock: if config.simulated.is_some() {
                Clock::Virtual(AtomicU64::new(0))
            } else {
                Clock::Real(Instant::now())
            },
            simulation: config.simulated.map(Simulation::new),
            observers: Observers::default(),
            active: AtomicU64::new(0),
            parked: AtomicUsize::new(0),
            idle: IdleWorkers::of(config.workers),
            // With 1 worker, and in simulation, no thread is woken to share work.
            wake_ns: if config.workers > 1 && config.simulated.is_none() { costs::wake_ns() } else { 10_000 },
            cores: if config.workers > 1 && config.simulated.is_none() { costs::cores() } else { config.workers },
            open: AtomicIsize::new(0),
            quiet: Mutex::new(()),
            became_quiet: Condvar::new(),
            wait_for_quiet: AtomicUsize::new(0),
            next_spread: AtomicUsize::new(0),
            random: AtomicU64::new(random),
            draining: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            sweeping: Mutex::new(None),
            spawning: AtomicUsize::new(0),
            ending: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            ending_rest: Mutex::new(()),
            outsiders: Outsiders::default(),
            detached: AtomicUsize::new(0),
            stuck: Stuck::default(),
            handled_detached: AtomicU64::new(0),
            outside: Outside {
                allocators: (0..workers).map(|_| Mutex::default()).collect(),
                spawned: AtomicU64::new(0),
                dead_letters: AtomicU64::new(0),
            },
            posts: (0..workers).map(|_| Mutex::new(None)).collect(),
            threads: Mutex::new(Vec::new()),
            alive: AtomicUsize::new(0),
            dedicated: Mutex::new((shared as u16..stages as u16).rev().collect()),
            monitor_nap: (Mutex::new(false), Condvar::new()),
            monitor_sleeps: AtomicBool::new(false),
            reactor: OnceLock::new(),
            above: OnceLock::new(),
            polling: AtomicBool::new(false),
            next_poll_ns: AtomicU64::new(0),
            sampling: AtomicBool::new(false),
            census_asked: AtomicU64::new(0),
            samplers: Mutex::default(),
            dead_letter_hooks: DeadLetterHooks::default(),
            mailboxes: BoundedMailboxes::default(),
            next_timer: AtomicU64::new(0),
            config,
        });
        *slot = Some(Arc::clone(&system));
        SLOTS[at].epoch.fetch_add(1, Ordering::Release);
        drop(slot);
        for id in 0..system.config.workers as u16 {
            if system.simulation.is_some() {
                *lock(&system.posts[id as usize]) = Some(system.new_worker(id));
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
                Ok(handle) => lock(&system.threads).push(handle),
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
