//! A bounded buffer. Neither a producer nor a consumer needs to know whether the buffer has room or items.
//!
//! ```text
//! cargo run -p playhouse-examples --bin bounded_buffer
//! ```

use std::collections::VecDeque;

use playhouse::prelude::*;

/// Holds up to `room` items.
struct Buffer {
    items: VecDeque<u32>,
    room: usize,
    most: usize,
}

#[actor]
impl Buffer {
    /// Waits until the buffer has room.
    #[message(when = "self.items.len() < self.room")]
    fn put(&mut self, item: u32) {
        self.items.push_back(item);
        self.most = self.most.max(self.items.len());
    }

    /// Waits until the buffer has an item.
    #[message(when = "!self.items.is_empty()")]
    fn take(&mut self) -> u32 {
        self.items.pop_front().expect("the guard holds")
    }

    #[message]
    fn most(&self) -> usize {
        self.most
    }
}

/// Puts all at once.
struct Producer {
    buffer: ActorRef<Buffer>,
}

#[actor]
impl Producer {
    #[message]
    fn produce(&self, items: u32) {
        (1..=items).for_each(|item| self.buffer.tell(Put(item)));
    }
}

/// Takes one after the other.
struct Consumer {
    buffer: ActorRef<Buffer>,
}

#[actor]
impl Consumer {
    #[message]
    async fn consume(&self, items: u32) -> Result<Vec<u32>, AskError> {
        let mut taken = Vec::new();
        for _ in 0..items {
            taken.push(self.buffer.ask(Take).await?);
        }
        Ok(taken)
    }
}

fn main() -> playhouse::Result<()> {
    let system = System::start()?;
    let buffer = system.spawn(Buffer { items: VecDeque::new(), room: 3, most: 0 });
    let consumer = system.spawn(Consumer { buffer });
    system.spawn(Producer { buffer }).tell(Produce(10));
    println!("taken: {:?}", consumer.ask(Consume(10)).wait()??);
    println!("never more than 3 at once: {}", buffer.ask(Most).wait()? <= 3);

    // No consumer takes these items. The buffer is full, and one request waits to the end.
    let full =
        system.spawn_with(SpawnOptions::new().name("outbox"), Buffer { items: VecDeque::new(), room: 3, most: 0 });
    system.spawn(Producer { buffer: full }).tell(Produce(4));
    system.run_until_idle();
    for deferred in system.shutdown()?.deferred {
        println!("{deferred}");
    }
    Ok(())
}
