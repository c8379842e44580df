//! Theaters: systems that other ones reach.

use std::any::{TypeId, type_name};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use playhouse_actor::away::{Found, Host, MakeStub, StubPlacement, Write, spawn_stub};
use playhouse_actor::wire::{Codec, Remote, WireError};
use playhouse_actor::{
    ActorId, ActorRef, AskError, Ending, Group, MigrateError, Mobile, ShutdownError, ShutdownReport, System,
    assert_outside,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{FindError, PublishError, TheaterError};
use crate::link::Link;
use crate::migration::host::LEAVE_MAX;
use crate::node::answer::{Answer, Find, Migration};
use crate::node::builder::{TheaterBuilder, resolve};
use crate::node::core::TheaterCore;

/// An actor system that other ones reach, and that reaches others. Cheap to clone. When it is dropped, nothing ends: it works on until
/// [`shutdown`](Theater::shutdown).
///
/// A message, an answer, and the state of an actor that is taken to another theater may take 16 MiB each, as they are written. A larger message is a
/// dead letter, its ask fails with [`AskError::Unreachable`], and a larger actor stays where it is.
#[derive(Clone)]
pub struct Theater {
    pub(crate) theater_core: Arc<TheaterCore>,
}

impl fmt::Debug for Theater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Theater({:?})", self.theater_core.listens)
    }
}

/// The answer of another theater to a look-up.
type LookedUp<A> = Result<Result<ActorRef<A>, FindError>, AskError>;

/// Asks the theater at the other end of `link` who is published as `name`.
fn look_up_over<A: Remote>(link: &Link, name: &str, take: impl FnOnce(LookedUp<A>) + Send + 'static) {
    let unreadable = |error: WireError| Err(FindError::Unreachable(error.to_string()));
    let read = move |(codec, bytes): (Codec, &[u8])| codec.read(bytes).unwrap_or_else(unreadable);
    link.find(name, A::wire_name(), Box::new(move |found| take(found.map(read))));
}

fn read_found<A: Remote>(found: LookedUp<A>) -> Result<ActorRef<A>, FindError> {
    found.unwrap_or_else(|error| Err(FindError::Unreachable(error.to_string())))
}

/// Asks the theater at `address` who is published as `name`, over a link that is not lost.
fn look_up_anew<A: Remote>(
    theater_core: &Arc<TheaterCore>,
    address: SocketAddr,
    name: String,
    answer: Arc<Answer<Result<ActorRef<A>, FindError>>>,
) {
    let over = move |link: Result<Arc<Link>, TheaterError>| match link {
        Ok(link) => look_up_over(&link, &name, move |found| answer.give(read_found(found))),
        Err(error) => answer.give(Err(FindError::Unreachable(error.to_string()))),
    };
    theater_core.reach_later(address, Duration::ZERO, Box::new(over));
}

/// Another theater, as far as this one knows it. Cheap to clone.
#[derive(Clone)]
pub struct Peer {
    pub(crate) link: Arc<Link>,
}

impl Peer {
    /// Whether the session with it has ended: nothing that is sent there arrives any more.
    pub fn is_lost(&self) -> bool {
        self.link.is_lost()
    }

    /// Returns what the peer did against the protocol, if this theater has lost it for that: a [`TheaterError::Protocol`].
    pub fn protocol_error(&self) -> Option<TheaterError> {
        self.link.broken_rule()
    }

    /// The address that this theater calls it at, or the one that it [advertises](TheaterBuilder::advertise).
    pub fn address(&self) -> Option<SocketAddr> {
        self.link.address
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Peer({:?})", self.link.address)
    }
}

/// For supervised children: see [`ChildSpec::at`](playhouse_actor::ChildSpec::at).
impl Host for Peer {
    fn start(
        &self,
        actor: TypeId,
        name: &'static str,
        write: Write<'_>,
        make_stub: MakeStub<'_>,
    ) -> Result<ActorId, WireError> {
        self.link.spawn((actor, name), true, write, |core, stage, forwarder| {
            let id = make_stub(core, StubPlacement::Link(stage), forwarder);
            (id, id)
        })
    }

    fn theater(&self) -> u64 {
        self.link.incarnation
    }

    fn is_lost(&self) -> bool {
        self.link.is_lost()
    }

    fn may_have_left(&self, id: ActorId) -> bool {
        self.link.theater_core().is_some_and(|theater_core| theater_core.registry.migration_vtable(id).is_some())
    }

    fn reach(&self, then: Found) {
        if !self.is_lost() {
            return then(Ok(Arc::new(self.clone())));
        }
        let (Some(theater_core), Some(address)) = (self.link.theater_core(), self.link.address) else {
            return then(Err(WireError::new("it cannot be called")));
        };
        let take = move |found: Result<Arc<Link>, TheaterError>| {
            let found = found.map(|link| Arc::new(Peer { link }) as Arc<dyn Host>);
            then(found.map_err(|error| WireError::new(error.to_string())));
        };
        theater_core.reach_later(address, Duration::ZERO, Box::new(take));
    }
}

/// How [`Theater::evacuate`] went. Actors that have ended, or that are lost with a theater that had taken them, are in neither number.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct EvacuationReport {
    /// Actors that live elsewhere now.
    pub moved: usize,
    /// Actors that are still here, and why.
    pub stayed: Vec<(ActorId, MigrateError)>,
}

impl Theater {
    /// Settings for a new theater.
    pub fn builder() -> TheaterBuilder {
        TheaterBuilder::new()
    }

    /// The actor system in it.
    pub fn system(&self) -> &System {
        &self.theater_core.system
    }

    /// The address that others call: the [advertised](TheaterBuilder::advertise) one, or the one that it listens at.
    pub fn address(&self) -> Option<SocketAddr> {
        self.theater_core.listens
    }

    /// The theater at `address`: `host:port` or `playhouse://host:port`, with an IP address or a name as the host. Called if need be, which may take some
    /// seconds and blocks this thread.
    ///
    /// # Errors
    /// It cannot be reached, or refuses the connection.
    ///
    /// # Panics
    /// Inside an actor: it would hold the worker.
    #[track_caller]
    pub fn connect(&self, address: impl ToString) -> Result<Peer, TheaterError> {
        assert_outside("`connect`", "connect before, and give the actor the `Peer`");
        self.theater_core.link_with(resolve(&address.to_string())?.into()).map(|link| Peer { link })
    }

    /// Lets others [find](Theater::find) `actor` as `playhouse://host:port/name`, until it ends. One actor may have several names.
    ///
    /// # Errors
    /// Another actor is published under that name, and has not ended: see [`Theater::replace`].
    pub fn publish<A: Remote>(&self, name: impl Into<String>, actor: ActorRef<A>) -> Result<(), PublishError> {
        self.theater_core.registry.publish(name.into(), actor.id(), A::wire_name())
    }

    /// Publishes `actor` as [`publish`](Theater::publish) does, instead of whoever has the name: that one is not found by it any more.
    pub fn replace<A: Remote>(&self, name: impl Into<String>, actor: ActorRef<A>) {
        self.theater_core.registry.replace(name.into(), actor.id(), A::wire_name());
    }

    /// Takes a name back. False: there was nobody of that name.
    pub fn unpublish(&self, name: &str) -> bool {
        self.theater_core.registry.unpublish(name)
    }

    /// Looks up who is published as `playhouse://host:port/name`.
    ///
    /// # Cancel safety
    /// Dropping the answer changes nothing.
    pub fn find<A: Remote>(&self, name: &str) -> Find<A> {
        let answer = Answer::new(&self.theater_core);
        let find = Find(Arc::clone(&answer));
        let Some((host, actor)) = name.strip_prefix("playhouse://").and_then(|rest| rest.split_once('/')) else {
            answer.give(Err(FindError::Malformed(name.to_owned())));
            return find;
        };
        let (host, actor, theater_core) = (host.to_owned(), actor.to_owned(), Arc::clone(&self.theater_core));
        let look_up = move |address: Result<SocketAddr, TheaterError>| {
            if let Ok(address) = &address
                && Some(*address) == theater_core.listens
            {
                let found = theater_core.registry.find(&actor, A::wire_name(), Ok);
                return answer.give(found.and_then(|id| ActorRef::of_id(id).ok_or(FindError::Unknown(actor))));
            }
            match address.map(|address| (address, theater_core.known_link(address))) {
                Ok((address, None)) => look_up_anew(&theater_core, address, actor, answer),
                Ok((address, Some(link))) => {
                    let name = actor.clone();
                    let take = move |found| match found {
                        // It was the link with a theater that is no more. There may be a successor at that address, and to look up changes nothing.
                        Err(AskError::TheaterLost { .. }) => look_up_anew(&theater_core, address, name, answer),
                        found => answer.give(read_found(found)),
                    };
                    look_up_over::<A>(&link, &actor, take);
                }
                Err(error) => answer.give(Err(FindError::Unreachable(error.to_string()))),
            }
        };
        match host.parse() {
            Ok(address) => look_up(Ok(address)),
            // Asking for a name may take a while.
            Err(_) => self.theater_core.soon(Box::new(move || look_up(resolve(&host)))),
        }
        find
    }

    /// Starts `actor` in the theater `peer`. Its reference can be used at once: what is sent to it goes behind its state.
    ///
    /// If it cannot be started there after all, what is sent to it becomes dead letters there, and asks fail.
    ///
    /// A mobile actor is born in this theater by that, as if it had left from here: this theater notes where it goes (see
    /// [`evacuate`](Theater::evacuate) for how a theater ends without harm). One that does not move, and is told of to others at once, is reached by
    /// them over this theater.
    ///
    /// While the link's window is full, a thread outside of actors blocks here until there is room. In a handler this does not block: the
    /// actor's stage waits for room after the handler.
    ///
    /// # Errors
    /// That theater is lost, or cannot start actors of this type; or a handler has started so many that more than 16 windows and 32 MiB
    /// wait.
    pub fn spawn_at<A: Remote + Serialize + DeserializeOwned>(
        &self,
        peer: &Peer,
        actor: &A,
    ) -> Result<ActorRef<A>, WireError> {
        let write = |codec: Codec, out: &mut Vec<u8>| codec.write(actor, out);
        peer.link.spawn((TypeId::of::<A>(), type_name::<A>()), false, write, |core, stage, forwarder| {
            let actor = spawn_stub::<A>(core, StubPlacement::Link(stage), forwarder);
            (actor.id(), actor)
        })
    }

    /// Takes `actor` to the theater `to`, with its state, its mail, its timers and its watchers. References to it stay good
    /// everywhere; what is sent to it keeps its order; asks are answered.
    ///
    /// It goes once it has handled what it is at. Where it cannot go, it goes on here as if nothing had been. Where it is in a
    /// [group](Group), that moves: see [`migrate_group`](Theater::migrate_group).
    ///
    /// # Errors
    /// When awaited: why it stays.
    ///
    /// # Cancel safety
    /// Dropping the answer changes nothing.
    pub fn migrate<A: Mobile>(&self, actor: ActorRef<A>, to: &Peer) -> Migration {
        let answer = Answer::new(&self.theater_core);
        let migration = Migration(Arc::clone(&answer));
        self.theater_core.migrate(actor.id(), Arc::clone(&to.link), Box::new(move |done| answer.give(done)));
        migration
    }

    /// Takes all actors of `group` that live here to the theater `to`, where they share a stage again: all of them, or none. Each is
    /// taken as by [`migrate`](Theater::migrate).
    ///
    /// They go when all of them are between two messages at one moment: while one awaits something, the others go on with
    /// their work. (If there is no such moment for 10 seconds, they stay.) Members that others start here after that moment are
    /// left behind. If the group is moving already, this begins when that has ended.
    ///
    /// If the connection breaks, it goes on; if the other theater is lost before it has said that they have come, all of them go
    /// on here.
    ///
    /// # Errors
    /// When awaited: why they stay, which each of them is told as well ([`migration_failed`](playhouse_actor::Actor::migration_failed)). Where that is for
    /// one of them, [`MigrateError::Member`] says which.
    ///
    /// # Cancel safety
    /// Dropping the answer changes nothing.
    pub fn migrate_group(&self, group: Group, to: &Peer) -> Migration {
        let answer = Answer::new(&self.theater_core);
        let migration = Migration(Arc::clone(&answer));
        match group.name() {
            Some(name) => {
                self.theater_core.migrate_group(name, Arc::clone(&to.link), Box::new(move |done| answer.give(done)));
            }
            None => answer.give(Err(MigrateError::NoGroup)),
        }
        migration
    }

    /// The group that `actor` was started in, wherever it lives.
    pub fn group_of<A: Mobile>(&self, actor: ActorRef<A>) -> Option<Group> {
        let mut groups = self.theater_core.directory.groups();
        let name = groups.of(actor.id())?;
        Some(Group::of(name, groups.stage_of(name, || actor.id().address().stage())))
    }

    /// Takes all mobile actors that live here to other theaters, by turns, and those that are started meanwhile; those
    /// of a [group](Group) go together, and where some of the group have gone before.
    /// One that a theater does not take is offered to the others, too.
    /// From now on, this theater lets no actor in that another one sends: such an actor stays where it is, and is told so. Those that were let in
    /// before come, and are taken on. One that is still on its way here after 10 seconds is among those that [`migration_failed`](Evacuation::stayed).
    ///
    /// Blocks until none is left that could be taken away, and the other theaters send to them where they are, and have the answers that come over
    /// this one (both for at most 10 seconds): after that, this one may end. It waits for as long as handlers of these actors do not rest.
    ///
    /// # Panics
    /// Inside an actor, and without a theater to take them to.
    #[track_caller]
    pub fn evacuate(&self, to: &[Peer]) -> EvacuationReport {
        assert_outside("`evacuate`", "call it in the main thread, which an actor can tell that it is time");
        /// Actors on their way at one time.
        const UNDER_WAY_MAX: usize = 512;
        assert!(!to.is_empty(), "`evacuate` was given no theater to take the actors to");
        let mut evacuation = EvacuationReport::default();
        let mut stay: HashSet<ActorId> = HashSet::new();
        // By the first member of a group, or the actor: the theaters that have not taken it. A theater that is evacuated itself takes no actor.
        let mut refused: HashMap<ActorId, Vec<u64>> = HashMap::new();
        let mut deadline = self.theater_core.now() + LEAVE_MAX;
        let mut have_changed = false;
        self.theater_core.refuse_guests();
        loop {
            let came = self.theater_core.directory.begun();
            // First: who has come into its cell by then is seen there.
            let awaits = self.theater_core.directory.awaits_anybody();
            let mut leaving = Vec::new();
            self.theater_core.system.core().each_resident(|address, resident| {
                let id = ActorId::of(address);
                if self.theater_core.registry.is_mobile(resident) && !stay.contains(&id) {
                    leaving.push(id);
                }
            });
            // In simulation, in an order that does not depend on where they lie in memory.
            self.theater_core.directory.sort(&mut leaving);
            if leaving.is_empty() {
                // With the lock held, a guest does not begin: it is one, or is arriving, or has come since the list was made.
                let (mut coming, begins, has_come) = {
                    let incoming_actors = self.theater_core.directory.incoming_actors();
                    let directory = &self.theater_core.directory;
                    (incoming_actors.stubs(), directory.is_any_arriving(), directory.begun() != came)
                };
                let begins = begins && self.theater_core.now() < deadline + LEAVE_MAX;
                if has_come || begins || awaits && self.theater_core.now() < deadline {
                    // They begin soon, or do not come.
                    self.theater_core.pause(Duration::from_millis(1));
                } else if have_changed {
                    self.theater_core.directory.sort(&mut coming);
                    let why = || MigrateError::Unreachable("it is on its way here, and has not begun".to_owned());
                    evacuation.stayed.extend(coming.into_iter().map(|id| (id, why())));
                    return evacuation;
                } else {
                    self.theater_core.take_leave();
                    // Others may have heard of this theater anew from an actor that has come meanwhile, and gone on by itself.
                    have_changed = self.theater_core.directory.begun() == came || self.theater_core.now() >= deadline;
                }
                continue;
            }
            let mut under_way: VecDeque<(ActorId, Vec<ActorId>, u64, Migration)> = VecDeque::new();
            let mut end = |(first, who, peer, migration): (ActorId, Vec<ActorId>, u64, Migration),
                           refused: &mut HashMap<ActorId, Vec<u64>>| match migration.wait() {
                Ok(()) => evacuation.moved += who.len(),
                // They are gone either way.
                Err(MigrateError::Stopped | MigrateError::Elsewhere) => {}
                Err(why) => {
                    use MigrateError::{Member, Refused, TheaterLost};
                    let refused = refused.entry(first).or_default();
                    refused.push(peer);
                    let is_left = to.iter().any(|peer| !refused.contains(&peer.link.incarnation));
                    if is_left && matches!(why, Refused(_) | Member { .. } | TheaterLost) {
                        // They are offered to another one, where they are still here.
                        return;
                    }
                    stay.extend(&who);
                    evacuation.stayed.extend(who.into_iter().map(|id| (id, why.clone())));
                }
            };
            let pending_groups = self.theater_core.directory.groups().pending_groups(leaving);
            for ((group, mut who), nth) in pending_groups.into_iter().zip(0..) {
                let first = who[0];
                // Their cells may not have heard yet that they have gone with others.
                who.retain(|id| !self.theater_core.directory.is_remote(*id));
                if under_way.len() >= UNDER_WAY_MAX {
                    let first = under_way.pop_front();
                    first.into_iter().for_each(|first| end(first, &mut refused));
                }
                let answer = Answer::new(&self.theater_core);
                let migration = Migration(Arc::clone(&answer));
                let gone = group.map(|group| self.theater_core.gone_to(group)).unwrap_or_default();
                let is_open = |peer: &&Peer| !refused.get(&first).is_some_and(|by| by.contains(&peer.link.incarnation));
                let mut open: Vec<&Peer> = to.iter().filter(is_open).collect();
                if open.is_empty() {
                    open.extend(to);
                }
                let has_gone_to = |peer: &&&Peer| gone.contains(&peer.link.incarnation);
                let peer = open.iter().find(has_gone_to).unwrap_or(&open[nth % open.len()]);
                self.theater_core.migrate(first, Arc::clone(&peer.link), Box::new(move |done| answer.give(done)));
                under_way.push_back((first, who, peer.link.incarnation, migration));
            }
            under_way.into_iter().for_each(|last| end(last, &mut refused));
            (have_changed, deadline) = (false, self.theater_core.now() + LEAVE_MAX);
        }
    }

    /// Ends the theater: waits until its messages are handled and the others have what was sent to them (at most `limit`), then takes leave of
    /// them, so that they hold it for lost at once, and shuts its system down. It returns within `limit`, a fifth of it, and 0.8 seconds, and what dead-letter
    /// hooks and drops of undelivered messages take on this thread. Actors that others send here are refused from the beginning, and stay where they are.
    /// Actors are not told that the others are gone. After that, its address can be listened at again; for a transport that takes its time with that, it waits 5 seconds at most.
    ///
    /// # Errors
    /// As [`System::shutdown`].
    ///
    /// # Panics
    /// Inside an actor: it would wait for itself, or hold the worker.
    #[track_caller]
    pub fn shutdown_within(self, limit: Duration) -> Result<ShutdownReport, ShutdownError> {
        assert_outside("`shutdown`", "call it in the main thread, which an actor can tell that it is time");
        /// Where `limit` is over, the others still hear the goodbye, and handlers still return: each for a tenth of it, or this time.
        const GRACE_MIN: Duration = Duration::from_millis(200);
        let grace = GRACE_MIN.max(limit / 10);
        let deadline = self.theater_core.now().saturating_add(limit);
        let settle = |links: &[Arc<Link>], deadline: Duration, is_settled: &dyn Fn(&Link) -> bool| {
            while !links.iter().all(|link| is_settled(link)) && self.theater_core.now() < deadline {
                for link in links {
                    link.flush(true);
                }
                self.theater_core.pause(Duration::from_millis(1));
            }
        };
        self.theater_core.refuse_guests();
        self.theater_core.system.core().drain(limit);
        self.theater_core.await_routes(deadline);
        settle(&self.theater_core.all_links(), deadline, &Link::is_settled);
        let links = self.theater_core.last_links();
        for link in &links {
            link.end_departures();
        }
        for link in &links {
            link.say_goodbye();
        }
        let heard_by = deadline.max(self.theater_core.now().saturating_add(grace));
        settle(&links, heard_by, &Link::has_taken_leave);
        self.theater_core.close();
        let left = || deadline.saturating_sub(self.theater_core.now());
        self.theater_core.lose_links(left().max(grace));
        self.theater_core.system.clone().shutdown_within(left())
    }

    /// Does the same as [`Theater::shutdown_within`], in a thread of its own, for async code outside of actors: the thread of the caller is not blocked.
    /// The shutdown goes on if the future is dropped.
    ///
    /// # Errors
    /// Actors are stuck, as for [`System::shutdown`].
    ///
    /// # Panics
    /// Inside an actor, like [`Theater::shutdown_within`].
    #[track_caller]
    pub fn shutdown_async(self, limit: Duration) -> Ending {
        assert_outside("`shutdown_async`", "call it outside of actors, which can tell a task there that it is time");
        Ending::of(move || self.shutdown_within(limit))
    }

    /// Does the same as [`Theater::shutdown_within`] with a limit of 5 seconds.
    ///
    /// # Errors
    /// As [`System::shutdown`].
    ///
    /// # Panics
    /// As [`Theater::shutdown_within`].
    #[track_caller]
    pub fn shutdown(self) -> Result<ShutdownReport, ShutdownError> {
        self.shutdown_within(Duration::from_secs(5))
    }
}
