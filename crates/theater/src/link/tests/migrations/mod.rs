//! Tests: actors that come and leave, and their drains, frame by frame.

mod drains;
mod leaving;
mod lost_actors;

use std::any::Any;
use std::cell::Cell;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::{self, Sender};

use playhouse_actor::away::{RefName, StubPlacement, spawn_stub};
use playhouse_actor::{
    Actor, ActorRef, Context, Group, Handler, Message, MigrateError, Placement, SpawnOptions, Terminated, remote,
};
use serde::{Deserialize, Serialize};

use super::hostile::{
    LIMIT, bytes, incoming_state, incoming_state_with, kind_of, moves, name, rejected_peer, remote, started, state_of,
    theaters,
};
use super::*;
use crate::link::frame::{LocateReply, Whereabouts, Wire};
use crate::migration::authority::Departing;
use crate::naming::migration_protocol::{Action, Event, Request};
use crate::naming::{BirthName, Epoch, Host, RemoteActorId};
use crate::node::core::TheaterCore;
use crate::node::links::TICK;
use crate::proxy::pending_proxy::PendingProxy;
use crate::{Peer, Simulation, Theater};

fn begin(born: RemoteActorId) -> Head {
    Head::Begin { born: born.birth_name() }
}

/// Returns all frames that the theater sends to the other end, up to the matching one.
fn says_until(link: &Link, is_meant: impl Fn(&Head) -> bool) -> Vec<Head> {
    let mut said = Vec::new();
    eventually(|| {
        said.extend(link.says().into_iter().map(|(head, _)| head));
        said.iter().any(&is_meant)
    });
    said
}

// GUARANTEE: A theater can be evacuated
#[test]
fn a_theater_that_is_evacuated_waits_for_actors_that_have_come_and_not_begun() {
    let [theater] = theaters();
    let [source, target] = [10, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let born = remote(10, 1, 7);
    source.receives(&moves(&theater, born), &incoming_state());
    let evacuation = std::thread::scope(|scope| {
        let evacuation = scope.spawn(|| theater.evacuate(&[Peer { link: Arc::clone(&target) }]));
        // Many times the duration of an evacuation that waits for no actor.
        let until = theater.theater_core.now() + Duration::from_millis(100);
        eventually(|| evacuation.is_finished() || theater.theater_core.now() > until);
        assert!(!evacuation.is_finished(), "it does not wait");
        source.receives(&begin(born), &[]);
        let said = says_until(&target, |head| matches!(head, Head::Move { .. }));
        let ask = said.iter().find_map(|head| if let Head::Move { ask, .. } = head { Some(*ask) } else { None });
        let refused = bytes(&Result::<ActorLocation, String>::Err("no".to_owned()));
        target.receives(&Head::Answer { ask: ask.unwrap(), codec: Wire::Positional }, &refused);
        evacuation.join().unwrap()
    });
    assert!(matches!(&evacuation.stayed[..], [(_, MigrateError::Refused(why))] if why == "no"), "{evacuation:?}");
}

#[test]
fn the_stub_of_an_actor_about_to_begin_outlives_a_report_of_its_end() {
    let [theater] = theaters();
    let source = rejected_peer(&theater, 10);
    let born = remote(10, 1, 7);
    let stub = source.stub_of_its(1, 7);
    let handle = source.handle_of(stub).unwrap();
    source.receives(&moves(&theater, born), &incoming_state());
    source.receives(&Head::Ended { handles: vec![handle] }, &[]);
    theater.system().run_until_idle();
    source.receives(&begin(born), &[]);
    // The stub may have forwarded something, so the actor waits for its marker.
    for (head, _) in source.says() {
        if let Head::Marker { ask, .. } = head {
            source.receives(&Head::Failed { ask }, &bytes(&AskError::Stopped));
        }
    }
    assert_eq!(theater.theater_core.directory.migrations(), (1, 0));
    assert!(!stub.address().is_stale());
}

#[test]
fn an_incoming_actor_with_an_ended_stub_is_reported_at_both_ends() {
    let [theater] = theaters();
    let source = rejected_peer(&theater, 10);
    let born = remote(10, 1, 7);
    source.receives(&moves(&theater, born), &incoming_state());
    let stub = theater.theater_core.directory.known_as(born.birth_name()).unwrap();
    (theater.theater_core.registry.controls(stub).unwrap().forget)(stub);
    eventually(|| stub.address().is_stale());
    source.receives(&begin(born), &[]);
    assert_eq!(theater.theater_core.directory.migrations(), (0, 0));
    assert!(source.says().iter().any(|(head, _)| matches!(head, Head::Begun { born: BirthName { slot: 1, .. } })));
    assert_eq!(theater.system().stats().total.dead_letters, 1);
}

/// Otherwise mail that was read before could come to the arrival buffer after its end.
#[test]
fn the_poller_sends_the_frame_that_must_follow_the_mail_already_read() {
    let [theater] = theaters();
    let theater_core = Arc::clone(&theater.theater_core);
    let this = std::thread::current().id();
    let called_by = || {
        let (tell, told) = mpsc::channel();
        theater_core.behind_what_was_read(Box::new(move || tell.send(std::thread::current().id()).unwrap()));
        told.recv_timeout(LIMIT).unwrap()
    };
    assert_ne!(called_by(), this);
    theater.shutdown().unwrap();
    assert_eq!(called_by(), this);
}

/// Its name has come from a third theater, and something was sent to it, before it is started.
#[test]
fn an_actor_that_is_started_comes_behind_what_was_sent_to_it_before() {
    let [theater] = theaters();
    let source = rejected_peer(&theater, 10);
    let stub = source.stub_of_its(1, 7);
    let early = ActorRef::<Guest>::of_id(stub).unwrap();
    early.tell(Greet);
    says_until(&source, |head| matches!(head, Head::Tell { .. }));
    let epoch = Epoch { departure: 5, hops: 0 };
    let codec = Wire::Positional;
    source.receives(
        &Head::Spawn { handle: 0, kind: kind_of::<Guest>(&theater), codec, born: remote(10, 1, 7).slot_name(), epoch },
        &bytes(&Guest),
    );
    let directory = &theater.theater_core.directory;
    assert!(directory.view(stub).is_arriving() && directory.epoch_of(stub) == epoch);
    assert_eq!(lock(&source.inn).targets.get(0).map(|target| target.id), Some(stub));
    let said = says_until(&source, |head| matches!(head, Head::Marker { .. }));
    let ask = said.iter().find_map(|head| if let Head::Marker { ask, .. } = head { Some(*ask) } else { None });
    let location = bytes(&directory.location(stub, None).unwrap());
    source.receives(&Head::Answer { ask: ask.unwrap(), codec }, &location);
    assert_eq!(early.ask(Greet).within(LIMIT).wait(), Ok(early));
    assert_eq!((directory.migrations(), directory.begun()), ((0, 0), 1));
}

/// The actor ends in its hook, or cannot be read: the handle means no actor, and the other end is told.
#[test]
fn an_actor_that_is_started_in_vain_is_reported() {
    let [theater] = theaters();
    let source = rejected_peer(&theater, 10);
    let start = |handle, state: &[u8]| {
        let (kind, codec, epoch) = (kind_of::<Counts>(&theater), Wire::Positional, Epoch::default());
        source.receives(
            &Head::Spawn { handle, kind, codec, born: remote(10, handle.into(), 7).slot_name(), epoch },
            state,
        );
        theater.system().stats().total.dead_letters
    };
    assert_eq!(start(0, &[0xff; 12]), 1);
    assert_eq!(start(1, &bytes(&Counts(1, Some(Trap::set(|| panic!("as it is read")))))), 2);
    assert_eq!(start(2, &bytes(&Counts(1, None))), 2);
    source.tidy();
    assert!(source.says().iter().any(|(head, _)| *head == Head::Ended { handles: vec![0, 1] }));
}

// GUARANTEE: An actor that cannot migrate stays
#[test]
fn an_actor_that_stays_after_a_bad_answer_is_not_incoming_at_its_target() {
    let [theater] = theaters();
    let target = rejected_peer(&theater, 11);
    let own = theater.system().spawn(Guest);
    for _ in 0..2 {
        let (done, ended) = mpsc::channel();
        theater.theater_core.migrate(own.id(), Arc::clone(&target), Box::new(move |moved| done.send(moved).unwrap()));
        let said = says_until(&target, |head| matches!(head, Head::Move { .. }));
        let ask = said.iter().find_map(|head| if let Head::Move { ask, .. } = head { Some(*ask) } else { None });
        assert!(!said.iter().any(|head| matches!(head, Head::Stays { .. })), "before it was offered");
        target.receives(&Head::Answer { ask: ask.unwrap(), codec: Wire::Positional }, &[0xff; 3]);
        assert!(matches!(ended.recv_timeout(LIMIT).unwrap(), Err(MigrateError::Refused(_))));
        assert!(target.says().iter().any(|(head, _)| matches!(head, Head::Stays { .. })));
    }
    assert_eq!(own.ask(Greet).within(LIMIT).wait(), Ok(own));
}

// GUARANTEE: An actor migrates completely
#[test]
fn a_watcher_of_an_arrived_actor_that_just_ended_is_told_why() {
    let [theater] = theaters();
    let [source, other] = [10, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let born = remote(10, 1, 7);
    source.receives(&moves(&theater, born), &incoming_state());
    let stub = theater.theater_core.directory.known_as(born.birth_name()).unwrap();
    let name = theater.theater_core.directory.slot_name(stub).unwrap();
    other.receives(&Head::Name { handle: 0, name }, &[]);
    source.receives(&begin(born), &[]);
    // An earlier request would be forwarded to the source.
    eventually(|| !theater.theater_core.directory.awaits_arrivals());
    (theater.theater_core.registry.controls(stub).unwrap().stop)(stub, false);
    eventually(|| stub.address().is_stale());
    // One link has called it by a number before, and one does so now.
    other.receives(&Head::Name { handle: 1, name }, &[]);
    for handle in 0..2 {
        let watch = handle.into();
        other.receives(&Head::Watch { to: handle, watch }, &[]);
        let said = says_until(&other, |head| matches!(head, Head::Down { .. }));
        assert!(said.contains(&Head::Down { watch, name: None, reason: StopReason::Stopped }), "{said:?}");
    }
}

/// An actor that reads the set of incoming actors while it is dropped.
#[derive(Serialize, Deserialize)]
struct Nosy;
static LOOKED: AtomicU32 = AtomicU32::new(0);
static THEATER_CORE: OnceLock<Arc<Directory>> = OnceLock::new();
impl Actor for Nosy {}
impl Drop for Nosy {
    fn drop(&mut self) {
        if let Some(directory) = THEATER_CORE.get() {
            let _ = directory.incoming_actors().is_empty();
            LOOKED.fetch_add(1, Ordering::Relaxed);
        }
    }
}
remote!(mobile Nosy:);

#[test]
fn a_refused_incoming_actor_is_dropped_without_a_lock() {
    let [theater] = theaters();
    let source = rejected_peer(&theater, 10);
    let state = state_of(&Nosy);
    let _ = THEATER_CORE.set(Arc::clone(&theater.theater_core.directory));
    let before = LOOKED.load(Ordering::Relaxed);
    let mut comes = moves(&theater, name(&theater, theater.system().spawn(Guest).id()));
    if let Head::Move { kind, .. } = &mut comes {
        *kind = kind_of::<Nosy>(&theater);
    }
    // It lives in this theater, under the name of another actor.
    source.receives(&comes, &state);
    assert_eq!(LOOKED.load(Ordering::Relaxed), before + 1);
}

#[test]
fn all_that_one_handler_sends_is_kept_and_a_marker_behind_it() {
    let [theater] = theaters();
    let source = rejected_peer(&theater, 10);
    let stub = source.stub_of_its(1, 7);
    let route = PendingProxy::lost_actors(&theater.theater_core.proxies);
    route.is_at(stub);
    let write = |_: Codec, out: &mut Vec<u8>| {
        out.resize(64 * 1024, 0);
        Ok(())
    };
    let tell = || ForwardedMessage::Tell {
        actor: TypeId::of::<Guest>(),
        message: TypeId::of::<Greet>(),
        name: "Greet",
        lane: Lane::Normal,
        write: &write,
    };
    // Many windows.
    let dead_letters = || theater.system().stats().total.dead_letters;
    for _ in 0..1_100 {
        route.carry(tell()).unwrap();
    }
    assert_eq!(dead_letters(), 0);
    let (answered, answers) = mpsc::channel::<()>();
    route.carry(ForwardedMessage::Marker(TheaterCore::fence_marker(&theater.theater_core, stub, answered))).unwrap();
    assert_eq!(answers.try_recv(), Err(mpsc::TryRecvError::Empty));
    route.give_up();
    assert_eq!(answers.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    assert_eq!(dead_letters(), 1_100);
}

#[test]
fn numbers_that_are_given_again_and_again_are_not_kept_for_a_fence() {
    let [theater] = theaters();
    let source = rejected_peer(&theater, 10);
    let own = theater.system().spawn(Guest);
    for _ in 0..100 {
        source.named(0, name(&theater, own.id()));
        source.receives(&Head::Unwatch { to: 0, watch: 1 }, &[]);
        assert_eq!(lock(&source.inn).targets.reached.len(), 1);
        source.receives(&Head::Release { ask: 0, handles: vec![0] }, &[]);
    }
    assert!(lock(&source.inn).targets.reached.is_empty());
}

#[test]
fn fences_wait_in_the_order_in_which_they_are_written() {
    let [theater] = theaters();
    let target = rejected_peer(&theater, 11);
    let drains = || {
        for _ in 0..1_000 {
            target.is_unfenced.store(true, Ordering::Release);
            theater.theater_core.drain(Box::new(|| seam(4)));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(drains);
        }
    });
    let waiting: Vec<u64> = lock(&target.fences).waiting.iter().map(|fence| fence.number).collect();
    let said = target.says().into_iter();
    let written: Vec<u64> =
        said.filter_map(|(head, _)| if let Head::Fence { ask } = head { Some(ask) } else { None }).collect();
    assert!(written.len() > 1);
    assert_eq!(waiting, written);
}

/// An actor that does not migrate.
struct Fixed;
impl Actor for Fixed {}
impl playhouse_actor::Handler<Greet> for Fixed {
    fn handle(&mut self, _: Greet, _: &mut playhouse_actor::Context<Self>) -> ActorRef<Guest> {
        unreachable!("no test greets it")
    }
}
remote!(Fixed: Greet);

// GUARANTEE: A lost theater may come back
#[test]
fn stubs_of_a_lost_theater_are_bounded_and_stubs_of_a_left_one_are_freed() {
    let [theater] = theaters();
    let ended = |stubs: &[ActorId]| stubs.iter().filter(|stub| stub.address().is_stale()).count();
    let [lost, left] = [10, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let fixed = |link: &Link, slot| {
        let name = RefName::Mine { slot, incarnation: 1, capability: 7 };
        link.meet(name, &|core, stub_placement, forwarder| spawn_stub::<Fixed>(core, stub_placement, forwarder).id())
            .unwrap()
    };
    let stubs = |link: &Link, count: usize| (1..=count as u64).map(|slot| fixed(link, slot)).collect::<Vec<ActorId>>();
    let (of_lost, of_left) = (stubs(&lost, APART_MAX / 4), stubs(&left, 10));
    left.receives(&Head::Goodbye, &[]);
    lost.lose();
    left.lose();
    eventually(|| ended(&of_left) == of_left.len());
    // The same holds after many other theaters have come and gone.
    (0..300).map(|number| rejected_peer(&theater, 100 + number)).for_each(|link| link.lose());
    let large = rejected_peer(&theater, 12);
    let of_large = stubs(&large, APART_MAX + 10);
    large.lose();
    // Stubs of the theater with the most stubs are given up.
    eventually(|| ended(&of_large) == of_large.len() - APART_MAX * 3 / 4);
    theater.system().run_until_idle();
    assert_eq!((ended(&of_large), ended(&of_lost)), (of_large.len() - APART_MAX * 3 / 4, 0));
    // There is a link with it again: its stubs do not count, and it announces its shutdown before any of them is used.
    let again = rejected_peer(&theater, 10);
    let other = rejected_peer(&theater, 13);
    let of_other = stubs(&other, APART_MAX);
    other.lose();
    eventually(|| ended(&of_large) + ended(&of_other) == of_large.len() + of_other.len() - APART_MAX);
    assert_eq!(ended(&of_lost), 0);
    again.receives(&Head::Goodbye, &[]);
    again.lose();
    eventually(|| ended(&of_lost) == of_lost.len());
}

// -- in virtual time ----------------------------------------------------------------------------------------------------

const LOST_AFTER: Duration = Duration::from_secs(30);

fn simulated() -> (Simulation, Theater) {
    let net = Simulation::new(1);
    let builder = Theater::builder().listen("127.0.0.1:0").lost_after(LOST_AFTER);
    let theater = net.theater(builder).unwrap();
    (net, theater)
}

/// Has the other end answer its asks, as `reply` says. After 10 times `lost_after` it is silent, so that nothing waits for ever.
fn replies(
    theater: &Theater,
    link: &Arc<Link>,
    mut reply: impl FnMut(Head) -> Option<(u64, Vec<u8>)> + Send + 'static,
) {
    let (theater_core, link, until) =
        (Arc::clone(&theater.theater_core), Arc::clone(link), theater.theater_core.now() + 10 * LOST_AFTER);
    let answer = move || {
        for (ask, answer) in link.says().into_iter().filter_map(|(head, _)| reply(head)) {
            link.receives(&Head::Answer { ask, codec: Wire::Positional }, &answer);
        }
        theater_core.now() > until
    };
    theater.theater_core.until_done("answers", Duration::from_millis(10), answer).unwrap();
}

/// Has the other end take each actor that is sent to it, answer all its asks, and know of no actor that is being located. It never says that an actor
/// has begun.
fn answers(theater: &Theater, link: &Arc<Link>) {
    let there = link.incarnation;
    replies(theater, link, move |head| match head {
        Head::Move { ask, .. } => {
            let location = ActorLocation { theater: there, address: None, slot: ask, incarnation: 1, capability: 9 };
            Some((ask, bytes(&Result::<ActorLocation, String>::Ok(location))))
        }
        Head::Fence { ask } | Head::Departs { ask, .. } => Some((ask, Vec::new())),
        Head::Leaving { ask } => Some((ask, bytes(&0_u64))),
        Head::Locate { ask, actors, .. } => Some((ask, bytes(&LocateReply(vec![None; actors.len()])))),
        _ => None,
    });
}

fn has_left_but_may_live(why: &MigrateError) -> bool {
    let MigrateError::Unreachable(why) = why else { return false };
    why.contains("has left") && why.contains("has not confirmed that it has begun")
}

// GUARANTEE: An actor that cannot migrate stays
#[test]
fn a_migration_ends_though_a_theater_never_says_that_the_actor_has_begun() {
    let (net, theater) = simulated();
    let target = rejected_peer(&theater, 10);
    answers(&theater, &target);
    let own = theater.system().spawn(Guest);
    let (done, ended) = mpsc::channel();
    theater.theater_core.migrate(own.id(), Arc::clone(&target), Box::new(move |moved| done.send(moved).unwrap()));
    assert!(net.run_until(|| theater.theater_core.directory.migrations() == (0, 1)));
    let left = net.now();
    let mut moved = None;
    net.run_until(|| {
        moved = moved.take().or_else(|| ended.try_recv().ok());
        moved.is_some()
    });
    let why = moved.expect("it does not end").unwrap_err();
    assert!(has_left_but_may_live(&why), "{why}");
    let took = net.now() - left;
    assert!(took + TICK > 3 * LOST_AFTER && took < 3 * LOST_AFTER + 2 * TICK, "{took:?}");
    // Its later frames do no harm.
    target.receives(&Head::Begun { born: name(&theater, own.id()).birth_name() }, &[]);
    assert!(matches!(ended.try_recv(), Err(mpsc::TryRecvError::Disconnected)));
}

// GUARANTEE: An actor that cannot migrate stays
#[test]
fn an_evacuation_ends_though_a_theater_never_says_that_actors_have_begun() {
    let (net, theater) = simulated();
    let target = rejected_peer(&theater, 10);
    answers(&theater, &target);
    let own = [(); 3].map(|()| theater.system().spawn(Guest).id());
    let evacuation = theater.evacuate(&[Peer { link: Arc::clone(&target) }]);
    assert_eq!(evacuation.moved, 0);
    let stayed: FxHashSet<ActorId> = evacuation.stayed.iter().map(|(id, _)| *id).collect();
    assert_eq!((stayed, evacuation.stayed.len()), (own.into_iter().collect(), own.len()));
    assert!(evacuation.stayed.iter().all(|(_, why)| has_left_but_may_live(why)), "{evacuation:?}");
    assert!(net.now() < 4 * LOST_AFTER, "{:?}", net.now());
}

// GUARANTEE: Order holds while actors migrate
#[test]
fn an_actor_that_has_answered_leaves_after_the_asker_has_the_answer() {
    let (net, theater) = simulated();
    let [asker, target] = [10, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let own = theater.system().spawn(Guest).id();
    let registry = &theater.theater_core.registry;
    let (kind, _) =
        registry.table(registry.kinds()).message(TypeId::of::<Guest>(), TypeId::of::<Greet>(), "?").unwrap();
    asker.named(0, name(&theater, own));
    asker.receives(&Head::Ask { to: 0, kind, codec: Wire::Positional, ask: 5 }, &bytes(&Greet));
    net.run_until_idle();
    let said = asker.says();
    assert!(said.iter().any(|(head, _)| matches!(head, Head::Answer { ask: 5, .. })), "{said:?}");
    answers(&theater, &target);
    theater.theater_core.migrate(own, Arc::clone(&target), Box::new(drop));
    net.run_for(LOST_AFTER);
    assert_eq!(theater.theater_core.directory.migrations(), (0, 0), "it has left before the answer has come");
    let said = asker.says();
    let [(Head::Fence { ask }, _)] = said[..] else { panic!("{said:?}") };
    asker.receives(&Head::Answer { ask, codec: Wire::Positional }, &[]);
    net.run_for(LOST_AFTER);
    assert_eq!(theater.theater_core.directory.migrations(), (0, 1));
}

/// The number of an ask, the target of the actors, and their names.
type Departs = (u64, Host, Vec<(SlotName, Epoch)>);

/// Returns the theater's frames to this other end about actors that are about to leave.
fn departs(link: &Link) -> Vec<Departs> {
    let said = link.says().into_iter();
    let departs = |(head, _)| match head {
        Head::Departs { ask, to, actors } => Some((ask, to, actors)),
        _ => None,
    };
    said.filter_map(departs).collect()
}

/// Returns an actor that was born in theater 10 with this slot, and lives in `theater` after a migration from there.
fn arrived_actor(theater: &Theater, birth: &Link, slot: u64) -> ActorId {
    let born = remote(10, slot, 7);
    birth.receives(&moves(theater, born), &incoming_state());
    birth.receives(&begin(born), &[]);
    theater.theater_core.directory.known_as(born.birth_name()).unwrap()
}

// GUARANTEE: Alive once
#[test]
fn an_actor_leaves_when_its_birth_theater_has_noted_where_it_goes() {
    let (net, theater) = simulated();
    let [birth, target] = [10, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let stub = arrived_actor(&theater, &birth, 1);
    net.run_until_idle();
    birth.says();
    answers(&theater, &target);
    theater.theater_core.migrate(stub, Arc::clone(&target), Box::new(drop));
    net.run_for(TICK);
    let said = birth.says();
    let fences = said.iter().filter_map(|(head, _)| if let Head::Fence { ask } = head { Some(*ask) } else { None });
    fences.for_each(|ask| birth.receives(&Head::Answer { ask, codec: Wire::Positional }, &[]));
    let noted = said.iter().find_map(|(head, _)| match head {
        Head::Departs { ask, to: Host { theater: 11, .. }, actors } => Some((*ask, actors.clone())),
        _ => None,
    });
    let (ask, actors) = noted.expect("it was not told");
    assert!(
        matches!(actors[..], [(SlotName { slot: 1, incarnation: 1, capability: 7 }, Epoch { departure: 0, hops: 1 })]),
        "{actors:?}"
    );
    net.run_for(LOST_AFTER);
    assert_eq!(theater.theater_core.directory.migrations(), (1, 0), "it has left before that was noted");
    birth.receives(&Head::Answer { ask, codec: Wire::Positional }, &[]);
    net.run_for(TICK);
    assert_eq!(theater.theater_core.directory.migrations(), (1, 1));
}

// GUARANTEE: Alive once
#[test]
fn an_actor_leaves_though_its_birth_theater_is_lost_before_it_has_noted_that() {
    let (net, theater) = simulated();
    let [birth, target] = [10, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let stubs = [1, 2].map(|slot| arrived_actor(&theater, &birth, slot));
    net.run_until_idle();
    answers(&theater, &target);
    theater.theater_core.migrate(stubs[0], Arc::clone(&target), Box::new(drop));
    net.run_for(TICK);
    assert_eq!(theater.theater_core.directory.migrations(), (2, 0));
    birth.lose();
    net.run_for(TICK);
    assert_eq!(theater.theater_core.directory.migrations(), (2, 1));
    // The next one does not wait for it.
    theater.theater_core.migrate(stubs[1], Arc::clone(&target), Box::new(drop));
    net.run_for(TICK);
    assert_eq!(theater.theater_core.directory.migrations(), (2, 2));
}

// GUARANTEE: Alive once
#[test]
fn actors_that_were_born_in_one_theater_are_noted_together() {
    let (net, theater) = simulated();
    let [birth, target] = [10, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let stubs = [1, 2].map(|slot| arrived_actor(&theater, &birth, slot));
    net.run_until_idle();
    let theater_core = &theater.theater_core;
    let departing = |id: &ActorId| Departing {
        born: theater_core.directory.identity(*id).unwrap(),
        epoch: theater_core.directory.next_epoch(*id),
    };
    let (noted, is_noted) = mpsc::channel::<()>();
    let to = Host { theater: 11, address: None };
    let own = theater.system().spawn(Guest).id();
    let actors = stubs.iter().chain([&own]).map(departing).collect();
    birth.says();
    theater_core.migrations().authority.note(theater_core, actors, to, Box::new(move || drop(noted)));
    let [(ask, host, actors)] = &departs(&birth)[..] else { panic!("it was not told once") };
    assert_eq!((*host, actors.iter().map(|(name, _)| name.slot).collect::<Vec<_>>()), (to, vec![1, 2]));
    assert_eq!(departs(&target).len(), 0);
    assert_eq!(is_noted.try_recv(), Err(mpsc::TryRecvError::Empty));
    birth.receives(&Head::Answer { ask: *ask, codec: Wire::Positional }, &[]);
    assert_eq!(is_noted.try_recv(), Err(mpsc::TryRecvError::Disconnected));
}

// GUARANTEE: Alive once
#[test]
fn a_note_that_comes_late_changes_nothing_and_is_answered() {
    let (net, theater) = simulated();
    let links = [10, 11, 12].map(|incarnation| rejected_peer(&theater, incarnation));
    let own = theater.system().spawn(Guest).id();
    answers(&theater, &links[0]);
    theater.theater_core.migrate(own, Arc::clone(&links[0]), Box::new(drop));
    assert!(net.run_until(|| theater.theater_core.directory.migrations() == (0, 1)));
    let directory = &theater.theater_core.directory;
    let name = directory.slot_name(own).unwrap();
    let departure = directory.epoch_of(own).departure;
    let hosts = || directory.hosts(own).into_iter().map(|host| host.theater).collect::<Vec<_>>();
    assert_eq!(hosts(), [10]);
    let note = |from: &Link, to: u64, name: SlotName, epoch: Epoch| {
        let to = Host { theater: to, address: None };
        from.receives(&Head::Departs { ask: 9, to, actors: vec![(name, epoch)] }, &[]);
        assert!(from.says().iter().any(|(head, _)| matches!(head, Head::Answer { ask: 9, .. })));
    };
    note(&links[0], 11, name, Epoch { departure, hops: 1 });
    assert_eq!(hosts(), [10, 11, 10]);
    note(&links[1], 12, name, Epoch { departure, hops: 2 });
    assert_eq!(hosts(), [11, 12, 10]);
    // Notes with an older epoch, with another departure, and with an invented name.
    note(&links[0], 11, name, Epoch { departure, hops: 1 });
    note(&links[2], 10, name, Epoch { departure: departure ^ 1, hops: 9 });
    note(&links[2], 10, SlotName { capability: name.capability + 1, ..name }, Epoch { departure, hops: 9 });
    assert_eq!(hosts(), [11, 12, 10]);
}

/// Its birth theater believes only theaters that have had it.
#[test]
fn a_birth_theater_believes_only_theaters_that_have_had_the_actor() {
    let (_net, theater) = simulated();
    let links = [10, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let started = started(&links[0], &Guest);
    let said = links[0].says();
    let told = |(head, _): &(Head, Vec<u8>)| match head {
        Head::Spawn { born, epoch, .. } => Some((*born, *epoch)),
        _ => None,
    };
    let (name, epoch) = said.iter().find_map(told).unwrap();
    let directory = &theater.theater_core.directory;
    assert_eq!((directory.slot_name(started).unwrap(), directory.epoch_of(started)), (name, epoch));
    let note = |from: &Link, departure| {
        let (to, epoch) = (Host { theater: 12, address: None }, Epoch { departure, hops: epoch.hops + 1 });
        from.receives(&Head::Departs { ask: 9, to, actors: vec![(name, epoch)] }, &[]);
        directory.hosts(started).into_iter().map(|host| host.theater).collect::<Vec<_>>()
    };
    for guess in [0, 1, epoch.departure ^ 1] {
        assert_eq!(note(&links[1], guess), [10]);
    }
    assert_eq!(note(&links[0], epoch.departure), [10, 12, 10]);
}

#[test]
fn the_end_of_an_actor_that_turned_does_not_end_the_one_that_has_its_number_by_then() {
    let (net, theater) = simulated();
    let [link, _other] = [10, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let first = link.stub_of_its(1, 7);
    let handle = link.handle_of(first).unwrap();
    theater.theater_core.reroute(first, 10);
    net.run_until_idle();
    link.receives(&Head::Ended { handles: vec![handle] }, &[]);
    let said = link.says();
    let marker = said.iter().find_map(|(head, _)| if let Head::Marker { ask, .. } = head { Some(*ask) } else { None });
    let location = ActorLocation { theater: 11, address: None, slot: 5, incarnation: 1, capability: 9 };
    link.receives(
        &Head::Answer { ask: marker.expect("it does not reroute"), codec: Wire::Positional },
        &bytes(&location),
    );
    net.run_until_idle();
    // The number is free when the other end says so.
    link.tidy();
    let said = link.says();
    let ask = said.iter().find_map(|(head, _)| if let Head::Release { ask, .. } = head { Some(*ask) } else { None });
    let ask = ask.expect("the number is not released");
    link.receives(&Head::Answer { ask, codec: Wire::Positional }, &[]);
    let second = link.stub_of_its(2, 7);
    assert_eq!(link.handle_of(second), Some(handle));
    // Time passes while a packet is under way.
    let (theater_core, until) = (Arc::clone(&theater.theater_core), theater.theater_core.now() + 10 * TICK);
    theater.theater_core.until_done("time", TICK, move || theater_core.now() > until).unwrap();
    net.run_until_idle();
    assert!(theater.theater_core.now() > until);
    assert!(!first.address().is_stale() && !second.address().is_stale());
}

// GUARANTEE: Alive once
#[test]
fn an_actor_that_comes_with_the_highest_epoch_leaves_again() {
    let (net, theater) = simulated();
    let [source, target] = [10, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let born = remote(10, 1, 7);
    source.receives(&moves(&theater, born), &incoming_state_with(Epoch { departure: 1, hops: u64::MAX }));
    source.receives(&begin(born), &[]);
    let stub = theater.theater_core.directory.known_as(born.birth_name()).unwrap();
    [&source, &target].into_iter().for_each(|link| answers(&theater, link));
    theater.theater_core.migrate(stub, Arc::clone(&target), Box::new(drop));
    assert!(net.run_until(|| theater.theater_core.directory.migrations() == (1, 1)));
}

// GUARANTEE: Ended actors are forgotten
#[test]
fn the_other_end_is_told_of_a_name_whose_actor_has_ended_already() {
    let (net, theater) = simulated();
    let source = rejected_peer(&theater, 10);
    let own = theater.system().spawn(Guest);
    let known = name(&theater, own.id());
    own.stop();
    net.run_until_idle();
    source.named(0, known);
    source.tidy();
    let said = source.says();
    assert!(said.iter().any(|(head, _)| *head == Head::Ended { handles: vec![0] }), "{said:?}");
    // Once, and not for a number that was given up.
    source.named(1, known);
    source.receives(&Head::Release { ask: 0, handles: vec![1] }, &[]);
    source.tidy();
    let said = source.says();
    assert!(!said.iter().any(|(head, _)| matches!(head, Head::Ended { .. })), "{said:?}");
}

// GUARANTEE: Ended actors are forgotten
#[test]
fn an_actor_that_ends_while_its_stub_reroutes_is_forgotten_afterwards() {
    let (net, theater) = simulated();
    let target = rejected_peer(&theater, 10);
    let stub = target.stub_of_its(1, 7);
    // A simulation without work has no ticks.
    let ticks = || {
        (0..3).for_each(|_| {
            theater.theater_core.tick();
            net.run_until_idle();
        })
    };
    theater.theater_core.reroute(stub, 10);
    net.run_until_idle();
    let said = target.says();
    let marker = |(head, _): &(Head, Vec<u8>)| if let Head::Marker { ask, .. } = head { Some(*ask) } else { None };
    let ask = said.iter().find_map(marker).unwrap();
    target.receives(&Head::Ended { handles: vec![0] }, &[]);
    ticks();
    assert!(!stub.address().is_stale());
    target.receives(&Head::Failed { ask }, &bytes(&AskError::Stopped));
    ticks();
    assert!(stub.address().is_stale());
    assert!(theater.theater_core.directory.kept().into_iter().all(|(_, count)| count == 0));
}

// GUARANTEE: An actor that cannot migrate stays
#[test]
fn an_actor_whose_state_cannot_be_read_for_a_panic_is_refused_at_once() {
    let theaters = [(); 2].map(|()| {
        let builder = Theater::builder().listen("127.0.0.1:0").lost_after(Duration::from_secs(600));
        builder.start().unwrap()
    });
    let [here, there] = &theaters;
    let peer = here.connect(there.address().unwrap()).unwrap();
    let is_why = |why: MigrateError| {
        let MigrateError::Refused(why) = &why else { panic!("{why:?}") };
        assert_eq!(why, "reading the actor's state panicked: it is fatal to read");
    };
    let fatal = || Counts(0, Some(Trap::set(|| panic!("it is fatal to read"))));
    is_why(here.migrate(here.system().spawn(fatal()), &peer).wait().unwrap_err());

    let group = Group::new(here.system());
    let options = || SpawnOptions::new().placement(Placement::Group(group));
    let guest = here.system().spawn_with(options(), Guest);
    here.system().spawn_with(options(), fatal());
    let MigrateError::Member { who, why } = here.migrate_group(group, &peer).wait().unwrap_err() else { panic!() };
    assert!(who.contains("Counts"), "{who}");
    is_why(*why);

    // The link lives, and all actors are in their former theaters.
    assert_eq!(guest.ask(Greet).wait(), Ok(guest));
    let free = here.system().spawn(Guest);
    here.migrate(free, &peer).wait().unwrap();
    assert_eq!(there.theater_core.directory.migrations(), (1, 0));
}
