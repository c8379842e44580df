//! A counter and asks with a deadline: a port of `examples/counter.rs` of ractor 0.16.5 (MIT).
//!
//! - Both programs print the same lines.
//! - ractor's asks have a deadline of 10 ms, which a busy machine may exceed. The deadline of the port is one second.
//! - ractor's `main` stops the actor and awaits its end. The port returns from `main`, and `#[playhouse::main]` ends the system.
//!
//! ```text
//! cargo run -p playhouse-examples --bin ported_counter
//! ```

use std::time::Duration;

use playhouse::prelude::*;

#[derive(Default)]
struct Counter {
    count: i64,
}

#[actor]
impl Counter {
    #[started]
    fn started(&mut self) {
        println!("Starting the counter actor");
    }

    #[message]
    fn increment(&mut self, how_much: i64) {
        println!("Counting actor handle message...");
        self.count += how_much;
    }

    #[message]
    fn decrement(&mut self, how_much: i64) {
        println!("Counting actor handle message...");
        self.count -= how_much;
    }

    #[message]
    fn retrieve(&self) -> i64 {
        println!("Counting actor handle message...");
        self.count
    }
}

#[playhouse::main]
fn main(system: &System) -> playhouse::Result<()> {
    let counter = system.spawn_with(SpawnOptions::new().name("test_name"), Counter::default());
    for _ in 0..4 {
        counter.tell(Increment(5));
        counter.tell(Increment(10));
        counter.tell(Decrement(5));
        let count = counter.ask(Retrieve).within(Duration::from_secs(1)).wait()?;
        println!("Count is: {count}");
    }
    Ok(())
}
