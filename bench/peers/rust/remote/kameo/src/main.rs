//! The workloads of several processes on kameo, whose remote actors are reached over libp2p.
//!
//! A message is a request of its own, with a response: `tell` sends one and goes on, and one may overtake another. Therefore no
//! workload depends on their order. A sender of many messages awaits the responses, because a connection bounds the open requests.

mod creation;
mod host;
mod messages;
mod rings;
mod swarm;

use std::process::ExitCode;

use host::Host;
use kameo::mailbox;
use kameo::prelude::*;
use libp2p::Multiaddr;
use libp2p::futures::{StreamExt, stream};
use playhouse_peers::*;
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    if let Some(words) = partner::told() {
        match host::serve(&words) {
            Ok(never) => match never {},
            Err(wrong) => fail(&wrong),
        }
    }
    run("kameo", env!("KAMEO_VERSION"), |workload, size, workers| {
        let play: fn(&Stage) -> Played = match workload {
            "rpingpong" => messages::rpingpong::run,
            "rthroughput" => messages::rthroughput::run,
            "rcreate" => creation::run,
            _ if rrings(workload, size).is_some() => rings::run,
            _ => return None,
        };
        // It lives until the process ends, because other processes are connected with it.
        Some(Stage::build(workload, size, workers).and_then(|stage| play(Box::leak(Box::new(stage)))))
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
    hosts: Vec<RemoteActorRef<Host>>,
}

impl<'a> Stage<'a> {
    fn build(workload: &'a str, size: Size, workers: usize) -> Result<Self, String> {
        let mut addresses: Vec<String> = Vec::new();
        for position in 0..partner::partners(workload) {
            let (workers, position) = (workers.to_string(), position.to_string());
            let others = addresses.iter().map(String::as_str);
            let words: Vec<&str> = [&*workers, &*position].into_iter().chain(others).collect();
            addresses.push(partner::start(partner::again(&words)?)?);
        }
        let runtime = runtime(workers);
        let hosts = runtime.block_on(async {
            swarm::join(&parsed(&addresses)?).await?;
            let mut hosts = Vec::new();
            for position in 0..addresses.len() {
                hosts.push(host::find(position).await?);
            }
            Ok::<_, String>(hosts)
        })?;
        Ok(Self { workload, size, runtime, hosts })
    }

    /// Lets another process start an actor, and waits for it.
    async fn start<A, M>(&self, host: usize, wanted: M) -> Result<RemoteActorRef<A>, String>
    where
        A: Actor + RemoteActor,
        Host: Message<M, Reply = RemoteActorRef<A>> + RemoteMessage<M>,
        M: Serialize + Send + Sync + 'static,
    {
        self.hosts[host].ask(&wanted).await.map_err(|error| format!("no actor is started there: {error}"))
    }
}

fn parsed(addresses: &[String]) -> Result<Vec<Multiaddr>, String> {
    let parse = |address: &String| address.parse().map_err(|error| format!("`{address}` is no address: {error}"));
    addresses.iter().map(parse).collect()
}

fn spawn<A: Actor<Args = A>>(actor: A) -> ActorRef<A> {
    A::spawn_with_mailbox(actor, mailbox::unbounded())
}

/// Tells an actor of this process.
fn tell<A: Message<M>, M: Send + 'static>(actor: &ActorRef<A>, message: M) {
    actor.tell(message).try_send().unwrap_or_else(|error| fail(&format!("an actor has stopped: {error}")));
}

/// Tells one of another. Where that fails, [`swarm`] ends this process.
fn tell_remote<A, M>(actor: &RemoteActorRef<A>, message: M)
where
    A: Message<M> + RemoteActor + RemoteMessage<M>,
    M: Serialize + Send + 'static,
{
    actor.tell(&message).send().unwrap_or_else(|error| fail(&format!("a message is not written: {error}")));
}

/// The bound of an actor's open messages, and of requested actors that have not started yet.
const OPEN: usize = 100;

/// Tells one of another process, and waits until the message is in its mailbox.
async fn deliver<A, M>(actor: RemoteActorRef<A>, message: M)
where
    A: Message<M> + RemoteActor + RemoteMessage<M>,
    M: Serialize + Send + Sync + 'static,
{
    if let Err(error) = actor.tell(&message).send_ack().await {
        fail(&format!("a message is not delivered: {error}"));
    }
}

/// How many messages have come.
#[derive(Serialize, Deserialize)]
struct AskSeen;
