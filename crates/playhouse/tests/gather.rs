//! Asks to many, and asks that are tried again.

mod support;

use std::time::Duration;

use playhouse::asks::{AnswerCache, IdempotencyKey, Retry, RetryError, ask_many};
use playhouse::prelude::*;
use playhouse::wire::Codec;
use support::{Clock, Do, Log, Never, Puppet, finishes, quiet_panics, simulated, threads};

const SECOND: Duration = Duration::from_secs(1);

async fn sleep<A: Actor>(time: Duration, ctx: &mut Context<A>) {
    let clock = ctx.spawn(Clock);
    let _it_is_late = clock.ask(Never).within(time).await;
    clock.kill();
}

/// Answers with its number after `seconds` seconds.
struct Voter {
    number: u64,
    seconds: u32,
    log: Log<u64>,
}

impl Actor for Voter {}

#[derive(Message, Clone)]
#[message(reply = u64)]
struct Vote;

impl AsyncHandler<Vote> for Voter {
    async fn handle(&mut self, _: Vote, ctx: &mut Context<Self>) -> u64 {
        self.log.push(self.number);
        sleep(SECOND * self.seconds, ctx).await;
        self.number
    }
}

/// Returns voters that take 1, 2, 3 … seconds.
fn voters(system: &System, n: u32) -> (Vec<ActorRef<Voter>>, Log<u64>) {
    let log = Log::new();
    let voter = |n: u32| system.spawn(Voter { number: u64::from(n), seconds: n, log: log.clone() });
    ((1..=n).map(voter).collect(), log)
}

// GUARANTEE: Asks to many
#[test]
fn all_answers_come_in_the_order_of_those_asked_with_one_deadline() {
    for seed in 0..20 {
        let system = simulated(seed);
        let (mut voters, log) = voters(&system, 5);
        voters.reverse();
        let start = system.now();
        let answers = ask_many(voters.clone(), Vote).within(SECOND * 7 / 2).all().wait();
        let late = || Err(AskError::Deadline { phase: AskPhase::Running });
        let expected = [late(), late(), Ok(3), Ok(2), Ok(1)];
        assert_eq!(answers, voters.into_iter().zip(expected).collect::<Vec<_>>(), "seed {seed}");
        let took = system.now() - start;
        assert!(took >= SECOND * 7 / 2 && took < SECOND * 4, "seed {seed}: {took:?}");
        assert_eq!(log.take().len(), 5);
    }
}

// GUARANTEE: Asks to many
#[test]
fn the_first_answers_are_enough_and_the_rest_is_taken_back() {
    for seed in 0..20 {
        let system = simulated(seed);
        let (voters, log) = voters(&system, 5);
        // The last two voters are busy for long, and the asks to them wait.
        voters[3].tell(Vote);
        voters[4].tell(Vote);
        system.spawn(Puppet).tell(Do::this(|_| {}));
        let start = system.now();
        let first = ask_many(voters.clone(), Vote).first(2).wait().unwrap();
        assert_eq!(first, [(voters[0], 1), (voters[1], 2)], "seed {seed}");
        assert!(system.now() - start < SECOND * 3);
        system.run_until_idle();
        let mut votes = log.take();
        votes.sort_unstable();
        // Voters 4 and 5 handled the first request only.
        assert_eq!(votes, [1, 2, 3, 4, 5], "seed {seed}");
    }
}

// GUARANTEE: Asks to many
#[test]
fn a_quorum_is_more_than_half_and_fails_as_soon_as_it_cannot_be_had() {
    for seed in 0..20 {
        let system = simulated(seed);
        let (voters, _) = voters(&system, 5);
        let quorum = ask_many(voters.clone(), Vote).quorum().wait().unwrap();
        assert_eq!(quorum.iter().map(|(_, vote)| *vote).collect::<Vec<_>>(), [1, 2, 3]);
        for voter in &voters[2..] {
            voter.stop();
        }
        system.run_until_idle();
        let start = system.now();
        let error = ask_many(voters.clone(), Vote).quorum().wait().unwrap_err();
        // The asker does not wait for the two voters that could answer.
        assert!(system.now() - start < SECOND, "seed {seed}");
        assert_eq!((error.wanted, error.asked, error.errors.len()), (3, 5, 3));
        assert!(error.to_string().starts_with("3 answers were wanted from 5 actors, and 0 came; Voter"), "{error}");
        assert!(error.to_string().contains(": the receiver has stopped"), "{error}");
    }
}

#[test]
fn a_gather_without_actors_ends_at_once() {
    let system = simulated(1);
    let nobody = || ask_many(Vec::<ActorRef<Voter>>::new(), Vote);
    assert_eq!(nobody().all().wait(), []);
    assert_eq!(nobody().first(0).wait().unwrap(), []);
    let error = nobody().quorum().wait().unwrap_err();
    assert_eq!(error.to_string(), "1 answers were wanted from 0 actors, and 0 came");
    let (voters, log) = voters(&system, 2);
    assert!(ask_many(voters, Vote).first(3).wait().is_err());
    system.run_until_idle();
    assert_eq!(log.take(), [], "what cannot succeed is not begun");
}

#[test]
fn a_gather_returns_the_answers_that_came_when_a_simulation_is_idle() {
    let system = simulated(1);
    let (voters, _) = voters(&system, 2);
    let asker = voters.clone();
    voters[1].kill();
    let stopped = Err(AskError::Stopped);
    assert_eq!(ask_many(voters, Vote).all().wait(), [(asker[0], Ok(1)), (asker[1], stopped)]);
    let clocks = [0, 1].map(|_| system.spawn(Clock));
    let each = clocks.map(|clock| (clock, Err(AskError::Unanswered)));
    assert_eq!(ask_many(clocks, Wait).all().wait(), each);
    let error = ask_many(clocks, Wait).first(1).wait().unwrap_err();
    assert_eq!((error.answers.len(), error.errors.len()), (0, 2));
    // The same holds after the end of the system.
    let ended = simulated(2);
    let clock = ended.spawn(Clock);
    ended.shutdown().unwrap();
    assert_eq!(ask_many([clock], Wait).all().wait(), [(clock, Err(AskError::Shutdown))]);
    assert_eq!(ask_many([clock], Wait).first(1).wait().unwrap_err().errors, [(clock, AskError::Shutdown)]);
}

/// Gathers in both kinds of handlers.
#[derive(Default)]
struct Chair {
    result: Option<Vec<u64>>,
    meanwhile: u32,
}

#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Hold(Vec<ActorRef<Voter>>);

impl AsyncHandler<Hold> for Chair {
    async fn handle(&mut self, Hold(voters): Hold, _: &mut Context<Self>) -> Vec<u64> {
        ask_many(voters, Vote).quorum().await.unwrap().into_iter().map(|(_, vote)| vote).collect()
    }
}

#[derive(Message)]
struct Announce(Vec<ActorRef<Voter>>);

impl Handler<Announce> for Chair {
    fn handle(&mut self, Announce(voters): Announce, ctx: &mut Context<Self>) {
        ask_many(voters, Vote).all().then(ctx, |this, answers, _| {
            this.result = Some(answers.into_iter().filter_map(|(_, answer)| answer.ok()).collect());
        });
    }
}

#[derive(Message)]
#[message(reply = (Option<Vec<u64>>, u32))]
struct Look;

impl Handler<Look> for Chair {
    fn handle(&mut self, _: Look, _: &mut Context<Self>) -> (Option<Vec<u64>>, u32) {
        self.meanwhile += 1;
        (self.result.clone(), self.meanwhile)
    }
}

impl Actor for Chair {}

// GUARANTEE: Asks to many
#[test]
fn handlers_gather_with_and_without_waiting() {
    for seed in 0..20 {
        let system = simulated(seed);
        let (voters, _) = voters(&system, 3);
        let chair = system.spawn(Chair::default());
        assert_eq!(chair.ask(Hold(voters.clone())).wait(), Ok(vec![1, 2]));
        chair.tell(Announce(voters));
        assert_eq!(chair.ask(Look).wait(), Ok((None, 1)), "it goes on meanwhile");
        system.run_until_idle();
        assert_eq!(chair.ask(Look).wait(), Ok((Some(vec![1, 2, 3]), 2)), "seed {seed}");
    }
}

#[test]
fn many_are_asked_on_threads() {
    finishes(|| {
        let system = threads(2);
        let log = Log::new();
        let voters: Vec<_> =
            (0..200).map(|number| system.spawn(Voter { number, seconds: 0, log: log.clone() })).collect();
        for _ in 0..20 {
            let answers = ask_many(voters.clone(), Vote).all().wait();
            assert!(answers.iter().zip(0..).all(|((_, answer), number)| *answer == Ok(number)));
            assert!(ask_many(voters.clone(), Vote).quorum().wait().is_ok());
        }
        system.shutdown().unwrap();
    });
}

// -- retry --------------------------------------------------------------------------------------------------------------

/// Takes a long time for the first requests, or crashes. Does each operation once.
struct Till {
    sum: u64,
    trouble: u32,
    crashes: bool,
    seen: Log<(Duration, IdempotencyKey)>,
    done: AnswerCache<u64>,
}

impl Actor for Till {}

#[derive(Message, Clone)]
#[message(reply = u64)]
struct Pay {
    key: IdempotencyKey,
    amount: u64,
}

impl AsyncHandler<Pay> for Till {
    async fn handle(&mut self, Pay { key, amount }: Pay, ctx: &mut Context<Self>) -> u64 {
        self.seen.push((ctx.now(), key));
        if let Some(answer) = self.done.get(key) {
            return answer;
        }
        self.sum += amount;
        self.done.put(key, self.sum);
        if self.trouble > 0 {
            self.trouble -= 1;
            assert!(!self.crashes, "meant: the till is stuck");
            // The operation is done, but its answer is late.
            sleep(SECOND * 2, ctx).await;
        }
        self.sum
    }
}

fn till(trouble: u32) -> (Till, Log<(Duration, IdempotencyKey)>) {
    let seen = Log::new();
    (Till { sum: 0, trouble, crashes: false, seen: seen.clone(), done: AnswerCache::with_room_for(100) }, seen)
}

// GUARANTEE: Retries
#[test]
fn a_late_answer_is_asked_for_again_and_nothing_is_done_twice() {
    for seed in 0..20 {
        let system = simulated(seed);
        let (till, seen) = till(1);
        let till = system.spawn(till);
        let retry = Retry::attempts(5).within(SECOND).backoff(SECOND * 4, SECOND * 60);
        let pay = Pay { key: IdempotencyKey::random(), amount: 10 };
        assert_eq!(retry.ask(till, pay.clone()).wait(), Ok(10), "seed {seed}");
        // A request with another key is a new request.
        assert_eq!(retry.ask(till, Pay { key: IdempotencyKey::random(), amount: 5 }).wait(), Ok(15));
        let seen = seen.take();
        assert_eq!(seen.len(), 3);
        assert!(seen[..2].iter().all(|(_, key)| *key == pay.key) && seen[2].1 != pay.key);
        let pause = seen[1].0 - seen[0].0;
        assert!(pause >= SECOND * 5 && pause < SECOND * 6, "{pause:?}");
    }
}

// GUARANTEE: Retries
#[test]
fn attempts_end_and_pauses_grow_up_to_their_limit() {
    let system = simulated(3);
    let (till, seen) = till(100);
    let till = system.spawn(till);
    let retry = Retry::attempts(5).within(SECOND * 3).backoff(SECOND, SECOND * 3);
    let mut key = 0;
    let stuck = system.spawn(Puppet);
    let error = retry.ask(till, Pay { key: IdempotencyKey::from(key), amount: 1 }).wait();
    assert_eq!(error, Ok(1), "two seconds are not three");
    let clock = system.spawn(Clock);
    let start = system.now();
    let error = retry.ask(clock, Wait).wait().unwrap_err();
    let taken = system.now() - start;
    // 5 attempts of 3 seconds; pauses of 1, 2, 3 and 3.
    assert!(taken >= SECOND * 24 && taken < SECOND * 25, "{taken:?}");
    assert_eq!(error.attempts, 5);
    assert!(error.to_string().starts_with("asked 5 times, the last time: no answer before the deadline"), "{error}");
    // An actor that has ended will not answer.
    stuck.stop();
    till.stop();
    system.run_until_idle();
    key += 1;
    let error = retry.ask(till, Pay { key: IdempotencyKey::from(key), amount: 1 }).wait().unwrap_err();
    assert!(matches!(error, RetryError { attempts: 1, last: AskError::Stopped, .. }), "{error:?}");
    assert_eq!(error.to_string(), "asked once: the receiver has stopped");
    assert_eq!(seen.take().len(), 1);
}

#[derive(Message, Clone)]
struct Wait;

impl AsyncHandler<Wait> for Clock {
    async fn handle(&mut self, _: Wait, _: &mut Context<Self>) {
        std::future::pending().await
    }
}

// GUARANTEE: Retries
#[test]
fn a_request_whose_handler_crashes_is_asked_again_only_where_that_is_wanted() {
    quiet_panics();
    let system = simulated(1);
    let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
    let seen = Log::new();
    let log = seen.clone();
    let mut lives = 0;
    let factory = move || {
        lives += 1;
        let (mut till, _) = till(u32::from(lives < 3));
        till.crashes = true;
        till.seen = log.clone();
        till
    };
    let till = supervisor.ask(ChildSpec::new("till", factory)).wait().unwrap().unwrap();
    let pay = Pay { key: IdempotencyKey::from(7), amount: 3 };
    let crashed = Retry::attempts(9).ask(till, pay.clone()).wait().unwrap_err();
    assert_eq!((crashed.attempts, crashed.last), (1, AskError::Panicked));
    assert_eq!(seen.take().len(), 1);
    let again = Retry::attempts(2).after_panics();
    assert_eq!(again.ask(till, pay.clone()).wait(), Ok(3));
    assert_eq!(seen.take().len(), 2);
}

/// Has money. Gives some to another account, which must confirm that it has come.
struct Account {
    balance: u64,
}

impl Actor for Account {}

#[derive(Message, Clone)]
#[message(reply = Result<(), AskError>)]
struct Transfer {
    amount: u64,
    to: ActorRef<Account>,
}

impl AsyncHandler<Transfer> for Account {
    async fn handle(&mut self, Transfer { amount, to }: Transfer, _: &mut Context<Self>) -> Result<(), AskError> {
        self.balance -= amount;
        let has_come = to.ask(Deposit { amount }).await;
        if has_come.is_err() {
            self.balance += amount;
        }
        has_come
    }
}

#[derive(Message)]
#[message(reply = ())]
struct Deposit {
    amount: u64,
}

impl Handler<Deposit> for Account {
    fn handle(&mut self, Deposit { amount }: Deposit, _: &mut Context<Self>) {
        self.balance += amount;
    }
}

#[derive(Message)]
#[message(reply = u64)]
struct Balance;

impl Handler<Balance> for Account {
    fn handle(&mut self, _: Balance, _: &mut Context<Self>) -> u64 {
        self.balance
    }
}

/// All accounts give to all others at the same time. Returns the number of failed transfers and the number of all.
fn trade(system: &System, retry: Retry) -> (usize, usize) {
    let accounts: Vec<ActorRef<Account>> = (0..4).map(|_| system.spawn(Account { balance: 10_000 })).collect();
    let log = Log::new();
    let mut all = 0;
    for round in 1..=16 {
        for (nth, from) in accounts.iter().enumerate() {
            let to = accounts[(nth + 1 + round % 3) % 4];
            let (from, log) = (*from, log.clone());
            all += 1;
            system.spawn(Puppet).tell(Do::this(move |ctx| {
                let ask = retry.ask(from, Transfer { amount: round as u64, to });
                ask.again_if(Result::is_err).then(ctx, move |_, answer, _| log.push(answer));
            }));
        }
    }
    system.run_until_idle();
    let balances: u64 = accounts.iter().map(|account| account.ask(Balance).wait().unwrap()).sum();
    assert_eq!(balances, 40_000);
    let answers = log.take();
    assert_eq!(answers.len(), all);
    (answers.iter().filter(|answer| !matches!(answer, Ok(Ok(())))).count(), all)
}

// GUARANTEE: Retries
#[test]
fn asks_that_meet_in_cycles_are_tried_again_until_all_have_been_answered() {
    finishes(|| {
        let mut failed = 0;
        for seed in 0..20 {
            let one = trade(&simulated(seed), Retry::attempts(1)).0;
            failed += one;
            let (failed, all) = trade(&simulated(seed), Retry::attempts(40));
            assert_eq!(failed, 0, "of {all}, seed {seed}; {one} fail without a retry");
        }
        assert!(failed > 100, "{failed} cycles");
        let system = threads(2);
        assert_eq!(trade(&system, Retry::attempts(100)).0, 0);
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Retries
/// The account is its own receiver: it asks itself in each attempt.
#[test]
fn an_answer_that_is_not_good_is_asked_for_again_with_random_pauses() {
    let pauses = |seed| {
        let system = simulated(seed);
        let account = system.spawn(Account { balance: 1 });
        let start = system.now();
        let ask = Retry::attempts(6).backoff(SECOND, SECOND * 60).ask(account, Transfer { amount: 1, to: account });
        let answer = ask.again_if(Result::is_err).wait();
        assert!(matches!(&answer, Ok(Err(AskError::Cycle(_)))), "{answer:?}");
        system.now() - start
    };
    let taken: Vec<Duration> = (0..8).map(pauses).collect();
    // The pauses are at most 1, 2, 4, 8 and 16 seconds.
    assert!(taken.iter().all(|taken| *taken > Duration::ZERO && *taken < SECOND * 32), "{taken:?}");
    assert!(taken.windows(2).all(|two| two[0] != two[1]), "{taken:?}");
    assert_eq!(taken, (0..8).map(pauses).collect::<Vec<_>>());
}

#[test]
fn a_retry_in_a_handler_brings_its_answer_as_a_message() {
    let system = simulated(1);
    let (till, _) = till(1);
    let (till, log) = (system.spawn(till), Log::new());
    let answers = log.clone();
    system.spawn(Puppet).tell(Do::this(move |ctx| {
        let retry = Retry::attempts(3).within(SECOND).backoff(SECOND * 3, SECOND * 3);
        retry
            .ask(till, Pay { key: IdempotencyKey::from(1), amount: 4 })
            .then(ctx, move |_, answer, _| answers.push(answer));
    }));
    system.run_until_idle();
    assert_eq!(log.take(), [Ok(4)]);
}

#[test]
fn an_answer_cache_forgets_the_oldest_first() {
    let mut cache = AnswerCache::with_room_for(2);
    let key = |number: u64| IdempotencyKey::from(number);
    let uuid = IdempotencyKey::from((u128::MAX - 1).to_be_bytes());
    cache.put(key(1), "one");
    cache.put(key(2), "two");
    cache.put(key(1), "ONE");
    cache.put(key(3), "three");
    assert_eq!([1, 2, 3].map(|number| cache.get(key(number))), [None, Some("two"), Some("three")]);
    assert_ne!(IdempotencyKey::random(), IdempotencyKey::random());
    assert_eq!(key(255).to_string(), "000000000000000000000000000000ff");
    assert_eq!(uuid.to_string(), "fffffffffffffffffffffffffffffffe");
    assert_eq!(IdempotencyKey::from(255_u128.to_be_bytes()), key(255));
    // The same holds for a message to another theater.
    for codec in [Codec::Positional, Codec::Named] {
        let mut bytes = Vec::new();
        codec.write(&uuid, &mut bytes).unwrap();
        assert_eq!(codec.read::<IdempotencyKey>(&bytes), Ok(uuid));
    }
}
