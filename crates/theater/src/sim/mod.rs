//! Several theaters in one process, driven by one thread, with virtual time and a simulated network.
//!
//! What is theirs is as ever: sessions, links, housekeeping, moves, and the workers' own code. What is outside of them is
//! simulated: connections (`wire`), and threads, clocks and callers (`world`). All choices are drawn from the seed.
//!
//! # What makes a run the same again
//!
//! Nothing that is drawn, hashed in an order, or written may depend on where something lies in memory. So the names of
//! actors are numbers in simulation, in the order in which they were first named ([`crate::naming`]), and what is gone
//! through is kept in an order of its own.

mod network;
mod turns;
mod wire;
mod world;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::TheaterError;
use crate::node::builder::TheaterBuilder;
use crate::node::theater::Theater;

pub(crate) use wire::{End, Sign};
pub(crate) use world::{OnReply, Outside, World};

/// Several theaters in this process, driven by one thread, with virtual time and a network that breaks when it is told to, or
/// by chance. Every choice is drawn from one seed: the same seed gives the same run, other seeds give other ones. Cheap to
/// clone; when the last one is dropped, the theaters end.
///
/// The theaters run while somebody waits: in the methods `run..`, and in `wait` of whatever is waited for (asks, look-ups,
/// migrations). What their actors do is theirs to keep repeatable: nothing drawn from elsewhere, no order of a `HashMap`.
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
/// assert!(peer.is_lost(), "after 30 seconds, where nothing else is asked for");
/// # Ok::<_, playhouse_theater::TheaterError>(())
/// ```
#[derive(Clone)]
pub struct Simulation {
    world: Arc<World>,
}

/// What has happened to the network of a [`Simulation`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetworkStats {
    /// Connections that were made.
    pub connections: u64,
    /// Connections that were broken.
    pub cuts: u64,
    /// Calls that nobody could answer.
    pub refused: u64,
    /// Theaters that were killed.
    pub kills: u64,
    /// Pauses of theaters.
    pub pauses: u64,
}

impl Simulation {
    /// A network without theaters.
    pub fn new(seed: u64) -> Simulation {
        Simulation { world: World::new(seed) }
    }

    /// Starts a theater in it. Its system is simulated, whatever its builder says, with 4 workers where nothing else is asked
    /// for. One that listens at the address of a theater that was killed is its successor.
    ///
    /// # Errors
    /// As [`TheaterBuilder::start`]; also where the theater is to have certificates.
    pub fn theater(&self, builder: TheaterBuilder) -> Result<Theater, TheaterError> {
        builder.start_in(&self.world)
    }

    /// Virtual time since the start.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.world.now_ns())
    }

    /// Runs until nothing is left to do: no message waits or is under way, no timer runs, no link waits for the other end.
    ///
    /// # Panics
    /// Inside an actor; so do all that run it.
    pub fn run_until_idle(&self) {
        self.world.run(None, &mut || false);
    }

    /// Runs for so much virtual time, or until nothing is left to do.
    pub fn run_for(&self, time: Duration) {
        self.world.run(Some(self.now() + time), &mut || false);
    }

    /// Runs until `done`, which is asked before each step. False: nothing was left to do.
    pub fn run_until(&self, mut done: impl FnMut() -> bool) -> bool {
        self.world.run(None, &mut done)
    }

    /// A number below `n`, drawn from the seed: for tests that make choices of their own.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn choose(&self, n: usize) -> usize {
        self.world.choose(|choices| choices.below(n))
    }

    fn pair(&self, one: &Theater, other: &Theater) -> (usize, usize) {
        (self.world.number_of(&one.theater_core), self.world.number_of(&other.theater_core))
    }

    /// Breaks the connections between two theaters, each at any byte, and lets no new ones be made until [`Simulation::heal`].
    /// Each end finds out some time later.
    ///
    /// # Panics
    /// If one is no theater of this simulation; so do all that name theaters.
    pub fn cut(&self, one: &Theater, other: &Theater) {
        let (one, other) = self.pair(one, other);
        self.world.part(one, other);
    }

    /// The two theaters reach each other again.
    pub fn heal(&self, one: &Theater, other: &Theater) {
        let (one, other) = self.pair(one, other);
        self.world.heal(one, other, true);
    }

    /// Breaks the connections between two theaters; new ones can be made at once.
    pub fn break_connections(&self, one: &Theater, other: &Theater) {
        let (one, other) = self.pair(one, other);
        self.world.break_between(one, other);
    }

    /// From now on connections break by chance, about once in `every`; in half of the cases the two theaters do not reach each
    /// other for up to 0.4 s after that.
    pub fn break_by_chance(&self, every: Duration) {
        self.world.set_faults(Some(every));
    }

    /// Nothing breaks and no theater pauses by chance any more, and all theaters reach each other, but for those that are
    /// [kept apart](Simulation::keep_apart). Pauses that have begun end at their time.
    pub fn calm(&self) {
        self.world.set_faults(None);
        self.world.set_pauses(None);
    }

    /// From now on the two theaters never connect directly, whatever else heals: as where there is no route between their networks.
    /// Their connections break.
    pub fn keep_apart(&self, one: &Theater, other: &Theater) {
        let (one, other) = self.pair(one, other);
        self.world.keep_apart(one, other);
    }

    /// From now on each direction between two theaters has a latency of its own, which stays the same: 0.05 to 0.3 ms, and in one of
    /// four directions 100 times that. Bytes keep their order, and 4 MB/s get through, or more.
    pub fn vary_latencies(&self) {
        self.world.set_latencies();
    }

    /// The theater stands still for `time`, as a process after SIGSTOP: none of its workers, timers and threads runs. Bytes for it
    /// arrive meanwhile, and it reads them afterwards. Where it is paused already, the later end counts.
    pub fn pause(&self, theater: &Theater, time: Duration) {
        self.world.pause(self.world.number_of(&theater.theater_core), time);
    }

    /// From now on theaters [pause](Simulation::pause) by chance, about once in `every`, each time for up to `longest`.
    pub fn pause_by_chance(&self, every: Duration, longest: Duration) {
        self.world.set_pauses(Some((every, longest)));
    }

    /// Whether turns are uneven from now on: for some time, of a length that is drawn, one theater takes 100 turns where another one
    /// that has something to do takes 1.
    pub fn uneven_turns(&self, uneven: bool) {
        self.world.set_uneven(uneven);
    }

    /// The theater stands still for ever, as if its process had been killed. It must not be used any more.
    pub fn kill(&self, theater: &Theater) {
        self.world.kill(self.world.number_of(&theater.theater_core));
    }

    /// The clock of this theater jumps ahead by `by`, as where its process has stood still, or its machine. All others' go on as
    /// they did.
    pub fn jump(&self, theater: &Theater, by: Duration) {
        self.world.jump(self.world.number_of(&theater.theater_core), by);
    }

    /// From now on this theater is slow: its workers do what is one step here (a few messages) in up to `step`. What is sent to
    /// it is received as before. Zero: it is as fast as all others.
    pub fn slow(&self, theater: &Theater, step: Duration) {
        self.world.slow(self.world.number_of(&theater.theater_core), step);
    }

    /// What has happened to the network so far.
    pub fn happened(&self) -> NetworkStats {
        self.world.happened()
    }

    /// A hash of all that has arrived anywhere so far, and when: the same for the same run.
    pub fn trace(&self) -> u64 {
        self.world.trace()
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Simulation({:?}, {:?})", self.now(), self.happened())
    }
}
