//! Theaters: actor systems that other theaters reach.
//!
//! This folder has the types that programs use, and composes a theater of its parts: the [`builder`] makes them, [`node`] passes calls of the lower
//! ones to the higher ones, and the [`housekeeper`] does the work of all of them that is due.

pub(crate) mod answer;
pub(crate) mod builder;
pub(crate) mod peers;

mod housekeeper;
mod node;

use std::any::{TypeId, type_name};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use playhouse_actor::away::{Found, Host, MakeStub, StubPlacement, Write, spawn_stub};
use playhouse_actor::wire::{Codec, Remote, WireError};
use playhouse_actor::{
    ActorId, ActorRef, AskError, Ending, Group, Message, MigrateError, Mobile, ShutdownError, ShutdownReport, System,
    assert_outside,
};
use playhouse_executor::contained;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{FindError, PublishError, TheaterError};
use crate::link::Link;
use crate::link::node::Callee;
use crate::migration::announce_evacuation::SHUTDOWN_NOTICE_MAX;
use crate::migration::rebalance::{Rebalance, RebalanceGuard};
use crate::node::core::TheaterCore;
use crate::theater::answer::{Answer, Find, Migration};
use crate::theater::builder::{TheaterBuilder, resolve};

/// An actor system that other theaters reach, and that reaches others. Cheap to clone. Dropping it ends nothing: the theater
/// works until [`shutdown`](Theater::shutdown).
///
/// A message, an answer, and the state of a migrating actor may take 16 MiB each in their encoding. A larger message is a dead
/// letter and its ask fails with [`AskError::Unreachable`]. A larger actor stays in its theater.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use playhouse_theater::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Default, Serialize, Deserialize)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Serialize, Deserialize)]
/// # struct Add(u64);
/// # impl Message for Add {
/// #     type Reply = ();
/// #     const WIRE: Option<wire::WireForm<Self>> = Some(wire::WireForm::of());
/// # }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # remote!(mobile Counter: Add);
/// let server = Theater::builder().listen("127.0.0.1:0").start()?;
/// server.publish("counter", server.system().spawn(Counter::default()))?;
///
/// let client = Theater::builder().start()?;
/// let name = format!("playhouse://{}/counter", server.address().expect("it listens"));
/// client.find::<Counter>(&name).wait()?.tell(Add(1));
///
/// client.shutdown()?; // the server has received the message by then
/// server.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

/// Asks the theater at the other end of `link` for the actor published as `name`.
fn look_up_over<A: Remote>(link: &Link, name: &str, take: impl FnOnce(LookedUp<A>) + Send + 'static) {
    let unreadable = |error: WireError| Err(FindError::Unreachable(error.to_string()));
    let read = move |(codec, bytes): (Codec, &[u8])| codec.read(bytes).unwrap_or_else(unreadable);
    link.find(name, A::wire_name(), Box::new(move |found| take(found.map(read))));
}

fn read_found<A: Remote>(found: LookedUp<A>) -> Result<ActorRef<A>, FindError> {
    found.unwrap_or_else(|error| Err(FindError::Unreachable(error.to_string())))
}

/// Asks the theater at `address` for the actor published as `name`, over a link that is not lost.
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

/// Another theater, from the view of this one. Cheap to clone.
///
/// # Examples
///
/// ```
/// # use playhouse_theater::*;
/// let server = Theater::builder().listen("127.0.0.1:0").start()?;
/// let client = Theater::builder().start()?;
/// let peer = client.connect(server.address().expect("it listens"))?;
/// assert_eq!(client.peers().len(), 1);
/// assert!(!peer.is_lost());
/// # client.shutdown()?;
/// # server.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Peer {
    pub(crate) link: Arc<Link>,
}

impl Peer {
    /// Returns whether the session with it has ended: no further message to it arrives.
    pub fn is_lost(&self) -> bool {
        self.link.is_lost()
    }

    /// Returns the violation of the protocol for which this theater has lost the peer, if there is one: a
    /// [`TheaterError::Protocol`].
    pub fn protocol_error(&self) -> Option<TheaterError> {
        self.link.broken_rule()
    }

    /// Returns the error of the last call that was to restore the connection, if no connection was made since: the peer cannot be reached
    /// ([`TheaterError::Io`]), or another theater has its address and refuses this one ([`TheaterError::NotMember`]). A lost peer keeps the error.
    pub fn call_error(&self) -> Option<TheaterError> {
        self.link.call_error()
    }

    /// Returns the address that this theater calls it at, or the one that it [advertises](TheaterBuilder::advertise).
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
        self.link.registry.migration_vtable(id).is_some()
    }

    fn reach(&self, then: Found) {
        if !self.is_lost() {
            return then(Ok(Arc::new(self.clone())));
        }
        let (Some(node), Some(address)) = (self.link.node(), self.link.address) else {
            return then(Err(WireError::new("it cannot be called")));
        };
        let take = move |found: Result<Arc<Link>, TheaterError>| {
            let found = found.map(|link| Arc::new(Peer { link }) as Arc<dyn Host>);
            then(found.map_err(|error| WireError::new(error.to_string())));
        };
        node.reach_later(address.into(), Duration::ZERO, Box::new(take));
    }
}

/// The result of [`Theater::evacuate`]. Actors that have ended, or that are lost with a theater that had taken them, are not
/// counted.
///
/// # Examples
///
/// ```
/// # use playhouse_actor::*;
/// # use playhouse_theater::*;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Default, Serialize, Deserialize)]
/// # struct Counter(u64);
/// # impl Actor for Counter {}
/// # #[derive(Serialize, Deserialize)]
/// # struct Add(u64);
/// # impl Message for Add {
/// #     type Reply = ();
/// #     const WIRE: Option<wire::WireForm<Self>> = Some(wire::WireForm::of());
/// # }
/// # impl Handler<Add> for Counter {
/// #     fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) { self.0 += by; }
/// # }
/// # remote!(mobile Counter: Add);
/// # let old = Theater::builder().listen("127.0.0.1:0").start()?;
/// # let new = Theater::builder().listen("127.0.0.1:0").start()?;
/// old.system().spawn(Counter::default());
/// let peer = old.connect(new.address().expect("it listens"))?;
/// let report: EvacuationReport = old.evacuate(&[peer]);
/// assert_eq!(report.moved, 1);
/// for (actor, why) in &report.stayed {
///     eprintln!("{actor} stays: {why}");
/// }
/// old.shutdown()?;
/// # new.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct EvacuationReport {
    /// Number of actors that live in other theaters now.
    pub moved: usize,
    /// Actors that are still in this theater, with the reasons.
    pub stayed: Vec<(ActorId, MigrateError)>,
}

impl Theater {
    /// Returns the settings for a new theater.
    pub fn builder() -> TheaterBuilder {
        TheaterBuilder::new()
    }

    /// Returns the actor system of this theater.
    pub fn system(&self) -> &System {
        &self.theater_core.system
    }

    /// Returns the address that other theaters call: the [advertised](TheaterBuilder::advertise) one, or the one that it listens
    /// at.
    pub fn address(&self) -> Option<SocketAddr> {
        self.theater_core.listens
    }

    /// Returns the address that this theater listens at, with the port that the system has chosen for port 0. It differs from
    /// [`address`](Self::address) if another one is [advertised](TheaterBuilder::advertise).
    pub fn bound_address(&self) -> Option<SocketAddr> {
        self.theater_core.bound
    }

    /// Returns the number that tells this theater from all others, also from earlier ones at its address.
    #[doc(hidden)]
    pub fn incarnation(&self) -> u64 {
        self.theater_core.incarnation
    }

    /// Returns whether this theater has a connection with the theater that it has called at `address`.
    #[doc(hidden)]
    pub fn is_connected_to(&self, address: SocketAddr) -> bool {
        self.theater_core.known_link(address).is_some_and(|link| link.connection().is_some())
    }

    /// Finds out whether no theater listens at `address`, and passes the result to `take`, which must not block. The address is called, also if there is
    /// a link. The end that was called first does not call by itself if a connection breaks, and a connection may be silent.
    #[doc(hidden)]
    pub fn is_refused_at(&self, address: SocketAddr, take: impl FnOnce(bool) + Send + 'static) {
        let callee = Callee { anew: true, ..Callee::from(address) };
        let over = |link: Result<Arc<Link>, TheaterError>| take(link.is_err_and(|error| error.is_refusal()));
        self.theater_core.reach_later(callee, Duration::ZERO, Box::new(over));
    }

    /// Sends `message` to an actor of the theater that this one has called at `address`, although messages to other actors of that theater fill the
    /// link. It may overtake any other message, and nothing slows its sender. Returns `false` if it was not sent, for example without such a link.
    #[doc(hidden)]
    pub fn tell_past_window<A, M>(&self, address: SocketAddr, actor: ActorRef<A>, message: &M) -> bool
    where
        A: Remote,
        M: Message + Serialize,
    {
        let write = |codec: Codec, out: &mut Vec<u8>| codec.write(message, out);
        let types = (TypeId::of::<A>(), TypeId::of::<M>(), type_name::<M>());
        self.theater_core.known_link(address).is_some_and(|link| link.tell_past_window(actor.id(), types, write))
    }

    /// Gives up the link with the theater that this one has called at `address`, if it has no connection: messages to it become dead letters, and asks
    /// fail.
    #[doc(hidden)]
    pub fn give_up(&self, address: SocketAddr) {
        if let Some(link) = self.theater_core.known_link(address).filter(|link| link.connection().is_none()) {
            // The loss of a link may run user code.
            self.theater_core.soon(Box::new(move || link.lose()));
        }
    }

    /// Returns the theater at `address`: `host:port` or `playhouse://host:port`, with an IP address or a name as the host. Calls
    /// it if necessary, which may take some seconds and blocks this thread.
    ///
    /// # Errors
    /// It cannot be reached, or refuses the connection.
    ///
    /// # Panics
    /// Inside an actor, because it would block the worker.
    #[track_caller]
    pub fn connect(&self, address: impl ToString) -> Result<Peer, TheaterError> {
        assert_outside("`connect`", "connect before, and give the actor the `Peer`");
        self.theater_core.link_with(resolve(&address.to_string())?.into()).map(|link| Peer { link })
    }

    /// Lets other theaters [find](Theater::find) `actor` as `playhouse://host:port/name`, until it ends. One actor may have
    /// several names.
    ///
    /// # Errors
    /// Another actor is published under that name, and has not ended: see [`Theater::replace`].
    pub fn publish<A: Remote>(&self, name: impl Into<String>, actor: ActorRef<A>) -> Result<(), PublishError> {
        self.theater_core.registry.publish(name.into(), actor.id(), A::wire_name())
    }

    /// Publishes `actor` as [`publish`](Theater::publish) does, and takes the name from its present owner, if there is one.
    pub fn replace<A: Remote>(&self, name: impl Into<String>, actor: ActorRef<A>) {
        self.theater_core.registry.replace(name.into(), actor.id(), A::wire_name());
    }

    /// Removes a published name. Returns whether an actor had it.
    pub fn unpublish(&self, name: &str) -> bool {
        self.theater_core.registry.unpublish(name)
    }

    /// Looks up the actor published as `playhouse://host:port/name`.
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
                        // The link belonged to a theater that has ended. It may have a successor at that address, and a look-up
                        // changes nothing.
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
            // The resolution of a host name may take a while.
            Err(_) => self.theater_core.soon(Box::new(move || look_up(resolve(&host)))),
        }
        find
    }

    /// Starts `actor` in the theater `peer`. Its reference can be used at once, because messages to it are queued after its
    /// state.
    ///
    /// If the peer cannot start it, messages to it become dead letters in that theater, and asks fail.
    ///
    /// A mobile actor counts as born in this theater, as if it had migrated from it: this theater notes its locations (see
    /// [`evacuate`](Theater::evacuate) for the safe end of a theater). An immobile actor whose reference is passed on at once is
    /// reached over this theater.
    ///
    /// While the link's window is full, this call blocks a thread outside of actors until there is room. A handler is not
    /// blocked: the actor's stage waits for room after the handler.
    ///
    /// # Errors
    /// The theater is lost, or cannot start actors of this type. In a handler, an error is also returned if more than 16 windows
    /// and 32 MiB of started actors wait.
    pub fn spawn_at<A: Remote + Serialize + DeserializeOwned>(
        &self,
        peer: &Peer,
        actor: &A,
    ) -> Result<ActorRef<A>, WireError> {
        let panicked = || Err(WireError::new("its `Serialize` panicked"));
        let write = |codec: Codec, out: &mut Vec<u8>| contained(|| codec.write(actor, out)).unwrap_or_else(panicked);
        peer.link.spawn((TypeId::of::<A>(), type_name::<A>()), false, write, |core, stage, forwarder| {
            let actor = spawn_stub::<A>(core, StubPlacement::Link(stage), forwarder);
            (actor.id(), actor)
        })
    }

    /// Migrates `actor` to the theater `to`, with its state, its mail, its timers and its watchers. References to it stay valid
    /// in all theaters, messages to it keep their order, and asks are answered.
    ///
    /// The actor leaves after its current message. If it cannot leave, it continues in this theater unchanged. If it belongs to a
    /// [group](Group), the group moves: see [`migrate_group`](Theater::migrate_group).
    ///
    /// # Errors
    /// When awaited: the reason why it stays.
    ///
    /// # Cancel safety
    /// Dropping the answer changes nothing.
    pub fn migrate<A: Mobile>(&self, actor: ActorRef<A>, to: &Peer) -> Migration {
        let answer = Answer::new(&self.theater_core);
        let migration = Migration(Arc::clone(&answer));
        self.theater_core.migrate(actor.id(), Arc::clone(&to.link), Box::new(move |done| answer.give(done)));
        migration
    }

    /// Migrates all actors of `group` that live in this theater to the theater `to`, where they share a stage again: all of them,
    /// or none. Each migrates as by [`migrate`](Theater::migrate).
    ///
    /// They leave at a moment at which all of them are between two messages. While one awaits something, the others continue
    /// their work. (If there is no such moment for 10 seconds, they stay.) Members that other actors start in this theater after
    /// that moment are left behind. If the group is moving already, this migration begins after that one.
    ///
    /// If the connection breaks, the migration continues. If the other theater is lost before it has confirmed their arrival, all
    /// of them continue in this theater.
    ///
    /// # Errors
    /// When awaited: the reason why they stay. Each of them is told it as well
    /// ([`migration_failed`](playhouse_actor::Actor::migration_failed)). If the reason concerns one actor,
    /// [`MigrateError::Member`] names it.
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

    /// Has this theater migrate its mobile actors to others by itself, until the returned guard is dropped. It sends actors away and fetches none:
    /// each theater that is to give actors needs its own policy. The guarantees for migrating actors hold.
    ///
    /// Both policies may be active at once.
    pub fn rebalance(&self, balance: Rebalance) -> RebalanceGuard {
        self.theater_core.rebalance(balance)
    }

    /// Returns the group that `actor` was started in, wherever it lives.
    pub fn group_of<A: Mobile>(&self, actor: ActorRef<A>) -> Option<Group> {
        let mut groups = self.theater_core.directory.groups();
        let name = groups.of(actor.id())?;
        Some(Group::of(name, groups.stage_of(name, || actor.id().address().stage())))
    }

    /// Migrates all mobile actors of this theater to other theaters in turn, also actors that start during the evacuation. Actors
    /// of a [group](Group) migrate together, and follow the part of the group that has migrated before. An actor that one theater
    /// refuses is offered to the others, too.
    ///
    /// From now on, this theater refuses incoming actors: such an actor stays in its theater, and is told the reason. Actors
    /// accepted before still arrive, and are migrated further. An actor that has not arrived after 10 seconds is reported in
    /// [`stayed`](EvacuationReport::stayed).
    ///
    /// Blocks until no actor is left that could be migrated. It also waits until the other theaters send directly to the new
    /// locations, and have received the answers routed over this theater; each wait takes at most 10 seconds. After that, this
    /// theater may end. The call waits without a limit for the running handlers of these actors.
    ///
    /// If `to` is empty, because all other theaters have ended, all mobile actors stay and are reported.
    ///
    /// # Panics
    /// Inside an actor.
    #[track_caller]
    pub fn evacuate(&self, to: &[Peer]) -> EvacuationReport {
        assert_outside("`evacuate`", "call it in the main thread, which an actor can notify");
        /// Maximum number of concurrent migrations.
        const UNDER_WAY_MAX: usize = 512;
        let mut evacuation = EvacuationReport::default();
        let mut stay: HashSet<ActorId> = HashSet::new();
        // The theaters that have refused an actor or a group, by the actor or the group's first member. A theater that is being
        // evacuated itself takes no actor.
        let mut refused: HashMap<ActorId, Vec<u64>> = HashMap::new();
        let mut deadline = self.theater_core.now() + SHUTDOWN_NOTICE_MAX;
        let mut have_changed = false;
        self.theater_core.refuse_incoming_actors();
        loop {
            let came = self.theater_core.directory.begun();
            // This load precedes the list, because an actor that has arrived in its cell by then is in the list.
            let awaits = self.theater_core.directory.awaits_arrivals();
            let mut leaving = Vec::new();
            self.theater_core.system.core().each_resident(|address, resident| {
                let id = ActorId::of(address);
                if self.theater_core.registry.is_mobile(resident) && !stay.contains(&id) {
                    leaving.push(id);
                }
            });
            // In simulation, the order must not depend on the addresses in memory.
            self.theater_core.directory.sort(&mut leaving);
            if leaving.is_empty() {
                // An incoming actor does not begin while the lock is held. Therefore each is still pending, or is arriving, or
                // has arrived since the list was made.
                let (mut coming, begins, has_come) = {
                    let incoming_actors = self.theater_core.directory.incoming_actors();
                    let directory = &self.theater_core.directory;
                    (incoming_actors.stubs(), directory.is_any_arriving(), directory.begun() != came)
                };
                let begins = begins && self.theater_core.now() < deadline + SHUTDOWN_NOTICE_MAX;
                if has_come || begins || awaits && self.theater_core.now() < deadline {
                    // They begin soon, or do not come.
                    self.theater_core.pause(Duration::from_millis(1));
                } else if have_changed {
                    self.theater_core.directory.sort(&mut coming);
                    let why = || MigrateError::Unreachable("its migration to this theater has not begun".to_owned());
                    evacuation.stayed.extend(coming.into_iter().map(|id| (id, why())));
                    return evacuation;
                } else {
                    self.theater_core.announce_evacuation();
                    // Other theaters may have learned of this theater again from an actor that has arrived since then and
                    // migrated on by itself.
                    have_changed = self.theater_core.directory.begun() == came || self.theater_core.now() >= deadline;
                }
                continue;
            }
            if to.is_empty() {
                stay.extend(&leaving);
                leaving.retain(|id| !self.theater_core.directory.is_remote(*id));
                let why = || MigrateError::Unreachable("there is no theater to take it".to_owned());
                evacuation.stayed.extend(leaving.into_iter().map(|id| (id, why())));
                continue;
            }
            let mut under_way: VecDeque<(ActorId, Vec<ActorId>, u64, Migration)> = VecDeque::new();
            let mut end = |(first, who, peer, migration): (ActorId, Vec<ActorId>, u64, Migration),
                           refused: &mut HashMap<ActorId, Vec<u64>>| match migration.wait() {
                Ok(()) => evacuation.moved += who.len(),
                // These actors have left in either case.
                Err(MigrateError::Stopped | MigrateError::Elsewhere) => {}
                Err(why) => {
                    use MigrateError::{Member, Refused, TheaterLost};
                    let refused = refused.entry(first).or_default();
                    refused.push(peer);
                    let is_left = to.iter().any(|peer| !refused.contains(&peer.link.incarnation));
                    if is_left && matches!(why, Refused(_) | Member { .. } | TheaterLost) {
                        // Actors that are still in this theater are offered to another one.
                        return;
                    }
                    stay.extend(&who);
                    evacuation.stayed.extend(who.into_iter().map(|id| (id, why.clone())));
                }
            };
            let pending_groups = self.theater_core.directory.groups().pending_groups(leaving);
            for ((group, mut who), nth) in pending_groups.into_iter().zip(0..) {
                let first = who[0];
                // Their cells may not know yet that they have migrated with others.
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
            (have_changed, deadline) = (false, self.theater_core.now() + SHUTDOWN_NOTICE_MAX);
        }
    }

    /// Ends the theater. It waits until all messages are handled and the other theaters have received theirs, for at most
    /// `limit`. Then it announces its shutdown, after which the others consider it lost at once, and shuts its system down. The
    /// announcement alone waits no longer for a theater that is silent for 1 second, or unreachable for 3.
    ///
    /// It returns within `limit`, a fifth of it, and 0.8 seconds, plus the time of dead-letter hooks and drops of undelivered
    /// messages on this thread. Incoming actors are refused from the beginning, and stay in their theaters. Actors are not
    /// notified of the loss of the others. After the call, another theater can listen at the address; the call waits up to 5
    /// seconds for a transport that frees it late.
    ///
    /// # Errors
    /// The same as of [`System::shutdown`].
    ///
    /// # Panics
    /// Inside an actor, because it would wait for itself, or block the worker.
    #[track_caller]
    pub fn shutdown_within(self, limit: Duration) -> Result<ShutdownReport, ShutdownError> {
        assert_outside("`shutdown`", "call it in the main thread, which an actor can notify");
        /// Minimum time, after `limit`, for the shutdown announcement and for handlers to return. Each of the two has a tenth of
        /// `limit`, or this time.
        const GRACE_MIN: Duration = Duration::from_millis(200);
        /// Maximum time for the calls in progress. The theaters that they reach hear the announcement.
        const CALLS_END_MAX: Duration = Duration::from_millis(500);
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
        self.theater_core.refuse_incoming_actors();
        let left = || deadline.saturating_sub(self.theater_core.now());
        let core = self.theater_core.system.core();
        core.drain(left());
        self.theater_core.await_messages(deadline);
        // Kept messages may have gone on to stages that wait for full links.
        core.drain(left());
        settle(&self.theater_core.all_links(), deadline, &Link::is_settled);
        let links = self.theater_core.last_links(deadline.min(self.theater_core.now().saturating_add(CALLS_END_MAX)));
        for link in &links {
            link.end_departures();
        }
        for link in &links {
            link.say_goodbye();
        }
        let said = self.theater_core.now();
        let is_heard = |link: &Link| {
            let announced_for = self.theater_core.now().saturating_sub(said);
            link.is_goodbye_settled() || !link.may_hear_goodbye(announced_for)
        };
        settle(&links, deadline.max(said.saturating_add(grace)), &is_heard);
        self.theater_core.close();
        self.theater_core.lose_links(left().max(grace));
        self.theater_core.system.clone().shutdown_within(left())
    }

    /// Does the same as [`Theater::shutdown_within`] in a thread of its own, for async code outside of actors: the thread of the
    /// caller is not blocked. The shutdown continues if the future is dropped.
    ///
    /// # Errors
    /// Actors are stuck, as for [`System::shutdown`].
    ///
    /// # Panics
    /// Inside an actor, like [`Theater::shutdown_within`].
    #[track_caller]
    pub fn shutdown_async(self, limit: Duration) -> Ending {
        assert_outside("`shutdown_async`", "call it in a task outside of actors, which an actor can notify");
        Ending::of(move || self.shutdown_within(limit))
    }

    /// Does the same as [`Theater::shutdown_within`] with a limit of 5 seconds.
    ///
    /// # Errors
    /// The same as of [`System::shutdown`].
    ///
    /// # Panics
    /// Like [`Theater::shutdown_within`].
    #[track_caller]
    pub fn shutdown(self) -> Result<ShutdownReport, ShutdownError> {
        self.shutdown_within(Duration::from_secs(5))
    }
}
