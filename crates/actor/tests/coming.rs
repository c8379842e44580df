//! An actor that comes back to its place, at the moment at which something is sent to it there.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use playhouse_actor::away::{ForwardedMessage, Forwarder};
use playhouse_actor::wire::{
    self, ActorMetadata, Arrival, ArrivalRoute, Codec, MigrationVTable, Settle, WireForm, Written,
};
use playhouse_actor::*;
use playhouse_executor::StubRoute;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Counter {
    heard: u32,
}

#[derive(Serialize, Deserialize)]
struct Word;
impl Message for Word {
    type Reply = u32;
    const WIRE: Option<WireForm<Word>> = Some(WireForm::of());
}
impl Actor for Counter {}
impl Handler<Word> for Counter {
    fn handle(&mut self, _: Word, _: &mut Context<Self>) -> u32 {
        self.heard += 1;
        self.heard
    }
}
remote!(mobile Counter: Word);

/// Counts what leaves.
#[derive(Default)]
struct Exit(AtomicU32);

impl Forwarder for Exit {
    fn carry(&self, _: ForwardedMessage<'_>) -> Written {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct NoWatchers;

impl Settle for NoWatchers {
    fn take_watchers(&mut self) -> Vec<(Watcher, Notify)> {
        Vec::new()
    }
}

struct Scene {
    system: System,
    counter: ActorRef<Counter>,
    moves: MigrationVTable,
    exit: Arc<Exit>,
    route: Arc<StubRoute>,
}

/// A counter that has heard one word, and has left.
fn left() -> Scene {
    let system = System::builder().simulated(1).start().unwrap();
    let counter = system.spawn(Counter { heard: 0 });
    assert_eq!(counter.ask(Word).wait(), Ok(1));
    let moves = wire::spawns().find_map(|entry| entry.moves).unwrap();
    (moves.prepare)(counter.id(), Box::new(|pack| pack.map(drop)));
    system.run_until_idle();
    let (exit, route) = (Arc::<Exit>::default(), Arc::<StubRoute>::default());
    (moves.commit)(counter.id(), Arc::clone(&exit) as Arc<dyn Forwarder>, Arc::clone(&route));
    system.run_until_idle();
    Scene { system, counter, moves, exit, route }
}

impl Scene {
    fn comes_back(&self) {
        let mut state = Vec::new();
        Codec::Positional.write(&Counter { heard: 10 }, &mut state).unwrap();
        let install = (self.moves.read)(&state, Codec::Positional, ActorMetadata::default()).unwrap();
        install(
            self.counter.id(),
            Arrival { settling: Box::new(NoWatchers), route: ArrivalRoute::Freely { is_settled: false } },
        );
    }

    fn carried(&self) -> u32 {
        self.exit.0.load(Ordering::Relaxed)
    }
}

#[test]
fn a_route_that_a_message_has_taken_is_not_closed() {
    let scene = left();
    scene.counter.tell(Word);
    scene.system.run_until_idle();
    assert_eq!((scene.carried(), scene.route.close()), (1, false));
    scene.counter.tell(Word);
    scene.system.run_until_idle();
    assert_eq!(scene.carried(), 2);
}

#[test]
fn a_message_that_finds_the_route_closed_waits_for_the_actor() {
    let scene = left();
    assert!(scene.route.close());
    for _ in 0..3 {
        scene.counter.tell(Word);
    }
    scene.system.run_until_idle();
    assert_eq!(scene.carried(), 0);
    scene.comes_back();
    assert_eq!((scene.counter.ask(Word).wait(), scene.carried()), (Ok(14), 0));
}

#[test]
fn mail_sent_before_a_departure_waits_for_an_actor_that_returns_at_once() {
    let system = System::builder().simulated(1).start().unwrap();
    let counter = system.spawn(Counter { heard: 0 });
    let moves = wire::spawns().find_map(|entry| entry.moves).unwrap();
    (moves.prepare)(counter.id(), Box::new(|pack| pack.map(drop)));
    system.run_until_idle();
    counter.tell(Word);
    system.run_until_idle();
    let (exit, route) = (Arc::<Exit>::default(), Arc::<StubRoute>::default());
    assert!(route.close());
    (moves.commit)(counter.id(), Arc::clone(&exit) as Arc<dyn Forwarder>, Arc::clone(&route));
    let scene = Scene { system, counter, moves, exit, route };
    scene.system.run_until_idle();
    scene.counter.tell(Word);
    scene.comes_back();
    assert_eq!((scene.counter.ask(Word).wait(), scene.carried()), (Ok(13), 0));
}
