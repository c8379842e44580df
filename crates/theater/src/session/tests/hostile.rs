//! Bytes and claims of an end that violates the protocol.

use std::convert::Infallible;

use proptest::prelude::*;

use super::random::{Random, frame, noise};
use super::{packet, push, write, write_all};
use crate::session::{HEADER_BYTES, Inbound, Lane, Outbound, PACKET_BYTES_MAX, PREFIX_BYTES, fuzz};

const FRAME_BYTES_MAX: u32 = 3 * PACKET_BYTES_MAX as u32;

/// Returns the bytes of a correct sender, and the number of bytes in its frames.
fn right(seed: u64) -> (Vec<u8>, usize) {
    let mut random = Random::new(seed);
    let mut outbound = Outbound::new(FRAME_BYTES_MAX);
    let (mut bytes, mut framed) = (Vec::new(), 0);
    for _ in 0..random.in_range(1..10) {
        let frame = frame(&mut random);
        framed += frame.len();
        push(&mut outbound, Lane::ALL[random.in_range(0..3)], frame);
        if random.one_in(2) {
            bytes.extend(write(&mut outbound, random.in_range(0..100_000), 0, true));
        }
    }
    bytes.extend(write_all(&mut outbound));
    (bytes, framed)
}

/// Gives the bytes in pieces until one is refused. Returns the number of bytes in the completed frames.
fn receive(bytes: &[u8], piece: usize) -> usize {
    let mut inbound = Inbound::new(FRAME_BYTES_MAX);
    let (mut from, mut framed) = (0, 0);
    for to in (0..bytes.len()).step_by(piece).chain([bytes.len()]) {
        let taken = inbound.input(&bytes[from..to], |_, frame| {
            assert!(frame.len() <= FRAME_BYTES_MAX as usize);
            framed += frame.len();
        });
        assert!(inbound.held_bytes() <= Lane::ALL.len() * (PREFIX_BYTES + FRAME_BYTES_MAX as usize));
        assert!(inbound.held_bytes() <= 2 * to);
        let Ok(taken) = taken else { break };
        assert!(taken <= to - from);
        from += taken;
    }
    framed
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    // GUARANTEE: Rejected peers harm no theater
    #[test]
    fn any_bytes_are_taken_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..4000)) {
        fuzz(&bytes);
    }

    /// All bytes are small numbers, because lengths and lanes are valid more often in that case.
    #[test]
    fn nearly_right_bytes_are_taken_or_refused(bytes in proptest::collection::vec(0..4_u8, 0..4000)) {
        fuzz(&bytes);
    }

    #[test]
    fn a_right_stream_is_taken_whole_in_any_pieces(seed: u64, piece in 500..200_000_usize) {
        let (bytes, framed) = right(seed);
        prop_assert_eq!(receive(&bytes, piece), framed);
    }

    // GUARANTEE: Rejected peers harm no theater
    #[test]
    fn a_changed_stream_is_taken_or_refused(
        seed: u64,
        piece in 500..200_000_usize,
        end: prop::sample::Index,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
        in_header in proptest::collection::vec((0..HEADER_BYTES + PREFIX_BYTES, 0..5_u8), 0..2),
    ) {
        let (mut bytes, _) = right(seed);
        for (at, to) in changes {
            let at = at.index(bytes.len());
            bytes[at] = to;
        }
        for (at, to) in in_header {
            bytes[at] = to;
        }
        bytes.truncate(end.index(bytes.len() + 1));
        receive(&bytes, piece);
    }

    /// A false claim leaves the sender unchanged.
    #[test]
    fn a_wrong_claim_is_refused(steps in proptest::collection::vec((0..5_u8, 0..12_u64, 0..100_000_usize), 0..60)) {
        let mut outbound = Outbound::new(FRAME_BYTES_MAX);
        for (step, number, size) in steps {
            let waiting = outbound.waiting_bytes();
            match step {
                0 => push(&mut outbound, Lane::ALL[number as usize % 3], noise(size)),
                1 | 2 => drop(write(&mut outbound, size, number, step == 1)),
                3 if outbound.acknowledged(number).is_err() => prop_assert_eq!(waiting, outbound.waiting_bytes()),
                4 if outbound.resume(number).is_err() => prop_assert_eq!(waiting, outbound.waiting_bytes()),
                _ => {}
            }
            outbound.check();
        }
        outbound.drain(|_, frame| assert!(frame == noise(frame.len())));
    }
}

#[test]
fn the_largest_numbers_are_no_trouble() {
    let mut outbound = Outbound::new(u32::MAX);
    assert!(outbound.acknowledged(u64::MAX).is_err() && outbound.resume(u64::MAX).is_err());
    assert_eq!(outbound.output(u64::MAX, true, |slices| Ok::<_, Infallible>(slices[0].len())), Ok(HEADER_BYTES));
    let mut inbound = Inbound::new(u32::MAX);
    let length = u32::MAX.to_le_bytes();
    inbound.input(&packet(Lane::Normal, 1, u64::MAX, &length), |_, _| ()).expect("the start of a frame");
    assert_eq!(inbound.acknowledged(), u64::MAX);
    assert!(inbound.input(&packet(Lane::Normal, u64::MAX, 0, &length), |_, _| ()).is_err());
    assert!(inbound.held_bytes() < 100);
}
