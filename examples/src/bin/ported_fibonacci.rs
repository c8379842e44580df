//! Computation on several threads: a port of `examples/fibonacci.rs` of actix 0.13.5 (MIT or Apache-2.0).
//!
//! - Both programs print the same lines.
//! - actix starts 3 threads for 3 copies of the actor, because its other actors share one thread. The port starts a `Pool`, and its members are
//!   spread over the workers.
//! - The copies of actix take messages from one queue. Each member of a `Pool` has a mailbox, and `Routing::LeastLoaded` chooses the member.
//!
//! ```text
//! cargo run -p playhouse-examples --bin ported_fibonacci
//! ```

use playhouse::prelude::*;
use playhouse::router::{Pool, Routing};

pub(crate) struct Calculator;

#[actor]
impl Calculator {
    #[message]
    pub(crate) fn fibonacci(&mut self, n: u32) -> Result<u64, ()> {
        if n == 0 {
            Err(())
        } else if n == 1 {
            Ok(1)
        } else {
            let mut i = 0;
            let mut sum = 0;
            let mut last = 0;
            let mut curr = 1;
            while i < n - 1 {
                sum = last + curr;
                last = curr;
                curr = sum;
                i += 1;
            }
            Ok(sum)
        }
    }
}

#[playhouse::main]
fn main(system: &System) -> playhouse::Result<()> {
    let pool = Pool::start(system, Routing::LeastLoaded, 3, || Calculator);
    for n in 5..10 {
        println!("{:?}", pool.pick()?.ask(Fibonacci(n)).wait()?);
    }
    Ok(())
}
