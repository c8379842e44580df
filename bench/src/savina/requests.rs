//! The common part of the dictionary and the sorted list: twenty actors ask one actor, one request at a time each.

use std::marker::PhantomData;
use std::time::Duration;

use playhouse::prelude::*;

use super::{dice, lead};
use crate::harness::finish::Finish;
use crate::harness::outcome::{Failure, Size};
use crate::harness::random::Dice;

pub(super) const WORKERS: u32 = 20;

/// A message of these workers.
pub(super) trait Request: Message {
    /// Returns the next request of worker `number`.
    fn choose(number: u32, dice: &mut Dice) -> Self;

    /// Returns all requests, one worker's after the other's.
    fn all(requests: u32) -> impl Iterator<Item = Self> {
        (0..WORKERS).flat_map(move |number| {
            let mut dice = dice(number);
            (0..requests).map(move |_| Self::choose(number, &mut dice))
        })
    }
}

#[derive(Message)]
struct Next;

struct Worker<S: Handler<R>, R: Request> {
    number: u32,
    dice: Dice,
    left: u32,
    store: ActorRef<S>,
    master: ActorRef<Master<S, R>>,
}

impl<S: Handler<R>, R: Request> Actor for Worker<S, R> {}

impl<S: Handler<R>, R: Request> Handler<Next> for Worker<S, R> {
    fn handle(&mut self, _: Next, ctx: &mut Context<Self>) {
        if self.left == 0 {
            return self.master.tell(Done);
        }
        self.left -= 1;
        let request = R::choose(self.number, &mut self.dice);
        ctx.ask(self.store, request).then(|this, answer, ctx| {
            if answer.is_ok() {
                this.handle(Next, ctx);
            }
        });
    }
}

#[derive(Message)]
struct Start;

#[derive(Message)]
struct Done;

struct Master<S: Handler<R>, R: Request> {
    requests: u32,
    store: ActorRef<S>,
    waiting: u32,
    finish: Finish<()>,
    kind: PhantomData<fn(R)>,
}

impl<S: Handler<R>, R: Request> Actor for Master<S, R> {}

impl<S: Handler<R>, R: Request> Handler<Start> for Master<S, R> {
    fn handle(&mut self, _: Start, ctx: &mut Context<Self>) {
        let (master, store, left) = (ctx.this(), self.store, self.requests);
        for number in 0..WORKERS {
            ctx.spawn(Worker { number, dice: dice(number), left, store, master }).tell(Next);
        }
    }
}

impl<S: Handler<R>, R: Request> Handler<Done> for Master<S, R> {
    fn handle(&mut self, _: Done, _: &mut Context<Self>) {
        self.waiting -= 1;
        if self.waiting == 0 {
            self.finish.reached(());
        }
    }
}

/// Returns the time until all workers have their answers, to this number of requests each.
pub(super) fn serve<S: Handler<R>, R: Request>(
    system: &System,
    size: Size,
    store: ActorRef<S>,
    requests: u32,
) -> Result<Duration, Failure> {
    let master = |finish| Master { requests, store, waiting: WORKERS, finish, kind: PhantomData };
    let (elapsed, ()) = lead(system, size, master, Start)?;
    Ok(elapsed)
}
