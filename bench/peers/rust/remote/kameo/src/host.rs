//! Another process. There is no remote creation: an actor of it starts actors on request.

use std::any::Any;
use std::convert::Infallible;
use std::future::pending;
use std::time::{Duration, Instant};

use super::creation::{Create, Settler};
use super::messages::rpingpong::{Ponger, WantPonger};
use super::messages::rthroughput::{Sink, WantSink};
use super::rings::{Member, WantMember};
use super::*;

/// How long another process may take to be known.
const LOOKUP_LIMIT: Duration = Duration::from_secs(30);

/// Starts actors, and keeps them.
#[derive(Actor, RemoteActor)]
pub struct Host {
    started: Vec<Box<dyn Any + Send>>,
}

impl Host {
    fn start<A: Actor<Args = A>>(&mut self, actor: A) -> ActorRef<A> {
        let actor = spawn(actor);
        self.started.push(Box::new(actor.clone()));
        actor
    }
}

fn name(position: usize) -> String {
    format!("host {position}")
}

/// Waits for the host of one of the other processes.
pub async fn find(position: usize) -> Result<RemoteActorRef<Host>, String> {
    let asked = Instant::now();
    loop {
        let wrong = match RemoteActorRef::lookup(name(position)).await {
            Ok(Some(host)) => return Ok(host),
            Ok(None) => "nobody has that name".to_owned(),
            Err(error) => error.to_string(),
        };
        if asked.elapsed() > LOOKUP_LIMIT {
            return Err(format!("`{}` does not become known: {wrong}", name(position)));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Is another process, with so many workers and at this position, which knows those before it.
pub fn serve(words: &[String]) -> Result<Infallible, String> {
    let [workers, position, others @ ..] = words else {
        return Err("another process is told its workers, its position and the addresses of others".to_owned());
    };
    let number = |word: &String| word.parse().map_err(|_| format!("`{word}` is no number"));
    let (workers, position) = (number(workers)?, number(position)?);
    runtime(workers).block_on(async {
        let address = swarm::join(&parsed(others)?).await?;
        let host = spawn(Host { started: Vec::new() });
        host.register(name(position)).await.map_err(|error| error.to_string())?;
        println!("{address}");
        pending().await
    })
}

#[remote_message]
impl Message<WantPonger> for Host {
    type Reply = RemoteActorRef<Ponger>;

    async fn handle(&mut self, _: WantPonger, _: &mut Context<Self, Self::Reply>) -> Self::Reply {
        self.start(Ponger::default()).into_remote_ref().await
    }
}

#[remote_message]
impl Message<WantSink> for Host {
    type Reply = RemoteActorRef<Sink>;

    async fn handle(&mut self, WantSink(source): WantSink, _: &mut Context<Self, Self::Reply>) -> Self::Reply {
        self.start(Sink::new(source)).into_remote_ref().await
    }
}

#[remote_message]
impl Message<WantMember> for Host {
    type Reply = RemoteActorRef<Member>;

    async fn handle(&mut self, WantMember(next): WantMember, _: &mut Context<Self, Self::Reply>) -> Self::Reply {
        self.start(Member::hopper(next)).into_remote_ref().await
    }
}

#[remote_message]
impl Message<Create> for Host {
    type Reply = ();

    async fn handle(&mut self, Create(master): Create, _: &mut Context<Self, Self::Reply>) {
        self.start(Settler(master));
    }
}
