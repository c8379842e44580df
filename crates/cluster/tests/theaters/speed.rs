//! Calls of virtual actors beside calls of plain ones: a measurement by hand, and in each run a test with few calls.
//!
//! `PLAYHOUSE_CLUSTER_CALLS=1000000 cargo test --release -p playhouse-cluster --test theaters speed -- --nocapture`

use std::time::{Duration, Instant};

use playhouse_actor::wire::WireForm;
use playhouse_actor::{Actor, ActorRef, AsyncHandler, Context, Handler, Message, remote};
use playhouse_cluster::{Cluster, Virtual, VirtualActor, VirtualOptions, virtual_messages};
use playhouse_toolbox::durable::MemoryStore;
use serde::{Deserialize, Serialize};

use crate::together::{LIMIT, options, theater};

/// The number of calls, for measurements by hand.
const CALLS: &str = "PLAYHOUSE_CLUSTER_CALLS";

struct Counter(u64);

impl Actor for Counter {}

impl VirtualActor for Counter {
    const KIND: &'static str = "test.SpeedCounter";
}

#[derive(Serialize, Deserialize)]
struct Add(u64);

impl Message for Add {
    type Reply = u64;
    const WIRE: Option<WireForm<Self>> = Some(WireForm::of());
}

impl Handler<Add> for Counter {
    fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) -> u64 {
        self.0 += by;
        self.0
    }
}

remote!(Counter: Add);
virtual_messages!(Counter: Add);

/// Calls a counter from a theater.
struct Caller {
    plain: ActorRef<Counter>,
    counter: Virtual<Counter>,
}

impl Actor for Caller {}

#[derive(Clone, Copy, Debug)]
enum Way {
    Plain,
    Virtual,
}

/// Sends this many messages, or asks this many times, and returns the time until all were handled.
struct Call {
    way: Way,
    is_ask: bool,
    calls: u64,
}

impl Message for Call {
    type Reply = Duration;
}

impl AsyncHandler<Call> for Caller {
    async fn handle(&mut self, Call { way, is_ask, calls }: Call, _: &mut Context<Self>) -> Duration {
        let begun = Instant::now();
        for _ in 0..calls - 1 {
            match (way, is_ask) {
                (Way::Plain, false) => self.plain.tell(Add(1)),
                (Way::Virtual, false) => self.counter.tell(Add(1)),
                (Way::Plain, true) => _ = self.plain.ask(Add(1)).await.unwrap(),
                (Way::Virtual, true) => _ = self.counter.ask(Add(1)).await.unwrap(),
            }
        }
        match way {
            Way::Plain => self.plain.ask(Add(1)).await.unwrap(),
            Way::Virtual => self.counter.ask(Add(1)).await.unwrap(),
        };
        begun.elapsed()
    }
}

#[test]
fn cached_calls_reach_the_activation_in_order_and_their_time_is_printed() {
    let calls: u64 = std::env::var(CALLS).map_or(1_000, |calls| calls.parse().expect("a number"));
    let ledger = MemoryStore::new();
    let theaters = [theater(), theater()];
    let clusters: Vec<Cluster> = theaters
        .iter()
        .map(|theater| {
            // The first member keeps a single slot.
            let cluster = Cluster::join(theater, ledger.clone(), options().slots(1)).unwrap();
            cluster.register(VirtualOptions::new(), |_| Counter(0)).unwrap();
            cluster.activated().within(LIMIT).wait().unwrap();
            cluster
        })
        .collect();
    assert_eq!(clusters[0].runs(0), Some(1));
    for (number, name) in [(0, "first"), (1, "second")] {
        let plain = theaters[0].system().spawn(Counter(0));
        theaters[0].publish(name, plain).unwrap();
        let found = theaters[number].find(&format!("playhouse://{}/{name}", theaters[0].address().unwrap()));
        let (plain, counter) = (found.wait().unwrap(), clusters[number].actor::<Counter>(name));
        assert_eq!(counter.ask(Add(0)).within(LIMIT).wait(), Ok(0));
        let caller = theaters[number].system().spawn(Caller { plain, counter });
        let mut total = 0;
        for round in 0..3 {
            for is_ask in [false, true] {
                for way in [Way::Plain, Way::Virtual] {
                    let took = caller.ask(Call { way, is_ask, calls }).within(LIMIT).wait().unwrap();
                    let each = took.as_nanos() / u128::from(calls);
                    println!("{name} theater, round {round}, {way:?}, ask: {is_ask}: {each} ns");
                }
                total += calls;
                let counted = clusters[0].actor::<Counter>(name).ask(Add(0)).wait().unwrap();
                assert_eq!(counted, total, "each call was handled");
            }
        }
    }
    // More than may wait in a directory: the sender waits for the link.
    let counter = clusters[1].actor::<Counter>("flood");
    assert_eq!(counter.ask(Add(0)).wait(), Ok(0));
    let caller = theaters[1].system().spawn(Caller { plain: theaters[1].system().spawn(Counter(0)), counter });
    caller.ask(Call { way: Way::Virtual, is_ask: false, calls: 30_000 }).within(LIMIT).wait().unwrap();
    assert_eq!(clusters[0].actor::<Counter>("flood").ask(Add(0)).wait(), Ok(30_000));
    theaters.into_iter().for_each(|theater| _ = theater.shutdown().unwrap());
}
