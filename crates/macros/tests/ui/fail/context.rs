#![allow(unused)]
use playhouse::prelude::*;

struct Counter;
struct Other;

#[actor]
impl Counter {
    #[message]
    fn twice(&mut self, ctx: &mut Context<Self>, by: u64, again: &mut Context<Self>) {}

    #[message]
    fn unnamed(&mut self, ctx: &mut Context) {}

    #[message]
    fn foreign(&mut self, ctx: &mut Context<Other>) {}

    #[message]
    fn moved(&mut self, ctx: Context<Self>) {}
}

fn main() {}
