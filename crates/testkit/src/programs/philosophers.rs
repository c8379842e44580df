//! Dining philosophers.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as PollContext, Poll, Waker};

use playhouse::prelude::*;

use crate::run::lock;

const PHILOSOPHERS: usize = 3;

/// A future that is ready when the fork is granted.
#[derive(Clone, Default)]
struct Grant(Arc<Mutex<(bool, Option<Waker>)>>);

impl Grant {
    fn give(&self) {
        let waker = {
            let mut grant = lock(&self.0);
            grant.0 = true;
            grant.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Future for Grant {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut PollContext<'_>) -> Poll<()> {
        let mut grant = lock(&self.0);
        grant.1 = Some(cx.waker().clone());
        if grant.0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[derive(Default)]
struct Fork {
    taken: bool,
    waiting: VecDeque<Grant>,
}

/// A request for the fork. It is answered at once, and the grant may be ready later.
#[derive(Message)]
#[message(reply = Grant)]
struct Take;

#[derive(Message)]
struct Put;

impl Actor for Fork {}

impl Handler<Take> for Fork {
    fn handle(&mut self, _: Take, _: &mut Context<Self>) -> Grant {
        let grant = Grant::default();
        if self.taken {
            self.waiting.push_back(grant.clone());
        } else {
            self.taken = true;
            grant.give();
        }
        grant
    }
}

impl Handler<Put> for Fork {
    fn handle(&mut self, _: Put, _: &mut Context<Self>) {
        match self.waiting.pop_front() {
            Some(next) => next.give(),
            None => self.taken = false,
        }
    }
}

struct Philosopher {
    first: ActorRef<Fork>,
    second: ActorRef<Fork>,
    meals: u64,
}

#[derive(Message)]
struct Dine;

#[derive(Message)]
#[message(reply = u64)]
struct Meals;

impl Actor for Philosopher {}

impl AsyncHandler<Dine> for Philosopher {
    async fn handle(&mut self, _: Dine, _: &mut Context<Self>) {
        for fork in [self.first, self.second] {
            fork.ask(Take).await.expect("forks do not end").await;
        }
        self.meals += 1;
        self.first.tell(Put);
        self.second.tell(Put);
    }
}

impl Handler<Meals> for Philosopher {
    fn handle(&mut self, _: Meals, _: &mut Context<Self>) -> u64 {
        self.meals
    }
}

pub(super) fn dine(system: &System, bug: bool) -> u64 {
    let forks: Vec<_> = (0..PHILOSOPHERS)
        .map(|n| system.spawn_with(SpawnOptions::new().name(format!("{n}")), Fork::default()))
        .collect();
    let philosophers: Vec<_> = (0..PHILOSOPHERS)
        .map(|n| {
            let (left, right) = (forks[n], forks[(n + 1) % PHILOSOPHERS]);
            let swapped = n == PHILOSOPHERS - 1 && !bug;
            let (first, second) = if swapped { (right, left) } else { (left, right) };
            let name = SpawnOptions::new().name(format!("{n}"));
            system.spawn_with(name, Philosopher { first, second, meals: 0 })
        })
        .collect();
    for philosopher in &philosophers {
        philosopher.tell(Dine);
    }
    system.run_until_idle();
    // A stuck philosopher does not answer, and the checker reports the deadlock.
    philosophers.iter().map(|philosopher| philosopher.ask(Meals).wait().unwrap_or(0)).sum()
}
