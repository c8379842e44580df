//! Blocking work: the right place for it, and the effect in another place.
//!
//! A handler that reads a disk, asks a database or locks a mutex holds its thread. An actor with `Placement::Dedicated`
//! has a thread of its own, and no other actor notices. Any other actor holds a worker: after some 10 ms the runtime
//! notices, and the worker's other actors go on in a new thread. The actors of the same *stage* wait until the handler
//! returns.
//!
//! ```text
//! cargo run -p playhouse-examples --bin blocking
//! ```

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use playhouse::prelude::*;

/// Does blocking work.
#[derive(Default)]
struct Disk {
    reads: u32,
}

#[actor]
impl Disk {
    /// Stands for a call that blocks: reports its begin, then waits until the other side of `done` is dropped.
    #[message]
    fn read(&mut self, begun: Sender<()>, done: Receiver<()>) {
        let _nobody_listens = begun.send(());
        let _dropped = done.recv();
        self.reads += 1;
    }

    #[message]
    fn reads(&self) -> u32 {
        self.reads
    }
}

/// Does work that does not block.
#[derive(Default)]
struct Clerk {
    questions: u32,
}

#[actor]
impl Clerk {
    #[message]
    fn question(&mut self) -> u32 {
        self.questions += 1;
        self.questions
    }
}

/// Makes `disk` block. Returns once it does, with a value whose drop ends the block.
fn block(disk: ActorRef<Disk>) -> playhouse::Result<Sender<()>> {
    let (begun, wait) = mpsc::channel();
    let (end, done) = mpsc::channel();
    disk.tell(Read(begun, done));
    wait.recv()?;
    Ok(end)
}

/// Asks `clerk` a hundred questions.
fn question(clerk: ActorRef<Clerk>) -> Result<u32, AskError> {
    for _ in 1..100 {
        clerk.ask(Question).wait()?;
    }
    clerk.ask(Question).wait()
}

fn main() -> playhouse::Result<()> {
    // One worker, which `disk` blocks, and two stages.
    let system = System::builder().workers(1).stages(2).start()?;
    let on = |placement| SpawnOptions::new().placement(placement);

    println!("on a thread of its own:");
    let disk = system.spawn_with(on(Placement::Dedicated), Disk::default());
    let clerk = system.spawn(Clerk::default());
    let end = block(disk)?;
    println!("  the disk blocks; the clerk has answered {} questions", question(clerk)?);
    drop(end);
    println!("  the disk has done {} read", disk.ask(Reads).wait()?);
    disk.stop(); // another dedicated actor may have its thread

    println!("on the only worker:");
    let disk = system.spawn_with(on(Placement::Stage(0)), Disk::default());
    let neighbour = system.spawn_with(on(Placement::Stage(0)), Clerk::default());
    let clerk = system.spawn_with(on(Placement::Stage(1)), Clerk::default());
    let end = block(disk)?;
    println!("  the disk blocks; the clerk of another stage has answered {} questions", question(clerk)?);
    let taken_over = system.stats().total.takeovers > 0;
    println!("  the worker's other stages went on in a new thread: {}", if taken_over { "yes" } else { "no" });
    let answer = neighbour.ask(Question).within(Duration::from_millis(50)).wait();
    println!("  the clerk of the same stage: {}", answer.expect_err("its stage is held"));
    drop(end);
    println!("  the disk has done {} read", disk.ask(Reads).wait()?);
    println!("  the clerk of the same stage has answered {} question", neighbour.ask(Question).wait()?);

    system.shutdown()?;
    Ok(())
}
