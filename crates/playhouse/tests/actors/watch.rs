//! A watcher gets the end of its actor once, with the reason.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::{Adder, Do, Log, Mourn, Mourner, Puppet, finishes, quiet_panics, simulated, threads};
use playhouse::prelude::*;

#[derive(Message)]
struct Unmourn(ActorRef<Puppet>);

impl Handler<Unmourn> for Mourner {
    fn handle(&mut self, Unmourn(who): Unmourn, ctx: &mut Context<Self>) {
        ctx.unwatch(who);
    }
}

#[derive(Debug)]
struct Trouble;

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("trouble")
    }
}

impl std::error::Error for Trouble {}

/// Watches some actors by borrowed references, and ends the watch of the last one.
struct Borrower {
    actors: Vec<ActorRef<Puppet>>,
    log: Log<Terminated>,
}

impl Actor for Borrower {
    fn started(&mut self, ctx: &mut Context<Self>) {
        for actor in &self.actors {
            ctx.watch(actor);
        }
        if let Some(last) = self.actors.last() {
            ctx.unwatch(last);
        }
    }
    fn terminated(&mut self, notice: Terminated, _: &mut Context<Self>) {
        self.log.push(notice);
    }
}

#[test]
fn borrowed_references_are_watched_like_their_actors() {
    let system = simulated(5);
    let actors: Vec<_> = (0..3).map(|_| system.spawn(Puppet)).collect();
    let log = Log::new();
    system.spawn(Borrower { actors: actors.clone(), log: log.clone() });
    system.run_until_idle();
    actors.iter().for_each(|actor| actor.stop());
    system.run_until_idle();
    let ended: BTreeSet<_> = log.take().into_iter().map(|notice| notice.who).collect();
    assert_eq!(ended, BTreeSet::from([actors[0].id(), actors[1].id()]));
}

// GUARANTEE: Watching
#[test]
fn each_way_to_end_has_its_reason() {
    quiet_panics();
    type End = fn(ActorRef<Puppet>);
    let ends: [(End, StopReason); 6] = [
        (ActorRef::stop, StopReason::Stopped),
        (ActorRef::drain, StopReason::Stopped),
        (|puppet| puppet.tell(Do::this(|ctx| ctx.stop())), StopReason::Stopped),
        (ActorRef::kill, StopReason::Killed),
        (|puppet| puppet.tell(Do::this(|_| panic!("meant: the end"))), StopReason::Panicked("meant: the end".into())),
        (|puppet| puppet.tell(Do::this(|ctx| ctx.fail(Trouble))), StopReason::Failed("trouble".into())),
    ];
    for (end, reason) in ends {
        for seed in 0..10 {
            let system = simulated(seed);
            let log = Log::new();
            let mourners = [0, 1].map(|_| system.spawn(Mourner(log.clone())));
            let puppet = system.spawn(Puppet);
            for mourner in mourners {
                mourner.ask(Mourn(puppet)).wait().unwrap();
                // A second watch of the same actor adds no notice.
                mourner.ask(Mourn(puppet)).wait().unwrap();
            }
            end(puppet);
            system.run_until_idle();
            let terminated = Terminated { who: puppet.id(), name: None, reason: reason.clone() };
            assert_eq!(log.take(), [terminated.clone(), terminated], "seed {seed}");
        }
    }
}

// GUARANTEE: Watching
#[test]
fn a_watcher_of_an_ended_actor_is_told_that_it_is_not_alive() {
    for seed in 0..10 {
        let system = simulated(seed);
        let log = Log::new();
        let mourner = system.spawn(Mourner(log.clone()));
        let puppet = system.spawn(Puppet);
        puppet.stop();
        system.run_until_idle();
        mourner.tell(Mourn(puppet));
        system.run_until_idle();
        assert_eq!(log.take(), [Terminated { who: puppet.id(), name: None, reason: StopReason::NotAlive }]);
    }
}

#[test]
fn an_actor_of_a_system_that_was_shut_down_is_not_alive() {
    finishes(|| {
        let (here, there) = (threads(1), threads(1));
        let (gone, lived) = (there.spawn(Adder), there.spawn(Adder));
        let log = Log::new();
        let mourner = here.spawn(Mourner(log.clone()));
        mourner.ask(Mourn(lived)).wait().unwrap();
        // The watch exists before the end begins.
        there.run_until_idle();
        there.shutdown().unwrap();
        mourner.tell(Mourn(gone));
        here.run_until_idle();
        let reasons: Vec<_> = log.take().into_iter().map(|terminated| (terminated.who, terminated.reason)).collect();
        assert_eq!(reasons, [(lived.id(), StopReason::Shutdown), (gone.id(), StopReason::NotAlive)]);
        here.shutdown().unwrap();
    });
}

#[test]
fn a_watch_that_was_taken_back_brings_no_notice() {
    for seed in 0..50 {
        let system = simulated(seed);
        let log = Log::new();
        let mourner = system.spawn(Mourner(log.clone()));
        let puppet = system.spawn(Puppet);
        mourner.tell(Mourn(puppet));
        mourner.tell(Unmourn(puppet));
        system.run_until_idle();
        puppet.stop();
        system.run_until_idle();
        assert_eq!(log.take(), [], "seed {seed}");
    }
}

#[test]
fn requests_of_the_system_lane_keep_their_order() {
    for seed in 0..200 {
        let system = System::builder().workers(3).stages(6).simulated(seed).start().unwrap();
        let log = Log::new();
        let mourner = system.spawn_with(crate::support::on_stage(0), Mourner(log.clone()));
        let puppet = system.spawn_with(crate::support::on_stage(1), Puppet);
        for _ in 0..10 {
            mourner.tell(Unmourn(puppet));
            mourner.tell(Mourn(puppet));
        }
        system.run_until_idle();
        puppet.stop();
        puppet.kill();
        system.run_until_idle();
        assert_eq!(
            log.take(),
            [Terminated { who: puppet.id(), name: None, reason: StopReason::Stopped }],
            "seed {seed}"
        );
    }
}

/// Logs notices and messages of one sender, to compare their order.
struct Diary(Log<&'static str>);

impl Actor for Diary {
    fn terminated(&mut self, _: Terminated, _: &mut Context<Self>) {
        self.0.push("down");
    }
}

#[derive(Message)]
struct Word(&'static str);

impl Handler<Word> for Diary {
    fn handle(&mut self, Word(word): Word, _: &mut Context<Self>) {
        self.0.push(word);
    }
}

impl Handler<Mourn<Puppet>> for Diary {
    fn handle(&mut self, Mourn(who): Mourn<Puppet>, ctx: &mut Context<Self>) {
        ctx.watch(who);
    }
}

#[test]
fn the_notice_comes_behind_the_last_message() {
    for seed in 0..50 {
        let system = System::builder().workers(3).stages(6).simulated(seed).start().unwrap();
        let log = Log::new();
        let diary = system.spawn(Diary(log.clone()));
        let puppet = system.spawn(Puppet);
        diary.ask(Mourn(puppet)).wait().unwrap();
        puppet.tell(Do::this(move |ctx| {
            ["a", "b", "c"].into_iter().for_each(|word| diary.tell(Word(word)));
            ctx.stop();
        }));
        system.run_until_idle();
        assert_eq!(log.take(), ["a", "b", "c", "down"], "seed {seed}");
    }
}

#[test]
fn a_watcher_that_has_ended_is_no_trouble() {
    let system = simulated(0);
    let mourner = system.spawn(Mourner(Log::new()));
    let puppet = system.spawn(Puppet);
    mourner.ask(Mourn(puppet)).wait().unwrap();
    mourner.kill();
    system.run_until_idle();
    puppet.stop();
    system.run_until_idle();
    assert_eq!(system.stats().total.crashes, 0);
}

// GUARANTEE: Watching
#[test]
fn every_one_of_many_watched_actors_is_reported_once() {
    finishes(|| {
        let system = threads(2);
        let log = Log::new();
        let mourner = system.spawn(Mourner(log.clone()));
        let puppets: Vec<_> = (0..2000).map(|_| system.spawn(Puppet)).collect();
        for puppet in &puppets {
            mourner.tell(Mourn(*puppet));
            puppet.tell(Do::this(|ctx| {
                ctx.send_after(Duration::from_millis(1), Do::this(|ctx| ctx.stop()));
            }));
        }
        system.run_until_idle();
        let mut who: Vec<_> = log.take().into_iter().map(|terminated| terminated.who).collect();
        who.sort_unstable();
        let mut expected: Vec<_> = puppets.iter().map(|puppet| puppet.id()).collect();
        expected.sort_unstable();
        assert_eq!(who, expected);
        system.shutdown().unwrap();
    });
}

#[test]
fn a_panic_with_any_payload_is_contained() {
    quiet_panics();
    let system = simulated(0);
    let puppet = system.spawn(Puppet);
    let log = Log::new();
    system.spawn(Mourner(log.clone())).ask(Mourn(puppet)).wait().unwrap();
    assert_eq!(puppet.ask(Do::this(|_| std::panic::panic_any(17_u8))).wait(), Err(AskError::Panicked));
    system.run_until_idle();
    assert!(matches!(&log.take()[..], [Terminated { reason: StopReason::Panicked(_), .. }]));
}
