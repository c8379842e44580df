//! How long work takes in simulation.

use std::time::Duration;

use playhouse_executor::Choices;

/// How long work takes in simulation.
#[derive(Default)]
pub(super) struct SimulatedTimes {
    pub(super) least: Duration,
    pub(super) most: Duration,
    /// About one job in so many (none, where it is 0) takes so much longer.
    pub(super) stalls: (u64, Duration),
    /// In simulation only.
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
