//! The receiving half: each packet once and in order, each frame whole.

use super::assembly::Assembly;
use super::header::{HEADER_BYTES, Header};
use super::{Lane, ProtocolError};

/// The receiving half of a session.
///
/// It keeps nothing of a packet that is not whole: that is the caller's, who drops it when the connection is replaced.
/// Of frames that are not whole it keeps what came: they go on over the next connection.
pub struct Inbound {
    frame_bytes_max: u32,
    received: u64,
    acknowledged: u64,
    assemblies: [Assembly; Lane::ALL.len()],
}

impl Inbound {
    /// A session that has received nothing. A frame of more than `frame_bytes_max` bytes is an error.
    pub fn new(frame_bytes_max: u32) -> Inbound {
        Inbound { frame_bytes_max, received: 0, acknowledged: 0, assemblies: Default::default() }
    }

    /// Takes the whole packets at the start of `bytes`, calls `on_frame` with each frame that comes to its end, and
    /// returns how many bytes it took. The rest is to be given again, with what comes behind it: room for
    /// [`HEADER_BYTES`]` + `[`PACKET_BYTES_MAX`](super::PACKET_BYTES_MAX) bytes is enough for any packet.
    ///
    /// `on_frame` must not unwind: frames of the same packet would be lost or come twice.
    ///
    /// # Errors
    /// What is wrong with the first wrong packet. Those before it were taken, and perhaps some of its frames. The
    /// session has ended.
    pub fn input(&mut self, bytes: &[u8], mut on_frame: impl FnMut(Lane, &[u8])) -> Result<usize, ProtocolError> {
        let mut rest = bytes;
        while let Some((header, behind)) = rest.split_first_chunk::<HEADER_BYTES>() {
            // Before the body is there: nobody waits for a packet that would be refused.
            let header = Header::read(header)?;
            let expected = self.received + 1;
            if header.number > expected {
                return Err(ProtocolError::Gap { found: header.number, expected });
            }
            let Some((body, behind)) = behind.split_at_checked(header.body_bytes as usize) else { break };
            self.acknowledged = self.acknowledged.max(header.acknowledged);
            if header.number == expected {
                let assembly = &mut self.assemblies[header.lane as usize];
                assembly.input(header.lane, body, self.frame_bytes_max, &mut on_frame)?;
                self.received = expected;
            }
            rest = behind;
        }
        Ok(bytes.len() - rest.len())
    }

    /// The highest number received: what the other half of this end acknowledges, and what this end says after a
    /// reconnect.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The highest number that the other end acknowledged: for [`Outbound::acknowledged`](super::Outbound::acknowledged),
    /// which checks it.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Bytes allocated for frames that are not whole. At most one frame per lane, and at most twice what came of it.
    pub fn held_bytes(&self) -> usize {
        self.assemblies.iter().map(Assembly::held_bytes).sum()
    }
}
