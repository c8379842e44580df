//! A topic that two theaters share: a message published in one reaches the subscribers in the other.
//!
//! ```text
//! cargo run -p playhouse-examples --bin topic_abroad
//! ```

use std::sync::mpsc::{Sender, channel};

use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};
use playhouse::topic::{Topic, WhenOverloaded};

/// A measurement of some place.
#[derive(Message, Clone, Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")] // not needed if your Cargo.toml has serde
struct Degrees(i32);

// The name of the message in both programs, if the theaters are in two.
playhouse::remote_topic!(Degrees = "example.Degrees");

/// Passes on the messages that it reads.
struct Reader {
    name: &'static str,
    out: Sender<(&'static str, i32)>,
}

impl Actor for Reader {}

impl Handler<Degrees> for Reader {
    fn handle(&mut self, Degrees(degrees): Degrees, _: &mut Context<Self>) {
        // The receiver may have ended.
        let _ = self.out.send((self.name, degrees));
    }
}

fn main() -> playhouse::Result<()> {
    let north = Theater::builder().listen("127.0.0.1:0").start()?;
    let weather = Topic::<Degrees>::new(north.system());
    north.publish("weather", weather.endpoint())?;

    let south = Theater::builder().start()?;
    let name = format!("playhouse://{}/weather", north.address().expect("it listens"));
    let endpoint = south.find(&name).wait()?;
    let joined: Topic<Degrees> = Topic::join(south.system(), endpoint, WhenOverloaded::SlowPublisher).wait()?;

    let (out, read) = channel();
    let reader = |theater: &Theater, name| theater.system().spawn(Reader { name, out: out.clone() });
    weather.subscribe(reader(&north, "in the north, of all"), WhenOverloaded::SlowPublisher);
    joined.subscribe_to("weather.*.sea", reader(&south, "in the south, of the sea"), WhenOverloaded::SlowPublisher)?;

    let here = weather.publish_to("weather.north.sea", Degrees(4))?;
    println!("4 degrees in the north: {} reader here, {} theater elsewhere", here.sent, here.elsewhere);
    weather.publish_to("weather.north.hills", Degrees(-7))?;
    // The message goes to the north first, and comes back to the subscribers in the south.
    joined.publish_to("weather.south.sea", Degrees(19))?;

    let mut lines: Vec<_> = read.iter().take(5).collect();
    lines.sort_unstable();
    for (name, degrees) in lines {
        println!("{name}: {degrees}");
    }

    drop(weather);
    while !joined.is_disconnected() {
        std::thread::yield_now();
    }
    println!("the topic has ended in the north, and the south knows");
    south.shutdown()?;
    north.shutdown()?;
    Ok(())
}
