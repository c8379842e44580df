#![allow(unused)]
use playhouse::prelude::*;

struct Counter;

#[actor]
impl Actor for Counter {}

#[derive(Message)]
struct Add(u64);

#[actor]
impl Handler<Add> for Counter {
    fn handle(&mut self, add: Add, _: &mut Context<Self>) {}
}

fn main() {}
