//! Fibonacci numbers by a tree of actors.

use playhouse::prelude::*;

const N: u64 = 5;

/// An actor that computes the number for `n` and sends it to its recipient.
struct Fibonacci {
    n: u64,
    to: Recipient<Number>,
    /// The number of the first child that has answered.
    first: Option<u64>,
    bug: bool,
}

#[derive(Message)]
struct Number(u64);

impl Actor for Fibonacci {
    fn started(&mut self, ctx: &mut Context<Self>) {
        if self.n < 2 {
            self.to.tell(Number(self.n));
            ctx.stop();
            return;
        }
        let to = ctx.this().recipient();
        for n in [self.n - 1, self.n - 2] {
            ctx.spawn(Fibonacci { n, to, first: None, bug: self.bug });
        }
    }
}

impl Handler<Number> for Fibonacci {
    fn handle(&mut self, number: Number, ctx: &mut Context<Self>) {
        match self.first {
            Some(first) if !(self.bug && first == 0) => {
                self.to.tell(Number(first + number.0));
                ctx.stop();
            }
            _ => self.first = Some(number.0),
        }
    }
}

#[derive(Default)]
struct Result(Option<u64>);

#[derive(Message)]
#[message(reply = Option<u64>)]
struct Get;

impl Actor for Result {}

impl Handler<Number> for Result {
    fn handle(&mut self, number: Number, _: &mut Context<Self>) {
        self.0 = Some(number.0);
    }
}

impl Handler<Get> for Result {
    fn handle(&mut self, _: Get, _: &mut Context<Self>) -> Option<u64> {
        self.0
    }
}

pub(super) fn compute(system: &System, bug: bool) -> u64 {
    let result = system.spawn(Result::default());
    system.spawn(Fibonacci { n: N, to: result.recipient(), first: None, bug });
    system.run_until_idle();
    result.ask(Get).wait().expect("it does not end").expect("there is a result")
}
