//! Subscribers that get a part of the messages: a port of `examples/pubsub_filter.rs` of kameo 0.17.2 (MIT or Apache-2.0).
//!
//! - The port prints four lines, as kameo's program does if it does not end before. The order depends on the threads.
//! - The subscribers of kameo filter by a function of the message. The publisher of the port names a subject, and the subscribers filter by subject.
//! - kameo's `main` returns when the messages are sent. The end of a system of Playhouse handles queued messages.
//!
//! ```text
//! cargo run -p playhouse-examples --bin ported_pubsub_filter
//! ```

use playhouse::prelude::*;
use playhouse::topic::{Topic, WhenOverloaded};

#[derive(Clone, Message)]
struct PrintActorId(&'static str);

struct ActorA;

impl Actor for ActorA {}

impl Handler<PrintActorId> for ActorA {
    fn handle(&mut self, PrintActorId(text): PrintActorId, ctx: &mut Context<Self>) {
        println!("ActorA: {} - {text}", ctx.this());
    }
}

struct ActorB;

impl Actor for ActorB {}

impl Handler<PrintActorId> for ActorB {
    fn handle(&mut self, PrintActorId(text): PrintActorId, ctx: &mut Context<Self>) {
        println!("ActorB: {} - {text}", ctx.this());
    }
}

struct ActorC;

impl Actor for ActorC {}

impl Handler<PrintActorId> for ActorC {
    fn handle(&mut self, PrintActorId(text): PrintActorId, ctx: &mut Context<Self>) {
        println!("ActorC: {} - {text}", ctx.this());
    }
}

#[playhouse::main]
fn main(system: &System) -> playhouse::Result<()> {
    let topic = Topic::new(system);
    topic.subscribe_to("TopicA", system.spawn(ActorA), WhenOverloaded::SlowPublisher)?;
    topic.subscribe_to("TopicB", system.spawn(ActorB), WhenOverloaded::SlowPublisher)?;
    topic.subscribe(system.spawn(ActorC), WhenOverloaded::SlowPublisher);

    topic.publish_to("TopicA", PrintActorId("TopicA: Some important note"))?;
    topic.publish_to("TopicB", PrintActorId("TopicB: Some very important note"))?;
    Ok(())
}
