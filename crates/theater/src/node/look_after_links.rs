//! The loss of links: the housekeeper checks each link at every tick, calls again, and gives links up.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use playhouse_executor::contained;

use crate::link::Link;
use crate::link::frame::Hello;
use crate::node::backoff::Backoff;
use crate::node::calling::{Calling, Claim, Due, Outcome};
use crate::node::core::TheaterCore;

/// Maximum time between two ticks that is counted against other theaters.
const LOOKED_AWAY_MAX: Duration = Duration::from_millis(200);
/// A theater that made a link and has sent nothing in it is called if it has not called again for this time.
const UNHEARD_MAX: Duration = Duration::from_secs(1);
/// Maximum time without a word from the other end before a connection is broken. Only time in which this process ran is counted.
const SILENT_MAX: Duration = Duration::from_secs(5);
/// An idle connection sends a keep-alive after this time.
const MUTE_MAX: Duration = Duration::from_secs(1);
/// Minimum time before a theater is lost because it takes no bytes, even if it would be lost sooner for being unreachable. Within
/// this time, a silent connection is broken.
const STUCK_MIN: Duration = Duration::from_secs(6);

impl TheaterCore {
    /// Gives up the link that this end has `said` to have, because the other end has given it up.
    pub(super) fn give_up_link(&self, theater: u64, said: &Hello) {
        let given_up = {
            let links = self.links();
            let said = Claim { knows: said.knows.contains(&theater), number: said.link };
            let known = links.by_incarnation.get(&theater);
            known.filter(|known| Calling::is_lost_to_peer(known.sight(), said)).map(|known| Arc::clone(&known.link))
        };
        given_up.inspect(|link| self.lose_or_leave(link));
    }

    /// Gives the link up. If this theater shuts down, its actors are not notified, and the link needs no shutdown announcement.
    pub(super) fn lose_or_leave(&self, link: &Link) {
        // Relaxed: if the shutdown begins after this load, the link counts as lost before it.
        match self.leaving.load(Ordering::Relaxed) {
            true => link.note_left(),
            false => link.lose(),
        }
    }

    /// Checks the links: calls again, and gives links up.
    pub(crate) fn look_after_links(self: &Arc<Self>) {
        let mut again = Vec::new();
        let mut given_up = Vec::new();
        let mut links = self.links();
        // Relaxed: it is written under the same lock of the links, which this thread holds.
        let leaving = self.leaving.load(Ordering::Relaxed);
        let now = self.now();
        // If the last tick is long ago, this process was paused, and received nothing for that reason.
        let passed = now.saturating_sub(std::mem::replace(&mut links.looked_at, now)).min(LOOKED_AWAY_MAX);
        links.by_incarnation.retain(|_, known| !known.link.is_lost());
        self.poller.tick(passed);
        let deaf = self.poller.is_deaf();
        // At least twice the time after which the other end sends a keep-alive.
        let silent_max = (self.settings.lost_after / 3).clamp(2 * MUTE_MAX, SILENT_MAX);
        for known in links.by_incarnation.values_mut().filter(|known| !known.link.is_left()) {
            let link = &known.link;
            if let Some(connection) = link.connection() {
                known.terminated = None;
                known.calls.connects();
                known.backoff = Backoff::default();
                if link.silent.add(passed) > silent_max || deaf {
                    link.disconnect(&connection);
                }
                if link.mute.add(passed) > MUTE_MAX {
                    self.poller.demand_heartbeat(link);
                }
                known.stuck = if link.takes_nothing() { known.stuck + passed } else { Duration::ZERO };
                if known.stuck > self.settings.lost_after.max(STUCK_MIN) {
                    given_up.push(Arc::clone(link));
                    continue;
                }
                link.tidy();
                link.flush(true);
                continue;
            }
            let terminated = known.terminated.map_or(Duration::ZERO, |terminated| terminated + passed);
            known.terminated = Some(terminated);
            if terminated > self.settings.lost_after {
                given_up.push(Arc::clone(link));
            } else if let Some(address) = link.address.filter(|_| known.backoff.is_over(passed) && !deaf) {
                let (sight, is_lower) = (known.sight(), self.incarnation < known.link.incarnation);
                if let Some(due) = known.calls.due(sight, leaving, terminated > UNHEARD_MAX, is_lower) {
                    again.push((Arc::clone(&known.link), address, due));
                }
            }
        }
        drop(links);
        for link in given_up {
            contained(|| self.lose_or_leave(&link));
        }
        for (link, address, due) in again {
            let theater_core = Arc::clone(self);
            let called = Arc::clone(&link);
            let call = move || {
                let called = contained(|| match due {
                    Due::Again { connection, link: known_as } => {
                        theater_core.call_again(&link, address, connection, known_as);
                    }
                    Due::Anew => theater_core.call_anew(&link, address),
                });
                if called.is_none() {
                    theater_core.end_call(&link, Outcome::Nothing);
                }
            };
            if self.in_background("call", call).is_err() {
                // No thread can be started: the next tick calls again.
                self.end_call(&called, Outcome::Nothing);
            }
        }
    }
}
