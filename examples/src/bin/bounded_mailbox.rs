//! Bounded mailboxes: a gauge sends faster than others read. Each reader has chosen the fate of the messages that do
//! not fit.
//!
//! ```text
//! cargo run -p playhouse-examples --bin bounded_mailbox
//! ```

use playhouse::prelude::*;
use playhouse::stdout::{Print, Stdout};

/// Prints the levels that reach it.
struct Reader {
    name: &'static str,
    out: ActorRef<Stdout>,
}

#[actor]
impl Reader {
    #[message]
    fn level(&mut self, meters: u32) {
        self.out.tell(Print::line(format!("{} reads {meters}", self.name)));
    }
}

/// Measures without waiting for a reader.
struct Gauge {
    archive: ActorRef<Reader>,
    display: ActorRef<Reader>,
    out: ActorRef<Stdout>,
}

#[actor]
impl Gauge {
    #[message]
    fn measure(&mut self, times: u32) {
        for meters in 1..=times {
            self.display.tell(Level(meters));
            if let Err(full) = self.archive.try_tell(Level(meters)) {
                self.out.tell(Print::line(format!("the archive has no room for {}", full.into_message().0)));
            }
        }
    }
}

fn main() -> playhouse::Result<()> {
    // One worker: no reader runs while the gauge measures.
    let system = System::builder().workers(1).start()?;
    let out = system.spawn(Stdout::new());
    let archive = SpawnOptions::new().mailbox(Mailbox::bounded(3));
    let archive = system.spawn_with(archive, Reader { name: "the archive", out });
    let display = SpawnOptions::new().mailbox(Mailbox::bounded(1).on_full(OnFull::DropOldest));
    let display = system.spawn_with(display, Reader { name: "the display", out });

    system.spawn(Gauge { archive, display, out }).tell(Measure(5));
    system.run_until_idle();
    let stats = system.stats().total;
    out.ask(Print::line(format!("dropped: {}, rejected: {}", stats.dropped, stats.rejected))).wait()?;
    system.shutdown()?;
    Ok(())
}
