//! Tests under many seeds.

/// So many seeds of each test, or as many as `SEEDS` says.
pub fn or(seeds: u64) -> u64 {
    std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(seeds)
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
