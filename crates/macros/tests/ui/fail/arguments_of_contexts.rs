use std::fmt;
use std::rc::Rc;

use playhouse::prelude::*;

struct Counter;

#[actor]
impl Counter {
    #[message]
    fn add(&mut self, _by: u64) {}
}

#[derive(Message)]
struct Unknown;

#[derive(Debug)]
struct BadReading;

/// An error that stays on its thread.
#[derive(Debug)]
struct Local(Rc<u8>);

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl std::error::Error for Local {}

struct Overseer(Vec<ActorRef<Counter>>, Recipient<Add>, OwnedActor<Counter>);

#[actor]
impl Overseer {
    #[started]
    fn oversee(&mut self, ctx: &mut Context<Self>) {
        for counter in &self.0 {
            ctx.ask(counter, Add(1)).then(|_, _, _| {});
            ctx.watch(counter);
            ctx.watch(counter.id());
            ctx.ask(counter, Unknown).then(|_, _, _| {});
        }
        ctx.unwatch(self.1);
        ctx.watch(&self.2);
        ctx.ask(&self.2, Add(1)).then(|_, _, _| {});
        ctx.fail(BadReading);
        ctx.fail(Local(Rc::new(1)));
    }
}

fn main() {}
