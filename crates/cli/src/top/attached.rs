//! The theaters that the program looks at.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use playhouse::{ActorRef, FindError, INSPECTOR, Inspect, Inspector, Snapshot, Theater};

/// The time that an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(3);
/// A theater is not shown any more when it has not answered for this time, and no other theater is linked with it.
const GONE_AFTER: Duration = Duration::from_secs(30);

/// A look at a theater.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The address that it was called at.
    pub address: String,
    /// Its state, or the reason why the state is unknown.
    pub state: Result<Snapshot, String>,
}

/// The theaters that the program looks at, and its own one, which calls them.
pub struct Attached {
    theater: Theater,
    /// The address of the theater that the user named.
    first: String,
    inspectors: BTreeMap<String, Known>,
    gone_after: Duration,
}

/// A theater that answers, or that another one is linked with.
struct Known {
    inspector: Option<ActorRef<Inspector>>,
    /// The time of its last answer, or of its first mention.
    answered: Instant,
}

impl Known {
    fn new(inspector: Option<ActorRef<Inspector>>) -> Known {
        Known { inspector, answered: Instant::now() }
    }
}

impl Attached {
    /// Attaches to the theater at `address`.
    ///
    /// # Errors
    /// In words: the theater refuses looks, or cannot be reached.
    pub fn new(theater: &Theater, address: &str) -> Result<Attached, String> {
        let inspector = find(theater, address)?;
        let inspectors = BTreeMap::from([(address.to_owned(), Known::new(Some(inspector)))]);
        Ok(Attached { theater: theater.clone(), first: address.to_owned(), inspectors, gone_after: GONE_AFTER })
    }

    /// Asks all theaters at the same time: the one that the user named, and those that others are linked with.
    pub fn look(&mut self) -> Vec<Seen> {
        let theater = &self.theater;
        let heard: Vec<_> = thread::scope(|scope| {
            let ask = |(address, known): (&String, &Known)| {
                let (address, known) = (address.clone(), known.inspector);
                scope.spawn(move || {
                    let found = known.map_or_else(|| find(theater, &address), Ok);
                    let state = found.and_then(|inspector| {
                        let answer = inspector.ask(Inspect).within(ANSWER_MAX).wait();
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
            if let Some(known) = self.inspectors.get_mut(&address) {
                // A theater that has not answered may be another one when it is asked again.
                known.inspector = state.as_ref().ok().map(|(inspector, _)| *inspector);
                if state.is_ok() {
                    known.answered = Instant::now();
                }
            }
            seen.push(Seen { address, state: state.map(|(_, snapshot)| snapshot) });
        }
        let snapshots = || seen.iter().filter_map(|seen| seen.state.as_ref().ok());
        let known: Vec<SocketAddr> = snapshots().filter_map(|snapshot| snapshot.address).collect();
        let linked = || snapshots().flat_map(|snapshot| &snapshot.links).filter_map(|link| link.address);
        for address in linked() {
            if !known.contains(&address) && !address.ip().is_unspecified() {
                self.inspectors.entry(address.to_string()).or_insert_with(|| Known::new(None));
            }
        }
        let linked: Vec<String> = linked().map(|address| address.to_string()).collect();
        let (first, gone_after) = (&self.first, self.gone_after);
        self.inspectors.retain(|address, known| {
            address == first || known.answered.elapsed() <= gone_after || linked.contains(address)
        });
        seen.retain(|seen| self.inspectors.contains_key(&seen.address));
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

#[cfg(test)]
mod tests {
    use super::*;

    // GUARANTEE: Theaters that are gone are not shown
    #[test]
    fn a_theater_that_is_gone_is_not_looked_at_for_ever() {
        let theater = || Theater::builder().listen("127.0.0.1:0").inspected(true).start().unwrap();
        let [first, other] = [(); 2].map(|()| theater());
        let looks = Theater::builder().start().unwrap();
        let address = |theater: &Theater| theater.address().unwrap().to_string();
        first.connect(address(&other)).unwrap();
        let mut attached = Attached::new(&looks, &address(&first)).unwrap();
        attached.gone_after = Duration::ZERO;
        let both = [address(&first), address(&other)];
        let limit = Instant::now() + Duration::from_secs(120);
        let mut until = |addresses: &[String]| {
            while attached.look().iter().map(|seen| &seen.address).ne(addresses) {
                assert!(Instant::now() < limit, "it never looked at {addresses:?} and nothing else");
            }
        };
        until(&both);
        other.shutdown().unwrap();
        until(&both[..1]);
        first.shutdown().unwrap();
        // The theater that was named is looked at for as long as the user wants.
        until(&both[..1]);
        looks.shutdown().unwrap();
    }
}
