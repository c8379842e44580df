//! The end of an actor, awaited by threads, tasks and other actors.

use std::future::Future;
use std::pin::pin;
use std::task::{Context as PollContext, Poll, Waker};
use std::time::Duration;

use crate::support::{Do, Puppet, finishes, quiet_panics, simulated, threads};
use playhouse::prelude::*;

// GUARANTEE: Watching
#[test]
fn each_way_to_end_has_its_reason_outside_too() {
    quiet_panics();
    type End = fn(ActorRef<Puppet>);
    let ends: [(End, StopReason); 5] = [
        (ActorRef::stop, StopReason::Stopped),
        (ActorRef::drain, StopReason::Stopped),
        (ActorRef::kill, StopReason::Killed),
        (|puppet| puppet.tell(Do::this(|_| panic!("meant: the end"))), StopReason::Panicked("meant: the end".into())),
        (|puppet| puppet.tell(Do::this(|ctx| ctx.fail("trouble"))), StopReason::Failed("trouble".into())),
    ];
    for (end, reason) in ends {
        for seed in 0..5 {
            let system = simulated(seed);
            let puppet = system.spawn(Puppet);
            let both = [puppet.ended(), puppet.ended()];
            end(puppet);
            assert_eq!(both.map(|ended| ended.wait()), [reason.clone(), reason.clone()], "seed {seed}");
            assert!(puppet.is_stopped());
            assert_eq!(puppet.ended().wait(), StopReason::NotAlive);
        }
    }
}

// GUARANTEE: Watching
#[test]
fn threads_and_tasks_wait_for_an_end() {
    finishes(|| {
        let system = threads(2);
        let puppet = system.spawn(Puppet);
        let waiters: Vec<_> = (0..4).map(|_| std::thread::spawn(move || puppet.ended().wait())).collect();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let tasks: Vec<_> = (0..4).map(|_| runtime.spawn(puppet.ended())).collect();
        puppet.stop();
        for task in tasks {
            assert_eq!(runtime.block_on(task).unwrap(), StopReason::Stopped);
        }
        // A thread may have begun to wait after the end.
        for waiter in waiters {
            assert!(matches!(waiter.join().unwrap(), StopReason::Stopped | StopReason::NotAlive));
        }
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Watching
#[test]
fn a_shutdown_is_an_end_for_actors_that_live() {
    finishes(|| {
        let system = threads(2);
        let ends: Vec<_> = (0..100).map(|_| system.spawn(Puppet).ended()).collect();
        let waiters: Vec<_> = ends.into_iter().map(|ended| std::thread::spawn(move || ended.wait())).collect();
        system.shutdown().unwrap();
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), StopReason::Shutdown);
        }
    });
    // A system that is gone knows no ends.
    let system = threads(1);
    let puppet = system.spawn(Puppet);
    system.shutdown().unwrap();
    assert!(matches!(puppet.ended().wait(), StopReason::NotAlive | StopReason::Shutdown));
}

#[derive(Message)]
#[message(reply = StopReason)]
struct Await(ActorRef<Puppet>);

struct Heir;
impl Actor for Heir {}
impl AsyncHandler<Await> for Heir {
    async fn handle(&mut self, Await(puppet): Await, _: &mut Context<Self>) -> StopReason {
        puppet.ended().await
    }
}

// GUARANTEE: Watching
#[test]
fn a_handler_awaits_the_end_of_another_actor_and_may_be_recalled() {
    let system = simulated(1);
    let (puppet, heir) = (system.spawn(Puppet), system.spawn(Heir));
    let late = heir.ask(Await(puppet)).within(Duration::from_secs(1)).wait();
    assert!(matches!(late, Err(AskError::Deadline { .. })), "{late:?}");
    heir.kill();
    let heir = system.spawn(Heir);
    let mut asked = pin!(heir.ask(Await(puppet)));
    let mut cx = PollContext::from_waker(Waker::noop());
    assert!(asked.as_mut().poll(&mut cx).is_pending());
    system.run_until_idle();
    puppet.stop();
    system.run_until_idle();
    assert_eq!(asked.as_mut().poll(&mut cx), Poll::Ready(Ok(StopReason::Stopped)));
}

#[test]
#[should_panic(expected = "nothing is left to do in the simulated system")]
fn an_end_that_cannot_come_is_no_endless_wait_in_simulation() {
    let system = simulated(1);
    let _ = system.spawn(Puppet).ended().wait();
}
