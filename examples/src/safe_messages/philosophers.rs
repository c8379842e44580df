//! Dining philosophers; forks are actors too. One philosopher takes its forks in the other order, and therefore no
//! philosopher starves.

use std::collections::VecDeque;

use playhouse::prelude::*;

use super::passing::pass;

const MEALS: u32 = 3;

#[derive(Default)]
struct Fork {
    /// The philosopher with the fork, then the waiting ones.
    queue: VecDeque<ActorRef<Philosopher>>,
}

impl Fork {
    fn offer(&self) {
        if let Some(philosopher) = self.queue.front() {
            philosopher.tell(Taken);
        }
    }
}

#[actor]
impl Fork {
    #[message]
    fn take(&mut self, philosopher: ActorRef<Philosopher>) {
        self.queue.push_back(philosopher);
        if self.queue.len() == 1 {
            self.offer();
        }
    }

    #[message]
    fn put_back(&mut self) {
        self.queue.pop_front();
        self.offer();
    }
}

struct Philosopher {
    forks: [ActorRef<Fork>; 2],
    in_hand: usize,
    meals: u32,
}

#[actor]
impl Philosopher {
    #[message]
    fn hungry(&mut self, ctx: &mut Context<Self>) {
        self.forks[self.in_hand].tell(Take(pass(ctx.this())));
    }

    #[message]
    fn taken(&mut self, ctx: &mut Context<Self>) {
        self.in_hand += 1;
        if self.in_hand == 2 {
            self.meals += 1;
            self.in_hand = 0;
            for fork in self.forks {
                fork.tell(PutBack);
            }
        }
        if self.meals < MEALS {
            self.hungry(ctx);
        }
    }

    #[message]
    fn meals(&self) -> u32 {
        self.meals
    }
}

pub(super) fn run(system: &System, philosophers: usize) -> playhouse::Result<bool> {
    let forks: Vec<_> = (0..philosophers).map(|_| system.spawn(Fork::default())).collect();
    let philosopher = |number: usize| {
        let mut forks = [forks[number], forks[(number + 1) % philosophers]];
        if number == 0 {
            forks.reverse();
        }
        system.spawn(Philosopher { forks, in_hand: 0, meals: 0 })
    };
    let philosophers: Vec<_> = (0..philosophers).map(philosopher).collect();
    for philosopher in &philosophers {
        philosopher.tell(Hungry);
    }
    system.run_until_idle();
    for philosopher in &philosophers {
        if philosopher.ask(Meals).wait()? != MEALS {
            return Ok(false);
        }
    }
    Ok(true)
}
