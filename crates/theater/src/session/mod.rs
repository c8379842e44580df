//! The session of one end of a link, which outlives each connection.
//!
//! A session has two halves without shared state. Therefore one thread can send while another one receives. [`Outbound`] numbers
//! packets and keeps them until they are acknowledged; [`Inbound`] takes each number once and in order. Neither knows a socket, a
//! clock or a thread; the caller passes [`Inbound::received`] and [`Inbound::acknowledged`] from one to the other.
//!
//! # The bytes on the connection
//!
//! Packets, one after the other. All numbers are little-endian.
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
//! A lane's stream is a sequence of frames, `[length: u32][bytes]`. It is cut into packets without regard for frames. A long
//! frame is therefore fragmented, and packets of a higher lane pass between its fragments.
//!
//! # Why nothing is lost, repeated or reordered
//!
//! A packet gets its number when its first byte is written, and keeps it until the number is acknowledged. A packet that was
//! never written completely has not arrived, and only in that case may it lose its number. After a reconnect each end states the
//! number that it received, and the other end writes all later packets again, in the order of their numbers. The receiver takes
//! number `received + 1`, skips lower numbers, and refuses higher ones. Both ends therefore see one sequence of packets, and with
//! it one stream per lane.
//!
//! An end closes the old connection before it states the number that it received. Even if it still takes packets from the old
//! connection, nothing is lost or repeated: they come again, and are skipped.
//!
//! `packet_checks.rs` has the checks of received packets and frames.

mod assembly;
mod error;
mod fuzz;
mod header;
mod inbound;
mod outbound;
mod packet;
mod packet_checks;
#[cfg(test)]
mod tests;

use std::fmt;

pub use error::{FrameError, ProtocolError};
#[doc(hidden)]
pub use fuzz::fuzz;
pub use header::HEADER_BYTES;
pub use inbound::Inbound;
pub use outbound::Outbound;

/// Maximum size of a packet's body in bytes. It bounds the delay of a heartbeat, because nothing passes a packet that is being
/// written.
pub const PACKET_BYTES_MAX: usize = 64 * 1024;

/// Bytes of the length in front of each frame.
const PREFIX_BYTES: usize = size_of::<u32>();

/// A stream of frames within a session. Order is kept within a lane; a higher lane passes a lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Lane {
    /// The theaters' own messages, mainly heartbeats.
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
