//! A pool of actors that are stopped and replaced: a port of `examples/pool.rs` of kameo 0.17.2 (MIT or Apache-2.0).
//!
//! - Both programs print five lines, stop all members of the pool, and print five lines of their successors.
//! - kameo dispatches to the member with the fewest messages; this pool takes its members in turn.
//! - kameo kills each member from within and sleeps until the pool has replaced it. In the port a member stops itself,
//!   and `run_until_idle` returns when the successors exist.
//!
//! ```text
//! cargo run -p playhouse-examples --bin ported_pool
//! ```

use playhouse::prelude::*;
use playhouse::router::{Pool, Routing};

struct MyActor;

#[actor]
impl MyActor {
    #[message]
    fn print_actor_id(&mut self, ctx: &mut Context<Self>) {
        println!("Hello from {}", ctx.this());
    }

    #[message(derive(Clone))]
    fn force_stop(&mut self, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

#[playhouse::main]
fn main(system: &System) -> playhouse::Result<()> {
    let pool = Pool::start(system, Routing::RoundRobin, 5, || MyActor);
    for _ in 0..5 {
        pool.pick()?.ask(PrintActorId).wait()?;
    }

    pool.ask_all(ForceStop)?.all().wait();
    system.run_until_idle();
    println!("Restarted all workers");

    for _ in 0..5 {
        pool.pick()?.ask(PrintActorId).wait()?;
    }
    Ok(())
}
