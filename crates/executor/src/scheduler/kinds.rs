//! Times of messages, by kind.
//!
//! A worker shares its work by the time that it takes, and not by the number of messages: 100 answers that are added up are less than
//! 2 requests. The worker therefore times the first message of a gulp, which costs 2 looks at the clock. [`super::policy::times_message`]
//! chooses the gulps. The worker keeps an average for each kind (an actor's type with a message's type). Only the ratios between the
//! averages are used, because the time of messages in general is measured over all of them.

/// Kinds that are told apart, at most. 2 kinds that share a place displace each other.
const PLACES: usize = 64;
/// The most that a sample counts, as a multiple of the average before it. A message is not long because the operating system did not let
/// its worker run.
const RISE_MAX: f64 = 8.0;
/// Part of the average that a sample replaces.
const SAMPLE_COUNTS: f64 = 1.0 / 8.0;

/// Average times by kind.
pub(crate) struct Kinds {
    places: [(usize, f64); PLACES],
    /// The mean over the kinds of the messages that were timed lately.
    mean_ns: f64,
}

impl Default for Kinds {
    fn default() -> Kinds {
        Kinds { places: [(0, 0.0); PLACES], mean_ns: 0.0 }
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
        // A coarse clock may show no time at all.
        let ns = ns.max(1) as f64;
        if *of == kind {
            *average += (ns.min(RISE_MAX * *average) - *average) * SAMPLE_COUNTS;
        } else {
            (*of, *average) = (kind, ns);
        }
        self.mean_ns += (*average - self.mean_ns) * SAMPLE_COUNTS;
    }

    /// Returns how many messages of the average kind 1 message of this kind stands for, if the kind is known.
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
        assert!((long / short - 45.0).abs() < 1.0 && (0.03..0.06).contains(&short) && (1.5..2.5).contains(&long));
    }

    #[test]
    fn a_message_that_was_interrupted_counts_for_little_and_a_kind_that_became_longer_soon_counts() {
        let mut kinds = Kinds::default();
        (0..10).for_each(|_| kinds.note(0x1000, 100));
        (0..10).for_each(|_| kinds.note(0x1040, 100));
        kinds.note(0x1000, 4_000_000);
        assert!(kinds.weight(0x1000).unwrap() < 2.0);
        (0..64).for_each(|_| (kinds.note(0x1000, 100_000), kinds.note(0x1040, 100)).0);
        assert!(kinds.weight(0x1000).unwrap() > 500.0 * kinds.weight(0x1040).unwrap());
    }
}
