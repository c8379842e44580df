#![allow(unused)]
use playhouse::prelude::*;

struct Counter;

#[actor]
impl Counter {
    #[message]
    fn add(&mut self, by: u64) {}
}

struct Several;

#[actor]
impl Several {
    #[message]
    fn one(&mut self) {}
    #[message]
    async fn two(&mut self) {}
}

#[derive(Message)]
#[message(reply = u64)]
struct Get;

struct Handwritten;

impl Actor for Handwritten {}


struct Worker<T>(T);

#[actor]
impl<T: Send + 'static> Worker<T> {
    #[message]
    fn work(&mut self, on: T) {}
}

fn main() {
    let system = System::start().unwrap();
    let counter = system.spawn(Counter);
    counter.tell(Add(1));
    counter.tell(Get);
    counter.ask(Get).wait().unwrap();
    counter.recipient::<Get>();

    let several = system.spawn(Several);
    several.tell(One);
    several.tell(Two);
    several.tell(Get);
    several.try_tell(Get);
    several.ask(Get).wait().unwrap();
    several.tell(Work(several));

    system.spawn(Handwritten).tell(Get);

    let worker = system.spawn(Worker(1_u8));
    worker.tell(Work(1_u8));
    worker.tell(Work("one"));
}
// GUARANTEE: Typed sends
