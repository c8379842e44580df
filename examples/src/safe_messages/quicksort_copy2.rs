//! Quicksort without answers: a sorter sends one part to a new sorter and goes on with the other part. It sends sorted numbers,
//! with their position, to a collector.

use playhouse::prelude::*;

use super::numbers;
use super::passing::pass;

struct Sorter {
    collector: ActorRef<Collector>,
}

#[actor]
impl Sorter {
    #[message]
    fn sort(&mut self, mut list: Vec<u64>, offset: usize, ctx: &mut Context<Self>) {
        if list.len() < 2 {
            self.collector.tell(Place(pass(list), pass(offset)));
            return ctx.stop();
        }
        let pivot = list.swap_remove(list.len() / 2);
        let (left, right): (Vec<_>, Vec<_>) = list.into_iter().partition(|number| *number < pivot);
        let middle = offset + left.len();
        self.collector.tell(Place(pass(vec![pivot]), pass(middle)));
        let sorter = ctx.spawn(Sorter { collector: self.collector });
        sorter.tell(Sort(pass(right), pass(middle + 1)));
        ctx.this().tell(Sort(pass(left), pass(offset)));
    }
}

struct Collector {
    sorted: Vec<u64>,
    placed: usize,
}

#[actor]
impl Collector {
    #[message]
    fn place(&mut self, list: Vec<u64>, offset: usize) {
        self.sorted[offset..offset + list.len()].copy_from_slice(&list);
        self.placed += list.len();
    }

    #[message]
    fn answer(&mut self) -> (Vec<u64>, usize) {
        (std::mem::take(&mut self.sorted), self.placed)
    }
}

pub(super) fn run(system: &System, count: usize) -> playhouse::Result<bool> {
    let collector = system.spawn(Collector { sorted: vec![0; count], placed: 0 });
    system.spawn(Sorter { collector }).tell(Sort(pass(numbers(count)), pass(0)));
    system.run_until_idle();
    let mut expected = numbers(count);
    expected.sort_unstable();
    Ok(collector.ask(Answer).wait()? == (expected, count))
}
