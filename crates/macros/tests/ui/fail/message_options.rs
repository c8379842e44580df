#![allow(unused)]
use playhouse::prelude::*;

struct Counter;

#[actor]
impl Counter {
    #[message(rename = "Increment")]
    fn a(&mut self) {}

    #[message(name = Increment)]
    fn b(&mut self) {}

    #[message(name)]
    fn c(&mut self) {}

    #[message(name = "One", name = "Two")]
    fn d(&mut self) {}

    #[message(reply = u64)]
    fn e(&self) -> u64 {
        1
    }

    #[message(derive(Debug, Message))]
    fn f(&mut self) {}

    #[message(derive = Debug)]
    fn g(&mut self) {}

    #[message = "Increment"]
    fn h(&mut self) {}

    #[message(name = "two words")]
    fn i(&mut self) {}

    #[message(derive(NoSuchTrait))]
    fn j(&mut self) {}
}

fn main() {}
