//! The theaters that one is linked with, and how those links are.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::node::theater::{Peer, Theater};

/// What a link is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum LinkState {
    /// It is connected.
    Linked,
    /// Its connection broke. The end that called first calls again; what is sent meanwhile waits.
    Broken,
    /// Its connection broke, and this end is calling the other one.
    CallingAgain,
    /// It was given up: what is sent there becomes dead letters.
    Lost,
}

/// How a link is: see [`Peer::state`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerState {
    /// What it is at.
    pub link: LinkState,
    /// For how long it has been connected, or has not been.
    pub for_so_long: Duration,
    /// Packets that the other end has not acknowledged; what one gulp has sent is most often in one of them.
    pub packets: usize,
    /// Bytes of these packets. Above the [window](crate::TheaterBuilder::window), who sends more is slowed.
    pub bytes: usize,
    /// Asks, watches and the like that the other end has not answered.
    pub unanswered: usize,
}

impl Theater {
    /// The theaters that this one has a link with: those that it has called, and those that have called it. Those that are
    /// [lost](Peer::is_lost) are not among them.
    pub fn peers(&self) -> Vec<Peer> {
        self.theater_core.all_links().into_iter().filter(|link| !link.is_lost()).map(|link| Peer { link }).collect()
    }
}

impl Peer {
    /// How the link with it is.
    pub fn state(&self) -> PeerState {
        let link = if self.link.is_lost() {
            LinkState::Lost
        } else if self.link.connection().is_some() {
            LinkState::Linked
        } else if self.link.theater_core().is_some_and(|theater_core| theater_core.calls_again(self.link.incarnation)) {
            LinkState::CallingAgain
        } else {
            LinkState::Broken
        };
        let (packets, bytes, unanswered) = self.link.under_way();
        PeerState { link, for_so_long: self.link.unchanged_for(), packets, bytes, unanswered }
    }
}
