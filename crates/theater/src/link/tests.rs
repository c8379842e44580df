//! What links forget.

use std::time::{Duration, Instant};

use playhouse_actor::wire::WireForm;
use playhouse_actor::{
    Actor, ActorRef, Context, Down, Group, Handler, Message, MigrateError, Placement, SpawnOptions, remote,
};
use serde::{Deserialize, Serialize};

use super::*;
use crate::{Peer, Theater};

#[derive(Serialize, Deserialize)]
struct Guest;

#[derive(Serialize, Deserialize)]
struct Greet;
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

fn eventually(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never is so");
        std::thread::yield_now();
    }
}

/// Numbers that were given so far, and those that mean somebody.
fn handles(peer: &Peer) -> (Handle, usize) {
    (lock(&peer.link.out).next_handle, lock(&peer.link.places).handles.len())
}

fn targets(peer: &Peer) -> usize {
    lock(&peer.link.inn).targets.all.iter().flatten().count()
}

#[test]
fn places_of_actors_that_have_ended_elsewhere_are_given_up() {
    const AT_ONCE: usize = 200;
    let ([here, there], [peer, back]) = two();
    for _ in 0..10 {
        let guests: Vec<_> = (0..AT_ONCE).map(|_| here.spawn_at(&peer, &Guest).unwrap()).collect();
        for guest in &guests {
            assert_eq!(guest.ask(Greet).wait(), Ok(*guest));
        }
        assert_eq!(handles(&peer).1, AT_ONCE);
        guests.iter().for_each(|guest| guest.stop());
        eventually(|| handles(&peer).1 == 0 && targets(&back) == 0);
        // As with any actor that has ended.
        assert_eq!(guests[0].ask(Greet).wait(), Err(AskError::Stopped));
    }
    assert!(handles(&peer).0 <= 2 * AT_ONCE as Handle, "{} numbers were given", handles(&peer).0);
    // The places are gone as well.
    let [total, _] = [&here, &there].map(|theater| theater.system().stats().total);
    assert!(total.spawned - total.stopped < 10, "{} are left of {}", total.spawned - total.stopped, total.spawned);
}

#[test]
fn who_comes_and_goes_leaves_nothing_behind() {
    const MOVES: usize = 2_000;
    let ([here, there], [peer, back]) = two();
    let guest = here.system().spawn(Guest);
    here.publish("guest", guest);
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

/// Tells of the end of a guest.
struct Watch(ActorRef<Guest>, std::sync::mpsc::Sender<StopReason>);
impl Actor for Watch {
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.watch(self.0);
    }

    fn terminated(&mut self, down: Down, _: &mut Context<Self>) {
        let _ = self.1.send(down.reason);
    }
}

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

    // It is held for one that is here already.
    let (directory, last) = (&peer.link.directory, guests[2].id());
    let was = directory.at(last);
    directory.note_moved(last, None);
    let MigrateError::Member { why, .. } = there.migrate_group(group, &back).wait().unwrap_err() else { panic!() };
    assert_eq!(*why, MigrateError::Refused("it is there already".to_owned()));
    directory.note_moved(last, was);

    // Nothing has changed by that: they are there, and can come.
    for guest in guests {
        assert!(directory.is_elsewhere(guest.id()));
        assert_eq!(guest.ask(Greet).within(Duration::from_secs(60)).wait(), Ok(guest));
    }
    there.migrate_group(group, &back).wait().unwrap();
    for guest in guests {
        assert!(!directory.is_elsewhere(guest.id()));
        assert_eq!(guest.ask(Greet).within(Duration::from_secs(60)).wait(), Ok(guest));
    }
    guests[0].stop();
    assert_eq!(ends.recv_timeout(Duration::from_secs(60)), Ok(StopReason::Stopped));
}
