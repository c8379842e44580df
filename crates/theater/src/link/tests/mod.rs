//! Tests: the state that links forget.

pub(super) mod hostile;
mod migrations;
mod watching;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use playhouse_actor::wire::WireForm;
use playhouse_actor::{
    Actor, ActorRef, Context, Group, Handler, Mailbox, Message, MigrateError, Placement, SpawnOptions, System,
    Terminated, remote,
};
use serde::{Deserialize, Serialize};

use super::*;
use crate::link::frame::{Hello, Reply, Resume};
use crate::naming::SlotName;
use crate::naming::migration_protocol::{Attempt, Event, Word};
use crate::{Peer, Theater};

#[derive(Serialize, Deserialize)]
pub(super) struct Guest;

#[derive(Serialize, Deserialize)]
pub(super) struct Greet;
impl Message for Greet {
    type Reply = ActorRef<Guest>;
    const WIRE: Option<WireForm<Greet>> = Some(WireForm::of());
}
impl Actor for Guest {}
impl Handler<Greet> for Guest {
    fn handle(&mut self, _: Greet, ctx: &mut Context<Self>) -> ActorRef<Guest> {
        ctx.this()
    }
}
remote!(mobile Guest: Greet);

fn two() -> ([Theater; 2], [Peer; 2]) {
    let theaters = [(); 2].map(|()| Theater::builder().listen("127.0.0.1:0").start().unwrap());
    let [a, b] = &theaters;
    let peers = [(a, b), (b, a)].map(|(from, to)| from.connect(to.address().unwrap()).unwrap());
    (theaters, peers)
}

pub(super) fn eventually(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never is so");
        std::thread::yield_now();
    }
}

/// Returns the number of numbers given, and of numbers that mean an actor.
fn handles(peer: &Peer) -> (Handle, usize) {
    (lock(&peer.link.out).next_handle, lock(&peer.link.stubs).handles.len())
}

fn targets(peer: &Peer) -> usize {
    lock(&peer.link.inn).targets.all.iter().flatten().count()
}

// GUARANTEE: Ended actors are forgotten
#[test]
fn stubs_of_actors_that_ended_in_another_theater_are_freed() {
    const AT_ONCE: usize = 200;
    let ([here, there], [peer, back]) = two();
    let left = || {
        let [total, _] = [&here, &there].map(|theater| theater.system().stats().total);
        total.spawned - total.stopped
    };
    let mut kept = 0;
    for round in 0..10 {
        let guests: Vec<_> = (0..AT_ONCE).map(|_| here.spawn_at(&peer, &Guest).unwrap()).collect();
        for guest in &guests {
            assert_eq!(guest.ask(Greet).wait(), Ok(*guest));
        }
        assert_eq!(handles(&peer).1, AT_ONCE);
        guests.iter().for_each(|guest| guest.stop());
        eventually(|| handles(&peer).1 == 0 && targets(&back) == 0);
        // The error is that of any ended actor.
        assert_eq!(guests[0].ask(Greet).wait(), Err(AskError::Stopped));
        if round == 0 {
            // A turnstile for each stage that has had stubs.
            kept = left();
        }
    }
    assert!(handles(&peer).0 <= 2 * AT_ONCE as Handle, "{} numbers were given", handles(&peer).0);
    // The stubs are gone as well.
    assert!(left() < kept + 10 && kept < AT_ONCE as u64, "{} and {kept} are left", left());
}

// GUARANTEE: Ended actors are forgotten
#[test]
fn an_actor_that_migrates_to_and_fro_leaves_nothing_behind() {
    const MOVES: usize = 2_000;
    let ([here, there], [peer, back]) = two();
    let guest = here.system().spawn(Guest);
    here.replace("guest", guest);
    let known = there.find::<Guest>(&format!("playhouse://{}/guest", here.address().unwrap())).wait().unwrap();
    for _ in 0..MOVES / 2 {
        here.migrate(guest, &peer).wait().unwrap();
        there.migrate(known, &back).wait().unwrap();
    }
    assert_eq!((guest.ask(Greet).wait(), known.ask(Greet).wait()), (Ok(guest), Ok(known)));
    for peer in [&peer, &back] {
        let (given, known) = handles(peer);
        assert!(given < 500 && known < 10, "{given} numbers for {MOVES} moves, {known} are known");
    }
}

// GUARANTEE: Ended actors are forgotten
/// Theaters tell the ends of actors over links. If names of very many actors come from third theaters, a link is worth its cost.
#[test]
fn actors_of_a_theater_without_a_link_are_forgotten_when_they_have_ended_but_for_some() {
    const FEW: usize = 1_000;
    let ([here, there], _peers) = two();
    let third = Theater::builder().listen("127.0.0.1:0").start().unwrap();
    let [of_here, of_there] =
        [&here, &there].map(|theater| format!("playhouse://{}/guest", theater.address().unwrap()));
    let tell = |count: usize| -> Vec<ActorRef<Guest>> {
        let guests = (0..count).map(|_| {
            let guest = here.system().spawn(Guest);
            here.replace("guest", guest);
            there.replace("guest", there.find::<Guest>(&of_here).wait().unwrap());
            third.find::<Guest>(&of_there).wait().unwrap();
            guest
        });
        guests.collect()
    };
    let names = || third.theater_core.directory.kept().into_iter().find(|(what, _)| *what == "names").unwrap().1;
    let has_link = || third.peers().iter().any(|peer| peer.link.incarnation == here.theater_core.incarnation);
    let few = tell(FEW);
    third.theater_core.tick();
    assert_eq!((names(), has_link()), (FEW, false));
    let more = tell(FEW);
    few.iter().chain(&more).for_each(|guest| guest.stop());
    eventually(|| has_link() && names() <= 1_024);
    [here, there, third].into_iter().for_each(|theater| drop(theater.shutdown().unwrap()));
}

/// Returns whether the theaters, and these links between them, keep nothing of actors.
fn is_forgotten<const N: usize>(theaters: [&Theater; N], peers: &[&Peer]) -> bool {
    let is_kept = |theater: &&Theater| theater.theater_core.directory.kept().into_iter().any(|(_, count)| count > 0);
    let is_left =
        |peer: &&Peer| !lock(&peer.link.migrations().left).is_empty() || handles(peer).1 > 0 || targets(peer) > 0;
    !theaters.iter().any(is_kept) && !peers.iter().any(is_left)
}

// GUARANTEE: Ended actors are forgotten
#[test]
fn an_actor_that_ends_in_another_theater_is_forgotten_in_all() {
    const AT_ONCE: usize = 50;
    let ([here, there], [peer, back]) = two();
    let third = Theater::builder().listen("127.0.0.1:0").start().unwrap();
    let [from_here, from_there] = [&here, &there].map(|theater| theater.connect(third.address().unwrap()).unwrap());
    let own = |theater: &Theater| {
        let of_here = |peer: &Peer| peer.link.incarnation == here.theater_core.incarnation;
        theater.peers().into_iter().find(of_here).unwrap()
    };
    let to_here = own(&third);
    for in_groups in [false, true] {
        let group = Group::new(here.system());
        let options = || match in_groups {
            true => SpawnOptions::new().placement(Placement::Group(group)),
            false => SpawnOptions::new(),
        };
        let guests: Vec<ActorRef<Guest>> = (0..AT_ONCE).map(|_| here.system().spawn_with(options(), Guest)).collect();
        let known: Vec<ActorRef<Guest>> = guests
            .iter()
            .map(|guest| {
                here.replace("guest", *guest);
                third.find::<Guest>(&format!("playhouse://{}/guest", here.address().unwrap())).wait().unwrap()
            })
            .collect();
        if in_groups {
            here.migrate_group(group, &peer).wait().unwrap();
        } else {
            guests.iter().for_each(|guest| here.migrate(*guest, &peer).wait().unwrap());
        }
        // Some got a message over this theater first, some directly, and some never.
        for guest in known.iter().step_by(2) {
            assert_eq!(guest.ask(Greet).wait(), Ok(*guest));
        }
        guests.iter().for_each(|guest| guest.stop());
        eventually(|| is_forgotten([&here, &there, &third], &[&peer, &back, &from_here, &from_there, &to_here]));
        for guest in guests.iter().chain(&known) {
            assert_eq!(guest.ask(Greet).wait(), Err(AskError::Stopped));
        }
    }
}

/// Reports the end of a guest.
struct Watch(ActorRef<Guest>, std::sync::mpsc::Sender<StopReason>);
impl Actor for Watch {
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.watch(self.0);
    }

    fn terminated(&mut self, terminated: Terminated, _: &mut Context<Self>) {
        let _ = self.1.send(terminated.reason);
    }
}

// GUARANTEE: A group migrates as one
#[test]
fn a_group_is_called_off_where_one_of_it_cannot_begin() {
    let ([here, there], [peer, back]) = two();
    let group = Group::new(here.system());
    let options = || SpawnOptions::new().placement(Placement::Group(group));
    let guests = [(); 3].map(|()| here.system().spawn_with(options(), Guest));
    let (ended, ends) = std::sync::mpsc::channel();
    here.system().spawn(Watch(guests[0], ended));
    here.system().run_until_idle();
    here.migrate_group(group, &peer).wait().unwrap();
    // The first one comes freely, and this one behind a marker.
    guests[1].ask(Greet).wait().unwrap();

    // The target already holds an incoming actor with its name.
    let (directory, last) = (&peer.link.directory, guests[2].id());
    let attempt = Attempt { from: 1, number: directory.next_number() };
    let says = |word| directory.step(last, Event::Said { from: attempt.from, word });
    assert_eq!(says(Word::Move { attempt: attempt.number }).len(), 1);
    let MigrateError::Member { why, .. } = there.migrate_group(group, &back).wait().unwrap_err() else { panic!() };
    assert_eq!(*why, MigrateError::Refused("it has the actor already".to_owned()));
    says(Word::Stays { attempt: attempt.number });

    // The word has changed nothing: the actors are in the other theater, and can come.
    for guest in guests {
        assert!(directory.is_remote(guest.id()));
        assert_eq!(guest.ask(Greet).within(Duration::from_secs(60)).wait(), Ok(guest));
    }
    there.migrate_group(group, &back).wait().unwrap();
    for guest in guests {
        assert!(!directory.is_remote(guest.id()));
        assert_eq!(guest.ask(Greet).within(Duration::from_secs(60)).wait(), Ok(guest));
    }
    guests[0].stop();
    assert_eq!(ends.recv_timeout(Duration::from_secs(60)), Ok(StopReason::Stopped));
}

/// The actions of traps at their next reading, by number.
static AS_IT_IS_READ: Mutex<BTreeMap<u64, Box<dyn FnOnce() + Send>>> = Mutex::new(BTreeMap::new());

/// A value that calls its action when it is read.
#[derive(Clone, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub(super) struct Trap(u64);

impl Trap {
    pub(super) fn set(act: impl FnOnce() + Send + 'static) -> Trap {
        // A theater reads this type with small numbers at its start, because it examines the shapes of all types.
        static NUMBERS: AtomicU64 = AtomicU64::new(1_000);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        lock(&AS_IT_IS_READ).insert(number, Box::new(act));
        Trap(number)
    }
}

impl From<Trap> for u64 {
    fn from(Trap(number): Trap) -> u64 {
        number
    }
}

impl From<u64> for Trap {
    fn from(number: u64) -> Trap {
        let act = lock(&AS_IT_IS_READ).remove(&number);
        if let Some(act) = act {
            act();
        }
        Trap(number)
    }
}

/// Counts its messages.
#[derive(Serialize, Deserialize)]
pub(super) struct Counts(pub(super) u64, pub(super) Option<Trap>);
#[derive(Serialize, Deserialize)]
struct One(Trap);
impl Message for One {
    type Reply = ();
    const WIRE: Option<WireForm<One>> = Some(WireForm::of());
}
#[derive(Serialize, Deserialize)]
pub(super) struct Sum;
impl Message for Sum {
    type Reply = u64;
    const WIRE: Option<WireForm<Sum>> = Some(WireForm::of());
}
impl Actor for Counts {}
impl Handler<One> for Counts {
    fn handle(&mut self, _: One, _: &mut Context<Self>) {
        self.0 += 1;
    }
}
impl Handler<Sum> for Counts {
    fn handle(&mut self, _: Sum, _: &mut Context<Self>) -> u64 {
        self.0
    }
}
remote!(mobile Counts: One, Sum);

/// Sends this number of messages at once at its start.
struct Burst(ActorRef<Counts>, Trap, usize);
impl Actor for Burst {
    fn started(&mut self, _: &mut Context<Self>) {
        (0..self.2).for_each(|_| self.0.tell(One(self.1.clone())));
    }
}

// GUARANTEE: A lost theater is reported
#[test]
fn nothing_is_taken_from_a_link_that_is_lost() {
    let ([here, there], [_, back]) = two();
    let counts = there.system().spawn(Counts(0, None));
    there.publish("counts", counts).unwrap();
    let known = here.find::<Counts>(&format!("playhouse://{}/counts", there.address().unwrap())).wait().unwrap();
    let link = Arc::clone(&back.link);
    here.system().spawn(Burst(known, Trap::set(move || link.lose()), 50));
    // Nothing was acknowledged, so they are dead letters in the sending theater.
    eventually(|| here.system().stats().total.dead_letters == 50);
    // The message that was being read has come.
    eventually(|| counts.ask(Sum).wait() == Ok(1));
    there.system().run_until_idle();
    assert_eq!(counts.ask(Sum).wait(), Ok(1));
}

// GUARANTEE: Alive once
#[test]
fn an_actor_that_arrives_as_its_link_is_lost_does_not_begin() {
    let ([here, there], [peer, back]) = two();
    let third = Theater::builder().listen("127.0.0.1:0").start().unwrap();
    let [from_here, from_there] = [&here, &there].map(|theater| theater.connect(third.address().unwrap()).unwrap());
    let link = Arc::clone(&back.link);
    let counts = here.system().spawn(Counts(0, Some(Trap::set(move || link.lose()))));
    let identity = peer.link.directory.identity(counts.id()).unwrap();
    assert_eq!(here.migrate(counts, &peer).wait(), Err(MigrateError::TheaterLost));
    let mut come = None;
    eventually(|| {
        come = back.link.directory.known_as(identity.birth_name());
        come.is_some()
    });
    let (done, ended) = std::sync::mpsc::channel();
    let theater_core = &there.theater_core;
    theater_core.migrate(come.unwrap(), Arc::clone(&from_there.link), Box::new(move |moved| done.send(moved).unwrap()));
    let moved = ended.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(matches!(moved, Err(MigrateError::Elsewhere | MigrateError::Stopped)), "{moved:?}");
    // It lives in its former theater.
    assert_eq!(counts.ask(Sum).wait(), Ok(0));
    assert_eq!(here.migrate(counts, &from_here).wait(), Ok(()));
    assert_eq!(counts.ask(Sum).wait(), Ok(0));
}

/// Returns an actor in the second of these theaters, which the first has lost long ago. The actor's stub in the first one has not learned that.
fn lost_and_not_told() -> ([Theater; 2], Peer, ActorRef<Guest>) {
    let (theaters, [peer, _]) = two();
    let guest = theaters[0].spawn_at(&peer, &Guest).unwrap();
    guest.ask(Greet).wait().unwrap();
    peer.link.changed_ns.store(0, Ordering::Relaxed);
    peer.link.lost.store(true, Ordering::Release);
    (theaters, peer, guest)
}

/// Waits until a watch on the lost link is on its way: it is noted for a moment.
fn is_found_again(peer: &Peer) {
    eventually(|| {
        let out = lock(&peer.link.out);
        let is_quiet = out.watches.is_empty();
        if is_quiet {
            peer.link.lost.store(false, Ordering::Release);
        }
        is_quiet
    });
}

// GUARANTEE: Alive once
#[test]
fn a_watch_before_a_stub_knows_of_a_loss_waits_for_the_loss() {
    let ([here, _there], peer, guest) = lost_and_not_told();
    let (ended, ends) = std::sync::mpsc::channel();
    here.system().spawn(Watch(guest, ended));
    here.system().run_until_idle();
    // The stub has another route by the next time.
    is_found_again(&peer);
    eventually(|| !lock(&peer.link.out).watches.is_empty());
    guest.stop();
    assert_eq!(ends.recv_timeout(Duration::from_secs(60)), Ok(StopReason::Stopped));
}

/// Begins to watch, and ends it at once.
struct Glance(ActorRef<Guest>, std::sync::mpsc::Sender<StopReason>);
impl Actor for Glance {
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.watch(self.0);
        ctx.unwatch(self.0);
    }

    fn terminated(&mut self, terminated: Terminated, _: &mut Context<Self>) {
        let _ = self.1.send(terminated.reason);
    }
}

// GUARANTEE: Alive once
#[test]
fn a_watch_cancelled_before_a_stub_knows_of_a_loss_is_not_notified() {
    let ([here, _there], peer, guest) = lost_and_not_told();
    let (ended, ends) = std::sync::mpsc::channel();
    here.system().spawn(Glance(guest, ended));
    here.system().run_until_idle();
    // Another actor watches behind it.
    let (other, others) = std::sync::mpsc::channel();
    let other = here.system().spawn(Watch(guest, other));
    here.system().run_until_idle();
    is_found_again(&peer);
    // The first one's watch is on its way for a moment, too, and then no more.
    let watches = |(watcher, _): &(Watcher, u64)| matches!(watcher, Watcher::Here(id, _) if *id == other.id());
    eventually(|| lock(&peer.link.out).watching.values().flatten().any(watches));
    guest.stop();
    assert_eq!(others.recv_timeout(Duration::from_secs(60)), Ok(StopReason::Stopped));
    here.system().run_until_idle();
    assert!(ends.try_recv().is_err());
}

// GUARANTEE: A lost theater is reported
#[test]
fn a_lost_link_has_no_connection_for_acknowledgements() {
    for _ in 0..20 {
        let (_theaters, [peer, _back]) = two();
        let link = Arc::clone(&peer.link);
        let lose = std::thread::spawn(move || link.lose());
        eventually(|| peer.is_lost());
        assert!(peer.link.connection().is_none());
        lose.join().unwrap();
    }
}

// GUARANTEE: A lost theater is reported
#[test]
fn a_new_link_waits_until_the_lost_one_is_forgotten() {
    let theater = Theater::builder().start().unwrap();
    let there = &theater.theater_core;
    // The greeting of a theater that does not run: a running one would call again by itself.
    let hello = Hello { incarnation: 1, listens: None, knows: Vec::new(), link: Some(1), ..there.hello(None) };
    let (reply, link) = there.receive_hello(&hello, None);
    assert!(matches!(reply, Reply::Hello(_)));
    let link = link.expect("a first call makes a link").link;
    link.lost.store(true, Ordering::Release);
    assert_eq!(there.receive_hello(&hello, None).0, Reply::Busy);
    link.lost.store(false, Ordering::Release);
    link.lose();
    // A theater that still has the link must not continue it.
    let knows = Hello { knows: vec![there.incarnation], ..hello.clone() };
    assert_eq!(there.receive_hello(&knows, None).0, Reply::GivenUp(there.incarnation));
    assert!(matches!(there.receive_hello(&Hello { link: Some(2), ..hello }, None).0, Reply::Hello(_)));
}

// GUARANTEE: A lost theater is reported
#[test]
fn a_connection_that_is_made_as_the_link_is_lost_is_not_used() {
    let ([here, there], [peer, back]) = two();
    let (link, theater_core) = (&peer.link, &here.theater_core);
    // Later than those of the thread that handles lost connections.
    let connection = 1_000;
    let received = link.prepare(connection);
    let resumes = Resume { incarnation: link.incarnation, received, connection, link: None };
    let exchanged =
        theater_core.exchange(there.address().unwrap(), &theater_core.hello(Some(resumes)), Duration::from_secs(5));
    assert!(matches!(exchanged, Ok((Reply::Hello(_), _))), "it was called again");
    link.lose();
    // The housekeeper may have begun to call, too.
    link.prepare(connection);
    theater_core.called_again(link, connection, exchanged);
    assert!(link.connection().is_none());
    // And the other end learns that the connection is gone.
    eventually(|| back.link.connection().is_none());
}

// GUARANTEE: A paused process does not declare its peers lost
#[test]
fn a_late_call_for_a_lost_link_does_not_break_the_new_link() {
    let ([here, there], [peer, back]) = two();
    let (link, theater_core) = (&peer.link, &here.theater_core);
    let number = Some(back.link.number());
    let resumes = Resume { incarnation: link.incarnation, received: 0, connection: 1_000, link: number };
    link.lose();
    let again = here.connect(there.address().unwrap()).unwrap();
    // The called end makes it before it answers.
    let link = there.peers().iter().find(|peer| !peer.is_lost()).map(|peer| Arc::clone(&peer.link)).unwrap();
    eventually(|| link.connection().is_some());
    let before = link.connection().unwrap().token;
    let late = there.theater_core.receive_hello(&theater_core.hello(Some(resumes)), None);
    assert!(matches!(&late, (Reply::Refused(why), None) if why == "the theaters have another link by now"));
    assert_eq!(link.connection().map(|connection| connection.token), Some(before));
    assert!(!again.is_lost());
}

// GUARANTEE: A link is lost after its time
#[test]
fn a_link_is_silent_for_as_long_as_it_is_and_not_for_as_often_as_it_is_looked_at() {
    let (theaters, [peer, _]) = two();
    let token = || peer.link.connection().map(|connection| connection.token);
    let before = token();
    assert!(before.is_some());
    for _ in 0..1_000 {
        theaters[0].theater_core.tick();
    }
    assert_eq!(token(), before, "a connection was broken that had been silent for some milliseconds");
    theaters.into_iter().for_each(|theater| drop(theater.shutdown().unwrap()));
}

// GUARANTEE: A theater that is down costs little
#[cfg(target_os = "linux")]
#[test]
fn a_theater_that_leaves_again_and_again_takes_one_thread() {
    let theater = Theater::builder().start().unwrap();
    let link = hostile::rejected_peer(&theater, 1);
    let waiting = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        names.filter(|name| name.starts_with("playhouse-turn")).count()
    };
    // Nothing is answered for now.
    let out = lock(&link.out);
    for ask in 0..100 {
        let mut frame = Vec::new();
        Head::Leaving { ask }.write(&mut frame).unwrap();
        link.take_of_rejected_peer(&frame);
    }
    let threads = waiting();
    drop(out);
    assert!(threads < 10, "{threads} threads wait for one theater");
    eventually(|| lock(&link.migrations().leaving).is_none());
    theater.shutdown().unwrap();
}

/// The payload of a panic. Its drop panics, too.
struct Bomb;
impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the drop of a payload");
    }
}

// GUARANTEE: A panic costs one message
#[test]
fn panics_while_a_theater_polls_harm_no_link() {
    let ([here, there], _peers) = two();
    there.system().on_dead_letter(|_| std::panic::panic_any(Bomb));
    let counts = there.system().spawn(Counts(0, None));
    there.publish("counts", counts).unwrap();
    let known = here.find::<Counts>(&format!("playhouse://{}/counts", there.address().unwrap())).wait().unwrap();
    for told in 0..10 {
        // The message is a dead letter, and the hook panics as well.
        known.tell(One(Trap::set(|| std::panic::panic_any(Bomb))));
        known.tell(One(Trap(u64::MAX)));
        assert_eq!(known.ask(Sum).within(Duration::from_secs(60)).wait(), Ok(told + 1));
    }
    assert_eq!(there.system().stats().total.dead_letters, 10);
}

// GUARANTEE: Heartbeats show that a theater polls
#[test]
fn a_theater_that_does_not_poll_is_silent_and_lost() {
    let [here, there, third] = [(); 3].map(|()| {
        let builder = Theater::builder().listen("127.0.0.1:0").lost_after(Duration::from_millis(200));
        builder.start().unwrap()
    });
    // Only the third theater calls again.
    there.connect(here.address().unwrap()).unwrap();
    let caller = third.connect(there.address().unwrap()).unwrap();
    eventually(|| here.peers().len() == 1);
    let peer = here.peers().remove(0);
    let counts = there.system().spawn(Counts(0, None));
    there.publish("counts", counts).unwrap();
    let known = here.find::<Counts>(&format!("playhouse://{}/counts", there.address().unwrap())).wait().unwrap();
    let (go_on, waits) = std::sync::mpsc::channel::<()>();
    known.tell(One(Trap::set(move || _ = waits.recv())));
    let asked = known.ask(Sum).within(Duration::from_secs(60)).wait();
    assert_eq!(asked, Err(AskError::TheaterLost { may_have_run: true }));
    eventually(|| peer.is_lost() && caller.is_lost());
    // When polling goes on, it can be reached again.
    drop(go_on);
    eventually(|| here.connect(there.address().unwrap()).is_ok_and(|peer| !peer.is_lost()));
}

/// A message that may contain itself at any depth.
#[derive(Serialize, Deserialize)]
enum Tree {
    Leaf,
    Node(Box<Tree>),
}

/// The same tree in the bytes of a peer without a limit.
struct Deep(Tree, usize);
impl Serialize for Deep {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeTuple;
        if self.1 == 0 {
            return self.0.serialize(to);
        }
        let mut bytes = to.serialize_tuple(self.1)?;
        (1..self.1).try_for_each(|_| bytes.serialize_element(&1_u8))?;
        bytes.serialize_element(&0_u8)?;
        bytes.end()
    }
}
impl<'de> Deserialize<'de> for Deep {
    fn deserialize<D: serde::Deserializer<'de>>(of: D) -> Result<Deep, D::Error> {
        Tree::deserialize(of).map(|tree| Deep(tree, 0))
    }
}
impl Message for Deep {
    type Reply = ();
    const WIRE: Option<WireForm<Deep>> = Some(WireForm::of());
}
impl Handler<Deep> for Counts {
    fn handle(&mut self, _: Deep, _: &mut Context<Self>) {
        self.0 += 1;
    }
}
remote!(also Counts: Deep);

// GUARANTEE: Nesting does not overflow a stack
#[test]
fn a_message_that_nests_too_deep_is_refused_and_its_link_lives() {
    let ([here, there], [peer, _]) = two();
    let counts = here.spawn_at(&peer, &Counts(0, None)).unwrap();
    let deep = |depth: usize| (0..depth).fold(Tree::Leaf, |tree, _| Tree::Node(Box::new(tree)));
    let ask = |deep: Deep| counts.ask(deep).within(Duration::from_secs(60)).wait();
    assert_eq!(ask(Deep(deep(200), 0)), Ok(()));
    let refused = |answer: Result<(), AskError>| match answer {
        Err(AskError::Unreachable(why)) => assert!(why.contains("nested too deep"), "{why}"),
        answer => panic!("{answer:?}"),
    };
    // Refused by the writer, and by the reader.
    refused(ask(Deep(deep(1_000), 0)));
    refused(ask(Deep(Tree::Leaf, 8 << 20)));
    counts.tell(Deep(Tree::Leaf, 8 << 20));
    assert_eq!(counts.ask(Sum).within(Duration::from_secs(60)).wait(), Ok(1));
    assert_eq!(there.system().stats().total.dead_letters, 1);
    assert!(!peer.is_lost());
}

/// The number of times that a thread or a stage has had to wait for room to start an actor.
pub(super) static ROOM_AWAITED: AtomicUsize = AtomicUsize::new(0);

/// A peer that sends the frames of a test.
pub(super) struct Raw {
    line: Connection,
    outbound: Outbound,
}

impl Raw {
    /// Calls `theater`, and takes the same messages.
    pub(super) fn call(theater: &Theater) -> Raw {
        let theater_core = &theater.theater_core;
        let caller = Theater::builder().start().unwrap();
        let hello = Hello { listens: None, ..caller.theater_core.hello(None) };
        let called = caller.theater_core.exchange(theater_core.listens.unwrap(), &hello, Duration::from_secs(5));
        let (reply, (stream, cipher)) = called.unwrap();
        assert!(matches!(reply, Reply::Hello(_)));
        let line =
            Connection { token: mio::Token(0), stream, cipher, unread: false.into(), number: 1, broken: false.into() };
        Raw { line, outbound: Outbound::new(FRAME_BYTES_MAX) }
    }

    fn say(&mut self, lane: session::Lane, head: &Head) {
        self.say_with(lane, head, &[]);
    }

    /// Sends a frame with `rest` behind its head.
    pub(super) fn say_with(&mut self, lane: session::Lane, head: &Head, rest: &[u8]) {
        let frame = self.outbound.frame(lane, |out| {
            head.write(out)?;
            out.extend_from_slice(rest);
            Ok::<(), WireError>(())
        });
        frame.unwrap();
    }

    /// Writes all bytes that the connection takes.
    pub(super) fn write(&mut self) {
        while self.outbound.output(0, false, |slices| self.line.write(slices)).is_ok_and(|bytes| bytes > 0) {}
    }
}

const SMALL_WINDOW: usize = 64 * 1024;

/// Returns a theater with a small window, and its link with a peer that reads nothing.
fn with_silent_reader() -> (Theater, Raw, Peer) {
    let builder = Theater::builder().listen("127.0.0.1:0").window(SMALL_WINDOW);
    let theater = builder.lost_after(Duration::from_millis(100)).start().unwrap();
    let raw = Raw::call(&theater);
    eventually(|| !theater.peers().is_empty());
    let peer = theater.peers().remove(0);
    (theater, raw, peer)
}

// GUARANTEE: Mail that waits for a theater is bounded
#[test]
fn a_peer_that_does_not_read_what_it_asks_for_is_read_no_further_and_then_lost() {
    const BYTES_MAX: usize = REPLY_WINDOWS_MAX * SMALL_WINDOW + RESERVE_BYTES;
    let (_theater, mut raw, peer) = with_silent_reader();
    let name = "x".repeat(4_000);
    while !peer.is_lost() {
        if !raw.outbound.has_output() {
            (0..64).for_each(|ask| {
                raw.say(session::Lane::Normal, &Head::Find { ask, name: name.clone(), actor: "y".to_owned() });
            });
        }
        raw.write();
        let bytes = peer.link.unwritten_reply_bytes();
        // Replies to the frames read in one round come on top.
        assert!(bytes < BYTES_MAX + 2 * ROUND_BYTES, "{bytes} bytes wait for a peer that reads nothing");
        std::thread::yield_now();
    }
}

/// An actor with a large state.
#[derive(Serialize, Deserialize)]
struct Fat(Vec<u8>);
impl Actor for Fat {}
impl Handler<Sum> for Fat {
    fn handle(&mut self, _: Sum, _: &mut Context<Self>) -> u64 {
        self.0.len() as u64
    }
}
remote!(spawn Fat: Sum);

// GUARANTEE: Mail that waits for a theater is bounded
#[test]
fn starts_wait_for_room_in_the_window() {
    const STARTS: usize = 100;
    const STATE_BYTES: usize = 4 * SMALL_WINDOW;
    let (theater, _raw, peer) = with_silent_reader();
    let started = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let starts = scope.spawn(|| {
            (0..STARTS).try_for_each(|_| {
                theater.spawn_at(&peer, &Fat(vec![1; STATE_BYTES])).map(|_| _ = started.fetch_add(1, Ordering::Relaxed))
            })
        });
        eventually(|| ROOM_AWAITED.load(Ordering::Relaxed) > 0 || started.load(Ordering::Relaxed) == STARTS);
        let (started, bytes) = (started.load(Ordering::Relaxed), peer.link.under_way().1);
        assert!(bytes < SMALL_WINDOW + 2 * STATE_BYTES, "{started} starts, {bytes} bytes");
        // Room never comes.
        peer.link.lose();
        assert!(starts.join().unwrap().is_err());
    });
}

/// Starts guests on the worker that runs it.
struct Starter;
struct Start;
impl Message for Start {
    type Reply = Vec<ActorRef<Guest>>;
}
impl Actor for Starter {}
impl Handler<Start> for Starter {
    fn handle(&mut self, _: Start, ctx: &mut Context<Self>) -> Vec<ActorRef<Guest>> {
        (0..100).map(|_| ctx.spawn(Guest)).collect()
    }
}

#[test]
fn an_actor_that_has_ended_is_known_by_its_name_though_another_one_has_its_cell() {
    // A worker uses the cells again that it has given up.
    let theater = Theater::builder().system(System::builder().workers(1)).start().unwrap();
    let directory = &theater.theater_core.directory;
    let starter = theater.system().spawn(Starter);
    for bounded in [false, true] {
        // Actors of other tests may have the cell instead.
        eventually(|| {
            let options = SpawnOptions::new();
            let options = if bounded { options.mailbox(Mailbox::bounded(4)) } else { options };
            let guest = theater.system().spawn_with(options, Guest);
            let name = directory.slot_name(guest.id()).unwrap();
            let known = || (directory.own(name), directory.own_or_ended(name));
            assert_eq!(known(), (Some(guest.id()), Some(guest.id())));
            guest.stop();
            eventually(|| guest.is_stopped());
            assert_eq!(known(), (None, Some(guest.id())));
            assert_eq!(directory.own_or_ended(SlotName { capability: name.capability ^ 1, ..name }), None);
            for other in [name.incarnation | 1 << 49, u64::MAX] {
                assert_eq!(directory.core.find_ended(name.slot, other), None);
            }
            let later = starter.ask(Start).wait().unwrap();
            assert_eq!(known(), (None, Some(guest.id())));
            later.iter().for_each(|later| later.stop());
            later.iter().any(|later| later.id().address().slot() == name.slot)
        });
    }
}
