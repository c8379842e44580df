//! Guards: messages wait until their actor can handle them.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{Dice, Log, finishes, on_stage, simulated, threads};
use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};
use playhouse::{Guard, Simulation, Undelivered};

/// The producer of an item, and the item's number.
type Item = (u32, u64);

/// The bounded buffer of Kumar, §2.1.
struct Buffer {
    items: VecDeque<Item>,
    room: usize,
    wrong: Log<String>,
}

#[actor]
impl Buffer {
    #[message(when = "self.items.len() < self.room")]
    fn put(&mut self, item: Item) {
        self.items.push_back(item);
        if self.items.len() > self.room {
            self.wrong.push(format!("{} items where there is room for {}", self.items.len(), self.room));
        }
    }

    #[message(when = "!self.items.is_empty()")]
    fn take(&mut self) -> Item {
        self.items.pop_front().unwrap_or_else(|| {
            self.wrong.push("an item was taken that is not there".to_owned());
            (u32::MAX, 0)
        })
    }

    #[message]
    fn len(&self) -> usize {
        self.items.len()
    }
}

fn buffer(room: usize, wrong: &Log<String>) -> Buffer {
    Buffer { items: VecDeque::new(), room, wrong: wrong.clone() }
}

struct Producer {
    id: u32,
    to: ActorRef<Buffer>,
    sent: u64,
    last: u64,
    burst: u64,
}

#[actor]
impl Producer {
    #[message]
    fn produce(&mut self, ctx: &mut Context<Self>) {
        for _ in 0..self.burst.min(self.last - self.sent) {
            self.sent += 1;
            self.to.tell(Put((self.id, self.sent)));
        }
        if self.sent < self.last {
            ctx.this().tell(Produce);
        }
    }
}

struct Consumer {
    from: ActorRef<Buffer>,
    left: u64,
    taken: Log<Item>,
}

#[actor]
impl Consumer {
    #[message]
    async fn consume(&mut self) {
        while self.left > 0 {
            self.left -= 1;
            match self.from.ask(Take).await {
                Ok(item) => self.taken.push(item),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Checks that the items of each producer were taken in order, by one consumer or by several with one log.
fn check_order(taken: &[Item], producers: u32, each: u64) {
    let mut last = BTreeMap::new();
    for (who, number) in taken {
        let before = last.insert(*who, *number).unwrap_or(0);
        assert_eq!(*number, before + 1, "of producer {who}");
    }
    assert_eq!(last, (0..producers).map(|who| (who, each)).collect());
}

fn produce_and_consume(system: &System, dice: &mut Dice, producers: u32, each: u64) {
    let (wrong, taken) = (Log::default(), Log::default());
    let buffer = system.spawn(buffer(1 + dice.below(4), &wrong));
    // One consumer only. Several consumers may log their items in another order than they took them.
    let consumer = system.spawn(Consumer { from: buffer, left: u64::from(producers) * each, taken: taken.clone() });
    consumer.tell(Consume);
    for id in 0..producers {
        let burst = 1 + dice.below(5) as u64;
        system.spawn(Producer { id, to: buffer, sent: 0, last: each, burst }).tell(Produce);
    }
    system.run_until_idle();
    assert_eq!(wrong.take(), Vec::<String>::new());
    check_order(&taken.take(), producers, each);
    assert_eq!(buffer.ask(Len).wait(), Ok(0));
}

fn buffers_keep_order(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let system = simulated(seed);
        produce_and_consume(&system, &mut Dice(seed), 3, 8);
        let report = system.shutdown().unwrap();
        assert_eq!(report.deferred, [], "seed {seed}");
    }
}

// GUARANTEE: Guards
#[test]
fn a_bounded_buffer_keeps_its_bound_and_the_order_under_every_seed_1() {
    finishes(|| buffers_keep_order(0..600));
}

// GUARANTEE: Guards
#[test]
fn a_bounded_buffer_keeps_its_bound_and_the_order_under_every_seed_2() {
    finishes(|| buffers_keep_order(600..1200));
}

// GUARANTEE: Guards
#[test]
fn a_bounded_buffer_keeps_its_bound_and_the_order_on_threads() {
    finishes(|| {
        let system = threads(4);
        for round in 0..20 {
            produce_and_consume(&system, &mut Dice(round), 4, 500);
        }
        system.shutdown().unwrap();
    });
}

/// Handles messages at or below its level.
struct Lock {
    level: u32,
    seen: Log<u32>,
}

#[actor]
impl Lock {
    #[message(when = "*at <= self.level")]
    fn pass(&mut self, at: u32) {
        self.seen.push(at);
    }

    #[message(when = "*from <= self.level")]
    fn raise(&mut self, from: u32, to: u32) {
        assert!(from <= self.level, "the guard held");
        self.level = to;
        self.seen.push(100 + to);
    }

    #[message(when = "*at <= self.level")]
    async fn pass_slowly(&mut self, at: u32) -> u32 {
        playhouse_yield().await;
        self.seen.push(1000 + at);
        at
    }

    #[message(derive(Clone), when = "self.level > 0")]
    fn tick(&mut self) {
        self.seen.push(7);
    }

    #[message]
    fn tick_soon(&mut self, cancel_after: Option<Duration>, ctx: &mut Context<Self>) {
        let key = ctx.send_after(Duration::from_millis(5), Tick);
        if let Some(after) = cancel_after {
            ctx.ask(ctx.this(), Never).within(after).then(move |_, _, ctx| ctx.cancel(key));
        }
    }

    #[message(when = "false")]
    fn never(&mut self) {}
}

/// Is ready when it is polled a second time.
async fn playhouse_yield() {
    let mut polled = false;
    std::future::poll_fn(|cx| {
        if polled {
            return std::task::Poll::Ready(());
        }
        polled = true;
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

fn lock(system: &System) -> (ActorRef<Lock>, Log<u32>) {
    let seen = Log::default();
    (system.spawn_with(on_stage(0), Lock { level: 0, seen: seen.clone() }), seen)
}

// GUARANTEE: Guards
#[test]
fn the_oldest_whose_guard_holds_comes_first_and_before_newer_mail() {
    let system = simulated(1);
    let (lock, seen) = lock(&system);
    for at in [3, 1, 2] {
        lock.tell(Pass(at));
    }
    lock.tell(Raise(0, 2));
    lock.tell(Pass(0));
    system.run_until_idle();
    assert_eq!(seen.take(), [102, 1, 2, 0]);
    lock.tell(Raise(0, 3));
    system.run_until_idle();
    assert_eq!(seen.take(), [103, 3]);
    system.shutdown().unwrap();
}

// GUARANTEE: Guards
#[test]
fn a_handled_message_may_let_an_older_one_run_before_a_newer_one() {
    let system = simulated(1);
    let (lock, seen) = lock(&system);
    lock.tell(Pass(2));
    lock.tell(Raise(1, 2));
    lock.tell(Pass(1));
    lock.tell(Raise(0, 1));
    system.run_until_idle();
    assert_eq!(seen.take(), [101, 102, 2, 1]);
    system.shutdown().unwrap();
}

// GUARANTEE: Guards
#[test]
fn guards_of_async_handlers_hold_when_they_begin() {
    for seed in 0..200 {
        let system = simulated(seed);
        let (lock, seen) = lock(&system);
        for at in [2, 1, 0] {
            lock.tell(PassSlowly(at));
        }
        // The other messages come while the last of these waits. They wait for the handler, and then for their guards.
        lock.tell(Pass(1));
        lock.tell(Raise(0, 1));
        system.run_until_idle();
        assert_eq!(seen.take(), [1000, 101, 1001, 1], "seed {seed}");
        lock.tell(Raise(0, 2));
        system.run_until_idle();
        assert_eq!(seen.take(), [102, 1002], "seed {seed}");
        system.shutdown().unwrap();
    }
}

// GUARANTEE: A message that waits for a guard is not lost
#[test]
fn a_request_that_waits_ends_with_its_deadline_and_is_never_handled() {
    let system = simulated(1);
    let (lock, seen) = lock(&system);
    let answer = lock.ask(PassSlowly(1)).within(Duration::from_millis(10)).wait();
    assert_eq!(answer, Err(AskError::Deadline { phase: AskPhase::Queued }));
    lock.tell(Raise(0, 1));
    system.run_until_idle();
    assert_eq!(seen.take(), [101]);
    system.shutdown().unwrap();
}

// GUARANTEE: A message that waits for a guard is not lost
#[test]
fn a_request_that_is_taken_back_does_not_wait_any_more() {
    struct Impatient {
        lock: ActorRef<Lock>,
    }
    #[actor]
    impl Impatient {
        #[message]
        async fn ask_and_forget(&mut self) {
            let mut ask = std::pin::pin!(self.lock.ask(PassSlowly(1)));
            std::future::poll_fn(|cx| {
                assert!(ask.as_mut().poll(cx).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
        }
    }
    let system = simulated(1);
    let (lock, seen) = lock(&system);
    system.spawn_with(on_stage(0), Impatient { lock }).tell(AskAndForget);
    system.run_until_idle();
    // The next look at it takes it out. It is not among the messages that remain at the end.
    lock.tell(Pass(0));
    system.run_until_idle();
    assert_eq!(seen.take(), [0]);
    assert_eq!(system.shutdown().unwrap().deferred, []);
}

/// Asks for a slow pass, and logs the answer.
struct Asker {
    lock: ActorRef<Lock>,
    answers: Log<Result<u32, AskError>>,
}

#[actor]
impl Asker {
    #[message]
    async fn go(&mut self) {
        self.answers.push(self.lock.ask(PassSlowly(1)).await);
    }
}

#[test]
fn an_ask_that_could_be_handled_on_the_spot_waits_for_its_guard() {
    let system = System::builder().workers(1).simulated(1).start().unwrap();
    let (lock, seen) = lock(&system);
    let answers = Log::default();
    system.run_until_idle();
    system.spawn_with(on_stage(0), Asker { lock, answers: answers.clone() }).tell(Go);
    system.run_until_idle();
    assert_eq!(answers.take(), []);
    assert!(system.stats().total.short_circuits > 0, "it was tried on the asker's stack");
    lock.tell(Raise(0, 1));
    system.run_until_idle();
    assert_eq!((answers.take(), seen.take()), (vec![Ok(1)], vec![101, 1001]));
    system.shutdown().unwrap();
}

// GUARANTEE: A message that waits for a guard is not lost
#[test]
fn a_timers_message_waits_unless_the_timer_is_cancelled() {
    let system = simulated(1);
    let (lock, seen) = lock(&system);
    lock.tell(TickSoon(None));
    lock.tell(TickSoon(Some(Duration::from_millis(10)))); // cancelled while it waits
    system.run_until_idle();
    assert!(seen.take().is_empty());
    lock.tell(Raise(0, 1));
    system.run_until_idle();
    assert_eq!(seen.take(), [101, 7]);
    system.shutdown().unwrap();
}

#[test]
fn a_timers_message_that_is_cancelled_while_it_waits_leaves_the_mailbox() {
    let system = simulated(1);
    let (lock, seen) = lock(&system);
    lock.tell(TickSoon(Some(Duration::from_millis(10))));
    system.run_until_idle();
    lock.tell(Pass(0));
    system.run_until_idle();
    assert_eq!(seen.take(), [0]);
    assert_eq!(system.shutdown().unwrap().deferred, []);
}

/// Returns the log of a system's dead letters, in their `Display` form.
fn dead_letters(system: &System) -> Log<String> {
    let letters = Log::default();
    let log = letters.clone();
    system.on_dead_letter(move |letter| log.push(letter.to_string()));
    letters
}

// GUARANTEE: A message that waits for a guard is not lost
#[test]
fn a_message_that_waits_when_its_actor_ends_is_a_dead_letter() {
    for how in [ActorRef::stop, ActorRef::drain, ActorRef::kill] {
        let system = simulated(1);
        let letters = dead_letters(&system);
        let (lock, seen) = lock(&system);
        let answers = Log::default();
        lock.tell(Pass(1));
        system.spawn(Asker { lock, answers: answers.clone() }).tell(Go);
        system.run_until_idle();
        assert_eq!((letters.take(), answers.take()), (vec![], vec![]));
        how(lock);
        system.run_until_idle();
        assert_eq!(answers.take(), [Err(AskError::Stopped)]);
        assert_eq!(letters.take(), ["Pass for Lock: the actor has stopped"]);
        assert!(seen.take().is_empty());
        system.shutdown().unwrap();
    }
}

// GUARANTEE: A message that waits for a guard is not lost
#[test]
fn a_message_that_waits_to_the_end_is_reported_by_actor_and_message() {
    let system = simulated(1);
    let letters = dead_letters(&system);
    let seen: Log<u32> = Log::default();
    let named = SpawnOptions::new().name("front door");
    let lock = system.spawn_with(named, Lock { level: 0, seen });
    lock.tell(Pass(4));
    lock.tell(Pass(5));
    lock.tell(Never);
    lock.tell(Pass(0));
    let report = system.shutdown().unwrap();
    let mut shown: Vec<String> = report.deferred.iter().map(ToString::to_string).collect();
    shown.sort();
    assert_eq!(
        shown,
        [
            "1 Never for Lock \"front door\": deferred, and the guard did not hold to the end",
            "2 Pass for Lock \"front door\": deferred, and the guard did not hold to the end"
        ]
    );
    assert_eq!((report.undelivered, letters.take().len()), (3, 3));
}

/// Opens only after a restart.
struct Door {
    open: bool,
    seen: Log<u32>,
}

#[actor]
impl Door {
    #[message(when = "self.open")]
    fn enter(&mut self, who: u32) {
        self.seen.push(who);
    }

    #[message]
    fn slam(&mut self) {
        panic!("slammed");
    }
}

// GUARANTEE: A message that waits for a guard is not lost
#[test]
fn guarded_messages_survive_a_restart_and_are_checked_with_the_new_state() {
    for seed in 0..100 {
        let system = simulated(seed);
        let seen: Log<u32> = Log::default();
        let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
        let (log, made) = (seen.clone(), Arc::new(std::sync::atomic::AtomicU32::new(0)));
        let new = move || Door { open: made.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 0, seen: log.clone() };
        let door = supervisor.ask(ChildSpec::new("door", new)).wait().unwrap().unwrap();
        door.tell(Enter(1));
        door.tell(Enter(2));
        door.tell(Slam);
        door.tell(Enter(3));
        system.run_until_idle();
        assert_eq!(seen.take(), [1, 2, 3], "seed {seed}");
        system.shutdown().unwrap();
    }
}

/// A state machine: its state decides which messages it takes.
#[derive(Default)]
struct Line {
    is_open: bool,
    sent: Vec<u32>,
}

#[actor]
impl Line {
    #[message(when = "!self.is_open", otherwise = "refuse")]
    fn open(&mut self) {
        self.is_open = true;
    }

    #[message(when = "self.is_open", otherwise = "refuse")]
    fn write(&mut self, what: u32) -> usize {
        self.sent.push(what);
        self.sent.len()
    }

    #[message(when = "self.is_open", otherwise = "drop")]
    fn keep_alive(&mut self) -> bool {
        true
    }
}

// GUARANTEE: Refused messages are reported
#[test]
fn a_refused_message_is_a_dead_letter_or_an_error() {
    let system = simulated(1);
    let letters = dead_letters(&system);
    let line = system.spawn(Line::default());
    line.tell(Write(1));
    assert_eq!(line.ask(Write(2)).wait(), Err(AskError::Refused));
    assert_eq!(letters.take(), ["Write for Line: the actor does not take it in the state that it is in"]);
    line.tell(Open);
    assert_eq!(line.ask(Write(3)).wait(), Ok(1));
    assert_eq!(line.ask(Open).wait(), Err(AskError::Refused));
    assert_eq!(AskError::Refused.to_string(), "the receiver does not take this message in the state that it is in");
    system.shutdown().unwrap();
}

// GUARANTEE: Refused messages are reported
#[test]
fn a_dropped_message_is_no_dead_letter_but_every_ask_ends() {
    let system = simulated(1);
    let letters = dead_letters(&system);
    let line = system.spawn(Line::default());
    line.tell(KeepAlive);
    assert_eq!(line.ask(KeepAlive).wait(), Err(AskError::Refused));
    line.tell(Open);
    assert_eq!(line.ask(KeepAlive).wait(), Ok(true));
    assert_eq!(letters.take(), Vec::<String>::new());
    assert_eq!(system.shutdown().unwrap().undelivered, 0);
}

/// Implements the traits by hand.
struct Shelf(Vec<String>);

impl Actor for Shelf {}

#[derive(Message)]
#[message(reply = usize)]
struct Lay(String, #[allow(dead_code, reason = "ballast: a message that does not fit into the queue")] [u64; 40]);

#[derive(Message)]
struct Clear;

impl Handler<Lay> for Shelf {
    fn handle(&mut self, lay: Lay, _: &mut Context<Self>) -> usize {
        self.0.push(lay.0);
        self.0.len()
    }

    fn guard(&self, lay: &Lay) -> Guard {
        assert!(lay.0 != "13", "unlucky");
        match self.0.len() {
            0 | 1 => Guard::Holds,
            2 => Guard::Defer,
            _ => Guard::Refuse,
        }
    }
}

impl Handler<Clear> for Shelf {
    fn handle(&mut self, _: Clear, _: &mut Context<Self>) {
        self.0.clear();
    }
}

#[test]
fn a_guard_that_is_written_by_hand_defers_large_messages_too() {
    let system = simulated(1);
    let shelf = system.spawn(Shelf(Vec::new()));
    for n in 0..5 {
        shelf.tell(Lay(n.to_string(), [0; 40]));
    }
    for _ in 0..2 {
        shelf.tell(Clear);
    }
    assert_eq!(shelf.ask(Lay("5".to_owned(), [0; 40])).wait(), Ok(2));
    assert_eq!(system.shutdown().unwrap().undelivered, 0);
}

// GUARANTEE: Refused messages are reported
#[test]
fn a_guard_that_panics_is_a_crash_and_its_message_is_lost() {
    let system = simulated(1);
    let shelf = system.spawn(Shelf(Vec::new()));
    assert_eq!(shelf.ask(Lay("13".to_owned(), [0; 40])).wait(), Err(AskError::Panicked));
    assert_eq!(shelf.ask(Lay("1".to_owned(), [0; 40])).wait(), Err(AskError::Stopped));
    system.shutdown().unwrap();
}

#[test]
fn refused_and_stopped_are_told_apart() {
    let system = simulated(1);
    let reasons: Log<Undelivered> = Log::default();
    let log = reasons.clone();
    system.on_dead_letter(move |letter| log.push(letter.why));
    let line = system.spawn(Line::default());
    line.tell(Write(1));
    system.run_until_idle();
    line.stop();
    system.run_until_idle();
    line.tell(Write(1));
    system.run_until_idle();
    assert_eq!(reasons.take(), [Undelivered::Refused, Undelivered::Stopped]);
    system.shutdown().unwrap();
}

/// A lock that migrates.
#[derive(Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Trunk {
    level: u32,
    seen: Vec<u32>,
}

#[actor(mobile)]
impl Trunk {
    #[message(when = "*at <= self.level")]
    fn stow(&mut self, at: u32) {
        self.seen.push(at);
    }

    #[message(when = "*at <= self.level")]
    fn stow_and_say(&mut self, at: u32) -> u32 {
        self.seen.push(at);
        at
    }

    #[message]
    fn lift(&mut self, to: u32) {
        self.level = to;
    }

    #[message]
    fn go_to(&mut self, theater: SocketAddr, ctx: &mut Context<Self>) {
        ctx.migrate_to(theater);
    }

    #[message]
    fn seen(&self) -> Vec<u32> {
        self.seen.clone()
    }
}

#[derive(Default)]
struct Porter {
    answers: Log<Result<u32, AskError>>,
}

#[actor]
impl Porter {
    #[message]
    async fn ask_for(&mut self, trunk: ActorRef<Trunk>, at: u32) {
        self.answers.push(trunk.ask(StowAndSay(at)).await);
    }
}

// GUARANTEE: A message that waits for a guard is not lost
#[test]
fn guarded_messages_migrate_with_their_actor_and_keep_their_order() {
    finishes(|| {
        for seed in 0..200 {
            let net = Simulation::new(seed);
            let here = net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap();
            let there = net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap();
            let peer = here.connect(there.address().unwrap()).unwrap();
            let trunk = here.system().spawn(Trunk { level: 0, seen: Vec::new() });
            let answers = Log::default();
            for at in [3, 1, 2, 0, 1] {
                trunk.tell(Stow(at));
            }
            here.system().spawn(Porter { answers: answers.clone() }).tell(AskFor(trunk, 2));
            net.run_until_idle();
            here.migrate(trunk, &peer).wait().unwrap();
            trunk.tell(Stow(0));
            net.run_until_idle();
            assert_eq!(trunk.ask(Seen).wait().unwrap(), [0, 0], "seed {seed}");
            trunk.tell(Lift(2));
            net.run_until_idle();
            assert_eq!(trunk.ask(Seen).wait().unwrap(), [0, 0, 1, 2, 1, 2], "seed {seed}");
            assert_eq!(answers.take(), [Ok(2)], "seed {seed}");
            // The actor migrates back, with the message that still waits.
            trunk.tell(GoTo(here.address().unwrap()));
            net.run_until_idle();
            assert!(!trunk.id().address().is_away(), "seed {seed}");
            trunk.tell(Lift(3));
            assert_eq!(trunk.ask(Seen).wait().unwrap(), [0, 0, 1, 2, 1, 2, 3], "seed {seed}");
        }
    });
}
