//! The options of a kind of virtual actors.

use std::time::Duration;

/// The options of a kind of virtual actors in one member.
///
/// # Examples
///
/// ```
/// use playhouse_cluster::VirtualOptions;
/// use std::time::Duration;
///
/// let options = VirtualOptions::new().idle(Duration::from_secs(60)).wait(Duration::from_secs(5));
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct VirtualOptions {
    pub(super) idle: Duration,
    pub(super) wait: Duration,
    pub(super) waiting_max: usize,
    pub(super) passivation_max: Duration,
}

impl Default for VirtualOptions {
    fn default() -> VirtualOptions {
        VirtualOptions {
            idle: Duration::from_secs(600),
            wait: Duration::from_secs(10),
            waiting_max: 10_000,
            passivation_max: Duration::from_secs(5),
        }
    }
}

impl VirtualOptions {
    /// Returns the defaults.
    pub fn new() -> VirtualOptions {
        VirtualOptions::default()
    }

    /// Sets the time without calls after which an actor is passivated. Default: 10 minutes. The time may be exceeded by a quarter.
    pub fn idle(mut self, idle: Duration) -> VirtualOptions {
        self.idle = idle;
        self
    }

    /// Sets the time for which a call waits in a directory while no member runs its slot. Default: 10 s.
    ///
    /// A takeover takes the time of the detection and a tenth more than the [lease](crate::ClusterOptions::lease). A call that has waited longer fails,
    /// and its error has the reason. A call that was forwarded begins to wait anew.
    pub fn wait(mut self, wait: Duration) -> VirtualOptions {
        self.wait = wait;
        self
    }

    /// Sets the largest number of calls that wait in the directory of this kind. Further ones fail at once. Default: 10,000.
    pub fn waiting_max(mut self, calls: usize) -> VirtualOptions {
        self.waiting_max = calls;
        self
    }

    /// Sets the time after which an actor is killed if it has not ended its passivation during a hand-over. Default: 5 s.
    pub fn passivation_max(mut self, limit: Duration) -> VirtualOptions {
        self.passivation_max = limit;
        self
    }
}
