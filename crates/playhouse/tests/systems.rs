//! How systems are built, live side by side, and end.

mod support;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use playhouse::prelude::*;
use playhouse::resource::ResourcePool;
use playhouse::router::{Router, Routing};
use playhouse::topic::Topic;
use support::{Adder, Do, Increment, Log, Puppet, Scribe, Write, finishes, simulated, threads};

// GUARANTEE: Shutdown
#[test]
fn shutdown_handles_queued_messages_and_counts_living_actors() {
    finishes(|| {
        let system = threads(2);
        let log = Log::new();
        let scribes: Vec<_> = (0..10).map(|_| system.spawn(Scribe(log.clone()))).collect();
        for n in 0..1000 {
            for scribe in &scribes {
                scribe.tell(Write(n));
            }
        }
        let report = system.shutdown().unwrap();
        assert_eq!(log.take().len(), 10_000);
        assert_eq!((report.actors_stopped, report.undelivered), (10, 0));
    });
}

/// Sends itself messages for ever.
struct Restless;

impl Actor for Restless {}

#[derive(Message)]
struct Again;

impl Handler<Again> for Restless {
    fn handle(&mut self, _: Again, ctx: &mut Context<Self>) {
        ctx.this().tell(Again);
    }
}

// GUARANTEE: Shutdown
#[test]
fn shutdown_ends_a_busy_system_and_reports_undelivered_messages() {
    finishes(|| {
        for system in [threads(2), simulated(0)] {
            system.spawn(Restless).tell(Again);
            let report = system.shutdown_within(Duration::from_millis(500)).expect("no handler is stuck");
            assert_eq!((report.actors_stopped, report.undelivered), (1, 1));
        }
    });
}

#[test]
fn a_message_to_a_system_that_was_shut_down_is_refused_and_an_ask_says_so() {
    finishes(|| {
        let system = threads(1);
        let adder = system.spawn(Adder);
        system.shutdown().unwrap();
        adder.tell(Increment(1));
        adder.stop();
        assert!(adder.try_tell(Increment(1)).is_err());
        assert_eq!(adder.ask(Increment(1)).wait(), Err(AskError::Shutdown));
        // The next system must not get the message either.
        let next = threads(1);
        let other = next.spawn(Adder);
        adder.tell(Increment(1));
        assert!(matches!(adder.ask(Increment(1)).wait(), Err(AskError::Shutdown | AskError::Stopped)));
        assert_eq!(other.ask(Increment(1)).wait(), Ok(2));
        next.shutdown().unwrap();
    });
}

#[test]
fn spawning_in_a_system_that_was_shut_down_is_an_error() {
    finishes(|| {
        let system = threads(1);
        let handle = system.clone();
        system.shutdown().unwrap();
        assert!(handle.try_spawn_with(SpawnOptions::new(), Adder).is_err());
    });
}

// GUARANTEE: Several systems
#[test]
fn systems_live_side_by_side_and_their_actors_talk() {
    finishes(|| {
        let systems: Vec<System> = (0..4).map(|_| threads(2)).collect();
        let log = Log::new();
        let scribes: Vec<_> = systems.iter().map(|system| system.spawn(Scribe(log.clone()))).collect();
        for system in &systems {
            let scribes = scribes.clone();
            system.spawn(Puppet).tell(Do::this(move |_| {
                for n in 0..100 {
                    scribes.iter().for_each(|scribe| scribe.tell(Write(n)));
                }
            }));
        }
        for system in &systems {
            system.run_until_idle();
        }
        // A message may have come from a system that the loop waits for later. A second pass covers it.
        for system in systems {
            system.run_until_idle();
            system.shutdown().unwrap();
        }
        assert_eq!(log.take().len(), 4 * 4 * 100);
    });
}

// GUARANTEE: Settings
#[test]
fn all_wrong_settings_are_reported_at_once() {
    let error = System::builder().workers(0).stages(100_000).throughput(0).start().unwrap_err();
    assert_eq!(error.problems().len(), 3, "{error}");
    let error = System::builder().workers(4).stages(3).start().unwrap_err();
    assert!(error.to_string().contains("stages = 3"), "{error}");
    let error = System::builder().workers(usize::MAX).start().unwrap_err();
    assert!(error.to_string().contains("must be 1 to 1024"), "{error}");
}

#[test]
fn a_system_whose_workers_are_to_spin_for_ever_is_idle() {
    finishes(|| {
        let system = System::builder().workers(2).spin(Duration::MAX).start().unwrap();
        let adder = system.spawn(Adder);
        adder.tell(Increment(1));
        system.run_until_idle();
        system.shutdown().unwrap();
    });
}

#[test]
fn a_stage_that_does_not_exist_is_refused_in_words() {
    let system = System::builder().workers(1).stages(4).simulated(0).start().unwrap();
    let error = system.try_spawn_with(support::on_stage(4), Adder).unwrap_err();
    assert!(error.to_string().contains("stage 4"), "{error}");
}

#[test]
fn an_unset_setting_has_a_default_that_follows_from_the_others() {
    let cores = std::thread::available_parallelism().unwrap().get();
    let size = |builder: playhouse::SystemBuilder| {
        let system = builder.start().unwrap();
        let size = (system.workers(), system.stages());
        system.shutdown().unwrap();
        size
    };
    assert_eq!(size(System::builder()), (cores, 16 * cores));
    assert_eq!(size(System::builder().workers(3)), (3, 48));
    assert_eq!(size(System::builder().stages(5).workers(3)), (3, 5));
    // The size is the same on each machine, because a seed must mean the same run everywhere.
    assert_eq!(size(System::builder().simulated(7)), (4, 64));
    assert_eq!(size(System::builder().workers(2).simulated(7)), (2, 32));
}

/// Records its drop.
struct Client(&'static str, Log<&'static str>);

impl Drop for Client {
    fn drop(&mut self) {
        self.1.push(self.0);
    }
}

/// Reports the client that it finds, and records the client that it finds at its end.
struct Caller(Log<&'static str>);

#[actor]
impl Caller {
    #[message(name = "WhichClient")]
    fn client(&self, ctx: &mut Context<Self>) -> Option<&'static str> {
        ctx.system().service::<Client>().map(|client| client.0)
    }

    #[stopped]
    fn hang_up(&mut self, ctx: &mut Context<Self>) {
        self.0.push(ctx.system().service::<Client>().map_or("nobody", |client| client.0));
    }
}

// GUARANTEE: Services
#[test]
fn services_are_found_by_their_type_until_the_last_actor_has_ended() {
    finishes(|| {
        for system in [threads(2), simulated(0)] {
            let log = Log::new();
            let caller = system.spawn(Caller(log.clone()));
            assert_eq!(caller.ask(WhichClient).wait(), Ok(None));
            assert!(system.provide(Client("first", log.clone())).is_none());
            assert!(system.provide(7_u32).is_none());
            assert_eq!(caller.ask(WhichClient).wait(), Ok(Some("first")));
            let former = system.provide(Client("second", log.clone())).expect("there was one");
            assert_eq!((former.0, caller.ask(WhichClient).wait()), ("first", Ok(Some("second"))));
            assert_eq!(log.take(), [""; 0], "the former one is still held");
            drop(former);
            assert_eq!(system.service::<u32>().as_deref(), Some(&7));
            let kept = system.clone();
            system.shutdown().unwrap();
            assert_eq!(log.take(), ["first", "second", "second"], "the last one is dropped behind the actor");
            assert!(kept.service::<u32>().is_none());
            assert!(kept.provide(Client("late", log.clone())).is_none() && kept.service::<Client>().is_none());
            assert_eq!(log.take(), ["late"], "a system that has ended takes none");
        }
    });
}

// GUARANTEE: Services
#[test]
fn a_start_hook_runs_before_the_start_returns_or_fails_the_start() {
    finishes(|| {
        let log = Log::new();
        let provides = log.clone();
        let builder = System::builder().workers(1).on_start(move |system| {
            system.provide(Client("client", provides.clone()));
            system.spawn(Caller(provides.clone()));
            Ok(())
        });
        let system = builder.clone().on_start(|system| match system.service::<Client>() {
            Some(_client) => Ok(()),
            None => Err("what was provided before is not there".into()),
        });
        system.start().unwrap().shutdown().unwrap();
        assert_eq!(log.take(), ["client", "client"], "the actor has ended, and then the service");
        let error = builder.on_start(|_| Err("the port is in use".into())).start().unwrap_err().to_string();
        assert_eq!(error, "the actor system could not be started: `on_start` has failed: the port is in use");
        assert_eq!(log.take(), ["client", "client"], "it was ended");
        let panics = log.clone();
        let builder = System::builder().workers(1).on_start(move |system| {
            system.provide(Client("client", panics.clone()));
            panic!("nobody is at home");
        });
        assert!(std::panic::catch_unwind(AssertUnwindSafe(|| builder.start())).is_err());
        assert_eq!(log.take(), ["client"], "it was ended, too");
    });
}

#[test]
fn the_report_of_a_shutdown_is_shown_in_a_line() {
    let system = simulated(0);
    system.spawn(Adder);
    let text = system.shutdown().unwrap().to_string();
    assert!(text.starts_with("shut down in ") && text.ends_with(": 1 actor stopped, 0 messages undelivered"), "{text}");
}

/// Saves each entry, which takes a while.
struct Ledger(Log<u32>);

#[actor]
impl Ledger {
    #[message]
    async fn save(&mut self, entry: u32, ctx: &mut Context<Self>) {
        ctx.sleep(Duration::from_millis(3)).await;
        self.0.push(entry);
    }

    /// A thread of the test sends the number.
    #[message]
    async fn save_what_comes(&mut self, told: tokio::sync::oneshot::Receiver<u32>) {
        self.0.push(told.await.unwrap_or(0));
    }

    #[message(reentrant)]
    fn save_apart(&mut self, entry: u32, ctx: &mut Context<Self>) -> impl Future<Output = ()> + Send + use<> {
        let (sleep, log) = (ctx.sleep(Duration::from_millis(3)), self.0.clone());
        async move {
            sleep.await;
            log.push(entry);
        }
    }

    #[message]
    async fn wait_for_ever(&mut self) {
        std::future::pending::<()>().await;
    }
}

// GUARANTEE: Shutdown
#[test]
fn a_shutdown_waits_for_handlers_that_await_if_that_is_asked_for() {
    finishes(|| {
        for (awaits, seed) in [(true, None), (false, None), (true, Some(1)), (false, Some(1))] {
            let builder = System::builder().workers(2).await_handlers(awaits);
            let system = match seed {
                None => builder.start().unwrap(),
                Some(seed) => builder.simulated(seed).start().unwrap(),
            };
            let log = Log::new();
            let ledgers = [(); 3].map(|()| system.spawn(Ledger(log.clone())));
            // The shutdown does not wait for a periodic timer.
            let restless = system.spawn(Periodic);
            restless.tell(Tick);
            for entry in 0..5 {
                ledgers.iter().for_each(|ledger| ledger.tell(Save(entry)));
                ledgers.iter().for_each(|ledger| ledger.tell(SaveApart(entry)));
            }
            let report = system.shutdown().unwrap();
            let (saved, of_all) = (log.take().len(), 3 * 5 * 2);
            assert_eq!((saved == of_all, report.undelivered == 0), (awaits, awaits), "{saved} of {of_all}: {report}");
        }
    });
}

struct Periodic;

#[actor]
impl Periodic {
    #[message(derive(Clone))]
    fn tick(&mut self, ctx: &mut Context<Self>) {
        ctx.send_after(Duration::from_millis(1), Tick);
    }
}

// GUARANTEE: Shutdown
#[test]
fn a_shutdown_waits_for_a_thread_and_no_longer_than_its_limit() {
    finishes(|| {
        for _ in 0..50 {
            let log = Log::new();
            let system = System::builder().workers(2).await_handlers(true).start().unwrap();
            let (tell, told) = tokio::sync::oneshot::channel();
            system.spawn(Ledger(log.clone())).tell(SaveWhatComes(told));
            let outside = std::thread::spawn(move || tell.send(7).unwrap());
            system.shutdown().unwrap();
            outside.join().unwrap();
            assert_eq!(log.take(), [7]);
        }
        let system = System::builder().workers(2).await_handlers(true).start().unwrap();
        system.spawn(Ledger(Log::new())).tell(WaitForEver);
        let limit = Duration::from_millis(200);
        let report = system.shutdown_within(limit).unwrap();
        assert!(report.took >= limit && report.actors_stopped == 1, "{report}");
    });
}

/// Records that it has stopped.
struct Farewell(Log<u32>);

impl Actor for Farewell {
    fn stopped(&mut self, _: &mut Context<Self>) {
        self.0.push(1);
    }
}

impl Handler<Again> for Farewell {
    fn handle(&mut self, _: Again, _: &mut Context<Self>) {
        self.0.push(2);
    }
}

// GUARANTEE: The end of a simulated system
#[test]
fn a_simulated_system_ends_with_its_last_handle() {
    finishes(|| {
        let log = Log::new();
        let letters = Log::new();
        let told = letters.clone();
        let system = System::builder().simulated(0).start().unwrap();
        system.on_dead_letter(move |_| told.push(1));
        let service = Arc::new(());
        system.provide(Arc::clone(&service));
        let actor = system.spawn(Farewell(log.clone()));
        system.run_until_idle();
        actor.tell(Again);
        let other = system.clone();
        drop(system);
        assert_eq!(log.take(), [0; 0], "one handle is left");
        drop(other);
        assert_eq!(log.take(), [1]);
        assert_eq!(letters.take(), [1], "what waited is a dead letter");
        assert_eq!(Arc::strong_count(&service), 1, "services are dropped");
        actor.tell(Again);
        assert_eq!(log.take(), [0; 0]);
    });
}

// GUARANTEE: The end of a simulated system
#[test]
fn simulated_systems_that_are_dropped_make_room_for_others() {
    finishes(|| {
        for seed in 0..10_000 {
            let system = System::builder().simulated(seed).workers(1).stages(1).start().unwrap();
            let adder = system.spawn(Adder);
            adder.tell(Increment(1));
            if seed % 2 == 0 {
                system.run_until_idle();
            }
        }
    });
}

/// Keeps a handle to a simulated system, which is dropped in a handler.
struct Keeps(Option<System>);

impl Actor for Keeps {}

impl Handler<Again> for Keeps {
    fn handle(&mut self, _: Again, _: &mut Context<Self>) {
        self.0 = None;
    }
}

// GUARANTEE: The end of a simulated system
#[test]
fn the_last_handle_of_a_simulated_system_may_be_dropped_by_any_actor() {
    finishes(|| {
        let log = Log::new();
        let (own, other) = (simulated(0), simulated(1));
        other.spawn(Farewell(log.clone()));
        other.run_until_idle();
        let keeps = own.spawn(Keeps(Some(other)));
        keeps.tell(Again);
        own.run_until_idle();
        assert_eq!(log.take(), [1]);

        let system = simulated(2);
        let keeps = system.spawn(Keeps(Some(system.clone())));
        drop(system);
        // The waiting thread runs the system. An actor of the system drops its last handle, and the system goes on.
        keeps.ask(Again).wait().unwrap();
        keeps.ask(Again).wait().unwrap();
    });
}

/// Runs another system in its handler, and that system drops the last handle of its own system.
struct RunsAnother {
    another: System,
    keeps: ActorRef<Keeps>,
}

impl Actor for RunsAnother {}

#[derive(Message)]
#[message(reply = bool)]
struct Run;

impl Handler<Run> for RunsAnother {
    fn handle(&mut self, _: Run, ctx: &mut Context<Self>) -> bool {
        self.keeps.tell(Again);
        self.another.run_until_idle();
        ctx.system().service::<&'static str>().is_some()
    }
}

// GUARANTEE: The end of a simulated system
#[test]
fn a_simulated_system_does_not_end_within_its_own_handler() {
    finishes(|| {
        let (own, another) = (simulated(0), simulated(1));
        own.provide("a service");
        let keeps = another.spawn(Keeps(Some(own.clone())));
        let runs = own.spawn(RunsAnother { another, keeps });
        drop(own);
        assert_eq!(runs.ask(Run).wait(), Ok(true));
        assert_eq!(runs.ask(Run).wait(), Ok(true), "it goes on");
    });
}

// GUARANTEE: The end of a simulated system
#[test]
fn the_drop_of_the_last_handle_of_a_simulated_system_waits_for_nobody() {
    finishes(|| {
        // In a handler of the system, another thread drops it, and the handler waits for that thread.
        let system = simulated(0);
        let (puppet, last) = (system.spawn(Puppet), system.clone());
        drop(system);
        puppet.ask(Do::this(move |_| thread::spawn(move || drop(last)).join().unwrap())).wait().unwrap();

        // Two handlers drop the last handles of each other's systems at the same time.
        let both = Arc::new(Barrier::new(2));
        let systems = [simulated(1), simulated(2)];
        let others = [systems[1].clone(), systems[0].clone()];
        let puppets = [&systems[0], &systems[1]].map(|system| system.spawn(Puppet));
        drop(systems);
        let threads: Vec<_> = puppets
            .into_iter()
            .zip(others)
            .map(|(puppet, other)| {
                let both = Arc::clone(&both);
                thread::spawn(move || {
                    puppet
                        .ask(Do::this(move |_| {
                            both.wait();
                            drop(other);
                            both.wait();
                        }))
                        .wait()
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
    });
}

// GUARANTEE: The end of a simulated system
#[test]
fn a_thread_that_panics_ends_no_simulated_system() {
    finishes(|| {
        let log = Log::new();
        let kept = log.clone();
        let failing = thread::spawn(move || {
            let system = simulated(0);
            system.spawn(Farewell(kept));
            system.run_until_idle();
            panic!("a test that fails");
        });
        failing.join().unwrap_err();
        assert_eq!(log.take(), [0; 0], "nothing of what has failed is called again");
    });
}

/// Waits for an hour of virtual time.
struct Sleeper;

impl Actor for Sleeper {}

#[derive(Message)]
struct Sleep(mpsc::Sender<()>);

impl AsyncHandler<Sleep> for Sleeper {
    async fn handle(&mut self, Sleep(begun): Sleep, ctx: &mut Context<Self>) {
        let _ = begun.send(());
        ctx.sleep(Duration::from_secs(3600)).await;
    }
}

// GUARANTEE: The end of a simulated system
#[test]
fn an_ask_of_a_simulated_system_that_another_thread_ends_says_so() {
    finishes(|| {
        // Each shutdown drains for a million steps.
        for seed in 0..4 {
            let system = simulated(seed);
            system.spawn(Restless).tell(Again);
            let sleeper = system.spawn(Sleeper);
            let (begun, has_begun) = mpsc::channel();
            let waits = thread::spawn(move || sleeper.ask(Sleep(begun)).wait());
            has_begun.recv().unwrap();
            system.shutdown_within(Duration::from_millis(1)).unwrap();
            assert_eq!(waits.join().unwrap(), Err(AskError::Shutdown), "seed {seed}");
        }
    });
}

/// Keeps values that a program gets from the toolbox.
struct Tools {
    _pool: ResourcePool,
    _router: Router<Adder>,
    _topic: Topic<Note>,
    log: Log<u32>,
}

#[derive(Message, Clone)]
struct Note;

impl Actor for Tools {}

impl Drop for Tools {
    fn drop(&mut self) {
        self.log.push(1);
    }
}

// GUARANTEE: The end of a simulated system
#[test]
fn toolbox_handles_of_actors_and_services_keep_no_simulated_system() {
    finishes(|| {
        let log = Log::new();
        let system = simulated(0);
        let tools = |log: Log<u32>| Tools {
            _pool: ResourcePool::start(&system, 1, 10).unwrap(),
            _router: Router::new(&system, Routing::RoundRobin),
            _topic: Topic::new(&system),
            log,
        };
        system.spawn(tools(log.clone()));
        system.provide(tools(log.clone()));
        system.run_until_idle();
        drop(system);
        assert_eq!(log.take(), [1, 1]);
    });
}
