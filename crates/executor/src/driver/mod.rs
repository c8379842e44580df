//! Drivers of the workers: the simulated driver with its virtual time, and deliveries one at a time.

pub(crate) mod deliveries;
pub(crate) mod simulated;
