//! The rules of the sending half.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::random::noise;
use super::{FRAME_BYTES_MAX, framed, headers, packet, push, write, write_all};
use crate::session::{FrameError, HEADER_BYTES, Lane, Outbound, PACKET_BYTES_MAX, PREFIX_BYTES, ProtocolError};

fn outbound() -> Outbound {
    Outbound::new(FRAME_BYTES_MAX)
}

fn drained(outbound: Outbound) -> Vec<(Lane, Vec<u8>)> {
    let mut frames = Vec::new();
    outbound.drain(|lane, frame| frames.push((lane, frame.to_vec())));
    frames
}

#[test]
fn frames_of_a_lane_share_a_packet() {
    let mut outbound = outbound();
    assert!(!outbound.has_output());
    push(&mut outbound, Lane::Normal, b"one");
    push(&mut outbound, Lane::Normal, b"");
    let body = [framed(b"one"), framed(b"")].concat();
    assert_eq!(write(&mut outbound, usize::MAX, 7, false), packet(Lane::Normal, 1, 7, &body));
    assert!(!outbound.has_output());
    push(&mut outbound, Lane::Normal, b"two");
    assert_eq!(write(&mut outbound, usize::MAX, 8, false), packet(Lane::Normal, 2, 8, &framed(b"two")));
}

#[test]
fn a_refused_frame_leaves_no_trace() {
    for before in [&b""[..], b"before"] {
        let mut outbound = outbound();
        if !before.is_empty() {
            push(&mut outbound, Lane::Urgent, before);
        }
        let (waiting, had_output) = (outbound.waiting_bytes(), outbound.has_output());

        let failed = outbound.frame(Lane::Urgent, |buffer| {
            buffer.extend_from_slice(b"half");
            Err("no")
        });
        assert_eq!(failed, Err(FrameError::Write("no")));

        let large = FRAME_BYTES_MAX as usize + 1;
        let too_large = outbound.frame(Lane::Urgent, |buffer| {
            buffer.resize(buffer.len() + large, 1);
            Ok::<_, Infallible>(())
        });
        let error = too_large.expect_err("above the limit");
        assert_eq!(error, FrameError::TooLarge { bytes: large, bytes_max: FRAME_BYTES_MAX });
        assert_eq!(error.to_string(), "a frame of 1048577 bytes: it may have at most 1048576");

        let panicked = catch_unwind(AssertUnwindSafe(|| {
            outbound.frame::<Infallible>(Lane::Urgent, |buffer| {
                buffer.push(1);
                panic!("by the one who writes");
            })
        }));
        assert!(panicked.is_err());

        outbound.check();
        assert_eq!((outbound.waiting_bytes(), outbound.has_output()), (waiting, had_output));
        push(&mut outbound, Lane::Urgent, b"after");
        let frames: &[&[u8]] = if before.is_empty() { &[b"after"] } else { &[before, b"after"] };
        let body: Vec<u8> = frames.iter().flat_map(|frame| framed(frame)).collect();
        assert_eq!(write_all(&mut outbound), packet(Lane::Urgent, 1, 0, &body));
    }
}

#[test]
fn a_long_frame_goes_on_in_the_next_packets() {
    for size in [PACKET_BYTES_MAX - PREFIX_BYTES, PACKET_BYTES_MAX, 3 * PACKET_BYTES_MAX, FRAME_BYTES_MAX as usize] {
        let mut outbound = outbound();
        push(&mut outbound, Lane::Normal, b"before");
        push(&mut outbound, Lane::Normal, noise(size));
        let stream = [framed(b"before"), framed(noise(size))].concat();
        let expected: Vec<u8> = (1..)
            .zip(stream.chunks(PACKET_BYTES_MAX))
            .flat_map(|(number, stretch)| packet(Lane::Normal, number, 0, stretch))
            .collect();
        assert_eq!(outbound.waiting_bytes(), expected.len());
        assert!(write_all(&mut outbound) == expected);
    }
}

#[test]
fn a_frame_is_not_cut_for_a_few_bytes() {
    let mut outbound = outbound();
    for _ in 0..1000 {
        push(&mut outbound, Lane::Normal, noise(1000));
    }
    let bytes = write_all(&mut outbound);
    assert!(headers(&bytes).iter().all(|header| header.body_bytes.is_multiple_of(PREFIX_BYTES as u32 + 1000)));
    assert!(headers(&bytes).len() > 10);
}

#[test]
fn the_highest_lane_is_first_behind_what_has_begun() {
    let mut outbound = outbound();
    for lane in [Lane::Normal, Lane::Urgent, Lane::System] {
        push(&mut outbound, lane, noise(2 * PACKET_BYTES_MAX));
    }
    let mut bytes = write(&mut outbound, 10, 0, false);
    push(&mut outbound, Lane::System, b"late");
    bytes.extend(write_all(&mut outbound));
    let lanes: Vec<Lane> = headers(&bytes).iter().map(|header| header.lane).collect();
    let [system, urgent, normal] = Lane::ALL;
    assert_eq!(lanes, [system, system, system, urgent, urgent, urgent, normal, normal, normal]);

    let mut outbound = self::outbound();
    push(&mut outbound, Lane::Normal, noise(3 * PACKET_BYTES_MAX));
    // All four packets are offered, but only two of them begin.
    let mut bytes = write(&mut outbound, HEADER_BYTES + PACKET_BYTES_MAX + 1, 0, false);
    push(&mut outbound, Lane::System, b"heartbeat");
    bytes.extend(write_all(&mut outbound));
    let order: Vec<_> = headers(&bytes).iter().map(|header| (header.lane, header.number)).collect();
    assert_eq!(order, [(normal, 1), (normal, 2), (system, 3), (normal, 4), (normal, 5)]);
}

#[test]
fn a_packet_says_what_is_received_when_it_begins() {
    let mut outbound = outbound();
    push(&mut outbound, Lane::Normal, b"frame");
    assert!(write(&mut outbound, 0, 1, false).is_empty());
    assert_eq!(outbound.told(), 0);
    let mut bytes = write(&mut outbound, 1, 2, false);
    assert_eq!(outbound.told(), 2);
    bytes.extend(write(&mut outbound, usize::MAX, 3, false));
    assert_eq!(headers(&bytes)[0].acknowledged, 2);
    assert_eq!(outbound.told(), 2);
    outbound.resume(0).unwrap();
    let again = write(&mut outbound, usize::MAX, 4, false);
    assert_eq!((headers(&again)[0].number, headers(&again)[0].acknowledged), (1, 4));
    // A begun packet never loses its number.
    push(&mut outbound, Lane::Normal, b"frame");
    assert_eq!(headers(&write(&mut outbound, usize::MAX, 3, false))[0].acknowledged, 4);
}

#[test]
fn an_acknowledgement_has_its_own_packet_only_if_it_must() {
    let mut outbound = outbound();
    assert!(write(&mut outbound, usize::MAX, 5, false).is_empty());
    assert!(write(&mut outbound, usize::MAX, 0, true).is_empty());
    assert_eq!(write(&mut outbound, usize::MAX, 5, true), packet(Lane::System, 0, 5, b""));
    assert_eq!(outbound.told(), 5);
    assert!(write(&mut outbound, usize::MAX, 5, true).is_empty());
    push(&mut outbound, Lane::Normal, b"frame");
    assert_eq!(write(&mut outbound, usize::MAX, 6, true), packet(Lane::Normal, 1, 6, &framed(b"frame")));
    assert!(write(&mut outbound, usize::MAX, 6, true).is_empty());
    assert_eq!(outbound.waiting_bytes(), HEADER_BYTES + framed(b"frame").len());
}

#[test]
fn an_acknowledgement_that_has_begun_is_finished_first() {
    let mut outbound = outbound();
    let mut bytes = write(&mut outbound, 10, 5, true);
    assert!(outbound.has_output());
    push(&mut outbound, Lane::System, b"frame");
    bytes.extend(write(&mut outbound, 3, 6, true));
    bytes.extend(write(&mut outbound, usize::MAX, 6, true));
    let expected = [packet(Lane::System, 0, 5, b""), packet(Lane::System, 1, 6, &framed(b"frame"))];
    assert_eq!(bytes, expected.concat());
    // The rest of a begun acknowledgement is not written on a new connection.
    assert_eq!(write(&mut outbound, 10, 7, true).len(), 10);
    outbound.resume(1).unwrap();
    assert!(!outbound.has_output());
}

#[test]
fn an_acknowledged_packet_is_freed_and_its_buffer_is_reused() {
    let mut outbound = outbound();
    push(&mut outbound, Lane::Normal, b"one");
    write_all(&mut outbound);
    push(&mut outbound, Lane::Normal, b"two");
    assert_eq!(outbound.acknowledged(2), Err(ProtocolError::Acknowledged { found: 2, sent: 1 }));
    let mut bytes = write(&mut outbound, HEADER_BYTES, 0, false);
    // The second packet has begun, but cannot have arrived.
    assert_eq!(outbound.acknowledged(2), Err(ProtocolError::Acknowledged { found: 2, sent: 1 }));
    bytes.extend(write_all(&mut outbound));
    assert_eq!(outbound.waiting_bytes(), 2 * (HEADER_BYTES + framed(b"one").len()));
    outbound.acknowledged(1).unwrap();
    outbound.acknowledged(0).unwrap();
    outbound.check();
    assert_eq!(outbound.waiting_bytes(), bytes.len());
    outbound.acknowledged(2).unwrap();
    assert_eq!(outbound.waiting_bytes(), 0);

    let mut sent = 2;
    let mut address = || {
        let mut found = std::ptr::null();
        push(&mut outbound, Lane::Urgent, b"frame");
        let wrote = outbound.output(0, false, |slices| {
            found = slices[0].as_ptr();
            Ok::<_, Infallible>(slices[0].len())
        });
        assert_eq!(wrote, Ok(HEADER_BYTES + framed(b"frame").len()));
        sent += 1;
        outbound.acknowledged(sent).unwrap();
        found
    };
    assert_eq!(address(), address());
}

#[test]
fn after_a_reconnect_the_rest_is_written_again_from_its_start() {
    let mut outbound = outbound();
    push(&mut outbound, Lane::Normal, noise(3 * PACKET_BYTES_MAX));
    let all = packet(Lane::Normal, 1, 0, &framed(noise(3 * PACKET_BYTES_MAX))[..PACKET_BYTES_MAX]);
    assert!(write(&mut outbound, 2 * all.len() + 100, 0, false).starts_with(&all));
    assert_eq!(outbound.resume(3), Err(ProtocolError::Resumed { found: 3, acknowledged: 0, sent: 2 }));
    outbound.acknowledged(1).unwrap();
    assert_eq!(outbound.resume(0), Err(ProtocolError::Resumed { found: 0, acknowledged: 1, sent: 2 }));
    // The third packet was never written completely: its number is free.
    outbound.resume(1).unwrap();
    outbound.check();
    push(&mut outbound, Lane::System, b"heartbeat");
    let order: Vec<_> = headers(&write_all(&mut outbound)).iter().map(|header| (header.number, header.lane)).collect();
    assert_eq!(order, [(2, Lane::Normal), (3, Lane::System), (4, Lane::Normal), (5, Lane::Normal)]);
    outbound.resume(5).unwrap();
    assert!(!outbound.has_output() && outbound.waiting_bytes() == 0);
}

#[test]
fn a_packet_that_is_written_again_is_finished_although_it_is_acknowledged() {
    let mut outbound = outbound();
    push(&mut outbound, Lane::Normal, b"frame");
    let expected = write_all(&mut outbound);
    outbound.resume(0).unwrap();
    let mut bytes = write(&mut outbound, 5, 0, false);
    outbound.acknowledged(1).unwrap();
    outbound.check();
    bytes.extend(write_all(&mut outbound));
    assert_eq!(bytes, expected);
    assert_eq!(outbound.waiting_bytes(), 0);
}

#[test]
fn a_failed_write_changes_nothing() {
    let mut outbound = outbound();
    push(&mut outbound, Lane::Normal, b"one");
    assert_eq!(outbound.output(1, true, |_| Err("would block")), Err("would block"));
    assert_eq!(outbound.told(), 0);
    push(&mut outbound, Lane::Normal, b"two");
    let body = [framed(b"one"), framed(b"two")].concat();
    assert_eq!(write_all(&mut outbound), packet(Lane::Normal, 1, 0, &body));
    assert_eq!(outbound.output(1, true, |_| Err("would block")), Err("would block"));
    assert!(!outbound.has_output() && outbound.told() == 0);
}

#[test]
#[should_panic(expected = "`write` claims to have written 33 bytes of 32")]
fn a_write_of_more_than_there_is_is_a_bug() {
    let mut outbound = outbound();
    push(&mut outbound, Lane::Normal, b"four");
    let _ = outbound.output(0, false, |_| Ok::<_, Infallible>(33));
}

#[test]
fn a_dead_session_gives_back_whole_frames() {
    let mut outbound = outbound();
    let long = noise(3 * PACKET_BYTES_MAX);
    push(&mut outbound, Lane::Normal, b"acknowledged");
    push(&mut outbound, Lane::Normal, long);
    push(&mut outbound, Lane::Normal, b"behind");
    push(&mut outbound, Lane::Urgent, b"acknowledged");
    write(&mut outbound, 3 * PACKET_BYTES_MAX, 0, false);
    push(&mut outbound, Lane::System, b"never sent");
    // The urgent packet and the first of the normal lane, in which the long frame began.
    outbound.acknowledged(2).unwrap();
    outbound.check();
    let expected =
        [(Lane::System, b"never sent".to_vec()), (Lane::Normal, long.to_vec()), (Lane::Normal, b"behind".to_vec())];
    let mut frames = drained(outbound);
    frames.sort_by_key(|(lane, _)| *lane);
    assert!(frames == expected);
}
