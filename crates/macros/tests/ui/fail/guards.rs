#![allow(unused)]
use playhouse::prelude::*;

struct Buffer {
    items: Vec<u64>,
}

#[actor]
impl Buffer {
    #[message(when = "self.items.len() <")]
    fn a(&mut self) {}

    #[message(when = self.has_room())]
    fn b(&mut self) {}

    #[message(when)]
    fn c(&mut self) {}

    #[message(when = "self.has_room()", when = "!self.items.is_empty()")]
    fn d(&mut self) {}

    #[message(otherwise = "refuse")]
    fn e(&mut self) {}

    #[message(when = "self.has_room()", otherwise = "defer")]
    fn f(&mut self) {}

    #[message(when = "self.has_room()", otherwise = "drop", otherwise = "refuse")]
    fn g(&mut self) {}

    fn has_room(&self) -> bool {
        self.items.len() < 5
    }
}

struct Typed {
    open: bool,
    sum: u64,
}

#[actor]
impl Typed {
    #[message(when = "self.sum")]
    fn h(&mut self) {}

    #[message(when = "self.is_opened()")]
    fn i(&mut self) {}

    #[message(when = "amount <= self.sum")]
    fn j(&mut self, amount: u64) {}

    #[message(when = "{ self.sum += 1; true }")]
    fn k(&mut self) {}
}

fn main() {}
// GUARANTEE: Refused messages are reported
