//! The directories of the other members.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as PollContext, Poll, Wake, Waker};
use std::time::Duration;

use playhouse_actor::ActorRef;
use playhouse_theater::{Find, Theater};

use super::actor::VirtualActor;
use super::directory::{Directory, Look};
use super::register::name_of;
use super::waiting::Why;
use crate::membership::Time;
use crate::view::{MemberId, View};

/// The time between a look-up that has failed and the next one.
const PAUSE: Duration = Duration::from_millis(100);

/// The directory of another member.
struct Peer<A: VirtualActor> {
    address: String,
    route: Option<ActorRef<Directory<A>>>,
    finding: Option<Find<Directory<A>>>,
    /// The error of the last look-up, and the time of the next one.
    failure: Option<(String, Time)>,
}

/// Tells the directory that a look-up has its result.
struct Found<A: VirtualActor>(ActorRef<Directory<A>>);

impl<A: VirtualActor> Wake for Found<A> {
    fn wake(self: Arc<Self>) {
        // A directory that is too busy for the message looks at its next round.
        let _ = self.0.try_tell(Look::Found);
    }
}

/// The directories of the members of the view.
pub(super) struct Peers<A: VirtualActor> {
    theater: Theater,
    peers: BTreeMap<MemberId, Peer<A>>,
}

impl<A: VirtualActor> Peers<A> {
    pub(super) fn new(theater: Theater) -> Peers<A> {
        Peers { theater, peers: BTreeMap::new() }
    }

    /// Lets a later member of this theater register the kind.
    pub(super) fn unpublish(&self) {
        self.theater.unpublish(&name_of::<A>());
    }

    /// Forgets the members that are gone.
    pub(super) fn follow(&mut self, view: &View) {
        self.peers.retain(|id, _| view.members.contains_key(id));
    }

    /// Returns the directory of a member, and looks it up if it is not known.
    ///
    /// # Errors
    /// The reason why it is not known.
    pub(super) fn route(
        &mut self,
        owner: MemberId,
        view: &View,
        this: ActorRef<Directory<A>>,
        now: Time,
    ) -> Result<ActorRef<Directory<A>>, Why> {
        let Some(member) = view.members.get(&owner) else { return Err("its slot has no owner".into()) };
        let peer = self.peers.entry(owner).or_insert_with(|| Peer {
            address: member.address.clone(),
            route: None,
            finding: None,
            failure: None,
        });
        if let Some(route) = peer.route.filter(|route| !route.is_stopped()) {
            return Ok(route);
        }
        peer.route = None;
        if peer.finding.is_none() && peer.failure.as_ref().is_none_or(|(_, next)| *next <= now) {
            let name = format!("playhouse://{}/{}", peer.address, name_of::<A>());
            peer.finding = Some(self.theater.find(&name));
        }
        if let Some(find) = &mut peer.finding {
            let waker = Waker::from(Arc::new(Found(this)));
            if let Poll::Ready(found) = Pin::new(find).poll(&mut PollContext::from_waker(&waker)) {
                peer.finding = None;
                match found {
                    Ok(route) => {
                        (peer.route, peer.failure) = (Some(route), None);
                        return Ok(route);
                    }
                    Err(error) => peer.failure = Some((error.to_string(), now.saturating_add(PAUSE))),
                }
            }
        }
        let why = peer.failure.as_ref().map_or("it was not found yet", |(error, _)| error);
        Err(format!("the member at {} owns its slot: {why}", peer.address).into())
    }
}
