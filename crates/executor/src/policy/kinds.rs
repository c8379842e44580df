//! Times of messages, by kind.
//!
//! A worker shares its work by time, and not by the number of messages: 100 answers may take less time than 2 requests.
//! The worker therefore times the first message of some gulps, which costs 2 looks at the clock.
//! [`super::decisions::times_message`] chooses the gulps. The worker keeps an average for each kind (an actor's type
//! with a message's type). Only the ratios between these averages are used. The average over all messages comes from
//! [`crate::worker::core::Pace`], which measures all of them.

/// The number of entries in the table. Two kinds with the same entry displace each other.
const PLACES: usize = 64;
/// The largest value that a sample counts as, as a multiple of the average before it. A sample may be long only because
/// the operating system interrupted the worker.
const RISE_MAX: f64 = 8.0;
/// The part of the average that a sample replaces.
const SAMPLE_COUNTS: f64 = 1.0 / 8.0;

/// Average times by kind.
pub(crate) struct Kinds {
    /// A kind and its average in each entry.
    places: [(usize, f64); PLACES],
    /// The moving mean of the averages of the kinds that were timed.
    mean_ns: f64,
    /// The moving mean of their squares.
    mean_square: f64,
}

impl Default for Kinds {
    fn default() -> Kinds {
        Kinds { places: [(0, 0.0); PLACES], mean_ns: 0.0, mean_square: 0.0 }
    }
}

impl Kinds {
    fn place(kind: usize) -> usize {
        // Fibonacci hashing, because kinds are addresses of functions.
        (kind as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> (usize::BITS - PLACES.ilog2())
    }

    /// Notes that a message of this kind took `ns` nanoseconds.
    pub(crate) fn note(&mut self, kind: usize, ns: u64) {
        let (of, average) = &mut self.places[Kinds::place(kind)];
        // A coarse clock may measure 0.
        let ns = ns.max(1) as f64;
        if *of == kind {
            *average += (ns.min(RISE_MAX * *average) - *average) * SAMPLE_COUNTS;
        } else {
            (*of, *average) = (kind, ns);
        }
        self.mean_ns += (*average - self.mean_ns) * SAMPLE_COUNTS;
        self.mean_square += (*average * *average - self.mean_square) * SAMPLE_COUNTS;
    }

    /// Returns the mean over the kinds weighted by time, divided by the plain mean: at least 1. With a request of 1 µs
    /// for each answer of 40 ns, nearly all of the time is spent on messages of 1 µs, twice the mean.
    pub(crate) fn spread(&self) -> f64 {
        if self.mean_ns > 0.0 { (self.mean_square / (self.mean_ns * self.mean_ns)).max(1.0) } else { 1.0 }
    }

    /// Returns the average of this kind divided by the mean over the kinds, or `None` for an unknown kind.
    pub(crate) fn weight(&self, kind: usize) -> Option<f64> {
        let (of, average) = self.places[Kinds::place(kind)];
        (of == kind).then(|| average / self.mean_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::Kinds;

    #[test]
    fn each_kind_has_an_average_of_its_own() {
        let mut kinds = Kinds::default();
        assert_eq!(kinds.weight(0x1000), None);
        for _ in 0..100 {
            kinds.note(0x1000, 20);
            kinds.note(0x1040, 900);
        }
        let [short, long] = [0x1000, 0x1040].map(|kind| kinds.weight(kind).unwrap());
        assert!((1.7..2.2).contains(&kinds.spread()), "{}", kinds.spread());
        assert!((long / short - 45.0).abs() < 1.0 && (0.03..0.06).contains(&short) && (1.5..2.5).contains(&long));
    }

    #[test]
    fn an_interrupted_message_counts_for_little_and_a_kind_that_becomes_longer_counts_soon() {
        let mut kinds = Kinds::default();
        (0..10).for_each(|_| kinds.note(0x1000, 100));
        (0..10).for_each(|_| kinds.note(0x1040, 100));
        kinds.note(0x1000, 4_000_000);
        assert!(kinds.weight(0x1000).unwrap() < 2.0);
        (0..64).for_each(|_| (kinds.note(0x1000, 100_000), kinds.note(0x1040, 100)).0);
        assert!(kinds.weight(0x1000).unwrap() > 500.0 * kinds.weight(0x1040).unwrap());
    }
}
