//! Virtual actors in several theaters and processes, with durable state.

use std::sync::Arc;
use std::time::{Duration, Instant};

use playhouse_actor::wire::WireForm;
use playhouse_actor::{Actor, AsyncHandler, Context, Guard, Message, System};
use playhouse_cluster::{Cluster, Passivation, VirtualActor, VirtualOptions, virtual_messages};
use playhouse_toolbox::durable::{Durable, MemoryStore, Store};
use playhouse_toolbox::resource::ResourcePool;
use serde::{Deserialize, Serialize};

use crate::together::{LIMIT, SLOTS, options, runs, theater, until};

/// A sum that each deposit saves.
pub struct Account {
    key: String,
    pool: ResourcePool,
    store: Arc<dyn Store>,
    sum: Option<Durable<u64>>,
}

impl Actor for Account {
    fn started(&mut self, ctx: &mut Context<Self>) {
        let open = Durable::open(&self.pool, Arc::clone(&self.store), &*self.key, 0);
        open.then(ctx, |this, opened, ctx| match opened {
            Ok(sum) => this.sum = Some(sum),
            Err(error) => ctx.fail_without_place(error),
        });
    }
}

impl VirtualActor for Account {
    const KIND: &'static str = "test.Account";

    fn passivating(&mut self, passivation: Passivation, ctx: &mut Context<Self>) {
        // The last save takes some time.
        match &self.sum {
            Some(sum) => sum.update(|sum| *sum += 1_000).then(ctx, |_, saved, _| {
                saved.unwrap();
                drop(passivation);
            }),
            None => drop(passivation),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub struct Deposit(pub u64);

impl Message for Deposit {
    type Reply = Result<u64, String>;
    const WIRE: Option<WireForm<Self>> = Some(WireForm::of());
}

impl AsyncHandler<Deposit> for Account {
    async fn handle(&mut self, Deposit(amount): Deposit, _: &mut Context<Self>) -> Result<u64, String> {
        let sum = self.sum.as_ref().expect("the guard holds");
        sum.update(|sum| *sum += amount).await.map_err(|error| error.to_string())?;
        Ok(*sum.get())
    }

    fn guard(&self, _: &Deposit) -> Guard {
        if self.sum.is_some() { Guard::Holds } else { Guard::Defer }
    }
}

virtual_messages!(Account: Deposit);

/// Lets a member activate accounts.
pub fn register(cluster: &Cluster, system: &System, store: Arc<dyn Store>, options: VirtualOptions) {
    let pool = ResourcePool::start(system, 2, 1_000).unwrap();
    let make = move |activation: &playhouse_cluster::Activation| Account {
        key: format!("account/{}", activation.key()),
        pool: pool.clone(),
        store: Arc::clone(&store),
        sum: None,
    };
    cluster.register(options, make).unwrap();
}

// GUARANTEE: Calls of virtual actors
// GUARANTEE: Passivation
#[test]
fn accounts_move_with_their_sums_when_a_member_leaves_and_when_one_is_lost() {
    let ledger = MemoryStore::new();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let theaters = [theater(), theater(), theater()];
    let join = |at: usize| {
        let cluster = Cluster::join(&theaters[at], ledger.clone(), options()).unwrap();
        register(&cluster, theaters[at].system(), Arc::clone(&store), VirtualOptions::new().wait(LIMIT));
        cluster.activated().within(LIMIT).wait().unwrap();
        cluster
    };
    let clusters = [join(0), join(1), join(2)];
    let is_level = || clusters.iter().all(|cluster| runs(cluster) >= SLOTS / 3);
    until("the members run equal numbers of slots", is_level);
    let accounts: Vec<_> = (0..10).map(|key| clusters[2].actor::<Account>(key.to_string())).collect();
    for (account, amount) in accounts.iter().zip(0..) {
        assert_eq!(account.ask(Deposit(amount)).within(LIMIT).wait(), Ok(Ok(amount)));
    }
    let account = clusters[0].actor::<Account>("7");
    assert_eq!(account.ask(Deposit(10)).wait(), Ok(Ok(17)));

    // No ask fails during the hand-over.
    let [first, second, third] = theaters;
    std::thread::scope(|scope| {
        let left = scope.spawn(|| clusters[0].leave().within(LIMIT).wait().unwrap());
        let mut rounds = 0;
        while !left.is_finished() || rounds < 3 {
            accounts.iter().for_each(|account| assert!(account.ask(Deposit(0)).within(LIMIT).wait().unwrap().is_ok()));
            rounds += 1;
        }
    });
    assert!(account.ask(Deposit(0)).wait().unwrap().is_ok(), "the theater that has left forwards it");
    let mut has_moved = false;
    for (account, amount) in accounts.iter().zip(0..) {
        let deposited = if amount == 7 { 10 } else { 0 };
        // An account that moves is passivated, and adds 1,000.
        let sum = account.ask(Deposit(0)).within(LIMIT).wait().unwrap().unwrap();
        assert_eq!(sum % 1_000, amount + deposited);
        has_moved |= sum >= 1_000;
    }
    assert!(has_moved, "the member that has left ran accounts");
    first.shutdown().unwrap();

    // The end of a theater without leaving is that of its life: nobody is passivated.
    until("the others run all slots", || runs(&clusters[1]) + runs(&clusters[2]) == SLOTS);
    second.shutdown().unwrap();
    until("the last member runs all slots", || runs(&clusters[2]) == SLOTS);
    let sum = accounts[3].ask(Deposit(1)).within(LIMIT).wait().unwrap().unwrap();
    assert_eq!(sum % 1_000, 4);
    third.shutdown().unwrap();
}

// GUARANTEE: Passivation
#[test]
fn an_idle_account_is_passivated_and_activated_again() {
    let theater = theater();
    let cluster = Cluster::join(&theater, MemoryStore::new(), options()).unwrap();
    let idle = VirtualOptions::new().idle(Duration::from_millis(50));
    register(&cluster, theater.system(), Arc::new(MemoryStore::new()), idle);
    cluster.activated().within(LIMIT).wait().unwrap();
    let account = cluster.actor::<Account>("a");
    assert_eq!(account.ask(Deposit(1)).wait(), Ok(Ok(1)));
    let begun = Instant::now();
    until("the time has passed", || begun.elapsed() > Duration::from_millis(500));
    let sum = account.ask(Deposit(0)).wait().unwrap().unwrap();
    assert_eq!(sum, 1_001, "it was passivated once, and saved");
    theater.shutdown().unwrap();
}
