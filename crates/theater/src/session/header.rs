//! The header of a packet.

use super::{Lane, ProtocolError, packet_checks};

/// Bytes in front of a packet's body.
pub const HEADER_BYTES: usize = 24;

/// The fields of a header: see the table in [`super`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) lane: Lane,
    pub(super) body_bytes: u32,
    pub(super) number: u64,
    pub(super) acknowledged: u64,
}

impl Header {
    /// Returns the header of an acknowledgement alone.
    pub(super) fn note(acknowledged: u64) -> Header {
        Header { lane: Lane::System, body_bytes: 0, number: 0, acknowledged }
    }

    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = self.lane as u8;
        bytes[4..8].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.acknowledged.to_le_bytes());
        bytes
    }

    /// Reads a header, and checks everything that does not depend on the session.
    pub(super) fn read(bytes: &[u8; HEADER_BYTES]) -> Result<Header, ProtocolError> {
        let &[lane, r0, r1, r2, b0, b1, b2, b3, n0, n1, n2, n3, n4, n5, n6, n7, ref acknowledged @ ..] = bytes;
        let lane = packet_checks::lane(lane)?;
        packet_checks::reserved([r0, r1, r2])?;
        let body_bytes = u32::from_le_bytes([b0, b1, b2, b3]);
        let number = u64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
        packet_checks::body_bytes(number, body_bytes)?;
        Ok(Header { lane, body_bytes, number, acknowledged: u64::from_le_bytes(*acknowledged) })
    }
}
