//! Actors in the context of a tokio runtime: what uses tokio works in handlers and hooks, and without the context the report says what to write.
#![cfg(feature = "tokio")]

use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use playhouse::prelude::*;
use playhouse::{CrashReport, StopReason};
use tokio::runtime::{Handle, Runtime};

mod support;
use support::{LIMIT, finishes};

const MS: Duration = Duration::from_millis(1);

/// Tells of each hook and handler the name of what a task that it has spawned has found.
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
    // In simulation, nothing waits for a runtime's own threads.
    if system.workers() != 1 {
        assert_eq!(clerk.ask(Wait).wait(), Ok(42));
        expected.push("async handler");
    }
    clerk.drain();
    system.shutdown().unwrap();
    let mut names: Vec<_> = expected.iter().map(|_| tells.recv_timeout(LIMIT).unwrap()).collect();
    (names.sort_unstable(), expected.sort_unstable());
    assert_eq!(names, expected);
}

#[test]
fn handlers_and_hooks_run_in_the_context_of_the_runtime() {
    finishes(|| {
        let runtime = Runtime::new().unwrap();
        works_in(&runtime, System::builder().workers(2));
        works_in(&runtime, System::builder().simulated(1).workers(1));
        assert!(Handle::try_current().is_err(), "this thread is not in it");
    });
}

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
