//! A group: two players move to another theater in the middle of their match, and back.
//!
//! ```text
//! cargo run -p playhouse-examples --bin groups
//! ```

use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};

/// Hits the ball back to the other one.
#[derive(Default, Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")] // not needed if your Cargo.toml has serde
struct Player {
    other: Option<ActorRef<Player>>,
    hits: u64,
    out_of_turn: u64,
    trips: u64,
}

#[actor(remote = "example.Player", mobile)]
impl Player {
    #[message]
    fn meet(&mut self, other: ActorRef<Player>) {
        self.other = Some(other);
    }

    /// The ball comes, for the `nth` time of `rally`.
    #[message]
    fn hit(&mut self, nth: u64, rally: u64) {
        self.out_of_turn += u64::from(nth / 2 != self.hits);
        self.hits += 1;
        if let Some(other) = self.other.filter(|_| nth + 1 < rally) {
            other.tell(Hit(nth + 1, rally));
        }
    }

    /// Starts another actor in the group, in the group's current theater.
    #[message]
    fn fetch_judge(&mut self, ctx: &mut Context<Self>) -> ActorRef<Judge> {
        let beside = SpawnOptions::new().placement(Placement::Group(ctx.group()));
        ctx.spawn_with(beside, Judge::default())
    }

    #[message]
    fn score(&self) -> (u64, u64, u64) {
        (self.hits, self.out_of_turn, self.trips)
    }

    #[migrated]
    fn look_around(&mut self) {
        self.trips += 1;
    }
}

/// Migrates with the players.
#[derive(Default, Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Judge {
    trips: u64,
}

#[actor(remote = "example.Judge", mobile)]
impl Judge {
    #[message]
    fn trips(&self) -> u64 {
        self.trips
    }

    #[migrated]
    fn look_around(&mut self) {
        self.trips += 1;
    }
}

/// Is not mobile.
struct Table;

#[actor]
impl Table {}

fn main() -> playhouse::Result<()> {
    const RALLY: u64 = 20_000;
    let theater = || Theater::builder().cluster("groups").listen("127.0.0.1:0").start();
    let (here, there) = (theater()?, theater()?);
    let to_there = here.connect(there.address().expect("it listens"))?;
    let to_here = there.connect(here.address().expect("it listens"))?;

    // Actors that are started in the group share a stage with the others, in each theater that the group visits.
    let group = Group::new(here.system());
    let options = |name: &str| SpawnOptions::new().name(name).placement(Placement::Group(group));
    let players = ["Ada", "Ben"].map(|name| here.system().spawn_with(options(name), Player::default()));
    let [ada, ben] = players;
    ada.tell(Meet(ben));
    ben.tell(Meet(ada));

    // All members migrate, or none does.
    let table = here.system().spawn_with(options("green"), Table);
    let error = here.migrate_group(group, &to_there).wait().unwrap_err();
    println!("{error}");
    table.stop();
    here.system().run_until_idle();

    ada.tell(Hit(0, RALLY));
    here.migrate_group(group, &to_there).wait()?;
    let judge = ada.ask(FetchJudge).wait()?;
    there.migrate_group(group, &to_here).wait()?;
    while ben.ask(Score).wait()?.0 < RALLY / 2 {}
    for (name, player) in ["Ada", "Ben"].iter().zip(players) {
        let (hits, out_of_turn, trips) = player.ask(Score).wait()?;
        println!("{name}: {hits} hits, {out_of_turn} out of turn, {trips} trips");
    }
    println!("the judge: {} trip", judge.ask(Trips).wait()?);
    here.shutdown()?;
    there.shutdown()?;
    Ok(())
}
