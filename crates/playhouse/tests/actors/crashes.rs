//! Reports of crashes have all known facts.

use std::process::Command;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::support::{Do, Puppet, finishes, quiet_panics};
use playhouse::prelude::*;
use playhouse::{AfterCrash, CrashReport, CrashedIn, DecisionReport, Directive, StopReason};

#[derive(Debug)]
struct Broken;
impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it is broken")
    }
}
impl std::error::Error for Broken {}

#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    Nowhere,
    Start,
    Idle,
    Terminated,
}

/// Crashes at the point that the test chooses.
struct Fragile(At);

#[actor]
impl Fragile {
    #[started]
    fn started(&mut self, ctx: &mut Context<Self>) {
        assert!(self.0 != At::Start, "at the start");
        if self.0 == At::Idle {
            ctx.set_receive_timeout(Duration::from_millis(1));
        }
        if self.0 == At::Terminated {
            let other = ctx.spawn(Fragile(At::Nowhere));
            ctx.watch(other);
            other.stop();
        }
    }

    #[receive_timeout]
    fn receive_timeout(&mut self, _: &mut Context<Self>) {
        panic!("idle");
    }

    #[terminated]
    fn terminated(&mut self, _: Terminated, _: &mut Context<Self>) {
        panic!("alone");
    }

    #[message]
    fn start_another(&mut self, ctx: &mut Context<Self>) {
        ctx.spawn(Fragile(At::Start));
    }

    #[message]
    fn give_in_and_stop(&mut self, ctx: &mut Context<Self>) {
        ctx.fail(Broken);
        ctx.stop();
    }

    #[message]
    fn burn(&mut self) {
        panic!("it burns");
    }

    #[message]
    async fn burn_later(&mut self, first: bool) {
        if !first {
            tokio::task::yield_now().await;
        }
        panic!("it burns later");
    }

    #[message]
    fn give_in(&mut self, ctx: &mut Context<Self>) -> u32 {
        ctx.fail(Broken);
        1
    }

    #[message]
    async fn give_in_later(&mut self, first: bool, ctx: &mut Context<Self>) {
        if !first {
            tokio::task::yield_now().await;
        }
        ctx.fail(Broken);
    }

    #[message]
    fn count(&mut self) -> u64 {
        1
    }

    #[message]
    fn ask_oneself(&mut self, ctx: &mut Context<Self>) {
        let other = ctx.spawn(Fragile(At::Nowhere));
        ctx.ask(other, Count).then(|_, _, _| panic!("at the answer"));
    }

    #[message]
    async fn wait_for_another(&mut self, ctx: &mut Context<Self>) {
        tokio::task::yield_now().await;
        let other = ctx.spawn(Fragile(At::Nowhere));
        let _never = other.ask(Count).wait();
    }

    #[message]
    fn wait_for_idle(&mut self, system: System) {
        system.run_until_idle();
    }

    #[message]
    fn shut_down(&mut self, system: System) {
        let _never = system.shutdown();
    }

    #[message]
    fn remember(&mut self, ctx: &mut Context<Self>) {
        ctx.send_after(Duration::from_millis(1), Burn);
    }
}

fn watched() -> (System, Receiver<CrashReport>) {
    quiet_panics();
    let system = System::builder().workers(2).print_crashes(false).start().unwrap();
    let (tell, told) = mpsc::channel();
    system.on_crash(move |crash| drop(tell.send(crash.clone())));
    (system, told)
}

fn short(report: &CrashReport) -> (String, StopReason, AfterCrash) {
    (report.during.map(|during| during.to_string()).unwrap_or_default(), report.reason.clone(), report.then)
}

fn panicked(during: &str, text: &str) -> (String, StopReason, AfterCrash) {
    (during.to_owned(), StopReason::Panicked(text.to_owned()), AfterCrash::Ends)
}

fn failed(during: &str) -> (String, StopReason, AfterCrash) {
    (during.to_owned(), StopReason::Failed(Broken.to_string()), AfterCrash::Ends)
}

const LIMIT: Duration = Duration::from_secs(60);

// GUARANTEE: Crashes are reported
#[test]
fn a_crash_is_reported_with_what_the_actor_was_running() {
    finishes(|| {
        let (system, told) = watched();
        let expect = |expected| {
            let report = told.recv_timeout(LIMIT).unwrap();
            assert_eq!(short(&report), expected);
            assert!(report.actor.ends_with("Fragile") && report.name.is_none());
        };
        let new = || system.spawn(Fragile(At::Nowhere));
        new().tell(Burn);
        expect(panicked("Burn", "it burns"));
        assert_eq!(new().ask(Burn).wait(), Err(AskError::Panicked));
        expect(panicked("Burn", "it burns"));
        for first in [true, false] {
            new().tell(BurnLater(first));
            expect(panicked("BurnLater", "it burns later"));
            assert_eq!(new().ask(BurnLater(first)).wait(), Err(AskError::Panicked));
            expect(panicked("BurnLater", "it burns later"));
            new().tell(GiveInLater(first));
            expect(failed("GiveInLater"));
            assert_eq!(new().ask(GiveInLater(first)).wait(), Err(AskError::Panicked));
            expect(failed("GiveInLater"));
        }
        new().tell(GiveIn);
        expect(failed("GiveIn"));
        assert_eq!(new().ask(GiveIn).wait(), Err(AskError::Panicked));
        expect(failed("GiveIn"));
        new().tell(GiveInAndStop);
        expect(failed("GiveInAndStop"));
        // The start runs within the handler of the other actor.
        new().tell(StartAnother);
        expect(panicked("`started`", "at the start"));
        new().tell(Remember);
        expect(panicked("Burn", "it burns"));
        new().tell(AskOneself);
        expect(panicked("the answer u64", "at the answer"));
        system.spawn(Fragile(At::Start));
        expect(panicked("`started`", "at the start"));
        system.spawn(Fragile(At::Idle));
        expect(panicked("`receive_timeout`", "idle"));
        system.spawn(Fragile(At::Terminated));
        expect(panicked("`terminated`", "alone"));
        // The log has no other reports, and no reports for stopped actors.
        new().stop();
        system.shutdown().unwrap();
        assert_eq!(told.recv_timeout(LIMIT), Err(RecvTimeoutError::Disconnected));
    });
}

// GUARANTEE: Crashes are reported
/// A crash is reported once. The supervisor's own crash reports the consequence.
#[test]
fn a_crash_of_a_child_says_that_its_supervisor_decides() {
    finishes(|| {
        let (system, told) = watched();
        let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one().max_restarts(1, LIMIT)));
        let child = supervisor.ask(ChildSpec::new("child", || Fragile(At::Nowhere))).wait().unwrap().unwrap();
        for _ in 0..2 {
            child.tell(Burn);
            let report = told.recv_timeout(LIMIT).unwrap();
            assert_eq!((report.who, report.name.as_deref()), (child.id(), Some("child")));
            assert_eq!(report.then, AfterCrash::SupervisorDecides);
            assert_eq!(report.during.unwrap().to_string(), "Burn");
        }
        let gave_up = told.recv_timeout(LIMIT).unwrap();
        assert_eq!((gave_up.who, gave_up.then, &gave_up.place), (supervisor.id(), AfterCrash::Ends, &None));
        let why = SupervisionFailed { child: "child".to_owned(), cause: "it burns".to_owned() };
        assert_eq!(gave_up.reason, StopReason::Failed(why.to_string()));
        system.shutdown().unwrap();
        assert_eq!(told.recv_timeout(LIMIT), Err(RecvTimeoutError::Disconnected));
    });
}

// GUARANTEE: Crashes are reported
/// A decision of a supervisor is reported once, with its delay. A supervisor that gives up reports a crash and no decision.
#[test]
fn the_decision_of_a_supervisor_is_reported() {
    finishes(|| {
        let (system, told) = watched();
        let (tell, decided) = mpsc::channel();
        system.on_decision(move |report| drop(tell.send(report.clone())));
        let delay = Duration::from_millis(1);
        let policy = || SupervisionPolicy::one_for_one().max_restarts(2, LIMIT).backoff(delay, LIMIT);
        let child_of = |policy| {
            let supervisor = system.spawn_with(SpawnOptions::new().name("boss"), Supervisor::new(policy));
            (supervisor, supervisor.ask(ChildSpec::new("child", || Fragile(At::Nowhere))).wait().unwrap().unwrap())
        };
        let expect = |supervisor: ActorRef<Supervisor>, directive, after| {
            let report: DecisionReport = decided.recv_timeout(LIMIT).unwrap();
            assert_eq!((report.supervisor, report.name.as_deref()), (supervisor.id(), Some("boss")));
            assert_eq!((report.directive, report.after), (directive, after));
            assert_eq!((report.child.as_str(), report.cause.as_str()), ("child", "it burns"));
            report.to_string()
        };
        let (supervisor, child) = child_of(policy());
        for nth in 1..=2 {
            child.tell(Burn);
            let shown = expect(supervisor, Directive::Restart, delay * nth);
            assert_eq!(shown, format!("The supervisor \"boss\" restarts its child \"child\" in {nth}ms: it burns"));
        }
        child.tell(Burn);
        let crashes: Vec<CrashReport> = (0..4).map(|_| told.recv_timeout(LIMIT).unwrap()).collect();
        assert_eq!((crashes[3].who, crashes[3].then), (supervisor.id(), AfterCrash::Ends));
        for (directive, does) in [(Directive::Resume, "resumes"), (Directive::Stop, "stops")] {
            let (supervisor, child) = child_of(policy().when(|_| true, directive));
            child.tell(Burn);
            let shown = expect(supervisor, directive, Duration::ZERO);
            assert_eq!(shown, format!("The supervisor \"boss\" {does} its child \"child\": it burns"));
            supervisor.stop();
        }
        system.shutdown().unwrap();
        assert_eq!(decided.recv_timeout(LIMIT), Err(RecvTimeoutError::Disconnected));
    });
}

#[test]
fn a_crash_at_a_restart_is_one_of_what_was_restarted() {
    finishes(|| {
        let (system, told) = watched();
        let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one().max_restarts(2, LIMIT)));
        let mut states = [At::Nowhere, At::Start].into_iter();
        let factory = move || Fragile(states.next().expect("no state is left"));
        let child = supervisor.ask(ChildSpec::new("child", factory)).wait().unwrap().unwrap();
        child.tell(Burn);
        let during = || told.recv_timeout(LIMIT).unwrap().during;
        assert_eq!(during().map(|during| during.to_string()).as_deref(), Some("Burn"));
        assert_eq!(during(), Some(CrashedIn::Hook("started")));
        assert_eq!(during(), Some(CrashedIn::Hook("factory")));
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Calls that block name the actor
/// A call that blocks in a handler panics with the actor's name and the place of the call. Other actors go on.
#[test]
fn a_forbidden_call_in_a_handler_names_the_actor_and_the_line() {
    finishes(|| {
        let (system, told) = watched();
        let named = || system.spawn_with(SpawnOptions::new().name("one"), Fragile(At::Nowhere));
        let expect = |call: &str, inside: &str| {
            let report = told.recv_timeout(LIMIT).unwrap();
            let place = report.place.unwrap();
            assert!(place.starts_with(file!()), "{place}");
            let StopReason::Panicked(text) = report.reason else { panic!("{:?}", report.reason) };
            let start = format!("`{call}` was called inside the actor Fragile \"one\"{inside}, ");
            assert!(text.starts_with(&start) && text.contains(": "), "{text}");
        };
        named().tell(WaitForAnother);
        expect(".wait()", "");
        named().tell(WaitForIdle(system.clone()));
        expect("run_until_idle", " of the same system");
        named().tell(ShutDown(system.clone()));
        expect("shutdown", " of the same system");
        assert_eq!(named().ask(Count).wait(), Ok(1));
        system.shutdown().unwrap();
    });
}

/// A panic that the program has caught lends its place to no other crash. The same holds for a panic passed on from
/// another thread.
#[test]
fn the_place_of_a_crash_is_its_own() {
    finishes(|| {
        let (system, told) = watched();
        let crash = |how: fn()| {
            system.spawn(Puppet).tell(Do::this(move |_| how()));
            told.recv_timeout(LIMIT).unwrap()
        };
        let passed_on = crash(|| {
            let _caught = std::panic::catch_unwind(|| panic!("caught"));
            std::panic::resume_unwind(std::thread::spawn(|| panic!("elsewhere")).join().unwrap_err());
        });
        assert_eq!((passed_on.reason, passed_on.place), (StopReason::Panicked("elsewhere".to_owned()), None));
        let own = crash(|| {
            let _caught = std::panic::catch_unwind(|| panic!("caught"));
            panic!("its own");
        });
        let line = line!() - 2;
        assert_eq!(own.place, Some(format!("{}:{line}:13", file!())));
        // The report keeps the actor's name, also after its end.
        let named = system.spawn_with(SpawnOptions::new().name("one"), Fragile(At::Nowhere));
        named.tell(GiveIn);
        let report = told.recv_timeout(LIMIT).unwrap();
        system.run_until_idle();
        assert!(
            named.is_stopped() && report.to_string().starts_with("Fragile \"one\" crashed in GiveIn: "),
            "{report}"
        );
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Crashes are reported
/// A hook that panics is contained.
#[test]
fn a_hook_for_crashes_that_panics_harms_nothing() {
    finishes(|| {
        let (system, told) = watched();
        system.on_crash(|_| panic!("in the hook"));
        for _ in 0..2 {
            system.spawn(Fragile(At::Nowhere)).tell(GiveIn);
            assert_eq!(short(&told.recv_timeout(LIMIT).unwrap()), failed("GiveIn"));
            system.spawn(Fragile(At::Nowhere)).tell(Burn);
            assert_eq!(short(&told.recv_timeout(LIMIT).unwrap()), panicked("Burn", "it burns"));
        }
        system.shutdown().unwrap();
    });
}

/// Run by the test below in a process of its own, because no other test may change its panic hook.
#[test]
fn crashes_in_a_process_of_their_own() {
    if std::env::var_os("CRASHES").is_none() {
        return;
    }
    let system = System::builder().workers(1).start().unwrap();
    let named = |name: &str| system.spawn_with(SpawnOptions::new().name(name), Fragile(At::Nowhere));
    named("first").tell(Burn);
    named("second").tell(GiveIn);
    system.run_until_idle();
    system.shutdown().unwrap();
    let silent = System::builder().workers(1).print_crashes(false).start().unwrap();
    silent.spawn_with(SpawnOptions::new().name("third"), Fragile(At::Nowhere)).tell(GiveIn);
    silent.shutdown().unwrap();
}

// GUARANTEE: Crashes are reported
#[test]
fn a_crash_is_printed_with_its_place_unless_that_is_turned_off() {
    let this = std::env::current_exe().unwrap();
    let arguments = ["--exact", "crashes::crashes_in_a_process_of_their_own", "--nocapture"];
    // The panic hook prints a backtrace in pieces, between which other threads print.
    let output = Command::new(this).args(arguments).env("CRASHES", "1").env("RUST_BACKTRACE", "0").output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    let mut lines: Vec<&str> = printed.lines().filter(|line| line.starts_with("playhouse: ")).collect();
    lines.sort_unstable();
    let file = file!();
    let is_of = |line: &str, start: &str, end: &str| {
        let place = line.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
        let place = place.and_then(|place| place.strip_prefix(file)).unwrap_or_else(|| panic!("{printed}"));
        assert!(place.split(':').skip(1).all(|number| number.parse::<u32>().is_ok()), "{printed}");
    };
    assert_eq!(lines.len(), 2, "{printed}");
    is_of(lines[0], "playhouse: Fragile \"first\" crashed in Burn: it panicked: it burns (", "). It ends.");
    is_of(lines[1], "playhouse: Fragile \"second\" crashed in GiveIn: it failed: it is broken (", "). It ends.");
    // The panic hook prints its own lines, too.
    assert!(printed.contains("panicked at"), "{printed}");
}
