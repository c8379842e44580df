//! A display that gets the temperatures of all rooms: a port of `examples/message_queue.rs` of kameo 0.17.2 (MIT or
//! Apache-2.0).
//!
//! - Both programs print the same line.
//! - kameo has exchanges, queues and bindings, as in AMQP. The port needs one `Topic` and one pattern.
//! - kameo's `main` stops each actor and awaits its end. The port returns from `main`: the end of the system handles queued messages.
//!
//! ```text
//! cargo run -p playhouse-examples --bin ported_message_queue
//! ```

use playhouse::prelude::*;
use playhouse::topic::{Topic, WhenOverloaded};

#[derive(Clone, Message)]
struct TemperatureUpdate(f32);

struct TemperatureDisplay;

impl Actor for TemperatureDisplay {}

impl Handler<TemperatureUpdate> for TemperatureDisplay {
    fn handle(&mut self, TemperatureUpdate(degrees): TemperatureUpdate, _: &mut Context<Self>) {
        println!("Temperature updated: {degrees}");
    }
}

#[playhouse::main]
fn main(system: &System) -> playhouse::Result<()> {
    let sensors = Topic::new(system);
    let display = system.spawn(TemperatureDisplay);
    sensors.subscribe_to("temperature.*", display, WhenOverloaded::DropNewest)?;
    sensors.publish_to("temperature.kitchen", TemperatureUpdate(22.5))?;
    Ok(())
}
