// Errors in the bodies and types of methods point there, not at the macro.
#![allow(unused)]
use playhouse::prelude::*;

struct Counter;

#[actor]
impl Counter {
    #[message]
    fn wrong_type(&mut self) -> u64 {
        "five"
    }

    #[message]
    fn unknown_types(&mut self, by: NoSuchType) -> NoSuchReply {}

    #[message]
    async fn parallel(&self, other: ActorRef<Self>) -> u64 {
        let _ = self.missing;
        1
    }
}

fn main() {}
