//! Durable state on a slow disk, in actors that crash: acknowledged orders are there, and no others.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playhouse::asks::Retry;
use playhouse::durable::{Durable, DurableError, MemoryStore};
use playhouse::prelude::*;
use playhouse::resource::ResourcePool;
use playhouse::serde::{Deserialize, Serialize};
use playhouse_executor::Choices;
use playhouse_testkit::under_seeds;

#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Book {
    orders: Vec<u64>,
}

/// The events of a run, and its random numbers.
struct World {
    pool: ResourcePool,
    store: MemoryStore,
    choices: Mutex<Choices>,
    sent: Mutex<Vec<u64>>,
    acknowledged: Mutex<Vec<u64>>,
    crashes: AtomicU64,
    conflicts: AtomicU64,
}

impl World {
    fn one_in(&self, n: u64) -> bool {
        self.choices.lock().unwrap().one_in(n)
    }

    fn below(&self, n: usize) -> usize {
        self.choices.lock().unwrap().below(n)
    }

    fn crash_in_one_of(&self, n: u64) {
        if self.one_in(n) {
            self.crashes.fetch_add(1, Ordering::Relaxed);
            // The actor panics, but nothing is printed.
            std::panic::resume_unwind(Box::new("meant"));
        }
    }

    fn open(&self) -> playhouse::durable::Open<Book> {
        Durable::open(&self.pool, self.store.clone(), "book", Book::default())
    }
}

/// An actor that keeps a book. Several actors may keep the same one.
struct Ledger {
    world: Arc<World>,
    book: Option<Durable<Book>>,
}

#[actor]
impl Ledger {
    #[started]
    fn open(&mut self, ctx: &mut Context<Self>) {
        self.world.open().then(ctx, |this, book, _| this.book = Some(book.unwrap()));
    }

    #[message(derive(Clone), when = "self.book.is_some()")]
    async fn put(&mut self, order: u64, ctx: &mut Context<Self>) -> bool {
        self.world.crash_in_one_of(10);
        let book = self.book.as_ref().expect("the guard holds");
        let mut new = Book::clone(&book.get());
        if new.orders.contains(&order) {
            return true;
        }
        new.orders.push(order);
        match book.save(new).await {
            Ok(()) => {}
            Err(DurableError::Busy { .. }) => return false,
            Err(error) => {
                assert!(error.is_conflict(), "{error}");
                self.world.conflicts.fetch_add(1, Ordering::Relaxed);
                ctx.fail(error);
                return false;
            }
        }
        self.world.crash_in_one_of(10);
        true
    }

    /// The handler does not wait, so that it may crash in the middle of a save. The sender is not told the outcome.
    #[message(when = "self.book.is_some()")]
    fn note(&mut self, order: u64, ctx: &mut Context<Self>) {
        let book = self.book.as_ref().expect("the guard holds");
        let mut new = Book::clone(&book.get());
        new.orders.push(order);
        book.save(new).then(ctx, move |this, saved, _| {
            if saved.is_ok() {
                this.world.acknowledged.lock().unwrap().push(order);
            }
        });
    }

    #[message]
    fn stumble(&mut self) {
        self.world.crash_in_one_of(1);
    }
}

/// An actor that sends one order after the other.
struct Customer {
    world: Arc<World>,
    ledgers: Vec<ActorRef<Ledger>>,
    orders: Vec<u64>,
}

#[actor]
impl Customer {
    #[message]
    fn go_on(&mut self, ctx: &mut Context<Self>) {
        let Some(order) = self.orders.pop() else { return };
        let ledger = self.ledgers[self.world.below(self.ledgers.len())];
        self.world.sent.lock().unwrap().push(order);
        if self.world.one_in(3) {
            ledger.tell(Note(order));
            ctx.send_after(Duration::from_millis(self.world.below(9) as u64), GoOn);
            return;
        }
        if self.world.one_in(8) {
            ledger.tell(Stumble);
        }
        let retry = Retry::attempts(3).within(Duration::from_millis(60)).after_panics();
        retry.ask(ledger, Put(order)).then(ctx, move |this, done, ctx| {
            if done == Ok(true) {
                this.world.acknowledged.lock().unwrap().push(order);
            }
            ctx.this().tell(GoOn);
        });
    }
}

// GUARANTEE: Saved states are durable
#[test]
fn acknowledged_orders_survive_crashes_on_a_slow_disk_under_every_seed() {
    let totals = [const { AtomicU64::new(0) }; 4];
    under_seeds(0..300, |seed| {
        let system = System::builder().workers(2).simulated(seed).start().unwrap();
        let pool = ResourcePool::start(&system, 2, 100).unwrap();
        pool.simulate_times(Duration::from_millis(1), Duration::from_millis(8));
        pool.simulate_stalls(10, Duration::from_millis(100));
        let world = Arc::new(World {
            pool,
            store: MemoryStore::new(),
            choices: Mutex::new(Choices::new(seed)),
            sent: Mutex::default(),
            acknowledged: Mutex::default(),
            crashes: AtomicU64::new(0),
            conflicts: AtomicU64::new(0),
        });
        let policy = SupervisionPolicy::one_for_one().max_restarts(1000, Duration::from_secs(1));
        let supervisor = system.spawn(Supervisor::new(policy));
        // Under every second seed, two ledgers compete for one book.
        let ledgers = (0..1 + seed % 2).map(|number| {
            let own = Arc::clone(&world);
            let ledger = ChildSpec::new(format!("{number}"), move || Ledger { world: Arc::clone(&own), book: None });
            supervisor.ask(ledger).wait().unwrap().unwrap()
        });
        let ledgers: Vec<_> = ledgers.collect();
        for customer in 0..3 {
            let orders = (0..8).map(|number| customer * 100 + number).collect();
            let customer = Customer { world: Arc::clone(&world), ledgers: ledgers.clone(), orders };
            system.spawn(customer).tell(GoOn);
        }
        system.run_until_idle();

        let book = world.open().wait().unwrap().get();
        let (sent, acknowledged) = (world.sent.lock().unwrap(), world.acknowledged.lock().unwrap());
        assert_eq!(sent.len(), 24);
        let mut once = book.orders.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), book.orders.len(), "{book:?}");
        assert!(once.iter().all(|order| sent.contains(order)), "{book:?}, sent: {sent:?}");
        let lost: Vec<_> = acknowledged.iter().filter(|order| !book.orders.contains(order)).collect();
        assert!(lost.is_empty(), "{lost:?} are lost: {book:?}");
        let untold = book.orders.len() - acknowledged.len();
        let numbers = [world.crashes.load(Ordering::Relaxed), world.conflicts.load(Ordering::Relaxed)];
        let numbers = [numbers[0], numbers[1], acknowledged.len() as u64, untold as u64];
        for (total, number) in totals.iter().zip(numbers) {
            total.fetch_add(number, Ordering::Relaxed);
        }
    });
    let totals = totals.map(AtomicU64::into_inner);
    let [crashes, conflicts, acknowledged, untold] = totals;
    assert!(
        crashes > 500 && conflicts > 100 && acknowledged > 2000 && untold > 50,
        "crashes, conflicts, acknowledged, saved and not told: {totals:?}"
    );
}
