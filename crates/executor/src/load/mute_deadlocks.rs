//! The search for mute deadlocks: its notes between two looks. `backpressure/deadlock.rs` makes the looks.

/// The monitor's record of mute deadlocks.
#[derive(Default)]
pub(crate) struct MuteDeadlocks {
    /// The workers of the deadlock at the last look.
    pub(crate) last: Vec<u16>,
    /// The number of the next worker in turn.
    pub(crate) turn: usize,
}
