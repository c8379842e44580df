//! The theaters that are looked at.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use playhouse::{ActorRef, FindError, INSPECTOR, Inspect, Inspector, Snapshot, Theater};

/// An answer that takes longer is none.
const PATIENCE: Duration = Duration::from_secs(3);

/// What was seen of a theater.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Where it was called.
    pub address: String,
    /// How it is, or why that is not known.
    pub state: Result<Snapshot, String>,
}

/// A theater that is looked at, from this one.
pub struct Attached {
    theater: Theater,
    /// The one that was named first.
    first: String,
    inspectors: BTreeMap<String, Option<ActorRef<Inspector>>>,
}

impl Attached {
    /// Attaches to the theater at `address`.
    ///
    /// # Errors
    /// In words: it does not let itself be looked at, or cannot be reached.
    pub fn new(theater: &Theater, address: &str) -> Result<Attached, String> {
        let inspector = find(theater, address)?;
        let inspectors = BTreeMap::from([(address.to_owned(), Some(inspector))]);
        Ok(Attached { theater: theater.clone(), first: address.to_owned(), inspectors })
    }

    /// Asks all how they are, at the same time: the one that was named first, and those that others say they are linked
    /// with.
    pub fn look(&mut self) -> Vec<Seen> {
        let theater = &self.theater;
        let heard: Vec<_> = thread::scope(|scope| {
            let ask = |(address, known): (&String, &Option<ActorRef<Inspector>>)| {
                let (address, known) = (address.clone(), *known);
                scope.spawn(move || {
                    let found = known.map_or_else(|| find(theater, &address), Ok);
                    let state = found.and_then(|inspector| {
                        let answer = inspector.ask(Inspect).within(PATIENCE).wait();
                        answer.map(|snapshot| (inspector, snapshot)).map_err(|error| error.to_string())
                    });
                    (address, state)
                })
            };
            // All are asked before the first answer is waited for.
            let asked: Vec<_> = self.inspectors.iter().map(ask).collect();
            asked.into_iter().map(|thread| thread.join().expect("asking does not panic")).collect()
        });
        let mut seen = Vec::new();
        for (address, state) in heard {
            // Who has not answered may be another one when it is asked again.
            self.inspectors.insert(address.clone(), state.as_ref().ok().map(|(inspector, _)| *inspector));
            seen.push(Seen { address, state: state.map(|(_, snapshot)| snapshot) });
        }
        let snapshots = || seen.iter().filter_map(|seen| seen.state.as_ref().ok());
        let known: Vec<SocketAddr> = snapshots().filter_map(|snapshot| snapshot.address).collect();
        for address in snapshots().flat_map(|snapshot| &snapshot.links).filter_map(|link| link.address) {
            if !known.contains(&address) && !address.ip().is_unspecified() {
                self.inspectors.entry(address.to_string()).or_default();
            }
        }
        seen.sort_by_key(|seen| seen.address != self.first);
        seen
    }
}

fn find(theater: &Theater, address: &str) -> Result<ActorRef<Inspector>, String> {
    theater.find::<Inspector>(&format!("playhouse://{address}/{INSPECTOR}")).wait().map_err(|error| match error {
        FindError::Unknown(_) => format!(
            "the theater at {address} does not let itself be looked at: a program allows it with \
             `Theater::builder().inspected(true)`"
        ),
        error => error.to_string(),
    })
}
