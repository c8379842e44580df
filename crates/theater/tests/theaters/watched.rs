//! Actors that are watched, migrate, and end at once.

use std::collections::HashMap;
use std::future::Future;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clerks::{ask, theaters};
use crate::faulty::eventually;
use crate::support::LIMIT;
use playhouse_actor::*;
use playhouse_theater::{Peer, Simulation, Theater};
use serde::{Deserialize, Serialize};

/// The cause of an actor's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum How {
    Not,
    Panics,
    Stops,
    Fails,
}

impl How {
    fn happens<A: Actor>(self, ctx: &mut Context<A>) {
        match self {
            How::Not => {}
            How::Panics => panic!("meant"),
            How::Stops => ctx.stop(),
            How::Fails => ctx.fail(std::io::Error::other("meant")),
        }
    }

    fn reason(self) -> StopReason {
        match self {
            How::Not | How::Stops => StopReason::Stopped,
            How::Panics => StopReason::Panicked("meant".to_owned()),
            How::Fails => StopReason::Failed("meant".to_owned()),
        }
    }
}

const ENDS: [How; 3] = [How::Panics, How::Stops, How::Fails];

/// The gates that actors wait for as they leave, by their numbers.
type Gates = HashMap<u64, (Sender<()>, Receiver<()>)>;

static GATES: Mutex<Option<Gates>> = Mutex::new(None);

fn gates() -> MutexGuard<'static, Option<Gates>> {
    GATES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Serialize, Deserialize)]
struct Mortal {
    departs: How,
    arrives: How,
    gate: u64,
    taken: u64,
}

impl Mortal {
    fn that(arrives: How) -> Mortal {
        Mortal { departs: How::Not, arrives, gate: 0, taken: 0 }
    }
}

/// Answered with the number of earlier messages.
#[derive(Serialize, Deserialize)]
struct Count;
remote_message!(Count -> u64);

#[derive(Serialize, Deserialize)]
struct End(How);
remote_message!(End -> ());

impl Actor for Mortal {
    fn migrating(&mut self, ctx: &mut Context<Self>) {
        let gate = gates().as_mut().and_then(|gates| gates.remove(&self.gate));
        if let Some((departs, goes)) = gate {
            departs.send(()).unwrap();
            goes.recv_timeout(LIMIT).unwrap();
        }
        self.departs.happens(ctx);
    }

    fn migrated(&mut self, ctx: &mut Context<Self>) {
        self.arrives.happens(ctx);
    }
}
impl Handler<Count> for Mortal {
    fn handle(&mut self, _: Count, _: &mut Context<Self>) -> u64 {
        self.taken += 1;
        self.taken
    }
}
impl Handler<End> for Mortal {
    fn handle(&mut self, End(how): End, ctx: &mut Context<Self>) {
        how.happens(ctx);
    }
}
remote!(mobile Mortal: Count, End);

/// Reports its notifications.
struct Eye {
    of: ActorRef<Mortal>,
    at: usize,
    told: Sender<(usize, Terminated)>,
}
impl Actor for Eye {
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.watch(self.of);
    }

    fn terminated(&mut self, terminated: Terminated, _: &mut Context<Self>) {
        self.told.send((self.at, terminated)).unwrap();
    }
}

/// Theaters, an actor of the first one as each knows it, and a watcher in each.
struct Scene {
    theaters: Vec<Theater>,
    peers: Vec<Vec<Option<Peer>>>,
    known: Vec<ActorRef<Mortal>>,
    eyes: Vec<ActorRef<Eye>>,
    told: Receiver<(usize, Terminated)>,
}

impl Scene {
    fn new(start: impl FnOnce(&Theater) -> ActorRef<Mortal>) -> Scene {
        let (theaters, peers) = theaters(3);
        let mortal = start(&theaters[0]);
        theaters[0].publish("mortal", mortal).unwrap();
        let name = format!("playhouse://{}/mortal", theaters[0].address().unwrap());
        let known: Vec<_> = theaters.iter().map(|theater| theater.find::<Mortal>(&name).wait().unwrap()).collect();
        let (told_by, told) = mpsc::channel();
        let eyes = theaters.iter().zip(&known).zip(0..).map(|((theater, of), at)| {
            let eye = theater.system().spawn(Eye { of: *of, at, told: told_by.clone() });
            theater.system().run_until_idle();
            // Earlier requests to watch are in force after this answer.
            ask(*of, Count);
            eye
        });
        let eyes = eyes.collect();
        Scene { theaters, peers, known, eyes, told }
    }

    fn named(mortal: Mortal) -> Scene {
        Scene::new(|theater| theater.system().spawn_with(SpawnOptions::new().name("mortal"), mortal))
    }

    fn supervised(make: impl FnMut() -> Mortal + Send + 'static) -> Scene {
        let policy = SupervisionPolicy::one_for_one().max_restarts(100, Duration::from_secs(1));
        Scene::new(|theater| {
            ask(theater.system().spawn(Supervisor::new(policy)), ChildSpec::new("mortal", make)).unwrap()
        })
    }

    fn to(&self, theater: usize) -> &Peer {
        self.peers[0][theater].as_ref().unwrap()
    }

    /// Checks that all watchers are notified of this, and each of them once.
    fn ends(self, how: How) {
        for _ in &self.eyes {
            let (at, terminated) = self.told.recv_timeout(LIMIT).unwrap();
            assert_eq!(
                (terminated.name.as_deref(), &terminated.reason),
                (Some("mortal"), &how.reason()),
                "in {at}: {terminated:?}"
            );
        }
        self.eyes.iter().for_each(|eye| eye.stop());
        let told = self.told.recv_timeout(LIMIT);
        assert_eq!(told, Err(RecvTimeoutError::Disconnected), "told twice");
    }
}

// GUARANTEE: An actor migrates completely
#[test]
fn an_earlier_watcher_is_told_why_a_migrating_actor_ends_on_arrival() {
    for how in ENDS {
        let scene = Scene::named(Mortal::that(how));
        scene.theaters[0].migrate(scene.known[0], scene.to(1)).wait().unwrap();
        scene.ends(how);
    }
}

// GUARANTEE: An actor migrates completely
#[test]
fn an_earlier_watcher_is_told_why_a_migrated_actor_ends_by_a_message() {
    for (how, from) in ENDS.into_iter().zip(0..) {
        let scene = Scene::named(Mortal::that(How::Not));
        scene.theaters[0].migrate(scene.known[0], scene.to(1)).wait().unwrap();
        scene.known[from].tell(End(how));
        scene.ends(how);
    }
}

// GUARANTEE: An actor migrates completely
#[test]
fn a_child_that_is_restarted_as_it_arrives_has_not_ended() {
    for how in [How::Panics, How::Fails] {
        let scene = Scene::supervised(move || Mortal::that(how));
        scene.theaters[0].migrate(scene.known[0], scene.to(1)).wait().unwrap();
        for known in &scene.known {
            ask(*known, Count);
        }
        assert_eq!(scene.told.try_recv(), Err(mpsc::TryRecvError::Empty));
        scene.known[0].stop();
        scene.ends(How::Stops);
    }
}

// GUARANTEE: An actor migrates completely
#[test]
fn a_child_that_is_restarted_as_it_arrives_keeps_its_mailbox() {
    for (how, gate) in [(How::Panics, 1), (How::Fails, 2)] {
        let scene = Scene::supervised(move || Mortal { gate, ..Mortal::that(how) });
        let ((departs, departing), (go, goes)) = (mpsc::channel(), mpsc::channel());
        gates().get_or_insert_default().insert(gate, (departs, goes));
        let migration = scene.theaters[0].migrate(scene.known[0], scene.to(1));
        departing.recv_timeout(LIMIT).unwrap();
        let asked: Vec<_> = (0..100).map(|_| scene.known[0].ask(Count).within(LIMIT)).collect();
        go.send(()).unwrap();
        migration.wait().unwrap();
        // It is another state: the former one counted the first messages.
        let counts: Vec<u64> = asked.into_iter().map(|count| count.wait().unwrap()).collect();
        assert_eq!(counts, (1..=100).collect::<Vec<u64>>());
    }
}

// GUARANTEE: An actor migrates completely
#[test]
fn each_watcher_in_each_theater_is_told_the_name() {
    for moves in 0..4 {
        let scene = Scene::named(Mortal::that(How::Not));
        for at in 0..moves {
            let (from, to) = (at % 3, (at + 1) % 3);
            let peer = scene.peers[from][to].as_ref().unwrap();
            scene.theaters[from].migrate(scene.known[from], peer).wait().unwrap();
        }
        scene.known[2].stop();
        scene.ends(How::Stops);
    }
}

#[test]
fn an_actor_that_crashes_as_it_departs_has_not_stopped() {
    for how in ENDS {
        let scene = Scene::supervised(move || Mortal { departs: how, ..Mortal::that(How::Not) });
        let why = scene.theaters[0].migrate(scene.known[0], scene.to(1)).wait().unwrap_err();
        if how == How::Stops {
            assert_eq!(why, MigrateError::Stopped);
            eventually(|| scene.known[0].is_stopped().then_some(()));
        } else {
            assert_eq!(why, MigrateError::Crashed);
            assert_eq!(ask(scene.known[0], Count), 1, "it was given another state");
        }
    }
}

// GUARANTEE: Watching
#[test]
fn the_end_of_a_migrating_actor_is_awaited_from_outside() {
    for seed in 0..100 {
        let net = Simulation::new(seed);
        let theaters = [(); 3].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap());
        let [home, others @ ..] = &theaters;
        let peers = others.each_ref().map(|theater| home.connect(theater.address().unwrap()).unwrap());
        let mortal = home.system().spawn(Mortal::that(How::Not));
        let (mut ends, mut noop) = (Vec::new(), std::task::Context::from_waker(std::task::Waker::noop()));
        for _ in 0..3 {
            ends.push(Box::pin(mortal.ended()));
            let _goes = home.migrate(mortal, &peers[net.choose(2)]);
            net.run_for(Duration::from_micros(net.choose(3_000) as u64));
            // A caller that has given up causes no harm.
            drop(mortal.ended());
        }
        let how = ENDS[net.choose(ENDS.len())];
        mortal.tell(End(how));
        net.run_until_idle();
        for mut end in ends {
            assert_eq!(end.as_mut().poll(&mut noop), std::task::Poll::Ready(how.reason()), "seed {seed}");
        }
        // The loss of a theater is the end of its actors.
        let other = home.system().spawn(Mortal::that(How::Not));
        home.migrate(other, &peers[0]).wait().unwrap();
        let mut end = Box::pin(other.ended());
        net.run_until_idle();
        net.kill(&theaters[1]);
        net.run_until_idle();
        assert_eq!(end.as_mut().poll(&mut noop), std::task::Poll::Ready(StopReason::TheaterLost), "seed {seed}");
    }
}
