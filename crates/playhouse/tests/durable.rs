//! Durable state: a saved state is present in the next incarnation of the actor and of the process, or loading it
//! returns an error.

mod support;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use playhouse::durable::{
    Durable, DurableError, FileStore, KEY_BYTES_MAX, MemoryStore, STATE_BYTES_MAX, Saved, Store, StoreError,
};
use playhouse::prelude::*;
use playhouse::resource::{JobError, ResourcePool};
use playhouse::serde::{Deserialize, Serialize};
use support::{Do, Log, Puppet, quiet_panics, simulated, threads};

#[derive(Clone, Default, Debug, PartialEq, Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Account {
    balance: i64,
}

/// A folder that exists while its test runs.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("durable-{}-{number}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Pays in and out. A new incarnation begins with the saved state.
struct Teller {
    pool: ResourcePool,
    store: Arc<dyn Store>,
    account: Option<Durable<Account>>,
}

#[actor]
impl Teller {
    #[started]
    fn open(&mut self, ctx: &mut Context<Self>) {
        let opened = Durable::open(&self.pool, Arc::clone(&self.store), "account", Account::default());
        opened.then(ctx, |this, account, ctx| match account {
            Ok(account) => this.account = Some(account),
            Err(error) => ctx.fail(error),
        });
    }

    #[message(when = "self.account.is_some()")]
    async fn pay(&mut self, amount: i64) -> Result<i64, DurableError> {
        let account = self.account.as_ref().expect("the guard holds");
        let balance = account.get().balance + amount;
        account.save(Account { balance }).await?;
        Ok(balance)
    }

    #[message(when = "self.account.is_some()")]
    fn balance(&self) -> (i64, u64) {
        let account = self.account.as_ref().expect("the guard holds");
        (account.get().balance, account.revision())
    }

    /// Saves without waiting, and crashes if the save fails.
    #[message(when = "self.account.is_some()")]
    fn insist(&mut self, balance: i64, ctx: &mut Context<Self>) {
        let account = self.account.as_ref().expect("the guard holds");
        account.save(Account { balance }).then(ctx, |this, saved, ctx| match saved {
            Ok(()) => drop(this.account.as_ref().expect("it was opened in this life")),
            Err(error) => ctx.fail(error),
        });
    }

    /// Saves without waiting.
    #[message(when = "self.account.is_some()")]
    fn set(&mut self, balance: i64, log: Log<String>, ctx: &mut Context<Self>) {
        let account = self.account.as_ref().expect("the guard holds");
        account.save(Account { balance }).then(ctx, move |this, saved, _| {
            let found = this.account.as_ref().unwrap().get().balance;
            log.push(
                saved.map_or_else(|error| error.to_string(), |()| format!("{balance} is saved, {found} is there")),
            );
        });
    }

    #[message]
    fn crash(&mut self) {
        panic!("meant: crash");
    }

    #[message]
    fn lives(&mut self, ctx: &mut Context<Self>) -> u64 {
        ctx.incarnation() + 1
    }
}

fn teller(system: &System, pool: &ResourcePool, store: impl Store) -> ActorRef<Teller> {
    let store = Arc::new(store);
    teller_with(system, pool, move || Arc::clone(&store) as Arc<dyn Store>)
}

/// Returns a teller with a store for each of its incarnations.
fn teller_with(
    system: &System,
    pool: &ResourcePool,
    mut store: impl FnMut() -> Arc<dyn Store> + Send + 'static,
) -> ActorRef<Teller> {
    let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
    let pool = pool.clone();
    let teller = move || Teller { pool: pool.clone(), store: store(), account: None };
    supervisor.ask(ChildSpec::new("teller", teller)).wait().unwrap().unwrap()
}

// GUARANTEE: Saved states are durable
#[test]
fn a_saved_value_outlives_a_restart_and_the_process() {
    quiet_panics();
    let folder = Folder::new();
    for round in 0..3 {
        // A new system stands for a new process.
        let system = threads(1);
        let pool = ResourcePool::start(&system, 1, 10).unwrap();
        let teller = teller(&system, &pool, FileStore::open(&folder.0).unwrap());
        // Mail comes before the value was loaded, and waits.
        assert_eq!(teller.ask(Balance).wait(), Ok((round * 30, round as u64 * 2)));
        assert_eq!(teller.ask(Pay(10)).wait().unwrap().unwrap(), round * 30 + 10);
        teller.tell(Crash);
        assert_eq!(teller.ask(Pay(20)).wait().unwrap().unwrap(), round * 30 + 30);
        system.shutdown().unwrap();
    }
}

#[test]
fn a_value_without_a_save_is_the_initial_one_and_is_not_saved_yet() {
    let system = simulated(1);
    let pool = ResourcePool::start(&system, 1, 10).unwrap();
    let store = MemoryStore::new();
    let account = Durable::open(&pool, store.clone(), "account", Account { balance: 7 }).wait().unwrap();
    assert_eq!((account.get().balance, account.revision()), (7, 0));
    assert_eq!(store.load("account").unwrap(), None);
    assert_eq!(format!("{account:?}"), "Durable { key: \"account\", revision: 0 }");
    account.save(Account { balance: 8 }).wait().unwrap();
    assert_eq!((account.get().balance, account.revision()), (8, 1));
}

/// Fails before or behind an operation, at the operations that the test chooses.
#[derive(Clone)]
struct Failing {
    store: MemoryStore,
    loads: Arc<AtomicU64>,
    before: Arc<AtomicU64>,
    behind: Arc<AtomicU64>,
}

impl Failing {
    fn new() -> Failing {
        Failing { store: MemoryStore::new(), loads: Arc::default(), before: Arc::default(), behind: Arc::default() }
    }

    fn step(counter: &AtomicU64) -> Result<(), StoreError> {
        match counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
            Ok(_) => Err(StoreError::Io { key: "account".to_owned(), error: io::Error::other("no room") }),
            Err(_) => Ok(()),
        }
    }
}

impl Store for Failing {
    fn load(&self, key: &str) -> Result<Option<Saved>, StoreError> {
        Failing::step(&self.loads)?;
        self.store.load(key)
    }

    fn save(&self, key: &str, expected: u64, bytes: &[u8]) -> Result<u64, StoreError> {
        Failing::step(&self.before)?;
        let saved = self.store.save(key, expected, bytes)?;
        Failing::step(&self.behind)?;
        Ok(saved)
    }

    fn remove(&self, key: &str, expected: u64) -> Result<(), StoreError> {
        self.store.remove(key, expected)
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.store.keys(prefix)
    }
}

// GUARANTEE: A value is the last one saved
#[test]
fn a_save_that_fails_leaves_the_value_as_it_was_and_the_next_one_works() {
    let system = simulated(1);
    let pool = ResourcePool::start(&system, 1, 10).unwrap();
    let store = Failing::new();
    let teller = teller(&system, &pool, store.clone());
    assert_eq!(teller.ask(Pay(10)).wait().unwrap().unwrap(), 10);
    store.before.store(1, Ordering::Relaxed);
    let error = teller.ask(Pay(20)).wait().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the storage has failed for \"account\": no room");
    assert!(!error.is_conflict());
    assert_eq!(teller.ask(Balance).wait(), Ok((10, 1)));
    assert_eq!(teller.ask(Pay(30)).wait().unwrap().unwrap(), 40);
}

// GUARANTEE: A value is the last one saved
#[test]
fn a_save_that_was_done_though_it_failed_is_a_conflict_for_the_next_one_and_found_when_opened_again() {
    quiet_panics();
    let system = simulated(1);
    let pool = ResourcePool::start(&system, 1, 10).unwrap();
    let store = Failing::new();
    let teller = teller(&system, &pool, store.clone());
    store.behind.store(1, Ordering::Relaxed);
    assert!(!teller.ask(Pay(20)).wait().unwrap().unwrap_err().is_conflict());
    assert_eq!(teller.ask(Balance).wait(), Ok((0, 0)));
    assert!(teller.ask(Pay(30)).wait().unwrap().unwrap_err().is_conflict());
    teller.tell(Crash);
    assert_eq!(teller.ask(Pay(30)).wait().unwrap().unwrap(), 50);
}

/// In each of 50 runs the actor crashes while its first incarnation opens the value. In some runs that takes longer
/// than in the second incarnation.
fn in_a_second_incarnation_while_the_first_still_opens(
    fails_in_the_first: bool,
    then: impl Fn(&System, &ActorRef<Teller>),
) {
    quiet_panics();
    for seed in 0..50 {
        let system = simulated(seed);
        let pool = ResourcePool::start(&system, 2, 10).unwrap();
        pool.simulate_times(Duration::from_millis(5), Duration::from_millis(20));
        let store = Failing::new();
        let first = Failing { loads: Arc::new(u64::from(fails_in_the_first).into()), ..store.clone() };
        let mut stores = [store, first].to_vec();
        let teller = teller_with(&system, &pool, move || Arc::new(stores.pop().unwrap()));
        teller.tell(Crash);
        then(&system, &teller);
        system.run_until_idle();
        assert_eq!(teller.ask(Lives).wait(), Ok(2), "seed {seed}");
    }
}

// GUARANTEE: Two incarnations do not overwrite each other
#[test]
fn a_late_open_of_a_former_incarnation_does_not_replace_a_newer_save() {
    in_a_second_incarnation_while_the_first_still_opens(false, |system, teller| {
        assert_eq!(teller.ask(Pay(10)).wait().unwrap().unwrap(), 10);
        system.run_until_idle();
        assert_eq!(teller.ask(Pay(20)).wait().unwrap().unwrap(), 30);
    });
}

// GUARANTEE: Two incarnations do not overwrite each other
#[test]
fn a_failed_open_of_a_former_incarnation_does_not_crash_the_next_one() {
    in_a_second_incarnation_while_the_first_still_opens(true, |_, teller| {
        assert_eq!(teller.ask(Pay(10)).wait().unwrap().unwrap(), 10);
    });
}

// GUARANTEE: Two incarnations do not overwrite each other
#[test]
fn a_result_of_a_former_incarnations_save_does_not_crash_the_next_one() {
    quiet_panics();
    let (mut first, mut second) = (0, 0);
    for seed in 0..50 {
        let system = simulated(seed);
        let pool = ResourcePool::start(&system, 2, 10).unwrap();
        pool.simulate_times(Duration::from_millis(1), Duration::from_millis(20));
        let teller = teller(&system, &pool, MemoryStore::new());
        teller.ask(Balance).wait().unwrap();
        teller.tell(Insist(5));
        teller.tell(Crash);
        // The save builds on the value that the second incarnation found at its begin.
        match teller.ask(Pay(1)).wait().unwrap() {
            Ok(1) => second += 1,
            Ok(6) => first += 1,
            Err(error) if error.is_conflict() => first += 1,
            other => panic!("{other:?}, seed {seed}"),
        }
        system.run_until_idle();
        assert_eq!(teller.ask(Lives).wait(), Ok(2), "seed {seed}");
    }
    assert!(first > 5 && second > 5, "who was first to save: {first}, {second}");
}

/// Has a value that all of its incarnations share.
struct Sharer(Arc<Durable<Account>>);

#[actor]
impl Sharer {
    #[message]
    fn begin(&mut self, balance: i64, ctx: &mut Context<Self>) {
        self.0.save(Account { balance }).then(ctx, |_, _, _| panic!("it is for a former life"));
        ctx.fail(io::Error::other("meant"));
    }

    #[message]
    async fn end(&mut self, balance: i64) -> Result<(), DurableError> {
        self.0.save(Account { balance }).await
    }
}

#[test]
fn a_value_shared_by_several_incarnations_knows_the_saves_of_each() {
    quiet_panics();
    let system = simulated(1);
    let pool = ResourcePool::start(&system, 1, 10).unwrap();
    let account = Durable::open(&pool, MemoryStore::new(), "account", Account::default()).wait().unwrap();
    let account = Arc::new(account);
    let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
    let own = Arc::clone(&account);
    let sharer = ChildSpec::new("sharer", move || Sharer(Arc::clone(&own)));
    let sharer = supervisor.ask(sharer).wait().unwrap().unwrap();
    sharer.tell(Begin(5));
    system.run_until_idle();
    assert_eq!((account.get().balance, account.revision()), (5, 1));
    sharer.ask(End(6)).wait().unwrap().unwrap();
    assert_eq!((account.get().balance, account.revision()), (6, 2));
}

// GUARANTEE: Two incarnations do not overwrite each other
#[test]
fn one_of_two_incarnations_saves_and_the_other_is_told() {
    quiet_panics();
    let system = simulated(1);
    let pool = ResourcePool::start(&system, 2, 10).unwrap();
    let store = MemoryStore::new();
    let (old, new) = (teller(&system, &pool, store.clone()), teller(&system, &pool, store.clone()));
    assert_eq!(old.ask(Pay(1)).wait().unwrap().unwrap(), 1);
    // The second teller has opened the value before the first one has saved.
    let error = new.ask(Pay(2)).wait().unwrap().unwrap_err();
    assert!(error.is_conflict());
    assert_eq!(error.to_string(), "\"account\" exists already with revision 1: load it first");
    new.tell(Crash);
    assert_eq!(new.ask(Pay(2)).wait().unwrap().unwrap(), 3);
    let error = old.ask(Pay(4)).wait().unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"account\" has revision 2, but revision 1 was expected: somebody else has saved it, load it again"
    );
    assert_eq!(old.ask(Balance).wait(), Ok((1, 1)), "it is out of date");
    store.remove("account", 2).unwrap();
    let error = new.ask(Pay(4)).wait().unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"account\" does not exist, but revision 2 was expected: it was removed, load it again"
    );
}

// GUARANTEE: A value is the last one saved
#[test]
fn one_save_is_under_way_at_one_time_and_others_find_the_former_value() {
    for seed in 0..50 {
        let system = simulated(seed);
        let pool = ResourcePool::start(&system, 2, 10).unwrap();
        pool.simulate_times(Duration::from_millis(5), Duration::from_millis(20));
        let teller = teller(&system, &pool, MemoryStore::new());
        teller.ask(Balance).wait().unwrap();
        let (log, balances) = (Log::new(), Log::new());
        let (own, read) = (log.clone(), balances.clone());
        system.spawn(Puppet).tell(Do::this(move |ctx| {
            teller.tell(Set(1, own.clone()));
            teller.tell(Set(2, own));
            ctx.ask(teller, Balance).then(move |_, balance, _| read.push(balance.unwrap()));
        }));
        system.run_until_idle();
        let mut said = log.take();
        said.sort();
        let busy = "\"account\" is being saved: wait until that save is done";
        assert_eq!(said, [busy, "1 is saved, 1 is there"], "seed {seed}");
        assert_eq!(balances.take(), [(0, 0)], "seed {seed}");
        assert_eq!(teller.ask(Balance).wait(), Ok((1, 1)));
        // Another payment succeeds.
        assert_eq!(teller.ask(Pay(5)).wait().unwrap().unwrap(), 6);
    }
}

#[test]
fn a_save_that_is_dropped_makes_room_for_another_one() {
    let system = simulated(1);
    let pool = ResourcePool::start(&system, 1, 10).unwrap();
    let account = Durable::open(&pool, MemoryStore::new(), "account", Account::default()).wait().unwrap();
    let first = account.save(Account { balance: 1 });
    assert!(matches!(account.save(Account { balance: 2 }).wait(), Err(DurableError::Busy { key }) if key == "account"));
    drop(first);
    account.save(Account { balance: 3 }).wait().unwrap();
    assert_eq!((account.get().balance, account.revision()), (3, 1));
}

/// The later version of an account.
#[derive(Default, Debug, PartialEq, Serialize, Deserialize)]
#[serde(crate = "playhouse::serde", rename = "Account")]
struct NewAccount {
    #[serde(default)]
    owner: String,
    balance: i64,
}

// GUARANTEE: Stores stay readable
#[test]
fn an_earlier_form_is_read_and_another_type_is_said() {
    let system = simulated(1);
    let pool = ResourcePool::start(&system, 1, 10).unwrap();
    let store = MemoryStore::new();
    let account = Durable::open(&pool, store.clone(), "account", Account::default()).wait().unwrap();
    account.save(Account { balance: 5 }).wait().unwrap();
    let new = Durable::open(&pool, store.clone(), "account", NewAccount::default()).wait().unwrap();
    assert_eq!(*new.get(), NewAccount { owner: String::new(), balance: 5 });
    let error = Durable::open(&pool, store, "account", String::new()).wait().unwrap_err();
    assert!(error.to_string().starts_with("\"account\": the saved state is no String: "), "{error}");
}

#[test]
fn a_pool_that_does_not_do_it_is_said() {
    struct Broken;
    impl Store for Broken {
        fn load(&self, _: &str) -> Result<Option<Saved>, StoreError> {
            panic!("meant: broken")
        }
        fn save(&self, _: &str, _: u64, _: &[u8]) -> Result<u64, StoreError> {
            panic!("meant: broken")
        }
        fn remove(&self, _: &str, _: u64) -> Result<(), StoreError> {
            panic!("meant: broken")
        }
        fn keys(&self, _: &str) -> Result<Vec<String>, StoreError> {
            panic!("meant: broken")
        }
    }
    quiet_panics();
    let system = simulated(1);
    let pool = ResourcePool::start(&system, 1, 10).unwrap();
    let error = Durable::open(&pool, Broken, "account", Account::default()).wait().unwrap_err();
    assert_eq!(error.to_string(), "\"account\" was not loaded or saved: the work has panicked: meant: broken");
    let account = Durable::open(&pool, MemoryStore::new(), "account", Account::default()).wait().unwrap();
    pool.stop_within(Duration::ZERO).unwrap();
    let error = account.save(Account { balance: 1 }).wait().unwrap_err();
    assert!(matches!(&error, DurableError::Pool { key, error: JobError::Stopped } if key == "account"), "{error}");
    assert_eq!(account.get().balance, 0);
}

#[test]
fn an_invalid_key_or_state_is_an_error() {
    let store = MemoryStore::new();
    let cases = [
        ("", "\"\" cannot be a key, because it is empty: 1 to 80 bytes without control characters are allowed"),
        (
            "a\nb",
            "\"a\\nb\" cannot be a key, because it contains '\\n': 1 to 80 bytes without control characters are allowed",
        ),
    ];
    for (key, expected) in cases {
        assert_eq!(store.load(key).unwrap_err().to_string(), expected);
    }
    let error = store.load(&"x".repeat(KEY_BYTES_MAX + 1)).unwrap_err().to_string();
    assert!(error.contains("it has 81 bytes: 1 to 80"), "{error}");
    let error = store.save("big", 0, &vec![0; STATE_BYTES_MAX + 1]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the state of \"big\" has 16777217 bytes: at most 16777216 can be saved under one key"
    );
    assert_eq!(error.key(), "big");
}

#[test]
fn an_update_within_an_update_is_refused_and_changes_nothing() {
    let system = threads(1);
    let pool = ResourcePool::start(&system, 2, 10).unwrap();
    let account = Durable::open(&pool, MemoryStore::new(), "account", Account::default()).wait().unwrap();
    let outer = account.update(|outer| {
        let inner = account.update(|inner| inner.balance += 10).wait();
        assert!(matches!(inner, Err(DurableError::Busy { .. })), "{inner:?}");
        outer.balance += 1;
    });
    outer.wait().unwrap();
    assert_eq!(account.get().balance, 1);
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| account.update(|_| panic!("no"))));
    assert!(panics.is_err());
    account.update(|account| account.balance += 1).wait().unwrap();
    assert_eq!((account.get().balance, account.revision()), (2, 2));
    system.shutdown().unwrap();
}
