//! The workloads on kameo, over tokio's threads.
//!
//! Mailboxes are not bounded: with the default ones, of 64 messages, actors that send to each other in a circle stand still. So a
//! message is told without waiting for room in the mailbox.

mod creation;
mod meetings;
mod messages;
mod rings;

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;

use kameo::mailbox;
use kameo::prelude::*;
use playhouse_peers::*;

fn main() -> ExitCode {
    run("kameo", env!("KAMEO_VERSION"), |workload, size, workers| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).build().expect("it starts");
        let _entered = runtime.enter();
        Some(match workload {
            "count" => messages::count::run(size),
            "pingpong" => messages::pingpong::run(size),
            "threadring" => rings::run(Rings::one(size)),
            "ringmulti" => rings::run(Rings::many(size)),
            "fjcreate" => creation::fjcreate::run(size),
            "skynet" => creation::skynet::run(size),
            "chameneos" => meetings::chameneos::run(size),
            "big" => meetings::big::run(size),
            "fib" => creation::fib::run(size),
            "executor" => messages::executor::run(size),
            "repeat" => messages::repeat::run(size),
            _ => return None,
        })
    })
}

fn spawn<A: Actor<Args = A>>(actor: A) -> ActorRef<A> {
    A::spawn_with_mailbox(actor, mailbox::unbounded())
}

fn tell<A: Message<M>, M: Send + 'static>(actor: &ActorRef<A>, message: M) {
    actor.tell(message).try_send().unwrap_or_else(|error| panic!("it has stopped: {error}"));
}

/// Has one or more actors begin, or one go on.
struct Begin;

/// An actor is done, with a number for the sum.
struct Done(u64);

#[derive(Actor)]
struct Judge(Tally);

impl Message<Done> for Judge {
    type Reply = ();

    async fn handle(&mut self, Done(number): Done, _: &mut Context<Self, Self::Reply>) {
        self.0.done(number);
    }
}
