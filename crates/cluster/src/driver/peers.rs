//! The other members: the routes to their actors, and the detector of failures.
//!
//! *The detector.* The machine asks each member once in each period. Each letter of a member shows that it lives. A member from which nothing has
//! come in 3 periods is suspected. The count is one of asks, not of time, because a process that was paused itself has heard nothing.
//!
//! *The routes.* A member is looked up under the address in the view, or writes first. After an unanswered ask it is looked up anew, because another
//! theater may have its address.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as PollContext, Poll, Wake, Waker};
use std::time::Duration;

use playhouse_actor::ActorRef;
use playhouse_theater::{Find, FindError, Theater};

use super::letters::{Content, Letter, NAME};
use super::member::{Event, MemberActor};
use crate::membership::{Input, Time};
use crate::view::{MemberId, View};

/// The number of asks without an answer after which a member is suspected.
const MISSED_MAX: u32 = 3;

/// Another member of the view.
struct Peer {
    address: Option<SocketAddr>,
    route: Option<ActorRef<MemberActor>>,
    finding: Option<Find<MemberActor>>,
    /// The last letter that waits for the route.
    parked: Option<Content>,
    /// Whether its address is being called.
    is_called: Arc<AtomicBool>,
    /// The time of the last ask that was counted.
    asked_at: Option<Time>,
    is_heard: bool,
    missed: u32,
    /// Whether the machine was told that it is silent or gone.
    is_suspected: bool,
    /// Whether no theater listens at its address.
    is_refused: bool,
}

/// The other members of the adopted view.
pub(super) struct Peers {
    theater: Theater,
    this: ActorRef<MemberActor>,
    me: MemberId,
    renew: Duration,
    peers: BTreeMap<MemberId, Peer>,
    /// The sender of the last letter, which the view may lack.
    guest: Option<(MemberId, ActorRef<MemberActor>)>,
}

/// Tells the actor that the look-up of a member has its result.
struct Found(ActorRef<MemberActor>, MemberId);

impl Wake for Found {
    fn wake(self: Arc<Self>) {
        // An actor that is too busy for the message looks at its next tick.
        let _ = self.0.try_tell(Event::Found(self.1));
    }
}

impl Peers {
    /// Creates the peers of a life. The views of it bring them.
    pub(super) fn new(theater: Theater, this: ActorRef<MemberActor>, me: MemberId, renew: Duration) -> Peers {
        Peers { theater, this, me, renew, peers: BTreeMap::new(), guest: None }
    }

    /// Follows the view: begins with new members, and forgets those that are gone.
    pub(super) fn follow(&mut self, view: &View) {
        self.renew = view.timing.renew;
        let (theater, is_member) = (&self.theater, |id: &MemberId| view.members.contains_key(id));
        // Asks to the actors of a dead process fail at once, and a shutdown does not wait for its acknowledgements.
        let dead = self.peers.iter().filter(|(id, peer)| !is_member(id) && peer.is_refused);
        dead.filter_map(|(_, peer)| peer.address).for_each(|address| theater.give_up(address));
        self.peers.retain(|id, _| is_member(id));
        for (id, member) in view.members.iter().filter(|(id, _)| **id != self.me) {
            let route = self.guest.filter(|guest| guest.0 == *id).map(|guest| guest.1);
            self.peers.entry(*id).or_insert_with(|| Peer {
                address: member.address.parse().ok(),
                route,
                finding: None,
                parked: None,
                is_called: Arc::default(),
                asked_at: None,
                is_heard: false,
                missed: 0,
                is_suspected: false,
                is_refused: false,
            });
        }
    }

    /// Notes a letter. Returns the event for the machine, if the sender was suspected.
    pub(super) fn heard(&mut self, from: MemberId, sender: ActorRef<MemberActor>) -> Option<Input> {
        self.guest = Some((from, sender));
        let peer = self.peers.get_mut(&from)?;
        (peer.route, peer.is_heard, peer.missed, peer.is_refused) = (Some(sender), true, 0, false);
        std::mem::take(&mut peer.is_suspected).then_some(Input::Trust(from))
    }

    /// Notes that a member has ended. Returns the event for the machine, if that is news.
    pub(super) fn gone(&mut self, id: MemberId) -> Option<Input> {
        let peer = self.peers.get_mut(&id)?;
        peer.is_suspected = true;
        Some(Input::Gone(id))
    }

    /// Counts an ask. Returns the event for the machine, if too many had no answer.
    pub(super) fn asked(&mut self, id: MemberId, now: Time) -> Option<Input> {
        let pause = self.renew - self.renew / 4;
        let peer = self.peers.get_mut(&id)?;
        // A new view brings an ask at once, which is no period of its own.
        if peer.asked_at.is_some_and(|asked| now < asked.saturating_add(pause)) {
            return None;
        }
        if peer.asked_at.replace(now).is_some() && !std::mem::take(&mut peer.is_heard) {
            peer.missed += 1;
            peer.route = None;
        }
        let is_new = peer.missed >= MISSED_MAX && !std::mem::replace(&mut peer.is_suspected, peer.missed >= MISSED_MAX);
        is_new.then_some(Input::Suspect(id))
    }

    /// Takes the result of a call. A theater that has answered may be a later one at the address: a look-up over the link with the former one would
    /// wait until that link is lost, and begins anew.
    pub(super) fn called(&mut self, id: MemberId, is_refused: bool) -> Option<Input> {
        if is_refused {
            self.peers.get_mut(&id)?.is_refused = true;
            return self.gone(id);
        }
        let peer = self.peers.get_mut(&id).filter(|peer| peer.missed > 0)?;
        peer.finding = None;
        let content = peer.parked.take()?;
        self.look_up(id, content)
    }

    /// Sends a letter to a member of the view, or to the sender of the last letter.
    pub(super) fn send(&mut self, to: MemberId, content: Content) -> Option<Input> {
        let (from, sender) = (self.me, self.this);
        let guest = self.guest.filter(|guest| guest.0 == to).map(|guest| guest.1);
        let route = self.peers.get(&to).map_or(guest, |peer| peer.route);
        if let Some(route) = route.filter(|route| !route.is_stopped()) {
            let (letter, address) =
                (Letter { from, to, sender, content }, self.peers.get(&to).and_then(|peer| peer.address));
            if !address.is_some_and(|address| self.theater.tell_past_window(address, route, &letter)) {
                route.tell_urgent(letter);
            }
            return None;
        }
        self.look_up(to, content)
    }

    /// Looks a member up, and keeps the letter until it is found.
    fn look_up(&mut self, to: MemberId, content: Content) -> Option<Input> {
        let peer = self.peers.get_mut(&to)?;
        (peer.route, peer.parked) = (None, Some(content));
        if let (None, Some(address)) = (&peer.finding, peer.address) {
            peer.finding = Some(self.theater.find(&format!("playhouse://{address}/{NAME}")));
        }
        self.found(to)
    }

    /// Takes the result of a look-up, if it has one.
    pub(super) fn found(&mut self, id: MemberId) -> Option<Input> {
        let peer = self.peers.get_mut(&id)?;
        let waker = Waker::from(Arc::new(Found(self.this, id)));
        let found = Pin::new(peer.finding.as_mut()?).poll(&mut PollContext::from_waker(&waker));
        let Poll::Ready(found) = found else { return None };
        peer.finding = None;
        match found {
            Ok(route) => {
                peer.route = Some(route);
                let content = peer.parked.take()?;
                self.send(id, content)
            }
            // A theater without a member is a later one at the address: a member is published before it begins.
            Err(FindError::Unknown(_)) => self.gone(id),
            // A member of another version of this crate may have another type, and live.
            Err(_) => None,
        }
    }

    /// Looks after all members: takes results of look-ups, and calls members that are silent or without a connection. A refused call
    /// is reported as an event.
    pub(super) fn look(&mut self) -> Vec<Input> {
        let ids: Vec<MemberId> = self.peers.keys().copied().collect();
        let inputs = ids.iter().filter_map(|id| self.found(*id)).collect();
        for (id, peer) in &self.peers {
            // A member of a former process may have had this theater's address. The look-up finds out that it has ended.
            let is_own = |address: SocketAddr| Some(address) == self.theater.address();
            let is_heard = |address: SocketAddr| peer.missed == 0 && self.theater.is_connected_to(address);
            let unheard = peer.address.filter(|address| !is_own(*address) && !is_heard(*address));
            let Some(address) = unheard else { continue };
            // Relaxed: the flag alone counts.
            if peer.is_called.swap(true, Ordering::Relaxed) {
                continue;
            }
            let (this, id, is_called) = (self.this, *id, Arc::clone(&peer.is_called));
            self.theater.is_refused_at(address, move |is_refused| {
                is_called.store(false, Ordering::Relaxed);
                let _ = this.try_tell(Event::Called { id, is_refused });
            });
        }
        inputs
    }
}
