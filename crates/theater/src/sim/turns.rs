//! Uneven turns: for some time, one theater takes 100 turns for each turn of another one.

use playhouse_executor::Choices;

use super::world::Act;

/// The weight of a theater at full rate, and of events in the network.
const WEIGHT: usize = 100;
/// Maximum number of acts for which a distribution of weights is valid.
const ACTS_MAX: usize = 2_000;

/// The present weights of the theaters.
#[derive(Default)]
pub(super) struct Turns {
    weights: Vec<usize>,
    /// Number of acts for which the weights are still valid.
    left: usize,
}

impl Turns {
    /// Draws the index of one of the acts.
    pub(super) fn choose(&mut self, acts: &[Act], theaters: usize, choices: &mut Choices) -> usize {
        if self.left == 0 || self.weights.len() != theaters {
            self.left = 1 + choices.below(ACTS_MAX);
            self.weights = (0..theaters).map(|_| if choices.one_in(2) { 1 } else { WEIGHT }).collect();
        }
        self.left -= 1;
        let weight = |act: &Act| match act {
            Act::Step(number) | Act::Wake(number) | Act::Poll(number) => self.weights[*number],
            Act::Happen(_) => WEIGHT,
        };
        let mut drawn = choices.below(acts.iter().map(weight).sum());
        let at = acts.iter().position(|act| match drawn.checked_sub(weight(act)) {
            Some(rest) => {
                drawn = rest;
                false
            }
            None => true,
        });
        at.expect("it is below the sum of the weights")
    }
}
