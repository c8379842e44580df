//! Tests: actors that are being located, and stubs whose theaters are lost, frame by frame.

use super::*;

/// Returns the number of a search, if the theater has asked for one.
fn locate(link: &Link) -> Option<u64> {
    let said = link.says().into_iter();
    said.filter_map(|(head, _)| if let Head::Locate { ask, .. } = head { Some(ask) } else { None }).next()
}

fn sighted(link: &Link, ask: u64, known: Option<Whereabouts>) {
    link.receives(&Head::Answer { ask, codec: Wire::Positional }, &bytes(&LocateReply(vec![known])));
}

// GUARANTEE: Alive once
#[test]
fn an_actor_that_migrates_between_two_locate_replies_is_located_again() {
    let [theater] = theaters();
    let [one, other, via] = [10, 11, 12].map(|incarnation| rejected_peer(&theater, incarnation));
    let stub = via.stub_of_its(1, 7);
    via.lose();
    theater.system().run_until_idle();
    // The other one has not seen it, and the one says then that it has gone to the other one.
    sighted(&other, locate(&other).unwrap(), None);
    sighted(&one, locate(&one).unwrap(), Some(Whereabouts::Gone(11)));
    assert!(!stub.address().is_stale());
    let mut asks = [None; 2];
    eventually(|| {
        for (ask, link) in asks.iter_mut().zip([&one, &other]) {
            *ask = ask.or_else(|| locate(link));
        }
        asks.iter().all(Option::is_some)
    });
    sighted(&one, asks[0].unwrap(), Some(Whereabouts::Gone(11)));
    let location = ActorLocation { theater: 11, address: None, slot: 5, incarnation: 1, capability: 9 };
    sighted(&other, asks[1].unwrap(), Some(Whereabouts::At(location)));
    assert!(matches!(theater.theater_core.directory.at(stub), Some(RemoteActorId { theater: 11, slot: 5, .. })));
}

#[test]
fn an_actor_that_all_chains_lose_in_the_lost_theater_is_lost_at_once() {
    let [theater] = theaters();
    let [one, other, via] = [10, 11, 12].map(|incarnation| rejected_peer(&theater, incarnation));
    let stub = via.stub_of_its(1, 7);
    via.lose();
    theater.system().run_until_idle();
    sighted(&one, locate(&one).unwrap(), Some(Whereabouts::Gone(11)));
    sighted(&other, locate(&other).unwrap(), Some(Whereabouts::Gone(12)));
    eventually(|| stub.address().is_stale());
    assert_eq!((locate(&one), locate(&other)), (None, None));
}

/// Has the other end name an actor of theater 10, which has no link yet. Therefore its stub has no route over a link, and is not located if that
/// theater is lost.
pub(super) fn named_by(link: &Link) -> ActorRef<Guest> {
    let address = "127.0.0.1:9".parse().unwrap();
    meet_by(link, RefName::Other { theater: 10, address, slot: 1, incarnation: 1, capability: 7 })
}

/// Has the other end name an actor that was not known by this name.
pub(super) fn meet_by(link: &Link, name: RefName) -> ActorRef<Guest> {
    let named = Cell::new(None);
    let stub = |core: &SystemCore, stub_placement: StubPlacement, forwarder: Arc<dyn Forwarder>| {
        let guest = spawn_stub::<Guest>(core, stub_placement, forwarder);
        named.set(Some(guest));
        guest.id()
    };
    link.meet(name, &stub).unwrap();
    named.take().expect("it was not known")
}

// GUARANTEE: Alive once
#[test]
fn an_incoming_actor_of_a_third_theater_begins_without_its_birth_theater() {
    let (net, theater) = simulated();
    let directory = &theater.theater_core.directory;
    let teller = rejected_peer(&theater, 12);
    let known = named_by(&teller);
    let [birth, source] = [10, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    [&teller, &source].into_iter().for_each(|link| answers(&theater, link));
    let born = remote(10, 1, 7);
    source.receives(&moves(&theater, born), &incoming_state());
    birth.lose();
    net.run_for(TICK);
    source.receives(&begin(born), &[]);
    assert_eq!(directory.migrations(), (1, 0));
    // A later name is that of the same stub, and mail to it arrives.
    assert_eq!(directory.known_as(born.birth_name()), Some(known.id()));
    for _ in 0..2 {
        assert_eq!(known.ask(Greet).within(10 * LOST_AFTER).wait(), Ok(known));
    }
    assert!(!directory.is_remote(known.id()));
}

// GUARANTEE: Alive once
#[test]
fn an_actor_that_arrives_over_a_new_link_begins_while_locate_still_runs() {
    let (net, theater) = simulated();
    let directory = &theater.theater_core.directory;
    let [via, other] = [12, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let stub = via.stub_of_its(1, 7);
    via.lose();
    net.run_for(TICK);
    assert!(locate(&other).is_some(), "it is not located");
    let again = rejected_peer(&theater, 12);
    answers(&theater, &again);
    let born = remote(12, 1, 7);
    again.receives(&moves(&theater, born), &incoming_state());
    // The search begins again.
    other.lose();
    net.run_for(TICK);
    again.receives(&begin(born), &[]);
    let known = ActorRef::<Guest>::of_id(stub).unwrap();
    assert_eq!(known.ask(Greet).within(10 * LOST_AFTER).wait(), Ok(known));
    assert_eq!(directory.migrations(), (1, 0));
    assert!(!directory.is_remote(stub));
}

// GUARANTEE: A lost theater is reported
#[test]
fn a_watcher_of_a_lost_actor_is_told_that_its_theater_is_lost() {
    let (net, theater) = simulated();
    let [via, watching] = [12, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let stub = via.stub_of_its(1, 7);
    watching.named(0, name(&theater, stub));
    via.lose();
    net.run_for(TICK);
    sighted(&watching, locate(&watching).unwrap(), None);
    net.run_for(TICK);
    assert!(stub.address().is_stale());
    watching.receives(&Head::Watch { to: 0, watch: 5 }, &[]);
    net.run_for(TICK);
    let terminated = Head::Down { watch: 5, name: None, reason: StopReason::TheaterLost };
    let said = watching.says();
    assert!(said.iter().any(|(head, _)| *head == terminated), "{said:?}");
}

// GUARANTEE: Alive once
#[test]
fn an_actor_that_has_left_a_lost_theater_is_found_though_nothing_was_sent_to_it_before() {
    let (net, theater) = simulated();
    let teller = rejected_peer(&theater, 12);
    let known = named_by(&teller);
    let [birth, source] = [10, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    birth.lose();
    net.run_for(TICK);
    known.tell(Greet);
    let location = ActorLocation { theater: 11, address: None, slot: 5, incarnation: 1, capability: 9 };
    let (mut lost_actors, mut has_come) = (Vec::new(), false);
    net.run_until(|| {
        for (link, at) in [(&teller, None), (&source, Some(Whereabouts::At(location)))] {
            for (head, _) in link.says() {
                match head {
                    Head::Locate { ask, actors, .. } => {
                        sighted(link, ask, at.filter(|_| actors == [remote(10, 1, 7).birth_name()]));
                        lost_actors.extend(actors);
                    }
                    Head::Tell { .. } => has_come = true,
                    _ => {}
                }
            }
        }
        has_come
    });
    assert!(has_come, "{lost_actors:?}");
}

// GUARANTEE: Order holds while actors migrate
#[test]
fn mail_for_an_actor_being_located_reaches_it_in_the_senders_theater() {
    let (net, theater) = simulated();
    let teller = rejected_peer(&theater, 12);
    let known = named_by(&teller);
    let source = rejected_peer(&theater, 11);
    // The address of the birth theater has no theater, so others are asked.
    known.tell(Greet);
    let asked = known.ask(Greet);
    let (mut from_teller, mut from_source) = (None, None);
    assert!(net.run_until(|| {
        from_teller = from_teller.or_else(|| locate(&teller));
        from_source = from_source.or_else(|| locate(&source));
        from_teller.is_some() && from_source.is_some()
    }));
    let born = remote(10, 1, 7);
    source.receives(&moves(&theater, born), &incoming_state());
    source.receives(&begin(born), &[]);
    assert_eq!(theater.theater_core.directory.migrations(), (1, 0));
    let later = known.ask(Greet);
    // Their answers were true before it came.
    sighted(&teller, from_teller.unwrap(), None);
    sighted(&source, from_source.unwrap(), Some(Whereabouts::Gone(theater.theater_core.incarnation)));
    assert_eq!(asked.within(LOST_AFTER).wait(), Ok(known));
    assert_eq!(later.within(LOST_AFTER).wait(), Ok(known));
    net.run_for(LOST_AFTER);
    assert_eq!(theater.system().stats().total.dead_letters, 0);
    assert!(!theater.theater_core.directory.is_remote(known.id()));
}

/// Has the theater locate an actor that was born in the lost theater 12. A message waits at the actor's stub. The actor is an incoming one from
/// theater 11, whose answer to the search is older than that. Returns the link with theater 11.
fn locates_incoming(net: &Simulation, theater: &Theater) -> (Arc<Link>, ActorRef<Guest>) {
    let [via, source] = [12, 11].map(|incarnation| rejected_peer(theater, incarnation));
    let known = ActorRef::<Guest>::of_id(via.stub_of_its(1, 7)).unwrap();
    via.lose();
    net.run_for(TICK);
    known.tell(Greet);
    net.run_for(TICK);
    let ask = locate(&source).expect("it is not located");
    source.receives(&moves(theater, remote(12, 1, 7)), &incoming_state());
    sighted(&source, ask, None);
    net.run_for(TICK);
    (source, known)
}

/// Has the theater do the work of a tick. A simulation without work has no ticks.
fn ticks(net: &Simulation, theater: &Theater) {
    theater.theater_core.tick();
    net.run_until_idle();
}

/// Has the theater behind the link know of no actor that is being located, for twice the duration of a search with contradicting answers.
fn knows_no_lost_actor(net: &Simulation, theater: &Theater, link: &Link) {
    for _ in 0..40 {
        ticks(net, theater);
        if let Some(ask) = locate(link) {
            sighted(link, ask, None);
        }
    }
    assert_eq!(theater.system().stats().total.dead_letters, 0);
}

// GUARANTEE: Order holds while actors migrate
#[test]
fn mail_for_an_incoming_actor_that_locate_missed_waits_until_it_begins() {
    let (net, theater) = simulated();
    let (source, known) = locates_incoming(&net, &theater);
    knows_no_lost_actor(&net, &theater, &source);
    source.receives(&begin(remote(12, 1, 7)), &[]);
    answers(&theater, &source);
    assert_eq!(known.ask(Greet).within(LOST_AFTER).wait(), Ok(known));
    assert_eq!(theater.theater_core.directory.migrations(), (1, 0));
    assert!(!theater.theater_core.directory.is_remote(known.id()));
    assert_eq!(theater.system().stats().total.dead_letters, 0);
}

// GUARANTEE: Order holds while actors migrate
#[test]
fn an_incoming_actor_that_locate_missed_is_located_again_if_it_stays() {
    let (net, theater) = simulated();
    let (source, known) = locates_incoming(&net, &theater);
    knows_no_lost_actor(&net, &theater, &source);
    source.receives(&Head::Stays { born: remote(12, 1, 7).birth_name() }, &[]);
    ticks(&net, &theater);
    let ask = locate(&source);
    let location = ActorLocation { theater: 11, address: None, slot: 5, incarnation: 1, capability: 9 };
    sighted(&source, ask.expect("it is not located again"), Some(Whereabouts::At(location)));
    known.tell(Greet);
    net.run_for(TICK);
    let said = source.says();
    assert_eq!(said.iter().filter(|(head, _)| matches!(head, Head::Tell { .. })).count(), 2, "{said:?}");
    assert_eq!(theater.system().stats().total.dead_letters, 0);
}

#[test]
fn the_stub_of_a_missed_incoming_actor_ends_if_the_source_is_lost() {
    let (net, theater) = simulated();
    let (source, known) = locates_incoming(&net, &theater);
    knows_no_lost_actor(&net, &theater, &source);
    source.lose();
    (0..2).for_each(|_| ticks(&net, &theater));
    assert!(known.id().address().is_stale());
    assert_eq!(theater.system().stats().total.dead_letters, 1);
    assert!(theater.theater_core.directory.kept().into_iter().all(|(_, count)| count == 0));
}

#[test]
fn mail_before_a_waiting_marker_ends_with_a_failed_locate() {
    let (net, theater) = simulated();
    let directory = &theater.theater_core.directory;
    let [via, other] = [12, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let stub = via.stub_of_its(1, 7);
    // The cell learns of its reroute after it has learned that the route is lost.
    let actions = directory.step(stub, Event::Moved { from: 12 });
    let [Action::Ask(Request::Reroute { reroute })] = actions[..] else { panic!("{actions:?}") };
    via.lose();
    net.run_for(TICK);
    ActorRef::<Guest>::of_id(stub).unwrap().tell(Greet);
    net.run_for(TICK);
    let (moves, _) = theater.theater_core.registry.migration_vtable(stub).unwrap();
    (moves.begin_reroute)(stub, reroute, theater.theater_core.marker(stub, reroute));
    net.run_for(TICK);
    assert_eq!(directory.view(stub).reroute(), Some(reroute));
    sighted(&other, locate(&other).expect("it is not located"), None);
    ticks(&net, &theater);
    assert_eq!(directory.rerouting(), []);
    assert_eq!(theater.system().stats().total.dead_letters, 0);
    sighted(&other, locate(&other).expect("it is not located again"), None);
    ticks(&net, &theater);
    assert_eq!(theater.system().stats().total.dead_letters, 1);
    assert!(stub.address().is_stale());
    ticks(&net, &theater);
    assert!(directory.kept().into_iter().all(|(_, count)| count == 0), "{:?}", directory.kept());
}

// GUARANTEE: Order holds while actors migrate
#[test]
fn a_message_at_a_stub_as_locate_ends_reaches_the_arrived_actor() {
    let (net, theater) = simulated();
    let [via, source] = [12, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let known = ActorRef::<Guest>::of_id(via.stub_of_its(1, 7)).unwrap();
    via.lose();
    net.run_for(TICK);
    let ask = locate(&source).expect("it is not located");
    source.receives(&moves(&theater, remote(12, 1, 7)), &incoming_state());
    // The cell takes it before it learns that the actor has come.
    known.tell(Greet);
    source.receives(&begin(remote(12, 1, 7)), &[]);
    sighted(&source, ask, None);
    answers(&theater, &source);
    assert_eq!(known.ask(Greet).within(LOST_AFTER).wait(), Ok(known));
    assert_eq!(theater.system().stats().total.dead_letters, 0);
}

// GUARANTEE: Order holds while actors migrate
#[test]
fn mail_for_an_unreachable_theater_is_reported_at_shutdown() {
    let (net, theater) = simulated();
    let teller = rejected_peer(&theater, 12);
    let known = named_by(&teller);
    known.tell(Greet);
    let asked = known.ask(Greet);
    net.run_for(TICK);
    let system = theater.system().clone();
    assert_eq!(system.stats().total.dead_letters, 0);
    theater.shutdown_within(TICK).unwrap();
    assert_eq!(system.stats().total.dead_letters, 1);
    assert_eq!(asked.wait(), Err(AskError::Shutdown));
}

#[test]
fn the_stub_of_an_actor_that_is_missed_again_and_again_ends() {
    let (net, theater) = simulated();
    let [via, other] = [12, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let known = ActorRef::<Guest>::of_id(via.stub_of_its(1, 7)).unwrap();
    via.lose();
    net.run_for(TICK);
    known.tell(Greet);
    let mut attempts = 0;
    net.run_until(|| {
        if let Some(ask) = locate(&other) {
            // In another theater each time, which no theater can call.
            let location =
                ActorLocation { theater: 20 + attempts, address: None, slot: 1, incarnation: 1, capability: 9 };
            attempts += 1;
            sighted(&other, ask, Some(Whereabouts::At(location)));
        }
        known.id().address().is_stale()
    });
    assert!(known.id().address().is_stale(), "it is located after {attempts} attempts");
    assert_eq!(theater.system().stats().total.dead_letters, 1);
    ticks(&net, &theater);
    assert!(theater.theater_core.directory.kept().into_iter().all(|(_, count)| count == 0));
}

/// Has the other end name an actor of theater 10, which it says is in theater 11. There is no link with either theater yet.
fn named_with_another_location_by(link: &Link) -> ActorRef<Guest> {
    let location = |theater| ActorLocation {
        theater,
        address: Some("127.0.0.1:9".parse().unwrap()),
        slot: 1,
        incarnation: 1,
        capability: 7,
    };
    meet_by(link, RefName::Moved { born: location(10), at: location(11) })
}

/// Has the stub of `known`, which nothing was sent to, lead to a theater that is lost before the first message, and linked again. Checks that mail is
/// rerouted when that theater says that the actor has gone on. If that theater says that the actor has ended, the stub must be free.
fn is_used_after_a_loss(named: fn(&Link) -> ActorRef<Guest>, leads_to: u64, has_ended: bool) {
    let (net, theater) = simulated();
    let teller = rejected_peer(&theater, 12);
    let known = named(&teller);
    rejected_peer(&theater, leads_to).lose();
    net.run_for(TICK);
    let again = rejected_peer(&theater, leads_to);
    known.tell(Greet);
    net.run_for(TICK);
    let said = again.says();
    let handle = said.iter().find_map(|(head, _)| if let Head::Tell { to, .. } = head { Some(*to) } else { None });
    let handle = handle.unwrap_or_else(|| panic!("nothing was sent: {said:?}"));
    if has_ended {
        again.receives(&Head::Ended { handles: vec![handle] }, &[]);
        (0..3).for_each(|_| ticks(&net, &theater));
        assert!(known.id().address().is_stale(), "the stub with a route to {leads_to} is not free");
        assert!(theater.theater_core.directory.kept().into_iter().all(|(_, count)| count == 0));
    } else {
        again.receives(&Head::Moved { handle }, &[]);
        net.run_for(TICK);
        let said = again.says();
        assert!(
            said.iter().any(|(head, _)| matches!(head, Head::Marker { .. })),
            "the stub with a route to {leads_to} does not reroute: {said:?}"
        );
    }
}

#[test]
fn an_unused_stub_of_a_relinked_theater_reroutes_to_the_migrated_actor() {
    is_used_after_a_loss(named_by, 10, false);
    is_used_after_a_loss(named_with_another_location_by, 11, false);
}

#[test]
fn an_unused_stub_of_a_relinked_theater_is_free_when_the_actor_ends() {
    is_used_after_a_loss(named_by, 10, true);
    is_used_after_a_loss(named_with_another_location_by, 11, true);
}

/// Watches one guest, and reports its end.
struct Looker(ActorRef<Guest>, mpsc::Sender<StopReason>);
impl Actor for Looker {
    fn terminated(&mut self, terminated: Terminated, _: &mut Context<Self>) {
        self.1.send(terminated.reason).unwrap();
    }
}

struct Look(bool);
impl Message for Look {
    type Reply = ();
}
impl Handler<Look> for Looker {
    fn handle(&mut self, Look(looks): Look, ctx: &mut Context<Self>) {
        if looks { ctx.watch(self.0) } else { ctx.unwatch(self.0) }
    }
}

#[test]
fn a_watch_that_is_kept_for_an_incoming_actor_can_be_cancelled() {
    let (net, theater) = simulated();
    let step = || net.run_for(Duration::from_millis(1));
    let known = named_by(&rejected_peer(&theater, 12));
    let (told, downs) = mpsc::channel();
    let looker = theater.system().spawn(Looker(known, told));
    looker.tell(Look(true));
    step();
    let source = rejected_peer(&theater, 11);
    let born = remote(10, 1, 7);
    source.receives(&moves(&theater, born), &incoming_state());
    source.receives(&begin(born), &[]);
    step();
    assert!(!theater.theater_core.directory.is_remote(known.id()));
    looker.tell(Look(false));
    net.run_for(4 * TICK);
    known.stop();
    net.run_for(4 * TICK);
    assert_eq!(downs.try_iter().collect::<Vec<_>>(), []);
}

#[test]
fn a_watch_can_be_cancelled_while_the_link_of_its_actor_is_lost() {
    let (net, theater) = simulated();
    let step = || net.run_for(Duration::from_millis(1));
    let [via, other] = [12, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let stub = via.stub_of_its(1, 7);
    let (told, downs) = mpsc::channel();
    let looker = theater.system().spawn(Looker(ActorRef::of_id(stub).unwrap(), told));
    step();
    // The link looks as during its loss.
    via.lost.store(true, Ordering::Release);
    looker.tell(Look(true));
    theater.system().run_until_idle();
    via.lost.store(false, Ordering::Release);
    via.lose();
    step();
    looker.tell(Look(false));
    net.run_for(4 * TICK);
    let location = ActorLocation { theater: 11, address: None, slot: 5, incarnation: 1, capability: 9 };
    sighted(&other, locate(&other).unwrap(), Some(Whereabouts::At(location)));
    net.run_for(4 * TICK);
    assert_eq!(lock(&other.out).watches.len(), 0);
    assert_eq!(downs.try_iter().collect::<Vec<_>>(), []);
}
