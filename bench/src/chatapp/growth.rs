//! The memory of the process during the turns.

use serde::Serialize;

use crate::harness::memory::resident_bytes;
use crate::report::line::Line;

/// The memory of the process over a run: all of it, also that of other systems in it, and that of a server's view of a driven
/// world (the memberships of chats).
#[derive(Clone, Debug, Default, Serialize)]
pub struct Memory {
    /// Resident bytes before any directory or client existed; `None`, in this and the next fields, where the operating system
    /// does not report them.
    pub start_bytes: Option<u64>,
    /// Resident bytes when the clients existed and had made friends.
    pub set_up_bytes: Option<u64>,
    /// Resident bytes after the last sampled turn.
    pub end_bytes: Option<u64>,
    /// Resident bytes after turns, from [`SAMPLES`] / 2 to as many, at equal distances, from the first turn on.
    pub samples: Vec<Sample>,
    /// Bytes of each client until the first turn: its actor, its friends, and its share of the directories.
    pub bytes_per_client: Option<f64>,
    /// The slope of the growth; `None` for fewer than eight samples.
    pub growth: Option<Slope>,
    /// Turns from one sample to the next.
    #[serde(skip)]
    every: u32,
}

/// The most samples that are kept. Beyond it, every other sample is dropped, and the distance doubles.
pub const SAMPLES: usize = 64;

/// Resident bytes after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// The turn that had ended.
    pub turn: u32,
    /// Resident bytes.
    pub bytes: u64,
}

/// The slope of memory: the line through the samples of the later half of the turns. In the earlier half, allocators and queues
/// still reach their size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Slope {
    /// Bytes per turn.
    pub bytes_per_turn: f64,
    /// Bytes per turn and client.
    pub bytes_per_turn_and_client: f64,
    /// The standard error of `bytes_per_turn`.
    pub standard_error: f64,
    /// The slope says nothing: it is less than two standard errors, or over all these turns less than 256 KiB, which the kernel's
    /// accounts and the allocator's lots may make of nothing.
    pub is_noise: bool,
}

/// The threshold for a change.
const NOISE_BYTES: f64 = 256.0 * 1024.0;

impl Memory {
    /// Takes the state before the first sample.
    pub(super) fn begin(&mut self) {
        self.start_bytes = resident_bytes();
    }

    /// Samples after a turn, or after the set-up (0). Reads a file of the kernel after some hundred turns of a run, between
    /// the turns.
    pub(super) fn note(&mut self, turn: u32) {
        if turn == 0 {
            self.set_up_bytes = resident_bytes();
        } else if (turn - 1).is_multiple_of(self.every.max(1))
            && let Some(bytes) = resident_bytes()
        {
            self.take(Sample { turn, bytes });
        }
    }

    fn take(&mut self, sample: Sample) {
        self.samples.push(sample);
        if self.samples.len() > SAMPLES {
            self.every = self.every.max(1) * 2;
            let every = self.every;
            self.samples.retain(|sample| (sample.turn - 1).is_multiple_of(every));
        }
    }

    /// Ends the run of this number of clients.
    pub(super) fn conclude(&mut self, clients: u32) {
        self.end_bytes = self.samples.last().map(|sample| sample.bytes);
        let clients = f64::from(clients);
        if let (Some(start), Some(set_up)) = (self.start_bytes, self.set_up_bytes) {
            self.bytes_per_client = Some((set_up as f64 - start as f64).max(0.0) / clients);
        }
        self.growth = Slope::of(&self.samples, clients);
    }
}

impl Slope {
    fn of(samples: &[Sample], clients: f64) -> Option<Slope> {
        if samples.len() < 8 {
            return None;
        }
        let later = &samples[samples.len() / 2..];
        let points: Vec<_> = later.iter().map(|sample| (f64::from(sample.turn), sample.bytes as f64)).collect();
        let Line { slope, r, .. } = Line::through(&points)?;
        // If all samples are equal there is no correlation, and no error.
        let unexplained = if r.is_nan() { 0.0 } else { (1.0 - r * r).max(0.0) / (r * r) };
        let standard_error = slope.abs() * (unexplained / (points.len() - 2) as f64).sqrt();
        let standard_error = if standard_error.is_nan() { 0.0 } else { standard_error };
        let change = slope * f64::from(later[later.len() - 1].turn - later[0].turn);
        Some(Slope {
            bytes_per_turn: slope,
            bytes_per_turn_and_client: slope / clients,
            standard_error,
            is_noise: slope.abs() < 2.0 * standard_error || change.abs() < NOISE_BYTES,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn slope(bytes: impl Fn(u32) -> u64) -> Slope {
        let samples: Vec<_> = (1..=40).map(|turn| Sample { turn, bytes: bytes(turn) }).collect();
        Slope::of(&samples, 10.0).unwrap()
    }

    #[test]
    fn growth_by_a_mebibyte_a_turn_has_that_slope() {
        let found = slope(|turn| 100 * MIB + u64::from(turn) * MIB);
        assert!((found.bytes_per_turn - MIB as f64).abs() < 1.0 && !found.is_noise, "{found:?}");
        assert!((found.bytes_per_turn_and_client - MIB as f64 / 10.0).abs() < 1.0, "{found:?}");
        assert!(found.standard_error < 1.0, "{found:?}");
    }

    #[test]
    fn growth_that_ends_in_the_first_half_is_none() {
        let found = slope(|turn| 100 * MIB + u64::from(turn.min(19)) * MIB);
        assert!(found.bytes_per_turn == 0.0 && found.is_noise, "{found:?}");
    }

    #[test]
    fn variation_and_small_growth_are_noise() {
        let found = slope(|turn| 100 * MIB + u64::from(turn % 3) * MIB);
        assert!(found.is_noise && found.standard_error > 0.0, "{found:?}");
        // Over all these turns, that is more than would be noise if it were steady.
        let found = slope(|turn| 100 * MIB + u64::from(turn * 7 % 13) * 16 * MIB);
        assert!(found.is_noise && found.bytes_per_turn.abs() * 20.0 > NOISE_BYTES, "{found:?}");
        let found = slope(|turn| 100 * MIB + u64::from(turn) * 4096);
        assert!(found.is_noise && found.bytes_per_turn > 4000.0, "{found:?}");
    }

    #[test]
    fn a_run_of_any_length_keeps_a_few_samples_at_equal_distances() {
        for turns in [1_u32, 63, 64, 65, 1_000, 100_003] {
            let mut memory = Memory::default();
            for turn in 1..=turns {
                if (turn - 1).is_multiple_of(memory.every.max(1)) {
                    memory.take(Sample { turn, bytes: 7 });
                }
            }
            let at: Vec<u32> = memory.samples.iter().map(|sample| sample.turn).collect();
            assert!(at.len() <= SAMPLES && at.len() >= (turns as usize).min(SAMPLES / 2), "{turns}: {at:?}");
            assert!(
                at[0] == 1 && at.windows(2).all(|pair| pair[1] - pair[0] == memory.every.max(1)),
                "{turns}: {at:?}"
            );
        }
    }

    #[test]
    fn clients_are_counted_against_the_start() {
        let mut memory = Memory { start_bytes: Some(MIB), set_up_bytes: Some(3 * MIB), ..Memory::default() };
        memory.conclude(1024);
        assert_eq!((memory.bytes_per_client, memory.growth, memory.end_bytes), (Some(2048.0), None, None));
    }
}
