//! Settings of a system.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The rule by which an idle worker chooses its victim.
///
/// # Examples
///
/// ```
/// # use playhouse_executor::Stealing;
/// fn describe(stealing: Stealing) -> &'static str {
///     match stealing {
///         Stealing::None => "each actor stays with its worker",
///         _ => "idle workers take over stages",
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stealing {
    /// The worker with the oldest attempt to steal: it has been busy longest (cforall-actors).
    #[default]
    LongestVictim,
    /// Any worker with a backlog.
    Random,
    /// No stealing: stages stay with their workers for ever, also if one could be adopted. Worker of stage `s`: `s %
    /// workers`.
    None,
}

/// The choice of an actor's stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StageChoice {
    /// On a stage of the spawner's worker, in turn; from outside the same as `Spread`.
    #[default]
    Near,
    /// On any stage, in turn.
    Spread,
    /// On this stage.
    At(u16),
    /// On a stage and a thread of its own.
    Dedicated,
}

/// Largest numbers that are accepted.
pub mod limits {
    /// Workers of a system.
    pub const WORKERS_MAX: usize = 1024;
    /// Stages of a system.
    pub const STAGES_MAX: usize = 60_000;
    /// Stages for links.
    pub const LINKS_MAX: usize = 1024;
    /// Actors with a thread of their own, at one time.
    pub const DEDICATED_MAX: usize = 64;
    /// Stages per worker by default.
    pub const STAGES_PER_WORKER: usize = 16;
    /// Messages per gulp by default.
    pub const THROUGHPUT: u64 = 512;
}

/// The settings of a system. [`Config::check`] reports every wrong one.
#[derive(Clone, Debug)]
pub struct Config {
    /// Threads that run actors.
    pub workers: usize,
    /// Stages, over all workers. At least one for each worker.
    pub stages: usize,
    /// Stages besides those, for stubs of actors in other theaters (`SystemCore::link_stage`).
    pub links: usize,
    /// The largest number of messages that are run between two looks at the inbox.
    pub throughput: u64,
    /// The victims that idle workers choose.
    pub stealing: Stealing,
    /// Whether worker `i` is bound to core `i`.
    pub pinning: bool,
    /// The largest time for which a worker without work watches for messages before its thread sleeps. None: 40 µs, or
    /// 0 if that takes processor time from others.
    pub spin: Option<Duration>,
    /// Whether threads outside that ask run parked workers (`run_by_askers.rs`).
    pub lends: bool,
    /// Whether a drain waits for suspended handlers, too.
    pub awaits_handlers: bool,
    /// One thread and virtual time; every choice is taken from this seed.
    pub simulated: Option<u64>,
    /// A function within which threads run actors.
    pub around: Option<Around>,
}

/// A function that a thread calls around the actors that it runs, for example to enter the context of another library
/// that is kept per thread.
#[derive(Clone)]
pub struct Around(Arc<RunsAround>);

/// Calls its argument, with steps of its own before and after it.
type RunsAround = dyn Fn(&mut dyn FnMut()) + Send + Sync;

impl Around {
    /// Creates the value from a function that calls its argument, with steps of its own before and after it.
    pub fn new(around: impl Fn(&mut dyn FnMut()) + Send + Sync + 'static) -> Around {
        Around(Arc::new(around))
    }

    /// # Panics
    /// If the function that was given to [`Around::new`] does not call its argument.
    pub(crate) fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        let (mut f, mut result) = (Some(f), None);
        (self.0)(&mut || {
            if let Some(f) = f.take() {
                result = Some(f());
            }
        });
        result.expect("the function given to `Around::new` did not call its argument: it must call it once")
    }
}

impl fmt::Debug for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Around(..)")
    }
}

impl Config {
    /// Creates the settings with one worker per core.
    pub fn new() -> Config {
        Config::of(Config::one_per_core())
    }

    /// Returns the number of cores, which Linux tells in some ten files.
    pub fn one_per_core() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from).min(limits::WORKERS_MAX)
    }

    /// Creates the settings with `workers` workers.
    pub fn of(workers: usize) -> Config {
        Config {
            workers,
            stages: workers * limits::STAGES_PER_WORKER,
            links: 0,
            throughput: limits::THROUGHPUT,
            stealing: Stealing::default(),
            pinning: false,
            spin: None,
            lends: false,
            awaits_handlers: false,
            simulated: None,
            around: None,
        }
    }

    /// Returns whether workers note the times of messages of each kind. Workers that share work need them, and so do
    /// threads outside, which run short ones only.
    pub(crate) fn knows_kinds(&self) -> bool {
        self.workers > 1 || self.lends
    }

    /// Returns the time for which workers watch, in nanoseconds. By default it is about the time to sleep and be woken.
    /// It is 0 if threads outside run parked workers. It is also 0 if the process has less processor time than its
    /// cores (a quota of its control group), because watching would take time from others.
    pub(crate) fn spin_ns(&self) -> u64 {
        const SPIN_NS: u64 = 40_000;
        const SPIN_MAX: Duration = Duration::from_millis(10);
        match self.spin {
            Some(spin) => spin.min(SPIN_MAX).as_nanos() as u64,
            None if self.lends || crate::sync::pinning::has_quota() => 0,
            None => SPIN_NS,
        }
    }

    /// Returns a text for each wrong setting.
    pub fn check(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.workers == 0 || self.workers > limits::WORKERS_MAX {
            wrong.push(format!("workers = {}: must be 1 to {}", self.workers, limits::WORKERS_MAX));
        }
        if self.stages < self.workers {
            wrong.push(format!(
                "stages = {}: must be at least the number of workers, {}, because each worker needs one",
                self.stages, self.workers
            ));
        }
        if self.stages > limits::STAGES_MAX {
            wrong.push(format!("stages = {}: must be at most {}", self.stages, limits::STAGES_MAX));
        }
        if self.links > limits::LINKS_MAX {
            wrong.push(format!("links = {}: must be at most {}", self.links, limits::LINKS_MAX));
        }
        if self.throughput == 0 {
            wrong.push("throughput = 0: must be at least 1 message per gulp".to_owned());
        }
        if self.pinning && self.simulated.is_some() {
            wrong.push("pinning: a simulated system has no threads to pin".to_owned());
        }
        wrong
    }
}

impl Default for Config {
    fn default() -> Self {
        Config::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_spin_as_long_as_is_asked_for_and_not_where_threads_outside_run_them() {
        let spin = Some(Duration::from_micros(7));
        assert_eq!(Config { spin, ..Config::of(1) }.spin_ns(), 7_000);
        assert_eq!(Config { spin, lends: true, ..Config::of(1) }.spin_ns(), 7_000);
        assert_eq!(Config { lends: true, ..Config::of(1) }.spin_ns(), 0);
        assert_eq!(Config::of(1).spin_ns() == 0, crate::sync::pinning::has_quota());
    }
}
