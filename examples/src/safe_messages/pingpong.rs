//! Pings as fast as possible, each answered with a pong. Both sides print their progress.

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
    fn lines(&self) -> usize {
        self.0.len()
    }
}

struct Ping {
    console: ActorRef<Console>,
    to_send: u64,
    received: u64,
    pongs: u64,
}

#[actor]
impl Ping {
    #[message]
    fn start(&mut self, other: ActorRef<Ping>, to_send: u64, ctx: &mut Context<Self>) {
        self.to_send = to_send;
        self.console.tell(Println(pass("Starting ping blast".to_owned())));
        for _ in 0..to_send {
            other.tell(SendPing(pass(ctx.this())));
        }
        self.console.tell(Println(pass(format!("Sent all pings, number = {to_send}"))));
    }

    #[message(name = "SendPing")]
    fn ping(&mut self, caller: ActorRef<Ping>) {
        self.received += 1;
        if self.received.is_multiple_of(100) {
            self.console.tell(Println(pass(format!("Messages received: {}", self.received))));
        }
        caller.tell(Pong);
    }

    #[message]
    fn pong(&mut self) {
        self.pongs += 1;
        if self.pongs.is_multiple_of(100) {
            self.console.tell(Println(pass(format!("Pongs received: {}", self.pongs))));
        }
        if self.pongs == self.to_send {
            self.console.tell(Println(pass("Received all pongs".to_owned())));
        }
    }
}

pub(super) fn run(system: &System, pings: usize) -> playhouse::Result<bool> {
    let console = system.spawn(Console::default());
    let [first, second] = [(); 2].map(|()| system.spawn(Ping { console, to_send: 0, received: 0, pongs: 0 }));
    first.tell(Start(pass(second), pass(pings as u64)));
    system.run_until_idle();
    Ok(console.ask(Lines).wait()? == 3 + pings / 100 * 2)
}
