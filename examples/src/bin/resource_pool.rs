//! A resource pool: long work on threads of its own, within bounds, and cancelled with the actor that requested it.
//!
//! ```text
//! cargo run -p playhouse-examples --bin resource_pool
//! ```

use std::sync::mpsc::{Sender, channel};

use playhouse::prelude::*;
use playhouse::resource::{CancelToken, JobError, ResourcePool};

/// Looks for prime numbers.
struct Mathematician {
    pool: ResourcePool,
}

/// Counts the primes below `n`, by trying all divisors.
fn primes_below(n: u32) -> usize {
    (2..n).filter(|candidate| (2..*candidate).take_while(|d| d * d <= *candidate).all(|d| candidate % d != 0)).count()
}

#[actor]
impl Mathematician {
    #[message]
    async fn count_primes(&mut self, below: u32) -> Result<usize, JobError> {
        self.pool.run(move |_| primes_below(below)).await
    }

    /// Looks for the last prime, until it is told to stop.
    #[message]
    fn look_for_the_last(&mut self, begun: Sender<()>, over: Sender<&'static str>, ctx: &mut Context<Self>) {
        let work = move |token: &CancelToken| {
            let _somebody_waits = begun.send(());
            while !token.is_cancelled() {
                std::hint::spin_loop();
            }
            let _somebody_waits = over.send("the search was cancelled");
        };
        if let Ok(job) = self.pool.try_run(work) {
            job.then(ctx, |_, _, _| ());
        }
    }
}

fn main() -> playhouse::Result<()> {
    // One worker, which the pool's work never holds.
    let system = System::builder().workers(1).start()?;
    let pool = ResourcePool::start(&system, 1, 1)?;
    let euclid = system.spawn(Mathematician { pool: pool.clone() });
    println!("there are {} primes below 10000", euclid.ask(CountPrimes(10_000)).wait()??);

    let ((begun, wait), (over, ended)) = (channel(), channel());
    euclid.tell(LookForTheLast(begun, over));
    wait.recv()?;
    let queued = pool.try_run(|_| 1)?;
    match pool.try_run(|_| 2) {
        Ok(_) => println!("there was room"),
        Err(error) => println!("{error}"),
    }
    euclid.stop();
    println!("{}", ended.recv()?);
    println!("what waited behind it is done: {}", queued.wait()?);

    pool.stop_within(std::time::Duration::from_secs(5))?;
    println!("{}", pool.run(|_| 3).wait().expect_err("it was stopped"));
    system.shutdown()?;
    Ok(())
}
