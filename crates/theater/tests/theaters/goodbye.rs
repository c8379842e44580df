//! The end of a theater while connections break.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use playhouse_actor::*;
use playhouse_theater::{NameServer, NameServerClient, Simulation, Theater};
use serde::{Deserialize, Serialize};

/// The time that it takes to answer.
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

/// Never answers.
struct Silent;
impl Actor for Silent {}
impl AsyncHandler<Nap> for Silent {
    async fn handle(&mut self, _: Nap, _: &mut Context<Self>) {
        std::future::pending().await
    }
}

/// Asks a sleeper, and keeps the answers.
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

#[derive(Serialize, Deserialize)]
struct Count;
remote_message!(Count -> ());

struct Counted;
impl Message for Counted {
    type Reply = u32;
}

/// Counts messages from other theaters.
struct Counter(u32);
impl Actor for Counter {}
impl Handler<Count> for Counter {
    fn handle(&mut self, _: Count, _: &mut Context<Self>) {
        self.0 += 1;
    }
}
impl Handler<Counted> for Counter {
    fn handle(&mut self, _: Counted, _: &mut Context<Self>) -> u32 {
        self.0
    }
}
remote!(Counter: Count);

struct Answers;
impl Message for Answers {
    type Reply = Vec<Result<(), AskError>>;
}
impl Handler<Answers> for Asker {
    fn handle(&mut self, _: Answers, _: &mut Context<Self>) -> Vec<Result<(), AskError>> {
        self.1.clone()
    }
}

/// Makes the guest migrate to the other theater after a time, after an ask to the sleeper, if there is one.
#[derive(Serialize, Deserialize)]
struct Leave(Duration);
remote_message!(Leave -> ());

/// Answered with the reason why the actor stayed.
#[derive(Serialize, Deserialize)]
struct Stays;
remote_message!(Stays -> Vec<String>);

/// The outcome of an ask.
#[derive(Serialize, Deserialize)]
struct Slept(Result<(), AskError>);
remote_message!(Slept -> ());

#[derive(Serialize, Deserialize)]
struct Guest {
    to: SocketAddr,
    sleeper: Option<ActorRef<Sleeper>>,
    stays: Vec<String>,
}
impl Actor for Guest {
    fn migration_failed(&mut self, why: MigrateError, _: &mut Context<Self>) {
        self.stays.push(why.to_string());
    }
}
impl Handler<Leave> for Guest {
    fn handle(&mut self, Leave(after): Leave, ctx: &mut Context<Self>) {
        if let Some(sleeper) = self.sleeper {
            ctx.ask(sleeper, Nap(Duration::from_secs(60))).pipe_to_self(Slept);
        }
        match after.is_zero() {
            true => ctx.migrate_to(self.to),
            false => drop(ctx.send_after(after, Leave(Duration::ZERO))),
        }
    }
}
impl Handler<Slept> for Guest {
    fn handle(&mut self, _: Slept, _: &mut Context<Self>) {
        unreachable!("the theater that it has asked from has ended");
    }
}
impl Handler<Stays> for Guest {
    fn handle(&mut self, _: Stays, _: &mut Context<Self>) -> Vec<String> {
        self.stays.clone()
    }
}
remote!(mobile Guest: Leave, Slept, Stays);

// GUARANTEE: A theater that ends is lost at once
#[test]
fn a_theater_with_nothing_to_move_does_not_drain_for_long_beside_frozen_and_dead_theaters() {
    for seed in 0..10 {
        for is_frozen in [true, false] {
            let net = Simulation::new(seed);
            let [ends, stays] = [(); 2].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap());
            ends.connect(stays.address().unwrap()).unwrap();
            net.run_for(Duration::from_secs(2));
            match is_frozen {
                true => net.pause(&stays, Duration::from_secs(60)),
                false => net.kill(&stays),
            }
            net.run_for(Duration::from_millis(100));
            let before = net.now();
            ends.evacuate(&ends.peers());
            assert!(net.now() - before < Duration::from_secs(5), "{:?}", net.now() - before);
            let before = net.now();
            ends.shutdown().unwrap();
            assert!(net.now() - before < Duration::from_secs(6), "{:?}", net.now() - before);
        }
    }
}

// GUARANTEE: A theater that ends is lost at once
#[test]
fn a_frozen_theater_gets_messages_that_were_sent_to_it_and_the_announcement() {
    let net = Simulation::new(1);
    let [ends, stays] = [(); 2].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap());
    let counter = stays.system().spawn(Counter(0));
    stays.publish("counter", counter).unwrap();
    let name = format!("playhouse://{}/counter", stays.address().unwrap());
    let remote = ends.find::<Counter>(&name).wait().unwrap();
    net.run_for(Duration::from_secs(2));
    net.pause(&stays, Duration::from_secs(3));
    remote.tell(Count);
    let before = net.now();
    ends.shutdown().unwrap();
    assert!(net.now() - before > Duration::from_millis(2_900), "the message is waited for");
    assert_eq!(counter.ask(Counted).wait(), Ok(1));
    net.run_for(Duration::from_secs(1));
    assert!(stays.peers().is_empty());
}

// GUARANTEE: A theater that ends is lost at once
#[test]
fn an_actor_that_goes_to_a_theater_that_shuts_down_stays_under_every_seed() {
    for seed in 0..20 {
        let net = Simulation::new(seed);
        let [here, there, silent] = [(); 3].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap());
        here.connect(there.address().unwrap()).unwrap();
        silent.publish("sleeper", silent.system().spawn(Sleeper)).unwrap();
        let sleeper = format!("playhouse://{}/sleeper", silent.address().unwrap());
        let sleeper = there.find::<Sleeper>(&sleeper).wait().unwrap();
        let to = there.address().unwrap();
        let guest = here.system().spawn(Guest { to, sleeper: None, stays: Vec::new() });
        guest.tell(Leave(Duration::from_millis(500)));
        // It waits for the acknowledgement of its announcement for its whole limit.
        net.cut(&there, &silent);
        sleeper.tell(Nap(Duration::ZERO));
        there.shutdown_within(Duration::from_secs(2)).unwrap();
        let stays = guest.ask(Stays).wait().unwrap();
        assert_eq!(
            stays,
            [
                "the other theater does not take the actor: the theater lets no actors in: it is evacuated, or shuts down"
            ],
            "seed {seed}"
        );
    }
}

thread_local! {
    /// Reports of dead letters. A simulation is one thread.
    static DEAD: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

// GUARANTEE: Answers follow the asker
#[test]
fn the_answer_for_an_actor_that_has_left_a_theater_that_ends_is_reported_under_every_seed() {
    for seed in 0..20 {
        let net = Simulation::new(seed);
        let theaters = [(); 3].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap());
        let [here, there, bedroom] = theaters;
        here.system().on_dead_letter(|letter| DEAD.with_borrow_mut(|dead| dead.push(letter.to_string())));
        bedroom.publish("sleeper", bedroom.system().spawn(Sleeper)).unwrap();
        let sleeper = format!("playhouse://{}/sleeper", bedroom.address().unwrap());
        let sleeper = Some(here.find::<Sleeper>(&sleeper).wait().unwrap());
        let to = there.address().unwrap();
        let guest = here.system().spawn(Guest { to, sleeper, stays: Vec::new() });
        here.publish("guest", guest).unwrap();
        let known = there.find::<Guest>(&format!("playhouse://{}/guest", here.address().unwrap())).wait().unwrap();
        guest.tell(Leave(Duration::ZERO));
        net.run_for(Duration::from_millis(100));
        here.shutdown_within(Duration::from_secs(1)).unwrap();
        assert_eq!(DEAD.take(), ["AnswerTo<Nap> for Guest: the system was shut down"], "seed {seed}");
        assert_eq!(known.ask(Stays).wait(), Ok(Vec::new()), "seed {seed}: it lives");
    }
}

// GUARANTEE: A theater can be evacuated
#[test]
fn answers_that_are_to_come_over_a_theater_that_is_evacuated_come_before_it_ends() {
    for seed in 0..20 {
        let net = Simulation::new(seed);
        let [home, last, next] = [(); 3].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap());
        last.publish("sleeper", last.system().spawn(Sleeper)).unwrap();
        let sleeper = home.find::<Sleeper>(&format!("playhouse://{}/sleeper", last.address().unwrap())).wait().unwrap();
        let asker = home.system().spawn(Asker(sleeper, Vec::new()));
        // It is asked again while it is about to leave, and answers from the next theater.
        net.run_for(Duration::from_millis(500));
        let peer = last.connect(next.address().unwrap()).unwrap();
        assert_eq!(last.evacuate(&[peer]).moved, 1);
        last.shutdown().unwrap();
        assert_eq!(asker.ask(Answers).wait(), Ok(vec![Ok(()), Ok(())]), "seed {seed}");
    }
}

// GUARANTEE: A theater that ends is lost at once
#[test]
fn a_called_theater_announces_its_shutdown_at_once_under_every_seed() {
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

/// The other theater learns nothing of the actor any more.
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

/// A message with this number of bytes.
#[derive(Serialize, Deserialize)]
struct Bulk(Vec<u8>);
remote_message!(Bulk -> u64);

#[derive(Serialize, Deserialize)]
struct Store(Vec<u8>);
impl Actor for Store {}
impl Handler<Bulk> for Store {
    fn handle(&mut self, Bulk(bytes): Bulk, _: &mut Context<Self>) -> u64 {
        bytes.len() as u64
    }
}
remote!(mobile Store: Bulk);

#[test]
fn a_theater_that_is_dropped_works_on_and_takes_messages_and_actors_up_to_16_mib() {
    const MIB: usize = 1024 * 1024;
    let [here, there] = [(); 2].map(|()| Theater::builder().listen("127.0.0.1:0").start().unwrap());
    let peer = here.connect(there.address().unwrap()).unwrap();
    there.publish("store", there.system().spawn(Store(Vec::new()))).unwrap();
    let store = here.find::<Store>(&format!("playhouse://{}/store", there.address().unwrap())).wait().unwrap();
    drop(there);
    let ask = |mib: usize| store.ask(Bulk(vec![1; mib * MIB])).within(Duration::from_secs(60)).wait();
    assert_eq!(ask(15), Ok(15 * MIB as u64));
    assert!(matches!(ask(17), Err(AskError::Unreachable(why)) if why.contains("bytes")));
    store.tell(Bulk(vec![1; 17 * MIB]));
    here.system().run_until_idle();
    assert_eq!(here.system().stats().total.dead_letters, 1);
    let large = here.system().spawn(Store(vec![1; 17 * MIB]));
    assert!(matches!(here.migrate(large, &peer).wait(), Err(MigrateError::Unwritable(_))));
    assert_eq!(large.ask(Bulk(vec![1; 3])).wait(), Ok(3));
    here.migrate(here.system().spawn(Store(vec![1; 15 * MIB])), &peer).wait().unwrap();
}

#[test]
fn a_theater_may_be_shut_down_without_a_limit() {
    let [one, other] = [(); 2].map(|()| Theater::builder().listen("127.0.0.1:0").start().unwrap());
    one.connect(other.address().unwrap()).unwrap();
    one.shutdown_within(Duration::MAX).unwrap();
    other.shutdown_within(Duration::MAX).unwrap();
}

// GUARANTEE: A theater that ends is lost at once
/// Each theater may have closed its connections, and freed its address, before the announcements of the others are acknowledged.
#[test]
fn theaters_that_shut_down_at_the_same_time_do_not_wait_for_each_other() {
    for _ in 0..60 {
        let theaters = [(); 3].map(|()| Theater::builder().listen("127.0.0.1:0").start().unwrap());
        let addresses = theaters.each_ref().map(|theater| theater.address().unwrap());
        for (theater, next) in theaters.iter().zip(addresses.iter().cycle().skip(1)) {
            let peer = theater.connect(*next).unwrap();
            for _ in 0..4 {
                theater.migrate(theater.system().spawn(Sleeper), &peer).wait().unwrap();
            }
        }
        let barrier = Barrier::new(theaters.len());
        let took = std::thread::scope(|scope| {
            let ends = theaters.map(|theater| {
                scope.spawn(|| {
                    barrier.wait();
                    let begun = Instant::now();
                    theater.shutdown().unwrap();
                    begun.elapsed()
                })
            });
            ends.map(|end| end.join().unwrap())
        });
        assert!(took.iter().all(|took| *took < Duration::from_secs(4)), "they took {took:?}");
    }
}

// GUARANTEE: A shutdown delivers first
/// The name server is in a third theater, so the first message has the counter's theater called.
#[test]
fn a_message_to_a_theater_that_is_not_called_yet_arrives_before_the_sender_has_shut_down() {
    let start = || Theater::builder().listen("127.0.0.1:0").start().unwrap();
    let (registry, host) = (start(), start());
    registry.publish("names", registry.system().spawn(NameServer::new())).unwrap();
    let names = format!("playhouse://{}/names", registry.address().unwrap());
    let counter = host.system().spawn(Counter(0));
    host.find::<NameServer>(&names).wait().unwrap().put("counter", counter).wait().unwrap();
    for told in 1..=20 {
        let guest = start();
        let dead = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&dead);
        guest.system().on_dead_letter(move |_| _ = counted.fetch_add(1, Ordering::Relaxed));
        let found = guest.find::<NameServer>(&names).wait().unwrap().get::<Counter>("counter").wait().unwrap();
        found.tell(Count);
        let begun = Instant::now();
        guest.shutdown_within(Duration::from_secs(30)).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(20), "the message was acknowledged long before");
        assert_eq!(dead.load(Ordering::Relaxed), 0);
        assert_eq!(counter.ask(Counted).wait(), Ok(told));
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    while host.peers().len() > 1 {
        assert!(Instant::now() < deadline, "a guest has announced no shutdown: {:?}", host.peers());
        std::thread::yield_now();
    }
}

/// All other theaters may have ended before the signal handler of this one evacuates it.
#[test]
fn an_evacuation_without_a_target_reports_all_actors() {
    let theater = Theater::builder().listen("127.0.0.1:0").start().unwrap();
    let stays = theater.system().spawn(Sleeper);
    let evacuation = theater.evacuate(&[]);
    assert_eq!(evacuation.moved, 0);
    let [(id, why)] = &evacuation.stayed[..] else { panic!("{evacuation:?}") };
    assert_eq!(*id, stays.id());
    assert_eq!(why.to_string(), "the other theater cannot be reached: there is no theater to take it");
    assert_eq!(stays.ask(Nap(Duration::ZERO)).wait(), Ok(()));
    theater.shutdown().unwrap();
}

struct Flood(ActorRef<Counter>, u32);
impl Message for Flood {
    type Reply = ();
}

/// Sends more than a window.
struct Flooder;
impl Actor for Flooder {}
impl Handler<Flood> for Flooder {
    fn handle(&mut self, Flood(to, many): Flood, _: &mut Context<Self>) {
        (0..many).for_each(|_| to.tell(Count));
    }
}

/// Three actors send `many` messages each, and their theater is shut down at once.
fn flood_and_shut_down(sender: Theater, to: ActorRef<Counter>, many: u32, run: &str) {
    let flooders = [(); 3].map(|()| sender.system().spawn(Flooder));
    flooders.iter().for_each(|flooder| flooder.tell(Flood(to, many)));
    let report = sender.shutdown_within(Duration::from_secs(300)).unwrap();
    assert_eq!(report.undelivered, 0, "{run}");
}

// GUARANTEE: A shutdown delivers first
/// Most messages wait behind the gate of the link when the shutdown begins.
#[test]
fn messages_that_wait_for_a_full_link_arrive_before_the_sender_has_shut_down_under_every_seed() {
    const MANY: u32 = 3_000;
    for seed in 0..20 {
        let net = Simulation::new(seed);
        let [sender, receiver] =
            [(); 2].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0").window(4096)).unwrap());
        let counter = receiver.system().spawn(Counter(0));
        receiver.publish("counter", counter).unwrap();
        let name = format!("playhouse://{}/counter", receiver.address().unwrap());
        let found = sender.find::<Counter>(&name).wait().unwrap();
        flood_and_shut_down(sender, found, MANY, &format!("seed {seed}"));
        assert_eq!(counter.ask(Counted).wait(), Ok(3 * MANY), "seed {seed}");
        receiver.shutdown().unwrap();
    }
}

// GUARANTEE: A shutdown delivers first
#[test]
fn messages_that_wait_for_a_full_link_arrive_before_the_sender_has_shut_down() {
    const MANY: u32 = 100_000;
    let start = || Theater::builder().listen("127.0.0.1:0").window(4096).start().unwrap();
    let (sender, receiver) = (start(), start());
    let counter = receiver.system().spawn(Counter(0));
    receiver.publish("counter", counter).unwrap();
    let name = format!("playhouse://{}/counter", receiver.address().unwrap());
    let found = sender.find::<Counter>(&name).wait().unwrap();
    sender.system().spawn(Flooder).tell(Flood(found, MANY));
    let report = sender.shutdown_within(Duration::from_secs(120)).unwrap();
    assert_eq!(report.undelivered, 0);
    assert_eq!(counter.ask(Counted).wait(), Ok(MANY));
    receiver.shutdown().unwrap();
}

// GUARANTEE: A shutdown delivers first
/// More than a window is kept before the theater is reached, so the rest waits for the link after that.
#[test]
fn more_than_a_window_for_a_theater_that_is_not_called_yet_arrives_under_every_seed() {
    const MANY: u32 = 2_000;
    for seed in 0..20 {
        let net = Simulation::new(seed);
        let [registry, sender, receiver] =
            [(); 3].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0").window(4096)).unwrap());
        registry.publish("names", registry.system().spawn(NameServer::new())).unwrap();
        let names = format!("playhouse://{}/names", registry.address().unwrap());
        let counter = receiver.system().spawn(Counter(0));
        receiver.find::<NameServer>(&names).wait().unwrap().put("counter", counter).wait().unwrap();
        let found = sender.find::<NameServer>(&names).wait().unwrap().get::<Counter>("counter").wait().unwrap();
        flood_and_shut_down(sender, found, MANY, &format!("seed {seed}"));
        assert_eq!(counter.ask(Counted).wait(), Ok(3 * MANY), "seed {seed}");
        receiver.shutdown().unwrap();
        registry.shutdown().unwrap();
    }
}

/// Watches the counter, which has its theater called.
struct Watches(ActorRef<Counter>);
impl Actor for Watches {
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.watch(self.0);
    }
}

// GUARANTEE: A theater that ends is lost at once
/// The call may have been accepted when the shutdown begins.
#[test]
fn a_theater_that_is_being_called_hears_of_the_shutdown_under_every_seed() {
    let mut calls_in_progress = 0;
    for seed in 0..60 {
        let net = Simulation::new(seed);
        let [registry, guest, host] = [(); 3].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap());
        registry.publish("names", registry.system().spawn(NameServer::new())).unwrap();
        let names = format!("playhouse://{}/names", registry.address().unwrap());
        let counter = host.system().spawn(Counter(0));
        host.find::<NameServer>(&names).wait().unwrap().put("counter", counter).wait().unwrap();
        let found = guest.find::<NameServer>(&names).wait().unwrap().get::<Counter>("counter").wait().unwrap();
        guest.system().spawn(Watches(found));
        net.run_for(Duration::from_micros(100 * seed));
        calls_in_progress += u32::from(host.peers().len() == 1);
        guest.shutdown().unwrap();
        net.run_for(Duration::from_secs(2));
        assert_eq!(host.peers().len(), 1, "seed {seed}: the host has another peer than the registry");
        host.shutdown().unwrap();
        registry.shutdown().unwrap();
    }
    assert!(calls_in_progress > 0, "each call had ended before");
}

#[test]
fn a_second_shutdown_ends_at_once() {
    let theater = Theater::builder().listen("127.0.0.1:0").start().unwrap();
    theater.system().spawn(Sleeper);
    theater.clone().shutdown().unwrap();
    let begun = Instant::now();
    theater.shutdown_within(Duration::from_secs(600)).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

/// Nothing is left to do in the simulation, so its time stands still.
#[test]
fn a_simulated_shutdown_does_not_wait_for_a_handler_that_never_ends() {
    let net = Simulation::new(1);
    let builder = Theater::builder().system(System::builder().await_handlers(true));
    let theater = net.theater(builder).unwrap();
    let silent = theater.system().spawn(Silent);
    silent.tell(Nap(Duration::ZERO));
    theater.clone().shutdown_within(Duration::from_secs(5)).unwrap();
    theater.shutdown().unwrap();
}
