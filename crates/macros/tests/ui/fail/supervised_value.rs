#![allow(unused)]
use playhouse::prelude::*;

struct Counter(u64);

#[actor]
impl Counter {}

fn main() {
    let child = Supervised::new("counter", Counter(0));
}
