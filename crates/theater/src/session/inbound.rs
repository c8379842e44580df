//! The receiving half: each packet once and in order, each frame complete.

use super::assembly::Assembly;
use super::header::{HEADER_BYTES, Header};
use super::{Lane, ProtocolError, packet_checks};

/// The receiving half of a session.
///
/// It keeps nothing of an incomplete packet: the caller keeps those bytes, and drops them when the connection is replaced. It
/// keeps the bytes of incomplete frames, which continue over the next connection.
pub struct Inbound {
    frame_bytes_max: u32,
    received: u64,
    acknowledged: u64,
    assemblies: [Assembly; Lane::ALL.len()],
}

impl Inbound {
    /// Makes a session that has received nothing. A frame of more than `frame_bytes_max` bytes is an error.
    pub fn new(frame_bytes_max: u32) -> Inbound {
        Inbound { frame_bytes_max, received: 0, acknowledged: 0, assemblies: Default::default() }
    }

    /// Takes the complete packets at the start of `bytes`, calls `on_frame` with each completed frame, and returns the number of
    /// bytes taken. The caller gives the remaining bytes again, together with the next ones. Room for [`HEADER_BYTES`]` +
    /// `[`PACKET_BYTES_MAX`](super::PACKET_BYTES_MAX) bytes is enough for any packet.
    ///
    /// `on_frame` must not unwind, because frames of the same packet would be lost or come twice.
    ///
    /// # Errors
    /// The fault of the first faulty packet. The packets before it were taken, and perhaps some of its frames. The session has
    /// ended.
    pub fn input(&mut self, bytes: &[u8], mut on_frame: impl FnMut(Lane, &[u8])) -> Result<usize, ProtocolError> {
        let mut rest = bytes;
        while let Some((header, behind)) = rest.split_first_chunk::<HEADER_BYTES>() {
            // The check precedes the body, because waiting for a packet that will be refused is useless.
            let header = Header::read(header)?;
            let expected = self.received + 1;
            let is_expected = packet_checks::sequence(&header, expected)?;
            let Some((body, behind)) = behind.split_at_checked(header.body_bytes as usize) else { break };
            self.acknowledged = self.acknowledged.max(header.acknowledged);
            if is_expected {
                let assembly = &mut self.assemblies[header.lane as usize];
                assembly.input(header.lane, body, self.frame_bytes_max, &mut on_frame)?;
                self.received = expected;
            }
            rest = behind;
        }
        Ok(bytes.len() - rest.len())
    }

    /// Returns the highest number received, for the acknowledgements of this end and for its greeting after a reconnect.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns the highest number that the other end acknowledged: for [`Outbound::acknowledged`](super::Outbound::acknowledged),
    /// which checks it.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Returns the bytes allocated for incomplete frames: at most one frame per lane, and at most twice the bytes that have come
    /// of it.
    pub fn held_bytes(&self) -> usize {
        self.assemblies.iter().map(Assembly::held_bytes).sum()
    }
}
