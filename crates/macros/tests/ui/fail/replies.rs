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
        // The answer has another type.
        reply.send("seven");
    }
}

/// An actor that forwards to an actor with another answer.
struct C(ActorRef<B>);

#[actor]
impl C {
    #[message]
    fn pass(&mut self, reply: Reply<String>) {
        reply.forward(self.0, Get);
    }
}

fn main() {}
