//! The director of a world in several theaters: it moves actors from theater to theater, and drains theaters, ends them, and starts them again.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use playhouse::Theater;
use playhouse_bench::Failure;
use playhouse_bench::chatapp::{SpreadWorld, Watch};
use playhouse_console::progress::Shared;

use super::process::Process;
use crate::logs;

/// The number of theaters, including that of this process.
pub const THEATERS: usize = 4;
/// The director moves 4 actors per tick: 200 per second.
const TICK: Duration = Duration::from_millis(20);
const MOVED_PER_TICK: u64 = 4;
/// The most actors that move at one time.
const MOVING_MAX: u64 = 64;
/// The time that a migration may take.
const ARRIVAL_MAX: Duration = Duration::from_secs(20);

/// The world, as the director and the main thread share it.
pub struct World {
    pub spread: Mutex<SpreadWorld>,
    pub progress: Arc<Shared>,
    /// The world has ended.
    pub ended: AtomicBool,
    /// The director's activity, for the status line.
    pub activity: Mutex<String>,
}

/// The times at which theaters are drained.
#[derive(Clone, Copy)]
pub enum Drains {
    /// Once, after this number of turns.
    AfterTurn(u32),
    /// Again and again, after this time.
    Every(Duration),
}

/// The director's counts.
#[derive(Default)]
pub struct Done {
    /// Theaters that were drained, ended and started again.
    pub restarts: u64,
    /// Actors that a drain has moved to other theaters.
    pub drained: u64,
    /// Dead letters of ended theaters.
    pub dead_letters: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub fn spread(&self) -> MutexGuard<'_, SpreadWorld> {
        lock(&self.spread)
    }

    pub fn watch(&self) -> Watch {
        self.spread().watch()
    }

    pub fn activity(&self) -> String {
        lock(&self.activity).clone()
    }

    fn set_activity(&self, activity: String) {
        *lock(&self.activity) = activity;
    }
}

/// Runs the theaters while the world is played.
pub struct Director {
    pub theater: Theater,
    pub workers: usize,
    pub log: logs::Args,
    pub processes: Vec<Process>,
    pub drains: Drains,
}

impl Director {
    fn addresses(&self) -> Vec<SocketAddr> {
        self.theater.address().into_iter().chain(self.processes.iter().map(|process| process.address)).collect()
    }

    /// Moves actors and drains theaters until the world has ended.
    pub fn direct(&mut self, world: &World) -> Result<Done, Failure> {
        let mut done = Done::default();
        let mut drained = Instant::now();
        let (mut moved, mut refill) = (0, None);
        while !world.ended.load(Relaxed) {
            if let Some(process) = self.processes.iter_mut().find_map(|process| process.has_ended().then_some(process))
            {
                return Err(process.failure("it has ended in the middle of the world"));
            }
            let due = match self.drains {
                Drains::AfterTurn(turn) => done.restarts == 0 && world.progress.reached().0 >= turn,
                Drains::Every(time) => drained.elapsed() > time,
            };
            if due {
                let address = self.restart(world, &mut done)?;
                drained = Instant::now();
                // The new theater has no actors yet, and gets all that move until it has its share.
                let many = world.progress.clients() / THEATERS as u64;
                refill = Some((address, many));
            }
            let addresses = self.addresses();
            if world.progress.reached().0 > 0 && world.watch().migrations().under_way < MOVING_MAX {
                for _ in 0..MOVED_PER_TICK {
                    let to = match &mut refill {
                        Some((address, left)) if *left > 0 => {
                            *left -= 1;
                            *address
                        }
                        _ => addresses[moved % addresses.len()],
                    };
                    moved += 1;
                    world.spread().send_one_actor(to);
                }
            }
            std::thread::sleep(TICK);
        }
        Ok(done)
    }

    /// Drains a theater, ends its process, and starts another one. Returns the new address.
    fn restart(&mut self, world: &World, done: &mut Done) -> Result<SocketAddr, Failure> {
        let mut process = self.processes.remove(0);
        let address = process.address;
        // No actor is sent there any more, and those on the way have to arrive first.
        self.wait_for_arrivals(world)?;
        world.set_activity(format!("draining {address}"));
        let others = self.addresses();
        let (moved, stayed) = process.evacuate(&others)?;
        done.drained += moved;
        if stayed > 0 {
            return Err(process.failure(&format!("{stayed} of its actors could not move")));
        }
        world.set_activity(format!("{moved} actors moved out of {address}; restarting it"));
        world.spread().remove(address);
        done.dead_letters += process.end()?;
        let process = Process::start(self.workers, &self.log, &others)?;
        let failure = |error| Failure::new(format!("the theater that was started again: {error}"));
        let peer = self.theater.connect(process.address).map_err(failure)?;
        world.spread().add(&peer)?;
        let address = process.address;
        world.set_activity(format!("{address} started"));
        self.processes.push(process);
        done.restarts += 1;
        Ok(address)
    }

    fn wait_for_arrivals(&self, world: &World) -> Result<(), Failure> {
        let (watch, begun) = (world.watch(), Instant::now());
        loop {
            let under_way = watch.migrations().under_way;
            if under_way == 0 {
                return Ok(());
            }
            if begun.elapsed() > ARRIVAL_MAX {
                return Err(Failure::new(format!("{under_way} actors are still moving to another theater")));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
