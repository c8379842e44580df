//! Actors in the context of a tokio runtime: code that uses tokio works in handlers and hooks. Without the context the
//! report names the remedy.
#![cfg(feature = "tokio")]

use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use playhouse::prelude::*;
use playhouse::{CrashReport, Guard, StopReason};
use tokio::runtime::{Handle, Runtime};

mod support;
use support::{LIMIT, finishes};

const MS: Duration = Duration::from_millis(1);

/// Spawns a task in each hook and handler. Sends the name of each hook or handler with a task that has found the
/// context.
struct Clerk {
    told: Sender<&'static str>,
}

impl Clerk {
    fn spawn_task(&self, from: &'static str) {
        let told = self.told.clone();
        tokio::spawn(async move {
            tokio::time::sleep(MS).await;
            told.send(from).unwrap();
        });
    }
}

impl Actor for Clerk {
    fn started(&mut self, _: &mut Context<Self>) {
        self.spawn_task("started");
    }

    fn stopped(&mut self, _: &mut Context<Self>) {
        self.spawn_task("stopped");
    }
}

#[derive(Message)]
struct Work;

impl Handler<Work> for Clerk {
    fn handle(&mut self, _: Work, _: &mut Context<Self>) {
        self.spawn_task("handler");
    }
}

#[derive(Message)]
#[message(reply = u32)]
struct Wait;

impl AsyncHandler<Wait> for Clerk {
    async fn handle(&mut self, _: Wait, _: &mut Context<Self>) -> u32 {
        tokio::time::sleep(MS).await;
        self.spawn_task("async handler");
        tokio::spawn(async { 42 }).await.unwrap()
    }
}

fn works_in(runtime: &Runtime, builder: playhouse::SystemBuilder) {
    let system = builder.tokio(runtime.handle().clone()).start().unwrap();
    let (told, tells) = mpsc::channel();
    let clerk = system.spawn(Clerk { told });
    clerk.tell(Work);
    let mut expected = vec!["started", "handler", "stopped"];
    // A simulation waits for no thread of a runtime.
    if system.workers() != 1 {
        assert_eq!(clerk.ask(Wait).wait(), Ok(42));
        expected.push("async handler");
    }
    clerk.drain();
    system.shutdown().unwrap();
    let mut names: Vec<_> = expected.iter().map(|_| tells.recv_timeout(LIMIT).unwrap()).collect();
    names.sort_unstable();
    expected.sort_unstable();
    assert_eq!(names, expected);
}

// GUARANTEE: A runtime's context
#[test]
fn handlers_and_hooks_run_in_the_context_of_the_runtime() {
    finishes(|| {
        let runtime = Runtime::new().unwrap();
        works_in(&runtime, System::builder().workers(2));
        works_in(&runtime, System::builder().simulated(1).workers(1));
        assert!(Handle::try_current().is_err(), "this thread is not in it");
    });
}

// GUARANTEE: A runtime's context
#[test]
fn without_a_context_the_report_says_how_to_have_one() {
    finishes(|| {
        support::quiet_panics();
        let system = System::builder().print_crashes(false).workers(1).start().unwrap();
        let (tell, crashes) = mpsc::channel::<CrashReport>();
        system.on_crash(move |crash| tell.send(crash.clone()).unwrap());
        let (told, _) = mpsc::channel();
        system.spawn(Clerk { told });
        let crash = crashes.recv_timeout(LIMIT).unwrap();
        assert!(matches!(&crash.reason, StopReason::Panicked(text) if text.contains("Tokio")), "{crash}");
        assert!(crash.to_string().contains("`SystemBuilder::tokio`"), "{crash}");
        system.shutdown().unwrap();
    });
}

// -- asks as futures ------------------------------------------------------------------------------------------------------

#[derive(Message)]
#[message(reply = u64)]
struct Double(u64);

struct Doubler;

impl Actor for Doubler {}
impl Handler<Double> for Doubler {
    fn handle(&mut self, Double(number): Double, _: &mut Context<Self>) -> u64 {
        number * 2
    }
}

/// Never answers.
#[derive(Message)]
struct Never;

impl Handler<Never> for Doubler {
    fn handle(&mut self, _: Never, _: &mut Context<Self>) {
        unreachable!("its guard keeps all");
    }

    fn guard(&self, _: &Never) -> Guard {
        Guard::Defer
    }
}

// GUARANTEE: Asks are futures
#[test]
fn asks_are_spawned_joined_and_selected_as_they_are() {
    finishes(|| {
        let runtime = Runtime::new().unwrap();
        let system = System::start().unwrap();
        runtime.block_on(async {
            let doubler = system.spawn(Doubler);
            let tasks: Vec<_> = (0..100).map(|number| tokio::spawn(doubler.ask(Double(number)))).collect();
            for (number, task) in (0..).zip(tasks) {
                assert_eq!(task.await.unwrap(), Ok(2 * number));
            }
            assert_eq!(tokio::join!(doubler.ask(Double(1)), doubler.ask(Double(2))), (Ok(2), Ok(4)));
            let (mut never, mut double) = (doubler.ask(Never), doubler.ask(Double(3)));
            tokio::select! {
                answer = &mut never => unreachable!("{answer:?}"),
                answer = &mut double => assert_eq!(answer, Ok(6)),
            }
            let timed = tokio::time::timeout(MS, &mut never).await;
            assert!(timed.is_err());
        });
        system.shutdown().unwrap();
    });
}

// GUARANTEE: A shutdown is awaited
#[test]
fn a_shutdown_is_awaited_and_goes_on_if_nobody_does() {
    finishes(|| {
        let runtime = Runtime::new().unwrap();
        let (told, tells) = mpsc::channel();
        let system = System::builder().tokio(runtime.handle().clone()).start().unwrap();
        system.spawn(Clerk { told: told.clone() });
        let report = runtime.block_on(system.shutdown_async(LIMIT)).unwrap();
        assert_eq!((report.actors_stopped, report.undelivered), (1, 0));
        let system = System::builder().tokio(runtime.handle().clone()).start().unwrap();
        system.spawn(Clerk { told });
        drop(system.shutdown_async(LIMIT));
        let mut names: Vec<_> = (0..4).map(|_| tells.recv_timeout(LIMIT).unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["started", "started", "stopped", "stopped"]);
    });
}
