//! What happens to a spread world while it is played: actors are sent from theater to theater, and theaters are drained,
//! ended, and started again.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use playhouse::Theater;
use playhouse_bench::Failure;
use playhouse_bench::chatapp::{SpreadWorld, Watch};

use super::process::Process;
use crate::progress::Shared;

/// Theaters, that of this process among them.
pub const THEATERS: usize = 4;
/// How often actors are sent somewhere, and how many: 200 per second.
const TICK: Duration = Duration::from_millis(20);
const TRIPS_PER_TICK: u64 = 4;
/// Actors on their way at one time, at most.
const UNDER_WAY_MAX: u64 = 64;
/// How long actors may be on their way.
const ARRIVAL_MAX: Duration = Duration::from_secs(20);

/// What the director and the rest of the program show each other.
pub struct Stage {
    pub spread: Mutex<SpreadWorld>,
    pub progress: Arc<Shared>,
    /// The world has ended.
    pub ended: AtomicBool,
    /// What is going on, for the status line.
    pub scene: Mutex<String>,
}

/// When theaters are drained.
#[derive(Clone, Copy)]
pub enum Drains {
    /// Once, after so many turns.
    AfterTurn(u32),
    /// Again and again.
    Every(Duration),
}

/// What the director has done.
#[derive(Default)]
pub struct Done {
    /// Theaters that were drained, ended and started again.
    pub restarts: u64,
    /// Actors that were taken out of them.
    pub taken_out: u64,
    /// Messages that came to nobody in them.
    pub dead_letters: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stage {
    pub fn spread(&self) -> MutexGuard<'_, SpreadWorld> {
        lock(&self.spread)
    }

    pub fn watch(&self) -> Watch {
        self.spread().watch()
    }

    pub fn scene(&self) -> String {
        lock(&self.scene).clone()
    }

    fn say(&self, scene: String) {
        *lock(&self.scene) = scene;
    }
}

/// Runs the theaters while the world is played.
pub struct Director {
    pub theater: Theater,
    pub workers: usize,
    pub processes: Vec<Process>,
    pub drains: Drains,
}

impl Director {
    fn addresses(&self) -> Vec<SocketAddr> {
        self.theater.address().into_iter().chain(self.processes.iter().map(|process| process.address)).collect()
    }

    /// Until the world has ended.
    pub fn direct(&mut self, stage: &Stage) -> Result<Done, Failure> {
        let mut done = Done::default();
        let mut drained = Instant::now();
        let (mut trips, mut refill) = (0, None);
        while !stage.ended.load(Relaxed) {
            if let Some(process) = self.processes.iter_mut().find_map(|process| process.has_ended().then_some(process))
            {
                return Err(process.failure("it has ended in the middle of the world"));
            }
            let due = match self.drains {
                Drains::AfterTurn(turn) => done.restarts == 0 && stage.progress.reached().0 >= turn,
                Drains::Every(time) => drained.elapsed() > time,
            };
            if due {
                let address = self.restart(stage, &mut done)?;
                drained = Instant::now();
                // It has nobody yet: whoever is sent anywhere goes there for a while.
                let many = stage.progress.clients() / THEATERS as u64;
                refill = Some((address, many));
            }
            let addresses = self.addresses();
            if stage.progress.reached().0 > 0 && stage.watch().migrations().under_way < UNDER_WAY_MAX {
                for _ in 0..TRIPS_PER_TICK {
                    let to = match &mut refill {
                        Some((address, left)) if *left > 0 => {
                            *left -= 1;
                            *address
                        }
                        _ => addresses[trips % addresses.len()],
                    };
                    trips += 1;
                    stage.spread().send_somebody(to);
                }
            }
            std::thread::sleep(TICK);
        }
        Ok(done)
    }

    /// Drains a theater, ends its process, and starts another one. Returns where that is.
    fn restart(&mut self, stage: &Stage, done: &mut Done) -> Result<SocketAddr, Failure> {
        let mut process = self.processes.remove(0);
        let address = process.address;
        // Nobody goes there any more, and who is on the way has to arrive first.
        self.wait_for_arrivals(stage)?;
        stage.say(format!("draining {address}"));
        let others = self.addresses();
        let (gone, stayed) = process.leave(&others)?;
        done.taken_out += gone;
        if stayed > 0 {
            return Err(process.failure(&format!("{stayed} of its actors could not leave it")));
        }
        stage.say(format!("{gone} actors left {address}; restarting it"));
        stage.spread().remove(address);
        done.dead_letters += process.end()?;
        let process = Process::start(self.workers, &others)?;
        let failure = |error| Failure::new(format!("the theater that was started again: {error}"));
        let peer = self.theater.connect(process.address).map_err(failure)?;
        stage.spread().add(&peer)?;
        let address = process.address;
        stage.say(format!("{address} is back"));
        self.processes.push(process);
        done.restarts += 1;
        Ok(address)
    }

    fn wait_for_arrivals(&self, stage: &Stage) -> Result<(), Failure> {
        let (watch, begun) = (stage.watch(), Instant::now());
        loop {
            let under_way = watch.migrations().under_way;
            if under_way == 0 {
                return Ok(());
            }
            if begun.elapsed() > ARRIVAL_MAX {
                return Err(Failure::new(format!("{under_way} actors are still on their way to another theater")));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
