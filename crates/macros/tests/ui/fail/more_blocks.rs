#![allow(unused)]
use playhouse::prelude::*;

struct Counter;

#[actor]
impl Counter {
    #[message]
    fn add(&mut self, by: u64) {}
}

#[actor(more, spawn, mobile)]
impl Counter {
    #[message]
    fn get(&self) -> u64 {
        1
    }
}

#[actor(more, remote = "shop.Counter")]
impl Counter {
    #[message]
    fn put(&self) -> u64 {
        1
    }
}

#[actor(more, more = "twice")]
impl Counter {
    #[started]
    fn begin(&mut self) {}

    #[message(remote)]
    fn take(&mut self) {}
}

// The messages are remote, but the actor is not.
#[actor(more, remote)]
impl Counter {
    #[message]
    fn fetch(&mut self) {}
}

fn main() {}
