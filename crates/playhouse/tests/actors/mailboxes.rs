//! Bounded mailboxes: the bound holds for every kind of send, and no permit of a mailbox is ever lost.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context as PollContext, Poll, Waker};
use std::time::Duration;

use crate::support::{Dice, Do, Log, Puppet, finishes, lock, on_stage, quiet_panics, simulated, threads};
use playhouse::prelude::*;
use playhouse::{Counters, Guard, Simulation, Undelivered};

/// Counts the messages that exist, and their maximum.
#[derive(Clone, Default)]
struct Census(Arc<(AtomicUsize, AtomicUsize)>);

impl Census {
    fn note(&self) -> Note {
        let now = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.1.fetch_max(now, Ordering::SeqCst);
        Note(self.clone())
    }

    fn now(&self) -> usize {
        self.0.0.load(Ordering::SeqCst)
    }

    fn most(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

struct Note(Census);

impl Drop for Note {
    fn drop(&mut self) {
        self.0.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The sender's number, the letter's number, and a note that the letter waits.
type Letter = (u64, u64, Option<Note>);

/// Handles letters at once, after a wait, or when it is open.
struct Reader {
    open: bool,
    read: Log<(u64, u64)>,
}

#[actor]
impl Reader {
    /// A delayed message to itself is let in, however full the mailbox is.
    #[started]
    fn open_later(&mut self, ctx: &mut Context<Self>) {
        ctx.send_after(Duration::from_secs(1), SetOpen(true));
    }

    #[message]
    fn post(&mut self, letter: Letter) {
        self.read.push((letter.0, letter.1));
    }

    #[message]
    async fn post_slowly(&mut self, letter: Letter, ctx: &mut Context<Self>) {
        let (sender, number, note) = letter;
        drop(note);
        let nobody = ctx.spawn(Puppet);
        let _ = nobody.ask(Do::this(|_| ())).await;
        self.read.push((sender, number));
    }

    #[message(when = "self.open")]
    fn post_if_open(&mut self, letter: Letter) {
        self.read.push((letter.0, letter.1));
    }

    #[message]
    async fn hold(&mut self, latch: Latch, held: Sender<()>) {
        let _ = held.send(());
        latch.await;
    }

    #[message]
    fn set_open(&mut self, open: bool) {
        self.open = open;
    }

    #[message]
    fn count(&self) -> usize {
        self.read.lock().len()
    }
}

fn reader(system: &System, options: SpawnOptions, mailbox: Mailbox) -> (ActorRef<Reader>, Log<(u64, u64)>) {
    let read = Log::new();
    let actor = system.spawn_with(options.mailbox(mailbox), Reader { open: false, read: read.clone() });
    (actor, read)
}

/// Returns the log of the reasons of dead letters.
fn reasons(system: &System) -> Log<Undelivered> {
    let log = Log::new();
    let into = log.clone();
    system.on_dead_letter(move |letter| into.push(letter.why));
    log
}

/// Sends in every possible way.
struct Writer {
    id: u64,
    dice: Dice,
    to: ActorRef<Reader>,
    census: Census,
    bound: usize,
    rounds: u64,
    wrong: Log<String>,
}

#[actor]
impl Writer {
    #[message]
    fn write(&mut self, ctx: &mut Context<Self>) {
        for _ in 0..self.dice.below(8) {
            let note = Some(self.census.note());
            let letter = (self.id, self.rounds, note);
            match self.dice.below(8) {
                0 => self.to.tell(Post(letter)),
                1 => self.to.tell_urgent(Post(letter)),
                2 => drop(self.to.try_tell(PostSlowly(letter))),
                3 => self.to.recipient::<PostIfOpen>().tell(PostIfOpen(letter)),
                4 => drop(self.to.recipient::<Post>().try_tell(Post(letter))),
                5 => ctx.ask(self.to, PostIfOpen(letter)).then(|_, _, _| ()),
                6 => self.to.tell(PostSlowly(letter)),
                _ => self.to.tell_urgent(PostIfOpen(letter)),
            }
            // With one thread, the message was let in or is gone by now.
            if self.census.now() > self.bound {
                self.wrong.push(format!("{} wait where {} may", self.census.now(), self.bound));
            }
        }
        if self.dice.one_in(4) {
            let open = self.dice.one_in(2);
            let _ = self.to.try_tell(SetOpen(open));
        }
        self.rounds -= 1;
        if self.rounds > 0 {
            ctx.send_after(Duration::from_millis(1), Write);
        }
    }
}

// GUARANTEE: Bounded mailboxes
#[test]
fn waiting_messages_never_exceed_the_bound_under_every_seed() {
    for seed in 0..150 {
        for on_full in [OnFull::Reject, OnFull::DropNewest, OnFull::DropOldest] {
            let system = simulated(seed);
            let bound = 1 + seed as usize % 7;
            let (census, wrong) = (Census::default(), Log::new());
            let (reader, read) = reader(&system, on_stage(0), Mailbox::bounded(bound).on_full(on_full));
            for id in 0..4 {
                let (census, wrong) = (census.clone(), wrong.clone());
                let dice = Dice(seed ^ (id << 32));
                let writer = Writer { id, dice, to: reader, census, bound, rounds: 30, wrong };
                system.spawn_with(on_stage(id as u16 % 3), writer).tell(Write);
            }
            system.run_until_idle();
            assert_eq!(wrong.take(), Vec::<String>::new(), "seed {seed}, {on_full:?}");
            assert!(census.most() > bound, "seed {seed}: it was never full");
            // All permits are free in the end, whatever has happened.
            assert_eq!(census.now(), 0, "seed {seed}, {on_full:?}");
            read.take();
            for n in 0..bound as u64 {
                assert!(reader.try_tell(Post((9, n, None))).is_ok(), "seed {seed}, {on_full:?}: place {n} is lost");
            }
            assert_eq!(reader.try_tell(Post((9, 99, None))).is_ok(), on_full == OnFull::DropOldest);
            system.run_until_idle();
            assert_eq!(read.take().len(), bound);
            system.shutdown().unwrap();
        }
    }
}

/// Lets a handler wait until the test opens the latch.
#[derive(Clone, Default)]
struct Latch(Arc<Mutex<(bool, Option<Waker>)>>);

impl Latch {
    fn open(&self) {
        let waker = {
            let mut latch = lock(&self.0);
            latch.0 = true;
            latch.1.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Future for Latch {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut PollContext<'_>) -> Poll<()> {
        let mut latch = lock(&self.0);
        latch.1 = Some(cx.waker().clone());
        if latch.0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Has the reader wait, and therefore the messages to it wait too.
fn hold(reader: ActorRef<Reader>) -> Latch {
    let (latch, (held, is_held)) = (Latch::default(), channel());
    reader.tell(Hold(latch.clone(), held));
    is_held.recv().unwrap();
    latch
}

// GUARANTEE: Bounded mailboxes
#[test]
fn exactly_as_many_as_may_are_let_in_by_threads_and_workers_at_once() {
    finishes(|| {
        for on_full in [OnFull::Reject, OnFull::DropOldest] {
            let system = threads(2);
            let (reader, read) = reader(&system, on_stage(0), Mailbox::bounded(100).on_full(on_full));
            for round in 0..30 {
                let latch = hold(reader);
                let (done, all_done) = channel::<()>();
                for stage in 0..3 {
                    let done = done.clone();
                    system.spawn_with(on_stage(stage), Puppet).tell(Do::this(move |_| {
                        (0..100).for_each(|n| reader.tell(Post((round, n, None))));
                        drop(done);
                    }));
                }
                drop(done);
                std::thread::scope(|scope| {
                    for _ in 0..3 {
                        scope.spawn(|| (0..100).for_each(|n| reader.tell(Post((round, n, None)))));
                    }
                });
                assert!(all_done.recv().is_err(), "all have sent");
                latch.open();
                system.run_until_idle();
                assert_eq!(read.take().len(), 100, "round {round}, {on_full:?}");
            }
            let Counters { rejected, dropped, dead_letters, .. } = system.stats().total;
            let expected = if on_full == OnFull::Reject { (15_000, 0) } else { (0, 15_000) };
            assert_eq!(((rejected, dropped), dead_letters), (expected, 15_000));
            system.shutdown().unwrap();
        }
    });
}

/// Returns the number of these messages that readers have handled while they were timed, by the message's type.
fn timed(system: &System, message: &str) -> u64 {
    let times = system.handler_times();
    times.iter().filter(|times| times.message.ends_with(&format!("::{message}"))).map(|times| times.count).sum()
}

// GUARANTEE: Bounded mailboxes
#[test]
fn a_bound_holds_with_an_observer_which_counts_only_handled_messages() {
    finishes(|| {
        for (on_full, workers) in
            [(OnFull::Reject, 2), (OnFull::DropNewest, 1), (OnFull::DropOldest, 1), (OnFull::DropOldest, 2)]
        {
            let system = System::builder().workers(workers).handler_times(true).start().unwrap();
            let top = system.look();
            let (reader, read) = reader(&system, on_stage(0), Mailbox::bounded(10).on_full(on_full));
            for round in 0..20 {
                let before = system.stats().total.received;
                let latch = hold(reader);
                // The message that waits for its guard keeps its permit, and is handled last.
                reader.tell_urgent(PostIfOpen((round, 100, None)));
                let (done, all_done) = channel::<()>();
                for stage in 0..2 {
                    let done = done.clone();
                    system.spawn_with(on_stage(stage), Puppet).tell(Do::this(move |ctx| {
                        (0..50).for_each(|n| reader.tell(Post((round, n, None))));
                        ctx.stop();
                        drop(done);
                    }));
                }
                drop(done);
                assert!(all_done.recv().is_err(), "all have sent");
                latch.open();
                system.run_until_idle();
                reader.ask(SetOpen(true)).wait().unwrap();
                reader.ask(SetOpen(false)).wait().unwrap();
                system.run_until_idle();
                let read = read.take();
                assert_eq!((read.len(), read[9]), (10, (round, 100)), "{on_full:?}");
                // Hold and its wake-up, 10 posts, 2 times SetOpen; and start, Do and end of 2 senders.
                let received = system.stats().total.received - before;
                assert!((14..=30).contains(&received), "{received} in round {round}, {on_full:?}");
            }
            let counted = ["Post", "PostIfOpen", "SetOpen", "Hold"].map(|message| timed(&system, message));
            // One more SetOpen: the reader's message to itself.
            assert_eq!(counted, [20 * 9, 20, 2 * 20 + 1, 20], "{on_full:?}");
            let doings = top.take();
            let handled: u64 =
                doings.actors.values().filter(|(actor, ..)| actor.ends_with("::Reader")).map(|doing| doing.1).sum();
            assert!(handled >= 20 * 13, "{handled}, {on_full:?}");
            let Counters { rejected, dropped, dead_letters, .. } = system.stats().total;
            let lost = 20 * 91;
            let expected = if on_full == OnFull::Reject { (lost, 0) } else { (0, lost) };
            assert_eq!(((rejected, dropped), dead_letters), (expected, lost), "{on_full:?}");
            system.shutdown().unwrap();
        }
    });
}

// GUARANTEE: Messages that do not fit are reported
#[test]
fn a_message_that_does_not_fit_is_returned_a_dead_letter_or_a_failed_ask() {
    finishes(|| {
        let system = threads(1);
        let why = reasons(&system);
        let (reader, read) = reader(&system, SpawnOptions::new(), Mailbox::bounded(2));
        let latch = hold(reader);
        reader.tell(Post((0, 1, None)));
        reader.tell(Post((0, 2, None)));
        match reader.try_tell(Post((0, 3, None))) {
            Err(error @ TrySendError::Full(_)) => {
                assert_eq!(error.to_string(), "the receiver's mailbox is full, or its worker overloaded");
                assert_eq!(error.into_message().0.1, 3);
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(reader.recipient::<Post>().try_tell(Post((0, 4, None))), Err(TrySendError::Full(_))));
        assert_eq!((why.take(), system.stats().total.rejected), (vec![], 0));

        reader.tell(Post((0, 5, None)));
        reader.tell_urgent(Post((0, 6, None)));
        reader.recipient::<Post>().tell(Post((0, 7, None)));
        assert_eq!(why.take(), [Undelivered::Full; 3]);
        assert_eq!((system.stats().total.rejected, system.stats().total.dropped), (3, 0));

        // Asks: of a thread, of an async handler, of a sync one.
        assert_eq!(reader.ask(Count).wait(), Err(AskError::Full));
        assert_eq!(AskError::Full.to_string(), "the receiver's mailbox was full");
        let counter = system.spawn(Counting { reader, answers: Log::new() });
        assert_eq!(counter.ask(CountAwaiting).wait().unwrap(), Err(AskError::Full));
        counter.ask(CountThen).wait().unwrap();
        assert_eq!(counter.ask(Answers).wait().unwrap(), [Err(AskError::Full)]);

        latch.open();
        system.run_until_idle();
        assert_eq!(read.take(), [(0, 1), (0, 2)]);
        assert_eq!(reader.ask(Count).wait(), Ok(0));
        system.shutdown().unwrap();
    });
}

struct Counting {
    reader: ActorRef<Reader>,
    answers: Log<Result<usize, AskError>>,
}

#[actor]
impl Counting {
    #[message]
    async fn count_awaiting(&mut self) -> Result<usize, AskError> {
        self.reader.ask(Count).await
    }

    #[message]
    fn count_then(&mut self, ctx: &mut Context<Self>) {
        ctx.ask(self.reader, Count).then(|this, answer, _| this.answers.push(answer));
    }

    #[message]
    fn answers(&self) -> Vec<Result<usize, AskError>> {
        self.answers.take()
    }
}

// GUARANTEE: Messages that do not fit are reported
#[test]
fn the_oldest_go_where_they_are_to_and_the_order_of_the_rest_stays() {
    finishes(|| {
        let system = threads(2);
        let why = reasons(&system);
        let (reader, read) = reader(&system, SpawnOptions::new(), Mailbox::bounded(3).on_full(OnFull::DropOldest));
        let latch = hold(reader);
        reader.tell_urgent(Post((0, 0, None)));
        for n in 1..=10 {
            assert!(reader.try_tell(Post((1, n, None))).is_ok());
        }
        // A dropped request fails.
        let mut asked = Some(std::thread::spawn(move || reader.ask(Count).wait()));
        while system.stats().total.dropped < 9 {
            std::thread::yield_now();
        }
        reader.tell(Post((1, 11, None)));
        reader.tell(Post((1, 12, None)));
        assert_eq!(asked.take().unwrap().join().unwrap(), Err(AskError::Full));
        latch.open();
        system.run_until_idle();
        // The urgent one waits behind the handler as the others do, and is not dropped.
        assert_eq!(read.take(), [(0, 0), (1, 11), (1, 12)]);
        assert_eq!(why.take(), [Undelivered::Full; 10]);
        assert_eq!((system.stats().total.rejected, system.stats().total.dropped), (0, 11));
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Messages that do not fit are reported
#[test]
fn the_new_message_is_dropped_if_no_older_one_can_be() {
    finishes(|| {
        let system = threads(1);
        let (reader, read) = reader(&system, SpawnOptions::new(), Mailbox::bounded(2).on_full(OnFull::DropOldest));
        let latch = hold(reader);
        (1..=3).for_each(|n| reader.tell_urgent(Post((0, n, None))));
        assert!(matches!(reader.try_tell(Post((0, 4, None))), Err(TrySendError::Full(_))));
        latch.open();
        system.run_until_idle();
        assert_eq!((read.take(), system.stats().total.dropped), (vec![(0, 1), (0, 2)], 1));
        system.shutdown().unwrap();
    });
}

/// A message with the weight that the number says.
struct Stone(usize);

impl Message for Stone {
    type Reply = ();

    fn bytes(&self) -> usize {
        self.0
    }
}

impl Handler<Stone> for Reader {
    fn handle(&mut self, stone: Stone, _: &mut Context<Self>) {
        self.read.push((0, stone.0 as u64));
    }
}

// GUARANTEE: Bounded mailboxes
#[test]
fn bytes_are_bounded_and_what_is_too_large_by_itself_is_never_taken() {
    finishes(|| {
        let system = threads(1);
        let (rejecting, read) = reader(&system, SpawnOptions::new(), Mailbox::bounded(10).bytes(100));
        let latch = hold(rejecting);
        assert!(rejecting.try_tell(Stone(60)).is_ok());
        assert!(rejecting.try_tell(Stone(41)).is_err());
        assert!(rejecting.try_tell(Stone(40)).is_ok());
        assert!(rejecting.try_tell(Stone(1)).is_err());
        assert!(rejecting.try_tell(Stone(0)).is_ok());
        latch.open();
        system.run_until_idle();
        assert_eq!(read.take(), [(0, 60), (0, 40), (0, 0)]);
        assert!(rejecting.try_tell(Stone(101)).is_err());

        let mailbox = Mailbox::bounded(10).bytes(100).on_full(OnFull::DropOldest);
        let (dropping, read) = reader(&system, SpawnOptions::new(), mailbox);
        let latch = hold(dropping);
        [10, 20, 30, 90].into_iter().for_each(|bytes| dropping.tell(Stone(bytes)));
        dropping.tell(Stone(10));
        // No message is dropped for one that could never be let in.
        assert!(dropping.try_tell(Stone(101)).is_err());
        latch.open();
        system.run_until_idle();
        assert_eq!((read.take(), system.stats().total.dropped), (vec![(0, 90), (0, 10)], 3));
        system.shutdown().unwrap();
    });
}

/// Is full, and still gets notices about other actors.
struct Full {
    heard: Log<&'static str>,
}

impl Actor for Full {
    fn terminated(&mut self, _: Terminated, _: &mut Context<Self>) {
        self.heard.push("an end");
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        self.heard.push("stop");
    }
}

#[derive(Message)]
struct Begin(ActorRef<Puppet>, Latch, Sender<()>);

impl AsyncHandler<Begin> for Full {
    async fn handle(&mut self, Begin(other, latch, held): Begin, ctx: &mut Context<Self>) {
        ctx.watch(other);
        ctx.send_after(Duration::ZERO, Fill("a timer"));
        ctx.ask(other, Do::this(|ctx| ctx.stop())).then(|this, _, _| this.heard.push("an answer"));
        let _ = held.send(());
        latch.await;
    }
}

#[derive(Message)]
struct Fill(&'static str);

impl Handler<Fill> for Full {
    fn handle(&mut self, fill: Fill, _: &mut Context<Self>) {
        self.heard.push(fill.0);
    }
}

// GUARANTEE: Messages that do not fit are reported
#[test]
fn timers_answers_and_ends_need_no_permit() {
    finishes(|| {
        let system = threads(2);
        let heard = Log::new();
        let options = SpawnOptions::new().mailbox(Mailbox::bounded(1)).name("full");
        let full = system.spawn_with(options, Full { heard: heard.clone() });
        let (latch, (held, is_held)) = (Latch::default(), channel());
        let other = system.spawn(Puppet);
        full.tell(Begin(other, latch.clone(), held));
        is_held.recv().unwrap();
        full.tell(Fill("a message"));
        assert!(full.try_tell(Fill("too much")).is_err());
        while !other.is_stopped() || system.stats().total.timers_fired == 0 {
            std::thread::yield_now();
        }
        latch.open();
        let mut all = Vec::new();
        // The timer has fired. Its message may be on its way.
        while all.len() < 4 {
            all.extend(heard.take());
            std::thread::yield_now();
        }
        all.sort_unstable();
        assert_eq!(all, ["a message", "a timer", "an answer", "an end"]);

        let (latch, (held, is_held)) = (Latch::default(), channel());
        full.tell(Begin(system.spawn(Puppet), latch.clone(), held));
        is_held.recv().unwrap();
        full.tell(Fill("the last"));
        full.drain();
        latch.open();
        system.run_until_idle();
        assert!(full.is_stopped());
        let all = heard.take();
        assert!(all.contains(&"the last") && all.last() == Some(&"stop"), "it was not drained: {all:?}");

        let victim = system.spawn_with(SpawnOptions::new().mailbox(Mailbox::bounded(1)), Full { heard: heard.clone() });
        let (latch, (held, is_held)) = (Latch::default(), channel());
        victim.tell(Begin(system.spawn(Puppet), latch, held));
        is_held.recv().unwrap();
        victim.tell(Fill("never"));
        victim.kill();
        while !victim.is_stopped() {
            std::thread::yield_now();
        }
        // An actor that has ended is not full.
        assert!(matches!(victim.try_tell(Fill("late")), Err(TrySendError::Stopped(_))));
        system.shutdown().unwrap();
    });
}

/// Crashes, and counts the messages that it gets.
struct Fragile {
    read: Log<(u64, u64)>,
}

#[derive(Message)]
enum Hit {
    Hard,
    Soft(u64),
}

impl Actor for Fragile {}

impl Handler<Hit> for Fragile {
    fn handle(&mut self, hit: Hit, _: &mut Context<Self>) {
        match hit {
            Hit::Hard => panic!("meant: too hard"),
            Hit::Soft(n) => self.read.push((0, n)),
        }
    }
}

// GUARANTEE: Bounded mailboxes
#[test]
fn a_bound_stays_over_restarts_and_counts_what_waits_for_one() {
    quiet_panics();
    for seed in 0..50 {
        let system = simulated(seed);
        let policy = SupervisionPolicy::one_for_one().backoff(Duration::from_secs(1), Duration::from_secs(1));
        let supervisor = system.spawn(Supervisor::new(policy.max_restarts(9, Duration::from_secs(100))));
        let read = Log::new();
        let of_child = read.clone();
        let child = ChildSpec::new("fragile", move || Fragile { read: of_child.clone() }).mailbox(Mailbox::bounded(3));
        let fragile = supervisor.ask(child).wait().unwrap().unwrap();
        for round in 0..3 {
            fragile.tell(Hit::Hard);
            // Three messages wait during the pause before its restart.
            let (taken, log) = (Log::new(), Log::new());
            let (into, done) = (taken.clone(), log.clone());
            system.spawn(Puppet).tell(Do::this(move |ctx| {
                ctx.send_after(
                    Duration::from_millis(500),
                    Do::this(move |_| {
                        (0..5).for_each(|n| into.push(fragile.try_tell(Hit::Soft(n)).is_ok()));
                        done.push(());
                    }),
                );
            }));
            system.run_until_idle();
            assert_eq!(log.take().len(), 1);
            assert_eq!(taken.take(), [true, true, true, false, false], "seed {seed}, round {round}");
            assert_eq!(read.take(), [(0, 0), (0, 1), (0, 2)], "seed {seed}, round {round}");
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Trap {
    Guard,
    Weight,
    Nothing,
}

/// A message that panics in the method that the trap names.
struct Brittle(Trap, #[expect(dead_code, reason = "counted when it is dropped")] Note);

impl Message for Brittle {
    type Reply = ();

    fn bytes(&self) -> usize {
        assert!(self.0 != Trap::Weight, "meant: a message that cannot be weighed");
        1
    }
}

impl Handler<Brittle> for Fragile {
    fn handle(&mut self, _: Brittle, _: &mut Context<Self>) {
        self.read.push((0, 0));
    }

    fn guard(&self, message: &Brittle) -> Guard {
        assert!(message.0 != Trap::Guard, "meant: a guard that cannot look");
        Guard::Holds
    }
}

#[test]
fn a_panicking_guard_or_weight_costs_its_message_and_no_permit() {
    quiet_panics();
    for on_full in [OnFull::Reject, OnFull::DropOldest] {
        let system = simulated(0);
        let (census, read) = (Census::default(), Log::new());
        let of_child = read.clone();
        let child = ChildSpec::new("fragile", move || Fragile { read: of_child.clone() });
        let policy = SupervisionPolicy::one_for_one().max_restarts(9, Duration::from_secs(100));
        let supervisor = system.spawn(Supervisor::new(policy));
        let child = child.mailbox(Mailbox::bounded(2).on_full(on_full));
        let fragile = supervisor.ask(child).wait().unwrap().unwrap();
        for round in 1..=3 {
            fragile.tell(Brittle(Trap::Guard, census.note()));
            let weighed = catch_unwind(AssertUnwindSafe(|| fragile.tell(Brittle(Trap::Weight, census.note()))));
            assert!(weighed.is_err());
            // The message that could not be weighed is in no mailbox.
            assert_eq!(census.now(), 1);
            system.run_until_idle();
            assert_eq!((census.now(), system.stats().total.restarts), (0, round));
            // Urgent messages are not dropped for others. The reader therefore refuses each one that finds no permit.
            (0..3).for_each(|_| fragile.tell_urgent(Brittle(Trap::Nothing, census.note())));
            assert_eq!(census.now(), 2);
            system.run_until_idle();
            assert_eq!((census.now(), read.take().len()), (0, 2), "{on_full:?}");
        }
    }
}

/// Takes messages from all theaters when it is open.
#[derive(Default)]
struct Harbour {
    landed: Vec<u32>,
    open: bool,
}

#[actor(remote)]
impl Harbour {
    #[message(when = "self.open")]
    fn land(&mut self, ship: u32) {
        self.landed.push(ship);
    }

    #[message]
    fn open(&mut self) {
        self.open = true;
    }

    #[message]
    fn landed(&self) -> Vec<u32> {
        self.landed.clone()
    }
}

// GUARANTEE: Bounded mailboxes
#[test]
fn mail_from_another_theater_is_bounded_too() {
    finishes(|| {
        for seed in 0..50 {
            let net = Simulation::new(seed);
            let here = net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap();
            let there = net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap();
            let why = reasons(there.system());
            let mailbox = SpawnOptions::new().mailbox(Mailbox::bounded(3));
            let harbour = there.system().spawn_with(mailbox, Harbour::default());
            there.publish("harbour", harbour).unwrap();
            let address = there.address().unwrap();
            let found = here.find::<Harbour>(&format!("playhouse://{address}/harbour")).wait().unwrap();
            (0..2).for_each(|ship| found.tell(Land(ship)));
            net.run_until_idle();
            (2..5).for_each(|ship| found.tell(Land(ship)));
            net.run_until_idle();
            assert_eq!(why.take(), [Undelivered::Full; 2], "seed {seed}");
            assert_eq!(found.ask(Landed).wait(), Err(AskError::Full), "seed {seed}");
            assert!(matches!(harbour.try_tell(Open), Err(TrySendError::Full(_))), "seed {seed}");
            // Two tells and an ask. Messages that were given back do not count.
            assert_eq!(there.system().stats().total.rejected, 3, "seed {seed}");
        }
    });
}
