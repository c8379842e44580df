//! Several theaters in one process, driven by one thread, with virtual time and a simulated network.
//!
//! The theaters run their normal code: sessions, links, housekeeping, migration, and the workers. Only their environment is
//! simulated: connections (`wire`), and threads, clocks and callers (`world`). All choices are drawn from the seed.
//!
//! # Conditions for repeatable runs
//!
//! No drawn choice, order of hashing, or written value may depend on an address in memory. In simulation, the names of actors are
//! therefore numbers in the order in which they were first named ([`crate::naming`]), and iterations follow orders of their own.

mod network;
mod start;
mod turns;
mod wire;
mod world;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::TheaterError;
use crate::theater::Theater;
use crate::theater::builder::TheaterBuilder;

use self::world::World;

/// Several theaters in this process, driven by one thread, with virtual time and a network that breaks on command or by chance.
/// Every choice is drawn from one seed: equal seeds give equal runs, other seeds give other runs. Cheap to clone; the theaters
/// end when the last clone is dropped.
///
/// The theaters run while a thread waits: in the methods `run..`, and in each `wait` (for asks, look-ups, migrations). The actors
/// themselves must be repeatable: they use no random numbers from outside of the simulation, and no order of a `HashMap`.
///
/// Not simulated: encryption, and other clocks than the system's ([`Context::now`](playhouse_actor::Context::now)).
///
/// # Examples
///
/// ```
/// # use std::time::Duration;
/// # use playhouse_theater::{Simulation, Theater};
/// let net = Simulation::new(42);
/// let a = net.theater(Theater::builder().listen("127.0.0.1:0"))?;
/// let b = net.theater(Theater::builder().listen("127.0.0.1:0"))?;
/// let peer = a.connect(b.address().expect("it listens"))?;
/// net.cut(&a, &b);
/// net.run_for(Duration::from_secs(1));
/// assert!(!peer.is_lost());
/// net.run_for(Duration::from_secs(40));
/// assert!(peer.is_lost(), "after 30 seconds, the default");
/// # Ok::<_, playhouse_theater::TheaterError>(())
/// ```
#[derive(Clone)]
pub struct Simulation {
    world: Arc<World>,
}

/// Counts of the events in the network of a [`Simulation`].
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// # use std::time::Duration;
/// let net = Simulation::new(1);
/// let [a, b] = [(); 2].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap());
/// a.connect(b.address().expect("it listens"))?;
/// net.break_connections(&a, &b);
/// net.run_for(Duration::from_secs(5));
/// let happened: NetworkStats = net.happened();
/// assert!(happened.cuts >= 1 && happened.connections >= 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetworkStats {
    /// Connections that were made.
    pub connections: u64,
    /// Connections that were broken.
    pub cuts: u64,
    /// Calls that no theater could answer.
    pub refused: u64,
    /// Theaters that were killed.
    pub kills: u64,
    /// Pauses of theaters.
    pub pauses: u64,
}

impl Simulation {
    /// Makes a network without theaters.
    pub fn new(seed: u64) -> Simulation {
        Simulation { world: World::new(seed) }
    }

    /// Starts a theater in this simulation. Its system is simulated, whatever its builder says, with 4 workers by default. A
    /// theater that listens at the address of a killed one is its successor.
    ///
    /// # Errors
    /// The same as of [`TheaterBuilder::start`]; also if the theater has certificates.
    pub fn theater(&self, builder: TheaterBuilder) -> Result<Theater, TheaterError> {
        builder.start_in(&self.world)
    }

    /// Returns the virtual time since the start.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.world.now_ns())
    }

    /// Runs until nothing is left to do: no message waits or is in transit, no timer runs, and no link waits for its other end.
    ///
    /// # Panics
    /// Inside an actor, like all methods that run the simulation.
    pub fn run_until_idle(&self) {
        self.world.run(None, &mut || false);
    }

    /// Runs for `time` of virtual time, or until nothing is left to do.
    pub fn run_for(&self, time: Duration) {
        self.world.run(Some(self.now() + time), &mut || false);
    }

    /// Runs until `done`, which is called before each step. Returns false if nothing is left to do.
    pub fn run_until(&self, mut done: impl FnMut() -> bool) -> bool {
        self.world.run(None, &mut done)
    }

    /// Returns a number below `n`, drawn from the seed: for tests that make choices of their own.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn choose(&self, n: usize) -> usize {
        self.world.choose(|choices| choices.below(n))
    }

    fn pair(&self, one: &Theater, other: &Theater) -> (usize, usize) {
        (self.world.number_of(&one.theater_core), self.world.number_of(&other.theater_core))
    }

    /// Breaks the connections between two theaters, each at any byte, and prevents new ones until [`Simulation::heal`]. Each end
    /// finds out some time later.
    ///
    /// # Panics
    /// If one of them is no theater of this simulation, like all methods that name theaters.
    pub fn cut(&self, one: &Theater, other: &Theater) {
        let (one, other) = self.pair(one, other);
        self.world.part(one, other);
    }

    /// Lets the two theaters reach each other again.
    pub fn heal(&self, one: &Theater, other: &Theater) {
        let (one, other) = self.pair(one, other);
        self.world.heal(one, other, true);
    }

    /// Breaks the connections between two theaters; new ones can be made at once.
    pub fn break_connections(&self, one: &Theater, other: &Theater) {
        let (one, other) = self.pair(one, other);
        self.world.break_between(one, other);
    }

    /// Breaks connections by chance from now on, about one in each period `every`. In half of the cases the two theaters do not
    /// reach each other for up to 0.4 s after that.
    pub fn break_by_chance(&self, every: Duration) {
        self.world.set_faults(Some(every));
    }

    /// Ends all breaks and pauses by chance, and lets all theaters reach each other, except for those that are [kept
    /// apart](Simulation::keep_apart). Pauses that have begun end at their time.
    pub fn calm(&self) {
        self.world.set_faults(None);
        self.world.set_pauses(None);
    }

    /// Prevents direct connections between the two theaters from now on, regardless of later healing, as if there were no route
    /// between their networks. Their connections break.
    pub fn keep_apart(&self, one: &Theater, other: &Theater) {
        let (one, other) = self.pair(one, other);
        self.world.keep_apart(one, other);
    }

    /// Gives each direction between two theaters a constant latency of its own from now on: 0.05 to 0.3 ms, and in one of four
    /// directions 100 times that. Bytes keep their order; the rate is 4 MB/s or more.
    pub fn vary_latencies(&self) {
        self.world.set_latencies();
    }

    /// Pauses the theater for `time`, like a process after SIGSTOP: none of its workers, timers and threads runs. Bytes for it
    /// arrive during the pause, and are read after it. If it is paused already, the later end counts.
    pub fn pause(&self, theater: &Theater, time: Duration) {
        self.world.pause(self.world.number_of(&theater.theater_core), time);
    }

    /// Lets theaters [pause](Simulation::pause) by chance from now on, about once in each period `every`, each time for up to
    /// `longest`.
    pub fn pause_by_chance(&self, every: Duration, longest: Duration) {
        self.world.set_pauses(Some((every, longest)));
    }

    /// Sets whether turns are uneven from now on: for a drawn time, one theater takes 100 turns for each turn of another theater
    /// with work.
    pub fn uneven_turns(&self, uneven: bool) {
        self.world.set_uneven(uneven);
    }

    /// Stops the theater for ever, as if its process had been killed. It must not be used any more.
    pub fn kill(&self, theater: &Theater) {
        self.world.kill(self.world.number_of(&theater.theater_core));
    }

    /// Lets the clock of this theater jump ahead by `by`, as after a pause of its process or machine. The other clocks continue
    /// unchanged.
    pub fn jump(&self, theater: &Theater, by: Duration) {
        self.world.jump(self.world.number_of(&theater.theater_core), by);
    }

    /// Slows this theater from now on: its workers take up to `step` for each simulated step (a few messages). It receives
    /// messages as fast as before. Zero: it is as fast as the others.
    pub fn slow(&self, theater: &Theater, step: Duration) {
        self.world.slow(self.world.number_of(&theater.theater_core), step);
    }

    /// Returns the counts of the events in the network so far.
    pub fn happened(&self) -> NetworkStats {
        self.world.happened()
    }

    /// Returns a hash of all arrivals so far, with their times: equal runs have equal hashes.
    pub fn trace(&self) -> u64 {
        self.world.trace()
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Simulation({:?}, {:?})", self.now(), self.happened())
    }
}
