//! Random graphs: the neighbours of each node.

use crate::harness::random::Dice;

/// The number of neighbours of each node.
pub(crate) const DEGREE: usize = 8;

/// The neighbours of all nodes, by their numbers. A node is not its own neighbour.
pub(crate) struct Graph(pub(crate) Vec<[u32; DEGREE]>);

/// Returns the dice of the node with this number. The dice that draw a graph have the number `u32::MAX`.
pub(crate) fn dice(number: u32) -> Dice {
    Dice::of_client(0x5CA1_1464, number)
}

impl Graph {
    /// Draws a graph in which all nodes are equally popular.
    pub(crate) fn uniform(nodes: usize) -> Self {
        Self::drawn(nodes, |dice| dice.pick(nodes))
    }

    /// Draws a graph whose in-degrees follow a power law: the popularity of the node of rank `r` is `r` to the power of −3/4.
    pub(crate) fn power_law(nodes: usize) -> Self {
        // Unlike powers, square roots are the same on every platform.
        let popularity = |rank: usize| 1.0 / ((rank as f64) * (rank as f64).sqrt()).sqrt();
        let mut bounds: Vec<f64> = Vec::with_capacity(nodes);
        for rank in 1..=nodes {
            bounds.push(bounds.last().unwrap_or(&0.0) + popularity(rank));
        }
        let total = bounds.last().copied().unwrap_or(0.0);
        Self::drawn(nodes, |dice| {
            let at = f64::from(dice.roll()) / (f64::from(u32::MAX) + 1.0) * total;
            bounds.partition_point(|&bound| bound <= at).min(nodes - 1)
        })
    }

    /// Draws distinct neighbours for each node.
    ///
    /// # Panics
    ///
    /// Panics if the graph has too few nodes for that.
    fn drawn(nodes: usize, mut draw: impl FnMut(&mut Dice) -> usize) -> Self {
        assert!(nodes > DEGREE, "{nodes} nodes cannot have {DEGREE} neighbours each");
        let mut dice = dice(u32::MAX);
        let neighbours = (0..nodes).map(|node| {
            let (mut chosen, mut count) = ([0; DEGREE], 0);
            while count < DEGREE {
                let other = draw(&mut dice);
                if other != node && !chosen[..count].contains(&(other as u32)) {
                    chosen[count] = other as u32;
                    count += 1;
                }
            }
            chosen
        });
        Self(neighbours.collect())
    }

    /// Returns the number of nodes.
    pub(crate) fn nodes(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn in_degrees(graph: &Graph) -> Vec<usize> {
        let mut degrees = vec![0; graph.nodes()];
        for (node, neighbours) in graph.0.iter().enumerate() {
            assert!(!neighbours.contains(&(node as u32)));
            assert_eq!(neighbours.iter().collect::<HashSet<_>>().len(), DEGREE);
            neighbours.iter().for_each(|&to| degrees[to as usize] += 1);
        }
        degrees
    }

    #[test]
    fn neighbours_are_others_and_distinct() {
        let degrees = in_degrees(&Graph::uniform(1_000));
        assert!(degrees.iter().all(|&degree| degree < 30), "{degrees:?}");
        in_degrees(&Graph::uniform(DEGREE + 1));
    }

    #[test]
    fn few_nodes_of_a_power_law_have_many_neighbours() {
        let degrees = in_degrees(&Graph::power_law(1_000));
        let top: usize = degrees[..100].iter().sum();
        let bottom: usize = degrees[900..].iter().sum();
        assert!(degrees[0] > 150 && top > 3_500 && bottom < 500, "{} {top} {bottom}", degrees[0]);
    }
}
