//! Timers: exact in virtual time, never early in real time, and cancelled for good.

use std::time::{Duration, Instant};

use crate::support::{Dice, Do, Log, Puppet, finishes, quiet_panics, simulated, threads};
use playhouse::prelude::*;

const MS: Duration = Duration::from_millis(1);

/// Logs each ring and the time of its arrival.
struct Clock {
    log: Log<(u64, Duration)>,
    keys: Vec<playhouse::TimerKey>,
}

impl Actor for Clock {}

#[derive(Message, Clone, Copy)]
struct Ring(u64);

impl Handler<Ring> for Clock {
    fn handle(&mut self, Ring(n): Ring, ctx: &mut Context<Self>) {
        self.log.push((n, ctx.now()));
    }
}

#[derive(Message, Clone, Copy)]
enum Set {
    After(u64, Duration),
    Every(u64, Duration),
    Cancel(usize),
    CancelAfter(usize, Duration),
}

impl Handler<Set> for Clock {
    fn handle(&mut self, set: Set, ctx: &mut Context<Self>) {
        match set {
            Set::After(n, delay) => self.keys.push(ctx.send_after(delay, Ring(n))),
            Set::Every(n, period) => self.keys.push(ctx.send_every(period, Ring(n))),
            Set::Cancel(at) => ctx.cancel(self.keys[at]),
            Set::CancelAfter(at, delay) => _ = ctx.send_after(delay, Set::Cancel(at)),
        }
    }
}

type Rings = Log<(u64, Duration)>;

fn clock(system: &System) -> (ActorRef<Clock>, Rings) {
    let log = Log::new();
    (system.spawn(Clock { log: log.clone(), keys: Vec::new() }), log)
}

// GUARANTEE: Timers
#[test]
fn timers_fire_exactly_and_in_order_in_virtual_time() {
    for seed in 0..20 {
        let system = simulated(seed);
        let (clock, log) = clock(&system);
        let mut dice = Dice(seed);
        let mut delays: Vec<u64> = (0..200).map(|_| 1 + dice.roll() % 100_000).collect();
        for delay in &delays {
            clock.tell(Set::After(*delay, *delay as u32 * MS));
        }
        system.run_until_idle();
        delays.sort_unstable();
        let expected: Vec<_> = delays.iter().map(|delay| (*delay, *delay as u32 * MS)).collect();
        assert_eq!(log.take(), expected, "seed {seed}");
    }
}

// GUARANTEE: Timers
#[test]
fn a_time_beyond_292_years_counts_as_that_moment() {
    let system = simulated(0);
    let (clock, log) = clock(&system);
    let longest = Duration::from_nanos(u64::MAX / 2);
    clock.tell(Set::After(1, Duration::MAX));
    // Whole milliseconds are exact.
    let shorter = Duration::from_millis(longest.as_millis() as u64 - 1);
    clock.tell(Set::After(2, shorter));
    system.run_until_idle();
    let fired = log.take();
    assert_eq!(fired[0], (2, shorter));
    assert!(fired.len() == 2 && fired[1].0 == 1 && fired[1].1 >= longest && fired[1].1 < longest + MS, "{fired:?}");
}

#[test]
fn a_periodic_timer_fires_once_each_period_until_it_is_cancelled() {
    let system = simulated(0);
    let (clock, log) = clock(&system);
    clock.tell(Set::Every(1, 10 * MS));
    clock.tell(Set::CancelAfter(0, 55 * MS));
    system.run_until_idle();
    let expected: Vec<_> = (1..=5).map(|n| (1, 10 * n * MS)).collect();
    assert_eq!(log.take(), expected);
}

#[test]
fn a_cancelled_timer_never_arrives_and_leaves_the_system_idle() {
    for seed in 0..20 {
        let system = simulated(seed);
        let (clock, log) = clock(&system);
        clock.tell(Set::After(1, Duration::from_secs(1000)));
        clock.tell(Set::Every(2, Duration::from_secs(1000)));
        clock.tell(Set::Cancel(0));
        clock.tell(Set::Cancel(1));
        clock.tell(Set::Cancel(1));
        system.run_until_idle();
        assert!(log.take().is_empty());
        assert_eq!(system.now(), Duration::ZERO);
    }
}

// GUARANTEE: Timers
/// Both timers are due at one time. The cancelling message stands before the cancelled one in the mailbox.
#[test]
fn a_timer_that_is_cancelled_after_it_fired_never_arrives() {
    for seed in 0..50 {
        let system = simulated(seed);
        let (clock, log) = clock(&system);
        clock.tell(Set::CancelAfter(0, 5 * MS));
        clock.tell(Set::After(1, 5 * MS));
        clock.tell(Set::CancelAfter(1, 5 * MS));
        clock.tell(Set::Every(2, 5 * MS));
        system.run_until_idle();
        assert_eq!(log.take(), [], "seed {seed}");
    }
}

// GUARANTEE: Timers
#[test]
fn timers_of_a_stopped_actor_are_gone() {
    let system = simulated(0);
    let (clock, log) = clock(&system);
    clock.tell(Set::After(1, MS));
    clock.tell(Set::Every(2, MS));
    clock.drain();
    system.run_until_idle();
    assert!(log.take().is_empty());
    assert_eq!((system.now(), system.stats().total.dead_letters), (Duration::ZERO, 0));
}

#[test]
fn a_hundred_thousand_timers_fire_each_once() {
    let system = simulated(0);
    let (clock, log) = clock(&system);
    for n in 0..100_000_u64 {
        clock.tell(Set::After(n, (n * 7919 % 10_000 + 1) as u32 * MS));
    }
    system.run_until_idle();
    let mut rung = log.take();
    assert!(rung.is_sorted_by_key(|(_, at)| *at));
    rung.sort_unstable();
    assert_eq!(rung.len(), 100_000);
    for (i, (n, at)) in rung.into_iter().enumerate() {
        assert_eq!((n, at), (i as u64, (n * 7919 % 10_000 + 1) as u32 * MS));
    }
}

// GUARANTEE: Timers
#[test]
fn a_real_timer_is_never_early() {
    finishes(|| {
        let system = threads(2);
        let log = Log::new();
        for i in 0..20_u32 {
            let log = log.clone();
            system.spawn(Puppet).tell(Do::this(move |ctx| {
                let due = Instant::now() + i * MS;
                ctx.send_after(i * MS, Do::this(move |_| log.push(Instant::now() >= due)));
            }));
        }
        system.run_until_idle();
        assert_eq!(log.take(), [true; 20]);
        system.shutdown().unwrap();
    });
}

#[test]
fn timers_follow_their_actor_when_its_stage_moves() {
    for seed in 0..300 {
        let system = System::builder().workers(3).stages(9).simulated(seed).start().unwrap();
        let clocks: Vec<_> = (0..9).map(|_| clock(&system)).collect();
        let mut dice = Dice(seed);
        for round in 0..5_u64 {
            for (clock, _) in &clocks {
                clock.tell(Set::After(round, (1 + dice.below(4)) as u32 * MS));
            }
            // Traffic between the stages moves them from worker to worker.
            let (from, to) = (dice.below(9), clocks[dice.below(9)].0);
            let puppet = system.spawn_with(crate::support::on_stage(from as u16), Puppet);
            puppet.tell(Do::this(move |_| (0..5).for_each(|_| to.tell(Set::After(100, MS)))));
        }
        system.run_until_idle();
        for (_, log) in &clocks {
            let rung = log.take();
            assert!(rung.is_sorted_by_key(|(_, at)| *at), "seed {seed}: {rung:?}");
            assert_eq!(rung.iter().filter(|(n, _)| *n < 100).count(), 5, "seed {seed}");
        }
    }
}

// GUARANTEE: One message at a time
/// This test detects two simultaneous handlers of one actor, because the worker that fires a timer may have lost the
/// stage.
#[test]
fn timers_and_messages_of_an_actor_stay_one_at_a_time_on_threads() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    struct Lonely {
        busy: Arc<AtomicBool>,
        clashes: Arc<AtomicU64>,
        left: u32,
        peer: Option<ActorRef<Lonely>>,
    }
    impl Actor for Lonely {}
    #[derive(Message, Clone, Copy)]
    struct Beat(Option<ActorRef<Lonely>>);
    impl Handler<Beat> for Lonely {
        fn handle(&mut self, Beat(peer): Beat, ctx: &mut Context<Self>) {
            if self.busy.swap(true, Ordering::SeqCst) {
                self.clashes.fetch_add(1, Ordering::SeqCst);
            }
            self.peer = peer.or(self.peer);
            if self.left > 0 {
                self.left -= 1;
                ctx.send_after(MS, Beat(None));
                if let Some(peer) = self.peer {
                    peer.tell(Beat(None));
                }
            }
            self.busy.store(false, Ordering::SeqCst);
        }
    }
    finishes(|| {
        let system = System::builder().workers(3).stages(12).start().unwrap();
        let clashes = Arc::new(AtomicU64::new(0));
        let all: Vec<_> = (0..12)
            .map(|stage| {
                let actor = Lonely { busy: Arc::default(), clashes: Arc::clone(&clashes), left: 100, peer: None };
                system.spawn_with(crate::support::on_stage(stage), actor)
            })
            .collect();
        for (i, actor) in all.iter().enumerate() {
            actor.tell(Beat(Some(all[(i + 5) % 12])));
        }
        system.run_until_idle();
        assert_eq!(clashes.load(Ordering::SeqCst), 0);
        assert_eq!(system.shutdown().unwrap().undelivered, 0);
    });
}

/// Takes the time `takes` for each ring, and logs its begin and its end.
struct Slow {
    takes: Duration,
    log: Log<(Duration, Duration)>,
}

impl Actor for Slow {}

#[derive(Message)]
enum Wind {
    Every(Duration),
    Spaced(Duration),
    Stop(playhouse::TimerKey),
}

impl Handler<Wind> for Slow {
    fn handle(&mut self, wind: Wind, ctx: &mut Context<Self>) {
        let key = match wind {
            Wind::Every(period) => ctx.send_every(period, Ring(0)),
            Wind::Spaced(pause) => ctx.send_with_fixed_delay(pause, Ring(0)),
            Wind::Stop(key) => return ctx.cancel(key),
        };
        ctx.send_after(Duration::from_secs(60), Wind::Stop(key));
    }
}

impl AsyncHandler<Ring> for Slow {
    async fn handle(&mut self, _: Ring, ctx: &mut Context<Self>) {
        let (begun, takes) = (ctx.now(), self.takes);
        let (wake, woken) = tokio::sync::oneshot::channel::<()>();
        ctx.spawn(Puppet).tell(Do::this(move |ctx| {
            ctx.send_after(takes, Do::this(move |_| _ = wake.send(())));
        }));
        let _ = woken.await;
        self.log.push((begun, ctx.now()));
    }
}

/// Returns the begins and ends of its rings in the first minute, in milliseconds.
fn rings_of_slow(seed: u64, takes: Duration, wind: Wind, count: usize) -> Vec<(u128, u128)> {
    let system = simulated(seed);
    let log = Log::new();
    system.spawn(Slow { takes, log: log.clone() }).tell(wind);
    system.run_until_idle();
    log.take().into_iter().take(count).map(|(begun, ended)| (begun.as_millis(), ended.as_millis())).collect()
}

// GUARANTEE: Timers keep time
#[test]
fn a_timer_with_a_fixed_rate_keeps_its_beat_and_leaves_out_what_would_pile_up() {
    for seed in 0..20 {
        let second = Duration::from_secs(1);
        // Of the rings that are due during a handler, one waits, and the others are left out. The beat is that of the
        // beginning.
        let rings = rings_of_slow(seed, 2500 * MS, Wind::Every(second), 4);
        assert_eq!(rings, [(1000, 3500), (3500, 6000), (6000, 8500), (8500, 11_000)], "seed {seed}");
        let rings = rings_of_slow(seed, 300 * MS, Wind::Every(second), 3);
        assert_eq!(rings, [(1000, 1300), (2000, 2300), (3000, 3300)], "seed {seed}");
    }
}

// GUARANTEE: Timers keep time
#[test]
fn a_timer_with_a_fixed_pause_begins_it_when_its_message_was_handled() {
    for seed in 0..20 {
        let rings = rings_of_slow(seed, 2500 * MS, Wind::Spaced(Duration::from_secs(1)), 3);
        assert_eq!(rings, [(1000, 3500), (4500, 7000), (8000, 10_500)], "seed {seed}");
    }
}

/// Ticks in every way, and crashes at its order.
struct Ticking {
    life: u32,
    log: Log<(u32, &'static str, u128)>,
}

#[derive(Message, Clone, Copy)]
struct Tick(&'static str);

#[derive(Message)]
struct SetAll;

impl Actor for Ticking {}

impl Handler<Tick> for Ticking {
    fn handle(&mut self, Tick(name): Tick, ctx: &mut Context<Self>) {
        self.log.push((self.life, name, ctx.now().as_millis()));
        assert!(name != "spaced and kept" || self.life > 1, "meant: a crash of the handler of the timer itself");
    }
}

impl Handler<SetAll> for Ticking {
    fn handle(&mut self, _: SetAll, ctx: &mut Context<Self>) {
        ctx.send_after(25 * MS, Tick("once"));
        ctx.send_every(10 * MS, Tick("every"));
        ctx.send_with_fixed_delay(10 * MS, Tick("spaced"));
        for key in [
            ctx.send_after(25 * MS, Tick("once and kept")),
            ctx.send_every(10 * MS, Tick("every and kept")),
            ctx.send_with_fixed_delay(15 * MS, Tick("spaced and kept")),
        ] {
            assert!(ctx.keep_timer(key));
        }
        let gone = ctx.send_after(MS, Tick("never"));
        ctx.cancel(gone);
        assert!(!ctx.keep_timer(gone));
    }
}

// GUARANTEE: Timers keep time
#[test]
fn timers_end_with_a_restart_unless_they_are_kept() {
    quiet_panics();
    for seed in 0..20 {
        let system = simulated(seed);
        let log = Log::new();
        let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
        let (mut life, lives) = (0, log.clone());
        let child = ChildSpec::new("ticking", move || {
            life += 1;
            Ticking { life, log: lives.clone() }
        });
        let ticking = supervisor.ask(child).wait().unwrap().unwrap();
        ticking.tell(SetAll);
        let stop = ticking;
        system.spawn(Puppet).tell(Do::this(move |ctx| _ = ctx.send_after(42 * MS, Do::this(move |_| stop.stop()))));
        system.run_until_idle();
        let of = |name: &str| -> Vec<(u32, u128)> {
            log.lock().iter().filter(|tick| tick.1 == name).map(|tick| (tick.0, tick.2)).collect()
        };
        // Its own handler crashes at 15.
        assert_eq!((of("once"), of("every"), of("spaced")), (vec![], vec![(1, 10)], vec![(1, 10)]), "seed {seed}");
        assert_eq!(of("once and kept"), [(2, 25)], "seed {seed}");
        assert_eq!(of("every and kept"), [(1, 10), (2, 20), (2, 30), (2, 40)], "seed {seed}");
        assert_eq!(of("spaced and kept"), [(1, 15), (2, 30)], "seed {seed}");
    }
}

#[derive(Message)]
struct Nap(u64, Duration);

impl AsyncHandler<Nap> for Clock {
    async fn handle(&mut self, Nap(n, delay): Nap, ctx: &mut Context<Self>) {
        ctx.sleep(delay).await;
        self.log.push((n, ctx.now()));
    }
}

// GUARANTEE: Sleep
#[test]
fn a_sleeping_actor_takes_no_message_and_others_go_on() {
    for seed in 0..20 {
        let system = simulated(seed);
        let log = Log::new();
        let [first, other, killed] = [(); 3].map(|()| system.spawn(Clock { log: log.clone(), keys: Vec::new() }));
        first.tell(Nap(1, 30 * MS));
        first.tell(Nap(2, Duration::ZERO));
        first.tell(Ring(3));
        other.tell(Nap(4, 10 * MS));
        killed.tell(Nap(5, 20 * MS));
        system.spawn(Puppet).tell(Do::this(move |ctx| _ = ctx.send_after(15 * MS, Do::this(move |_| killed.kill()))));
        system.run_until_idle();
        // A nap of no time still ends at a timer, which fires at the next millisecond.
        let woken = log.lock().clone();
        assert_eq!(woken[..2], [(4, 10 * MS), (1, 30 * MS)], "seed {seed}");
        assert_eq!(woken[2..].iter().map(|(n, _)| *n).collect::<Vec<_>>(), [2, 3], "seed {seed}");
        // The timer of the killed actor is gone, and the system waits for none.
        assert!(system.now() < 33 * MS, "seed {seed}: {:?}", system.now());
    }
}

// GUARANTEE: Sleep
#[test]
fn a_sleep_ends_never_early_on_threads() {
    finishes(|| {
        let system = threads(2);
        let clock = system.spawn(Clock { log: Log::new(), keys: Vec::new() });
        let start = Instant::now();
        clock.ask(Nap(1, 20 * MS)).wait().unwrap();
        assert!(start.elapsed() >= 20 * MS);
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Passing time
#[test]
fn a_time_that_is_let_pass_is_over_with_all_that_was_to_be_done_in_it() {
    for seed in 0..20 {
        let system = simulated(seed);
        let (clock, log) = clock(&system);
        system.run_for(3 * MS);
        assert_eq!(system.now(), 3 * MS, "seed {seed}");
        clock.tell(Set::Every(7, 10 * MS));
        system.run_for(Duration::ZERO);
        // The timer of the last moment has fired, and its message was handled.
        system.run_for(30 * MS);
        assert_eq!(log.take(), [13, 23, 33].map(|at| (7, at * MS)), "seed {seed}");
        system.run_for(9 * MS);
        assert_eq!((system.now(), log.take().len()), (42 * MS, 0), "seed {seed}");
        system.run_for(Duration::from_secs(100));
        assert_eq!((system.now(), log.take().len()), (100_042 * MS, 10_000), "seed {seed}");
        // A simulated system without a shutdown counts as a running one, and a process has room for 4,095.
        system.shutdown().unwrap();
    }
    let system = simulated(1);
    system.run_for(Duration::MAX);
    assert_eq!(system.now(), Duration::from_nanos(u64::MAX / 2), "the last moment there is");
    system.run_for(MS);
    system.shutdown().unwrap();
}

// GUARANTEE: Passing time
#[test]
fn a_time_that_is_let_pass_on_threads_is_waited_for_outside() {
    finishes(|| {
        let system = threads(2);
        let (clock, log) = clock(&system);
        clock.tell(Set::Every(7, MS));
        let start = Instant::now();
        system.run_for(20 * MS);
        assert!(start.elapsed() >= 20 * MS);
        quiet_panics();
        let (inside, thrown) = (system.clone(), Log::new());
        let told = thrown.clone();
        system.spawn(Puppet).tell(Do::this(move |_| {
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| inside.run_for(MS)));
            told.push(caught.unwrap_err().downcast_ref::<String>().unwrap().clone());
        }));
        while thrown.lock().is_empty() || log.lock().is_empty() {
            std::thread::yield_now();
        }
        assert!(thrown.take()[0].contains("await `ctx.sleep(..)`"));
        // The end of the system ends the waiting.
        let waits = system.clone();
        let waiting = std::thread::spawn(move || waits.run_for(Duration::MAX));
        system.shutdown().unwrap();
        waiting.join().unwrap();
    });
}

/// Run by the test below in a process of its own, because the test reads the process's stderr.
#[test]
fn long_waits_in_a_process_of_their_own() {
    let Some(how) = std::env::var_os("WAITS") else { return };
    let (system, period, end) = match how.to_str() {
        Some("simulated") => (simulated(1), MS, 150_000 * MS),
        Some("threads") => (threads(1), 100 * MS, 11_000 * MS),
        _ => panic!("{how:?}"),
    };
    let (clock, log) = clock(&system);
    clock.tell(Set::Every(7, period));
    clock.tell(Set::CancelAfter(0, end));
    system.run_until_idle();
    assert!(!log.lock().is_empty());
    // Without timers it prints nothing.
    for n in 0..100 {
        clock.tell(Ring(n));
        system.run_until_idle();
    }
}

// GUARANTEE: Passing time
#[test]
fn a_long_wait_for_timers_is_reported_once() {
    for how in ["simulated", "threads"] {
        let arguments = ["--exact", "timers::long_waits_in_a_process_of_their_own", "--nocapture"];
        let this = std::env::current_exe().unwrap();
        let output = std::process::Command::new(this).args(arguments).env("WAITS", how).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let printed = String::from_utf8(output.stderr).unwrap();
        let lines: Vec<&str> = printed.lines().filter(|line| line.starts_with("playhouse: ")).collect();
        assert!(matches!(lines[..], [line] if line.contains("`run_for` lets a time pass")), "{how}: {printed}");
    }
}
