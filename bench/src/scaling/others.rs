//! The CPU time that other programs took during a measurement.

use std::fs;
use std::ops::AddAssign;

use crate::harness::topology::allowed;

/// Other programs that take more than this share of the CPU time disturb a measurement.
pub const SHARE_MAX: f64 = 0.02;

/// The CPU times of the system and of this process so far, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTimes {
    /// The CPUs that this process may run on.
    cpus: u64,
    /// The ticks of these CPUs, idle ones included.
    total: u64,
    /// The ticks of these CPUs in programs, in the kernel and in other virtual machines.
    busy: u64,
    /// The ticks of this process.
    own: u64,
}

impl CpuTimes {
    /// Reads the times. Returns `None` if the operating system has no `/proc/stat`.
    pub fn now() -> Option<Self> {
        let (system, process) = (fs::read_to_string("/proc/stat").ok()?, fs::read_to_string("/proc/self/stat").ok()?);
        let allowed = allowed();
        Self::parse(&system, &process, |cpu| allowed.as_ref().is_none_or(|allowed| allowed.contains(&cpu)))
    }

    /// Parses the texts of `/proc/stat` and `/proc/self/stat`. Counts the CPUs that this process `may` run on.
    fn parse(system: &str, process: &str, may: impl Fn(usize) -> bool) -> Option<Self> {
        let mut times = Self { cpus: 0, total: 0, busy: 0, own: 0 };
        for line in system.lines() {
            let mut fields = line.split_ascii_whitespace();
            let number = fields.next().and_then(|name| name.strip_prefix("cpu")?.parse().ok());
            if !number.is_some_and(&may) {
                continue;
            }
            // The fields are user, nice, system, idle, iowait, irq, softirq and steal. The first two include guests.
            let ticks: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
            times.cpus += 1;
            times.total += ticks.iter().sum::<u64>();
            times.busy += [0, 1, 2, 5, 6, 7].into_iter().filter_map(|field| ticks.get(field)).sum::<u64>();
        }
        // The second field is the program's name, in parentheses, and may hold spaces.
        let (_, fields) = process.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u64>().ok();
        times.own = ticks()? + ticks()?;
        (times.cpus > 0).then_some(times)
    }
}

/// The CPU time of other programs during one or more measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    cpus: u64,
    total: u64,
    others: u64,
}

impl Others {
    /// Returns the times between two readings, or zeros if one of them is missing.
    pub fn between(before: Option<CpuTimes>, after: Option<CpuTimes>) -> Self {
        let (Some(before), Some(after)) = (before, after) else { return Self::default() };
        let own = after.own.saturating_sub(before.own);
        Self {
            cpus: after.cpus,
            total: after.total.saturating_sub(before.total),
            others: after.busy.saturating_sub(before.busy).saturating_sub(own),
        }
    }

    /// Returns the share of the CPU time, from 0 to 1. Returns `None` if the times are unknown or cover less than 100 ticks per CPU (mostly
    /// 1 second), because ticks are coarse.
    pub fn share(self) -> Option<f64> {
        const TICKS_MIN: u64 = 100;
        (self.cpus > 0 && self.total >= TICKS_MIN * self.cpus).then(|| self.others as f64 / self.total as f64)
    }

    /// Returns a warning about the figures of `what`, if other programs took more than [`SHARE_MAX`].
    pub fn unrest(self, what: &str) -> Option<String> {
        let share = self.share().filter(|&share| share > SHARE_MAX)?;
        Some(format!(
            "other programs took {:.0} % of the CPU time during {what}; its figures are uncertain",
            100.0 * share
        ))
    }
}

impl AddAssign for Others {
    fn add_assign(&mut self, other: Self) {
        self.cpus = self.cpus.max(other.cpus);
        self.total += other.total;
        self.others += other.others;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESS: &str = "7 (a (b) c) R 1 2 3 0 -1 4 98 0 1 0 30 12 0 0 20 0 1 0 58903";

    #[test]
    fn times_are_those_of_the_allowed_cpus() {
        let system =
            "cpu 9 9 9 9 9 9 9 9 9 9\ncpu0 10 1 5 80 4 2 3 5 7 7\ncpu1 1 1 1 1 1 1 1 1 0 0\ncpu2 1 0 0 9\nintr 1\n";
        let times = CpuTimes::parse(system, PROCESS, |cpu| cpu != 1);
        assert_eq!(times, Some(CpuTimes { cpus: 2, total: 110 + 10, busy: 26 + 1, own: 42 }));
    }

    #[test]
    fn texts_without_times_are_refused() {
        assert_eq!(CpuTimes::parse("intr 1\n", PROCESS, |_| true), None);
        assert_eq!(CpuTimes::parse("cpu0 1 2 3 4\n", "", |_| true), None);
        assert_eq!(CpuTimes::parse("cpu0 1 2 3 4\n", "7 (a) R 1 2", |_| true), None);
    }

    fn others(total: u64, busy: u64, own: u64) -> Others {
        let before = CpuTimes { cpus: 2, total: 1_000, busy: 500, own: 50 };
        let after = CpuTimes { cpus: 2, total: 1_000 + total, busy: 500 + busy, own: 50 + own };
        Others::between(Some(before), Some(after))
    }

    #[test]
    fn the_share_leaves_out_idle_time_and_this_process() {
        assert_eq!(others(1_000, 620, 500).share(), Some(0.12));
        let words = "other programs took 12 % of the CPU time during gossip-10000; its figures are uncertain";
        assert_eq!(others(1_000, 620, 500).unrest("gossip-10000").as_deref(), Some(words));
        assert_eq!(others(1_000, 520, 500).unrest("x"), None);
        // The process's clock is finer than that of the system.
        assert_eq!(others(1_000, 498, 500).share(), Some(0.0));
    }

    #[test]
    fn a_short_time_has_no_share_and_times_add_up() {
        let mut sum = others(150, 150, 50);
        assert_eq!((sum.share(), Others::default().share()), (None, None));
        assert_eq!(Others::between(None, None), Others::default());
        sum += others(150, 0, 0);
        assert_eq!(sum.share(), Some(1.0 / 3.0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_system_has_times() {
        let times = CpuTimes::now().unwrap();
        assert!(times.cpus > 0 && times.busy <= times.total, "{times:?}");
    }
}
