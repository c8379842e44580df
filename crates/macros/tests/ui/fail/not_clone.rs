#![allow(unused)]
use playhouse::prelude::*;
use std::time::Duration;

struct Counter;

#[actor]
impl Counter {
    #[message]
    fn start(&mut self, ctx: &mut Context<Self>) {
        ctx.send_every(Duration::from_secs(1), Tick);
        ctx.send_with_fixed_delay(Duration::from_secs(1), Tick);
    }

    #[message]
    fn tick(&mut self) {}
}

fn main() {}
