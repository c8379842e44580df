//! What one end of a link keeps between two theaters, whatever becomes of the connection.
//!
//! A session has two halves without shared state, so that one thread can send while another receives: [`Outbound`]
//! numbers packets and keeps them until they are acknowledged, [`Inbound`] takes each number once and in order. Neither
//! knows a socket, a clock or a thread; the caller carries [`Inbound::received`] and [`Inbound::acknowledged`] across.
//!
//! # What is on the connection
//!
//! Packets, one behind the other. All numbers are little-endian.
//!
//! | bytes | |
//! |---|---|
//! | 1 | lane |
//! | 3 | zero |
//! | 4 | length of the body, at most [`PACKET_BYTES_MAX`] |
//! | 8 | number: 1, 2, 3.. over all lanes; 0 for an acknowledgement alone, which has no body |
//! | 8 | highest number received from the other end |
//! | length | a stretch of the lane's stream |
//!
//! A lane's stream is a sequence of frames, `[length: u32][bytes]`. It is cut into packets without regard for frames,
//! so a long frame is fragmented, and packets of a higher lane pass between its fragments.
//!
//! # Why nothing is lost, repeated or reordered
//!
//! A packet gets its number when its first byte is written, and is kept with it until the number is acknowledged.
//! A packet that was never written to its end has not arrived, so only then may the number be taken back from it. After
//! a reconnect each end says what it received, and the other writes everything behind that again, in the order of the
//! numbers. The receiver takes number `received + 1`, skips what is below, and refuses what is above. So both ends see
//! one sequence of packets, and with it one stream per lane.
//!
//! An end closes the old connection before it says what it received. Should it still take packets from there, nothing is
//! lost or repeated: they come again, and are skipped.

mod assembly;
mod error;
mod fuzz;
mod header;
mod inbound;
mod outbound;
mod packet;
#[cfg(test)]
mod tests;

use std::fmt;

pub use error::{FrameError, ProtocolError};
#[doc(hidden)]
pub use fuzz::fuzz;
pub use header::HEADER_BYTES;
pub use inbound::Inbound;
pub use outbound::Outbound;

/// Most bytes of a packet's body. While a packet is written nothing else passes, so it is what a heartbeat waits for.
pub const PACKET_BYTES_MAX: usize = 64 * 1024;

/// Bytes of the length in front of each frame.
const PREFIX_BYTES: usize = size_of::<u32>();

/// A stream of frames within a session. Order is kept within a lane; a higher lane passes a lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Lane {
    /// What theaters say to each other, heartbeats above all.
    System = 0,
    /// Messages that overtake others.
    Urgent = 1,
    /// All other messages.
    Normal = 2,
}

impl Lane {
    /// All lanes, the highest first.
    pub const ALL: [Lane; 3] = [Lane::System, Lane::Urgent, Lane::Normal];
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lane::System => "system",
            Lane::Urgent => "urgent",
            Lane::Normal => "normal",
        })
    }
}
