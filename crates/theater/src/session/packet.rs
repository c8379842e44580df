//! A packet before it is acknowledged, and the writing of frames into it.

use std::collections::VecDeque;

use super::header::{HEADER_BYTES, Header};
use super::{FrameError, Lane, PACKET_BYTES_MAX, PREFIX_BYTES};

/// A packet of this many bytes takes no further frame. A frame of up to a quarter of a packet is therefore not cut in two, and
/// the receiver need not copy it.
const FULL_BYTES: usize = PACKET_BYTES_MAX / 4 * 3;
/// Capacity of a new buffer: a small message. A packet that is sent alone keeps its buffer until it is acknowledged.
const ROOM_BYTES: usize = 256;
/// Maximum number of buffers kept for the next packets.
const POOL_MAX: usize = 8;

/// A header, which is filled in when the packet is offered to the connection, and a stretch of the lane's stream.
pub(super) struct Packet {
    pub(super) lane: Lane,
    pub(super) bytes: Vec<u8>,
    /// The end of the last frame that ends in this packet; `HEADER_BYTES` if none does.
    pub(super) ended: usize,
    /// Bytes of the replies that end in this packet: see [`Outbound::reply`](super::Outbound::reply).
    pub(super) reply_bytes: usize,
}

impl Packet {
    pub(super) fn new(lane: Lane, pool: &mut Pool) -> Packet {
        let mut bytes = pool.take();
        bytes.resize(HEADER_BYTES, 0);
        Packet { lane, bytes, ended: HEADER_BYTES, reply_bytes: 0 }
    }

    pub(super) fn set_header(&mut self, number: u64, acknowledged: u64) {
        let body_bytes = (self.bytes.len() - HEADER_BYTES) as u32;
        let header = Header { lane: self.lane, body_bytes, number, acknowledged };
        self.bytes[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
    }

    /// Returns whether the last frame continues in the lane's next packet.
    pub(super) fn goes_on(&self) -> bool {
        self.ended < self.bytes.len()
    }

    /// Moves the bytes that exceed one packet into further ones, which it returns: the end of one long frame.
    pub(super) fn split(&mut self, pool: &mut Pool) -> Vec<Packet> {
        let surplus = &self.bytes[HEADER_BYTES + PACKET_BYTES_MAX..];
        let further = surplus.chunks(PACKET_BYTES_MAX).map(|stretch| {
            let mut packet = Packet::new(self.lane, pool);
            packet.bytes.extend_from_slice(stretch);
            packet
        });
        let mut further: Vec<Packet> = further.collect();
        if let Some(last) = further.last_mut() {
            last.ended = last.bytes.len();
        }
        self.bytes.truncate(HEADER_BYTES + PACKET_BYTES_MAX);
        self.bytes.shrink_to(HEADER_BYTES + PACKET_BYTES_MAX);
        further
    }
}

/// A frame that is being written into a lane's open packet, the last one of its queue. A draft that is dropped before it is
/// finished, also by a panic of its writer, leaves no trace.
pub(super) struct Draft<'a> {
    queue: &'a mut VecDeque<Packet>,
    /// The start of the frame.
    start: usize,
    finished: bool,
}

impl<'a> Draft<'a> {
    /// Takes the last packet of the queue, which ends with a frame's end, or a new one.
    pub(super) fn new(queue: &'a mut VecDeque<Packet>, lane: Lane, pool: &mut Pool) -> Draft<'a> {
        let start = match queue.back() {
            Some(open) if open.bytes.len() < FULL_BYTES => open.bytes.len(),
            _ => {
                queue.push_back(Packet::new(lane, pool));
                HEADER_BYTES
            }
        };
        Draft { queue, start, finished: false }
    }

    /// Writes the frame; after that the packet may be too long. Returns the number of its bytes that were counted before.
    pub(super) fn finish<E>(
        mut self,
        bytes_max: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<usize, FrameError<E>> {
        let bytes = &mut self.queue.back_mut().expect("it was opened").bytes;
        let body = self.start + PREFIX_BYTES;
        bytes.extend_from_slice(&[0; PREFIX_BYTES]);
        write(bytes).map_err(FrameError::Write)?;
        let size = bytes.len().checked_sub(body).expect("a frame is appended to the content of the buffer");
        if size > bytes_max as usize {
            return Err(FrameError::TooLarge { bytes: size, bytes_max });
        }
        bytes[self.start..body].copy_from_slice(&(size as u32).to_le_bytes());
        self.finished = true;
        Ok(if self.start > HEADER_BYTES { self.start } else { 0 })
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        if self.start == HEADER_BYTES {
            self.queue.pop_back();
        } else if let Some(open) = self.queue.back_mut() {
            open.bytes.truncate(self.start);
            open.bytes.shrink_to(HEADER_BYTES + PACKET_BYTES_MAX);
        }
    }
}

/// Empty buffers: a steady load reuses the same few.
#[derive(Default)]
pub(super) struct Pool {
    buffers: Vec<Vec<u8>>,
}

impl Pool {
    fn take(&mut self) -> Vec<u8> {
        self.buffers.pop().unwrap_or_else(|| Vec::with_capacity(ROOM_BYTES))
    }

    pub(super) fn put(&mut self, packet: Packet) {
        if self.buffers.len() < POOL_MAX {
            let mut buffer = packet.bytes;
            buffer.clear();
            self.buffers.push(buffer);
        }
    }
}
