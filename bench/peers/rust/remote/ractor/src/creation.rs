//! `rcreate`: actors that another process is asked for.

use super::*;

const MASTER: &str = "master";
const HOST: &str = "host";

#[derive(RactorClusterMessage)]
enum Gather {
    Begin,
    Created,
}

struct Master {
    actors: u64,
    created: u64,
    finish: Finish,
}

impl State for Master {
    type Msg = Gather;

    fn handle(&mut self, message: Gather) {
        match message {
            Gather::Begin => {
                let host: ActorRef<Create> = node::found(HOST);
                for _ in 0..self.actors {
                    tell(&host, Create::Settler);
                }
            }
            Gather::Created => {
                self.created += 1;
                if self.created == self.actors {
                    self.finish.reached(self.created);
                }
            }
        }
    }
}

#[derive(RactorClusterMessage)]
enum Create {
    Settler,
}

/// Starts actors in another process.
struct Host {
    master: ActorRef<Gather>,
    started: Vec<ActorRef<Stay>>,
}

impl State for Host {
    type Msg = Create;

    fn handle(&mut self, _: Create) {
        self.started.push(spawn(Settler(self.master.clone())));
    }
}

/// What a settler could be told from any process.
#[derive(RactorClusterMessage)]
enum Stay {
    Here,
}

struct Settler(ActorRef<Gather>);

impl State for Settler {
    type Msg = Stay;

    fn started(&mut self) {
        tell(&self.0, Gather::Created);
    }

    fn handle(&mut self, Stay::Here: Stay) {}
}

/// Is the other process.
pub async fn join() -> Result<(), String> {
    let master = node::find(MASTER).await?;
    spawn_known(HOST, Host { master, started: Vec::new() });
    Ok(())
}

pub fn run(stage: &Stage) -> Played {
    let actors = rcreate(stage.size);
    let (finish, finished) = finish();
    let _entered = stage.runtime.enter();
    let master = spawn_known(MASTER, Master { actors, created: 0, finish });
    stage.find::<Create>(HOST)?;
    finished.time(actors, actors, || tell(&master, Gather::Begin))
}
