//! The checks of received packets and frames: lane, lengths, sequence, acknowledgements.
//!
//! Each function checks one property, and returns the violation of the protocol. The cipher of the connection has authenticated the
//! bytes before, if there is one (`transport/tls.rs`).

use super::header::Header;
use super::{Lane, PACKET_BYTES_MAX, ProtocolError};

/// Checks that the lane of a packet exists.
pub(super) fn lane(found: u8) -> Result<Lane, ProtocolError> {
    Lane::ALL.get(usize::from(found)).copied().ok_or(ProtocolError::Lane { found })
}

/// Checks that the reserved bytes of a header are zero.
pub(super) fn reserved(found: [u8; 3]) -> Result<(), ProtocolError> {
    if found == [0; 3] { Ok(()) } else { Err(ProtocolError::Reserved { found }) }
}

/// Checks the length of a packet's body. Only an acknowledgement alone, number 0, has none.
pub(super) fn body_bytes(number: u64, found: u32) -> Result<(), ProtocolError> {
    if found as usize > PACKET_BYTES_MAX {
        return Err(ProtocolError::PacketBytes { found });
    }
    match (number, found) {
        (0, 1..) => Err(ProtocolError::Body { found }),
        (1.., 0) => Err(ProtocolError::Empty { number }),
        _ => Ok(()),
    }
}

/// Checks that a packet is the `expected` one, or an earlier one. Returns whether it is the expected one.
pub(super) fn sequence(header: &Header, expected: u64) -> Result<bool, ProtocolError> {
    if header.number > expected {
        return Err(ProtocolError::Gap { found: header.number, expected });
    }
    Ok(header.number == expected)
}

/// Checks the length in front of a frame.
pub(super) fn frame_bytes(lane: Lane, found: u32, bytes_max: u32) -> Result<usize, ProtocolError> {
    if found > bytes_max {
        return Err(ProtocolError::FrameBytes { lane, found, bytes_max });
    }
    Ok(found as usize)
}

/// Checks that an acknowledged packet was `sent`.
pub(super) fn acknowledged(found: u64, sent: u64) -> Result<(), ProtocolError> {
    if found > sent { Err(ProtocolError::Acknowledged { found, sent }) } else { Ok(()) }
}

/// Checks the number of the last packet that the other end states to have received: from the last acknowledged one to the last
/// one `sent`.
pub(super) fn resumed(found: u64, acknowledged: u64, sent: u64) -> Result<(), ProtocolError> {
    if (acknowledged..=sent).contains(&found) {
        return Ok(());
    }
    Err(ProtocolError::Resumed { found, acknowledged, sent })
}
