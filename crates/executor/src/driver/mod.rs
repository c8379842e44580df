//! Drivers of the workers: threads, and the simulated driver with its virtual time; timers.

pub(crate) mod deliveries;
pub(crate) mod simulated;
pub(crate) mod threads;
pub(crate) mod timer_wheel;
pub(crate) mod turns;
