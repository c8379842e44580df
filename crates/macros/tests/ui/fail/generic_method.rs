#![allow(unused)]
use playhouse::prelude::*;

struct Counter;

#[actor]
impl Counter {
    #[message]
    fn add<T: Into<u64>>(&mut self, by: T) {}

    #[message]
    fn lend<'a>(&'a mut self) {}

    #[message]
    fn name(&mut self, name: impl Into<String>) {}

    #[message]
    fn all(&self) -> impl Iterator<Item = u64> {
        std::iter::empty()
    }

    #[message]
    unsafe fn trust(&mut self) {}
}

fn main() {}
