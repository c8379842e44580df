#![allow(unused)]
use playhouse::prelude::*;

struct A;

#[actor]
impl A {
    #[message]
    async fn waits(&mut self, reply: Reply<u32>) {}

    #[message]
    fn returns(&mut self, reply: Reply<u32>) -> u32 {
        7
    }

    #[message]
    fn twice(&mut self, one: Reply<u32>, other: Reply<u32>) {}

    #[started]
    fn begin(&mut self, reply: Reply<u32>) {}
}

struct B;

#[actor]
impl B {
    #[message]
    fn get(&mut self, reply: Reply<u32>) {
        // Of another type than is answered.
        reply.send("seven");
    }
}

/// Forwards to one that answers otherwise.
struct C(ActorRef<B>);

#[actor]
impl C {
    #[message]
    fn pass(&mut self, reply: Reply<String>) {
        reply.forward(self.0, Get);
    }
}

fn main() {}
