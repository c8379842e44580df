//! `rcreate`: actors that another process is asked for.

use std::convert::Infallible;

use super::*;

#[derive(Serialize, Deserialize)]
pub struct Create(pub RemoteActorRef<Master>);

/// With who it is.
#[derive(Serialize, Deserialize)]
struct Created(RemoteActorRef<Settler>);

struct Begin(RemoteActorRef<Master>);

#[derive(Actor, RemoteActor)]
pub struct Master {
    host: RemoteActorRef<Host>,
    actors: u64,
    made: Vec<RemoteActorRef<Settler>>,
    finish: Finish,
}

impl Message<Begin> for Master {
    type Reply = ();

    async fn handle(&mut self, Begin(own): Begin, _: &mut Context<Self, Self::Reply>) {
        let host = self.host.clone();
        stream::iter(0..self.actors)
            .for_each_concurrent(OPEN, move |_| deliver(host.clone(), Create(own.clone())))
            .await;
    }
}

#[remote_message]
impl Message<Created> for Master {
    type Reply = ();

    async fn handle(&mut self, Created(settler): Created, _: &mut Context<Self, Self::Reply>) {
        self.made.push(settler);
        if self.made.len() as u64 == self.actors {
            self.finish.reached(self.actors);
        }
    }
}

#[derive(RemoteActor)]
pub struct Settler(pub RemoteActorRef<Master>);

impl Actor for Settler {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(settler: Self, actor: ActorRef<Self>) -> Result<Self, Infallible> {
        tell_there(&settler.0, Created(actor.into_remote_ref().await));
        Ok(settler)
    }
}

pub fn run(stage: &Stage) -> Played {
    let actors = rcreate(stage.size);
    let (finish, finished) = finish();
    let _entered = stage.runtime.enter();
    let master = spawn(Master { host: stage.hosts[0].clone(), actors, made: Vec::new(), finish });
    let own = stage.runtime.block_on(master.into_remote_ref());
    finished.time(actors, actors, || tell(&master, Begin(own)))
}
