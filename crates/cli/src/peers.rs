//! The log of a theater's peers: which join, leave, and cannot be reached.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use playhouse::{LinkState, Peer, Theater, TheaterError};
use tracing::{info, warn};

/// A peer that listens has an address; the others have none in common.
type Address = Option<SocketAddr>;

/// A peer is unreachable when its connection has been broken for this time.
const BROKEN_MIN: Duration = Duration::from_secs(1);

/// The peers of a theater when they were looked at last.
#[derive(Default)]
pub struct Peers {
    known: BTreeMap<Address, Vec<Known>>,
}

struct Known {
    peer: Peer,
    is_reachable: bool,
}

/// A change of a peer.
#[derive(Debug)]
pub enum Change {
    Joined,
    /// The peer announced its shutdown, or another process took its address within [`BROKEN_MIN`].
    Left,
    /// The connection broke.
    Unreachable,
    ReachableAgain,
    /// The peer was unreachable for too long, or broke the protocol.
    Lost(Option<TheaterError>),
}

impl Peers {
    /// Logs the changes since the last call.
    pub fn log_changes(&mut self, theater: &Theater) {
        for (address, change) in self.changes(theater) {
            let address = address.map_or_else(|| "none".to_owned(), |address| address.to_string());
            match change {
                Change::Joined => info!(address, "peer joined"),
                Change::Left => info!(address, "peer left"),
                Change::Unreachable => warn!(address, "peer unreachable"),
                Change::ReachableAgain => info!(address, "peer reachable again"),
                Change::Lost(Some(reason)) => warn!(address, %reason, "peer lost"),
                Change::Lost(None) => warn!(address, "peer lost"),
            }
        }
    }

    fn changes(&mut self, theater: &Theater) -> Vec<(Address, Change)> {
        let mut changes = Vec::new();
        for (address, known) in &mut self.known {
            known.retain_mut(|known| {
                let state = known.peer.state();
                let link = state.link;
                // A peer that shuts down ends the connection a little before the link.
                let is_reachable = link == LinkState::Linked || known.is_reachable && state.for_so_long < BROKEN_MIN;
                let was_reachable = std::mem::replace(&mut known.is_reachable, is_reachable);
                match (was_reachable, is_reachable) {
                    _ if link == LinkState::Lost => {
                        let reason = known.peer.protocol_error();
                        let has_left = was_reachable && reason.is_none();
                        changes.push((*address, if has_left { Change::Left } else { Change::Lost(reason) }));
                    }
                    (true, false) => changes.push((*address, Change::Unreachable)),
                    (false, true) => changes.push((*address, Change::ReachableAgain)),
                    _ => {}
                }
                link != LinkState::Lost
            });
        }
        self.known.retain(|_, known| !known.is_empty());
        let mut now: BTreeMap<Address, Vec<Peer>> = BTreeMap::new();
        for peer in theater.peers() {
            now.entry(peer.address()).or_default().push(peer);
        }
        for (address, peers) in now {
            // Peers cannot be compared; of one address there is one, but for those without any, which differ in nothing that is logged.
            let known = self.known.entry(address).or_default();
            let joined = peers.len().saturating_sub(known.len());
            if joined > 0 {
                let known_again = |peer: Peer| {
                    let state = peer.state();
                    let is_reachable = state.link == LinkState::Linked || state.for_so_long < BROKEN_MIN;
                    Known { peer, is_reachable }
                };
                *known = peers.into_iter().map(known_again).collect();
                changes.extend((0..joined).map(|_| (address, Change::Joined)));
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Waits for the next changes.
    fn next(peers: &mut Peers, theater: &Theater) -> Vec<(Address, Change)> {
        let limit = Instant::now() + Duration::from_secs(60);
        loop {
            let changes = peers.changes(theater);
            if !changes.is_empty() {
                return changes;
            }
            assert!(Instant::now() < limit, "nothing changes");
            std::thread::yield_now();
        }
    }

    #[test]
    fn peers_join_and_leave() {
        let theater = || Theater::builder().listen("127.0.0.1:0").start().unwrap();
        let [here, listens] = [(); 2].map(|()| theater());
        let silent = Theater::builder().start().unwrap();
        let mut peers = Peers::default();
        assert!(peers.changes(&here).is_empty());
        here.connect(listens.address().unwrap()).unwrap();
        assert!(
            matches!(&*next(&mut peers, &here), [(Some(address), Change::Joined)] if Some(*address) == listens.address())
        );
        silent.connect(here.address().unwrap()).unwrap();
        assert!(matches!(&*next(&mut peers, &here), [(None, Change::Joined)]));
        listens.shutdown().unwrap();
        let changes = next(&mut peers, &here);
        assert!(matches!(&*changes, [(Some(_), Change::Left)]), "{changes:?}");
        silent.shutdown().unwrap();
        let changes = next(&mut peers, &here);
        assert!(matches!(&*changes, [(None, Change::Left)]), "{changes:?}");
        here.shutdown().unwrap();
    }
}
