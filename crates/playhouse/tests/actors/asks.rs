//! Every ask ends, and its error says why.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use crate::support::{Adder, Dice, Do, Gate, Increment, Log, Puppet, finishes, simulated, threads};
use playhouse::prelude::*;
use tokio::sync::oneshot;

/// Awaits asks along a path, and counts its visits.
#[derive(Default)]
struct Node {
    seen: u64,
}

impl Actor for Node {}

/// Visits the first of these actors with the rest of the path.
#[derive(Message)]
#[message(reply = Result<Vec<u64>, AskError>)]
struct Visit(Vec<ActorRef<Node>>);

impl AsyncHandler<Visit> for Node {
    async fn handle(&mut self, Visit(mut path): Visit, _: &mut Context<Self>) -> Result<Vec<u64>, AskError> {
        self.seen += 1;
        let mut answer = vec![self.seen];
        if !path.is_empty() {
            let next = path.remove(0);
            answer.extend(next.ask(Visit(path)).await??);
        }
        Ok(answer)
    }
}

/// Waits for the channel, then answers.
#[derive(Message)]
#[message(reply = u64)]
struct Hold(oneshot::Receiver<u64>);

impl AsyncHandler<Hold> for Node {
    async fn handle(&mut self, Hold(until): Hold, _: &mut Context<Self>) -> u64 {
        until.await.unwrap_or(0)
    }
}

#[derive(Message)]
#[message(reply = u64)]
struct Seen;

impl Handler<Seen> for Node {
    fn handle(&mut self, _: Seen, _: &mut Context<Self>) -> u64 {
        self.seen += 1;
        self.seen
    }
}

/// Awaits one ask with a deadline.
#[derive(Message)]
#[message(reply = Result<u64, AskError>)]
struct AskSeen(ActorRef<Node>, Duration);

impl AsyncHandler<AskSeen> for Node {
    async fn handle(&mut self, AskSeen(receiver, within): AskSeen, _: &mut Context<Self>) -> Result<u64, AskError> {
        receiver.ask(Seen).within(within).await
    }
}

fn nodes(system: &System, n: u16) -> Vec<ActorRef<Node>> {
    (0..n).map(|_| system.spawn(Node::default())).collect()
}

#[test]
fn wait_answers_on_threads_and_in_simulation() {
    finishes(|| {
        for system in [threads(2), simulated(0)] {
            let adder = system.spawn(Adder);
            for n in 0..1000 {
                assert_eq!(adder.ask(Increment(n)).wait(), Ok(n + 1));
            }
            system.shutdown().unwrap();
        }
    });
}

#[test]
fn asks_are_awaited_in_async_handlers_and_on_a_tokio_runtime() {
    finishes(|| {
        let system = threads(2);
        let all = nodes(&system, 4);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let answers = runtime.block_on(async {
            let mut answers = Vec::new();
            for n in 0..100 {
                let path = vec![all[1], all[2], all[3]];
                answers.push((all[0].ask(Visit(path)).await, n + 1));
            }
            answers
        });
        for (answer, n) in answers {
            assert_eq!(answer, Ok(Ok(vec![n; 4])));
        }
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Deadlines
#[test]
fn a_deadline_tells_queued_from_running() {
    for seed in 0..20 {
        let system = simulated(seed);
        let all = nodes(&system, 2);
        let deadline = Duration::from_millis(5);
        let (release, hold) = oneshot::channel();
        let running = all[0].ask(Hold(hold)).within(deadline).wait();
        assert_eq!(running, Err(AskError::Deadline { phase: AskPhase::Running }));
        // The handler still holds the actor. The next request waits in the mailbox, and is taken back.
        assert_eq!(all[0].ask(Seen).within(deadline).wait(), Err(AskError::Deadline { phase: AskPhase::Queued }));
        let awaited = all[1].ask(AskSeen(all[0], deadline)).wait();
        assert_eq!(awaited, Ok(Err(AskError::Deadline { phase: AskPhase::Queued })), "seed {seed}");
        release.send(7).unwrap();
        assert_eq!(all[0].ask(Seen).wait(), Ok(1), "nothing that was taken back is handled");
        assert_eq!(system.now(), 3 * deadline);
    }
}

#[test]
fn an_answer_before_the_deadline_leaves_no_timer_behind() {
    let system = simulated(1);
    let all = nodes(&system, 2);
    assert_eq!(all[0].ask(Seen).within(Duration::from_secs(5)).wait(), Ok(1));
    assert_eq!(all[1].ask(AskSeen(all[0], Duration::from_secs(5))).wait(), Ok(Ok(2)));
    let puppet = system.spawn(Puppet);
    let (adder, log) = (system.spawn(Adder), Log::new());
    let answers = log.clone();
    puppet.tell(Do::this(move |ctx| {
        ctx.ask(adder, Increment(1)).within(Duration::from_secs(5)).then(move |_, answer, _| answers.push(answer));
    }));
    system.run_until_idle();
    assert_eq!(log.take(), [Ok(2)]);
    assert_eq!(system.now(), Duration::ZERO);
}

#[test]
fn then_is_called_with_the_answer_or_the_deadline_and_only_once() {
    let system = simulated(2);
    let node = system.spawn(Node::default());
    let puppet = system.spawn(Puppet);
    let log = Log::new();
    let (release, hold) = oneshot::channel();
    let answers = log.clone();
    puppet.tell(Do::this(move |ctx| {
        let deadline = Duration::from_millis(3);
        let into = answers.clone();
        ctx.ask(node, Hold(hold)).within(deadline).then(move |_, answer, ctx| into.push((answer, ctx.now())));
        ctx.ask(node, Seen).within(deadline).then(move |_, answer, ctx| answers.push((answer, ctx.now())));
    }));
    system.run_until_idle();
    let at = Duration::from_millis(3);
    let phases = [AskPhase::Running, AskPhase::Queued].map(|phase| (Err(AskError::Deadline { phase }), at));
    assert_eq!(log.take(), phases);
    release.send(1).unwrap();
    system.run_until_idle();
    assert!(log.take().is_empty());
    assert_eq!(node.ask(Seen).wait(), Ok(1));
}

// GUARANTEE: An ask ends
#[test]
fn an_ask_ends_when_its_target_stops() {
    for seed in 0..20 {
        let system = simulated(seed);
        let node = system.spawn(Node::default());
        let (_release, hold) = oneshot::channel();
        let (log, puppet) = (Log::new(), system.spawn(Puppet));
        let answers = log.clone();
        puppet.tell(Do::this(move |ctx| {
            let into = answers.clone();
            ctx.ask(node, Hold(hold)).then(move |_, answer, _| into.push(answer));
            ctx.ask(node, Seen).then(move |_, answer, _| answers.push(answer));
        }));
        system.run_until_idle();
        assert!(log.lock().is_empty());
        node.kill();
        system.run_until_idle();
        assert_eq!(log.take(), [Err(AskError::Stopped), Err(AskError::Stopped)], "seed {seed}");
        assert_eq!(node.ask(Seen).wait(), Err(AskError::Stopped));
    }
}

// GUARANTEE: An ask ends
#[test]
fn asks_that_wait_at_shutdown_end() {
    finishes(|| {
        let system = threads(2);
        let node = system.spawn(Node::default());
        let (_release, hold) = oneshot::channel();
        node.tell(Hold(hold));
        let (asking, asked) = std::sync::mpsc::channel();
        let waiting = std::thread::spawn(move || {
            asking.send(()).unwrap();
            node.ask(Seen).wait()
        });
        asked.recv().unwrap();
        system.shutdown_within(Duration::from_millis(200)).unwrap();
        assert!(matches!(waiting.join().unwrap(), Err(AskError::Stopped | AskError::Shutdown)));
    });
}

#[test]
fn nothing_happens_when_the_asker_has_stopped() {
    let system = simulated(3);
    let node = system.spawn(Node::default());
    let puppet = system.spawn(Puppet);
    puppet.tell(Do::this(move |ctx| {
        ctx.ask(node, Seen).then(|_, _, _| panic!("the asker has stopped"));
        ctx.stop();
    }));
    system.run_until_idle();
    assert_eq!(node.ask(Seen).wait(), Ok(2));
    assert_eq!(system.stats().total.crashes, 0);
}

// GUARANTEE: Asks are futures
// GUARANTEE: Cancelling
#[test]
fn dropping_an_ask_takes_a_queued_request_back() {
    finishes(|| {
        let system = threads(1);
        let node = system.spawn(Node::default());
        let (release, hold) = oneshot::channel();
        node.tell(Hold(hold));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let polled_once = runtime.block_on(async {
            let mut ask = node.ask(Seen);
            std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut ask).poll(cx).is_pending())).await
        });
        assert!(polled_once);
        release.send(0).unwrap();
        assert_eq!(node.ask(Seen).wait(), Ok(1));
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Calls that block name the actor
#[test]
fn waiting_inside_an_actor_panics_and_says_what_to_do() {
    crate::support::quiet_panics();
    finishes(|| {
        let system = threads(1);
        let adder = system.spawn(Adder);
        let log = Log::new();
        let texts = log.clone();
        let deed = Do::this(move |_| {
            let waited = std::panic::catch_unwind(|| adder.ask(Increment(1)).wait());
            texts.push(*waited.unwrap_err().downcast::<String>().unwrap());
        });
        system.spawn_with(SpawnOptions::new().name("one"), Puppet).ask(deed).wait().unwrap();
        let text = &log.take()[0];
        assert!(text.contains("inside the actor Puppet \"one\"") && text.contains(".await"), "{text}");
        system.shutdown().unwrap();
    });
}

#[test]
fn a_blocked_handler_does_not_hold_an_ask_to_another_actor() {
    finishes(|| {
        let system = threads(1);
        let (gate, turnstile) = Gate::new();
        system.spawn(Puppet).tell(Do::this(move |_| turnstile.pass()));
        gate.wait_entered();
        assert_eq!(system.spawn(Adder).ask(Increment(1)).wait(), Ok(2));
        gate.open();
        system.shutdown().unwrap();
    });
}

#[test]
fn many_threads_ask_one_actor() {
    finishes(|| {
        let system = threads(2);
        let node = system.spawn(Node::default());
        let sum = Arc::new(AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..500).for_each(|_| _ = sum.fetch_add(node.ask(Seen).wait().unwrap(), Ordering::Relaxed))
                });
            }
        });
        assert_eq!(sum.load(Ordering::Relaxed), (1..=2000).sum::<u64>());
        system.shutdown().unwrap();
    });
}

#[test]
fn random_paths_of_awaited_asks_give_each_their_answer() {
    for seed in 0..100 {
        let mut dice = Dice(seed);
        let system = System::builder().workers(3).stages(6).simulated(seed).start().unwrap();
        let all = nodes(&system, 6);
        let mut visits = 0;
        for _ in 0..10 {
            // Paths that only go up cannot close a cycle.
            let mut path: Vec<_> = all.iter().copied().filter(|_| dice.one_in(2)).collect();
            if path.is_empty() {
                continue;
            }
            visits += path.len();
            let first = path.remove(0);
            let answer = first.ask(Visit(path)).wait().unwrap();
            assert!(answer.is_ok(), "seed {seed}: {answer:?}");
        }
        let seen: u64 = all.iter().map(|node| node.ask(Seen).wait().unwrap() - 1).sum();
        assert_eq!(seen, visits as u64);
    }
}

/// Fails, and returns a value all the same.
struct Failing;

impl Actor for Failing {}

#[derive(Debug)]
struct Trouble;

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("trouble")
    }
}

impl std::error::Error for Trouble {}

#[derive(Message)]
#[message(reply = u64)]
struct Fail {
    and_stop: bool,
}

impl Handler<Fail> for Failing {
    fn handle(&mut self, fail: Fail, ctx: &mut Context<Self>) -> u64 {
        ctx.fail(Trouble);
        if fail.and_stop {
            ctx.stop();
        }
        1
    }
}

#[derive(Message)]
#[message(reply = u64)]
struct FailLater(oneshot::Receiver<()>);

impl AsyncHandler<FailLater> for Failing {
    async fn handle(&mut self, FailLater(until): FailLater, ctx: &mut Context<Self>) -> u64 {
        let _ = until.await;
        ctx.fail(Trouble);
        1
    }
}

/// Awaits a failing actor: on its own stack, if that is possible.
#[derive(Message)]
#[message(reply = Result<u64, AskError>)]
struct AskFailing(ActorRef<Failing>);

impl AsyncHandler<AskFailing> for Node {
    async fn handle(&mut self, AskFailing(receiver): AskFailing, _: &mut Context<Self>) -> Result<u64, AskError> {
        receiver.ask(Fail { and_stop: false }).await
    }
}

// GUARANTEE: Crashes are not answers
#[test]
fn the_asker_of_a_handler_that_fails_gets_no_answer() {
    for seed in 0..20 {
        let system = simulated(seed);
        let failing = || system.spawn(Failing);
        for and_stop in [false, true] {
            assert_eq!(failing().ask(Fail { and_stop }).wait(), Err(AskError::Panicked), "seed {seed}");
        }
        let (wake, sleep) = oneshot::channel();
        wake.send(()).unwrap();
        assert_eq!(failing().ask(FailLater(sleep)).wait(), Err(AskError::Panicked));
        let node = system.spawn(Node::default());
        assert_eq!(node.ask(AskFailing(failing())).wait(), Ok(Err(AskError::Panicked)));
        let log = Log::new();
        let (to, into) = (failing(), log.clone());
        system.spawn(Puppet).tell(Do::this(move |ctx| {
            ctx.ask(to, Fail { and_stop: false }).then(move |_, answer, _| into.push(answer));
        }));
        system.run_until_idle();
        assert_eq!(log.take(), [Err(AskError::Panicked)]);
        assert_eq!(system.stats().total.crashes, 4, "a stop after a failure ends the actor by its own wish");
    }
}

/// Takes some time for its answer, and logs how long the ask ran.
struct Relay {
    next: Option<ActorRef<Relay>>,
    log: Log<(Duration, Result<u64, AskError>)>,
}

impl Actor for Relay {}

/// Answers after the answer of the next relay, which is asked with this deadline. The last relay never answers.
#[derive(Message, Clone, Copy)]
#[message(reply = u64)]
struct Pass(Option<Duration>);

impl AsyncHandler<Pass> for Relay {
    async fn handle(&mut self, Pass(within): Pass, ctx: &mut Context<Self>) -> u64 {
        let Some(next) = self.next else { return std::future::pending().await };
        let ask = next.ask(Pass(within));
        let answer = if let Some(within) = within { ask.within(within).await } else { ask.await };
        self.log.push((ctx.now(), answer));
        1
    }
}

/// Starts a chain of asks for itself, and answers at once.
#[derive(Message)]
#[message(reply = u64)]
struct Begin;

impl Handler<Begin> for Relay {
    fn handle(&mut self, _: Begin, ctx: &mut Context<Self>) -> u64 {
        let next = self.next.expect("it is not the last");
        ctx.ask(next, Pass(None)).within(Duration::from_secs(60)).then(|this, answer, ctx| {
            this.log.push((ctx.now(), answer));
        });
        1
    }
}

fn chain(system: &System, log: &Log<(Duration, Result<u64, AskError>)>) -> ActorRef<Relay> {
    let mut next = None;
    for _ in 0..4 {
        next = Some(system.spawn(Relay { next, log: log.clone() }));
    }
    next.expect("four were started")
}

// GUARANTEE: Deadlines are inherited
#[test]
fn a_deadline_goes_along_the_chain_of_asks() {
    let second = Duration::from_secs(1);
    let running = || Err(AskError::Deadline { phase: AskPhase::Running });
    for seed in 0..50 {
        // The downstream asks have no deadline, or a longer one. The first ask's deadline holds for all.
        for longer in [None, Some(second * 60)] {
            let system = simulated(seed);
            let log = Log::new();
            let start = system.now();
            // An answer that comes at the last moment may be in time.
            let answer = chain(&system, &log).ask(Pass(longer)).within(second).wait();
            assert!(answer == running() || answer == Ok(1), "seed {seed}: {answer:?}");
            system.run_until_idle();
            let ends = log.take();
            assert_eq!(ends.len(), 3, "seed {seed}: {ends:?}");
            for (at, answer) in ends {
                assert!(at - start >= second && at - start < second * 2, "seed {seed}: {at:?}");
                assert!(answer == running() || answer == Ok(1), "seed {seed}: {answer:?}");
            }
        }
        // A shorter deadline stays as it is.
        let system = simulated(seed);
        let log = Log::new();
        assert_eq!(chain(&system, &log).ask(Pass(Some(second / 10))).within(second).wait(), Ok(1));
        assert!(system.now() < second);
    }
}

// GUARANTEE: Deadlines are inherited
#[test]
fn an_independent_ask_of_an_actor_keeps_its_own_deadline() {
    for seed in 0..20 {
        let system = simulated(seed);
        let log = Log::new();
        let (start, minute) = (system.now(), Duration::from_secs(60));
        assert_eq!(chain(&system, &log).ask(Begin).within(Duration::from_secs(1)).wait(), Ok(1));
        system.run_until_idle();
        assert!(log.take().iter().all(|(at, _)| *at - start >= minute), "seed {seed}");
    }
}
