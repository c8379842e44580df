//! Placements of the actors of a workload.

use playhouse::prelude::*;

/// Options that place an actor.
pub(crate) fn placed(placement: Placement) -> SpawnOptions {
    SpawnOptions::new().placement(placement)
}

/// The `nth` stage of those that `worker` starts with (stage `s` belongs to worker `s % workers` until it is stolen).
pub(crate) fn stage_of(system: &System, worker: usize, nth: usize) -> Placement {
    let (workers, stages) = (system.workers(), system.stages());
    let worker = worker % workers;
    let own = (stages - worker).div_ceil(workers);
    let stage = worker + (nth % own) * workers;
    Placement::Stage(u16::try_from(stage).expect("a system has at most 65,536 stages"))
}
