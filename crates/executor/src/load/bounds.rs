//! The bound above which a worker is overloaded, and the load of a worker by its bounds.

/// A worker with more bytes of mail from others than this is overloaded.
pub(crate) const OVERLOADED_BYTES: usize = 2 * 1024 * 1024;

/// The load of a worker by its mail from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// The load is below the low-water mark.
    Low,
    Medium,
    /// The load is at the high-water mark or above.
    High,
}

impl Load {
    /// Returns the load with `bytes` bytes. `low` is the low-water mark as a part of the high one.
    pub(crate) fn of(bytes: u64, high: u64, (part, of): (u64, u64)) -> Load {
        match bytes {
            _ if bytes >= high => Load::High,
            _ if bytes < high / of * part => Load::Low,
            _ => Load::Medium,
        }
    }
}

/// The loads of a worker by the two bounds.
pub(crate) struct Loads {
    pub(crate) pressed: Load,
    pub(crate) overloaded: Load,
}
