#![allow(unused)]
use playhouse::prelude::*;

struct Counter;

#[actor(remote)]
impl Counter {
    #[message]
    fn add(&mut self, by: u64) {}
}

struct Second;

#[actor(name = "second", more)]
impl Second {}

fn main() {
    // The rest is still understood.
    System::start().unwrap().spawn(Counter).tell(Add(1));
}
