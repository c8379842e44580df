//! Two streams with items that are messages of one actor: a port of `examples/stream.rs` of kameo 0.17.2 (MIT or
//! Apache-2.0).
//!
//! - Both programs print the same lines. The order of the first lines depends on the threads.
//! - kameo sends a message when a stream starts and another one when it ends. In the port, `with_ends` adds these items to the stream.
//! - kameo's `main` awaits the end of the actor. The port sends an ask that the actor answers when its streams have ended.
//!
//! ```text
//! cargo run -p playhouse-examples --bin ported_stream
//! ```

use std::time::Duration;

use playhouse::prelude::*;
use tokio_stream::{Stream, StreamExt, iter, once};

enum Item {
    Started(&'static str),
    Next(i64),
    Finished(&'static str),
}

fn with_ends(name: &'static str, amounts: impl Stream<Item = i64>) -> impl Stream<Item = Item> {
    once(Item::Started(name)).chain(amounts.map(Item::Next)).chain(once(Item::Finished(name)))
}

#[derive(Default)]
struct MyActor {
    count: i64,
    streams_complete: u8,
    complete: Option<Reply<()>>,
}

#[actor]
impl MyActor {
    #[started]
    fn attach_streams(&mut self, ctx: &mut Context<Self>) {
        let slow = iter([1; 5]).throttle(Duration::from_secs(1));
        ctx.attach(with_ends("1st stream", slow), Take);
        ctx.attach(with_ends("2nd stream", iter([1; 5])), Take);
    }

    #[message]
    fn wait(&mut self, reply: Reply<()>) {
        self.complete = Some(reply);
    }

    #[message]
    fn take(&mut self, item: Item) {
        match item {
            Item::Started(name) => println!("Started {name}"),
            Item::Next(amount) => {
                self.count += amount;
                println!("Count is {}", self.count);
            }
            Item::Finished(name) => {
                println!("Finished {name}");
                self.streams_complete += 1;
                if self.streams_complete == 2
                    && let Some(reply) = self.complete.take()
                {
                    reply.send(());
                }
            }
        }
    }
}

#[tokio::main]
async fn main() -> playhouse::Result<()> {
    let system = System::builder().tokio(tokio::runtime::Handle::current()).start()?;
    system.spawn(MyActor::default()).ask(Wait).await?;
    system.shutdown_async(Duration::from_secs(5)).await?;
    Ok(())
}
