#![allow(unused)]
use playhouse::prelude::*;

#[playhouse::test]
fn count(system: &System) -> usize {
    7
}

fn main() {}
