//! One actor or a few in a private system: probes, virtual time, and the record of sent messages.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use playhouse::prelude::*;
use playhouse_testkit::Kit;

#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
struct Line(u32);

/// An actor that forwards each line after a pause.
struct Slow {
    to: Recipient<Line>,
    delay: Duration,
}

#[actor]
impl Slow {
    #[message]
    fn take(&mut self, n: u32, ctx: &mut Context<Self>) {
        if self.delay.is_zero() {
            self.to.tell(Line(n));
        } else {
            ctx.send_after(self.delay, HandOn(n));
        }
    }
    #[message]
    fn hand_on(&mut self, n: u32) {
        self.to.tell(Line(n));
    }
    #[message]
    fn delay_ms(&self) -> u64 {
        self.delay.as_millis() as u64
    }
}

fn message_of(thrown: Box<dyn std::any::Any + Send>) -> String {
    thrown.downcast_ref::<String>().expect("a panic with a text").clone()
}

#[test]
fn a_probe_gets_what_it_is_sent_in_order() {
    let kit = Kit::new();
    let probe = kit.probe::<Line>();
    let slow = kit.system().spawn(Slow { to: probe.recipient(), delay: Duration::ZERO });
    slow.tell(Take(1));
    slow.tell(Take(2));
    assert_eq!(probe.expect(), Line(1));
    assert_eq!(probe.expect(), Line(2));
    probe.expect_none();
    assert_eq!(slow.ask(DelayMs).wait(), Ok(0));
}

// GUARANTEE: Time of a kit
#[test]
fn time_passes_only_within_what_is_given() {
    let kit = Kit::new();
    let probe = kit.probe::<Line>();
    let slow = kit.system().spawn(Slow { to: probe.recipient(), delay: Duration::from_secs(10) });
    slow.tell(Take(1));
    probe.expect_none();
    assert_eq!(kit.system().now(), Duration::ZERO);
    probe.within(Duration::from_secs(9)).expect_none();
    assert_eq!(kit.system().now(), Duration::from_secs(9));
    // The run stops as soon as the message has come.
    assert_eq!(probe.within(Duration::from_secs(60)).expect(), Line(1));
    assert_eq!(kit.system().now(), Duration::from_secs(10));
    kit.run_for(Duration::from_secs(1));
    assert_eq!(kit.system().now(), Duration::from_secs(11));
}

#[test]
fn missing_and_unexpected_messages_are_reported() {
    let kit = Kit::new();
    let probe = kit.probe::<Line>();
    let slow = kit.system().spawn(Slow { to: probe.recipient(), delay: Duration::from_secs(1) });
    slow.tell(Take(1));
    let short = probe.within(Duration::from_millis(500));
    let why = message_of(catch_unwind(AssertUnwindSafe(|| short.expect())).unwrap_err());
    assert_eq!(why, "a Line was expected within 500ms, and none came: nothing is left to do in that time");
    let why = message_of(catch_unwind(AssertUnwindSafe(|| short.expect_none())).unwrap_err());
    assert_eq!(why, "no Line was expected within 500ms, and 1 came");
}

#[derive(Message, Debug, PartialEq)]
#[message(reply = u32)]
struct Square(u32);

/// An actor that asks, and keeps the answers.
struct Client {
    receiver: Recipient<Square>,
    lines: Recipient<Line>,
    answers: Vec<Result<u32, AskError>>,
}

#[actor]
impl Client {
    #[message]
    fn request(&mut self, n: u32, ctx: &mut Context<Self>) {
        ctx.ask(self.receiver, Square(n)).then(|this, answer, _| this.answers.push(answer));
    }
    #[message]
    fn mention(&mut self, n: u32) {
        self.receiver.tell(Square(n));
    }
    #[message]
    async fn write(&mut self, n: u32, ctx: &mut Context<Self>) -> Result<(), AskError> {
        ctx.ask(self.lines, Line(n)).await
    }
    #[message]
    fn answers(&mut self) -> Vec<Result<u32, AskError>> {
        self.answers.clone()
    }
}

// GUARANTEE: Probes
#[test]
fn a_probe_answers_what_the_test_says() {
    let kit = Kit::new();
    let (asked, lines) = (kit.probe::<Square>(), kit.probe::<Line>());
    let asker = Client { receiver: asked.recipient(), lines: lines.recipient(), answers: Vec::new() };
    let asker = kit.system().spawn(asker);
    for n in [3, 4, 5] {
        asker.tell(Request(n));
    }
    // The answers are given in another order than the requests; one request has none.
    let (square, first) = asked.expect_ask();
    assert_eq!(square, Square(3));
    let (_, second) = asked.expect_ask();
    let (_, third) = asked.expect_ask();
    third.send(25);
    drop(second);
    first.send(9);
    kit.settle();
    assert_eq!(asker.ask(Answers).wait(), Ok(vec![Ok(25), Err(AskError::Unanswered), Ok(9)]));
    // No asker waits for a message that was told.
    asker.tell(Mention(6));
    asker.tell(Mention(7));
    assert_eq!(asked.expect(), Square(6));
    let (_, reply) = asked.expect_ask();
    assert!(!reply.is_awaited());
    // An answer of `()` is given without the test.
    assert_eq!(asker.ask(Write(8)).wait(), Ok(Ok(())));
    assert_eq!(asker.ask(Write(9)).wait(), Ok(Ok(())));
    assert_eq!(lines.expect(), Line(8));
    let (line, reply) = lines.expect_ask();
    assert_eq!((line, reply.is_awaited()), (Line(9), false));
}

#[test]
fn probes_keep_their_messages_when_the_kit_has_ended() {
    let kit = Kit::new();
    let (asked, lines) = (kit.probe::<Square>(), kit.probe::<Line>());
    let client =
        kit.system().spawn(Client { receiver: asked.recipient(), lines: lines.recipient(), answers: Vec::new() });
    client.tell(Request(3));
    client.tell(Request(4));
    let (_, first) = asked.expect_ask();
    kit.settle();
    drop(kit);
    assert!(!first.is_awaited());
    first.send(9);
    let (square, second) = asked.expect_ask();
    assert_eq!(square, Square(4));
    assert_eq!(second.try_send(16), Err(16));
    lines.within(Duration::MAX).expect_none();
    let why = message_of(catch_unwind(AssertUnwindSafe(|| lines.expect())).unwrap_err());
    assert_eq!(why, "a Line was expected within 0ns, and none came: nothing is left to do in that time");
}

#[test]
fn a_window_may_be_longer_than_time() {
    let kit = Kit::new();
    let probe = kit.probe::<Line>();
    kit.run_for(Duration::from_secs(1));
    let slow = kit.system().spawn(Slow { to: probe.recipient(), delay: Duration::from_secs(10) });
    slow.tell(Take(1));
    assert_eq!(probe.within(Duration::MAX).expect(), Line(1));
    assert_eq!(kit.system().now(), Duration::from_secs(11));
}

#[test]
fn an_asked_message_is_not_taken_without_its_reply() {
    let kit = Kit::new();
    let (asked, lines) = (kit.probe::<Square>(), kit.probe::<Line>());
    let asker =
        kit.system().spawn(Client { receiver: asked.recipient(), lines: lines.recipient(), answers: Vec::new() });
    asker.tell(Request(3));
    let why = message_of(catch_unwind(AssertUnwindSafe(|| asked.expect())).unwrap_err());
    assert_eq!(
        why,
        "a Square came, and its sender waits for the answer: take it with `expect_ask`, which returns the message and \
         its `Reply`"
    );
}

/// An actor that lets a child do its work, and replaces a child that ends.
struct Parent {
    to: Recipient<Line>,
}

struct Child(ActorRef<Parent>);

#[actor]
impl Parent {
    #[started]
    fn hire(&mut self, ctx: &mut Context<Self>) {
        let child = Child(ctx.this());
        let child = ctx.spawn_with(SpawnOptions::new().name("worker"), child);
        ctx.watch(child);
        child.tell(Work(7));
    }
    #[message]
    fn done(&mut self, n: u32) {
        self.to.tell(Line(n));
    }
    #[terminated]
    fn again(&mut self, _: Terminated, ctx: &mut Context<Self>) {
        self.hire(ctx);
    }
}

#[actor]
impl Child {
    #[message]
    fn work(&mut self, n: u32) {
        self.0.tell(Done(n * 6));
    }
}

#[test]
fn a_test_plays_the_part_of_a_child() {
    let kit = Kit::new();
    let probe = kit.probe::<Line>();
    let parent = kit.system().spawn(Parent { to: probe.recipient() });
    kit.hold(parent);
    kit.settle();
    assert!(kit.children::<Child>(parent).is_empty(), "it was not started");
    kit.release(parent);
    // The parent has no child to hold until its start is over, and then the child has its mail. The test therefore
    // holds the next child.
    assert_eq!(probe.expect(), Line(42));
    let [first] = kit.children::<Child>(parent)[..] else { panic!("one child") };
    first.kill();
    kit.settle();
    let [second] = kit.children::<Child>(parent)[..] else { panic!("one child: the first has ended") };
    assert_ne!(first, second);
    assert_eq!(probe.expect(), Line(42));
    kit.hold(second);
    second.tell(Work(1));
    probe.expect_none();
    parent.tell(Done(5));
    assert_eq!(probe.expect(), Line(5));
    kit.release(second);
    assert_eq!(probe.expect(), Line(6));
}

#[test]
fn sent_messages_are_recorded() {
    let kit = Kit::new();
    let probe = kit.probe::<Line>();
    let parent = kit.system().spawn_with(SpawnOptions::new().name("boss"), Parent { to: probe.recipient() });
    kit.settle();
    let sent: Vec<String> = kit.sent_by(parent).iter().map(ToString::to_string).collect();
    assert_eq!(
        sent,
        [
            "Parent \"boss\" -> Child \"worker\": watch",
            "Parent \"boss\" -> Child \"worker\": start",
            "Parent \"boss\" -> Child \"worker\": Work",
            "Parent \"boss\" -> ProbeActor<Line> #0: Line",
        ]
    );
    // The record includes waiting messages.
    kit.hold(parent);
    let [child] = kit.children::<Child>(parent)[..] else { panic!("one child") };
    child.tell(Work(1));
    kit.settle();
    let sent = kit.sent_by(child);
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[1].to_string(), "Child \"worker\" -> Parent \"boss\": Done");
}

struct Restless;

#[actor]
impl Restless {
    #[message]
    fn go_on(&mut self, ctx: &mut Context<Self>) {
        ctx.this().tell(GoOn);
    }
}

#[test]
#[should_panic(expected = "the run never ends")]
fn endless_runs_are_reported() {
    let kit = Kit::new();
    kit.system().spawn(Restless).tell(GoOn);
    kit.settle();
}

// GUARANTEE: Threads that run a simulated system
#[test]
fn several_threads_may_wait_for_the_actors_of_a_kit() {
    let kit = Kit::new();
    let ear = kit.probe::<Line>();
    let slow = kit.system().spawn(Slow { to: ear.recipient(), delay: Duration::from_millis(5) });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1_000).for_each(|_| assert_eq!(slow.ask(DelayMs).wait(), Ok(5))));
        }
    });
}

/// An actor that asks another one, and keeps the outcome.
struct Asker(ActorRef<Slow>, Option<Result<u64, AskError>>);

#[actor]
impl Asker {
    #[message]
    fn begin(&mut self, ctx: &mut Context<Self>) {
        ctx.ask(self.0, DelayMs).then(|this, answer, _| this.1 = Some(answer));
    }

    #[message]
    fn ended(&self) -> Option<Result<u64, AskError>> {
        self.1.clone()
    }
}

#[test]
fn an_ask_of_a_held_actor_that_is_killed_ends() {
    let kit = Kit::new();
    let probe = kit.probe::<Line>();
    let slow = kit.system().spawn(Slow { to: probe.recipient(), delay: Duration::ZERO });
    let asker = kit.system().spawn(Asker(slow, None));
    kit.hold(slow);
    asker.tell(Begin);
    kit.settle();
    assert_eq!(asker.ask(Ended).wait(), Ok(None));
    slow.kill();
    kit.settle();
    assert_eq!(asker.ask(Ended).wait(), Ok(Some(Err(AskError::Stopped))));
    assert_eq!(slow.ask(DelayMs).wait(), Err(AskError::Stopped));
}
