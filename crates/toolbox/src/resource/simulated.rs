//! The virtual time of jobs in a simulated system.

use std::time::Duration;

use playhouse_executor::Choices;

/// The distribution of the virtual time of jobs.
#[derive(Default)]
pub(super) struct SimulatedTimes {
    pub(super) least: Duration,
    pub(super) most: Duration,
    /// The chance of a stall, as one in a number of jobs (0: none), and its length.
    pub(super) stalls: (u64, Duration),
    /// The source of random numbers. Only a simulated system has one.
    pub(super) choices: Option<Choices>,
}

impl SimulatedTimes {
    pub(super) fn draw(&mut self) -> Duration {
        let Some(choices) = &mut self.choices else { return Duration::ZERO };
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let most = ns(self.most - self.least).saturating_add(1);
        let (one_in, stall) = self.stalls;
        let stall = if one_in > 0 && choices.one_in(one_in) { stall } else { Duration::ZERO };
        self.least.saturating_add(Duration::from_nanos(choices.next() % most)).saturating_add(stall)
    }
}
