#![allow(unused)]
use playhouse::prelude::*;

struct Counter;

#[actor]
impl Counter {
    #[message]
    fn new(start: u64) -> u64 {
        start
    }

    #[message]
    fn end(self) {}

    #[message]
    fn end_mut(mut self, now: bool) {}

    #[message]
    fn boxed(self: Box<Self>) {}
}

fn main() {}
