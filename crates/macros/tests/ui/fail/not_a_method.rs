#![allow(unused)]
use playhouse::prelude::*;

struct Counter;

#[actor]
impl Counter {
    #[message]
    const START: u64 = 1;

    #[started]
    const END: u64 = 1;
}

fn main() {}
