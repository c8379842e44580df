//! Concurrent dictionary: twenty actors read and write one dictionary, which is an actor.

use std::collections::HashMap;

use playhouse::prelude::*;

use super::requests::{Request, WORKERS, serve};
use super::{answer, program};
use crate::harness::benchmark::Benchmark;
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::random::Dice;
use crate::harness::steps::Steps;

pub(crate) const CONCDICT: Benchmark = program(
    "savina-concdict",
    "request",
    "20 workers send 10,000 requests each to one dictionary, one at a time; 10 % are writes",
    run,
);

/// Keys that one worker writes.
const KEYS: usize = 512;
const WRITES_OF_100: usize = 10;

/// A worker's request. The answer is the current or the previous value at this key.
#[derive(Message)]
#[message(reply = Option<u32>)]
enum Access {
    Write { key: u32, value: u32 },
    Read { key: u32 },
}

impl Request for Access {
    /// A worker writes only keys of its own. The final content of the dictionary is therefore independent of the order of the
    /// requests.
    fn choose(number: u32, dice: &mut Dice) -> Self {
        if dice.pick(100) < WRITES_OF_100 {
            Access::Write { key: dice.pick(KEYS) as u32 * WORKERS + number, value: dice.roll() }
        } else {
            Access::Read { key: dice.pick(KEYS * WORKERS as usize) as u32 }
        }
    }
}

struct Dictionary {
    entries: HashMap<u32, u32>,
    work: Steps,
}

impl Actor for Dictionary {}

impl Handler<Access> for Dictionary {
    fn handle(&mut self, access: Access, _: &mut Context<Self>) -> Option<u32> {
        self.work.work();
        match access {
            Access::Write { key, value } => self.entries.insert(key, value),
            Access::Read { key } => self.entries.get(&key).copied(),
        }
    }
}

/// The content of the dictionary.
#[derive(Message)]
#[message(reply = HashMap<u32, u32>)]
struct Entries;

impl Handler<Entries> for Dictionary {
    fn handle(&mut self, _: Entries, _: &mut Context<Self>) -> HashMap<u32, u32> {
        std::mem::take(&mut self.entries)
    }
}

fn run(system: &System, size: Size, work: Steps) -> Result<Outcome, Failure> {
    let requests = size.smoke_or(100, 10_000);
    let dictionary = system.spawn(Dictionary { entries: HashMap::new(), work });
    let elapsed = serve::<Dictionary, Access>(system, size, dictionary, requests)?;
    let entries = answer(dictionary.ask(Entries).wait())?;
    check("that the dictionary is what was written", true, entries == written(requests))?;
    Ok(Outcome::new(u64::from(WORKERS * requests), elapsed))
}

/// Returns the final content of the dictionary.
fn written(requests: u32) -> HashMap<u32, u32> {
    let written = |access| match access {
        Access::Write { key, value } => Some((key, value)),
        Access::Read { .. } => None,
    };
    Access::all(requests).filter_map(written).collect()
}
