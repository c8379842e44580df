//! The entry point of a fuzzer.

use super::header::{HEADER_BYTES, Header};
use super::{Inbound, Lane, PREFIX_BYTES};

const FRAME_BYTES_MAX: u32 = 1000;

/// Gives `bytes` to a receiving half unchanged, and after that as the bodies of packets that are in order.
///
/// # Panics
/// If the receiving half takes more than it was given, or keeps or passes on more than it may.
pub fn fuzz(bytes: &[u8]) {
    receive(bytes);

    let mut packets = Vec::new();
    let mut rest = bytes;
    let mut number = 0;
    while let Some((&shape, behind)) = rest.split_first() {
        let (body, behind) = behind.split_at(behind.len().min(1 + usize::from(shape >> 2)));
        if !body.is_empty() {
            number += 1;
            let lane = Lane::ALL[usize::from(shape & 3) % Lane::ALL.len()];
            let header = Header { lane, body_bytes: body.len() as u32, number, acknowledged: 0 };
            packets.extend_from_slice(&header.to_bytes());
            packets.extend_from_slice(body);
        }
        rest = behind;
    }
    receive(&packets);
}

/// Gives half of the bytes, and after that all remaining ones, like a caller.
fn receive(bytes: &[u8]) {
    let mut inbound = Inbound::new(FRAME_BYTES_MAX);
    let mut from = 0;
    for to in [bytes.len() / 2, bytes.len()] {
        let given = &bytes[from..to];
        let mut handed_out = 0;
        let taken = inbound.input(given, |_, frame| {
            assert!(frame.len() <= FRAME_BYTES_MAX as usize);
            handed_out += frame.len();
        });
        let limit = Lane::ALL.len() * (PREFIX_BYTES + FRAME_BYTES_MAX as usize);
        assert!(inbound.held_bytes() <= limit, "{} bytes are held", inbound.held_bytes());
        assert!(handed_out <= to, "{handed_out} bytes came out of {to}");
        let Ok(taken) = taken else { return };
        assert!(taken <= given.len() && (taken == 0 || taken >= HEADER_BYTES));
        from += taken;
    }
}
