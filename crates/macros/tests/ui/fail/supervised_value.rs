#![allow(unused)]
use playhouse::prelude::*;

struct Counter(u64);

#[actor]
impl Counter {}

fn main() {
    let child = ChildSpec::new("counter", Counter(0));
}
