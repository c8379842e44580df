//! Tests under many seeds.

/// Returns the number of seeds of each test: `seeds`, or the number in `SEEDS`.
pub fn or(seeds: u64) -> u64 {
    std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(seeds)
}

/// Returns the seeds of each test: `seeds` of them, or the number in `SEEDS`, beginning with `FIRST_SEED`.
#[allow(dead_code, reason = "not all tests that are included with it use it")]
pub fn range(seeds: u64) -> std::ops::Range<u64> {
    let first = std::env::var("FIRST_SEED").ok().and_then(|first| first.parse().ok()).unwrap_or(0);
    first..first + or(seeds)
}

/// Prints the seed of a failed test.
pub struct Seed(pub u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.0);
        }
    }
}
