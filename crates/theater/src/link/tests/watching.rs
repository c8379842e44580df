//! Tests: watches of migrating actors.

use std::sync::mpsc;

use playhouse_actor::wire::WireForm;
use playhouse_actor::*;
use playhouse_executor::Choices;
use serde::{Deserialize, Serialize};

use super::*;
use crate::{Simulation, Theater};

/// An actor that migrates.
#[derive(Serialize, Deserialize)]
struct Rover;
impl Actor for Rover {}

#[derive(Serialize, Deserialize)]
struct Hop(SocketAddr);
impl Message for Hop {
    type Reply = ();
    const WIRE: Option<WireForm<Hop>> = Some(WireForm::of());
}
impl Handler<Hop> for Rover {
    fn handle(&mut self, Hop(to): Hop, ctx: &mut Context<Self>) {
        ctx.migrate_to(to);
    }
}

/// Asks for the port of the theater that the actor is in.
#[derive(Serialize, Deserialize)]
struct Where;
impl Message for Where {
    type Reply = u16;
    const WIRE: Option<WireForm<Where>> = Some(WireForm::of());
}
impl Handler<Where> for Rover {
    fn handle(&mut self, _: Where, _: &mut Context<Self>) -> u16 {
        playhouse_executor::current_system().unwrap().id()
    }
}
remote!(mobile Rover: Hop, Where);

/// Watches rovers, and reports their ends.
struct Looker(usize, mpsc::Sender<(usize, ActorId)>);
impl Actor for Looker {
    fn terminated(&mut self, terminated: Terminated, _: &mut Context<Self>) {
        assert_eq!(terminated.reason, StopReason::Stopped);
        self.1.send((self.0, terminated.who)).unwrap();
    }
}

struct Look(ActorRef<Rover>, bool);
impl Message for Look {
    type Reply = ();
}
impl Handler<Look> for Looker {
    fn handle(&mut self, Look(rover, looks): Look, ctx: &mut Context<Self>) {
        if looks { ctx.watch(rover) } else { ctx.unwatch(rover) }
    }
}

fn theater(net: &Simulation) -> Theater {
    net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap()
}

/// Returns the watches that the theater keeps for others, and those that others keep for it.
fn watches(theater: &Theater) -> (usize, usize) {
    let links = theater.theater_core.all_links();
    let kept = links.iter().map(|link| link.watches.load(Ordering::Relaxed)).sum();
    (kept, links.iter().map(|link| lock(&link.out).watches.len()).sum())
}

// GUARANTEE: Watches of migrating actors
/// Watches begin and end while the watched actors leave, come and pass: none is lost or told twice, and none is left over.
#[test]
fn watches_of_actors_that_move_are_kept_once_and_end_under_every_seed() {
    const ROVERS: usize = 6;
    for seed in 0..60 {
        let net = Simulation::new(seed);
        let mut choices = Choices::new(seed);
        let theaters = [(); 3].map(|()| theater(&net));
        let (told, downs) = mpsc::channel();
        let lookers = [0, 1, 2].map(|at: usize| theaters[at].system().spawn(Looker(at, told.clone())));
        // Indexed by the theater that knows them.
        let mut rovers: [Vec<ActorRef<Rover>>; 3] = Default::default();
        for number in 0..ROVERS {
            let home = &theaters[number % 3];
            let rover = home.system().spawn(Rover);
            home.publish(number.to_string(), rover).unwrap();
            for (at, theater) in theaters.iter().enumerate() {
                let name = format!("playhouse://{}/{number}", home.address().unwrap());
                rovers[at].push(theater.find::<Rover>(&name).wait().unwrap());
            }
        }
        let mut looks = [[false; ROVERS]; 3];
        for _ in 0..1_500 {
            let (at, number) = (choices.below(3), choices.below(ROVERS));
            match choices.below(4) {
                0 => rovers[at][number].tell(Hop(theaters[choices.below(3)].address().unwrap())),
                1 => net.run_for(Duration::from_micros(choices.below(1_000) as u64)),
                _ => {
                    looks[at][number] = !looks[at][number];
                    lookers[at].tell(Look(rovers[at][number], looks[at][number]));
                }
            }
        }
        net.run_for(Duration::from_secs(5));
        let mut watched = 0;
        for (at, theater) in theaters.iter().enumerate() {
            for (number, rover) in rovers[at].iter().enumerate() {
                let lives_in_this_theater = rover.ask(Where).wait() == Ok(theater.system().core().id());
                watched += usize::from(looks[at][number] && !lives_in_this_theater);
                // A theater that forwards mail says so ever more rarely. After that the mail goes directly to the actor, and so do watches.
                for _ in 0..32 {
                    rover.ask(Where).wait().unwrap();
                }
            }
        }
        net.run_for(Duration::from_secs(5));
        let all = theaters.each_ref().map(watches);
        let sum = all.iter().fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1));
        assert_eq!(sum, (watched, watched), "seed {seed}: {all:?}");
        assert_eq!(downs.try_iter().count(), 0, "seed {seed}: a watcher was told of an end that was none");

        rovers[0].iter().for_each(|rover| rover.stop());
        net.run_for(Duration::from_secs(5));
        let told: Vec<(usize, ActorId)> = downs.try_iter().collect();
        for (at, looks) in looks.iter().enumerate() {
            for (number, looks) in looks.iter().enumerate() {
                let times = told.iter().filter(|told| **told == (at, rovers[at][number].id())).count();
                assert_eq!(times, usize::from(*looks), "seed {seed}: {at} {number}");
            }
        }
        assert_eq!(theaters.each_ref().map(watches), [(0, 0); 3], "seed {seed}: watches of actors that have ended");
    }
}

// GUARANTEE: Watches of migrating actors
/// The state of a watch does not grow with the migrations of the watched actor. A notice that is wrapped at each migration would overflow the stack.
#[test]
fn an_actor_that_is_watched_and_moves_thousands_of_times_ends_like_any_other() {
    let net = Simulation::new(1);
    let (here, there) = (theater(&net), theater(&net));
    let (told, downs) = mpsc::channel();
    let looker = here.system().spawn(Looker(0, told));
    let rover = here.system().spawn(Rover);
    looker.ask(Look(rover, true)).wait().unwrap();
    for _ in 0..5_000 {
        for theater in [&there, &here] {
            rover.tell(Hop(theater.address().unwrap()));
            let arrives = || rover.ask(Where).wait() == Ok(theater.system().core().id());
            while !arrives() {}
        }
    }
    rover.stop();
    net.run_for(Duration::from_secs(5));
    assert_eq!(downs.try_iter().collect::<Vec<_>>(), [(0, rover.id())]);
}
