//! Handler times and slow handlers.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::finishes;
use crate::support::graph::{Plan, play as play_graph};
use playhouse::prelude::*;
use playhouse::{SlowHandler, SystemBuilder};

#[derive(Default)]
struct Till {
    coins: u64,
    open: bool,
}

#[actor]
impl Till {
    #[message]
    fn put(&mut self, coins: u64) {
        self.coins += coins;
    }

    #[message(when = "self.open")]
    fn take(&mut self, coins: u64) {
        self.coins -= coins;
    }

    #[message]
    fn open(&mut self) {
        self.open = true;
    }

    #[message]
    fn count(&self) -> u64 {
        self.coins
    }

    #[message]
    fn burn(&mut self) {
        panic!("the till burns");
    }
}

struct Clerk {
    till: ActorRef<Till>,
}

#[actor]
impl Clerk {
    #[message]
    async fn report(&mut self) -> u64 {
        self.till.ask(Count).await.unwrap()
    }
}

/// Returns the number of handled messages of each type, by the shown names of types.
fn counts(system: &System) -> Vec<(String, u64)> {
    let short = |path: &str| path.rsplit("::").next().unwrap().to_owned();
    let mut counts: Vec<_> = system
        .handler_times()
        .iter()
        .map(|times| (format!("{} {}", short(times.actor), short(times.message)), times.count))
        .collect();
    counts.sort();
    counts
}

fn count_of(system: &System, what: &str) -> u64 {
    counts(system).iter().find(|(known, _)| known == what).map_or(0, |(_, count)| *count)
}

fn play(builder: SystemBuilder) -> System {
    let system = builder.start().unwrap();
    let till = system.spawn(Till::default());
    for _ in 0..100 {
        till.tell(Put(1));
    }
    till.tell(Take(50));
    till.tell(Open);
    let clerk = system.spawn(Clerk { till });
    assert_eq!(clerk.ask(Report).wait().unwrap(), 50);
    till.tell(Burn);
    till.tell(Put(1));
    system.run_until_idle();
    system
}

// GUARANTEE: Each handler is counted once
#[test]
fn each_message_that_is_handled_is_counted_once_by_types() {
    for builder in [System::builder().workers(2), System::builder().simulated(3)] {
        let system = play(builder.handler_times(true));
        assert_eq!(count_of(&system, "Till Put"), 100, "a dead letter is not handled");
        assert_eq!(count_of(&system, "Till Take"), 1, "what waits for its guard is counted when it is handled");
        assert_eq!(count_of(&system, "Till Count"), 1);
        assert_eq!(count_of(&system, "Clerk Report"), 1, "a handler that waits is counted at its end");
        assert_eq!(count_of(&system, "Till Burn"), 1, "a handler that panics has run");
        assert_eq!((count_of(&system, "Till start"), count_of(&system, "Clerk start")), (1, 1));
        system.shutdown().unwrap();
    }
}

// GUARANTEE: Each handler is counted once
#[test]
fn handlers_without_an_observer_are_not_timed() {
    let system = play(System::builder().workers(2));
    assert_eq!(counts(&system), []);
    let timed = system.time_handlers();
    let till = system.spawn(Till::default());
    till.ask(Count).wait().unwrap();
    // The asker has the answer before the handler has ended.
    system.run_until_idle();
    assert_eq!(count_of(&system, "Till Count"), 1);
    drop(timed);
    for _ in 0..10 {
        till.ask(Count).wait().unwrap();
    }
    system.run_until_idle();
    assert_eq!(count_of(&system, "Till Count"), 1);
    system.shutdown().unwrap();
}

/// Runs until the test ends it.
struct Slow {
    enough: Mutex<Receiver<()>>,
}

#[actor]
impl Slow {
    #[message]
    fn wait_for_it(&mut self) {
        self.enough.get_mut().unwrap().recv().unwrap();
    }
}

/// The reported slow handlers.
type Told = Arc<Mutex<Vec<SlowHandler>>>;

fn slow(builder: SystemBuilder) -> (System, Told, Sender<()>, Slow) {
    let (end, enough) = mpsc::channel();
    let system = builder.start().unwrap();
    let told = Told::default();
    let (tell, ending) = (Arc::clone(&told), end.clone());
    system.on_slow_handler(move |slow| {
        tell.lock().unwrap().push(slow.clone());
        if slow.running {
            let _ = ending.send(());
        }
    });
    (system, told, end, Slow { enough: Mutex::new(enough) })
}

// GUARANTEE: Slow handlers are named
#[test]
fn a_slow_handler_is_told_of_while_it_runs_and_when_it_has_returned() {
    const LIMIT: Duration = Duration::from_millis(5);
    let (system, told, _end, actor) = slow(System::builder().workers(1).slow_handlers(LIMIT));
    let actor = system.spawn_with(SpawnOptions::new().name("two"), actor);
    // The handler ends only because the hook got it while it ran. The worker's other actors had moved to another thread
    // by then, or not.
    actor.tell(WaitForIt);
    system.run_until_idle();
    // The hook is called on the handler's thread, after the handler.
    let told = loop {
        let told = told.lock().unwrap().clone();
        if told.len() == 2 {
            break told;
        }
        std::thread::yield_now();
    };
    assert_eq!((told[0].running, told[1].running), (true, false));
    for slow in &told {
        assert_eq!((slow.who, slow.took > LIMIT), (actor.id(), true));
        assert!(slow.actor.ends_with("observing::Slow") && slow.message.ends_with("WaitForIt"), "{slow:?}");
    }
    assert!(told[1].took >= told[0].took);
    let (running, ended) = (told[0].to_string(), told[1].to_string());
    assert!(running.starts_with("Slow \"two\" has been at WaitForIt for "), "{running}");
    assert!(ended.starts_with("Slow \"two\" took ") && ended.ends_with("ms for WaitForIt"), "{ended}");
    system.shutdown().unwrap();
}

// GUARANTEE: Slow handlers are named
#[test]
fn handlers_within_the_limit_are_not_told_of_and_hooks_that_panic_do_no_harm() {
    let hour = Duration::from_secs(3600);
    let (system, told, end, actor) = slow(System::builder().workers(1).slow_handlers(hour));
    end.send(()).unwrap();
    system.spawn(actor).tell(WaitForIt);
    system.run_until_idle();
    assert_eq!(*told.lock().unwrap(), []);
    system.shutdown().unwrap();

    let (system, told, end, actor) = slow(System::builder().workers(1).slow_handlers(Duration::ZERO));
    system.on_slow_handler(|slow| assert!(slow.running, "on purpose"));
    end.send(()).unwrap();
    system.spawn(actor).tell(WaitForIt);
    system.run_until_idle();
    assert!(told.lock().unwrap().iter().any(|slow| slow.message.ends_with("WaitForIt") && !slow.running));
    assert_eq!(system.shutdown().unwrap().stats.total.crashes, 0);
}

// GUARANTEE: Observation changes nothing
/// Actors start others and ask them, on threads, while the test switches all observation on and off.
#[test]
fn nothing_is_lost_where_looking_on_begins_and_ends_all_the_time() {
    let system = System::builder().workers(2).start().unwrap();
    let tills: Vec<_> = (0..20).map(|_| system.spawn(Till::default())).collect();
    let clerks: Vec<_> = tills.iter().map(|till| system.spawn(Clerk { till: *till })).collect();
    for turn in 1..=50 {
        let timed = (turn % 2 == 0).then(|| system.time_handlers());
        for till in &tills {
            (0..20).for_each(|_| till.tell(Put(1)));
        }
        let reports: Vec<_> = clerks.iter().map(|clerk| clerk.ask(Report)).collect();
        drop(timed);
        for report in reports {
            report.wait().unwrap();
        }
    }
    let coins: u64 = tills.iter().map(|till| till.ask(Count).wait().unwrap()).sum();
    assert_eq!(coins, 20 * 20 * 50);
    assert_eq!(system.shutdown().unwrap().stats.total.dead_letters, 0);
}

// GUARANTEE: Observation changes nothing
#[test]
fn pairs_keep_their_order_while_somebody_looks_on() {
    finishes(|| {
        for seed in 0..6 {
            let workers = 1 + seed as usize % 2;
            let builder =
                System::builder().workers(workers).stages(3 * workers).throughput([1, 7, 64][seed as usize % 3]);
            let system = builder.handler_times(true).slow_handlers(Duration::from_micros(50)).start().unwrap();
            system.on_slow_handler(|slow| assert!(!slow.actor.is_empty()));
            let outcome =
                play_graph(system, Plan { seed, nodes: 30, fuel: 4_000, stops: true, urgent: true, outsiders: 3 });
            assert!(outcome.wrong.is_empty(), "seed {seed}: {:#?}", outcome.wrong);
        }
    });
}

/// The choices of a simulated run do not depend on observers.
#[test]
fn a_run_that_is_looked_on_can_be_repeated() {
    let run = || {
        let system = System::builder().simulated(11).handler_times(true).start().unwrap();
        let plan = Plan { seed: 11, nodes: 20, fuel: 1_000, stops: true, urgent: true, outsiders: 0 };
        let outcome = play_graph(system, plan);
        assert!(outcome.wrong.is_empty(), "{:#?}", outcome.wrong);
        (outcome.trace, outcome.counters)
    };
    assert_eq!(run(), run());
}
