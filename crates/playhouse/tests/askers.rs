//! Workers that sleep are run by the tasks that ask their actors: `SystemBuilder::run_by_askers`.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::thread::{self, ThreadId};
use std::time::Duration;

use playhouse::prelude::*;
use playhouse::{AskError, AskPhase};

mod support;
use support::{Dice, LIMIT, finishes, lock};

const MS: Duration = Duration::from_millis(1);

fn askers(workers: usize) -> System {
    System::builder().workers(workers).run_by_askers(true).start().unwrap()
}

/// Runs a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Asks until a handler has run on the calling thread.
fn until_run_by_asker(system: &System) {
    let here = system.spawn(Here);
    while block_on(here.ask(Where)) != Ok(thread::current().id()) {
        thread::yield_now();
    }
}

struct Here;

#[actor]
impl Here {
    #[message]
    fn r#where(&self) -> ThreadId {
        thread::current().id()
    }
}

/// Counts in the order of the asks.
#[derive(Default)]
struct Account {
    sum: u64,
    last: Vec<u64>,
}

#[actor]
impl Account {
    #[message]
    fn put(&mut self, from: usize, number: u64, amount: u64) -> u64 {
        self.last.resize(self.last.len().max(from + 1), 0);
        assert!(number > self.last[from], "{number} comes behind {} from {from}", self.last[from]);
        self.last[from] = number;
        self.sum += amount;
        self.sum
    }

    #[message]
    fn sum(&self) -> u64 {
        self.sum
    }
}

/// Does work that takes longer.
struct Clerk {
    told: Sender<&'static str>,
    returns: Arc<Mutex<Receiver<()>>>,
}

#[actor]
impl Clerk {
    #[message]
    async fn put_for(&mut self, to: ActorRef<Account>, from: usize, number: u64, amount: u64) -> u64 {
        to.ask(Put(from, number, amount)).await.unwrap()
    }

    /// Blocks until the test lets it return.
    #[message]
    fn block(&mut self) {
        self.told.send("blocks").unwrap();
        let _ = lock(&self.returns).recv();
    }

    #[message]
    fn crash(&mut self) {
        panic!("as it was told");
    }

    #[message]
    fn remind(&mut self, after: Duration, ctx: &mut Context<Self>) {
        ctx.send_after(after, Reminded);
    }

    #[message]
    fn reminded(&mut self) {
        self.told.send("reminded").unwrap();
    }

    #[message]
    async fn never(&mut self) {
        std::future::pending::<()>().await;
    }

    /// Computes for a while.
    #[message]
    fn compute(&mut self, lasts: Duration) -> ThreadId {
        let begun = std::time::Instant::now();
        while begun.elapsed() < lasts {
            std::hint::spin_loop();
        }
        thread::current().id()
    }

    /// Sends to each of `others`.
    #[message]
    fn spread(&mut self, others: Vec<ActorRef<Account>>) {
        others.iter().for_each(|other| other.tell(Put(0, 1, 1)));
    }
}

fn clerk(system: &System) -> (ActorRef<Clerk>, Receiver<&'static str>, Sender<()>) {
    let ((told, hears), (lets, returns)) = (channel(), channel());
    (system.spawn(Clerk { told, returns: Arc::new(Mutex::new(returns)) }), hears, lets)
}

// GUARANTEE: Tasks run actors
#[test]
fn a_task_runs_the_handler_that_it_asks_for_and_a_thread_that_blocks_does_not() {
    finishes(|| {
        for workers in [1, 2] {
            let system = askers(workers);
            until_run_by_asker(&system);
            let here = system.spawn(Here);
            for _ in 0..100 {
                assert_ne!(here.ask(Where).wait().unwrap(), thread::current().id());
            }
            system.shutdown().unwrap();
        }
    });
}

#[test]
fn without_the_option_no_task_runs_actors() {
    let system = System::builder().workers(1).start().unwrap();
    let here = system.spawn(Here);
    for _ in 0..1_000 {
        assert_ne!(block_on(here.ask(Where)).unwrap(), thread::current().id());
    }
    system.shutdown().unwrap();
}

// GUARANTEE: Tasks run actors
#[test]
fn all_that_many_threads_ask_and_tell_is_handled_once_in_order() {
    const THREADS: usize = 6;
    const ACCOUNTS: usize = 5;
    const EACH: u64 = 3_000;
    finishes(|| {
        for (workers, seed) in [(1, 1), (2, 2), (3, 3)] {
            let system = askers(workers);
            let accounts: Vec<_> = (0..ACCOUNTS).map(|_| system.spawn(Account::default())).collect();
            let put = Arc::new(AtomicU64::new(0));
            let (clerk, ..) = clerk(&system);
            thread::scope(|scope| {
                for from in 0..THREADS {
                    let (accounts, put, clerk) = (&accounts, &put, clerk);
                    scope.spawn(move || {
                        let mut dice = Dice(seed * 100 + from as u64);
                        block_on(async {
                            for number in 1..=EACH {
                                let at = dice.below(ACCOUNTS);
                                let amount = dice.roll() % 100;
                                put.fetch_add(amount, Ordering::Relaxed);
                                match dice.below(8) {
                                    0 => accounts[at].tell(Put(from, number, amount)),
                                    1 => drop(accounts[at].ask(Put(from, number, amount)).wait().unwrap()),
                                    2 => {
                                        let asked = accounts[at].ask(Put(from, number, amount));
                                        asked.within(LIMIT).await.unwrap();
                                    }
                                    3 => {
                                        let put = PutFor(accounts[at], THREADS + from, number, amount);
                                        clerk.ask(put).await.unwrap();
                                    }
                                    _ => drop(accounts[at].ask(Put(from, number, amount)).await.unwrap()),
                                }
                            }
                        });
                    });
                }
            });
            system.run_until_idle();
            let sums: u64 = accounts.iter().map(|account| account.ask(Sum).wait().unwrap()).sum();
            assert_eq!(sums, put.load(Ordering::Relaxed), "{workers} workers");
            system.shutdown().unwrap();
        }
    });
}

// GUARANTEE: Tasks run actors
#[test]
fn a_handler_that_blocks_an_asker_holds_up_no_other_actor_and_the_system_ends() {
    finishes(|| {
        for workers in [1, 2] {
            let system = askers(workers);
            until_run_by_asker(&system);
            let (clerk, hears, lets) = clerk(&system);
            let account = system.spawn(Account::default());
            thread::scope(|scope| {
                let blocked = scope.spawn(|| block_on(clerk.ask(Block)));
                assert_eq!(hears.recv_timeout(LIMIT), Ok("blocks"));
                for number in 1..=100 {
                    assert_eq!(block_on(account.ask(Put(0, number, 1))), Ok(number));
                    assert_eq!(account.ask(Sum).wait(), Ok(number));
                }
                lets.send(()).unwrap();
                assert_eq!(blocked.join().unwrap(), Ok(()));
            });
            until_run_by_asker(&system);
            system.shutdown_within(LIMIT).unwrap();
        }
    });
}

#[test]
fn a_shutdown_waits_for_a_handler_that_an_asker_runs() {
    finishes(|| {
        let system = askers(1);
        until_run_by_asker(&system);
        let (clerk, hears, lets) = clerk(&system);
        let blocked = thread::spawn(move || block_on(clerk.ask(Block)));
        assert_eq!(hears.recv_timeout(LIMIT), Ok("blocks"));
        let late = system.shutdown_within(10 * MS).unwrap_err().to_string();
        assert!(late.contains("Clerk"), "{late}");
        lets.send(()).unwrap();
        // The handler has returned its answer after the end, or the end has failed the ask.
        let _either = blocked.join().unwrap();
    });
}

// GUARANTEE: Tasks run actors
#[test]
fn timers_of_actors_that_askers_run_are_in_time_and_asks_have_deadlines() {
    finishes(|| {
        for workers in [1, 2] {
            let system = askers(workers);
            let (clerk, hears, _) = clerk(&system);
            for after in [30, 10, 1, 20] {
                until_run_by_asker(&system);
                block_on(clerk.ask(Remind(after * MS))).unwrap();
                // The loop goes on asking, and the asks do not delay the timer.
                let mut reminded = None;
                while reminded.is_none() {
                    until_run_by_asker(&system);
                    reminded = hears.try_recv().ok();
                }
            }
            until_run_by_asker(&system);
            assert_eq!(block_on(clerk.ask(Never).within(5 * MS)), Err(AskError::Deadline { phase: AskPhase::Running }));
            assert_eq!(
                block_on(clerk.ask(Crash).within(5 * MS)),
                Err(AskError::Deadline { phase: AskPhase::Queued }),
                "it waits behind the handler"
            );
            clerk.kill();
            system.run_until_idle();
            system.shutdown().unwrap();
        }
    });
}

#[test]
fn a_handler_that_takes_long_is_run_by_the_workers_own_thread() {
    finishes(|| {
        for workers in [1, 2] {
            let system = askers(workers);
            let (clerk, ..) = clerk(&system);
            let account = system.spawn(Account::default());
            let here = thread::current().id();
            // The runtime does not know beforehand how long a handler takes. Short handlers in between do not make the
            // long one short.
            let by_others = |_: &usize| {
                (0..100).for_each(|_| drop(block_on(account.ask(Sum))));
                block_on(clerk.ask(Compute(2 * MS))) != Ok(here)
            };
            until_run_by_asker(&system);
            let count = (0..100).filter(by_others).count();
            assert!(count > 50, "{count} of 100 with {workers} workers");
            until_run_by_asker(&system);
            system.shutdown().unwrap();
        }
    });
}

// GUARANTEE: Tasks run actors
#[test]
fn a_task_that_asks_again_and_again_lets_others_have_their_turn() {
    finishes(|| {
        let system = askers(1);
        until_run_by_asker(&system);
        let account = system.spawn(Account::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let asks = async {
            loop {
                account.ask(Sum).await.unwrap();
            }
        };
        let mut at_once = 0;
        for _ in 0..10_000 {
            let mut asked = pin!(account.ask(Sum));
            let polled = asked.as_mut().poll(&mut std::task::Context::from_waker(Waker::noop()));
            at_once = if polled.is_ready() { at_once + 1 } else { 0 };
            assert!(at_once < 64);
            if polled.is_pending() {
                block_on(asked).unwrap();
            }
        }
        let ended: Result<(), _> = runtime.block_on(async { tokio::time::timeout(20 * MS, asks).await });
        assert!(ended.is_err());
        let asking = runtime.spawn(async move { while account.ask(Sum).await.is_ok() {} });
        runtime.block_on(async {
            tokio::task::yield_now().await;
            asking.abort();
            assert!(asking.await.unwrap_err().is_cancelled());
        });
        system.shutdown().unwrap();
    });
}

/// Asks the next one.
struct Link(Option<ActorRef<Link>>);

#[actor]
impl Link {
    #[message]
    async fn length(&mut self) -> usize {
        let room = std::hint::black_box([0_u8; 16 << 10]);
        let rest = match &self.0 {
            Some(next) => next.ask(Length).await.unwrap(),
            None => 0,
        };
        assert_eq!(room[rest % room.len()], 0);
        rest + 1
    }
}

// GUARANTEE: Tasks run actors
#[test]
fn a_long_chain_of_asks_does_not_lie_on_an_askers_stack() {
    finishes(|| {
        let system = askers(1);
        let chain = |length| (1..length).fold(system.spawn(Link(None)), |next, _| system.spawn(Link(Some(next))));
        let first = chain(500);
        until_run_by_asker(&system);
        let asker = thread::Builder::new().stack_size(1 << 20).spawn(move || block_on(first.ask(Length))).unwrap();
        assert_eq!(asker.join().unwrap(), Ok(500));
        system.shutdown().unwrap();
    });
}

/// Asks the account when it is dropped.
struct Asks(ActorRef<Account>, Sender<Result<u64, AskError>>);

impl Drop for Asks {
    fn drop(&mut self) {
        self.0.tell(Put(0, 1, 1));
        self.1.send(self.0.ask(Sum).wait()).unwrap();
    }
}

struct Full;

#[actor]
impl Full {
    #[message]
    fn take(&mut self, _asks: Asks) {}

    #[message]
    async fn hold(&mut self) {
        std::future::pending().await
    }
}

#[test]
fn a_message_that_is_refused_may_wait_for_an_answer_where_it_is_dropped() {
    finishes(|| {
        let system = askers(1);
        let account = system.spawn(Account::default());
        let full = system.spawn_with(SpawnOptions::new().mailbox(Mailbox::bounded(1)), Full);
        full.tell(Hold);
        // The handler of the first message has begun, and the next message waits for ever.
        until_run_by_asker(&system);
        assert!(full.try_tell(Hold).is_ok());
        let (told, hears) = channel();
        assert_eq!(block_on(full.ask(Take(Asks(account, told)))), Err(AskError::Full));
        assert_eq!(hears.recv_timeout(LIMIT), Ok(Ok(1)));
        full.kill();
        system.shutdown().unwrap();
    });
}

#[test]
fn messages_of_a_handler_run_by_an_asker_need_no_asker() {
    finishes(|| {
        let system = askers(2);
        let (clerk, ..) = clerk(&system);
        let accounts: Vec<_> = (0..3_000).map(|_| system.spawn(Account::default())).collect();
        until_run_by_asker(&system);
        block_on(clerk.ask(Spread(accounts.clone()))).unwrap();
        system.run_until_idle();
        assert!(accounts.iter().all(|account| block_on(account.ask(Sum)) == Ok(1)));
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Tasks run actors
#[test]
fn a_crash_on_an_askers_thread_stays_in_its_actor() {
    let system = System::builder().workers(1).run_by_askers(true).print_crashes(false).start().unwrap();
    until_run_by_asker(&system);
    let (clerk, ..) = clerk(&system);
    assert_eq!(block_on(clerk.ask(Crash)), Err(AskError::Panicked));
    assert_eq!(block_on(clerk.ask(Crash)), Err(AskError::Stopped));
    until_run_by_asker(&system);
    system.shutdown().unwrap();
}

#[test]
fn systems_end_while_threads_ask() {
    finishes(|| {
        for round in 0..60 {
            let system = askers(1 + round % 3);
            let accounts: Vec<_> = (0..4).map(|_| system.spawn(Account::default())).collect();
            thread::scope(|scope| {
                for from in 0..3 {
                    let accounts = &accounts;
                    scope.spawn(move || {
                        let asked = (1..).map(|number| {
                            let asked = accounts[number as usize % 4].ask(Put(from, number, 1));
                            block_on(asked.within(LIMIT))
                        });
                        // Until the system has ended.
                        asked.take_while(Result::is_ok).count()
                    });
                }
                until_run_by_asker(&system);
                system.shutdown_within(LIMIT).unwrap();
            });
        }
    });
}
