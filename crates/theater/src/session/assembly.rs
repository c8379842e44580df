//! One lane's stream, taken apart into frames.

use super::{Lane, PACKET_BYTES_MAX, PREFIX_BYTES, ProtocolError};

/// The start of the frame that has not come to its end, with its length in front. Empty between two frames.
///
/// INVARIANT: at most `PREFIX_BYTES + bytes_max` bytes are allocated, and at most twice what has come: a length that is
/// claimed allocates nothing.
#[derive(Default)]
pub(super) struct Assembly {
    begun: Vec<u8>,
}

impl Assembly {
    /// Takes the next stretch of the stream. A frame that lies within it is handed out where it lies.
    pub(super) fn input(
        &mut self,
        lane: Lane,
        mut stretch: &[u8],
        bytes_max: u32,
        on_frame: &mut impl FnMut(Lane, &[u8]),
    ) -> Result<(), ProtocolError> {
        let size_of = |prefix: [u8; PREFIX_BYTES]| match u32::from_le_bytes(prefix) {
            found if found > bytes_max => Err(ProtocolError::FrameBytes { lane, found, bytes_max }),
            found => Ok(found as usize),
        };
        if !self.begun.is_empty() {
            self.fill(PREFIX_BYTES, &mut stretch);
            let Some(&prefix) = self.begun.first_chunk() else { return Ok(()) };
            let whole = PREFIX_BYTES + size_of(prefix)?;
            self.fill(whole, &mut stretch);
            if self.begun.len() < whole {
                return Ok(());
            }
            on_frame(lane, &self.begun[PREFIX_BYTES..]);
            self.clear();
        }
        while let Some((&prefix, behind)) = stretch.split_first_chunk() {
            let size = size_of(prefix)?;
            let Some((frame, behind)) = behind.split_at_checked(size) else { break };
            on_frame(lane, frame);
            stretch = behind;
        }
        self.fill(stretch.len(), &mut stretch);
        Ok(())
    }

    /// Moves bytes from `stretch` until there are `wanted`.
    fn fill(&mut self, wanted: usize, stretch: &mut &[u8]) {
        let missing = wanted.saturating_sub(self.begun.len());
        let (part, behind) = stretch.split_at(missing.min(stretch.len()));
        let least = self.begun.len() + part.len();
        if self.begun.capacity() < least {
            let capacity = (2 * self.begun.capacity()).clamp(least, wanted);
            self.begun.reserve_exact(capacity - self.begun.len());
        }
        self.begun.extend_from_slice(part);
        *stretch = behind;
    }

    /// The buffer of a short frame serves the next one, that of a long one would be kept for nothing.
    fn clear(&mut self) {
        self.begun.clear();
        self.begun.shrink_to(PACKET_BYTES_MAX);
    }

    /// Bytes allocated.
    pub(super) fn held_bytes(&self) -> usize {
        self.begun.capacity()
    }
}
