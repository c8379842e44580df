//! Placements of the actors of a workload.

use playhouse::prelude::*;

/// Returns options that place an actor.
pub(crate) fn placed(placement: Placement) -> SpawnOptions {
    SpawnOptions::new().placement(placement)
}

/// Returns the `nth` of the stages that `worker` starts with. Stage `s` belongs to worker `s % workers` until another worker
/// steals it.
pub(crate) fn stage_of(system: &System, worker: usize, nth: usize) -> Placement {
    let (workers, stages) = (system.workers(), system.stages());
    let worker = worker % workers;
    let own = (stages - worker).div_ceil(workers);
    let stage = worker + (nth % own) * workers;
    Placement::Stage(u16::try_from(stage).expect("a system has at most 65,536 stages"))
}
