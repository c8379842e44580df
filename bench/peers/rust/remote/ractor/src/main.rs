//! The workloads of several processes on ractor, with `ractor_cluster`.
//!
//! There is no remote creation, and no message names an actor: an actor with remote senders joins a process group, and they look it
//! up. Therefore each process starts its own actors.

mod creation;
mod messages;
mod node;
mod rings;

use std::marker::PhantomData;
use std::process::ExitCode;

use playhouse_peers::*;
use ractor::{Actor, ActorProcessingErr, ActorRef, ActorRuntime, Message, RpcReplyPort};
use ractor_cluster::{RactorClusterMessage, RactorMessage};
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    if let Some(words) = partner::told() {
        match node::serve(&words) {
            Ok(never) => match never {},
            Err(wrong) => fail(&wrong),
        }
    }
    run("ractor", env!("RACTOR_VERSION"), |workload, size, workers| {
        let play: fn(&Stage) -> Played = match workload {
            "rpingpong" => messages::rpingpong::run,
            "rthroughput" => messages::rthroughput::run,
            "rcreate" => creation::run,
            _ if rrings(workload, size).is_some() => rings::run,
            _ => return None,
        };
        Some(Stage::build(workload, size, workers).and_then(|stage| play(&stage)))
    })
}

/// Tokio, with as many threads as workers.
fn runtime(workers: usize) -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build().expect("it starts")
}

/// What a workload is played on: this process, and others that it is connected with.
struct Stage<'a> {
    workload: &'a str,
    size: Size,
    runtime: Runtime,
}

impl<'a> Stage<'a> {
    fn build(workload: &'a str, size: Size, workers: usize) -> Result<Self, String> {
        let runtime = runtime(workers);
        let stage = Self { workload, size, runtime };
        stage.runtime.block_on(node::start_all(workload, size, workers))?;
        Ok(stage)
    }

    /// Of another process.
    fn find<M: Message>(&self, group: &str) -> Result<ActorRef<M>, String> {
        self.runtime.block_on(node::find(group))
    }

    /// Waits for an answer from one.
    fn ask<M: Message>(&self, actor: &ActorRef<M>, question: fn(RpcReplyPort<u64>) -> M) -> Result<u64, String> {
        let asked = actor.call(question, Some(node::ANSWER_LIMIT));
        match self.runtime.block_on(asked).map_err(|error| error.to_string())? {
            ractor::rpc::CallResult::Success(answer) => Ok(answer),
            missing => Err(format!("there is no answer: {missing:?}")),
        }
    }
}

/// An actor whose state is its start argument.
struct Stateful<S>(PhantomData<S>);

/// What such an actor does with a message.
trait State: Send + Sync + 'static {
    type Msg: Message;

    fn started(&mut self) {}

    fn handle(&mut self, message: Self::Msg);
}

impl<S: State> Actor for Stateful<S> {
    type Msg = S::Msg;
    type State = S;
    type Arguments = S;

    async fn pre_start(&self, _: ActorRef<S::Msg>, mut state: S) -> Result<S, ActorProcessingErr> {
        state.started();
        Ok(state)
    }

    async fn handle(&self, _: ActorRef<S::Msg>, message: S::Msg, state: &mut S) -> Result<(), ActorProcessingErr> {
        state.handle(message);
        Ok(())
    }
}

/// Answers the waiting process.
fn answer(to: RpcReplyPort<u64>, number: u64) {
    to.send(number).unwrap_or_else(|error| fail(&format!("nobody waits for the answer: {error}")));
}

fn spawn<S: State>(state: S) -> ActorRef<S::Msg> {
    ActorRuntime::spawn_instant(None, Stateful(PhantomData), state).expect("it has no name that could be taken").0
}

/// One that other processes know by the name of a group.
fn spawn_known<S: State>(group: &str, state: S) -> ActorRef<S::Msg> {
    let actor = spawn(state);
    ractor::pg::join(group.to_owned(), vec![actor.get_cell()]);
    actor
}

fn tell<M: Message>(actor: &ActorRef<M>, message: M) {
    actor.cast(message).unwrap_or_else(|error| fail(&format!("an actor has stopped: {error}")));
}
