//! Actors that handle other messages while their handlers await.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::support::{finishes, simulated, threads};
use playhouse::prelude::*;

const SECOND: Duration = Duration::from_secs(1);

/// Counts the drops of its values.
struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[derive(Default)]
struct Kitchen {
    begun: u32,
    done: u32,
    open: bool,
    dropped: Arc<AtomicU32>,
}

#[actor]
impl Kitchen {
    /// Answers with the number of finished dishes, including this one.
    #[message(reentrant)]
    fn cook(&mut self, time: Duration, ctx: &mut Context<Self>) -> impl Future<Output = u32> + Send + use<> {
        self.begun += 1;
        let (sleep, this, counted) = (ctx.sleep(time), ctx.this(), Counted(Arc::clone(&self.dropped)));
        async move {
            let _counted = counted;
            sleep.await;
            this.ask(Done).await.unwrap_or(0)
        }
    }

    #[message]
    fn done(&mut self) -> u32 {
        self.done += 1;
        self.done
    }

    #[message]
    fn begun(&self) -> u32 {
        self.begun
    }

    #[message]
    fn open(&mut self) {
        self.open = true;
    }

    #[message(reentrant, when = "self.open")]
    fn serve(&mut self, dishes: u32) -> impl Future<Output = u32> + Send + use<> {
        async move { dishes }
    }

    #[message(reentrant)]
    fn burn(&mut self) -> impl Future<Output = u32> + Send + use<> {
        async { panic!("it burns") }
    }

    #[message(reentrant)]
    fn ask_back(&mut self, guest: ActorRef<Guest>) -> impl Future<Output = Result<u32, AskError>> + Send + use<> {
        async move { guest.ask(Hungry).await }
    }

    /// The future ends when a thread sends to `told`.
    #[message(reentrant)]
    fn order_in(&mut self, told: tokio::sync::oneshot::Receiver<u32>) -> impl Future<Output = u32> + Send + use<> {
        self.begun += 1;
        async move { told.await.unwrap_or(0) }
    }

    #[message]
    fn crash(&mut self) {
        panic!("the kitchen crashes");
    }

    #[message(reentrant)]
    fn fail(&mut self, ctx: &mut Context<Self>) -> impl Future<Output = u32> + Send + use<> {
        ctx.fail(std::io::Error::other("the gas is off"));
        async { 9 }
    }
}

struct Guest(ActorRef<Kitchen>);

#[actor]
impl Guest {
    #[message]
    async fn eat(&mut self, me: ActorRef<Guest>) -> Result<Result<u32, AskError>, AskError> {
        self.0.ask(AskBack(me)).await
    }

    #[message]
    async fn eat_with(&mut self, other: ActorRef<Guest>) -> Result<Result<u32, AskError>, AskError> {
        self.0.ask(AskBack(other)).await
    }

    #[message]
    fn hungry(&self) -> u32 {
        3
    }
}

// GUARANTEE: Reentrant handlers
#[test]
fn other_messages_are_handled_while_a_reentrant_handler_awaits() {
    for seed in 0..20 {
        let system = simulated(seed);
        let kitchen = system.spawn(Kitchen::default());
        for _ in 0..99 {
            kitchen.tell(Cook(SECOND));
        }
        assert_eq!(kitchen.ask(Begun).wait(), Ok(99));
        assert!(system.now() < SECOND);
        // The last dish begins last, and ends first.
        assert_eq!(kitchen.ask(Cook(SECOND / 2)).wait(), Ok(1));
        system.run_until_idle();
        assert!(system.now() < SECOND + SECOND / 2, "{:?}", system.now());
        assert_eq!(kitchen.ask(Done).wait(), Ok(101));
        system.shutdown().unwrap();
    }
}

// GUARANTEE: Reentrant handlers
#[test]
fn a_reentrant_request_has_a_deadline_and_a_guard() {
    let system = simulated(1);
    let kitchen = system.spawn(Kitchen::default());
    let late = kitchen.ask(Cook(SECOND * 10)).within(SECOND).wait();
    assert_eq!((late, system.now()), (Err(AskError::Deadline { phase: AskPhase::Running }), SECOND));
    let deferred = kitchen.ask(Serve(2)).within(SECOND).wait();
    assert_eq!(deferred, Err(AskError::Deadline { phase: AskPhase::Queued }));
    kitchen.tell(Open);
    assert_eq!(kitchen.ask(Serve(2)).wait(), Ok(2));
    system.shutdown().unwrap();
}

// GUARANTEE: Reentrant handlers
#[test]
fn a_cycle_over_a_reentrant_request_is_found_and_nothing_else_is_one() {
    for seed in 0..50 {
        let system = simulated(seed);
        let kitchen = system.spawn(Kitchen::default());
        let [one, two] = [(); 2].map(|()| system.spawn(Guest(kitchen)));
        let answer = one.ask(Eat(one)).wait();
        assert!(matches!(answer, Ok(Ok(Err(AskError::Cycle(_))))), "seed {seed}: {answer:?}");
        assert_eq!(one.ask(EatWith(two)).wait(), Ok(Ok(Ok(3))), "seed {seed}");
        system.shutdown().unwrap();
    }
    finishes(|| {
        let system = threads(2);
        let kitchen = system.spawn(Kitchen::default());
        let [one, two] = [(); 2].map(|()| system.spawn(Guest(kitchen)));
        for _ in 0..500 {
            assert!(matches!(one.ask(Eat(one)).wait(), Ok(Ok(Err(AskError::Cycle(_))))));
            assert_eq!(one.ask(EatWith(two)).wait(), Ok(Ok(Ok(3))));
        }
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Reentrant handlers
#[test]
fn a_panic_of_the_future_ends_the_ask_and_not_the_actor() {
    let system = simulated(1);
    let kitchen = system.spawn(Kitchen::default());
    assert_eq!(kitchen.ask(Burn).wait(), Err(AskError::Panicked));
    assert_eq!(kitchen.ask(Begun).wait(), Ok(0));
    system.shutdown().unwrap();
}

// GUARANTEE: Reentrant handlers
#[test]
fn futures_go_on_when_the_actor_stops_and_end_when_it_is_killed_or_restarted() {
    for seed in 0..20 {
        for (ends, lives) in [("stop", true), ("drain", true), ("kill", false), ("crash", false), ("restart", false)] {
            let system = simulated(seed);
            let dropped = Arc::new(AtomicU32::new(0));
            let make = {
                let dropped = Arc::clone(&dropped);
                move || Kitchen { dropped: Arc::clone(&dropped), ..Kitchen::default() }
            };
            let kitchen = if ends == "restart" {
                let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
                supervisor.ask(ChildSpec::new("kitchen", make)).wait().unwrap().unwrap()
            } else {
                system.spawn(make())
            };
            let (tell, told) = tokio::sync::oneshot::channel();
            let (answered, answer) = channel();
            system.spawn(Asker { kitchen, answered }).tell(Begin(told));
            kitchen.tell(Cook(SECOND * 5));
            while kitchen.ask(Begun).wait() != Ok(2) {}
            match ends {
                "stop" => kitchen.stop(),
                "drain" => kitchen.drain(),
                "kill" => kitchen.kill(),
                _ => kitchen.tell(Crash),
            }
            if ends == "restart" {
                assert_eq!(kitchen.ask(Begun).wait(), Ok(0), "it is a new one");
            }
            if !lives {
                // The futures are dropped before their time.
                system.run_until_idle();
                assert_eq!(answer.try_recv(), Ok(Err(AskError::Stopped)), "{ends}, seed {seed}");
                assert!(tell.is_closed(), "{ends}, seed {seed}");
                assert_eq!((dropped.load(Ordering::SeqCst), system.now() < SECOND), (1, true), "{ends}, seed {seed}");
            } else {
                tell.send(7).unwrap();
                system.run_until_idle();
                assert_eq!(answer.try_recv(), Ok(Ok(7)), "{ends}, seed {seed}");
                assert_eq!((dropped.load(Ordering::SeqCst), system.now()), (1, SECOND * 5), "{ends}, seed {seed}");
            }
            system.shutdown().unwrap();
        }
    }
}

struct Asker {
    kitchen: ActorRef<Kitchen>,
    answered: std::sync::mpsc::Sender<Result<u32, AskError>>,
}

#[actor]
impl Asker {
    #[message]
    async fn begin(&mut self, told: tokio::sync::oneshot::Receiver<u32>) {
        let answer = self.kitchen.ask(OrderIn(told)).await;
        self.answered.send(answer).unwrap();
    }
}

// GUARANTEE: Reentrant handlers
#[test]
fn a_system_is_not_idle_while_a_reentrant_request_waits_for_a_thread() {
    finishes(|| {
        let system = threads(2);
        let kitchen = system.spawn(Kitchen::default());
        for number in 0..200 {
            let (tell, told) = tokio::sync::oneshot::channel();
            let asked = std::thread::spawn(move || kitchen.ask(OrderIn(told)).wait());
            kitchen.tell(Cook(Duration::ZERO));
            std::thread::spawn(move || tell.send(number).unwrap());
            system.run_until_idle();
            assert_eq!(asked.join().unwrap(), Ok(number));
        }
        let report = system.shutdown().unwrap();
        assert_eq!(report.undelivered, 0);
        assert_eq!(report.actors_stopped, 1, "the actors that have awaited the futures have ended");
    });
}

/// Keeps its requests. Begins to answer on a message, or at its end.
#[derive(Default)]
struct Keeper(Vec<Reply<u32>>);

#[actor]
impl Keeper {
    #[message]
    fn keep(&mut self, reply: Reply<u32>) {
        self.0.push(reply);
    }

    #[message]
    fn begin_all(&mut self, ctx: &mut Context<Self>) {
        self.0.drain(..).for_each(|reply| reply.send_when_ready(ctx, async { 1 }));
    }

    #[message(reentrant)]
    fn quick(&mut self) -> impl Future<Output = u32> + Send + use<> {
        async { 7 }
    }

    #[stopped]
    fn answer_at_the_end(&mut self, ctx: &mut Context<Self>) {
        for reply in self.0.drain(..) {
            let sleep = ctx.sleep(SECOND);
            reply.send_when_ready(ctx, async {
                sleep.await;
                5
            });
        }
    }
}

/// Asks 10 times at once, and gives up after 1 answer.
struct Impatient(ActorRef<Keeper>);

#[actor]
impl Impatient {
    #[message]
    async fn look(&mut self) {
        let mut asks: Vec<_> = (0..10).map(|_| Box::pin(self.0.ask(Quick))).collect();
        std::future::poll_fn(|cx| match asks.iter_mut().any(|ask| ask.as_mut().poll(cx).is_ready()) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        })
        .await;
    }
}

// GUARANTEE: Reentrant handlers
#[test]
fn nothing_is_left_of_a_reentrant_request_whose_asker_has_given_up() {
    for seed in 0..50 {
        let system = simulated(seed);
        let keeper = system.spawn(Keeper::default());
        for _ in 0..5 {
            assert!(keeper.ask(Keep).within(SECOND).wait().is_err());
        }
        keeper.tell(BeginAll);
        let impatient = system.spawn(Impatient(keeper));
        impatient.ask(Look).wait().unwrap();
        system.run_until_idle();
        assert_eq!(system.shutdown().unwrap().actors_stopped, 2, "seed {seed}: the keeper and the asker");
    }
}

/// Stops another actor after a while.
struct Stopper(ActorRef<Keeper>);

#[actor]
impl Stopper {
    #[message]
    async fn stop_in(&mut self, time: Duration, ctx: &mut Context<Self>) {
        ctx.sleep(time).await;
        self.0.stop();
    }
}

// GUARANTEE: Reentrant handlers
#[test]
fn an_actor_answers_at_its_end_with_futures_that_go_on() {
    let system = simulated(1);
    let keeper = system.spawn(Keeper::default());
    system.spawn(Stopper(keeper)).tell(StopIn(SECOND));
    assert_eq!(keeper.ask(Keep).wait(), Ok(5));
    assert_eq!(system.now(), SECOND * 2);
    system.shutdown().unwrap();
}

// GUARANTEE: Reentrant handlers
#[test]
fn futures_go_on_when_a_crash_is_resumed() {
    let system = simulated(1);
    let dropped = Arc::new(AtomicU32::new(0));
    let make = {
        let dropped = Arc::clone(&dropped);
        move || Kitchen { dropped: Arc::clone(&dropped), ..Kitchen::default() }
    };
    let policy = SupervisionPolicy::one_for_one().when(|_| true, Directive::Resume);
    let supervisor = system.spawn(Supervisor::new(policy));
    let kitchen = supervisor.ask(ChildSpec::new("kitchen", make)).wait().unwrap().unwrap();
    kitchen.tell(Cook(SECOND));
    kitchen.tell(Crash);
    assert_eq!(kitchen.ask(Begun).wait(), Ok(1), "it has its state");
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    system.run_until_idle();
    assert_eq!(kitchen.ask(Done).wait(), Ok(2));
    system.shutdown().unwrap();
}

// GUARANTEE: Reentrant handlers
#[test]
fn a_reentrant_handler_that_fails_gives_no_answer() {
    for seed in 0..20 {
        let system = simulated(seed);
        let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
        let kitchen = supervisor.ask(ChildSpec::new("kitchen", Kitchen::default)).wait().unwrap().unwrap();
        assert_eq!(kitchen.ask(Fail).wait(), Err(AskError::Panicked), "seed {seed}");
        assert_eq!(kitchen.ask(Begun).wait(), Ok(0));
        assert_eq!(system.spawn(Kitchen::default()).ask(Fail).wait(), Err(AskError::Panicked), "seed {seed}");
        system.shutdown().unwrap();
    }
}
