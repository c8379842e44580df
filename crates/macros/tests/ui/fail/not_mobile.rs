#![allow(unused)]
use playhouse::prelude::*;

struct Counter;

// `mobile` is missing.
#[actor(remote)]
impl Counter {
    #[message]
    fn go(&mut self, ctx: &mut Context<Self>) {
        ctx.migrate_to("127.0.0.1:7000".parse().unwrap());
    }
}

fn main() {
    let theater = Theater::builder().start().unwrap();
    let other = theater.connect("127.0.0.1:7000").unwrap();
    let counter = theater.system().spawn(Counter);
    let migration = theater.migrate(counter, &other);
}
