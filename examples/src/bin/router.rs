//! Routers: a pool of workers that grows, replaces crashed workers, and sends all requests of a customer to one worker.
//!
//! ```text
//! cargo run -p playhouse-examples --bin router
//! ```

use std::collections::HashSet;

use playhouse::prelude::*;
use playhouse::router::{Pool, Routing};

/// Serves customers.
#[derive(Default)]
struct Clerk {
    served: u32,
}

#[actor]
impl Clerk {
    #[message]
    fn serve(&mut self, _customer: u32) -> u32 {
        self.served += 1;
        self.served
    }

    #[message(derive(Clone))]
    fn served(&self) -> u32 {
        self.served
    }

    #[message]
    fn go_home(&mut self, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

/// Returns the number of customers that all workers have served.
fn total(clerks: &Pool<Clerk>) -> playhouse::Result<u32> {
    let served = clerks.ask_all(Served)?.all().wait();
    Ok(served.into_iter().filter_map(|(_, served)| served.ok()).sum())
}

fn main() -> playhouse::Result<()> {
    let system = System::start()?;
    let clerks = Pool::start(&system, Routing::RoundRobin, 3, Clerk::default);
    for customer in 0..9 {
        clerks.pick()?.tell(Serve(customer));
    }
    println!("{} customers were served by {} clerks", total(&clerks)?, clerks.members().len());

    let (first, again) = (*clerks.pick_for("Ada")?, *clerks.pick_for("Ada")?);
    println!("Ada is served by the same clerk: {}", if first == again { "yes" } else { "no" });

    clerks.resize(5);
    let places: HashSet<_> = (0..5).map(|_| clerks.pick().map(|clerk| *clerk)).collect::<Result<_, _>>()?;
    println!("{} clerks take turns now", places.len());

    clerks.pick()?.tell(GoHome);
    system.run_until_idle();
    println!("one went home; there are {} clerks again", clerks.members().len());

    let fastest = clerks.ask_all(Served)?.first(1).wait()?;
    println!("{} clerk answered first", fastest.len());

    clerks.resize(0);
    println!("{}", clerks.pick().expect_err("there is none"));
    system.shutdown()?;
    Ok(())
}
