//! Measures the time of a message and of an actor, and prints them: one ping at a time, then creations.

use std::time::Instant;

use playhouse::prelude::*;

use super::passing::pass;

#[derive(Default)]
struct Console(Vec<String>);

#[actor]
impl Console {
    #[message]
    fn println(&mut self, line: String) {
        self.0.push(line);
    }

    #[message]
    fn is_complete(&self, count: u64) -> bool {
        let ends = [format!("{count} pings"), format!("{count} actors")];
        self.0.len() == 2 && ends.iter().all(|end| self.0.iter().any(|line| line.ends_with(end)))
    }
}

struct PingTimer {
    console: ActorRef<Console>,
    target: Option<ActorRef<PingTimer>>,
    started: Instant,
    count: u64,
    pongs: u64,
}

impl PingTimer {
    fn new(console: ActorRef<Console>) -> PingTimer {
        PingTimer { console, target: None, started: Instant::now(), count: 0, pongs: 0 }
    }
}

#[actor]
impl PingTimer {
    #[message]
    fn start(&mut self, count: u64, ctx: &mut Context<Self>) {
        let target = ctx.spawn(PingTimer::new(self.console));
        (self.count, self.started, self.target) = (count, Instant::now(), Some(target));
        target.tell(Ping(pass(ctx.this())));
    }

    #[message]
    fn ping(&mut self, caller: ActorRef<PingTimer>) {
        caller.tell(Pong);
    }

    #[message]
    fn pong(&mut self, ctx: &mut Context<Self>) {
        self.pongs += 1;
        if let (true, Some(target)) = (self.pongs < self.count, self.target) {
            target.tell(Ping(pass(ctx.this())));
        } else {
            let report = format!("{:?} for {} pings", self.started.elapsed(), self.pongs);
            self.console.tell(Println(pass(report)));
        }
    }
}

struct CreationTimer {
    console: ActorRef<Console>,
    started: Instant,
    count: u64,
    created: u64,
}

#[actor]
impl CreationTimer {
    #[message]
    fn create(&mut self, count: u64, ctx: &mut Context<Self>) {
        (self.count, self.started) = (count, Instant::now());
        for _ in 0..count {
            ctx.spawn(Child).tell(Report(pass(ctx.this())));
        }
    }

    #[message]
    fn created(&mut self) {
        self.created += 1;
        if self.created == self.count {
            let report = format!("{:?} for {} actors", self.started.elapsed(), self.created);
            self.console.tell(Println(pass(report)));
        }
    }
}

struct Child;

#[actor]
impl Child {
    #[message]
    fn report(&mut self, timer: ActorRef<CreationTimer>, ctx: &mut Context<Self>) {
        timer.tell(Created);
        ctx.stop();
    }
}

pub(super) fn run(system: &System, count: usize) -> playhouse::Result<bool> {
    let count = count as u64;
    let console = system.spawn(Console::default());
    system.spawn(PingTimer::new(console)).tell(Start(pass(count)));
    system.run_until_idle();
    let timer = CreationTimer { console, started: Instant::now(), count: 0, created: 0 };
    system.spawn(timer).tell(Create(pass(count)));
    system.run_until_idle();
    Ok(console.ask(IsComplete(count)).wait()?)
}
