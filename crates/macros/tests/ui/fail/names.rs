#![allow(unused)]
use playhouse::prelude::*;

struct Counter;
struct Order;
struct Status;

#[actor]
impl Counter {
    #[message]
    fn add_one(&mut self) {}

    #[message]
    fn add__one(&mut self) {}

    #[message(name = "AddOne")]
    fn increment(&mut self) {}

    #[message]
    fn self_(&mut self) {}

    #[message(name = "Self")]
    fn reserved(&mut self) {}

    #[message]
    fn context(&mut self) {}

    #[message]
    fn ok(&mut self) {}

    #[message]
    fn counter(&self) {}

    #[message]
    fn order(&mut self, order: Order) {}

    #[message]
    fn status(&self) -> Result<Status, String> {
        Ok(Status)
    }

    #[message]
    fn _1(&self) {}
}

fn main() {}
