//! Asks to many at once, retries that do nothing twice, and a deadline that asks inherit.
//!
//! ```text
//! cargo run -p playhouse-examples --bin gather
//! ```

use std::future::pending;
use std::time::Duration;

use playhouse::asks::{AnswerCache, IdempotencyKey, Retry, ask_many};
use playhouse::prelude::*;

/// A replica of some value. One that is stuck never answers.
struct Replica {
    value: u64,
    stuck: bool,
}

#[actor]
impl Replica {
    #[message(derive(Clone))]
    async fn read(&mut self) -> u64 {
        if self.stuck {
            return pending().await;
        }
        self.value
    }
}

/// Reads from replicas for others.
struct Reader {
    replicas: Vec<ActorRef<Replica>>,
    answers: usize,
}

#[actor]
impl Reader {
    #[message]
    async fn read_all(&mut self) {
        // These asks set no deadline, and inherit the deadline of the ask that this handler answers.
        let answers = ask_many(&self.replicas, Read).all().await;
        self.answers = answers.into_iter().filter(|(_, answer)| answer.is_ok()).count();
    }

    #[message]
    fn answers(&self) -> usize {
        self.answers
    }
}

/// Pays each order once, although its first answer comes too late.
struct Till {
    silent: ActorRef<Replica>,
    sum: u64,
    receipts: AnswerCache<u64>,
}

#[actor]
impl Till {
    #[message(derive(Clone))]
    async fn pay(&mut self, order: IdempotencyKey, amount: u64) -> u64 {
        if let Some(receipt) = self.receipts.get(order) {
            return receipt;
        }
        self.sum += amount;
        self.receipts.put(order, self.sum);
        // The wait ends when the asker gives up.
        let _never = self.silent.ask(Read).await;
        self.sum
    }

    #[message]
    fn sum(&self) -> u64 {
        self.sum
    }
}

fn main() -> playhouse::Result<()> {
    let system = System::start()?;
    let replica = |value| system.spawn(Replica { value, stuck: value == 2 });
    let replicas: Vec<_> = (0..5).map(replica).collect();

    let quorum = ask_many(&replicas, Read).quorum().wait()?;
    println!("{} of {} replicas are enough", quorum.len(), replicas.len());
    let answers = ask_many(&replicas, Read).within(Duration::from_millis(200)).all().wait();
    for (number, (_, answer)) in answers.into_iter().enumerate() {
        match answer {
            Ok(value) => println!("replica {number}: {value}"),
            Err(_) => println!("replica {number} did not answer in time"),
        }
    }
    let error = ask_many(&replicas, Read).within(Duration::from_millis(200)).first(5).wait();
    println!("all five: {}", if error.is_ok() { "they answered" } else { "one did not" });

    let reader = system.spawn(Reader { replicas, answers: 0 });
    let _late = reader.ask(ReadAll).within(Duration::from_millis(200)).wait();
    println!("the reader is free again, and has {} answers", reader.ask(Answers).wait()?);

    let silent = system.spawn(Replica { value: 0, stuck: true });
    let till = system.spawn(Till { silent, sum: 0, receipts: AnswerCache::with_room_for(100) });
    let retry =
        Retry::attempts(5).within(Duration::from_millis(200)).backoff(Duration::from_millis(5), Duration::from_secs(1));
    println!("paid: {}", retry.ask(till, Pay(IdempotencyKey::from(4711), 10)).wait()?);
    println!("the sum is {}", till.ask(Sum).wait()?);
    system.shutdown()?;
    Ok(())
}
