//! Word counts: documents go to mappers, their counts go to reducers by the first letter, and the reducers' counts go to the
//! asker. The program stands in for a student's program. The thesis gives only its name.

use std::collections::BTreeMap;

use playhouse::prelude::*;

use super::passing::pass;

const MAPPERS: usize = 4;
const REDUCERS: usize = 3;

type Counts = BTreeMap<String, u64>;

struct Mapper {
    reducers: [ActorRef<Reducer>; REDUCERS],
}

#[actor]
impl Mapper {
    #[message]
    fn map(&mut self, document: String) {
        let mut parts = [(); REDUCERS].map(|()| Counts::new());
        for word in document.split_whitespace() {
            let part = usize::from(word.as_bytes()[0]) % REDUCERS;
            *parts[part].entry(word.to_owned()).or_default() += 1;
        }
        for (reducer, counts) in self.reducers.into_iter().zip(parts) {
            reducer.tell(Reduce(pass(counts)));
        }
    }
}

#[derive(Default)]
struct Reducer {
    counts: Counts,
}

#[actor]
impl Reducer {
    #[message]
    fn reduce(&mut self, counts: Counts) {
        for (word, count) in counts {
            *self.counts.entry(word).or_default() += count;
        }
    }

    #[message]
    fn report(&mut self, to: ActorRef<Reporter>) {
        to.tell(Collect(pass(std::mem::take(&mut self.counts))));
    }
}

#[derive(Default)]
struct Reporter {
    counts: Counts,
}

#[actor]
impl Reporter {
    #[message]
    fn collect(&mut self, mut counts: Counts) {
        self.counts.append(&mut counts);
    }

    #[message]
    fn total(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }
}

fn document(number: usize) -> String {
    (0..100).map(|word| format!("{}{} ", char::from(b'a' + (word % 26) as u8), number % (word + 1))).collect()
}

/// Counts the words without actors.
fn sequential(documents: usize) -> Counts {
    let mut counts = Counts::new();
    for document in (0..documents).map(document) {
        for word in document.split_whitespace() {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
    }
    counts
}

pub(super) fn run(system: &System, documents: usize) -> playhouse::Result<bool> {
    let reducers = [(); REDUCERS].map(|()| system.spawn(Reducer::default()));
    let mappers = [(); MAPPERS].map(|()| system.spawn(Mapper { reducers }));
    for number in 0..documents {
        mappers[number % MAPPERS].tell(Map(pass(document(number))));
    }
    system.run_until_idle();
    let reporter = system.spawn(Reporter::default());
    for reducer in reducers {
        reducer.tell(Report(pass(reporter)));
    }
    system.run_until_idle();
    Ok(reporter.ask(Total).wait()? == sequential(documents))
}
