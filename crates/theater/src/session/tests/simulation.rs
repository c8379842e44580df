//! Two ends and a connection that breaks, under many seeds.

use std::collections::VecDeque;
use std::convert::Infallible;

use super::random::{Random, frame, noise};
use crate::session::{HEADER_BYTES, Inbound, Lane, Outbound, PACKET_BYTES_MAX};

const SEEDS: u64 = 2_000;
const FRAME_BYTES_MAX: u32 = 4 * PACKET_BYTES_MAX as u32;

/// One theater's end of the session, and the messages that the other one sent to it.
struct End {
    outbound: Outbound,
    inbound: Inbound,
    /// Frames sent, by lane.
    sent: [Vec<&'static [u8]>; Lane::ALL.len()],
    /// Number of frames received, by lane.
    came: [usize; Lane::ALL.len()],
    /// Bytes on the connection to this end.
    flying: VecDeque<u8>,
    /// The caller's bytes of an incomplete packet.
    buffer: Vec<u8>,
}

impl End {
    fn new() -> End {
        End {
            outbound: Outbound::new(FRAME_BYTES_MAX),
            inbound: Inbound::new(FRAME_BYTES_MAX),
            sent: Default::default(),
            came: Default::default(),
            flying: VecDeque::new(),
            buffer: Vec::new(),
        }
    }

    fn send(&mut self, random: &mut Random) {
        let lane = Lane::ALL[random.in_range(0..Lane::ALL.len())];
        let frame = frame(random);
        let refused = random.one_in(20);
        let write = |buffer: &mut Vec<u8>| {
            buffer.extend_from_slice(frame);
            if refused { Err(()) } else { Ok(()) }
        };
        let result = if random.one_in(4) { self.outbound.reply(lane, write) } else { self.outbound.frame(lane, write) };
        assert_eq!(result.is_err(), refused);
        if !refused {
            self.sent[lane as usize].push(frame);
        }
    }

    /// Writes up to `room` bytes, like `write_vectored`.
    fn write(&mut self, to: &mut VecDeque<u8>, room: usize, acknowledge_due: bool) {
        let wrote = self.outbound.output(self.inbound.received(), acknowledge_due, |slices| {
            let mut left = room;
            for slice in slices {
                let part = left.min(slice.len());
                to.extend(&slice[..part]);
                left -= part;
            }
            Ok::<_, Infallible>(room - left)
        });
        assert!(wrote.is_ok_and(|bytes| bytes <= room));
    }

    /// Reads the next `bytes` of the connection, which `peer_sent` has to contain.
    fn read(&mut self, peer_sent: &[Vec<&'static [u8]>; Lane::ALL.len()], bytes: usize) {
        let bytes = bytes.min(self.flying.len());
        self.buffer.extend(self.flying.drain(..bytes));
        let came = &mut self.came;
        let taken = self.inbound.input(&self.buffer, |lane, frame| {
            let index = &mut came[lane as usize];
            assert!(frame == peer_sent[lane as usize][*index], "frame {index} of lane {lane} is another one");
            *index += 1;
        });
        self.buffer.drain(..taken.expect("the other end keeps to the protocol"));
        assert!(self.buffer.len() < HEADER_BYTES + PACKET_BYTES_MAX);
        self.outbound.acknowledged(self.inbound.acknowledged()).expect("the other end keeps to the protocol");
    }

    fn lose_connection(&mut self) {
        self.flying.clear();
        self.buffer.clear();
    }
}

/// Reconnects: both ends state the numbers that they received. Bytes in transit are lost, or some of them still arrive and are
/// sent again.
fn reconnect(ends: &mut [End; 2], random: &mut Random) {
    let received = [ends[0].inbound.received(), ends[1].inbound.received()];
    if random.one_in(4) {
        read(ends, 0, random.in_range(0..100_000));
        read(ends, 1, random.in_range(0..100_000));
    }
    for (end, received) in ends.iter_mut().zip([received[1], received[0]]) {
        end.lose_connection();
        // Acknowledgements over the old connection count as received before.
        let received = received.max(end.inbound.acknowledged());
        end.outbound.resume(received).expect("the other end keeps to the protocol");
    }
}

fn read(ends: &mut [End; 2], to: usize, bytes: usize) {
    let [a, b] = ends;
    let (end, peer) = if to == 0 { (a, b) } else { (b, a) };
    end.read(&peer.sent, bytes);
}

fn write(ends: &mut [End; 2], from: usize, room: usize, acknowledge_due: bool) {
    let [a, b] = ends;
    let (end, peer) = if from == 0 { (a, b) } else { (b, a) };
    end.write(&mut peer.flying, room, acknowledge_due);
}

/// Returns the size of a piece that a socket takes or gives: a few bytes, some packets, or many.
fn piece(random: &mut Random) -> usize {
    match random.in_range(0..3) {
        0 => random.in_range(0..60),
        1 => random.in_range(0..5_000),
        _ => random.in_range(0..300_000),
    }
}

fn disturbed(random: &mut Random) -> [End; 2] {
    let mut ends = [End::new(), End::new()];
    for _ in 0..random.in_range(1..150) {
        let at = random.in_range(0..2);
        match random.in_range(0..16) {
            0..6 => ends[at].send(random),
            6..10 => {
                let (room, acknowledge_due) = (piece(random), random.one_in(2));
                write(&mut ends, at, room, acknowledge_due);
            }
            10..15 => read(&mut ends, at, piece(random)),
            _ => reconnect(&mut ends, random),
        }
        ends.iter().for_each(|end| end.outbound.check());
    }
    ends
}

// GUARANTEE: Order and delivery over broken connections
#[test]
fn each_frame_arrives_once_and_in_order_over_broken_connections() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let mut ends = disturbed(&mut random);
        // The connection does not break any more.
        for _ in 0..1000 {
            for at in 0..2 {
                write(&mut ends, at, 1 << 20, true);
                read(&mut ends, 1 - at, 1 << 20);
            }
            if ends.iter().all(|end| end.outbound.waiting_bytes() == 0 && end.flying.is_empty()) {
                break;
            }
        }
        for at in 0..2 {
            let (end, peer) = (&ends[at], &ends[1 - at]);
            assert_eq!(end.came, [0, 1, 2].map(|lane| peer.sent[lane].len()), "seed {seed}: frames that came");
            assert_eq!(end.outbound.waiting_bytes(), 0, "seed {seed}: what is not acknowledged");
            assert!(!end.outbound.has_output(), "seed {seed}");
            end.outbound.check();
        }
    }
}

// GUARANTEE: A lost theater is reported
#[test]
fn a_dead_session_gives_back_all_unacknowledged_frames() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let [end, peer] = disturbed(&mut random);
        let mut given_back: [Vec<Vec<u8>>; Lane::ALL.len()] = Default::default();
        end.outbound.drain(|lane, frame| given_back[lane as usize].push(frame.to_vec()));
        for (lane, given_back) in given_back.iter().enumerate() {
            let sent = &end.sent[lane];
            let from = sent.len().checked_sub(given_back.len()).expect("no frame comes twice");
            assert!(sent[from..] == given_back[..], "seed {seed}: the last frames of lane {lane}, whole");
            assert!(from <= peer.came[lane], "seed {seed}: a frame of lane {lane} neither came nor was given back");
        }
    }
}

// GUARANTEE: Heartbeats pass
#[test]
fn a_higher_lane_passes_a_long_frame_wherever_it_is_cut() {
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let mut ends = [End::new(), End::new()];
        let long = noise(FRAME_BYTES_MAX as usize);
        for lane in [Lane::Normal, Lane::System] {
            let frame = if lane == Lane::Normal { long } else { &long[..10] };
            ends[0]
                .outbound
                .frame(lane, |buffer| {
                    buffer.extend_from_slice(frame);
                    Ok::<_, ()>(())
                })
                .unwrap();
            ends[0].sent[lane as usize].push(frame);
            if lane == Lane::Normal {
                // The last packet is not written.
                write(&mut ends, 0, random.in_range(0..long.len() - PACKET_BYTES_MAX), false);
            }
        }
        if random.one_in(2) {
            reconnect(&mut ends, &mut random);
        }
        while ends[1].came[Lane::System as usize] == 0 {
            assert_eq!(ends[1].came[Lane::Normal as usize], 0, "seed {seed}: the heartbeat waited for the long frame");
            write(&mut ends, 0, 1000, false);
            read(&mut ends, 1, 1000);
        }
        assert_eq!(ends[1].came[Lane::Normal as usize], 0, "seed {seed}: the heartbeat waited for the long frame");
    }
}
