//! Simulated connections, as links and the poller see them. `sim` has the simulation behind these traits.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Instant;

use mio::Token;

/// One end of a simulated connection.
pub(crate) trait SimulatedEnd: Send + Sync {
    /// Registers `events` for further events of this end; first it gets the present state.
    fn register(&self, events: &Arc<dyn SimulatedEvents>, token: Token);

    /// Reads bytes that have arrived.
    fn read(&self, room: &mut [u8]) -> io::Result<usize>;

    /// Writes bytes. Returns the number of bytes that fit in.
    fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Closes this end.
    fn shut(&self);
}

/// The events of the simulated connections of one theater, in place of the system's poll.
pub(crate) trait SimulatedEvents: Send + Sync {
    /// Notes that an end has become ready.
    fn tell(&self, readiness: Readiness);

    /// Makes the theater poll.
    fn demand(&self);

    /// Returns the readiness events since the last call.
    fn take_readiness(&self) -> Vec<Readiness>;

    /// Returns the virtual time as an instant.
    fn now(&self) -> Instant;
}

/// The readiness of an end: bytes to be read, or room to write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readiness {
    pub(crate) token: Token,
    pub(crate) readable: bool,
    pub(crate) closed: bool,
    pub(crate) writable: bool,
}
