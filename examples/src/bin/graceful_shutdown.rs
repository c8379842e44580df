//! Coordinated shutdown: a program that works until Ctrl-C or SIGTERM, and then ends in order.
//!
//! ```text
//! cargo run -p playhouse-examples --bin graceful_shutdown
//! ```

use std::sync::mpsc::channel;
use std::time::Duration;

use playhouse::prelude::*;
use playhouse::shutdown::{CoordinatedShutdown, Signal};

/// Bakes the ordered loaves.
#[derive(Default)]
struct Bakery {
    baked: u32,
}

#[actor]
impl Bakery {
    #[message]
    fn order(&mut self) {
        self.baked += 1;
    }

    #[stopped]
    fn close(&mut self) {
        println!("the bakery has baked {} loaves", self.baked);
    }
}

/// Cannot be stopped, because its handler never returns.
struct Stoker;

#[actor]
impl Stoker {
    #[message]
    async fn fire(&mut self) {
        std::future::pending().await
    }
}

fn main() -> playhouse::Result<()> {
    let system = System::start()?;
    let (bakery, stoker) = (system.spawn(Bakery::default()), system.spawn(Stoker));
    stoker.tell(Fire);

    let shutdown = CoordinatedShutdown::new(&system);
    let doors = shutdown.phase("close the doors", Duration::from_secs(5));
    let work = shutdown.phase("finish the work", Duration::from_secs(1));
    let end = shutdown.phase("say goodbye", Duration::from_secs(5));

    let close = move || {
        println!("the doors are closed, a hundred orders are left");
        (0..100).for_each(|_| bakery.tell(Order));
        Ok(())
    };
    doors.task("front door", close)?;
    work.drain("bakery", bakery)?;
    work.drain("stoker", stoker)?;
    let (said, goodbye) = channel();
    let say = move || Ok(said.send("goodbye")?);
    end.task("goodbye", say)?;

    let signal = Signal::catch()?;
    println!("open, until a signal comes");
    signal.wait();
    let report = shutdown.run();
    println!("{}", goodbye.recv()?);
    println!("{report}");
    system.shutdown()?;
    Ok(())
}
