//! Fibonacci numbers the naive way, an actor per call.

use playhouse::prelude::*;

use super::passing::pass;

#[derive(Default)]
struct Fib {
    parent: Option<ActorRef<Fib>>,
    missing: u32,
    value: u64,
}

impl Fib {
    fn end(&mut self, ctx: &mut Context<Self>) {
        if let Some(parent) = self.parent {
            parent.tell(Answer(pass(self.value)));
            ctx.stop();
        }
    }
}

#[actor]
impl Fib {
    #[message]
    fn compute(&mut self, n: usize, parent: Option<ActorRef<Fib>>, ctx: &mut Context<Self>) {
        self.parent = parent;
        if n < 2 {
            self.value = n as u64;
            return self.end(ctx);
        }
        self.missing = 2;
        ctx.spawn(Fib::default()).tell(Compute(pass(n - 1), pass(Some(ctx.this()))));
        ctx.spawn(Fib::default()).tell(Compute(pass(n - 2), pass(Some(ctx.this()))));
    }

    #[message]
    fn answer(&mut self, value: u64, ctx: &mut Context<Self>) {
        self.value += value;
        self.missing -= 1;
        if self.missing == 0 {
            self.end(ctx);
        }
    }

    #[message]
    fn value(&self) -> u64 {
        self.value
    }
}

pub(super) fn run(system: &System, n: usize) -> playhouse::Result<bool> {
    let root = system.spawn(Fib::default());
    root.tell(Compute(pass(n), pass(None)));
    system.run_until_idle();
    Ok(root.ask(Value).wait()? == (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0)
}
