//! The assembly of frames from one lane's stream.

use super::{Lane, PACKET_BYTES_MAX, PREFIX_BYTES, ProtocolError, packet_checks};

/// The start of an incomplete frame, with its length in front. Empty between two frames.
///
/// INVARIANT: at most `PREFIX_BYTES + bytes_max` bytes are allocated, and at most twice the bytes that have come. A length that
/// is only claimed allocates nothing.
#[derive(Default)]
pub(super) struct Assembly {
    begun: Vec<u8>,
}

impl Assembly {
    /// Takes the next stretch of the stream. A frame that lies within it is passed on without a copy.
    pub(super) fn input(
        &mut self,
        lane: Lane,
        mut stretch: &[u8],
        bytes_max: u32,
        on_frame: &mut impl FnMut(Lane, &[u8]),
    ) -> Result<(), ProtocolError> {
        let size_of =
            |prefix: [u8; PREFIX_BYTES]| packet_checks::frame_bytes(lane, u32::from_le_bytes(prefix), bytes_max);
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

    /// Clears the buffer. A short frame's buffer serves the next frame; a long frame's buffer is freed, because it would rarely
    /// be needed.
    fn clear(&mut self) {
        self.begun.clear();
        self.begun.shrink_to(PACKET_BYTES_MAX);
    }

    /// Returns the number of bytes allocated.
    pub(super) fn held_bytes(&self) -> usize {
        self.begun.capacity()
    }
}
