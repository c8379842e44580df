//! The rules of the receiving half.

use super::random::noise;
use super::{FRAME_BYTES_MAX, framed, packet, read};
use crate::session::{HEADER_BYTES, Inbound, Lane, PACKET_BYTES_MAX, ProtocolError};

fn inbound() -> Inbound {
    Inbound::new(FRAME_BYTES_MAX)
}

#[test]
fn frames_of_a_packet_are_handed_out_where_they_lie() {
    let mut inbound = inbound();
    let body = [framed(b"one"), framed(b""), framed(b"three")].concat();
    let bytes = packet(Lane::Urgent, 1, 4, &body);
    let mut frames = Vec::new();
    let taken = inbound.input(&bytes, |lane, frame| {
        assert!(bytes.as_ptr_range().contains(&frame.as_ptr()) || frame.is_empty());
        frames.push((lane, frame.to_vec()));
    });
    assert_eq!(taken, Ok(bytes.len()));
    assert_eq!(frames, [b"one".to_vec(), b"".to_vec(), b"three".to_vec()].map(|frame| (Lane::Urgent, frame)));
    assert_eq!((inbound.received(), inbound.acknowledged(), inbound.held_bytes()), (1, 4, 0));
}

#[test]
fn only_whole_packets_are_taken() {
    let first = packet(Lane::Normal, 1, 0, &framed(b"one"));
    let bytes = [first.clone(), packet(Lane::Normal, 2, 9, &framed(b"two"))].concat();
    for end in 0..bytes.len() {
        let mut inbound = inbound();
        let (taken, frames) = read(&mut inbound, &bytes[..end]).unwrap();
        let whole = if end < first.len() { 0 } else { 1 };
        assert_eq!((taken, frames.len()), (whole * first.len(), whole));
        assert_eq!((inbound.received(), inbound.acknowledged()), (whole as u64, 0));
        let (rest, frames) = read(&mut inbound, &bytes[taken..]).unwrap();
        assert_eq!((taken + rest, frames.len()), (bytes.len(), 2 - whole));
        assert_eq!((inbound.received(), inbound.acknowledged()), (2, 9));
    }
}

#[test]
fn a_frame_is_put_together_wherever_it_is_cut_and_whatever_passes_between() {
    let stream = [framed(b"one"), framed(b"second"), framed(b"")].concat();
    for first in 1..stream.len() - 1 {
        for second in first + 1..stream.len() {
            let mut inbound = inbound();
            let bytes = [
                packet(Lane::Normal, 1, 0, &stream[..first]),
                packet(Lane::System, 2, 0, &framed(b"passes")),
                packet(Lane::Normal, 3, 0, &stream[first..second]),
                packet(Lane::Normal, 4, 0, &stream[second..]),
            ];
            let (taken, mut frames) = read(&mut inbound, &bytes.concat()).unwrap();
            assert_eq!(taken, bytes.concat().len());
            frames.sort_by_key(|(lane, _)| *lane);
            let frames: Vec<&[u8]> = frames.iter().map(|(_, frame)| frame.as_slice()).collect();
            assert_eq!(frames, [&b"passes"[..], b"one", b"second", b""]);
        }
    }
}

#[test]
fn a_packet_that_came_before_is_skipped() {
    let mut inbound = inbound();
    let first = packet(Lane::Normal, 1, 0, &framed(b"one"));
    let second = packet(Lane::Normal, 2, 0, &framed(b"two"));
    let bytes = [&first[..], &second, &first, &second].concat();
    let (taken, frames) = read(&mut inbound, &bytes).unwrap();
    assert_eq!((taken, frames.len(), inbound.received()), (bytes.len(), 2, 2));
    // The packet's acknowledgement counts nevertheless.
    read(&mut inbound, &packet(Lane::Normal, 1, 3, &framed(b"one"))).unwrap();
    assert_eq!(inbound.acknowledged(), 3);
    read(&mut inbound, &packet(Lane::System, 0, 2, b"")).unwrap();
    assert_eq!((inbound.acknowledged(), inbound.received()), (3, 2));
}

#[test]
fn a_frame_goes_on_over_the_next_connection() {
    let mut inbound = inbound();
    let stream = framed(noise(2 * PACKET_BYTES_MAX));
    let packets: Vec<_> = (1..)
        .zip(stream.chunks(PACKET_BYTES_MAX))
        .map(|(number, part)| packet(Lane::Normal, number, 0, part))
        .collect();
    let cut = [&packets[0][..], &packets[1][..100]].concat();
    assert_eq!(read(&mut inbound, &cut), Ok((packets[0].len(), vec![])));
    assert_eq!(inbound.received(), 1);
    // The caller drops the remaining bytes; the other end writes everything after number 1 again.
    let (_, frames) = read(&mut inbound, &packets[1..].concat()).unwrap();
    assert!(frames == [(Lane::Normal, noise(2 * PACKET_BYTES_MAX).to_vec())]);
    // The buffer of a long frame is not kept.
    assert!(inbound.held_bytes() <= PACKET_BYTES_MAX);
}

#[track_caller]
fn refused(bytes: &[u8], error: ProtocolError, says: &str) {
    let mut inbound = inbound();
    assert_eq!(read(&mut inbound, bytes), Err(error.clone()));
    assert_eq!((inbound.received(), inbound.held_bytes()), (0, 0));
    assert_eq!(error.to_string(), says);
}

#[test]
fn wrong_packets_are_refused_as_soon_as_their_header_came() {
    let mut bytes = packet(Lane::Normal, 1, 0, b"not there yet");
    bytes.truncate(HEADER_BYTES);
    let changed = |at: usize, to: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = to;
        bytes
    };
    refused(
        &changed(0, 3),
        ProtocolError::Lane { found: 3 },
        "a packet of lane 3: lanes are 0 (system), 1 (urgent) and 2 (normal)",
    );
    for at in 1..4 {
        let mut found = [0; 3];
        found[at - 1] = 9;
        refused(
            &changed(at, 9),
            ProtocolError::Reserved { found },
            &format!("a packet with reserved bytes {found:?}: they must be zero"),
        );
    }
    refused(
        &changed(6, 1 + (PACKET_BYTES_MAX >> 16) as u8),
        ProtocolError::PacketBytes { found: 131_085 },
        "a packet of 131085 bytes: it may have at most 65536",
    );
    refused(
        &changed(4, 0),
        ProtocolError::Empty { number: 1 },
        "packet 1 has no body: only an acknowledgement, number 0, has none",
    );
    refused(
        &changed(8, 0),
        ProtocolError::Body { found: 13 },
        "an acknowledgement, number 0, with a body of 13 bytes: it has none",
    );
    refused(&changed(8, 2), ProtocolError::Gap { found: 2, expected: 1 }, "packet 2 came: packet 1 must come first");
}

#[test]
fn a_packet_of_just_the_limit_is_taken() {
    let frame = noise(PACKET_BYTES_MAX - 4);
    let (_, frames) = read(&mut inbound(), &packet(Lane::System, 1, 0, &framed(frame))).unwrap();
    assert!(frames == [(Lane::System, frame.to_vec())]);
}

#[test]
fn a_frame_above_the_limit_is_refused_by_its_length() {
    let found = FRAME_BYTES_MAX + 1;
    let length = found.to_le_bytes();
    let error = ProtocolError::FrameBytes { lane: Lane::Urgent, found, bytes_max: FRAME_BYTES_MAX };
    let says = "a frame of 1048577 bytes on lane urgent: it may have at most 1048576";
    refused(&packet(Lane::Urgent, 1, 0, &length), error.clone(), says);
    // The same if the length itself is cut in two.
    let mut inbound = inbound();
    let bytes = [packet(Lane::Urgent, 1, 0, &length[..2]), packet(Lane::Urgent, 2, 0, &length[2..])].concat();
    assert_eq!(read(&mut inbound, &bytes), Err(error));
    assert!(inbound.held_bytes() < 100);
}

// GUARANTEE: Rejected peers harm no theater
#[test]
fn a_length_that_is_claimed_allocates_nothing() {
    let mut inbound = inbound();
    let mut came = 0;
    for (number, size) in (1..).zip([4, 1, 10, 1000, PACKET_BYTES_MAX]) {
        let body = if number == 1 { FRAME_BYTES_MAX.to_le_bytes().to_vec() } else { noise(size).to_vec() };
        came += body.len();
        read(&mut inbound, &packet(Lane::Normal, number, 0, &body)).unwrap();
        assert!(inbound.held_bytes() <= 2 * came, "{} bytes for {came}", inbound.held_bytes());
    }
}

#[test]
fn no_more_is_allocated_than_the_frame_has() {
    let mut inbound = Inbound::new(100);
    let stream = framed(noise(100));
    for (number, part) in (1..).zip([&stream[..60], &stream[60..70]]) {
        read(&mut inbound, &packet(Lane::Normal, number, 0, part)).unwrap();
    }
    assert!((70..=stream.len()).contains(&inbound.held_bytes()), "{} bytes", inbound.held_bytes());
}

#[test]
fn wrong_claims_are_told_with_what_is_allowed() {
    let says = ProtocolError::Acknowledged { found: 9, sent: 4 }.to_string();
    assert_eq!(says, "packet 9 was acknowledged: 4 is the highest that was sent");
    let says = ProtocolError::Resumed { found: 9, acknowledged: 2, sent: 4 }.to_string();
    assert_eq!(
        says,
        "packet 9 was stated as the last received: it must be from 2, the last acknowledged, to 4, the last sent"
    );
}
