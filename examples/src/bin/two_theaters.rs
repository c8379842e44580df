//! Two theaters: actors of one process use those of another one.
//!
//! The host keeps the stock of a warehouse. A guest finds the warehouse by its name and asks it. Then the guest starts
//! a clerk at the host, because a clerk with many questions should be near the warehouse.
//!
//! ```text
//! cargo run -p playhouse-examples --bin two_theaters                          both in one process
//! cargo run -p playhouse-examples --bin two_theaters -- host 127.0.0.1:7000   until Ctrl-C
//! cargo run -p playhouse-examples --bin two_theaters -- guest 127.0.0.1:7000
//! ```

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::mpsc;

use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};

const USAGE: &str = "\
usage: two_theaters              both roles in one process
       two_theaters host ADDR    hosts a warehouse until Ctrl-C; port 0 is any port that is free
       two_theaters guest ADDR   visits the warehouse of the host at ADDR
ADDR is host:port";

/// The name that the warehouse is published under.
const NAME: &str = "warehouse";

/// Lives at the host. Guests send to it (`remote`), and cannot start another one.
struct Warehouse {
    stock: BTreeMap<String, u64>,
}

// The name on the wire. Without a name it is the type's path, and a program with another path would not know the type.
#[actor(remote = "example.Warehouse")]
impl Warehouse {
    #[message]
    fn goods(&self) -> Vec<String> {
        self.stock.keys().cloned().collect()
    }

    #[message]
    fn pieces(&self, item: String) -> u64 {
        self.stock.get(&item).copied().unwrap_or(0)
    }
}

/// A guest starts it at the host (`spawn`). Its state is sent to the host, with the reference in it.
#[derive(Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")] // not needed if your Cargo.toml has serde
struct Clerk {
    warehouse: ActorRef<Warehouse>,
    questions: u64,
}

#[actor(remote = "example.Clerk", spawn)]
impl Clerk {
    /// Counts all pieces in the warehouse. Each of these asks stays in the host's process.
    #[message]
    async fn count(&mut self) -> Result<u64, AskError> {
        let mut pieces = 0;
        for item in self.warehouse.ask(Goods).await? {
            pieces += self.warehouse.ask(Pieces(item)).await?;
            self.questions += 1;
        }
        Ok(pieces)
    }

    #[message]
    fn questions(&self) -> u64 {
        self.questions
    }
}

/// Starts a theater that hosts a warehouse at `address`.
fn open(address: &str) -> playhouse::Result<Theater> {
    // Only the loopback is allowed without `.tls(..)`, which encrypts the links.
    let theater = Theater::builder().cluster("two_theaters").listen(address).start()?;
    let stock = [("apples", 12), ("pears", 7), ("plums", 50)].map(|(item, pieces)| (item.to_owned(), pieces));
    let warehouse = theater.system().spawn(Warehouse { stock: stock.into() });
    theater.publish(NAME, warehouse)?;
    Ok(theater)
}

/// Hosts a warehouse until Ctrl-C.
fn host(address: &str) -> playhouse::Result<()> {
    let (interrupt, interrupted) = mpsc::channel();
    ctrlc::set_handler(move || {
        let _closing_already = interrupt.send(());
    })?;
    let theater = open(address)?;
    println!("listening at {}", theater.address().expect("it listens"));
    interrupted.recv()?;
    theater.shutdown()?; // the link tells the guests
    println!("closed");
    Ok(())
}

/// Visits the warehouse at `address`.
fn guest(address: &str) -> playhouse::Result<()> {
    let theater = Theater::builder().cluster("two_theaters").start()?; // it listens nowhere, because no theater connects to it
    let visited = visit(&theater, address);
    theater.shutdown()?;
    visited
}

fn visit(theater: &Theater, address: &str) -> playhouse::Result<()> {
    let there = theater.connect(address)?;
    let warehouse = theater.find::<Warehouse>(&format!("playhouse://{address}/{NAME}")).wait()?;
    let apples = warehouse.ask(Pieces("apples".to_owned())).wait()?;
    println!("the warehouse has {apples} apples");

    let clerk = theater.spawn_at(&there, &Clerk { warehouse, questions: 0 })?;
    let pieces = clerk.ask(Count).wait()??; // outer error: this ask's; inner error: that of the clerk's asks
    let questions = clerk.ask(Questions).wait()?;
    println!("a clerk who works there has counted {pieces} pieces with {questions} questions");
    clerk.stop();
    Ok(())
}

/// Plays both roles in one process.
fn both() -> playhouse::Result<()> {
    let theater = open("127.0.0.1:0")?;
    guest(&theater.address().expect("it listens").to_string())?;
    theater.shutdown()?;
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match *words {
        [] => both(),
        ["host" | "guest", address] if !is_address(address) => return refuse(&format!("{address}: not host:port")),
        ["host", address] => host(address),
        ["guest", address] => guest(address),
        ["host" | "guest"] => return refuse("no address was given"),
        ["host" | "guest", _, word, ..] => return refuse(&format!("{word}: one address is enough")),
        [role, ..] => return refuse(&format!("{role}: no such role")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether `text` looks like `host:port`. The connection finds out whether such a host exists.
fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

fn refuse(error: &str) -> ExitCode {
    eprintln!("error: {error}\n{USAGE}");
    ExitCode::from(2)
}
