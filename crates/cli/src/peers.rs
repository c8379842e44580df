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
    /// The reasons for which it is unreachable, as logged.
    reasons: Vec<String>,
}

/// A change of a peer.
#[derive(Debug)]
pub enum Change {
    Joined,
    /// The peer announced its shutdown, or another process took its address within [`BROKEN_MIN`].
    Left,
    /// The connection broke, or cannot be made again for a further reason.
    Unreachable(Option<String>),
    ReachableAgain,
    /// The peer was unreachable for too long, or broke the protocol.
    Lost(Option<String>),
}

impl Peers {
    /// Logs the changes since the last call.
    pub fn log_changes(&mut self, theater: &Theater) {
        for (address, change) in self.changes(theater) {
            let address = address.map(|address| address.to_string());
            let (address, kind) = (address.as_deref(), kind(address.is_some()));
            match change {
                Change::Joined => info!(address, kind, "peer joined"),
                Change::Left => info!(address, kind, "peer left"),
                Change::Unreachable(reason) => {
                    warn!(address, kind, reason = reason.as_deref(), "peer unreachable");
                }
                Change::ReachableAgain => info!(address, kind, "peer reachable again"),
                Change::Lost(reason) => warn!(address, kind, reason = reason.as_deref(), "peer lost"),
            }
        }
    }

    /// Logs the peers that are to receive something from this theater, or to answer.
    pub fn log_awaited(theater: &Theater) {
        for peer in theater.peers() {
            let state = peer.state();
            if state.packets > 0 || state.unanswered > 0 {
                let address = peer.address().map(|address| address.to_string());
                let is_linked = state.link == LinkState::Linked;
                warn!(
                    address = address.as_deref(),
                    kind = kind(address.is_some()),
                    linked = is_linked,
                    packets = state.packets,
                    unanswered = state.unanswered,
                    "peer awaited"
                );
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
                        let fault = known.peer.protocol_error();
                        let has_left = was_reachable && fault.is_none();
                        let reason = || fault.or_else(|| known.peer.call_error()).as_ref().map(TheaterError::to_string);
                        changes.push((*address, if has_left { Change::Left } else { Change::Lost(reason()) }));
                    }
                    (false, true) => {
                        known.reasons.clear();
                        changes.push((*address, Change::ReachableAgain));
                    }
                    (_, false) => {
                        let reason = known.peer.call_error().as_ref().map(TheaterError::to_string);
                        let is_new = reason.as_ref().is_some_and(|reason| !known.reasons.contains(reason));
                        if was_reachable || is_new {
                            known.reasons.extend(reason.clone());
                            changes.push((*address, Change::Unreachable(reason)));
                        }
                    }
                    (true, true) => {}
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
                    Known { peer, is_reachable, reasons: Vec::new() }
                };
                *known = peers.into_iter().map(known_again).collect();
                changes.extend((0..joined).map(|_| (address, Change::Joined)));
            }
        }
        changes
    }
}

/// Returns the kind of a peer: a theater that listens, or a program that only calls others, such as `playhouse top`.
fn kind(listens: bool) -> &'static str {
    if listens { "theater" } else { "client" }
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
