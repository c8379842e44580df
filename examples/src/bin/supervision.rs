//! Asks and supervision: a worker that fails in 3 ways, and the receiver of each failure.
//!
//! - A *returned* error goes to the asker. The worker goes on with the state it has.
//! - A *panic* goes to the supervisor, which gives the worker a new state under the same address, a limited number of times.
//! - An answer that does not come in time is an error of the ask, which says how far the request had come.
//!
//! ```text
//! cargo run -p playhouse-examples --bin supervision
//! ```
//!
//! The panics also appear on standard error. The message is Rust's own, which Playhouse leaves as it is.

use std::fmt;
use std::future::pending;
use std::sync::mpsc::Sender;
use std::time::Duration;

use playhouse::prelude::*;

/// Bakes, until the oven door falls off: at each third order.
#[derive(Default)]
struct Baker {
    orders: u32,
    baked: u32,
}

#[derive(Debug)]
struct NothingToBake;

impl fmt::Display for NothingToBake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing to bake")
    }
}

impl std::error::Error for NothingToBake {}

#[actor]
impl Baker {
    /// Bakes `loaves`. Answers with the number of loaves that this baker has baked.
    #[message]
    fn bake(&mut self, loaves: u32) -> Result<u32, NothingToBake> {
        if loaves == 0 {
            return Err(NothingToBake);
        }
        self.orders += 1;
        assert!(self.orders < 3, "the oven door fell off");
        self.baked += loaves;
        Ok(self.baked)
    }

    /// Waits for a letter that never comes. Only this actor waits: its worker goes on with others.
    #[message]
    async fn nap(&mut self) {
        pending().await
    }
}

/// Sends `news` the reason why the actor that it watches has ended.
struct Watchman {
    news: Sender<StopReason>,
}

#[actor]
impl Watchman {
    #[message]
    fn guard(&mut self, whom: ActorRef<Supervisor>, ctx: &mut Context<Self>) {
        ctx.watch(whom);
    }

    #[terminated]
    fn tell_the_news(&mut self, terminated: Terminated) {
        let _nobody_listens = self.news.send(terminated.reason);
    }
}

fn main() -> playhouse::Result<()> {
    let second = Duration::from_secs(1);
    let system = System::start()?;

    // Two restarts in a minute are accepted. At the third crash the supervisor gives up.
    let policy = SupervisionPolicy::one_for_one().max_restarts(2, 60 * second);
    let supervisor = system.spawn(Supervisor::new(policy));
    let (news, listen) = std::sync::mpsc::channel();
    system.spawn(Watchman { news }).ask(Guard(supervisor)).wait()?;

    // The outer error is the ask's, the inner one the spawn's. The address stays valid over all restarts.
    let baker = supervisor.ask(ChildSpec::new("baker", Baker::default)).wait()??;
    for loaves in [2, 0, 3, 4, 5, 6, 7, 8, 9, 10, 11] {
        match baker.ask(Bake(loaves)).within(10 * second).wait() {
            Ok(Ok(baked)) => println!("order of {loaves}: done, {baked} by this baker"),
            Ok(Err(refusal)) => println!("order of {loaves}: refused: {refusal}"),
            Err(AskError::Panicked) => println!("order of {loaves}: the baker crashed"),
            Err(AskError::Stopped) => println!("order of {loaves}: nobody bakes here any more"),
            Err(other) => return Err(other.into()),
        }
    }
    match listen.recv()? {
        StopReason::Failed(error) => println!("the supervisor ended: {error}"),
        other => println!("the supervisor ended: {other:?}"),
    }

    // An ask always ends. This ask's request waits behind a handler that does not return.
    let sleeper = system.spawn(Baker::default());
    sleeper.tell(Nap);
    let answer = sleeper.ask(Bake(1)).within(Duration::from_millis(20)).wait();
    println!("the sleeping baker: {}", answer.expect_err("nobody bakes"));
    sleeper.kill(); // also drops the handler that waits

    system.shutdown()?;
    Ok(())
}
