//! An order book that survives its actor and its process, and takes each order once.
//!
//! The given answers are part of the state: a change and its answer are saved together. A client sends an order again if no
//! answer came, or after a restart of the program. The clerk then answers the order and does not take it a second time.
//!
//! ```text
//! cargo run -p playhouse-examples --bin durable_state -- FOLDER
//! ```
//!
//! Start it again with the same folder.

use std::process::ExitCode;
use std::time::Duration;

use playhouse::asks::{AnswerCache, IdempotencyKey, Retry};
use playhouse::durable::{Durable, FileStore};
use playhouse::prelude::*;
use playhouse::resource::ResourcePool;
use playhouse::serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Book {
    orders: u32,
    pieces: u32,
    /// The numbers that the last orders got.
    numbers: AnswerCache<u32>,
}

/// Takes orders.
struct Clerk {
    pool: ResourcePool,
    store: FileStore,
    book: Option<Durable<Book>>,
}

#[actor]
impl Clerk {
    #[started]
    fn open_the_book(&mut self, ctx: &mut Context<Self>) {
        let empty = Book { orders: 0, pieces: 0, numbers: AnswerCache::with_room_for(10_000) };
        Durable::open(&self.pool, self.store.clone(), "book", empty).then(ctx, |this, book, ctx| match book {
            Ok(book) => this.book = Some(book),
            Err(error) => ctx.fail(error),
        });
    }

    /// Answers with the order's number in the book, once the order is on the disk.
    #[message(derive(Clone), when = "self.book.is_some()")]
    async fn order(&mut self, key: IdempotencyKey, pieces: u32, ctx: &mut Context<Self>) -> u32 {
        let book = self.book.as_ref().expect("the guard holds");
        let mut new = Book::clone(&book.get());
        if let Some(number) = new.numbers.get(key) {
            return number;
        }
        new.orders += 1;
        new.pieces += pieces;
        let number = new.orders;
        new.numbers.put(key, number);
        if let Err(error) = book.save(new).await {
            ctx.fail(error); // the retry asks again, and the next clerk looks into the book
        }
        number
    }

    #[message(when = "self.book.is_some()")]
    fn count(&self) -> (u32, u32) {
        let book = self.book.as_ref().expect("the guard holds").get();
        (book.orders, book.pieces)
    }

    #[message]
    fn spill_the_coffee(&mut self, ctx: &mut Context<Self>) {
        ctx.fail("coffee everywhere");
    }
}

fn run(folder: &str) -> playhouse::Result<()> {
    let system = System::start()?;
    let pool = ResourcePool::start(&system, 1, 100)?;
    let store = FileStore::open(folder)?;
    let supervisor = system.spawn(Supervisor::new(SupervisionPolicy::one_for_one()));
    let clerk = move || Clerk { pool: pool.clone(), store: store.clone(), book: None };
    let clerk = supervisor.ask(ChildSpec::new("clerk", clerk)).wait()??;

    let (orders, pieces) = clerk.ask(Count).wait()?;
    println!("the book has {orders} orders, {pieces} pieces");
    let retry = Retry::attempts(5).backoff(Duration::from_millis(10), Duration::from_secs(1)).after_panics();
    // The number on the customer's paper, and the number of pieces.
    for (paper, pieces) in [(4711, 3), (4712, 5), (4711, 3)] {
        clerk.tell(SpillTheCoffee); // queued messages are kept, and the next clerk handles them
        let number = retry.ask(clerk, Order(IdempotencyKey::from(paper), pieces)).wait()?;
        println!("paper {paper} is order {number}");
    }
    let (orders, pieces) = clerk.ask(Count).wait()?;
    println!("the book has {orders} orders, {pieces} pieces");
    system.shutdown()?;
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder] = &arguments[..] else {
        eprintln!("error: which folder?\nusage: durable_state FOLDER");
        return ExitCode::from(2);
    };
    match run(folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
