//! Turns that are drawn unevenly: for a while, one theater takes 100 turns where another one takes 1.

use playhouse_executor::Choices;

use super::world::Act;

/// The weight of a theater that is not held back, and of what happens in the network.
const WEIGHT: usize = 100;
/// A distribution of weights holds for at most this number of acts.
const ACTS_MAX: usize = 2_000;

/// The present weights of the theaters.
#[derive(Default)]
pub(super) struct Turns {
    weights: Vec<usize>,
    /// Acts for which the weights still hold.
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
