#![allow(unused)]
use playhouse::prelude::*;

struct Counter;

// `remote` is missing.
#[actor]
impl Counter {
    #[message]
    fn add(&mut self, by: u64) {}
}

fn main() {
    let theater = Theater::builder().start().unwrap();
    let found = theater.find::<Counter>("playhouse://127.0.0.1:7000/counter");
}
