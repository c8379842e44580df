//! The workloads on actix: an actor lives on the arbiter, a thread with its own event loop, on which it was started.
//!
//! Communicating actors share one arbiter, and independent ones are distributed. Messages go by `do_send`, which is not bounded; a
//! long list is sent in slices, because otherwise the receiver on the same arbiter would not run.

mod creation;
mod meetings;
mod messages;
mod rings;

use std::process::ExitCode;
use std::sync::Arc;

use actix::prelude::*;
use playhouse_peers::*;

fn main() -> ExitCode {
    run("actix", env!("ACTIX_VERSION"), |workload, size, workers| {
        // Arbiters belong to a system, which has no other use in this program.
        let _system = System::new();
        let stage = Stage((0..workers).map(|_| Arbiter::new().handle()).collect());
        Some(match workload {
            "count" => messages::count::run(&stage, size),
            "pingpong" => messages::pingpong::run(&stage, size),
            "threadring" => rings::run(&stage, Rings::one(size)),
            "ringmulti" => rings::run(&stage, Rings::many(size)),
            "fjcreate" => creation::fjcreate::run(&stage, size),
            "skynet" => creation::skynet::run(&stage, size),
            "chameneos" => meetings::chameneos::run(&stage, size),
            "big" => meetings::big::run(&stage, size),
            "fib" => creation::fib::run(&stage, size),
            "executor" => messages::executor::run(&stage, size),
            "repeat" => messages::repeat::run(&stage, size),
            _ => return None,
        })
    })
}

/// The arbiters.
#[derive(Clone)]
struct Stage(Arc<[ArbiterHandle]>);

impl Stage {
    /// Starts an actor on one of them, dealt by `number`.
    fn start<A: Actor<Context = Context<A>> + Send>(&self, number: u64, actor: A) -> Addr<A> {
        A::start_in_arbiter(&self.0[number as usize % self.0.len()], |_| actor)
    }
}

/// Has one or more actors begin, or one go on.
#[derive(Message)]
#[rtype(result = "()")]
struct Begin;

/// An actor is done, with a number for the sum.
#[derive(Message)]
#[rtype(result = "()")]
struct Done(u64);

struct Judge(Tally);

impl Actor for Judge {
    type Context = Context<Self>;
}

impl Handler<Done> for Judge {
    type Result = ();

    fn handle(&mut self, Done(number): Done, _: &mut Context<Self>) {
        self.0.done(number);
    }
}
