//! Messages, answers and an error: a port of `examples/basic.rs` of kameo 0.17.2 (MIT or Apache-2.0).
//!
//! - Both programs print the same lines on stdout. Playhouse reports the crash on stderr.
//! - An error that a handler of kameo returns after `tell` stops its actor. Playhouse drops such an error, and the port calls `ctx.fail`.
//!
//! ```text
//! cargo run -p playhouse-examples --bin ported_basic
//! ```

use playhouse::prelude::*;

#[derive(Default)]
struct MyActor {
    count: i64,
}

#[actor]
impl MyActor {
    #[message(named)]
    fn inc(&mut self, amount: u32) -> i64 {
        println!("Incrementing count by {amount}");
        self.count += i64::from(amount);
        self.count
    }

    #[message]
    fn force_err(&mut self, ctx: &mut Context<Self>) {
        ctx.fail("3");
    }
}

#[playhouse::main]
fn main(system: &System) -> playhouse::Result<()> {
    let my_actor = system.spawn(MyActor::default());

    let count = my_actor.ask(Inc { amount: 3 }).wait()?;
    println!("Count is {count}");

    my_actor.tell(Inc { amount: 50 });

    let count = my_actor.ask(Inc { amount: 2 }).wait()?;
    println!("Count is {count}");

    my_actor.tell(ForceErr);
    assert!(my_actor.ask(Inc { amount: 2 }).wait().is_err());
    Ok(())
}
