#![allow(unused)]
use playhouse::prelude::*;

struct Counter;

#[actor]
impl Counter {
    #[message]
    fn pair(&mut self, (a, b): (u64, u64)) {}

    #[message]
    fn by_ref(&mut self, ref a: u64) {}

    #[message]
    fn conditional(&mut self, #[cfg(unix)] a: u64) {}
}

fn main() {}
