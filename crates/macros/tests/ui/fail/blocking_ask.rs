#![allow(unused)]
use playhouse::prelude::*;

struct Counter(u64);

#[actor]
impl Counter {
    #[message]
    fn add(&mut self, n: u64) -> u64 {
        self.0 += n;
        self.0
    }
}

struct Asker(ActorRef<Counter>);

#[actor]
impl Asker {
    #[message]
    fn blocks(&mut self, ctx: &mut Context<Self>) -> Result<u64, AskError> {
        ctx.ask(self.0, Add(1)).wait()
    }

    #[message]
    fn two_arguments(&mut self, ctx: &mut Context<Self>) {
        ctx.ask(self.0, Add(1)).then(|this, sum| drop(sum));
    }
}

fn main() {
    let system = System::start().unwrap();
    let counter = system.spawn(Counter(0));
    counter.add(1);
    counter.send(Add(1));
}
