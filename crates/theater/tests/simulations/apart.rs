//! Theaters that are separated or paused for longer than `lost_after`, and connect again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::seeds::{self, Seed};
use playhouse_actor::wire::Remote;
use playhouse_actor::*;
use playhouse_theater::{Migration, Simulation, Theater, TheaterBuilder};
use serde::{Deserialize, Serialize};

const LOST_AFTER: Duration = Duration::from_secs(10);

thread_local! {
    /// The recent signs of life of each mobile actor, by the systems that it runs in.
    static SEEN: RefCell<BTreeMap<u64, Vec<u16>>> = const { RefCell::new(BTreeMap::new()) };
}

#[derive(Serialize, Deserialize)]
struct Number;
remote_message!(Number -> u64);
#[derive(Clone, Serialize, Deserialize)]
struct Tick;
remote_message!(Tick -> ());

/// An immobile actor.
struct Still(u64);
impl Actor for Still {}
impl Handler<Number> for Still {
    fn handle(&mut self, _: Number, _: &mut Context<Self>) -> u64 {
        self.0
    }
}
/// Answered with whether the actor is called by this reference.
#[derive(Serialize, Deserialize)]
struct Is(ActorRef<Still>);
remote_message!(Is -> bool);
impl Handler<Is> for Still {
    fn handle(&mut self, Is(called): Is, ctx: &mut Context<Self>) -> bool {
        ctx.this() == called
    }
}
remote!(Still: Number, Is);

#[derive(Serialize, Deserialize)]
struct Keep(ActorRef<Still>);
remote_message!(Keep -> ());
#[derive(Serialize, Deserialize)]
struct Give;
remote_message!(Give -> Option<ActorRef<Still>>);
#[derive(Default)]
struct Holder(Option<ActorRef<Still>>);
impl Actor for Holder {}
impl Handler<Keep> for Holder {
    fn handle(&mut self, Keep(kept): Keep, _: &mut Context<Self>) {
        self.0 = Some(kept);
    }
}
impl Handler<Give> for Holder {
    fn handle(&mut self, _: Give, _: &mut Context<Self>) -> Option<ActorRef<Still>> {
        self.0
    }
}
remote!(Holder: Keep, Give);

/// A mobile actor.
#[derive(Serialize, Deserialize)]
struct Roamer(u64);
impl Actor for Roamer {
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.send_every(Duration::from_millis(200), Tick);
    }
}
impl Handler<Number> for Roamer {
    fn handle(&mut self, _: Number, _: &mut Context<Self>) -> u64 {
        self.0
    }
}
impl Handler<Tick> for Roamer {
    fn handle(&mut self, _: Tick, _: &mut Context<Self>) {
        let here = playhouse_executor::current_system().unwrap().id();
        SEEN.with_borrow_mut(|seen| {
            let of = seen.entry(self.0).or_default();
            if !of.contains(&here) {
                of.push(here);
            }
        });
    }
}
remote!(mobile Roamer: Number, Tick);

/// Three theaters that know each other, with the actors that were born in each of them.
struct Three {
    net: Simulation,
    theaters: Vec<Theater>,
    /// References by the theater that uses them, and by the theater of the actor's birth.
    still: Vec<Vec<ActorRef<Still>>>,
    roamers: Vec<Vec<ActorRef<Roamer>>>,
}

impl Three {
    fn new(seed: u64) -> Three {
        let net = Simulation::new(seed);
        let system = || System::builder().workers(1).stages(2);
        let start = || Theater::builder().listen("127.0.0.1:0").system(system()).lost_after(LOST_AFTER);
        let theaters: Vec<Theater> = (0..3).map(|_| net.theater(start()).unwrap()).collect();
        for (at, theater) in theaters.iter().enumerate() {
            theater.publish("still", theater.system().spawn(Still(at as u64))).unwrap();
            theater.publish("roamer", theater.system().spawn(Roamer(at as u64))).unwrap();
        }
        let (still, roamers) =
            theaters.iter().map(|from| (known(from, &theaters, "still"), known(from, &theaters, "roamer"))).unzip();
        Three { net, theaters, still, roamers }
    }

    /// Starts the migration of a roamer to another theater.
    fn send(&self, roamer: usize, from: usize, to: usize) -> Migration {
        let peer = self.theaters[from].connect(self.theaters[to].address().unwrap()).unwrap();
        self.theaters[from].migrate(self.roamers[from][roamer], &peer)
    }

    /// Returns the theater of each roamer.
    fn lives(&self) -> Vec<usize> {
        SEEN.take();
        self.net.run_for(Duration::from_secs(1));
        let seen = SEEN.take();
        (0..3).map(|roamer| seen.get(&roamer).map_or(0, Vec::len)).collect()
    }

    /// Checks that all theaters reach each other's immobile actors by the earlier references.
    fn are_together(&self) {
        // A lost theater is called again within this time.
        let asked_until = 4 * LOST_AFTER.as_secs();
        let lives = self.lives();
        assert!(lives.iter().all(|lives| *lives <= 1), "{lives:?}");
        for from in 0..3 {
            for at in 0..3 {
                let number = at as u64;
                let still = self.still[from][at];
                let reached = (0..asked_until).any(|_| {
                    self.net.run_for(Duration::from_secs(1));
                    let answer = still.ask(Number).within(LOST_AFTER).wait();
                    let is_lost = matches!(answer, Err(AskError::TheaterLost { may_have_run: false }));
                    assert!(is_lost || answer == Ok(number), "{from} {at}: {answer:?}");
                    !is_lost
                });
                assert!(reached, "{from} does not reach the one of {at} that stays");
                // A mobile actor may be lost to this theater. An ask ends in any case.
                let answer = self.roamers[from][at].ask(Number).wait();
                let is_lost = matches!(answer, Err(AskError::Stopped | AskError::TheaterLost { .. }));
                assert!(is_lost || answer == Ok(number), "{from} {at}: {answer:?}");
            }
            assert_eq!(known::<Still>(&self.theaters[from], &self.theaters, "still"), self.still[from]);
        }
        assert_eq!(self.lives(), lives);
    }
}

fn known<A: Remote>(from: &Theater, theaters: &[Theater], name: &str) -> Vec<ActorRef<A>> {
    let find =
        |theater: &Theater| from.find(&format!("playhouse://{}/{name}", theater.address().unwrap())).wait().unwrap();
    theaters.iter().map(find).collect()
}

// GUARANTEE: A lost theater may come back
#[test]
fn theaters_that_were_apart_for_too_long_reach_each_other_by_the_references_from_before_under_every_seed() {
    for seed in seeds::range(60) {
        let _seed = Seed(seed);
        let three = Three::new(seed);
        // One roamer is in another theater, one is at home, and one is about to migrate.
        three.send(0, 0, 1).wait().unwrap();
        three.send(1, 1, 2).wait().unwrap();
        let moves = three.send(1, 2, (seed % 2) as usize);
        three.net.run_for(Duration::from_micros(seed * 37 % 2_000));
        three.net.cut(&three.theaters[0], &three.theaters[1]);
        drop(moves);
        three.net.run_for(3 * LOST_AFTER);
        // A living actor that cannot be reached is in a lost theater; it has not ended.
        let answer = three.still[0][1].ask(Number).wait();
        assert_eq!(answer, Err(AskError::TheaterLost { may_have_run: false }));
        three.net.heal(&three.theaters[0], &three.theaters[1]);
        three.are_together();
    }
}

// GUARANTEE: A lost theater may come back
/// The earlier reference is dead, because no other theater knew the actor. In its own theater the actor is found again.
#[test]
fn a_remotely_started_actor_is_found_again_after_a_long_partition() {
    for seed in seeds::range(20) {
        let _seed = Seed(seed);
        let three = Three::new(seed);
        let [home, there, _] = &three.theaters[..] else { unreachable!() };
        let peer = home.connect(there.address().unwrap()).unwrap();
        let started = home.spawn_at(&peer, &Roamer(7)).unwrap();
        home.publish("started", started).unwrap();
        let in_there: ActorRef<Roamer> =
            there.find(&format!("playhouse://{}/started", home.address().unwrap())).wait().unwrap();
        there.publish("started", in_there).unwrap();
        three.net.cut(home, there);
        three.net.run_for(3 * LOST_AFTER);
        let answer = started.ask(Number).wait();
        assert!(matches!(answer, Err(AskError::Stopped | AskError::TheaterLost { .. })), "{answer:?}");
        three.net.heal(home, there);
        three.net.run_for(LOST_AFTER);
        let anew: ActorRef<Roamer> =
            home.find(&format!("playhouse://{}/started", there.address().unwrap())).wait().unwrap();
        assert_eq!((anew.ask(Number).wait(), started.ask(Number).wait()), (Ok(7), Err(AskError::Stopped)));
        assert_ne!(anew, started);
    }
}

/// An immobile child.
#[derive(Serialize, Deserialize)]
struct Child(u64);
impl Actor for Child {}
impl Handler<Number> for Child {
    fn handle(&mut self, _: Number, _: &mut Context<Self>) -> u64 {
        self.0
    }
}
remote!(spawn Child: Number);

// GUARANTEE: A lost theater is one crash
/// The theater is the same each time, and each loss is one crash of all its children.
#[test]
fn children_in_a_theater_that_is_lost_again_and_again_start_again_each_time_under_every_seed() {
    for seed in seeds::range(10) {
        let _seed = Seed(seed);
        let net = Simulation::new(seed);
        let start = || net.theater(Theater::builder().listen("127.0.0.1:0").lost_after(LOST_AFTER)).unwrap();
        let (home, there) = (start(), start());
        let peer = home.connect(there.address().unwrap()).unwrap();
        let policy = SupervisionPolicy::one_for_one()
            .max_restarts(1_000, Duration::from_secs(1_000))
            .backoff(Duration::from_millis(100), Duration::from_secs(1));
        let supervisor = home.system().spawn(Supervisor::new(policy));
        for number in 0..2 {
            let child = ChildSpec::new(format!("still {number}"), move || Child(number)).at(&peer);
            supervisor.ask(child).wait().unwrap().unwrap();
            let roamer = ChildSpec::new(format!("roamer {number}"), move || Roamer(number)).at(&peer);
            supervisor.ask(roamer).wait().unwrap().unwrap();
        }
        let find = || {
            let still = |number| supervisor.ask(FindChild::<Child>::new(format!("still {number}"))).wait().unwrap();
            let roamer = |number| supervisor.ask(FindChild::<Roamer>::new(format!("roamer {number}"))).wait().unwrap();
            ([0, 1].map(|number| still(number).unwrap()), [0, 1].map(|number| roamer(number).unwrap()))
        };
        for _ in 0..3 {
            let former = find();
            net.cut(&home, &there);
            net.run_for(3 * LOST_AFTER);
            net.heal(&home, &there);
            net.run_for(3 * LOST_AFTER);
            let (still, roamers) = find();
            for number in 0..2 {
                assert_ne!((still[number], roamers[number]), (former.0[number], former.1[number]));
                assert_eq!(still[number].ask(Number).wait(), Ok(number as u64));
                assert_eq!(roamers[number].ask(Number).wait(), Ok(number as u64));
            }
        }
    }
}

// GUARANTEE: A lost theater is one crash
/// One of the lost children had migrated into the lost theater by itself. It starts again at once, together with all others in
/// its theater. The other lost children wait for their backoff. The theater is called then, and not before, and its loss stays
/// one crash.
#[test]
fn a_lost_theater_with_a_migrated_child_is_one_crash_under_every_seed() {
    let backoff = 10 * LOST_AFTER;
    let strategies = [SupervisionPolicy::one_for_one, SupervisionPolicy::one_for_all, SupervisionPolicy::rest_for_one];
    for (seed, strategy) in seeds::range(20).flat_map(|seed| strategies.map(|strategy| (seed, strategy))) {
        let _seed = Seed(seed);
        let net = Simulation::new(seed);
        let start = |at: String| net.theater(Theater::builder().listen(at).lost_after(LOST_AFTER)).unwrap();
        let (home, there) = (start("127.0.0.1:0".to_owned()), start("127.0.0.1:0".to_owned()));
        let address = there.address().unwrap();
        let peer = home.connect(address).unwrap();
        let policy = strategy().max_restarts(1, 100 * backoff).backoff(backoff, backoff);
        let supervisor = home.system().spawn(Supervisor::new(policy));
        let gone = supervisor.ask(ChildSpec::new("gone", || Roamer(1))).wait().unwrap().unwrap();
        for number in 2..4 {
            let child = ChildSpec::new(format!("still {number}"), move || Child(number)).at(&peer);
            supervisor.ask(child).wait().unwrap().unwrap();
        }
        home.migrate(gone, &peer).wait().unwrap();
        net.kill(&there);
        let _successor = start(address.to_string());
        let still = |number| {
            let found = supervisor.ask(FindChild::<Child>::new(format!("still {number}"))).wait().unwrap();
            found.and_then(|child| child.ask(Number).wait().ok())
        };
        net.run_for(backoff / 2);
        let gone = supervisor.ask(FindChild::<Roamer>::new("gone")).wait().unwrap().unwrap();
        assert_eq!(gone.ask(Number).wait(), Ok(1));
        assert_eq!([2, 3].map(still), [None, None]);
        net.run_for(backoff);
        assert_eq!([2, 3].map(still), [Some(2), Some(3)]);
    }
}

// GUARANTEE: A lost theater may come back
#[test]
fn a_theater_that_stood_still_for_too_long_is_reached_by_the_references_from_before_under_every_seed() {
    for seed in seeds::range(40) {
        let _seed = Seed(seed);
        let three = Three::new(seed);
        three.send(0, 0, 1).wait().unwrap();
        three.send(2, 2, 0).wait().unwrap();
        three.net.run_for(Duration::from_millis(seed));
        three.net.pause(&three.theaters[0], 3 * LOST_AFTER);
        three.net.run_for(2 * LOST_AFTER);
        let answer = three.still[1][0].ask(Number).within(2 * LOST_AFTER).wait();
        assert!(matches!(answer, Err(AskError::TheaterLost { .. })), "{answer:?}");
        three.net.run_for(2 * LOST_AFTER);
        three.are_together();
    }
}

// GUARANTEE: A lost theater may come back
#[test]
fn actors_of_a_theater_that_cannot_be_called_are_known_to_it_by_references_that_come_back_after_a_loss() {
    let net = Simulation::new(1);
    let start = |builder: TheaterBuilder| net.theater(builder.lost_after(LOST_AFTER)).unwrap();
    let (home, other) = (start(Theater::builder().listen("127.0.0.1:0")), start(Theater::builder()));
    home.publish("holder", home.system().spawn(Holder::default())).unwrap();
    let still = other.system().spawn(Still(7));
    let address = home.address().unwrap();
    let holder = other.find::<Holder>(&format!("playhouse://{address}/holder")).wait().unwrap();
    holder.ask(Keep(still)).wait().unwrap();
    let known = home.find::<Holder>(&format!("playhouse://{address}/holder")).wait().unwrap();
    let in_home = known.ask(Give).wait().unwrap().unwrap();
    assert_eq!(in_home.ask(Is(in_home)).wait(), Ok(true));

    net.cut(&home, &other);
    net.run_for(3 * LOST_AFTER);
    assert_eq!(in_home.ask(Number).wait(), Err(AskError::TheaterLost { may_have_run: false }));
    net.heal(&home, &other);
    other.connect(address).unwrap();
    // The first message over the new link names it, and an answer does, too.
    assert_eq!(in_home.ask(Is(in_home)).wait(), Ok(true));
    assert_eq!(holder.ask(Give).wait(), Ok(Some(still)));
}
