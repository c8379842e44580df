//! The options of a cluster.

use std::time::Duration;

use crate::membership::Config;
use crate::view::Timing;

/// The options of a cluster that begins, and the version of the program. A member of a cluster that exists takes over its durations and slots.
///
/// # Examples
///
/// ```
/// use playhouse_cluster::ClusterOptions;
/// use std::time::Duration;
///
/// let options = ClusterOptions::new().slots(256).outage(Duration::from_secs(60));
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ClusterOptions {
    lease: Duration,
    outage: Duration,
    slots: u32,
    program: u64,
}

impl Default for ClusterOptions {
    fn default() -> ClusterOptions {
        let (lease, outage) = (Duration::from_secs(3), Duration::from_secs(10));
        ClusterOptions { lease, outage, slots: 4_096, program: 0 }
    }
}

impl ClusterOptions {
    /// Returns the defaults.
    pub fn new() -> ClusterOptions {
        ClusterOptions::default()
    }

    /// Sets the time for which a member runs its slots without a new proof that it lives. Default: 3 s.
    ///
    /// The members ask each other, and the ledger, 6 times in this time. After 3 unanswered asks a member counts as suspected. The workers of a theater
    /// read its links: if handlers hold all of them for half a lease, its members seem silent. A write of the ledger that takes longer than a sixth of
    /// the lease counts as failed, and so does a read that takes longer than the lease. The next owner of a slot waits for a tenth longer than the lease, because the rates of two clocks differ.
    pub fn lease(mut self, lease: Duration) -> ClusterOptions {
        self.lease = lease;
        self
    }

    /// Sets the time for which the members run without the ledger, while they reach each other. After it they pause within one lease. Default: 10 s.
    ///
    /// A member that finds only unreachable members in the ledger waits for the same time before it takes their slots, because they may be running
    /// without the ledger. The default outlasts an election in etcd and the restart of a database. After the loss of all processes, the first new one
    /// runs its slots about 15 s later. A database with a slower fail-over needs a longer time, at the cost of that start.
    pub fn outage(mut self, outage: Duration) -> ClusterOptions {
        self.outage = outage;
        self
    }

    /// Sets the number of slots of a cluster that begins, from 1 to [`SLOTS_MAX`](crate::SLOTS_MAX). Default: 4,096.
    pub fn slots(mut self, slots: u32) -> ClusterOptions {
        self.slots = slots;
        self
    }

    /// Sets the version of the program, which the view shows. Default: 0.
    ///
    /// While the versions of the members differ, no slots move to level the loads. The slots of a leaving member go to members whose version is not
    /// lower than its own, if there are any.
    pub fn program(mut self, program: u64) -> ClusterOptions {
        self.program = program;
        self
    }

    pub(super) fn version(&self) -> u64 {
        self.program
    }

    /// Returns the settings of the machine. `cluster`: the number of a cluster that begins.
    pub(super) fn config(&self, cluster: u64) -> Config {
        let ClusterOptions { lease, outage, slots, .. } = *self;
        let timing = Timing { renew: lease / 6, lease, wait: lease.saturating_add(lease / 10), outage };
        Config { timing, cluster, slots }
    }
}
