//! The receptionist: workers come and go, and their user gets each change.
//!
//! ```text
//! cargo run -p playhouse-examples --bin receptionist
//! ```

use playhouse::prelude::*;
use playhouse::receptionist::{Find, Listing, Receptionist, Register, Subscribe};

/// Does some work.
struct Painter;

#[actor]
impl Painter {
    #[message]
    fn paint(&mut self, wall: &'static str) -> String {
        format!("the {wall} wall is painted")
    }
}

/// Gives work to the painters of the current listing.
#[derive(Default)]
struct Foreman {
    painters: Vec<ActorRef<Painter>>,
    listings: u32,
}

#[actor]
impl Foreman {
    #[message]
    async fn paint_walls(&mut self) -> Vec<String> {
        let mut done = Vec::new();
        for (painter, wall) in self.painters.iter().zip(["north", "south", "east", "west"]) {
            done.push(painter.ask(Paint(wall)).await.unwrap_or_else(|error| format!("the {wall} wall: {error}")));
        }
        done
    }

    #[message]
    fn listings(&self) -> u32 {
        self.listings
    }
}

impl Handler<Listing<Painter>> for Foreman {
    fn handle(&mut self, listing: Listing<Painter>, _: &mut Context<Self>) {
        self.painters = listing.actors;
        self.listings += 1;
    }
}

fn main() -> playhouse::Result<()> {
    let system = System::start()?;
    let receptionist = system.spawn(Receptionist::new());
    let foreman = system.spawn(Foreman::default());
    receptionist.tell(Subscribe::<Painter>::new("site", foreman));

    let painters = [0, 1, 2].map(|_| system.spawn(Painter));
    for painter in painters {
        receptionist.tell(Register::new("site", painter));
    }
    system.run_until_idle();
    println!("{}", foreman.ask(PaintWalls).wait()?.join("\n"));

    painters[1].stop();
    system.run_until_idle();
    println!("one painter went; there are {}", receptionist.ask(Find::<Painter>::new("site")).wait()?.len());
    println!("{}", foreman.ask(PaintWalls).wait()?.join("\n"));
    println!("the foreman has had {} listings", foreman.ask(Listings).wait()?);
    system.shutdown()?;
    Ok(())
}
