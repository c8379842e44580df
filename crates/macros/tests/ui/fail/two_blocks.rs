#![allow(unused)]
use playhouse::prelude::*;

struct Counter;

#[actor]
impl Counter {
    #[message]
    fn add(&mut self, by: u64) {}
}

#[actor]
impl Counter {
    #[message]
    fn get(&self) -> u64 {
        1
    }
}

fn main() {}
