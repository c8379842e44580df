#![allow(unused)]
use playhouse::prelude::*;

struct Counter;

#[actor]
impl Counter {
    #[message]
    fn add(&mut self, by: u64) {}
}

struct Plain;

fn main() {
    let counter = System::start().unwrap().spawn(Counter);
    counter.tell(Add);
    counter.tell(Add("5"));
    counter.tell(Plain);
}
