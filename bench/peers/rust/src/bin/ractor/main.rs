//! The workloads on ractor, over tokio's threads.
//!
//! Actors are started by `spawn_instant`, which does not wait until they run, and messages go by `cast`: mailboxes are not bounded.
//! Actors are not linked: a link is a lock and an entry in a table, and no workload needs supervision.

use std::marker::PhantomData;
mod creation;
mod meetings;
mod messages;
mod rings;

use std::process::ExitCode;
use std::sync::Arc;

use playhouse_peers::*;
use ractor::{Actor, ActorProcessingErr, ActorRef, ActorRuntime, Message};

fn main() -> ExitCode {
    run("ractor", env!("RACTOR_VERSION"), |workload, size, workers| {
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

/// An actor whose state is its start argument.
struct Stateful<S>(PhantomData<S>);

/// What such an actor does with a message.
trait State: Send + Sync + 'static {
    type Msg: Message;

    fn started(&mut self, _myself: &ActorRef<Self::Msg>) {}

    fn handle(&mut self, myself: &ActorRef<Self::Msg>, message: Self::Msg);
}

impl<S: State> Actor for Stateful<S> {
    type Msg = S::Msg;
    type State = S;
    type Arguments = S;

    async fn pre_start(&self, myself: ActorRef<S::Msg>, mut state: S) -> Result<S, ActorProcessingErr> {
        state.started(&myself);
        Ok(state)
    }

    async fn handle(&self, myself: ActorRef<S::Msg>, message: S::Msg, state: &mut S) -> Result<(), ActorProcessingErr> {
        state.handle(&myself, message);
        Ok(())
    }
}

fn spawn<S: State>(state: S) -> ActorRef<S::Msg> {
    ActorRuntime::spawn_instant(None, Stateful(PhantomData), state).expect("it has no name that could be taken").0
}

fn tell<M: Message>(actor: &ActorRef<M>, message: M) {
    actor.cast(message).expect("it has not stopped");
}

/// An actor is done, with a number for the sum.
struct Done(u64);

struct Judge(Tally);

impl State for Judge {
    type Msg = Done;

    fn handle(&mut self, _: &ActorRef<Done>, Done(number): Done) {
        self.0.done(number);
    }
}
