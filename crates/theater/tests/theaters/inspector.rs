//! Inspections of a theater, and of its links.

use std::time::Duration;

use crate::support::{LIMIT, builder, theater};
use playhouse_actor::*;
use playhouse_theater::{FindError, INSPECTOR, Inspect, Inspector, LinkState, Simulation, Snapshot, Theater};

/// Sends itself a message now and then, or blocks until the test releases it.
#[derive(Default)]
struct Clock {
    ticks: u64,
}

#[derive(Clone)]
struct Tick;
impl Message for Tick {
    type Reply = u64;
}

impl Actor for Clock {}
impl Handler<Tick> for Clock {
    fn handle(&mut self, _: Tick, _: &mut Context<Self>) -> u64 {
        self.ticks += 1;
        self.ticks
    }
}

fn inspector(of: &Theater, from: &Theater) -> ActorRef<Inspector> {
    let name = format!("playhouse://{}/{INSPECTOR}", of.address().unwrap());
    from.find::<Inspector>(&name).wait().unwrap()
}

fn handled(snapshot: &Snapshot, actor: &str, message: &str) -> (u64, u64) {
    let line = snapshot.messages.iter().find(|line| line.actor == actor && line.message == message);
    line.map_or((0, 0), |line| (line.handled, line.total))
}

const SECOND: Duration = Duration::from_secs(1);

fn inspected(net: &Simulation) -> Theater {
    let system = System::builder().workers(2).stages(8);
    net.theater(Theater::builder().listen("127.0.0.1:0").system(system).inspected(true)).unwrap()
}

#[test]
fn the_inspector_counts_its_window_and_nothing_before_the_first_ask() {
    let net = Simulation::new(1);
    let (here, there) = (inspected(&net), inspected(&net));
    let clock = there.system().spawn_with(SpawnOptions::new().name("tower"), Clock::default());
    (0..5).for_each(|_| clock.tell(Tick));
    net.run_for(SECOND);
    assert!(there.system().handler_times().is_empty());

    let inspector = inspector(&there, &here);
    let first = inspector.ask(Inspect).wait().unwrap();
    assert_eq!((first.window, handled(&first, "Clock", "Tick")), (Duration::ZERO, (0, 0)));
    for turn in 1..=3 {
        (0..7 * turn).for_each(|_| clock.tell(Tick));
        net.run_for(SECOND);
        let seen = inspector.ask(Inspect).wait().unwrap();
        assert!(seen.window >= SECOND, "{:?}", seen.window);
        assert_eq!(handled(&seen, "Clock", "Tick"), (7 * turn, 7 * (1..=turn).sum::<u64>()));
        let clock = seen.actors.iter().find(|line| line.actor == "Clock").unwrap();
        assert_eq!((&*clock.name, clock.handled, clock.queued), ("tower", 7 * turn, 0));
        let stage = seen.stages.iter().find(|line| line.stage == clock.stage).unwrap();
        assert!(stage.handled >= 7 * turn);
        assert!(seen.workers.iter().map(|line| line.handled).sum::<u64>() >= 7 * turn);
        assert_eq!((seen.address, seen.process), (there.address(), std::process::id()));
        assert_eq!(seen.counters["dead_letters"], 0);
        assert!(seen.actors_alive >= 2);
    }
}

// GUARANTEE: Observation needs permission
#[test]
fn nothing_is_counted_any_more_when_nobody_asks() {
    let net = Simulation::new(2);
    let (here, there) = (inspected(&net), inspected(&net));
    let clock = there.system().spawn(Clock::default());
    let inspector = inspector(&there, &here);
    let ticks = || {
        clock.tell(Tick);
        net.run_for(Duration::from_millis(1));
        there
            .system()
            .handler_times()
            .iter()
            .filter(|times| times.message.ends_with("Tick"))
            .map(|times| times.count)
            .sum()
    };
    let counted: u64 = ticks();
    assert_eq!(counted, 0);
    inspector.ask(Inspect).wait().unwrap();
    assert_eq!((ticks(), ticks()), (1, 2));
    // Questions come now and then: the counting continues.
    for _ in 0..5 {
        net.run_for(4 * SECOND);
        inspector.ask(Inspect).wait().unwrap();
    }
    assert_eq!(ticks(), 3);
    net.run_for(6 * SECOND);
    assert_eq!(ticks(), 3);
    // And again, from a window of its own.
    let again = inspector.ask(Inspect).wait().unwrap();
    assert_eq!(again.window, Duration::ZERO);
    assert_eq!(ticks(), 4);
}

#[test]
fn askers_at_the_same_time_see_the_same_window() {
    let net = Simulation::new(3);
    let (here, there) = (inspected(&net), inspected(&net));
    let inspector = inspector(&there, &here);
    inspector.ask(Inspect).wait().unwrap();
    net.run_for(SECOND);
    let [one, other] = [(); 2].map(|()| inspector.ask(Inspect).wait().unwrap());
    assert!(one.window >= SECOND);
    assert_eq!((one.window, one.uptime), (other.window, other.uptime));
}

#[test]
fn peers_are_listed_with_what_their_links_are_at() {
    let net = Simulation::new(4);
    let [here, there] = [(); 2].map(|()| {
        let builder = Theater::builder().listen("127.0.0.1:0").lost_after(20 * SECOND).inspected(true);
        net.theater(builder).unwrap()
    });
    assert!(here.peers().is_empty());
    let peer = here.connect(there.address().unwrap()).unwrap();
    net.run_for(SECOND);
    let state = |theater: &Theater| {
        let [peer] = &theater.peers()[..] else { panic!("{:?}", theater.peers()) };
        peer.state()
    };
    for theater in [&here, &there] {
        let state = state(theater);
        assert_eq!(state.link, LinkState::Linked);
        assert!(state.for_so_long <= net.now());
    }
    let snapshot = inspector(&there, &here).ask(Inspect).wait().unwrap();
    assert_eq!((snapshot.links.len(), snapshot.links[0].address), (1, here.address()));
    // Messages that are sent while nothing arrives are in transit.
    net.cut(&here, &there);
    net.break_connections(&here, &there);
    net.run_for(3 * SECOND);
    let ask = inspector(&here, &here);
    let (broken, waits) = (state(&here), state(&there));
    assert!(matches!(broken.link, LinkState::Broken | LinkState::CallingAgain), "{broken:?}");
    assert_eq!(waits.link, LinkState::Broken, "it was called, and does not call");
    assert!(broken.for_so_long >= 2 * SECOND && broken.for_so_long <= 4 * SECOND, "{broken:?}");
    let links = ask.ask(Inspect).wait().unwrap().links;
    assert_eq!(links[0].state, broken.link);
    net.heal(&here, &there);
    net.run_for(3 * SECOND);
    assert_eq!((state(&here).link, state(&there).link), (LinkState::Linked, LinkState::Linked));
    net.kill(&there);
    net.run_for(60 * SECOND);
    assert_eq!(peer.state().link, LinkState::Lost);
    assert!(here.peers().is_empty());
}

#[test]
fn packets_are_counted_until_they_are_acknowledged() {
    let net = Simulation::new(5);
    let (here, there) = (inspected(&net), inspected(&net));
    let peer = here.connect(there.address().unwrap()).unwrap();
    let inspector = inspector(&there, &here);
    net.run_for(3 * SECOND);
    assert_eq!((peer.state().packets, peer.state().bytes), (0, 0));
    net.cut(&here, &there);
    inspector.tell(Inspect);
    net.run_for(Duration::from_millis(10));
    let state = peer.state();
    assert!(state.packets == 1 && state.bytes > 0, "{state:?}");
    net.heal(&here, &there);
    net.run_for(10 * SECOND);
    assert_eq!((peer.state().packets, peer.state().bytes), (0, 0));
}

// GUARANTEE: Observation needs permission
#[test]
fn a_theater_that_was_not_told_to_shows_itself_to_nobody() {
    let (here, there) = (theater(), theater());
    let name = format!("playhouse://{}/{INSPECTOR}", there.address().unwrap());
    match here.find::<Inspector>(&name).wait() {
        Err(FindError::Unknown(unknown)) => assert_eq!(unknown, INSPECTOR),
        other => panic!("{other:?}"),
    }
}

/// With threads: an actor that always has a hundred messages before it.
#[test]
fn mail_for_an_actor_is_counted_in_its_workers_queue() {
    struct Busy;
    impl Actor for Busy {}
    impl Handler<Tick> for Busy {
        fn handle(&mut self, _: Tick, ctx: &mut Context<Self>) -> u64 {
            ctx.this().tell(Tick);
            0
        }
    }
    const WAITING: u64 = 100;
    let there = builder().inspected(true).start().unwrap();
    let inspector = inspector(&there, &there);
    let busy = there.system().spawn(Busy);
    (0..WAITING).for_each(|_| busy.tell(Tick));
    let deadline = std::time::Instant::now() + LIMIT;
    loop {
        let seen = inspector.ask(Inspect).within(LIMIT).wait().unwrap();
        let line = seen.actors.iter().find(|line| line.actor == "Busy");
        if let Some(line) = line.filter(|line| line.queued > 0 && line.handled > 0) {
            assert!(line.queued <= WAITING && !line.busy.is_zero(), "{line:?}");
            let stage = seen.stages.iter().find(|of| of.stage == line.stage).unwrap();
            assert_eq!(stage.queued, line.queued);
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{seen:?}");
        std::thread::yield_now();
    }
    busy.kill();
    there.shutdown().unwrap();
}
