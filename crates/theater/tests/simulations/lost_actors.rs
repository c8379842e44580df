//! Searches for actors after a theater was lost during their migration, or after they had gone to a theater without a link to the
//! searching one.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use crate::seeds::Seed;
use playhouse_actor::*;
use playhouse_theater::{Peer, Simulation, Theater};
use serde::{Deserialize, Serialize};

const LOST_AFTER: Duration = Duration::from_secs(10);

thread_local! {
    /// The lives that have run lately, with the systems that they run in.
    static RUN: RefCell<BTreeSet<(u64, u16)>> = const { RefCell::new(BTreeSet::new()) };
    /// Number of lives that have begun.
    static BEGUN: RefCell<u64> = const { RefCell::new(0) };
}

#[derive(Serialize, Deserialize)]
struct Child(u64);
#[derive(Clone, Serialize, Deserialize)]
struct Tick;
remote_message!(Tick -> ());
#[derive(Serialize, Deserialize)]
struct Life;
remote_message!(Life -> u64);

impl Actor for Child {
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.send_every(Duration::from_millis(200), Tick);
    }
}
impl Handler<Tick> for Child {
    fn handle(&mut self, _: Tick, _: &mut Context<Self>) {
        let here = playhouse_executor::current_system().unwrap().id();
        RUN.with_borrow_mut(|run| run.insert((self.0, here)));
    }
}
impl Handler<Life> for Child {
    fn handle(&mut self, _: Life, _: &mut Context<Self>) -> u64 {
        self.0
    }
}
remote!(mobile Child: Tick, Life);

fn start(net: &Simulation) -> Theater {
    let system = System::builder().workers(1).stages(2);
    net.theater(Theater::builder().listen("127.0.0.1:0").system(system).lost_after(LOST_AFTER)).unwrap()
}

fn link(one: &Theater, other: &Theater) -> Peer {
    one.connect(other.address().unwrap()).unwrap()
}

/// Starts a supervised child.
fn supervised(home: &Theater) -> (ActorRef<Supervisor>, ActorRef<Child>) {
    BEGUN.set(0);
    let supervisor = home.system().spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
    let next = || {
        BEGUN.with_borrow_mut(|begun| *begun += 1);
        Child(BEGUN.with_borrow(|begun| *begun))
    };
    (supervisor, supervisor.ask(ChildSpec::new("child", next)).wait().unwrap().unwrap())
}

/// Sends the child from `via` to the theater of `to`, as an actor of `via` does. Does not wait for it.
fn send_on(home: &Theater, child: ActorRef<Child>, via: &Theater, to: &Peer) {
    home.publish("child", child).unwrap();
    let there = via.find::<Child>(&format!("playhouse://{}/child", home.address().unwrap())).wait().unwrap();
    drop(via.migrate(there, to));
}

/// Returns the lives that run, with their systems.
fn running(net: &Simulation) -> BTreeSet<(u64, u16)> {
    RUN.take();
    net.run_for(Duration::from_secs(1));
    RUN.take()
}

// GUARANTEE: Alive once
#[test]
fn an_actor_in_transit_from_a_lost_theater_lives_once_under_every_seed() {
    let (mut went_on, mut again) = (0, 0);
    for seed in 0..crate::seeds::or(60) {
        let _seed = Seed(seed);
        let net = Simulation::new(seed);
        net.vary_latencies();
        let [home, via, end] = [(); 3].map(|()| start(&net));
        let (home_via, _, via_end) = (link(&home, &via), link(&home, &end), link(&via, &end));
        let (supervisor, child) = supervised(&home);
        home.migrate(child, &home_via).wait().unwrap();
        send_on(&home, child, &via, &via_end);
        net.run_for(Duration::from_micros(net.choose(2_000) as u64));
        // The home theater receives the shutdown announcement while messages to the third theater may still be in transit.
        drop(via.shutdown_within(Duration::from_millis(1)));
        net.run_for(2 * LOST_AFTER);
        let running = running(&net);
        assert_eq!(running.len(), 1, "{running:?}");
        let now = supervisor.ask(FindChild::<Child>::new("child")).wait().unwrap().unwrap();
        let incarnation = now.ask(Life).wait().unwrap();
        assert_eq!(running.first().map(|(incarnation, _)| *incarnation), Some(incarnation));
        *if incarnation == 1 { &mut went_on } else { &mut again } += 1;
    }
    assert!(went_on > crate::seeds::or(60) / 10, "{went_on} went on, and {again} were started again");
}

// GUARANTEE: Alive once
#[test]
fn an_actor_is_located_over_a_third_theater_under_every_seed() {
    for seed in 0..crate::seeds::or(5) {
        let _seed = Seed(seed);
        let net = Simulation::new(seed);
        let [home, via, hub, end] = [(); 4].map(|()| start(&net));
        let (home_via, _, _) = (link(&home, &via), link(&home, &hub), link(&hub, &end));
        // This child has no supervisor that makes it report its location.
        let child = home.system().spawn(Child(1));
        home.migrate(child, &home_via).wait().unwrap();
        send_on(&home, child, &via, &link(&via, &end));
        net.run_for(Duration::from_secs(1));
        net.kill(&via);
        net.run_for(2 * LOST_AFTER);
        assert_eq!(running(&net), [(1, end.system().core().id())].into());
        assert_eq!(child.ask(Life).wait(), Ok(1));
    }
}

// GUARANTEE: Alive once
#[test]
fn an_actor_in_a_theater_with_one_link_is_located_under_every_seed() {
    for seed in 0..crate::seeds::or(5) {
        let _seed = Seed(seed);
        let net = Simulation::new(seed);
        net.vary_latencies();
        let [home, via, end, user] = [(); 4].map(|()| start(&net));
        let (home_via, via_end, _) = (link(&home, &via), link(&via, &end), link(&user, &via));
        let child = home.system().spawn(Child(1));
        home.migrate(child, &home_via).wait().unwrap();
        home.publish("child", child).unwrap();
        let there = via.find::<Child>(&format!("playhouse://{}/child", home.address().unwrap())).wait().unwrap();
        via.publish("child", there).unwrap();
        // The user's theater has a link with `via` only.
        let known = user.find::<Child>(&format!("playhouse://{}/child", via.address().unwrap())).wait().unwrap();
        assert_eq!(known.ask(Life).wait(), Ok(1));
        via.migrate(there, &via_end).wait().unwrap();
        net.kill(&via);
        net.run_for(2 * LOST_AFTER);
        assert_eq!(running(&net), [(1, end.system().core().id())].into());
        assert_eq!(known.ask(Life).wait(), Ok(1));
        assert_eq!(child.ask(Life).wait(), Ok(1));
    }
}

// GUARANTEE: Alive once
#[test]
fn an_actor_is_located_without_a_link_of_its_birth_theater_under_every_seed() {
    for seed in 0..crate::seeds::or(5) {
        let _seed = Seed(seed);
        let net = Simulation::new(seed);
        net.vary_latencies();
        let [home, first, second, end] = [(); 4].map(|()| start(&net));
        let links = [link(&home, &first), link(&first, &second), link(&second, &end)];
        let child = home.system().spawn(Child(1));
        home.publish("child", child).unwrap();
        home.migrate(child, &links[0]).wait().unwrap();
        let there = first.find::<Child>(&format!("playhouse://{}/child", home.address().unwrap())).wait().unwrap();
        first.publish("child", there).unwrap();
        first.migrate(there, &links[1]).wait().unwrap();
        let there = second.find::<Child>(&format!("playhouse://{}/child", first.address().unwrap())).wait().unwrap();
        assert!(!home.peers().iter().any(|peer| peer.address() == second.address()));
        second.migrate(there, &links[2]).wait().unwrap();
        net.kill(&first);
        net.kill(&second);
        net.run_for(3 * LOST_AFTER);
        assert_eq!(running(&net), [(1, end.system().core().id())].into());
        assert_eq!(child.ask(Life).wait(), Ok(1));
    }
}

// GUARANTEE: Alive once
#[test]
fn an_actor_is_located_despite_a_stale_third_theater_under_every_seed() {
    for seed in 0..crate::seeds::or(5) {
        let _seed = Seed(seed);
        let net = Simulation::new(seed);
        let [home, first, via, end] = [(); 4].map(|()| start(&net));
        let [home_first, _, _] = [&first, &via, &end].map(|other| link(&home, other));
        let (first_via, via_end) = (link(&first, &via), link(&via, &end));
        let child = home.system().spawn(Child(1));
        home.publish("child", child).unwrap();
        let name = format!("playhouse://{}/child", home.address().unwrap());
        let [by_first, by_via] = [&first, &via].map(|theater| theater.find::<Child>(&name).wait().unwrap());
        home.migrate(child, &home_first).wait().unwrap();
        first.migrate(by_first, &first_via).wait().unwrap();
        via.migrate(by_via, &via_end).wait().unwrap();
        // The home theater still assumes it in the first one, which has no link with its present theater.
        net.kill(&via);
        net.run_for(2 * LOST_AFTER);
        assert_eq!(running(&net), [(1, end.system().core().id())].into());
        assert_eq!(by_first.ask(Life).wait(), Ok(1));
        assert_eq!(child.ask(Life).wait(), Ok(1));
    }
}
