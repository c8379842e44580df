//! The errors of frames, and the violations of the protocol by the other end.

use std::error::Error;
use std::fmt;

use super::{Lane, PACKET_BYTES_MAX};

/// The reason why a frame was not taken. The session is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameError<E> {
    /// The frame could not be written.
    Write(E),
    /// The frame is too large.
    TooLarge {
        /// Bytes of the frame.
        bytes: usize,
        /// Maximum size of a frame in bytes.
        bytes_max: u32,
    },
}

impl<E: fmt::Display> fmt::Display for FrameError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Write(error) => error.fmt(f),
            FrameError::TooLarge { bytes, bytes_max } => {
                write!(f, "a frame of {bytes} bytes: it may have at most {bytes_max}")
            }
        }
    }
}

impl<E: Error> Error for FrameError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // Display shows the text of the inner error; therefore the inner error's source is the source.
            FrameError::Write(error) => error.source(),
            FrameError::TooLarge { .. } => None,
        }
    }
}

/// A violation of the protocol by the other end. It ends the session, because nothing that the other end sends can be relied on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A packet of a lane that does not exist.
    Lane {
        /// The lane in its header.
        found: u8,
    },
    /// Bytes of a header that must be zero are not zero.
    Reserved {
        /// These bytes.
        found: [u8; 3],
    },
    /// A packet that is too large.
    PacketBytes {
        /// The length in its header.
        found: u32,
    },
    /// A packet with a number and no body.
    Empty {
        /// The number.
        number: u64,
    },
    /// An acknowledgement alone, number 0, with a body.
    Body {
        /// The length in its header.
        found: u32,
    },
    /// A packet that is neither the next one nor an earlier one.
    Gap {
        /// The number in its header.
        found: u64,
        /// The number of the next packet.
        expected: u64,
    },
    /// A frame that is too large.
    FrameBytes {
        /// Its lane.
        lane: Lane,
        /// The length in front of it.
        found: u32,
        /// Maximum size of a frame in bytes.
        bytes_max: u32,
    },
    /// An acknowledgement of a packet that was not sent.
    Acknowledged {
        /// The number that was acknowledged.
        found: u64,
        /// The highest number that was sent.
        sent: u64,
    },
    /// The session cannot resume at the number that the other end states.
    Resumed {
        /// The last number that the other end states to have received.
        found: u64,
        /// The highest number that the other end had acknowledged.
        acknowledged: u64,
        /// The highest number that was sent.
        sent: u64,
    },
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProtocolError::Lane { found } => {
                write!(f, "a packet of lane {found}: lanes are 0 (system), 1 (urgent) and 2 (normal)")
            }
            ProtocolError::Reserved { found } => {
                write!(f, "a packet with reserved bytes {found:?}: they must be zero")
            }
            ProtocolError::PacketBytes { found } => {
                write!(f, "a packet of {found} bytes: it may have at most {PACKET_BYTES_MAX}")
            }
            ProtocolError::Empty { number } => {
                write!(f, "packet {number} has no body: only an acknowledgement, number 0, has none")
            }
            ProtocolError::Body { found } => {
                write!(f, "an acknowledgement, number 0, with a body of {found} bytes: it has none")
            }
            ProtocolError::Gap { found, expected } => {
                write!(f, "packet {found} came: packet {expected} must come first")
            }
            ProtocolError::FrameBytes { lane, found, bytes_max } => {
                write!(f, "a frame of {found} bytes on lane {lane}: it may have at most {bytes_max}")
            }
            ProtocolError::Acknowledged { found, sent } => {
                write!(f, "packet {found} was acknowledged: {sent} is the highest that was sent")
            }
            ProtocolError::Resumed { found, acknowledged, sent } => {
                write!(f, "packet {found} was stated as the last received: it must be from {acknowledged}, ")?;
                write!(f, "the last acknowledged, to {sent}, the last sent")
            }
        }
    }
}

impl Error for ProtocolError {}
