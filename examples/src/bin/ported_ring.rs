//! A message that goes round a ring of actors: a port of `examples/ring.rs` of actix 0.13.5 (MIT or Apache-2.0).
//!
//! - Both programs take the number of nodes and of rounds, and print the same lines.
//! - actix knows the address of an actor before its state, and makes the last node with the address of the first. In
//!   the port, a message closes the ring.
//! - The node that reaches the limit stops actix's system. The port ends when no message is left.
//!
//! ```text
//! cargo run --release -p playhouse-examples --bin ported_ring 100 10000
//! ```

use std::time::Instant;

use playhouse::prelude::*;

struct Node {
    id: usize,
    limit: usize,
    next: Option<Recipient<Payload>>,
}

#[actor]
impl Node {
    #[message]
    fn close(&mut self, next: Recipient<Payload>) {
        self.next = Some(next);
    }

    #[message]
    fn payload(&mut self, count: usize) {
        let (id, limit) = (self.id, self.limit);
        if count >= limit {
            println!("Actor {id} reached limit of {limit} (payload was {count})");
            return;
        }
        // A prime, because then another node reports each time.
        if count % 498_989 == 1 {
            let percent = 100.0 * count as f32 / limit as f32;
            println!("Actor {id} received message {count} of {limit} ({percent:.2}%)");
        }
        if let Some(next) = self.next {
            next.tell(Payload(count + 1));
        }
    }
}

#[playhouse::main]
fn main(system: &System) {
    let (nodes, rounds) = parse_args();
    let start = Instant::now();
    println!("Setting up {nodes} nodes");
    let limit = nodes * rounds;
    let last = system.spawn(Node { id: nodes, limit, next: None });
    let mut next = last.recipient();
    for id in 1..nodes {
        next = system.spawn(Node { id, limit, next: Some(next) }).recipient();
    }
    last.tell(Close(next));

    println!("Sending start message and waiting for termination after {limit} messages...");
    last.tell(Payload(1));
    system.run_until_idle();
    let elapsed = start.elapsed();
    let rate = limit as u128 * 1_000_000 / elapsed.as_micros();
    println!("Time taken: {}.{:06} seconds ({rate} msg/second)", elapsed.as_secs(), elapsed.subsec_micros());
}

fn parse_args() -> (usize, usize) {
    let arguments: Option<Vec<usize>> = std::env::args().skip(1).map(|argument| argument.parse().ok()).collect();
    match arguments.as_deref() {
        Some(&[nodes, rounds]) if nodes > 1 => (nodes, rounds),
        Some(&[_, _]) => exit("Number of nodes must be > 1"),
        _ => exit("Usage:\ncargo run --bin ported_ring -- <num-nodes> <num-times-message-around-ring>"),
    }
}

fn exit(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(1);
}
