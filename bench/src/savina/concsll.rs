//! Concurrent sorted list: as the dictionary, with a linked list that each request walks along.

use playhouse::prelude::*;

use super::requests::{Request, WORKERS, serve};
use super::{answer, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::random::Dice;
use crate::harness::steps::Steps;

pub(crate) const CONCSLL: Benchmark = program(
    "savina-concsll",
    "request",
    "20 workers send 8,000 requests each to one sorted linked list; 10 % are writes, 1 % ask for its length",
    run,
);

const WRITES_OF_100: usize = 10;
const LENGTHS_OF_100: usize = 1;

/// A worker's request. The answer is the number of all values, or of this value (at most one).
#[derive(Message)]
#[message(reply = usize)]
enum Access {
    Insert(u32),
    Length,
    Contains(u32),
}

impl Request for Access {
    fn choose(_: u32, dice: &mut Dice) -> Self {
        match dice.pick(100) {
            of_100 if of_100 < LENGTHS_OF_100 => Access::Length,
            of_100 if of_100 < LENGTHS_OF_100 + WRITES_OF_100 => Access::Insert(dice.roll()),
            _ => Access::Contains(dice.roll()),
        }
    }
}

/// A linked list whose nodes lie in one vector; `next` is an index into it.
struct List {
    nodes: Vec<Node>,
    first: Option<u32>,
    work: Steps,
}

struct Node {
    value: u32,
    next: Option<u32>,
}

impl List {
    fn new(work: Steps) -> Self {
        Self { nodes: Vec::new(), first: None, work }
    }

    /// Returns the last node whose value is below `value`, and the one behind it.
    fn before(&self, value: u32) -> (Option<u32>, Option<u32>) {
        let (mut before, mut at) = (None, self.first);
        while let Some(node) = at.filter(|&node| self.nodes[node as usize].value < value) {
            (before, at) = (at, self.nodes[node as usize].next);
        }
        (before, at)
    }

    fn insert(&mut self, value: u32) {
        let (before, next) = self.before(value);
        let new = Some(self.nodes.len() as u32);
        self.nodes.push(Node { value, next });
        match before {
            Some(before) => self.nodes[before as usize].next = new,
            None => self.first = new,
        }
    }

    fn contains(&self, value: u32) -> bool {
        let (_, found) = self.before(value);
        found.is_some_and(|node| self.nodes[node as usize].value == value)
    }

    fn values(&self) -> Vec<u32> {
        let follow = |&node: &u32| self.nodes[node as usize].next;
        std::iter::successors(self.first, follow).map(|node| self.nodes[node as usize].value).collect()
    }
}

impl Actor for List {}

impl Handler<Access> for List {
    fn handle(&mut self, access: Access, _: &mut Context<Self>) -> usize {
        self.work.work();
        match access {
            Access::Insert(value) => self.insert(value),
            Access::Length => {}
            Access::Contains(value) => return usize::from(self.contains(value)),
        }
        self.nodes.len()
    }
}

/// The content of the list.
#[derive(Message)]
#[message(reply = Vec<u32>)]
struct Values;

impl Handler<Values> for List {
    fn handle(&mut self, _: Values, _: &mut Context<Self>) -> Vec<u32> {
        self.values()
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let requests = size.smoke_or(80, 8_000);
    let list = system.spawn(List::new(work));
    let elapsed = serve::<List, Access>(system, size, list, requests)?;
    let values = answer(list.ask(Values).wait())?;
    check("that the list is what was written, sorted", true, values == written(requests))?;
    Ok(Outcome::new(u64::from(WORKERS * requests), elapsed))
}

/// Returns the final content of the list.
fn written(requests: u32) -> Vec<u32> {
    let written = |access| match access {
        Access::Insert(value) => Some(value),
        Access::Length | Access::Contains(_) => None,
    };
    let mut values: Vec<u32> = Access::all(requests).filter_map(written).collect();
    values.sort_unstable();
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_sorted_and_keeps_what_it_has_twice() {
        let mut list = List::new(Steps::NONE);
        for value in [5, 1, 9, 5, 0, 7] {
            list.insert(value);
        }
        assert_eq!(list.values(), [0, 1, 5, 5, 7, 9]);
        assert!(list.contains(5) && !list.contains(6));
    }
}
