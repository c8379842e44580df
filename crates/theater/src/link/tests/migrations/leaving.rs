//! Tests: theaters that leave while stubs reroute or keep mail, frame by frame.

use super::lost_actors::{meet_by, named_by};
use super::*;
use crate::migration::announce_evacuation::SHUTDOWN_NOTICE_MAX;

/// The numbers of the markers that the theater has sent.
fn markers(said: &[(Head, Vec<u8>)]) -> Vec<u64> {
    said.iter().filter_map(|(head, _)| if let Head::Marker { ask, .. } = head { Some(*ask) } else { None }).collect()
}

fn count_tells(said: &[(Head, Vec<u8>)]) -> usize {
    said.iter().filter(|(head, _)| matches!(head, Head::Tell { .. })).count()
}

/// Has the other end answer the fences that it was sent. Returns their number.
fn answer_fences(link: &Link) -> usize {
    let said = link.says().into_iter();
    let fences = said.filter_map(|(head, _)| if let Head::Fence { ask } = head { Some(ask) } else { None });
    fences.map(|ask| link.receives(&Head::Answer { ask, codec: Wire::Positional }, &[])).count()
}

/// Has the other end say that the actor lives in this theater.
fn lives_in(link: &Link, ask: u64, theater: u64) {
    let location = ActorLocation { theater, address: None, slot: 5, incarnation: 1, capability: 9 };
    link.receives(&Head::Answer { ask, codec: Wire::Positional }, &bytes(&location));
}

// GUARANTEE: A theater can be evacuated
#[test]
fn a_stub_may_reroute_to_a_leaving_theater_and_again_before_the_answer() {
    let (net, theater) = simulated();
    let [leaves, other] = [10, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let to = meet_by(&other, RefName::Mine { slot: 1, incarnation: 1, capability: 7 });
    theater.theater_core.reroute(to.id(), 11);
    to.tell(Greet);
    net.run_for(TICK);
    let [marker] = markers(&other.says())[..] else { panic!("it does not reroute") };
    leaves.receives(&Head::Leaving { ask: 5 }, &[]);
    net.run_for(TICK);
    assert_eq!(leaves.says(), []);
    // The actor was in the leaving theater when the marker came to it, and has gone back since.
    lives_in(&other, marker, 10);
    net.run_for(TICK);
    let said = leaves.says();
    let [marker] = markers(&said)[..] else { panic!("it does not reroute again: {said:?}") };
    assert_eq!(count_tells(&said), 1);
    assert!(!said.iter().any(|(head, _)| matches!(head, Head::Answer { ask: 5, .. })), "{said:?}");
    lives_in(&leaves, marker, 11);
    net.run_for(TICK);
    assert_eq!([&leaves, &other].map(|link| answer_fences(link)), [1, 1]);
    net.run_for(TICK);
    let said = leaves.says();
    let answer = said.iter().find(|(head, _)| matches!(head, Head::Answer { ask: 5, .. }));
    assert_eq!(answer.map(|(_, count)| &count[..]), Some(&bytes(&1_u64)[..]), "{said:?}");
    to.tell(Greet);
    net.run_for(TICK);
    assert_eq!((count_tells(&leaves.says()), count_tells(&other.says())), (0, 1));
}

#[test]
fn an_actor_that_comes_does_not_wait_for_calls_of_the_theater_that_its_first_name_leads_to() {
    let (net, theater) = simulated();
    let directory = &theater.theater_core.directory;
    let [teller, source] = [12, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    let known = named_by(&teller);
    known.tell(Greet);
    net.run_for(TICK);
    let born = remote(10, 1, 7);
    source.receives(&moves(&theater, born), &incoming_state());
    source.receives(&begin(born), &[]);
    let before = net.now();
    assert!(net.run_until(|| directory.at(known.id()).is_none() && directory.rerouting().is_empty()));
    assert_eq!(known.ask(Greet).within(LIMIT).wait(), Ok(known));
    assert!(net.now() - before < TICK, "it has waited for {:?}", net.now() - before);
}

/// Has the other end answer each marker after some time: it is lost. Returns the number of messages over the link until then, and later.
fn answers_markers_late(theater: &Theater, link: &Arc<Link>) -> mpsc::Receiver<usize> {
    let (told, tells) = mpsc::channel();
    let (theater_core, link, until) =
        (Arc::clone(&theater.theater_core), Arc::clone(link), theater.theater_core.now() + LOST_AFTER);
    let mut open: Vec<(Duration, u64)> = Vec::new();
    let answer = move || {
        let said = link.says();
        let _ = told.send(count_tells(&said));
        open.extend(markers(&said).into_iter().map(|marker| (theater_core.now() + 5 * TICK, marker)));
        for (_, ask) in open.extract_if(.., |(due, _)| *due <= theater_core.now()) {
            link.receives(&Head::Failed { ask }, &bytes(&AskError::Stopped));
        }
        theater_core.now() > until
    };
    theater.theater_core.until_done("answers", Duration::from_millis(10), answer).unwrap();
    tells
}

// GUARANTEE: A theater that ends is lost at once
#[test]
fn mail_at_a_rerouting_stub_is_forwarded_before_the_shutdown_ends() {
    let (net, theater) = simulated();
    let other = rejected_peer(&theater, 11);
    let to = meet_by(&other, RefName::Mine { slot: 1, incarnation: 1, capability: 7 });
    let tells = answers_markers_late(&theater, &other);
    theater.theater_core.reroute(to.id(), 11);
    to.tell(Greet);
    net.run_for(TICK);
    assert_eq!(tells.try_iter().sum::<usize>(), 0);
    theater.shutdown().unwrap();
    assert_eq!(tells.try_iter().sum::<usize>() + count_tells(&other.says()), 1);
}

/// Has the other end answer that no route has changed, after `also`, each time that the theater announces its shutdown. Returns the number of
/// announcements.
fn answers_leavings(theater: &Theater, link: &Arc<Link>, mut also: impl FnMut(u64) + Send + 'static) -> Arc<AtomicU64> {
    let leavings = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&leavings);
    replies(theater, link, move |head| {
        let Head::Leaving { ask } = head else { return None };
        also(counted.fetch_add(1, Ordering::Relaxed) + 1);
        Some((ask, bytes(&0_u64)))
    });
    leavings
}

// GUARANTEE: A theater can be evacuated
#[test]
fn an_evacuation_is_announced_again_after_an_arrival_or_a_start() {
    for is_new in [false, true] {
        let (_net, theater) = simulated();
        let target = rejected_peer(&theater, 10);
        meet_by(&target, RefName::Mine { slot: 1, incarnation: 1, capability: 7 });
        let directory = Arc::clone(&theater.theater_core.directory);
        let comes = move |nth| {
            if nth == 1 {
                let count = if is_new { &directory.started } else { &directory.came };
                count.fetch_add(1, Ordering::Relaxed);
            }
        };
        let leavings = answers_leavings(&theater, &target, comes);
        assert!(theater.evacuate(&[Peer { link: target }]).stayed.is_empty());
        // Twice each time.
        assert_eq!(leavings.load(Ordering::Relaxed), 4);
    }
}

// GUARANTEE: A theater can be evacuated
#[test]
fn a_theater_that_leaves_says_so_again_while_mail_goes_over_it() {
    let (_net, theater) = simulated();
    let target = rejected_peer(&theater, 10);
    meet_by(&target, RefName::Mine { slot: 1, incarnation: 1, capability: 7 });
    let link_table = Arc::clone(&theater.theater_core.link_table);
    let goes_over = move |nth| {
        if nth <= 3 {
            link_table.told_moved.fetch_add(1, Ordering::Relaxed);
        }
    };
    let leavings = answers_leavings(&theater, &target, goes_over);
    assert!(theater.evacuate(&[Peer { link: target }]).stayed.is_empty());
    assert_eq!(leavings.load(Ordering::Relaxed), 4);
}

// GUARANTEE: A theater can be evacuated
#[test]
fn an_answer_to_a_theater_that_leaves_waits_until_what_was_sent_before_has_come() {
    let (net, theater) = simulated();
    let [leaves, third] = [10, 12].map(|incarnation| rejected_peer(&theater, incarnation));
    let is_answer = |(head, _): &(Head, Vec<u8>)| matches!(head, Head::Answer { ask: 5, .. });
    // It could name an actor of the leaving theater.
    meet_by(&third, RefName::Mine { slot: 1, incarnation: 1, capability: 7 }).tell(Greet);
    leaves.receives(&Head::Leaving { ask: 5 }, &[]);
    net.run_for(TICK);
    assert!(!leaves.says().iter().any(is_answer));
    assert_eq!(answer_fences(&third), 1);
    net.run_for(TICK);
    assert!(leaves.says().iter().any(is_answer));
}

// GUARANTEE: A theater can be evacuated
#[test]
fn an_evacuation_awaits_an_actor_that_has_come_and_is_not_in_its_cell_yet_for_longer_than_one_that_has_not() {
    let (net, theater) = simulated();
    let target = rejected_peer(&theater, 10);
    let arriving = Arc::clone(&theater.theater_core.directory.arriving);
    arriving.fetch_add(1, Ordering::Relaxed);
    let system = theater.system().clone();
    let (theater_core, comes_at) = (Arc::clone(&theater.theater_core), net.now() + SHUTDOWN_NOTICE_MAX + TICK);
    let (tell, told) = mpsc::channel();
    let comes = move || {
        let comes = theater_core.now() >= comes_at;
        if comes {
            tell.send(system.spawn(Guest).id()).unwrap();
            arriving.fetch_sub(1, Ordering::Release);
        }
        comes
    };
    theater.theater_core.until_done("comes", Duration::from_millis(10), comes).unwrap();
    answers(&theater, &target);
    let evacuation = theater.evacuate(&[Peer { link: target }]);
    // The other end never says that it has begun.
    let [(id, why)] = &evacuation.stayed[..] else { panic!("{evacuation:?}") };
    assert!(*id == told.recv().unwrap() && has_left_but_may_live(why), "{evacuation:?}");
}

// GUARANTEE: A theater can be evacuated
#[test]
fn a_theater_that_is_evacuated_lets_no_actor_in() {
    let (_net, theater) = simulated();
    let target = rejected_peer(&theater, 10);
    answers(&theater, &target);
    assert!(theater.evacuate(&[Peer { link: Arc::clone(&target) }]).stayed.is_empty());
    target.receives(&moves(&theater, remote(10, 1, 7)), &incoming_state());
    let said = target.says();
    let [(_, why)] = &said[..] else { panic!("{said:?}") };
    let why: Result<ActorLocation, String> = Codec::Positional.read(why).unwrap();
    assert!(why.unwrap_err().contains("it is evacuated"));
    assert_eq!(theater.theater_core.directory.migrations(), (0, 0));
}

/// Has the other end refuse each actor.
fn refuses_all(theater: &Theater, link: &Arc<Link>) {
    replies(theater, link, |head| match head {
        Head::Move { ask, .. } => {
            Some((ask, bytes(&Result::<ActorLocation, String>::Err("it is evacuated".to_owned()))))
        }
        Head::Fence { ask } => Some((ask, Vec::new())),
        Head::Leaving { ask } => Some((ask, bytes(&0_u64))),
        _ => None,
    });
}

// GUARANTEE: A theater can be evacuated
#[test]
fn actors_that_one_theater_does_not_take_are_offered_to_the_others() {
    let (_net, theater) = simulated();
    let [closed, other, open] = [10, 11, 12].map(|incarnation| rejected_peer(&theater, incarnation));
    [&closed, &other].into_iter().for_each(|link| refuses_all(&theater, link));
    answers(&theater, &open);
    let own = [(); 4].map(|()| theater.system().spawn(Guest).id());
    let evacuation = theater.evacuate(&[closed, other, open].map(|link| Peer { link }));
    // The open one never says that they have begun.
    assert!(evacuation.stayed.iter().all(|(_, why)| has_left_but_may_live(why)), "{evacuation:?}");
    assert_eq!(evacuation.stayed.len(), own.len());
}

// GUARANTEE: A theater can be evacuated
#[test]
fn actors_that_no_theater_takes_stay() {
    let (_net, theater) = simulated();
    let closed = [10, 11].map(|incarnation| rejected_peer(&theater, incarnation));
    closed.iter().for_each(|link| refuses_all(&theater, link));
    let own = theater.system().spawn(Guest);
    let evacuation = theater.evacuate(&closed.map(|link| Peer { link }));
    assert!(matches!(&evacuation.stayed[..], [(id, MigrateError::Refused(_))] if *id == own.id()), "{evacuation:?}");
    assert_eq!(own.ask(Greet).within(LIMIT).wait(), Ok(own));
}
