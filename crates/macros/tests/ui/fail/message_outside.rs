#![allow(unused)]
use playhouse::prelude::*;

struct Counter;

impl Counter {
    #[message]
    fn add(&mut self, by: u64) {}
}

#[message(reply = u64)]
struct Get;

#[message]
fn free(by: u64) {}

fn main() {}
