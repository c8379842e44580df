//! The end of a theater, while connections break.

use std::time::Duration;

use playhouse_actor::*;
use playhouse_theater::{Simulation, Theater};
use serde::{Deserialize, Serialize};

/// Takes so long to answer.
#[derive(Serialize, Deserialize)]
struct Nap(Duration);
remote_message!(Nap -> ());

#[derive(Serialize, Deserialize)]
struct Sleeper;
impl Actor for Sleeper {}
impl AsyncHandler<Nap> for Sleeper {
    async fn handle(&mut self, Nap(time): Nap, ctx: &mut Context<Self>) {
        let silent = ctx.spawn(Silent);
        let _ = silent.ask(Nap(time)).within(time).await;
        silent.kill();
    }
}
remote!(mobile Sleeper: Nap);

/// Answers never.
struct Silent;
impl Actor for Silent {}
impl AsyncHandler<Nap> for Silent {
    async fn handle(&mut self, _: Nap, _: &mut Context<Self>) {
        std::future::pending().await
    }
}

/// Asks a sleeper, and keeps what it is answered.
struct Asker(ActorRef<Sleeper>, Vec<Result<(), AskError>>);
impl Actor for Asker {
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.this().tell(Nap(Duration::from_secs(1)));
        ctx.send_after(Duration::from_millis(800), Nap(Duration::from_secs(8)));
    }
}
impl Handler<Nap> for Asker {
    fn handle(&mut self, nap: Nap, ctx: &mut Context<Self>) {
        ctx.ask(self.0, nap).then(|asker, answer, _| asker.1.push(answer));
    }
}

struct Answers;
impl Message for Answers {
    type Reply = Vec<Result<(), AskError>>;
}
impl Handler<Answers> for Asker {
    fn handle(&mut self, _: Answers, _: &mut Context<Self>) -> Vec<Result<(), AskError>> {
        self.1.clone()
    }
}

#[test]
fn answers_that_are_to_come_over_a_theater_that_is_evacuated_come_before_it_ends() {
    for seed in 0..20 {
        let net = Simulation::new(seed);
        let [home, last, next] = [(); 3].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap());
        last.publish("sleeper", last.system().spawn(Sleeper));
        let sleeper = home.find::<Sleeper>(&format!("playhouse://{}/sleeper", last.address().unwrap())).wait().unwrap();
        let asker = home.system().spawn(Asker(sleeper, Vec::new()));
        // It is asked again while it is about to leave, and answers that from the next theater.
        net.run_for(Duration::from_millis(500));
        let peer = last.connect(next.address().unwrap()).unwrap();
        assert_eq!(last.evacuate(&[peer]).moved, 1);
        last.shutdown().unwrap();
        assert_eq!(asker.ask(Answers).wait(), Ok(vec![Ok(()), Ok(())]), "seed {seed}");
    }
}

#[test]
fn a_theater_that_was_called_takes_leave_at_once_though_connections_break_under_every_seed() {
    for seed in 0..100 {
        let net = Simulation::new(seed);
        let [leaves, one] = [(); 2].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap());
        // It cannot be called.
        let other = net.theater(Theater::builder()).unwrap();
        let [peer, _] = [&one, &other].map(|theater| theater.connect(leaves.address().unwrap()).unwrap());
        net.break_by_chance(Duration::from_millis(2));
        let begun = net.now();
        leaves.shutdown().unwrap();
        let took = net.now() - begun;
        assert!(took < Duration::from_secs(4), "seed {seed}: it took {took:?}");
        net.calm();
        net.run_for(Duration::from_secs(1));
        assert!(peer.is_lost(), "seed {seed}: it has not said goodbye");
    }
}

/// The other theater does not hear of the actor any more.
#[test]
fn a_migration_that_waits_while_its_theater_is_shut_down_ends_under_every_seed() {
    for seed in 0..20 {
        let net = Simulation::new(seed);
        let [here, there] = [(); 2].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap());
        let peer = here.connect(there.address().unwrap()).unwrap();
        let sleeper = here.system().spawn(Sleeper);
        net.cut(&here, &there);
        let migration = here.migrate(sleeper, &peer);
        net.run_for(Duration::from_micros(net.choose(200) as u64));
        here.shutdown_within(Duration::from_secs(1)).unwrap();
        let ended = migration.wait();
        assert!(ended.is_err(), "seed {seed}: {ended:?}");
    }
}
