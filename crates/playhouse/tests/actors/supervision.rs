//! Supervisors restart their children by their policy.

use std::fmt;
use std::time::Duration;

use crate::support::{
    Adder, Gate, Increment, Log, Mourn, Mourner, Turnstile, finishes, quiet_panics, simulated, threads,
};
use playhouse::prelude::*;

#[derive(Debug)]
struct Trouble;

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("trouble")
    }
}

impl std::error::Error for Trouble {}

#[derive(Debug)]
struct Disaster;

impl fmt::Display for Disaster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("disaster")
    }
}

impl std::error::Error for Disaster {}

/// Counts its messages in this incarnation, and logs its incarnations.
struct Worker {
    name: &'static str,
    count: u64,
    log: Log<String>,
}

impl Actor for Worker {
    fn started(&mut self, ctx: &mut Context<Self>) {
        self.log.push(format!("{} started at {:?}", self.name, ctx.now()));
    }
    fn stopped(&mut self, _: &mut Context<Self>) {
        self.log.push(format!("{} stopped", self.name));
    }
}

#[derive(Message)]
#[message(reply = u64)]
struct Count;

impl Handler<Count> for Worker {
    fn handle(&mut self, _: Count, _: &mut Context<Self>) -> u64 {
        self.count += 1;
        self.count
    }
}

#[derive(Message, Clone, Copy)]
enum Crash {
    Panic,
    PanicWith,
    Fail,
    FailBadly,
}

impl Handler<Crash> for Worker {
    fn handle(&mut self, crash: Crash, ctx: &mut Context<Self>) {
        match crash {
            Crash::Panic => panic!("meant: {}", self.name),
            Crash::PanicWith => std::panic::panic_any(Trouble),
            Crash::Fail => ctx.fail(Trouble),
            Crash::FailBadly => ctx.fail(Disaster),
        }
    }
}

#[derive(Message)]
#[message(reply = Result<u64, String>)]
struct TryIt;

impl Handler<TryIt> for Worker {
    fn handle(&mut self, _: TryIt, _: &mut Context<Self>) -> Result<u64, String> {
        Err("no".into())
    }
}

#[derive(Message)]
struct AwaitAndPanic(tokio::sync::oneshot::Receiver<()>);

impl AsyncHandler<AwaitAndPanic> for Worker {
    async fn handle(&mut self, AwaitAndPanic(wake): AwaitAndPanic, _: &mut Context<Self>) {
        let _ = wake.await;
        panic!("meant: behind the await");
    }
}

#[derive(Message, Clone)]
struct Tick;

impl Handler<Tick> for Worker {
    fn handle(&mut self, _: Tick, _: &mut Context<Self>) {
        self.log.push("tick".into());
    }
}

#[derive(Message)]
struct SetTimers;

impl Handler<SetTimers> for Worker {
    fn handle(&mut self, _: SetTimers, ctx: &mut Context<Self>) {
        ctx.send_after(Duration::from_millis(50), Tick);
        ctx.send_every(Duration::from_millis(50), Tick);
    }
}

fn child(supervisor: ActorRef<Supervisor>, name: &'static str, log: &Log<String>) -> ActorRef<Worker> {
    let log = log.clone();
    let spec = ChildSpec::new(name, move || Worker { name, count: 0, log: log.clone() });
    supervisor.ask(spec).wait().unwrap().unwrap()
}

fn mourn<A: Actor>(system: &System, who: ActorRef<A>) -> Log<Terminated> {
    let log = Log::new();
    system.spawn(Mourner(log.clone())).ask(Mourn(who)).wait().unwrap();
    log
}

/// Returns the names of the children that were started since the last call.
fn started(log: &Log<String>) -> Vec<String> {
    let mut names: Vec<String> =
        log.take().iter().filter_map(|line| line.split_once(" started").map(|(name, _)| name.to_owned())).collect();
    names.sort();
    names
}

// GUARANTEE: Restarts
#[test]
fn a_restarted_child_keeps_its_address_and_its_mailbox_and_has_a_new_state() {
    quiet_panics();
    for seed in 0..30 {
        let system = simulated(seed);
        let log = Log::new();
        let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
        let worker = child(supervisor, "a", &log);
        assert_eq!(worker.ask(Count).wait(), Ok(1));
        assert_eq!(worker.ask(Count).wait(), Ok(2));
        worker.tell(Crash::Panic);
        for _ in 0..5 {
            worker.tell(Count);
        }
        assert_eq!(worker.ask(Count).wait(), Ok(6), "seed {seed}");
        system.run_until_idle();
        assert_eq!(started(&log), ["a", "a"]);
        assert_eq!(system.stats().total.dead_letters, 0);
        assert!(!worker.is_stopped());
    }
}

/// An actor whose drop panics.
struct Explosive {
    incarnation: u64,
}

impl Drop for Explosive {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("the drop of incarnation {}", self.incarnation);
        }
    }
}

#[actor]
impl Explosive {
    #[message]
    fn burst(&mut self) {
        panic!("a bug");
    }
    #[message]
    fn incarnation(&self) -> u64 {
        self.incarnation
    }
}

// GUARANTEE: Crashes are reported
#[test]
fn a_former_state_that_panics_in_its_drop_is_no_crash_of_the_new_one() {
    quiet_panics();
    let system = simulated(4);
    let crashes = Log::new();
    let log = crashes.clone();
    system.on_crash(move |crash| log.push(crash.to_string()));
    let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
    let mut incarnation = 0;
    let explosive = move || {
        incarnation += 1;
        Explosive { incarnation }
    };
    let child = supervisor.ask(ChildSpec::new("explosive", explosive)).wait().unwrap().unwrap();
    for restarts in 1..=2 {
        assert_eq!(child.ask(Burst).wait(), Err(AskError::Panicked));
        system.run_until_idle();
        assert_eq!(child.ask(Incarnation).wait(), Ok(restarts + 1));
        assert_eq!(crashes.take().len(), 1, "one crash, and no other by the drop");
    }
}

// GUARANTEE: Restarts
#[test]
fn each_strategy_restarts_the_children_that_it_names() {
    quiet_panics();
    type Policy = fn() -> SupervisionPolicy;
    let strategies: [(Policy, &[&str]); 3] = [
        (SupervisionPolicy::one_for_one, &["b"]),
        (SupervisionPolicy::one_for_all, &["a", "b", "c"]),
        (SupervisionPolicy::rest_for_one, &["b", "c"]),
    ];
    for (policy, expected) in strategies {
        for seed in 0..10 {
            let system = simulated(seed);
            let log = Log::new();
            let supervisor = system.spawn(Supervisor::new(policy()));
            let children: Vec<_> = ["a", "b", "c"].map(|name| child(supervisor, name, &log)).into();
            for worker in &children {
                assert_eq!(worker.ask(Count).wait(), Ok(1));
            }
            assert_eq!(started(&log), ["a", "b", "c"]);
            children[1].tell(Crash::Panic);
            system.run_until_idle();
            assert_eq!(started(&log), expected);
            for (worker, name) in children.iter().zip(["a", "b", "c"]) {
                let anew = expected.contains(&name);
                assert_eq!(worker.ask(Count).wait(), Ok(if anew { 1 } else { 2 }), "{name}");
            }
        }
    }
}

// GUARANTEE: Restarts
#[test]
fn a_supervisor_gives_up_after_too_many_restarts_and_its_watchers_are_told() {
    quiet_panics();
    for seed in 0..10 {
        let system = simulated(seed);
        let log = Log::new();
        let policy = SupervisionPolicy::one_for_one().max_restarts(2, Duration::from_secs(5));
        let supervisor = system.spawn(Supervisor::new(policy));
        let (worker, sister) = (child(supervisor, "a", &log), child(supervisor, "b", &log));
        let (downs, worker_downs) = (mourn(&system, supervisor), mourn(&system, worker));
        for _ in 0..3 {
            worker.tell(Crash::Panic);
            system.run_until_idle();
        }
        let downs = downs.take();
        assert_eq!(downs.len(), 1);
        assert_eq!(downs[0].who, supervisor.id());
        assert!(matches!(&downs[0].reason, StopReason::Failed(text) if text.contains("\"a\"")), "{downs:?}");
        assert!(
            matches!(&worker_downs.take()[..], [Terminated { reason: StopReason::Panicked(_), .. }]),
            "seed {seed}"
        );
        assert!(worker.is_stopped() && sister.is_stopped() && supervisor.is_stopped());
        assert_eq!(started(&log), ["a", "a", "a", "b"]);
    }
}

#[test]
fn restarts_are_forgotten_after_the_window() {
    quiet_panics();
    let system = simulated(0);
    let log = Log::new();
    let policy = SupervisionPolicy::one_for_one().max_restarts(1, Duration::from_secs(1));
    let worker = child(system.spawn(Supervisor::new(policy)), "a", &log);
    let pause = system.spawn(crate::support::Puppet);
    for _ in 0..5 {
        worker.tell(Crash::Panic);
        system.run_until_idle();
        pause.tell(crate::support::Do::this(|ctx| {
            ctx.send_after(Duration::from_secs(2), crate::support::Do::this(|_| ()));
        }));
        system.run_until_idle();
    }
    assert!(!worker.is_stopped());
    assert_eq!(started(&log).len(), 6);
}

// GUARANTEE: Restarts
#[test]
fn backoff_waits_longer_each_time_and_messages_wait_with_it() {
    quiet_panics();
    let system = simulated(0);
    let log = Log::new();
    let policy = SupervisionPolicy::one_for_one()
        .max_restarts(5, Duration::from_secs(60))
        .backoff(Duration::from_millis(100), Duration::from_millis(300));
    let worker = child(system.spawn(Supervisor::new(policy)), "a", &log);
    for _ in 0..4 {
        worker.tell(Crash::Panic);
    }
    worker.tell(Count);
    assert_eq!(worker.ask(Count).wait(), Ok(2));
    let starts: Vec<_> = log.take();
    let expected = ["0ns", "100ms", "300ms", "600ms", "900ms"].map(|at| format!("a started at {at}"));
    assert_eq!(starts, expected);
}

#[test]
fn directives_follow_the_type_of_the_error() {
    quiet_panics();
    let policy = || SupervisionPolicy::one_for_one().on::<Disaster>(Directive::Stop);
    for (directive, crash) in [
        (Directive::Restart, Crash::Fail),
        (Directive::Resume, Crash::Fail),
        (Directive::Resume, Crash::PanicWith),
        (Directive::Stop, Crash::Fail),
        (Directive::Escalate, Crash::PanicWith),
    ] {
        let system = simulated(0);
        let log = Log::new();
        let supervisor = system.spawn(Supervisor::new(policy().on::<Trouble>(directive)));
        let (worker, other) = (child(supervisor, "a", &log), child(supervisor, "b", &log));
        assert_eq!(worker.ask(Count).wait(), Ok(1));
        let downs = mourn(&system, worker);
        worker.tell(crash);
        let next = worker.ask(Count).wait();
        system.run_until_idle();
        let (alive, supervised) = (!worker.is_stopped(), !supervisor.is_stopped());
        match directive {
            Directive::Restart => assert_eq!((next, alive, supervised), (Ok(1), true, true)),
            Directive::Resume => assert_eq!((next, alive, supervised), (Ok(2), true, true)),
            Directive::Stop => {
                assert_eq!((next, alive, supervised), (Err(AskError::Stopped), false, true));
                assert_eq!(downs.take()[0].reason, StopReason::Failed("trouble".into()));
            }
            _ => assert_eq!((next, alive, supervised), (Err(AskError::Stopped), false, false)),
        }
        if supervised {
            // The second rule, for another error, on the other child.
            other.tell(Crash::FailBadly);
            assert_eq!(other.ask(Count).wait(), Err(AskError::Stopped));
        }
    }
}

// GUARANTEE: Errors are not crashes
#[test]
fn an_error_that_is_returned_goes_to_the_asker_and_restarts_nobody() {
    let system = simulated(0);
    let log = Log::new();
    let worker = child(system.spawn(Supervisor::new(SupervisionPolicy::one_for_one())), "a", &log);
    assert_eq!(worker.ask(TryIt).wait(), Ok(Err("no".into())));
    assert_eq!(worker.ask(Count).wait(), Ok(1));
    system.run_until_idle();
    assert_eq!((started(&log).len(), system.stats().total.crashes), (1, 0));
}

#[test]
fn children_stop_with_their_supervisor() {
    let ends: [fn(ActorRef<Supervisor>); 3] = [ActorRef::stop, ActorRef::drain, ActorRef::kill];
    for end in ends {
        let system = simulated(0);
        let log = Log::new();
        let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
        let (a, b) = (child(supervisor, "a", &log), child(supervisor, "b", &log));
        end(supervisor);
        system.run_until_idle();
        assert!(a.is_stopped() && b.is_stopped());
        assert_eq!(log.take().iter().filter(|line| line.ends_with("stopped")).count(), 2);
    }
}

// GUARANTEE: Names in use are not reassigned
#[test]
fn a_supervisor_has_one_child_of_each_name() {
    let system = simulated(0);
    let log = Log::new();
    let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
    let first = child(supervisor, "a", &log);
    let known = log.clone();
    let again = move || {
        let log = known.clone();
        supervisor.ask(ChildSpec::new("a", move || Worker { name: "a", count: 0, log: log.clone() })).wait().unwrap()
    };
    let why = again().unwrap_err().to_string();
    let id = first.id();
    assert_eq!(
        why,
        format!("the actor Worker \"a\" could not be started: its supervisor has a child of that name, {id}")
    );
    assert_eq!(first.ask(Count).wait(), Ok(1));
    // After its end, another child may have the name.
    first.stop();
    system.run_until_idle();
    let second = again().unwrap();
    assert_eq!(supervisor.ask(FindChild::new("a")).wait(), Ok(Some(second)));
    assert!(second != first);
}

#[test]
fn a_crash_in_an_async_handler_restarts_and_what_was_deferred_is_handled() {
    quiet_panics();
    for seed in 0..20 {
        let system = simulated(seed);
        let log = Log::new();
        let worker = child(system.spawn(Supervisor::new(SupervisionPolicy::one_for_one())), "a", &log);
        let (wake, sleep) = tokio::sync::oneshot::channel();
        worker.tell(AwaitAndPanic(sleep));
        worker.tell(Count);
        worker.tell(Crash::Panic);
        worker.tell(Count);
        system.run_until_idle();
        wake.send(()).unwrap();
        assert_eq!(worker.ask(Count).wait(), Ok(2), "seed {seed}");
        system.run_until_idle();
        assert_eq!(started(&log).len(), 3);
    }
}

#[test]
fn a_stop_that_waits_for_a_handler_is_kept_when_the_handler_crashes() {
    quiet_panics();
    let system = simulated(0);
    let log = Log::new();
    let worker = child(system.spawn(Supervisor::new(SupervisionPolicy::one_for_one())), "a", &log);
    let (wake, sleep) = tokio::sync::oneshot::channel();
    worker.tell(AwaitAndPanic(sleep));
    system.run_until_idle();
    worker.stop();
    system.run_until_idle();
    wake.send(()).unwrap();
    system.run_until_idle();
    assert!(worker.is_stopped(), "it was restarted though it had been told to stop");
}

// GUARANTEE: Timers
#[test]
fn timers_of_a_former_incarnation_do_not_fire() {
    quiet_panics();
    let system = simulated(0);
    let log = Log::new();
    let worker = child(system.spawn(Supervisor::new(SupervisionPolicy::one_for_one())), "a", &log);
    worker.tell(SetTimers);
    worker.tell(Crash::Panic);
    // The periodic timer would keep the system from ever being idle.
    system.run_until_idle();
    assert!(!log.take().contains(&"tick".to_owned()));
    assert_eq!(system.now(), Duration::ZERO);
}

// GUARANTEE: A broken state is left alone
#[test]
fn a_child_that_is_stopped_while_it_waits_for_its_restart_is_not_asked_to_tidy_up_a_broken_state() {
    quiet_panics();
    let ends: [fn(System, ActorRef<Worker>); 2] = [
        |system, worker| {
            worker.stop();
            system.run_until_idle();
        },
        |system, _| drop(system.shutdown().unwrap()),
    ];
    for end in ends {
        for crash in [Crash::Panic, Crash::Fail] {
            let system = simulated(0);
            let log = Log::new();
            let policy = SupervisionPolicy::one_for_one().backoff(Duration::from_secs(1), Duration::from_secs(1));
            let supervisor = system.spawn(Supervisor::new(policy));
            let worker = child(supervisor, "a", &log);
            let downs = mourn(&system, worker);
            worker.tell(crash);
            // The ask comes behind the crash, and before the restart, which is a second away.
            let sister = child(supervisor, "b", &log);
            assert_eq!(sister.ask(Count).wait(), Ok(1));
            assert!(!worker.is_stopped() && system.now().is_zero());
            log.take();
            end(system.clone(), worker);
            assert!(worker.is_stopped());
            assert!(!log.take().contains(&"a stopped".to_owned()), "`stopped` was run on a state that had crashed");
            let reasons: Vec<_> = downs.take().into_iter().map(|terminated| terminated.reason).collect();
            assert!(matches!(reasons[..], [StopReason::Stopped] | [] | [StopReason::Shutdown]), "{reasons:?}");
        }
    }
}

#[test]
fn a_child_that_is_drained_while_it_waits_for_its_restart_is_restarted_first() {
    quiet_panics();
    let system = simulated(0);
    let log = Log::new();
    let policy = SupervisionPolicy::one_for_one().backoff(Duration::from_secs(1), Duration::from_secs(1));
    let worker = child(system.spawn(Supervisor::new(policy)), "a", &log);
    worker.tell(Crash::Panic);
    worker.tell(Tick);
    worker.drain();
    system.run_until_idle();
    assert_eq!(log.take(), ["a started at 0ns", "a started at 1s", "tick", "a stopped"]);
    assert!(worker.is_stopped());
}

#[test]
fn a_restarted_or_resumed_child_that_is_stopped_later_tidies_up() {
    quiet_panics();
    for directive in [Directive::Restart, Directive::Resume] {
        let system = simulated(0);
        let log = Log::new();
        let policy = SupervisionPolicy::one_for_one().on::<Trouble>(directive);
        let worker = child(system.spawn(Supervisor::new(policy)), "a", &log);
        worker.tell(Crash::Fail);
        system.run_until_idle();
        worker.stop();
        system.run_until_idle();
        assert_eq!(log.take().last().map(String::as_str), Some("a stopped"));
    }
}

/// Blocks its thread, and reports its stage.
struct Blocking;

#[actor]
impl Blocking {
    #[message]
    fn block(&mut self, gate: Turnstile) {
        gate.pass();
        panic!("meant: behind the gate");
    }
    #[message(name = "WhichGroup")]
    fn group(&self, ctx: &mut Context<Self>) -> Group {
        ctx.group()
    }
}

#[test]
fn a_supervised_child_is_put_where_it_is_told() {
    let system = System::builder().workers(2).stages(8).simulated(0).start().unwrap();
    let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
    let start = |placement| supervisor.ask(ChildSpec::new("b", || Blocking).placement(placement)).wait().unwrap();
    let group = Group::new(&system);
    for _ in 0..10 {
        let child = start(Placement::Group(group)).unwrap();
        assert_eq!(child.ask(WhichGroup).wait(), Ok(group));
        child.stop();
        system.run_until_idle();
    }
    let error = start(Placement::Stage(8)).unwrap_err();
    assert!(error.to_string().contains("Blocking \"b\" could not be started: stage 8"), "{error}");
    assert!(!supervisor.is_stopped());
}

#[test]
fn a_supervised_child_with_its_own_thread_is_restarted_on_that_thread() {
    quiet_panics();
    finishes(|| {
        let system = threads(1);
        let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
        let spec = ChildSpec::new("b", || Blocking).placement(Placement::Dedicated);
        let child = supervisor.ask(spec).wait().unwrap().unwrap();
        let adder = system.spawn(Adder);
        for _ in 0..3 {
            let (gate, turnstile) = Gate::new();
            child.tell(Block(turnstile));
            gate.wait_entered();
            assert_eq!(adder.ask(Increment(1)).wait(), Ok(2));
            gate.open();
        }
        assert!(child.ask(WhichGroup).wait().is_ok());
        system.shutdown().unwrap();
    });
}
