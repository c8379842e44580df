//! The happens-before relation of a run.

use std::collections::HashMap;

use crate::run::{Origin, Step};

/// A set of steps of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Steps(Vec<u64>);

impl Steps {
    pub(crate) fn contains(&self, step: usize) -> bool {
        self.0.get(step / 64).is_some_and(|word| word >> (step % 64) & 1 == 1)
    }

    pub(crate) fn insert(&mut self, step: usize) {
        if self.0.len() <= step / 64 {
            self.0.resize(step / 64 + 1, 0);
        }
        self.0[step / 64] |= 1 << (step % 64);
    }

    fn contains_all(&self, others: &Steps) -> bool {
        others.0.iter().enumerate().all(|(at, other)| other & !self.0.get(at).unwrap_or(&0) == 0)
    }

    fn insert_all(&mut self, others: &Steps) {
        if self.0.len() < others.0.len() {
            self.0.resize(others.0.len(), 0);
        }
        for (word, other) in self.0.iter_mut().zip(&others.0) {
            *word |= other;
        }
    }
}

/// The happens-before relation of a run. The sending of a message comes before its delivery. Of two dependent steps,
/// the first comes before the second.
pub(crate) struct Causality {
    /// The steps before each step.
    past: Vec<Steps>,
    /// The steps before the sending of each step's message.
    sent: Vec<Steps>,
}

impl Causality {
    pub(crate) fn of(steps: &[Step]) -> Causality {
        let mut this = Causality { past: Vec::new(), sent: Vec::new() };
        for (at, step) in steps.iter().enumerate() {
            let sent = this.causes_of(&step.origin);
            let mut past = sent.clone();
            for earlier in (0..at).rev() {
                if !past.contains(earlier) && step.depends_on(&steps[earlier]) {
                    past.insert(earlier);
                    past.insert_all(&this.past[earlier]);
                }
            }
            this.past.push(past);
            this.sent.push(sent);
        }
        this
    }

    /// Returns the steps before something with this origin.
    pub(crate) fn causes_of(&self, origin: &Origin) -> Steps {
        let mut known = Steps::default();
        (0..origin.all_before).for_each(|step| known.insert(step));
        for step in &origin.steps {
            known.insert(*step);
            known.insert_all(&self.past[*step]);
        }
        known
    }

    /// Returns the steps before `step`, without itself.
    pub(crate) fn past(&self, step: usize) -> &Steps {
        &self.past[step]
    }

    /// Returns whether the message of `step` was sent because of `earlier`.
    pub(crate) fn is_sent_after(&self, step: usize, earlier: usize) -> bool {
        self.sent[step].contains(earlier)
    }

    /// Returns the number of possible orders of the steps: the linear extensions of the relation, counted over the
    /// sets of steps that a run can begin with.
    pub(crate) fn orders(&self) -> u128 {
        let steps = self.past.len();
        let mut level: HashMap<Steps, u128> = HashMap::from([(Steps::default(), 1)]);
        for _ in 0..steps {
            let mut next: HashMap<Steps, u128> = HashMap::new();
            for (made, orders) in level {
                for step in (0..steps).filter(|step| !made.contains(*step) && made.contains_all(&self.past[*step])) {
                    let mut more = made.clone();
                    more.insert(step);
                    let known = next.entry(more).or_default();
                    *known = known.saturating_add(orders);
                }
            }
            level = next;
        }
        level.into_values().sum()
    }
}
