//! The size of one run of a pattern.

use crate::harness::outcome::Size;

use super::work::Work;

/// The work per message, and the size of a run.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The work with each message.
    pub work: Work,
    /// The size of a run.
    pub size: Size,
}

impl Load {
    /// Returns the number of operations that take the size's time on one worker, if each takes `overhead_ns` in addition to
    /// its work.
    pub(crate) fn ops(&self, overhead_ns: u64) -> u64 {
        let run_ns = self.size.pick(500_000, 400_000_000, 400_000_000);
        run_ns / (overhead_ns + u64::from(self.work.ns()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_work_means_fewer_operations() {
        let load = |ns, size| Load { work: Work::of_ns(ns), size };
        assert_eq!(load(0, Size::Default).ops(200), 2_000_000);
        assert_eq!(load(99_800, Size::Default).ops(200), 4_000);
        assert_eq!(load(800, Size::Smoke).ops(200), 500);
    }
}
