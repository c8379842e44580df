//! Virtual actors in simulated members, their callers, and a check of all activations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playhouse_actor::wire::WireForm;
use playhouse_actor::{Actor, ActorRef, AskError, Context, Guard, Handler, Message};
use playhouse_cluster::{
    Activation, Passivation, PassivationReason, Virtual, VirtualActor, VirtualOptions, virtual_messages,
};
use serde::{Deserialize, Serialize};

use crate::world::{World, s};

/// An event of an activation.
#[derive(Clone, Debug, PartialEq)]
pub enum Did {
    Begin,
    /// Handled the call with this number.
    Handle(u64),
    Passivate(PassivationReason),
    /// The actor was dropped.
    End,
}

/// An event of an activation in a member.
#[derive(Clone, Debug)]
pub struct Entry {
    pub at: Duration,
    pub node: usize,
    pub activation: Activation,
    pub did: Did,
}

/// The memory that all members share: a log of all activations, and the saved states.
#[derive(Clone, Default)]
pub struct Shared {
    pub log: Arc<Mutex<Vec<Entry>>>,
    /// The saved sums, with the epochs that have saved them.
    saved: Arc<Mutex<BTreeMap<String, (u64, u64)>>>,
    /// The results of the asks, by their numbers: the number of the call behind which it was handled, if any.
    pub results: Arc<Mutex<BTreeMap<u64, Result<u64, AskError>>>>,
}

/// A counter that saves its state in each handler.
pub struct Counter {
    node: usize,
    activation: Activation,
    shared: Shared,
    sum: u64,
    now: Arc<dyn Fn() -> Duration + Send + Sync>,
}

impl Counter {
    fn note(&self, did: Did) {
        let (node, activation, at) = (self.node, self.activation.clone(), (self.now)());
        self.shared.log.lock().unwrap().push(Entry { at, node, activation, did });
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.note(Did::End);
    }
}

impl Actor for Counter {
    fn started(&mut self, _: &mut Context<Self>) {
        self.note(Did::Begin);
    }
}

impl VirtualActor for Counter {
    const KIND: &'static str = "test.Counter";

    fn passivating(&mut self, passivation: Passivation, _: &mut Context<Self>) {
        self.note(Did::Passivate(passivation.reason()));
    }
}

/// Counts a call, and returns the number of calls of the key so far.
#[derive(Serialize, Deserialize)]
pub struct Count(pub u64);

impl Message for Count {
    type Reply = u64;
    const WIRE: Option<WireForm<Self>> = Some(WireForm::of());
}

impl Handler<Count> for Counter {
    fn handle(&mut self, Count(number): Count, _: &mut Context<Self>) -> u64 {
        self.note(Did::Handle(number));
        self.sum += 1;
        let state = (self.activation.epoch(), self.sum);
        let former = self.shared.saved.lock().unwrap().insert(self.activation.key().to_owned(), state);
        assert!(
            former.is_none_or(|(epoch, sum)| epoch <= state.0 && sum == state.1 - 1),
            "{former:?} before {state:?}"
        );
        self.sum
    }
}

/// Panics in its first hook, and counts its activations.
pub struct Broken(pub Arc<AtomicU64>);

impl Actor for Broken {
    fn started(&mut self, _: &mut Context<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("this actor does not start");
    }
}

impl VirtualActor for Broken {
    const KIND: &'static str = "test.Broken";
}

impl Handler<Count> for Broken {
    fn handle(&mut self, _: Count, _: &mut Context<Self>) -> u64 {
        0
    }
}

/// Answers with 1, and counts its ends.
pub struct Plain(pub Arc<AtomicU64>);

impl Actor for Plain {}

impl Drop for Plain {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl VirtualActor for Plain {
    const KIND: &'static str = "test.Plain";
}

impl Handler<Count> for Plain {
    fn handle(&mut self, _: Count, _: &mut Context<Self>) -> u64 {
        1
    }
}

virtual_messages!(Plain: Count);

/// Fails while it loads, and counts its activations. Its calls wait for the end of the load.
pub struct Unloaded(pub Arc<AtomicU64>);

impl Actor for Unloaded {
    fn started(&mut self, ctx: &mut Context<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        ctx.this().tell(LoadFailed);
    }
}

impl VirtualActor for Unloaded {
    const KIND: &'static str = "test.Unloaded";
}

impl Handler<Count> for Unloaded {
    fn handle(&mut self, _: Count, _: &mut Context<Self>) -> u64 {
        0
    }

    fn guard(&self, _: &Count) -> Guard {
        Guard::Defer
    }
}

struct LoadFailed;

impl Message for LoadFailed {
    type Reply = ();
}

impl Handler<LoadFailed> for Unloaded {
    fn handle(&mut self, _: LoadFailed, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

virtual_messages!(Counter: Count);
virtual_messages!(Unloaded: Count);
virtual_messages!(Broken: Count);

/// Asks on behalf of the test, in its own theater.
pub struct Caller {
    shared: Shared,
    virtuals: BTreeMap<String, Virtual<Counter>>,
    cluster: playhouse_cluster::Cluster,
}

impl Actor for Caller {}

/// Asks the counter with the key, or tells it.
pub struct Call {
    pub key: String,
    pub number: u64,
    pub is_ask: bool,
}

impl Message for Call {
    type Reply = ();
}

impl Handler<Call> for Caller {
    fn handle(&mut self, Call { key, number, is_ask }: Call, ctx: &mut Context<Self>) {
        let cluster = &self.cluster;
        let counter = self.virtuals.entry(key.clone()).or_insert_with(|| cluster.actor::<Counter>(key)).clone();
        if !is_ask {
            return counter.tell(Count(number));
        }
        counter.ask_in(ctx, Count(number)).then(move |this, result, _| {
            let former = this.shared.results.lock().unwrap().insert(number, result);
            assert_eq!(former, None, "the ask {number} has ended twice");
        });
    }
}

/// A world whose members have virtual actors.
pub struct VirtualWorld {
    pub world: World,
    pub shared: Shared,
    callers: Vec<ActorRef<Caller>>,
    options: VirtualOptions,
    /// The asks, with the nodes of their callers.
    pub asks: BTreeMap<u64, usize>,
    number: u64,
}

impl VirtualWorld {
    pub fn new(seed: u64, options: VirtualOptions) -> VirtualWorld {
        let world = World::new(seed);
        VirtualWorld {
            world,
            shared: Shared::default(),
            callers: Vec::new(),
            options,
            asks: BTreeMap::new(),
            number: 0,
        }
    }

    /// Returns a world with this many active members.
    pub fn of(seed: u64, members: usize, options: VirtualOptions) -> VirtualWorld {
        let mut this = VirtualWorld::new(seed, options);
        (0..members).for_each(|_| _ = this.start("127.0.0.1:0"));
        this.world.until_whole(s(60));
        this
    }

    pub fn start(&mut self, address: &str) -> usize {
        let node = self.world.start_at(address);
        self.register(node);
        node
    }

    fn register(&mut self, node: usize) {
        let (shared, net) = (self.shared.clone(), self.world.net.clone());
        let now: Arc<dyn Fn() -> Duration + Send + Sync> = Arc::new(move || net.now());
        let cluster = self.world.nodes[node].cluster.clone();
        let make = move |activation: &Activation| {
            let saved = shared.saved.lock().unwrap().get(activation.key()).copied();
            Counter {
                node,
                activation: activation.clone(),
                shared: shared.clone(),
                sum: saved.map_or(0, |(_, sum)| sum),
                now: now.clone(),
            }
        };
        cluster.register(self.options.clone(), make).unwrap();
        let caller = Caller { shared: self.shared.clone(), virtuals: BTreeMap::new(), cluster };
        self.callers.push(self.world.nodes[node].theater.system().spawn(caller));
    }

    /// Lets a member call a counter. Returns the number of the call.
    pub fn call(&mut self, node: usize, key: impl ToString, is_ask: bool) -> u64 {
        self.number += 1;
        self.callers[node].tell(Call { key: key.to_string(), number: self.number, is_ask });
        if is_ask {
            self.asks.insert(self.number, node);
        }
        self.number
    }

    pub fn result(&self, number: u64) -> Option<Result<u64, AskError>> {
        self.shared.results.lock().unwrap().get(&number).cloned()
    }

    /// Runs until an ask has ended, and returns its result.
    pub fn answer(&mut self, limit: Duration, number: u64) -> Result<u64, AskError> {
        let results = Arc::clone(&self.shared.results);
        let ended = self.world.until(limit, move |_| results.lock().unwrap().contains_key(&number));
        assert!(ended, "the ask {number} has not ended at {:?}", self.world.net.now());
        self.result(number).unwrap()
    }

    pub fn ask(&mut self, limit: Duration, node: usize, key: impl ToString) -> Result<u64, AskError> {
        let number = self.call(node, key, true);
        self.answer(limit, number)
    }

    /// Returns the member that runs the slot of a key that was activated before.
    pub fn home(&self, key: &str) -> usize {
        let log = self.shared.log.lock().unwrap();
        log.iter().rfind(|entry| entry.activation.key() == key).unwrap().node
    }

    /// Returns the events of a key.
    pub fn events(&self, key: &str) -> Vec<Did> {
        let log = self.shared.log.lock().unwrap();
        log.iter().filter(|entry| entry.activation.key() == key).map(|entry| entry.did.clone()).collect()
    }

    /// Checks that the activations of each key follow each other, and that each call was handled once at most.
    ///
    /// An activation of a paused or killed member may exist beside the next one, and handles no calls.
    pub fn check(&self) {
        let log = self.shared.log.lock().unwrap();
        let mut last: BTreeMap<&str, &Entry> = BTreeMap::new();
        let mut living: BTreeMap<(usize, &str), u64> = BTreeMap::new();
        let mut handled = BTreeSet::new();
        assert!(log.is_sorted_by_key(|entry| entry.at));
        for entry in log.iter() {
            let (node, key, number) = (entry.node, entry.activation.key(), entry.activation.number());
            let token = (entry.activation.epoch(), number);
            match entry.did {
                Did::Begin => {
                    let other = living.insert((node, key), number);
                    assert_eq!(other, None, "{entry:?} begins beside another activation in its theater");
                }
                Did::End => _ = living.remove(&(node, key)),
                Did::Handle(call) => {
                    assert!(handled.insert(call), "{entry:?}: the call was handled twice");
                    if let Some(former) = last.insert(key, entry) {
                        let is_same = former.node == node && former.activation == entry.activation;
                        let earlier = (former.activation.epoch(), former.activation.number());
                        let is_later = if former.node == node { earlier < token } else { earlier.0 < token.0 };
                        assert!(is_same || is_later, "{entry:?} after {former:?}");
                    }
                }
                Did::Passivate(_) => {}
            }
        }
        let results = self.shared.results.lock().unwrap();
        for (number, result) in results.iter() {
            assert!(result.is_err() || handled.contains(number), "the ask {number} was answered and not handled");
        }
    }
}
