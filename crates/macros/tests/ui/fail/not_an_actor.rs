#![allow(unused)]
use playhouse::prelude::*;

struct Counter;

impl Counter {
    fn add(&mut self, by: u64) {}
}

#[derive(Message)]
struct Add(u64);

struct Shelf;

impl Actor for Shelf {}

struct Plain;

impl Handler<Plain> for Shelf {
    fn handle(&mut self, _: Plain, _: &mut Context<Self>) {}
}

fn main() {
    let system = System::start().unwrap();
    system.spawn(Counter).tell(Add(1));
    ChildSpec::new("counter", || Counter);
    system.spawn(Shelf).tell(Add(1));
    system.spawn(Shelf).ask("a book").wait();
}
