//! An actor that is found by its name: a port of `examples/registry.rs` of kameo 0.17.2 (MIT or Apache-2.0).
//!
//! - Both programs print the same line.
//! - kameo has one registry in each process. A `Receptionist` is an actor that `main` starts.
//!
//! ```text
//! cargo run -p playhouse-examples --bin ported_registry
//! ```

use playhouse::prelude::*;
use playhouse::receptionist::{Claim, Find, Receptionist};

struct MyActor;

impl Actor for MyActor {}

#[playhouse::main]
fn main(system: &System) -> playhouse::Result<()> {
    let receptionist = system.spawn(Receptionist::new());
    let my_actor = system.spawn(MyActor);
    let claimed = receptionist.ask(Claim::new("my awesome actor", my_actor)).wait()?;
    claimed.map_err(|owner| format!("{owner} has this name"))?;

    let found = receptionist.ask(Find::<MyActor>::new("my awesome actor")).wait()?;
    assert_eq!(found, [my_actor]);
    println!("Registered and looked up actor");
    Ok(())
}
