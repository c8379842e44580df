#![allow(unused)]
use playhouse::prelude::*;

#[derive(Message)]
struct Add(u64);

struct Counter;

impl Actor for Counter {}
impl Handler<Add> for Counter {
    fn handle(&mut self, add: Add, _: &mut Context<Self>) {}
}
impl AsyncHandler<Add> for Counter {
    async fn handle(&mut self, add: Add, _: &mut Context<Self>) {}
}

fn main() {
    System::start().unwrap().spawn(Counter).tell(Add(1));
}
