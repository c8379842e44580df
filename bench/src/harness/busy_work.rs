//! The busy work of a move.

use std::hint::black_box;

use serde::{Deserialize, Serialize};

use super::random::step;

/// The additional work of a client in each of its moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// Nothing.
    Idle,
    /// Dependent arithmetic steps, each about a nanosecond, without access to memory.
    Compute(u32),
    /// Allocates this number of bytes, writes them, and reads them back in another order.
    Memory(u32),
}

const WORDS_PER_LINE: usize = 16;

impl Work {
    /// Does the work and returns a result that depends on all of it, and on nothing but `seed` and the work.
    pub fn perform(self, seed: u32) -> u32 {
        match self {
            Work::Idle => 0,
            Work::Compute(steps) => {
                let mut x = seed;
                for _ in 0..steps {
                    x = step(x) ^ (x >> 15);
                }
                black_box(x)
            }
            Work::Memory(bytes) => {
                let words = (bytes as usize / 4).max(1);
                let mut block: Vec<u32> = (0..words as u32).map(|i| seed ^ i).collect();
                black_box(&mut block);
                // A cache line further with each step: one pass over all lines per word of a line.
                let mut sum = 0u32;
                for first in 0..WORDS_PER_LINE {
                    for word in block.iter().skip(first).step_by(WORDS_PER_LINE) {
                        sum = sum.wrapping_mul(31).wrapping_add(*word);
                    }
                }
                black_box(sum)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_repeatable() {
        for work in [Work::Idle, Work::Compute(1000), Work::Memory(0), Work::Memory(100_000)] {
            assert_eq!(work.perform(42), work.perform(42), "{work:?}");
        }
        assert_ne!(Work::Compute(10).perform(1), Work::Compute(11).perform(1));
        assert_ne!(Work::Memory(4096).perform(1), Work::Memory(8192).perform(1));
    }
}
