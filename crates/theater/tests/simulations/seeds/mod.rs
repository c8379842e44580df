//! Tests under many seeds.

/// So many seeds of each test, or as many as `SEEDS` says.
pub fn or(seeds: u64) -> u64 {
    std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(seeds)
}

/// So many seeds, or as many as `SEEDS` says, from the one on that `FIRST_SEED` says.
#[allow(dead_code, reason = "not all tests that are included with it use it")]
pub fn range(seeds: u64) -> std::ops::Range<u64> {
    let first = std::env::var("FIRST_SEED").ok().and_then(|first| first.parse().ok()).unwrap_or(0);
    first..first + or(seeds)
}

/// Tells which seed it was.
pub struct Seed(pub u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.0);
        }
    }
}
