#![allow(unused)]
use std::rc::Rc;

use playhouse::prelude::*;

#[derive(Message)]
struct Derived(Rc<u8>);

struct Counter;

#[actor]
impl Counter {
    #[message]
    fn add(&mut self, by: Rc<u8>) {}

    #[message]
    fn get(&self) -> Rc<u8> {
        Rc::new(1)
    }

    #[message]
    async fn sleepy(&mut self, other: ActorRef<Self>) {
        let local = Rc::new(1);
        let _ = other.ask(Sleepy(other)).await;
        drop(local);
    }
}

struct Local(Rc<u8>);

#[actor]
impl Local {}

fn main() {}
// GUARANTEE: Safe messages
