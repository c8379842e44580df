#![allow(unused)]
use playhouse::prelude::*;
use playhouse::serde::Serialize;

#[derive(Serialize)]
#[serde(crate = "playhouse::serde")]
struct Counter;

#[actor(remote, spawn)]
impl Counter {
    #[message]
    fn add(&mut self, by: u64) {}
}

fn main() {}
// GUARANTEE: Messages without a wire form are reported at once
