//! Random numbers of the benchmarks: one 32-bit linear congruential generator per client, the same on every platform.
//!
//! Everything in this module is integer arithmetic, or IEEE additions, multiplications and divisions, which are exact to the bit
//! on every platform. Nothing calls the platform's mathematics library.
//!
//! No library replaces it: rule R3 of *Run, Actor, Run!* asks for this generator, and the recorded counts depend on its sequence.

use serde::{Deserialize, Serialize};

/// A 32-bit linear congruential generator (multiplier and increment of Numerical Recipes, period 2^32).
///
/// Its low bits are weak; every method decides by the high ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dice {
    state: u32,
}

impl Dice {
    /// Returns the dice of client `id` in the world of `seed`.
    pub fn of_client(seed: u32, id: u32) -> Dice {
        Dice { state: mix32(mix32(seed) ^ id.wrapping_mul(0x9E37_79B9)) }
    }

    /// The current state, for checksums.
    pub fn state(self) -> u32 {
        self.state
    }

    /// Rolls a number from 0 to 2^32 - 1.
    #[inline]
    pub fn roll(&mut self) -> u32 {
        self.state = step(self.state);
        self.state
    }

    /// Rolls an index below `len`.
    #[inline]
    pub fn pick(&mut self, len: usize) -> usize {
        ((u64::from(self.roll()) * len as u64) >> 32) as usize
    }

    /// Says whether something that happens with probability `chance` happens now.
    #[inline]
    pub fn happens(&mut self, chance: Chance) -> bool {
        u64::from(self.roll()) < chance.threshold
    }

    /// Counts the failures before the first success of a series of rolls with probability `chance`.
    ///
    /// It takes one roll instead of one per failure (the inverse of the geometric distribution). A start-up in which each
    /// client rolls for each older one therefore costs a roll per friendship, not n² rolls.
    pub fn failures_before(&mut self, chance: Chance) -> u64 {
        if chance.threshold >= ONE {
            return 0;
        }
        if chance.threshold == 0 {
            return u64::MAX;
        }
        let uniform = (f64::from(self.roll()) + 1.0) / ONE as f64;
        // A float that is too large saturates.
        (ln(uniform) / chance.ln_of_failure) as u64
    }

    /// Returns the first of the numbers from `from` to below `end` whose roll with probability `chance` is a success.
    pub fn next_success(&mut self, chance: Chance, from: u32, end: u32) -> Option<u32> {
        let next = u64::from(from).saturating_add(self.failures_before(chance));
        (next < u64::from(end)).then_some(next as u32)
    }
}

const ONE: u64 = 1 << 32;

/// Returns the next state of the generator.
#[inline]
pub fn step(state: u32) -> u32 {
    state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)
}

/// A probability, held as a threshold for a 32-bit roll.
#[derive(Clone, Copy, Debug)]
pub struct Chance {
    threshold: u64,
    ln_of_failure: f64,
}

impl Chance {
    /// The probability of `percent`, which must be from 0 to 100.
    pub fn of_percent(percent: f64) -> Chance {
        assert!((0.0..=100.0).contains(&percent), "{percent} percent is not a probability");
        let threshold = (percent / 100.0 * ONE as f64 + 0.5) as u64;
        let ln_of_failure = if threshold < ONE { ln((ONE - threshold) as f64 / ONE as f64) } else { f64::NEG_INFINITY };
        Chance { threshold, ln_of_failure }
    }

    /// The 32-bit threshold below which a roll is a success (2^32 for certainty).
    pub fn threshold(self) -> u64 {
        self.threshold
    }
}

/// The natural logarithm of a positive normal number, from basic arithmetic only.
fn ln(x: f64) -> f64 {
    debug_assert!(x > 0.0 && x.is_normal());
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7FF) as i64 - 1023;
    let mut mantissa = f64::from_bits((bits & 0x000F_FFFF_FFFF_FFFF) | (1023 << 52));
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)); |s| < 0.172, therefore ten terms reach the precision of f64.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let (mut power, mut sum) = (s, 0.0);
    for odd in (1..=21).step_by(2) {
        sum += power / f64::from(odd);
        power *= square;
    }
    2.0 * sum + exponent as f64 * std::f64::consts::LN_2
}

/// Scatters 32 bits (finaliser of MurmurHash3).
pub fn mix32(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x85EB_CA6B);
    x = (x ^ (x >> 13)).wrapping_mul(0xC2B2_AE35);
    x ^ (x >> 16)
}

/// Scatters 64 bits (finaliser of SplitMix64): the building block of every checksum of the world.
#[inline]
pub fn mix64(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_documented_one() {
        let mut dice = Dice { state: 0 };
        let rolls: Vec<u32> = (0..4).map(|_| dice.roll()).collect();
        assert_eq!(rolls, [0x3C6E_F35F, 0x4750_2932, 0xD1CC_F6E9, 0xAAF9_5334]);
    }

    #[test]
    fn chances_hit_as_often_as_they_say() {
        for percent in [0.0, 0.1, 5.0, 50.0, 99.0, 100.0] {
            let chance = Chance::of_percent(percent);
            let mut dice = Dice::of_client(7, 3);
            let hits = (0..100_000).filter(|_| dice.happens(chance)).count() as f64 / 1000.0;
            assert!((hits - percent).abs() < 0.5, "{percent} percent came out as {hits}");
        }
    }

    #[test]
    fn skipping_agrees_with_rolling() {
        for percent in [0.05, 1.0, 30.0] {
            let chance = Chance::of_percent(percent);
            let mut dice = Dice::of_client(11, 5);
            let runs = 20_000;
            let failures: u64 = (0..runs).map(|_| dice.failures_before(chance)).sum();
            let mean = failures as f64 / f64::from(runs);
            let expected = (100.0 - percent) / percent;
            assert!((mean / expected - 1.0).abs() < 0.03, "{percent} percent: {mean} instead of {expected}");
        }
        assert_eq!(Dice::of_client(1, 1).failures_before(Chance::of_percent(100.0)), 0);
        assert_eq!(Dice::of_client(1, 1).failures_before(Chance::of_percent(0.0)), u64::MAX);
    }

    #[test]
    fn logarithm_agrees_with_the_platforms() {
        for x in [1e-9, 2.3e-4, 0.1, 0.5, 0.707, 0.9999, 1.0, 1.5, 3.0, 1e12] {
            assert!((ln(x) - x.ln()).abs() <= 1e-14 * x.ln().abs().max(1.0), "ln {x}");
        }
    }

    #[test]
    fn picks_are_even() {
        let mut dice = Dice::of_client(0, 0);
        let mut hits = [0u32; 7];
        for _ in 0..70_000 {
            hits[dice.pick(7)] += 1;
        }
        assert!(hits.iter().all(|&n| (9_500..10_500).contains(&n)), "{hits:?}");
    }
}
