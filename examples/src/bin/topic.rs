//! Topics: the publisher does not know the readers.
//!
//! ```text
//! cargo run -p playhouse-examples --bin topic
//! ```

use playhouse::prelude::*;
use playhouse::topic::{Topic, WhenOverloaded};

/// A measurement of some place.
#[derive(Message, Clone)]
struct Degrees(i32);

/// Knows the coldest and the warmest measurement.
#[derive(Default)]
struct Almanac {
    seen: Vec<i32>,
}

#[actor]
impl Almanac {
    #[message]
    fn range(&self) -> String {
        match (self.seen.iter().min(), self.seen.iter().max()) {
            (Some(coldest), Some(warmest)) => format!("{} measurements, {coldest} to {warmest}", self.seen.len()),
            _ => "no measurements".to_owned(),
        }
    }
}

impl Handler<Degrees> for Almanac {
    fn handle(&mut self, Degrees(degrees): Degrees, _: &mut Context<Self>) {
        self.seen.push(degrees);
    }
}

fn main() -> playhouse::Result<()> {
    let system = System::start()?;
    let weather = Topic::<Degrees>::new(&system);
    let almanac = || system.spawn(Almanac::default());
    let (all, north, sea) = (almanac(), almanac(), almanac());
    // The first two subscriptions miss nothing. The third one loses the newest measurement if too many come.
    weather.subscribe(all, WhenOverloaded::SlowPublisher);
    let in_the_north = weather.subscribe_to("weather.north.>", north, WhenOverloaded::SlowPublisher)?;
    weather.subscribe_to("weather.*.sea", sea, WhenOverloaded::DropNewest)?;

    let measured = [
        ("weather.north.sea", 4),
        ("weather.north.hills.top", -7),
        ("weather.south.sea", 19),
        ("weather.south.town", 23),
    ];
    for (place, degrees) in measured {
        let published = weather.publish_to(place, Degrees(degrees))?;
        println!("{place}: {degrees} degrees, for {} readers", published.sent);
    }
    for (name, reader) in [("all", all), ("the north", north), ("the sea", sea)] {
        println!("{name}: {}", reader.ask(Range).wait()?);
    }

    north.stop();
    system.run_until_idle();
    println!(
        "the reader in the north has ended, and its subscription {}",
        if in_the_north.is_active() { "not" } else { "too" }
    );
    println!("{}", weather.publish_to("weather..sea", Degrees(0)).expect_err("that is no subject"));
    system.shutdown()?;
    Ok(())
}
