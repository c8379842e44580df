//! Tests: a member that invents names, claims actors that it does not have, and fills the state kept for it.

use std::any::type_name;
use std::sync::mpsc::{self, Receiver, Sender};

use playhouse_actor::away::{Origin, RefName, StubPlacement, spawn_stub};
use playhouse_actor::wire::{Remote, WireForm};
use playhouse_actor::{Actor, ActorRef, Context, GroupName, Handler, Message, remote};
use serde::{Deserialize, Serialize};

use super::*;
use crate::link::frame::{HOPS_MAX, MetadataForm, Wire};
use crate::naming::{BadName, Epoch, NAMES_MAX, RemoteActorId};
use crate::{Peer, Theater};

pub(in crate::link) const LIMIT: Duration = Duration::from_secs(60);

/// Passes on the references that it receives.
struct Keeper(Sender<ActorRef<Guest>>);
#[derive(Serialize, Deserialize)]
struct Keep(ActorRef<Guest>);
impl Message for Keep {
    type Reply = ();
    const WIRE: Option<WireForm<Keep>> = Some(WireForm::of());
}
impl Actor for Keeper {}
impl Handler<Keep> for Keeper {
    fn handle(&mut self, Keep(guest): Keep, _: &mut Context<Self>) {
        self.0.send(guest).unwrap();
    }
}
remote!(Keeper: Keep);

pub(in crate::link) fn theaters<const COUNT: usize>() -> [Theater; COUNT] {
    [(); COUNT].map(|()| Theater::builder().listen("127.0.0.1:0").start().unwrap())
}

fn find<A: playhouse_actor::wire::Remote>(from: &Theater, at: &Theater, name: &str) -> ActorRef<A> {
    from.find::<A>(&format!("playhouse://{}/{name}", at.address().unwrap())).wait().unwrap()
}

/// Returns the name of an actor of `theater`.
pub(in crate::link) fn name(theater: &Theater, id: ActorId) -> RemoteActorId {
    let name = theater.theater_core.directory.slot_name(id).unwrap();
    name.of(theater.theater_core.incarnation, theater.address())
}

fn invented(name: RemoteActorId) -> RemoteActorId {
    RemoteActorId { capability: name.capability ^ 1, ..name }
}

fn other(name: RemoteActorId) -> RefName {
    let RemoteActorId { theater, address, slot, incarnation, capability } = name;
    RefName::Other { theater, address: address.unwrap(), slot, incarnation, capability }
}

pub(in crate::link) fn bytes(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    Codec::Positional.write(value, &mut bytes).unwrap();
    bytes
}

/// A hostile member that is linked with a theater.
struct Hostile {
    raw: Raw,
    kinds: Arc<Registry>,
    /// The theater's view of it.
    peer: Peer,
}

impl Hostile {
    fn of(theater: &Theater) -> Hostile {
        let before: Vec<u64> = theater.peers().iter().map(|peer| peer.link.number).collect();
        let raw = Raw::call(theater);
        let mut peer = None;
        eventually(|| {
            peer = theater.peers().into_iter().find(|peer| !before.contains(&peer.link.number));
            peer.is_some()
        });
        Hostile { raw, kinds: Arc::clone(&theater.theater_core.registry), peer: peer.unwrap() }
    }

    fn say(&mut self, lane: session::Lane, head: &Head, rest: &[u8]) {
        self.raw.say_with(lane, head, rest);
        self.raw.write();
    }

    fn name(&mut self, handle: Handle, name: RemoteActorId) {
        self.say(session::Lane::System, &Head::Name { handle, name: name.slot_name() }, &[]);
    }

    /// Tells the keeper with the handle 0.
    fn tell(&mut self, reference: RefName) {
        let table = self.kinds.table(self.kinds.kinds());
        let (kind, _) = table.message(TypeId::of::<Keeper>(), TypeId::of::<Keep>(), "Keep").unwrap();
        let head = Head::Tell { to: 0, kind, codec: Wire::Positional };
        self.say(session::Lane::Normal, &head, &bytes(&reference));
    }

    /// Says that an actor comes, with this count, and was committed.
    fn moves(&mut self, name: RemoteActorId, count: u64) {
        let table = self.kinds.table(self.kinds.kinds());
        let (kind, _) = table.spawn(TypeId::of::<Counts>(), "Counts").unwrap();
        let born = name.birth_name();
        let head = Head::Move { ask: 0, kind, codec: Wire::Positional, born, from: name.slot_name() };
        self.say(session::Lane::Normal, &head, &state(count));
        self.say(session::Lane::Normal, &Head::Begin { born }, &[]);
    }
}

fn state(count: u64) -> Vec<u8> {
    state_of(&Counts(count, None))
}

/// Starts a keeper in `theater`, with the handle 0 for `hostile`.
fn keeper(theater: &Theater, hostile: &mut Hostile) -> Receiver<ActorRef<Guest>> {
    let (keep, kept) = mpsc::channel();
    let keeper = theater.system().spawn(Keeper(keep));
    theater.publish("keeper", keeper).unwrap();
    hostile.name(0, name(theater, keeper.id()));
    kept
}

// GUARANTEE: A name includes its capability
#[test]
fn an_invented_name_does_not_take_the_place_of_the_true_one() {
    let [owner, user] = theaters();
    let mut hostile = Hostile::of(&user);
    let kept = keeper(&user, &mut hostile);
    let guest = owner.system().spawn(Guest);
    // The user meets the actor by the invented name first.
    hostile.tell(other(invented(name(&owner, guest.id()))));
    let false_one = kept.recv_timeout(LIMIT).unwrap();
    find::<Keeper>(&owner, &user, "keeper").tell(Keep(guest));
    let true_one = kept.recv_timeout(LIMIT).unwrap();
    assert_eq!(true_one.ask(Greet).within(LIMIT).wait(), Ok(true_one));
    assert_eq!(false_one.ask(Greet).within(LIMIT).wait(), Err(AskError::Stopped));
    assert!(!hostile.peer.is_lost());
}

// GUARANTEE: A name includes its capability
#[test]
fn an_invented_name_of_a_known_actor_is_refused() {
    let [owner, user] = theaters();
    let mut hostile = Hostile::of(&user);
    let kept = keeper(&user, &mut hostile);
    let guest = owner.system().spawn(Guest);
    find::<Keeper>(&owner, &user, "keeper").tell(Keep(guest));
    let known = kept.recv_timeout(LIMIT).unwrap();
    let own = user.system().spawn(Guest);
    hostile.tell(other(invented(name(&owner, guest.id()))));
    hostile.tell(other(invented(name(&user, own.id()))));
    hostile.tell(other(name(&user, own.id())));
    assert_eq!(kept.recv_timeout(LIMIT), Ok(own));
    assert_eq!(user.system().stats().total.dead_letters, 2);
    assert_eq!(known.ask(Greet).within(LIMIT).wait(), Ok(known));
}

// GUARANTEE: A name includes its capability
#[test]
fn a_move_with_an_invented_name_changes_nothing_and_costs_its_peer_the_link() {
    let [owner] = theaters();
    let (tell, told) = mpsc::channel();
    let user =
        Theater::builder().listen("127.0.0.1:0").on_rejected_peer(move |error| drop(tell.send(error.to_string())));
    let user = user.start().unwrap();
    let counts = owner.system().spawn(Counts(0, None));
    owner.publish("counts", counts).unwrap();
    let known = find::<Counts>(&user, &owner, "counts");
    let own = user.system().spawn(Counts(0, None));
    let names = [name(&owner, counts.id()), name(&user, own.id())];
    for name in names {
        let mut hostile = Hostile::of(&user);
        hostile.moves(invented(name), 666);
        eventually(|| hostile.peer.is_lost());
        let why = hostile.peer.protocol_error().expect("its peer broke the protocol").to_string();
        assert!(why.contains("has another capability"), "{why}");
        assert_eq!(told.recv_timeout(LIMIT), Ok(why));
        for counts in [known, own] {
            assert_eq!(counts.ask(Sum).within(LIMIT).wait(), Ok(0));
        }
    }
    assert_eq!(user.theater_core.directory.migrations(), (0, 0));
}

// GUARANTEE: Markers end
#[test]
fn a_claim_that_an_actor_comes_which_its_theater_has_is_followed_for_a_while_only() {
    let [owner, user] = theaters();
    let counts = owner.system().spawn(Counts(0, None));
    owner.publish("counts", counts).unwrap();
    let known = find::<Counts>(&user, &owner, "counts");
    let mut hostile = Hostile::of(&user);
    hostile.moves(name(&owner, counts.id()), 666);
    let rerouting = || user.theater_core.directory.rerouting().len();
    eventually(|| user.theater_core.directory.migrations() == (1, 0));
    eventually(|| rerouting() == 0);
    assert!(known.ask(Sum).within(LIMIT).wait().is_ok());
    assert_eq!(counts.ask(Sum).within(LIMIT).wait(), Ok(0));
}

// -- frame by frame -----------------------------------------------------------------------------------------------------

/// Makes a link with a member that is not connected: the test gives it the frames to read.
pub(in crate::link) fn rejected_peer(theater: &Theater, incarnation: u64) -> Arc<Link> {
    let link_table = &theater.theater_core.link_table;
    let names = (incarnation, None, None);
    let link = Link::new(link_table, incarnation, names, link_table.registry.kinds(), (64 * 1024, Arc::default()));
    link_table.add_link(incarnation, &link);
    link
}

impl Link {
    pub(in crate::link) fn receives(&self, head: &Head, rest: &[u8]) {
        let mut frame = Vec::new();
        head.write(&mut frame).unwrap();
        frame.extend_from_slice(rest);
        let _ = contained(|| self.take_of_rejected_peer(&frame));
    }

    /// Takes the frames that it has written.
    pub(in crate::link) fn says(&self) -> Vec<(Head, Vec<u8>)> {
        let mut said = Vec::new();
        let outbound = std::mem::replace(&mut lock(&self.out).outbound, Outbound::new(FRAME_BYTES_MAX));
        outbound.drain(|_, frame| {
            let (head, rest) = Head::read(frame).unwrap();
            said.push((head, rest.to_vec()));
        });
        said
    }

    /// Returns the stub of the other end's actor with this birth name.
    pub(in crate::link) fn stub_of_its(&self, slot: u64, capability: u64) -> ActorId {
        self.meet_any(RefName::Mine { slot, incarnation: 1, capability }).unwrap()
    }

    fn meet_any(&self, name: RefName) -> Result<ActorId, WireError> {
        self.meet(name, &|core, stub_placement, forwarder| spawn_stub::<Guest>(core, stub_placement, forwarder).id())
    }

    pub(in crate::link) fn named(&self, handle: Handle, name: RemoteActorId) {
        self.receives(&Head::Name { handle, name: name.slot_name() }, &[]);
    }
}

pub(in crate::link) fn kind_of<A: 'static>(theater: &Theater) -> u32 {
    let registry = &theater.theater_core.registry;
    registry.table(registry.kinds()).spawn(TypeId::of::<A>(), "?").unwrap().0
}

pub(in crate::link) fn moves(theater: &Theater, born: RemoteActorId) -> Head {
    Head::Move {
        ask: 0,
        kind: kind_of::<Guest>(theater),
        codec: Wire::Positional,
        born: born.birth_name(),
        from: born.slot_name(),
    }
}

pub(in crate::link) fn incoming_state() -> Vec<u8> {
    state_of(&Guest)
}

/// Writes an `incoming_state` with a departure of this epoch.
pub(in crate::link) fn incoming_state_with(epoch: Epoch) -> Vec<u8> {
    written(&Guest, epoch)
}

/// Writes an actor.
pub(in crate::link) fn state_of(actor: &impl Serialize) -> Vec<u8> {
    written(actor, Epoch::default())
}

fn written(actor: &impl Serialize, epoch: Epoch) -> Vec<u8> {
    let watching = Vec::new();
    let metadata = MetadataForm {
        name: None,
        supervisor_link: None,
        watching,
        last_timer: 0,
        timers: Vec::new(),
        receive_timeout: None,
        birth: None,
        epoch,
    };
    bytes(&(metadata, actor))
}

pub(in crate::link) fn remote(theater: u64, slot: u64, capability: u64) -> RemoteActorId {
    RemoteActorId { theater, address: None, slot, incarnation: 1, capability }
}

// GUARANTEE: A name includes its capability
#[test]
fn a_theater_that_contradicts_itself_is_lost() {
    let [theater] = theaters();
    let link = rejected_peer(&theater, 10);
    let id = link.stub_of_its(1, 7);
    assert_eq!(link.stub_of_its(1, 7), id);
    link.meet_any(RefName::Mine { slot: 1, incarnation: 1, capability: 8 }).unwrap_err();
    assert_eq!(link.fault.get(), Some(&Fault::Name(BadName::Invented(remote(10, 1, 0).birth()))));
    assert_eq!(link.stub_of_its(1, 7), id);
}

/// An actor that does not migrate.
#[derive(Serialize, Deserialize)]
struct Fixed;
impl Actor for Fixed {}
remote!(spawn Fixed: );

pub(in crate::link) fn started<A: Remote + Serialize>(link: &Link, actor: &A) -> ActorId {
    let stub = |core: &SystemCore, stage, forwarder| {
        let id = spawn_stub::<A>(core, StubPlacement::Link(stage), forwarder).id();
        (id, id)
    };
    let write = |codec: Codec, out: &mut Vec<u8>| codec.write(actor, out);
    link.spawn((TypeId::of::<A>(), type_name::<A>()), false, write, stub).unwrap()
}

// GUARANTEE: A name includes its capability
#[test]
fn a_started_actor_is_named_once_and_no_other_one_is() {
    let [theater] = theaters();
    let directory = &theater.theater_core.directory;
    let links = [10, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let named = |slot, capability| Head::Named { handle: 0, name: remote(10, slot, capability).slot_name() };
    let started = started(&links[0], &Fixed);
    let known = links[1].stub_of_its(1, 7);
    for (link, capability) in links.iter().zip([7, 7]) {
        link.receives(&named(1, capability), &[]);
        assert_eq!(link.fault.get(), None);
    }
    links[0].receives(&named(2, 9), &[]);
    assert_eq!(links[0].fault.get(), Some(&Fault::Name(BadName::Renamed(remote(10, 2, 0).birth()))));
    assert_eq!(directory.identity(started).unwrap().birth_name(), remote(10, 1, 7).birth_name());
    links[1].receives(&named(2, 9), &[]);
    assert_eq!(directory.identity(known).unwrap().birth_name(), remote(11, 1, 7).birth_name());
}

#[test]
fn a_mobile_actor_started_in_another_theater_keeps_its_birth_name() {
    let [theater] = theaters();
    let directory = &theater.theater_core.directory;
    let links = [10, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let named = |slot, capability| Head::Named { handle: 0, name: remote(10, slot, capability).slot_name() };
    // The second one has come from that theater, and lives in it again.
    let (started, own) = (started(&links[0], &Guest), theater.system().spawn(Guest).id());
    let _route = links[1].adopt(own, &remote(11, 1, 7)).unwrap();
    directory.note_stub(own, remote(11, 1, 7), None);
    let names = [started, own].map(|id| directory.identity(id).unwrap().birth_name());
    assert!(!directory.view(started).has_begun());
    for (slot, capability) in [(1, 7), (2, 9)] {
        links.iter().for_each(|link| link.receives(&named(slot, capability), &[]));
        assert!(directory.view(started).has_begun());
        assert_eq!(directory.at(started).unwrap().birth_name(), remote(10, 1, 7).birth_name());
        assert_eq!(directory.at(own).unwrap().birth_name(), remote(11, 1, 7).birth_name());
        assert_eq!([started, own].map(|id| directory.identity(id).unwrap().birth_name()), names);
    }
}

/// Even its birth theater cannot.
#[test]
fn an_actor_is_not_started_by_a_name_that_another_one_has() {
    let [theater] = theaters();
    let [link, other] = [10, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let kind = kind_of::<Guest>(&theater);
    let start = |link: &Arc<Link>, handle, born| {
        link.says();
        link.receives(
            &Head::Spawn { handle, kind, codec: Wire::Positional, born, epoch: Epoch::default() },
            &bytes(&Guest),
        );
        let said = link.says();
        (lock(&link.inn).targets.get(handle).map(|target| target.id), said.len())
    };
    let (first, said) = start(&link, 0, remote(10, 1, 7).slot_name());
    assert!(first.is_some_and(|first| !first.address().is_stale()) && said == 1);
    assert_eq!(start(&link, 1, remote(10, 1, 7).slot_name()), (None, 0));
    assert_eq!(link.fault.get(), None);
    // Another capability makes the name an invented one: its theater contradicts itself.
    assert_eq!(start(&link, 2, remote(10, 1, 8).slot_name()).0, None);
    assert_eq!(link.fault.get(), Some(&Fault::Name(BadName::Invented(remote(10, 1, 0).birth()))));
    // The same numbers of another theater are another name.
    let (second, _) = start(&other, 0, remote(10, 1, 7).slot_name());
    assert!(second.is_some() && second != first);
}

// GUARANTEE: A name includes its capability
#[test]
fn an_actor_begins_when_it_was_left_by_its_whole_name() {
    let [theater] = theaters();
    let [link, other] = [10, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    link.receives(&moves(&theater, remote(10, 1, 7)), &incoming_state());
    let stub = theater.theater_core.directory.known_as(remote(10, 1, 7).birth_name()).unwrap();
    let is_here = || !theater.theater_core.directory.is_remote(stub);
    let begin = |capability| Head::Begin { born: remote(10, 1, capability).birth_name() };
    link.receives(&begin(8), &[]);
    other.receives(&begin(7), &[]);
    assert!(!is_here());
    link.says();
    link.receives(&begin(7), &[]);
    assert!(is_here());
    assert_eq!(link.says(), [(Head::Begun { born: remote(10, 1, 7).birth_name() }, Vec::new())]);
    link.receives(&begin(7), &[]);
    assert_eq!(link.says(), []);
}

// GUARANTEE: Alive once
#[test]
fn an_incoming_actor_of_a_lost_theater_does_not_begin() {
    let [theater] = theaters();
    let link = rejected_peer(&theater, 10);
    link.receives(&moves(&theater, remote(10, 1, 7)), &incoming_state());
    link.lose();
    link.receives(&Head::Begin { born: remote(10, 1, 7).birth_name() }, &[]);
    theater.system().run_until_idle();
    assert_eq!(theater.theater_core.directory.migrations(), (0, 0));
}

// GUARANTEE: An actor that cannot migrate stays
#[test]
fn an_actor_stays_where_a_theater_never_says_that_it_has_what_was_sent() {
    let theater = Theater::builder().listen("127.0.0.1:0").lost_after(Duration::from_millis(200)).start().unwrap();
    let [silent, target] = [10, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let told = silent.stub_of_its(1, 7);
    let guest = theater.system().spawn(Guest);
    (theater.theater_core.registry.controls(told).unwrap().stop)(told, true);
    eventually(|| silent.says().iter().any(|(head, _)| matches!(head, Head::Stop { .. })));
    let (done, ended) = mpsc::channel();
    theater.theater_core.migrate(guest.id(), Arc::clone(&target), Box::new(move |moved| done.send(moved).unwrap()));
    let mut said = Vec::new();
    eventually(|| {
        said.extend(target.says());
        said.iter().any(|(head, _)| matches!(head, Head::Move { .. }))
    });
    let ask = said.iter().find_map(|(head, _)| if let Head::Move { ask, .. } = head { Some(*ask) } else { None });
    let location = ActorLocation { theater: 11, address: None, slot: 1, incarnation: 1, capability: 9 };
    let accepted = bytes(&Result::<ActorLocation, String>::Ok(location));
    target.receives(&Head::Answer { ask: ask.unwrap(), codec: Wire::Positional }, &accepted);
    assert!(matches!(ended.recv_timeout(LIMIT).unwrap(), Err(playhouse_actor::MigrateError::Unreachable(_))));
    assert!(silent.says().iter().any(|(head, _)| matches!(head, Head::Fence { .. })));
    assert!(target.says().iter().any(|(head, _)| matches!(head, Head::Stays { .. })));
    assert_eq!(guest.ask(Greet).within(LIMIT).wait(), Ok(guest));
}

#[test]
fn an_incoming_actor_that_stays_does_not_begin_and_may_come_again() {
    let [theater] = theaters();
    let link = rejected_peer(&theater, 10);
    let comes = moves(&theater, remote(10, 1, 7));
    link.receives(&comes, &incoming_state());
    link.receives(&Head::Stays { born: remote(10, 1, 7).birth_name() }, &[]);
    link.receives(&Head::Begin { born: remote(10, 1, 7).birth_name() }, &[]);
    assert_eq!(theater.theater_core.directory.migrations(), (0, 0));
    link.receives(&comes, &incoming_state());
    link.receives(&Head::Begin { born: remote(10, 1, 7).birth_name() }, &[]);
    assert_eq!(theater.theater_core.directory.migrations(), (1, 0));
}

// GUARANTEE: A name includes its capability
#[test]
fn an_actor_of_this_theater_does_not_arrive() {
    let [theater] = theaters();
    let link = rejected_peer(&theater, 10);
    let own = theater.system().spawn(Guest);
    link.receives(&moves(&theater, name(&theater, own.id())), &incoming_state());
    let said = link.says();
    let [(Head::Answer { ask: 0, .. }, answer)] = &said[..] else { panic!("{said:?}") };
    let answer: Result<ActorLocation, String> = Codec::Positional.read(answer).unwrap();
    assert_eq!(answer, Err("it has the actor already".to_owned()));
    assert_eq!(own.ask(Greet).within(LIMIT).wait(), Ok(own));
    // Disconnected theaters may both have an actor: nothing is invented.
    assert_eq!(link.fault.get(), None);
}

// GUARANTEE: A name includes its capability
#[test]
fn a_member_of_a_group_with_an_invented_name_does_not_come_and_costs_its_peer_the_link() {
    let [theater] = theaters();
    let own = theater.system().spawn(Guest);
    let link = rejected_peer(&theater, 10);
    link.receives(&member(&theater, 1, 0, invented(name(&theater, own.id()))), &incoming_state());
    assert!(matches!(link.fault.get(), Some(Fault::Name(BadName::Invented(_)))));
    assert!(together(&link, 1, 1).is_err());
    assert_eq!(own.ask(Greet).within(LIMIT).wait(), Ok(own));
}

// GUARANTEE: A name includes its capability
#[test]
fn a_group_keeps_its_actors_whatever_others_say() {
    let [theater] = theaters();
    let link = rejected_peer(&theater, 10);
    let own = theater.system().spawn(Guest).id();
    let [mine, yours] = [1, 2].map(|number| GroupName { theater: 10, number });
    let member = |group, slot| {
        let born = ActorLocation { theater: 10, address: None, slot, incarnation: 1, capability: 7 };
        RefName::Member { group, born, at: None }
    };
    let id = link.meet_any(member(mine, 1)).unwrap();
    assert_eq!(link.meet_any(member(yours, 1)), Ok(id));
    let RemoteActorId { theater: birth, slot, incarnation, capability, .. } = name(&theater, own);
    let born = ActorLocation { theater: birth, address: None, slot, incarnation, capability };
    let claimed = RefName::Member { group: yours, born, at: Some(born) };
    assert_eq!(link.meet_any(claimed), Ok(own));
    let groups = theater.theater_core.directory.groups();
    assert_eq!((groups.of(id), groups.of(own)), (Some(mine), None));
}

/// Returns a stub in `theater` that leads over one link, and is known over another one as 0.
fn known_stub(theater: &Theater) -> ([Arc<Link>; 2], ActorId) {
    let links = [10, 11].map(|incarnation| rejected_peer(theater, incarnation));
    let id = links[1].stub_of_its(1, 7);
    links[0].named(0, name(theater, id));
    links[1].says();
    (links, id)
}

fn markers(link: &Link) -> Vec<(Origin, u16)> {
    let said = link.says().into_iter();
    said.filter_map(|(head, _)| if let Head::Marker { origin, hops, .. } = head { Some((origin, hops)) } else { None })
        .collect()
}

// GUARANTEE: Markers end
#[test]
fn a_marker_goes_over_a_bounded_number_of_links() {
    let [theater] = theaters();
    let ([from, to], _) = known_stub(&theater);
    let origin = Origin { theater: 12, slot: 1, incarnation: 1, reroute: 1, capability: 3 };
    let marker = |hops| Head::Marker { to: 0, ask: u64::from(hops), origin, hops };
    from.receives(&marker(HOPS_MAX - 1), &[]);
    let mut passed = Vec::new();
    eventually(|| {
        passed.extend(markers(&to));
        !passed.is_empty()
    });
    assert_eq!(passed, [(origin, HOPS_MAX)]);
    from.receives(&marker(HOPS_MAX), &[]);
    let said = from.says();
    assert!(said.iter().any(|(head, _)| *head == Head::Failed { ask: u64::from(HOPS_MAX) }), "{said:?}");
    theater.system().run_until_idle();
    assert_eq!(markers(&to), []);
}

// GUARANTEE: Markers end
#[test]
fn a_marker_that_this_theater_has_not_sent_ends_no_reroute() {
    let [theater] = theaters();
    let ([from, to], _) = known_stub(&theater);
    // The actor comes, and the marker of its stub is on its way to its former theater.
    from.receives(&moves(&theater, remote(11, 1, 7)), &incoming_state());
    from.receives(&Head::Begin { born: remote(11, 1, 7).birth_name() }, &[]);
    let mut sent = Vec::new();
    eventually(|| {
        sent.extend(markers(&to));
        !sent.is_empty()
    });
    let rerouting = || theater.theater_core.directory.rerouting().len();
    let (origin, hops) = sent[0];
    from.receives(
        &Head::Marker { to: 0, ask: 1, origin: Origin { capability: origin.capability ^ 1, ..origin }, hops },
        &[],
    );
    assert_eq!(rerouting(), 1);
    from.receives(&Head::Marker { to: 0, ask: 2, origin, hops }, &[]);
    assert_eq!(rerouting(), 0);
}

// -- bounds -------------------------------------------------------------------------------------------------------------

// GUARANTEE: The state kept for a theater is bounded
#[test]
fn numbers_of_actors_come_one_after_the_other_and_are_bounded() {
    let [theater] = theaters();
    let own = name(&theater, theater.system().spawn(Guest).id());
    let [skips, doubles, counts] = [10, 11, 12].map(|incarnation| rejected_peer(&theater, incarnation));
    skips.named(1, own);
    assert_eq!(skips.fault.get(), Some(&Fault::Handle { found: 1, next: 0 }));
    doubles.named(0, own);
    doubles.named(0, own);
    assert_eq!(doubles.fault.get(), Some(&Fault::Handle { found: 0, next: 1 }));
    for handle in 0..HANDLES_MAX as Handle {
        counts.named(handle, own);
    }
    assert_eq!(counts.fault.get(), None);
    counts.named(HANDLES_MAX as Handle, own);
    assert_eq!(counts.fault.get(), Some(&Fault::Handles));
    assert_eq!(lock(&counts.inn).targets.all.len(), HANDLES_MAX);
}

// GUARANTEE: The state kept for a theater is bounded
#[test]
fn a_state_whose_reading_panics_takes_its_number() {
    let [theater] = theaters();
    let own = name(&theater, theater.system().spawn(Guest).id());
    let link = rejected_peer(&theater, 10);
    let state = bytes(&Counts(1, Some(Trap::set(|| panic!("as it is read")))));
    link.receives(
        &Head::Spawn {
            handle: 0,
            kind: kind_of::<Counts>(&theater),
            codec: Wire::Positional,
            born: remote(10, 1, 1).slot_name(),
            epoch: Epoch::default(),
        },
        &state,
    );
    link.named(1, own);
    assert_eq!(link.fault.get(), None);
    assert!(lock(&link.inn).targets.get(1).is_some());
}

// GUARANTEE: The state kept for a theater is bounded
#[test]
fn no_more_actors_are_named_or_sent_than_a_peer_takes() {
    let [theater] = theaters();
    let link = rejected_peer(&theater, 10);
    let spawn = || {
        link.says();
        link.spawn(
            (TypeId::of::<Guest>(), "Guest"),
            false,
            |codec, out| codec.write(&Guest, out),
            |core, stage, forwarder| (spawn_stub::<Guest>(core, StubPlacement::Link(stage), forwarder).id(), ()),
        )
    };
    for _ in 0..HANDLES_MAX / 2 {
        spawn().unwrap();
    }
    let error = spawn().unwrap_err().to_string();
    assert!(error.contains("cannot know more"), "{error}");
    assert!(link.meet_any(RefName::Mine { slot: 1, incarnation: 1, capability: 7 }).is_err());
    // An actor that has migrated to that theater has a number in any case.
    let own = theater.system().spawn(Guest).id();
    assert!(link.adopt(own, &remote(10, 2, 7)).is_ok());
}

// GUARANTEE: The state kept for a theater is bounded
#[test]
fn names_that_one_theater_tells_are_bounded() {
    let [theater] = theaters();
    let link = rejected_peer(&theater, 10);
    let tell = |slot| {
        let address = "127.0.0.1:9".parse().unwrap();
        link.meet_any(RefName::Other { theater: 11, address, slot, incarnation: 1, capability: 7 })
    };
    let told: Vec<ActorId> = (0..NAMES_MAX as u64).map(|slot| tell(slot).unwrap()).collect();
    let error = tell(NAMES_MAX as u64).unwrap_err().to_string();
    assert!(error.contains("must not tell more"), "{error}");
    assert_eq!(tell(0), Ok(told[0]));
    assert_eq!(link.fault.get(), None);
    // Forgotten actors make room.
    assert!(theater.theater_core.directory.forget_actor(told[0]));
    tell(NAMES_MAX as u64).unwrap();
    tell(NAMES_MAX as u64 + 1).unwrap_err();
    theater.theater_core.link_table.lose((11, None), true, |_| false);
    tell(0).unwrap();
}

// GUARANTEE: The state kept for a theater is bounded
#[test]
fn watches_of_one_theater_are_bounded() {
    let [theater] = theaters();
    let link = rejected_peer(&theater, 10);
    link.named(0, name(&theater, theater.system().spawn(Guest).id()));
    let watched = || link.watches.load(Ordering::Relaxed);
    for round in 0..2 {
        let watches = (0..WATCHES_MAX as u64).map(|watch| watch + round * WATCHES_MAX as u64);
        watches.clone().for_each(|watch| link.receives(&Head::Watch { to: 0, watch }, &[]));
        assert_eq!((watched(), link.fault.get()), (WATCHES_MAX, None));
        if round == 0 {
            watches.for_each(|watch| link.receives(&Head::Unwatch { to: 0, watch }, &[]));
            eventually(|| watched() == 0);
        }
    }
    link.receives(&Head::Watch { to: 0, watch: u64::MAX }, &[]);
    assert_eq!(link.fault.get(), Some(&Fault::Watches));
    link.lose();
}

// GUARANTEE: The state kept for a theater is bounded
#[test]
fn no_more_is_watched_than_a_peer_takes() {
    let [theater] = theaters();
    let link = rejected_peer(&theater, 10);
    let (tell, told) = mpsc::channel();
    let watch = |watch| {
        let tell = tell.clone();
        let notify = Box::new(move |ended: Ended| tell.send(ended.reason).unwrap());
        let ref_codec: Arc<dyn RefCodec> = link.clone();
        link.carry(0, &ref_codec, ForwardedMessage::Watch { watcher: Watcher::There(10, watch), notify }, false)
    };
    for at in 0..WATCHES_MAX as u64 / 2 {
        watch(at).unwrap();
        link.says();
    }
    assert!(told.try_recv().is_err());
    watch(u64::MAX).unwrap_err();
    assert_eq!(told.recv(), Ok(StopReason::TheaterLost));
}

fn member(theater: &Theater, of: u64, at: u32, born: RemoteActorId) -> Head {
    let (kind, codec) = (kind_of::<Guest>(theater), Wire::Positional);
    Head::Member { of, at, kind, codec, born: born.birth_name(), from: born.slot_name() }
}

/// Returns the answer to the frame that completes a group.
fn together(link: &Link, of: u64, count: u32) -> Result<Vec<ActorLocation>, (u32, String)> {
    link.says();
    link.receives(&Head::Together { ask: of, of, group: GroupName { theater: 10, number: of }, count }, &[]);
    let answer = link.says().into_iter().find(|(head, _)| matches!(head, Head::Answer { .. }));
    Codec::Positional.read(&answer.unwrap().1).unwrap()
}

// GUARANTEE: The state kept for a theater is bounded
#[test]
fn members_that_wait_for_their_groups_are_bounded() {
    let [theater] = theaters();
    let link = rejected_peer(&theater, 10);
    let kept = || {
        let pending_groups = lock(&link.migrations().pending_groups);
        (pending_groups.members, pending_groups.bytes)
    };
    let send = |of: u64, at: u32, rest: &[u8]| {
        link.receives(&member(&theater, of, at, remote(10, of << 32 | u64::from(at), 7)), rest);
    };
    // Too many members of one group, and another group after that.
    for at in 0..2 * MEMBERS_MAX as u32 {
        send(1, at, &incoming_state());
        assert!(kept().0 <= MEMBERS_MAX);
    }
    send(2, 0, &incoming_state());
    assert_eq!(kept().0, 2);
    let (_, why) = together(&link, 1, 2 * MEMBERS_MAX as u32).unwrap_err();
    assert!(why.contains("no more members"), "{why}");
    assert_eq!(together(&link, 2, 1).map(|locations| locations.len()), Ok(1));
    assert_eq!(kept(), (0, 0));
    // Too large members: the bytes behind a state are not read.
    let large = [incoming_state(), vec![0; 1024 * 1024]].concat();
    let most = MEMBER_WINDOWS_MAX * link.window_bytes + RESERVE_BYTES;
    for at in 0..64 {
        send(3, at, &large);
        assert!(kept().1 <= most);
    }
    assert!(together(&link, 3, 64).is_err());
    assert_eq!((kept(), link.fault.get()), ((0, 0), None));
    // No group is complete.
    for of in 0..2 * MEMBERS_MAX as u64 + 1 {
        send(of, 0, &incoming_state());
    }
    assert_eq!(link.fault.get(), Some(&Fault::Members));
    link.lose();
    assert_eq!(kept(), (0, 0));
}
