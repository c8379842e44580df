//! `rcreate`: actors that another process is asked for.

use std::convert::Infallible;

use super::*;

/// Requests one actor, which sends [`Created`] after its start.
#[derive(Serialize, Deserialize)]
pub struct Create(pub RemoteActorRef<Master>);

/// The answer: the reference of the actor.
#[derive(Serialize, Deserialize)]
struct Created(RemoteActorRef<Settler>);

struct Begin(RemoteActorRef<Master>);

#[derive(Actor, RemoteActor)]
pub struct Master {
    host: RemoteActorRef<Host>,
    own: Option<RemoteActorRef<Master>>,
    actors: u64,
    wanted: u64,
    made: Vec<RemoteActorRef<Settler>>,
    finish: Finish,
}

impl Master {
    fn want(&mut self, count: u64) {
        let Some(own) = &self.own else { return };
        let until = (self.wanted + count).min(self.actors);
        while self.wanted < until {
            self.wanted += 1;
            tell_remote(&self.host, Create(own.clone()));
        }
    }
}

impl Message<Begin> for Master {
    type Reply = ();

    async fn handle(&mut self, Begin(own): Begin, _: &mut Context<Self, Self::Reply>) {
        self.own = Some(own);
        self.want(OPEN as u64);
    }
}

#[remote_message]
impl Message<Created> for Master {
    type Reply = ();

    async fn handle(&mut self, Created(settler): Created, _: &mut Context<Self, Self::Reply>) {
        self.made.push(settler);
        self.want(1);
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
        tell_remote(&settler.0, Created(actor.into_remote_ref().await));
        Ok(settler)
    }
}

pub fn run(stage: &Stage) -> Played {
    let actors = rcreate(stage.size);
    let (finish, finished) = finish();
    let _entered = stage.runtime.enter();
    let master = spawn(Master { host: stage.hosts[0].clone(), own: None, actors, wanted: 0, made: Vec::new(), finish });
    let own = stage.runtime.block_on(master.into_remote_ref());
    finished.time(actors, actors, || tell(&master, Begin(own)))
}
