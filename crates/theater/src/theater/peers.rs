//! The peers of a theater, and the states of their links.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::theater::{Peer, Theater};

/// The phase of a link.
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// fn is_usable(peer: &Peer) -> bool {
///     matches!(peer.state().link, LinkState::Linked)
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum LinkState {
    /// The link is connected.
    Linked,
    /// The connection broke. The end that called first calls again; messages sent until then wait.
    Broken,
    /// The connection broke, and this end is calling the other one.
    CallingAgain,
    /// The link was given up: messages to the peer become dead letters.
    Lost,
}

/// The state of a link: see [`Peer::state`].
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// fn describe(peer: &Peer) -> String {
///     let PeerState { link, for_so_long, bytes, .. } = peer.state();
///     format!("{link:?} for {for_so_long:?}, {bytes} bytes not acknowledged")
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerState {
    /// The phase of the link.
    pub link: LinkState,
    /// The time for which it has been connected, or without a connection.
    pub for_so_long: Duration,
    /// Packets that the other end has not acknowledged. Most often one packet holds the messages of one gulp.
    pub packets: usize,
    /// Bytes of these packets. Above the [window](crate::TheaterBuilder::window), senders are slowed.
    pub bytes: usize,
    /// Asks, watches and similar requests that the other end has not answered.
    pub unanswered: usize,
}

impl Theater {
    /// Returns the theaters that this one has a link with: theaters that it has called, and theaters that have called it.
    /// [Lost](Peer::is_lost) theaters are not among them.
    pub fn peers(&self) -> Vec<Peer> {
        self.theater_core.all_links().into_iter().filter(|link| !link.is_lost()).map(|link| Peer { link }).collect()
    }
}

impl Peer {
    /// Returns the state of the link with this peer.
    pub fn state(&self) -> PeerState {
        let link = if self.link.is_lost() {
            LinkState::Lost
        } else if self.link.connection().is_some() {
            LinkState::Linked
        } else if self.link.node().is_some_and(|node| node.calls_again(self.link.incarnation)) {
            LinkState::CallingAgain
        } else {
            LinkState::Broken
        };
        let (packets, bytes, unanswered) = self.link.under_way();
        PeerState { link, for_so_long: self.link.unchanged_for(), packets, bytes, unanswered }
    }
}
