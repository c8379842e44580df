//! Dining philosophers, solved as by Chandy and Misra: a port of `examples/philosophers.rs` of ractor 0.16.5 (MIT,
//! copyright Sean Lawlor).
//!
//! - Forks and philosophers exchange the same messages by the same rules. The port prints the figures that ractor logs.
//! - A request for a fork is an ask in the port: the fork keeps its `Reply` instead of a backlog of messages.
//! - A philosopher cancels its timer when its state changes. In ractor, the timer's message carries the number of the state.
//! - ractor adds the time spent hungry to that spent eating where a fork is given up, and the time spent thinking to that
//!   spent hungry where both forks are at hand. The port adds each time to the state that ends.
//! - The results are printed in the order of the table. An argument sets another run time than 5,000 ms,
//!   and each philosopher has 1 s to report instead of 50 ms.
//!
//! ```text
//! cargo run -p playhouse-examples --bin ported_philosophers
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use playhouse::prelude::*;

const TIME_SLICE: Duration = Duration::from_millis(10);

const NAMES: [&str; 11] = [
    "Confucius",
    "Descartes",
    "Benjamin Franklin",
    "Socrates",
    "Aristotle",
    "Plato",
    "John Locke",
    "Nietzsche",
    "Karl Marx",
    "Pythagoras",
    "Montesquieu",
];

/// A fork, which its owner gives up only if it is dirty.
struct Fork {
    dirty: bool,
    owner: Option<ActorRef<Philosopher>>,
    waiting: VecDeque<(ActorRef<Philosopher>, Reply<()>)>,
}

#[actor]
impl Fork {
    /// The answer is the fork.
    #[message]
    fn request(&mut self, by: ActorRef<Philosopher>, reply: Reply<()>, ctx: &mut Context<Self>) {
        self.waiting.push_back((by, reply));
        self.serve(ctx);
    }

    #[message(named)]
    fn in_use(&mut self, by: ActorRef<Philosopher>, ctx: &mut Context<Self>) {
        assert_eq!(self.owner, Some(by));
        self.dirty = true;
        self.serve(ctx);
    }

    #[message(named)]
    fn put_down(&mut self, by: ActorRef<Philosopher>, ctx: &mut Context<Self>) {
        assert_eq!(self.owner.take(), Some(by));
        self.dirty = false;
        self.serve(ctx);
    }

    fn serve(&mut self, ctx: &mut Context<Self>) {
        match self.owner {
            None => {
                if let Some((next, reply)) = self.waiting.pop_front() {
                    self.owner = Some(next);
                    reply.send(());
                }
            }
            Some(owner) if self.dirty && !self.waiting.is_empty() => owner.tell(GiveUp(ctx.this())),
            Some(_) => {}
        }
    }
}

#[derive(Clone, Copy)]
enum Mode {
    Thinking,
    Hungry,
    Eating,
}

/// A philosopher's knowledge of the fork at one side.
struct Side {
    fork: ActorRef<Fork>,
    has: bool,
    requested: bool,
}

#[derive(Clone, Debug, Default)]
struct PhilosopherMetrics {
    state_change_count: u16,
    failed_to_eat: u16,
    time_thinking: Duration,
    time_hungry: Duration,
    time_eating: Duration,
}

struct Philosopher {
    sides: [Side; 2],
    mode: Mode,
    since: Duration,
    timer: Option<TimerKey>,
    metrics: PhilosopherMetrics,
}

impl Philosopher {
    fn new(forks: [ActorRef<Fork>; 2]) -> Self {
        let sides = forks.map(|fork| Side { fork, has: false, requested: false });
        Self { sides, mode: Mode::Thinking, since: Duration::ZERO, timer: None, metrics: PhilosopherMetrics::default() }
    }

    fn change_to(&mut self, mode: Mode, ctx: &mut Context<Self>) {
        let spent = match self.mode {
            Mode::Thinking => &mut self.metrics.time_thinking,
            Mode::Hungry => &mut self.metrics.time_hungry,
            Mode::Eating => &mut self.metrics.time_eating,
        };
        *spent += ctx.now() - self.since;
        self.since = ctx.now();
        self.mode = mode;
        self.metrics.state_change_count += 1;
        self.timer.take().into_iter().for_each(|timer| ctx.cancel(timer));
    }

    fn think(&mut self, ctx: &mut Context<Self>) {
        self.change_to(Mode::Thinking, ctx);
        self.timer = Some(ctx.send_after(TIME_SLICE, BecomeHungry));
    }

    fn eat_if_possible(&mut self, ctx: &mut Context<Self>) -> bool {
        if !self.sides.iter().all(|side| side.has) {
            return false;
        }
        self.change_to(Mode::Eating, ctx);
        self.sides.iter().for_each(|side| side.fork.tell(InUse { by: ctx.this() }));
        self.timer = Some(ctx.send_after(TIME_SLICE, StopEating));
        true
    }

    fn request_missing_forks(&mut self, ctx: &mut Context<Self>) {
        for (at, side) in self.sides.iter_mut().enumerate() {
            if side.has || std::mem::replace(&mut side.requested, true) {
                continue;
            }
            ctx.ask(side.fork, Request(ctx.this())).then(move |this, fork, ctx| {
                this.sides[at].has = fork.is_ok();
                this.sides[at].requested = false;
                this.eat_if_possible(ctx);
            });
        }
    }
}

#[actor]
impl Philosopher {
    #[started]
    fn sit_down(&mut self, ctx: &mut Context<Self>) {
        self.since = ctx.now();
        ctx.this().tell(BecomeHungry);
    }

    #[message]
    fn become_hungry(&mut self, ctx: &mut Context<Self>) {
        if !self.eat_if_possible(ctx) {
            self.change_to(Mode::Hungry, ctx);
            self.request_missing_forks(ctx);
        }
    }

    #[message]
    fn stop_eating(&mut self, ctx: &mut Context<Self>) {
        self.think(ctx);
    }

    #[message]
    fn give_up(&mut self, fork: ActorRef<Fork>, ctx: &mut Context<Self>) {
        for side in self.sides.iter_mut().filter(|side| side.fork == fork) {
            if std::mem::take(&mut side.has) {
                fork.tell(PutDown { by: ctx.this() });
            }
        }
        match self.mode {
            Mode::Thinking => {}
            Mode::Hungry => {
                self.metrics.failed_to_eat += 1;
                self.think(ctx);
            }
            Mode::Eating => self.think(ctx),
        }
    }

    #[message]
    fn send_metrics(&self) -> PhilosopherMetrics {
        self.metrics.clone()
    }
}

#[playhouse::main]
fn main(system: &System) -> playhouse::Result<()> {
    let run_time = std::env::args().nth(1).map_or(Ok(5_000), |argument| argument.parse())?;
    let forks = NAMES.map(|_| system.spawn(Fork { dirty: true, owner: None, waiting: VecDeque::new() }));
    let mut philosophers = Vec::new();
    for (left, name) in NAMES.iter().enumerate() {
        let right = (left + NAMES.len() - 1) % NAMES.len();
        let options = SpawnOptions::new().name(*name);
        philosophers.push(system.spawn_with(options, Philosopher::new([forks[left], forks[right]])));
    }
    std::thread::sleep(Duration::from_millis(run_time));
    println!("Simulation results");
    for (name, philosopher) in NAMES.iter().zip(philosophers) {
        let metrics = philosopher.ask(SendMetrics).within(Duration::from_secs(1)).wait()?;
        println!("{name}: {metrics:?}");
    }
    Ok(())
}
