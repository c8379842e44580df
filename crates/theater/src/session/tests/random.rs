//! Random numbers and frames for tests.

use std::ops::Range;
use std::sync::LazyLock;

use crate::session::PACKET_BYTES_MAX;

/// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", section 3).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    pub(super) fn in_range(&mut self, range: Range<usize>) -> usize {
        range.start + (self.next() % range.len() as u64) as usize
    }

    /// Returns true once in `n` times.
    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.in_range(0..n) == 0
    }
}

const NOISE_BYTES: usize = 1 << 20;

static NOISE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut random = Random::new(1);
    (0..NOISE_BYTES).map(|_| random.next() as u8).collect()
});

/// Returns a frame, as a stretch of the same noise: frames are never equal by chance, and comparing them needs no copies.
pub(super) fn frame(random: &mut Random) -> &'static [u8] {
    let size = match random.in_range(0..40) {
        0 => 0,
        1 => random.in_range(PACKET_BYTES_MAX..3 * PACKET_BYTES_MAX),
        2..4 => random.in_range(PACKET_BYTES_MAX - 10..PACKET_BYTES_MAX + 10),
        4..8 => random.in_range(1000..PACKET_BYTES_MAX),
        _ => random.in_range(0..300),
    };
    let from = random.in_range(0..NOISE_BYTES - size);
    &NOISE[from..from + size]
}

/// Returns noise of this size.
pub(super) fn noise(size: usize) -> &'static [u8] {
    &NOISE[..size]
}
