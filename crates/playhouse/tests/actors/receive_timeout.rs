//! Receive timeouts: an actor without messages gets the timeout, and an actor with messages does not.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{Do, Log, Puppet, finishes, quiet_panics, simulated, threads};
use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};
use playhouse::{Guard, Simulation};

const MS: Duration = Duration::from_millis(1);

/// Logs its receive timeouts.
struct Sleeper {
    after: Duration,
    /// The number of timeouts that it still takes.
    left: u32,
    open: bool,
    told: Log<(&'static str, u128)>,
}

impl Sleeper {
    fn log(&self, what: &'static str, ctx: &Context<Self>) {
        self.told.push((what, ctx.now().as_millis()));
    }
}

impl Actor for Sleeper {
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_receive_timeout(self.after);
    }

    fn receive_timeout(&mut self, ctx: &mut Context<Self>) {
        self.log("silence", ctx);
        self.left -= 1;
        self.open = true;
        if self.left == 0 {
            ctx.cancel_receive_timeout();
        }
    }
}

#[derive(Message, Clone)]
enum Say {
    Word,
    /// Deferred until a timeout.
    Later,
    SetTimeout(Duration),
    Crash,
}

impl Handler<Say> for Sleeper {
    fn handle(&mut self, say: Say, ctx: &mut Context<Self>) {
        match say {
            Say::Word => self.log("word", ctx),
            Say::Later => self.log("later", ctx),
            Say::SetTimeout(after) => ctx.set_receive_timeout(after),
            Say::Crash => panic!("meant: a crash"),
        }
    }

    fn guard(&self, say: &Say) -> Guard {
        if matches!(say, Say::Later) && !self.open { Guard::Defer } else { Guard::Holds }
    }
}

#[derive(Message)]
struct Wait(Duration);

impl AsyncHandler<Wait> for Sleeper {
    async fn handle(&mut self, Wait(time): Wait, ctx: &mut Context<Self>) {
        let (wake, woken) = tokio::sync::oneshot::channel::<()>();
        ctx.spawn(Puppet).tell(Do::this(move |ctx| {
            ctx.send_after(time, Do::this(move |_| _ = wake.send(())));
        }));
        let _ = woken.await;
        self.log("waited", ctx);
    }
}

fn sleeper(after: Duration, left: u32) -> (Sleeper, Log<(&'static str, u128)>) {
    let told = Log::new();
    (Sleeper { after, left, open: false, told: told.clone() }, told)
}

/// Sends each of these messages at its time.
fn say(system: &System, to: ActorRef<Sleeper>, what: Vec<(Duration, Say)>) {
    system.spawn(Puppet).tell(Do::this(move |ctx| {
        for (at, say) in what {
            ctx.send_after(at, Do::this(move |_| to.tell(say)));
        }
    }));
}

// GUARANTEE: Receive timeouts
#[test]
fn a_receive_timeout_fires_again_and_again_until_it_is_cancelled() {
    for seed in 0..20 {
        let system = simulated(seed);
        let (actor, told) = sleeper(10 * MS, 3);
        system.spawn(actor);
        system.run_until_idle();
        assert_eq!(told.take(), [("silence", 10), ("silence", 20), ("silence", 30)], "seed {seed}");
        assert_eq!(system.now(), 30 * MS, "seed {seed}: nothing is left behind");
    }
}

// GUARANTEE: Receive timeouts
#[test]
fn the_time_begins_anew_with_each_message() {
    for seed in 0..20 {
        let system = simulated(seed);
        let (actor, told) = sleeper(10 * MS, 2);
        let actor = system.spawn(actor);
        say(&system, actor, [4, 8, 17, 40].map(|at| (at * MS, Say::Word)).to_vec());
        system.run_until_idle();
        let expected = [("word", 4), ("word", 8), ("word", 17), ("silence", 27), ("silence", 37), ("word", 40)];
        assert_eq!(told.take(), expected, "seed {seed}");
    }
}

// GUARANTEE: Receive timeouts
#[test]
fn a_handler_that_waits_is_no_silence_and_the_time_begins_at_its_end() {
    for seed in 0..20 {
        let system = simulated(seed);
        let (actor, told) = sleeper(10 * MS, 1);
        system.spawn(actor).tell(Wait(34 * MS));
        system.run_until_idle();
        assert_eq!(told.take(), [("waited", 34), ("silence", 44)], "seed {seed}");
    }
}

#[test]
fn another_timeout_takes_the_place_of_the_first_and_none_outlives_its_actor() {
    for seed in 0..20 {
        let system = simulated(seed);
        let (actor, told) = sleeper(10 * MS, 1);
        let actor = system.spawn(actor);
        say(&system, actor, vec![(5 * MS, Say::SetTimeout(100 * MS))]);
        system.run_until_idle();
        assert_eq!(told.take(), [("silence", 105)], "seed {seed}");

        let (actor, told) = sleeper(1000 * MS, 1);
        system.spawn(actor).drain();
        system.run_until_idle();
        assert_eq!((told.take(), system.now()), (vec![], 105 * MS), "seed {seed}");
    }
}

#[test]
fn a_message_that_waits_for_its_guard_counts_only_when_it_runs() {
    for seed in 0..20 {
        let system = simulated(seed);
        let (actor, told) = sleeper(10 * MS, 2);
        let actor = system.spawn(actor);
        say(&system, actor, vec![(6 * MS, Say::Later)]);
        system.run_until_idle();
        assert_eq!(told.take(), [("silence", 10), ("later", 10), ("silence", 20)], "seed {seed}");
    }
}

#[test]
fn the_begin_and_end_of_a_watch_do_not_delay_the_receive_timeout() {
    for (seed, waits_for_its_guard) in (0..20).flat_map(|seed| [(seed, false), (seed, true)]) {
        let system = simulated(seed);
        let (actor, told) = sleeper(10 * MS, 2);
        let actor = system.spawn(actor);
        if waits_for_its_guard {
            actor.tell(Say::Later);
        }
        system.spawn(Puppet).tell(Do::this(move |ctx| {
            for at in [4, 8, 12, 16] {
                let watches = move |ctx: &mut Context<Puppet>| {
                    ctx.watch(actor);
                    ctx.unwatch(actor);
                };
                ctx.send_after(at * MS, Do::this(watches));
            }
        }));
        system.run_until_idle();
        let expected = [("silence", 10), ("later", 10), ("silence", 20)]
            .into_iter()
            .filter(|told| waits_for_its_guard || told.0 == "silence");
        assert_eq!(told.take(), expected.collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn a_restart_ends_it_and_begins_it_where_the_actor_does() {
    quiet_panics();
    for seed in 0..20 {
        let system = simulated(seed);
        let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
        let (told, mut first) = (Log::new(), true);
        let log = told.clone();
        let child = ChildSpec::new("sleeper", move || {
            // The second incarnation sets another timeout.
            let after = if std::mem::take(&mut first) { 10 * MS } else { 50 * MS };
            Sleeper { after, left: 1, open: false, told: log.clone() }
        });
        let actor = supervisor.ask(child).wait().unwrap().unwrap();
        say(&system, actor, vec![(7 * MS, Say::Crash)]);
        system.run_until_idle();
        assert_eq!(told.take(), [("silence", 57)], "seed {seed}");
    }
}

// GUARANTEE: Receive timeouts
#[test]
fn a_receive_timeout_is_never_early_on_threads() {
    finishes(|| {
        let system = threads(2);
        let (actor, told) = sleeper(20 * MS, 3);
        let actor = system.spawn(actor);
        for _ in 0..1000 {
            actor.tell(Say::Word);
        }
        system.run_until_idle();
        let told = told.take();
        let last = told.iter().rposition(|(what, _)| *what == "word").unwrap();
        assert_eq!((last, told.len()), (999, 1003));
        for pair in told[last..].windows(2) {
            assert!(pair[1].1 - pair[0].1 >= 19, "{pair:?}");
        }
        system.shutdown().unwrap();
    });
}

/// Migrates from theater to theater, and gets the timeout in each.
#[derive(Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Traveller {
    silences: Vec<u16>,
    #[serde(skip)]
    here: Option<Arc<()>>,
}

#[actor(mobile)]
impl Traveller {
    #[message]
    fn wake_me(&mut self, after: u64, ctx: &mut Context<Self>) {
        ctx.set_receive_timeout(after as u32 * MS);
        self.here = Some(Arc::default());
    }

    #[message]
    fn silences(&self) -> Vec<u16> {
        self.silences.clone()
    }

    #[receive_timeout]
    fn silence(&mut self, ctx: &mut Context<Self>) {
        self.silences.push(u16::from(self.here.is_some()));
        if self.silences.len() == 4 {
            ctx.cancel_receive_timeout();
        }
    }
}

// GUARANTEE: Receive timeouts
#[test]
fn a_receive_timeout_migrates_with_its_actor() {
    finishes(|| {
        for seed in 0..100 {
            let net = Simulation::new(seed);
            let here = net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap();
            let there = net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap();
            let peer = here.connect(there.address().unwrap()).unwrap();
            let traveller = here.system().spawn(Traveller { silences: Vec::new(), here: None });
            traveller.tell(WakeMe(10_000));
            here.migrate(traveller, &peer).wait().unwrap();
            net.run_until_idle();
            // All silences were in the target theater, where `here` is not set.
            assert_eq!(traveller.ask(Silences).wait().unwrap(), [0; 4], "seed {seed}");
        }
    });
}
