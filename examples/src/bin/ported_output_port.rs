//! An actor that publishes to ten others: a port of `examples/output_port.rs` of ractor 0.16.5 (MIT).
//!
//! - Both programs print the same lines but for the identities. The order depends on the threads.
//! - A subscription of ractor has a function that makes the message for the subscriber. The subscribers of a `Topic` handle the published message.
//! - ractor's program pauses after each message. The port does not, because nothing depends on the pauses.
//! - ractor's `main` stops each actor and awaits its end. The port returns from `main`: the end of the system handles queued messages.
//!
//! ```text
//! cargo run -p playhouse-examples --bin ported_output_port
//! ```

use playhouse::prelude::*;
use playhouse::topic::{Topic, WhenOverloaded};

#[derive(Clone, Message)]
struct Output(String);

struct Publisher {
    port: Topic<Output>,
}

#[actor]
impl Publisher {
    #[message]
    fn publish(&mut self, text: String) {
        println!("Publishing {text}");
        self.port.publish(Output(format!("Published: {text}")));
    }
}

struct Subscriber;

impl Actor for Subscriber {}

impl Handler<Output> for Subscriber {
    fn handle(&mut self, Output(text): Output, ctx: &mut Context<Self>) {
        println!("Subscriber ({}) received published message '{text}'", ctx.this());
    }
}

#[playhouse::main]
fn main(system: &System) {
    let port = Topic::new(system);
    let publisher = system.spawn(Publisher { port: port.clone() });
    for _ in 0..10 {
        port.subscribe(system.spawn(Subscriber), WhenOverloaded::SlowPublisher);
    }
    for i in 0..3 {
        publisher.tell(Publish(format!("Something {i}")));
    }
}
