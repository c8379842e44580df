//! A topic that two theaters share: what is published in one reaches who has subscribed in the other.
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
#[serde(crate = "playhouse::serde")] // not where serde is in your Cargo.toml
struct Degrees(i32);

// The name is what both programs call it by, where they are two.
playhouse::remote_topic!(Degrees = "example.Degrees");

/// Passes on what it reads.
struct Reader {
    name: &'static str,
    out: Sender<(&'static str, i32)>,
}

impl Actor for Reader {}

impl Handler<Degrees> for Reader {
    fn handle(&mut self, Degrees(degrees): Degrees, _: &mut Context<Self>) {
        // Nobody may be listening any more.
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
    // Goes to the north first, and comes back to who has subscribed here.
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
