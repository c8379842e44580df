//! The sending half: numbers packets, writes the highest lane first, and keeps unacknowledged packets.

use std::collections::VecDeque;
use std::io::IoSlice;

use super::assembly::Assembly;
use super::header::{HEADER_BYTES, Header};
use super::packet::{Draft, Packet, Pool};
use super::{FrameError, Lane, PACKET_BYTES_MAX, ProtocolError, packet_checks};

/// Maximum number of packets for one system call: 2 MiB of full ones.
const SLICES_MAX: usize = 32;

/// The sending half of a session.
pub struct Outbound {
    frame_bytes_max: u32,
    /// Packets without a number, by lane. The last packet of a lane ends with a frame's end, and takes further frames.
    queues: [VecDeque<Packet>; Lane::ALL.len()],
    /// Packets with a number, in its order: the first has `released + 1`.
    numbered: VecDeque<Packet>,
    /// Released packets, by lane, whose last frame continues in a packet that is not released. Kept for [`Outbound::drain`].
    begun: [Vec<Packet>; Lane::ALL.len()],
    pool: Pool,
    /// Bytes of all packets in `queues` and `numbered`.
    waiting_bytes: usize,
    /// Bytes of replies in packets that were not written completely on this connection.
    unwritten_reply_bytes: usize,

    /// The highest number released.
    released: u64,
    /// The highest number that the other end acknowledged. It exceeds `released` only while that packet is being written again,
    /// because it must be written completely.
    acknowledged: u64,
    /// The highest number that was written completely, on any connection.
    sent: u64,

    /// Number of packets of `numbered` that were written on this connection.
    written: usize,
    /// Bytes that were written of the packet after them.
    written_bytes: usize,
    /// An acknowledgement alone, and the number of its bytes that were written. 0: none is being written.
    note: [u8; HEADER_BYTES],
    note_written_bytes: usize,
    /// The highest number that this end has acknowledged.
    told: u64,
}

impl Outbound {
    /// Makes a session that has sent nothing. A frame may have `frame_bytes_max` bytes, which the other end has to take.
    pub fn new(frame_bytes_max: u32) -> Outbound {
        Outbound {
            frame_bytes_max,
            queues: Default::default(),
            numbered: VecDeque::new(),
            begun: Default::default(),
            pool: Pool::default(),
            waiting_bytes: 0,
            unwritten_reply_bytes: 0,
            released: 0,
            acknowledged: 0,
            sent: 0,
            written: 0,
            written_bytes: 0,
            note: [0; HEADER_BYTES],
            note_written_bytes: 0,
            told: 0,
        }
    }

    /// Takes the frame that `write` appends to the given buffer. The buffer is the packet: `write` must not change its present
    /// content.
    ///
    /// # Errors
    /// The error of `write`, or that the frame is too large. In both cases, and also if `write` panics, the session is unchanged.
    ///
    /// # Panics
    /// If `write` leaves the buffer shorter than it was.
    pub fn frame<E>(
        &mut self,
        lane: Lane,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), FrameError<E>> {
        let queue = &mut self.queues[lane as usize];
        let before = Draft::new(queue, lane, &mut self.pool).finish(self.frame_bytes_max, write)?;
        let packet = queue.back_mut().expect("the frame is in it");
        self.waiting_bytes += packet.bytes.len() - before;
        if packet.bytes.len() <= HEADER_BYTES + PACKET_BYTES_MAX {
            packet.ended = packet.bytes.len();
            return Ok(());
        }
        let further = packet.split(&mut self.pool);
        self.waiting_bytes += HEADER_BYTES * further.len();
        queue.extend(further);
        Ok(())
    }

    /// Does the same as [`Outbound::frame`] for a frame that this end writes because it has read something.
    /// [`Outbound::unwritten_reply_bytes`] counts it until the connection has taken it.
    ///
    /// # Errors
    /// The same as of [`Outbound::frame`].
    ///
    /// # Panics
    /// Like [`Outbound::frame`].
    pub fn reply<E>(
        &mut self,
        lane: Lane,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), FrameError<E>> {
        let before = self.waiting_bytes;
        self.frame(lane, write)?;
        let bytes = self.waiting_bytes - before;
        self.queues[lane as usize].back_mut().expect("the frame ends in it").reply_bytes += bytes;
        self.unwritten_reply_bytes += bytes;
        Ok(())
    }

    /// Returns the bytes of replies that the connection has not taken.
    pub fn unwritten_reply_bytes(&self) -> usize {
        self.unwritten_reply_bytes
    }

    /// Returns the bytes of the unwritten packet that takes the next frame of `lane`.
    pub fn open_bytes(&self, lane: Lane) -> usize {
        self.queues[lane as usize].back().map_or(0, |packet| packet.bytes.len())
    }

    /// Returns whether there are bytes to write, other than an acknowledgement alone.
    pub fn has_output(&self) -> bool {
        self.note_written_bytes > 0
            || self.written < self.numbered.len()
            || self.queues.iter().any(|queue| !queue.is_empty())
    }

    /// Calls `write` with the next bytes of the connection, for one `write_vectored`, and takes the number of bytes written from
    /// it. Begun packets come first, then repeated ones, then the highest lane. All of them carry `acknowledge`, the number that
    /// this end has [received](super::Inbound::received). If there is nothing else, `acknowledge_due` sends it alone, unless the
    /// other end was told it.
    ///
    /// Returns the result of `write`; returns 0 without the call if there is nothing to write.
    ///
    /// # Errors
    /// The error of `write`, which must have written nothing.
    ///
    /// # Panics
    /// If `write` claims to have written more than it was given.
    pub fn output<E>(
        &mut self,
        acknowledge: u64,
        acknowledge_due: bool,
        write: impl FnOnce(&[IoSlice<'_>]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let acknowledge = acknowledge.max(self.told);
        while self.numbered.len() < self.written + SLICES_MAX {
            let Some(packet) = self.queues.iter_mut().find_map(VecDeque::pop_front) else { break };
            self.numbered.push_back(packet);
        }
        let alone = self.numbered.len() == self.written;
        if alone && self.note_written_bytes == 0 {
            if !acknowledge_due || acknowledge == self.told {
                return Ok(0);
            }
            self.note = Header::note(acknowledge).to_bytes();
        }
        let with_note = alone || self.note_written_bytes > 0;

        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let mut count = 0;
        if with_note {
            slices[0] = IoSlice::new(&self.note[self.note_written_bytes..]);
            count = 1;
        }
        let mut number = self.released + self.written as u64;
        let mut skip = self.written_bytes;
        for (slice, packet) in slices[count..].iter_mut().zip(self.numbered.range_mut(self.written..)) {
            number += 1;
            if skip == 0 {
                packet.set_header(number, acknowledge);
            }
            *slice = IoSlice::new(&packet.bytes[skip..]);
            skip = 0;
            count += 1;
        }
        let wrote = write(&slices[..count]);
        if let Ok(bytes) = wrote {
            let offered: usize = slices[..count].iter().map(|slice| slice.len()).sum();
            assert!(bytes <= offered, "`write` claims to have written {bytes} bytes of {offered}");
            self.wrote(bytes, with_note, acknowledge);
        }
        self.take_numbers_back();
        wrote
    }

    /// Notes that the next `bytes` of the offered ones were written.
    fn wrote(&mut self, mut bytes: usize, with_note: bool, acknowledge: u64) {
        if with_note && bytes > 0 {
            if self.note_written_bytes == 0 {
                self.told = acknowledge;
            }
            let part = bytes.min(HEADER_BYTES - self.note_written_bytes);
            self.note_written_bytes = (self.note_written_bytes + part) % HEADER_BYTES;
            bytes -= part;
        }
        while bytes > 0 {
            let packet = self.numbered.get(self.written).expect("it was handed out");
            if self.written_bytes == 0 {
                self.told = acknowledge;
            }
            let part = bytes.min(packet.bytes.len() - self.written_bytes);
            self.written_bytes += part;
            bytes -= part;
            if self.written_bytes == packet.bytes.len() {
                self.unwritten_reply_bytes -= packet.reply_bytes;
                self.written += 1;
                self.written_bytes = 0;
                self.sent = self.sent.max(self.released + self.written as u64);
            }
        }
        self.release();
    }

    /// Moves packets that were never written completely, and are not begun, back to their queues. A higher lane may pass them,
    /// and the last packet takes further frames.
    fn take_numbers_back(&mut self) {
        let begun = self.written + usize::from(self.written_bytes > 0);
        let keep = begun.max((self.sent - self.released) as usize);
        while self.numbered.len() > keep {
            let packet = self.numbered.pop_back().expect("longer than 0");
            self.queues[packet.lane as usize].push_front(packet);
        }
    }

    /// Releases the packets up to `number`, which the other end has received. A lower number than before has no effect.
    ///
    /// # Errors
    /// The number is higher than the highest one sent. The session has ended.
    pub fn acknowledged(&mut self, number: u64) -> Result<(), ProtocolError> {
        packet_checks::acknowledged(number, self.sent)?;
        self.acknowledged = self.acknowledged.max(number);
        self.release();
        Ok(())
    }

    /// Releases acknowledged packets, except for a packet that is partly written.
    fn release(&mut self) {
        while self.released < self.acknowledged && (self.written > 0 || self.written_bytes == 0) {
            let packet = self.numbered.pop_front().expect("an acknowledged packet was sent, and has a number");
            self.released += 1;
            if self.written == 0 {
                self.unwritten_reply_bytes -= packet.reply_bytes;
            }
            self.written = self.written.saturating_sub(1);
            self.waiting_bytes -= packet.bytes.len();
            let begun = &mut self.begun[packet.lane as usize];
            if packet.ended > HEADER_BYTES {
                begun.drain(..).for_each(|packet| self.pool.put(packet));
            }
            if packet.goes_on() { begun.push(packet) } else { self.pool.put(packet) }
        }
    }

    /// Resumes on a new connection: the other end states that it has received everything up to `received`. Later packets are
    /// written again.
    ///
    /// # Errors
    /// The number is higher than the highest one sent, or lower than the highest one acknowledged. The session has ended.
    pub fn resume(&mut self, received: u64) -> Result<(), ProtocolError> {
        packet_checks::resumed(received, self.acknowledged, self.sent)?;
        self.written = 0;
        self.written_bytes = 0;
        self.note_written_bytes = 0;
        self.acknowledged = received;
        self.unwritten_reply_bytes = self.packets().map(|packet| packet.reply_bytes).sum();
        self.release();
        self.take_numbers_back();
        Ok(())
    }

    /// Returns the bytes of unacknowledged packets, headers included, sent or not, which a window limits. The kept part of a
    /// frame that is acknowledged only at its start, at most one frame per lane, is not counted.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Returns the number of packets with those bytes.
    pub fn waiting_packets(&self) -> usize {
        self.numbered.len() + self.queues.iter().map(VecDeque::len).sum::<usize>()
    }

    /// Returns the highest number that this end has acknowledged.
    pub fn told(&self) -> u64 {
        self.told
    }

    /// Ends the session: calls `on_frame` with each frame that is not acknowledged to its end, complete even if its start was, in
    /// order within each lane. Some of them may have been received and even handled.
    pub fn drain(self, mut on_frame: impl FnMut(Lane, &[u8])) {
        let mut assemblies: [Assembly; Lane::ALL.len()] = Default::default();
        let mut stretch = |packet: Packet, from: usize| {
            assemblies[packet.lane as usize]
                .input(packet.lane, &packet.bytes[from..], self.frame_bytes_max, &mut on_frame)
                .expect("frames were measured when they were taken");
        };
        for packet in self.begun.into_iter().flatten() {
            // The frame begins after the last end in the first packet; no frame ends in the others.
            let from = packet.ended;
            stretch(packet, from);
        }
        for packet in self.numbered.into_iter().chain(self.queues.into_iter().flatten()) {
            stretch(packet, HEADER_BYTES);
        }
    }

    fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.numbered.iter().chain(self.queues.iter().flatten())
    }

    /// Checks the invariants that hold between two calls.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let packets = || self.packets();
        let replies = packets().skip(self.written).map(|packet| packet.reply_bytes);
        assert_eq!(replies.sum::<usize>(), self.unwritten_reply_bytes);
        assert_eq!(packets().map(|packet| packet.bytes.len()).sum::<usize>(), self.waiting_bytes);
        assert!(packets().all(|packet| packet.bytes.len() <= HEADER_BYTES + PACKET_BYTES_MAX));
        assert!(packets().all(|packet| packet.bytes.capacity() <= 2 * (HEADER_BYTES + PACKET_BYTES_MAX)));
        assert!(self.released <= self.acknowledged && self.acknowledged <= self.sent);
        assert!(self.sent <= self.released + self.numbered.len() as u64);
        assert!(self.written <= self.numbered.len() && (self.written_bytes == 0 || self.written < self.numbered.len()));
        assert!(self.queues.iter().all(|queue| queue.back().is_none_or(|packet| !packet.goes_on())));
        assert!(self.begun.iter().flatten().all(Packet::goes_on));
        assert!(self.begun.iter().all(|begun| begun.iter().skip(1).all(|packet| packet.ended == HEADER_BYTES)));
    }
}
