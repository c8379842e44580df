//! Quicksort, an actor per list: the parts go down a tree of actors, and come back sorted.

use playhouse::prelude::*;

use super::numbers;
use super::passing::pass;

#[derive(Default)]
struct Sorter {
    parent: Option<(ActorRef<Sorter>, bool)>,
    pivot: u64,
    parts: [Option<Vec<u64>>; 2],
    sorted: Vec<u64>,
}

impl Sorter {
    fn end(&mut self, sorted: Vec<u64>, ctx: &mut Context<Self>) {
        match self.parent {
            Some((parent, is_left)) => {
                parent.tell(Sorted(pass(sorted), pass(is_left)));
                ctx.stop();
            }
            None => self.sorted = sorted,
        }
    }
}

#[actor]
impl Sorter {
    #[message]
    fn sort(&mut self, mut list: Vec<u64>, parent: Option<(ActorRef<Sorter>, bool)>, ctx: &mut Context<Self>) {
        self.parent = parent;
        if list.len() < 2 {
            return self.end(list, ctx);
        }
        self.pivot = list.swap_remove(list.len() / 2);
        let (left, right) = list.into_iter().partition(|number| *number < self.pivot);
        for (part, is_left) in [(left, true), (right, false)] {
            ctx.spawn(Sorter::default()).tell(Sort(pass(part), pass(Some((ctx.this(), is_left)))));
        }
    }

    #[message]
    fn sorted(&mut self, list: Vec<u64>, is_left: bool, ctx: &mut Context<Self>) {
        self.parts[usize::from(!is_left)] = Some(list);
        if let [Some(left), Some(right)] = &mut self.parts {
            let mut sorted = std::mem::take(left);
            sorted.push(self.pivot);
            sorted.append(right);
            self.end(sorted, ctx);
        }
    }

    #[message]
    fn answer(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.sorted)
    }
}

pub(super) fn run(system: &System, count: usize) -> playhouse::Result<bool> {
    let root = system.spawn(Sorter::default());
    root.tell(Sort(pass(numbers(count)), pass(None)));
    system.run_until_idle();
    let mut expected = numbers(count);
    expected.sort_unstable();
    Ok(root.ask(Answer).wait()? == expected)
}
