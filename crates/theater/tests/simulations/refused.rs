//! A theater of another cluster takes the address of a peer.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playhouse_theater::{LinkState, Simulation, Theater, TheaterError};

// GUARANTEE: A refusal gives its cause
#[test]
fn a_theater_that_is_refused_where_a_peer_was_calls_ever_more_rarely_and_knows_why() {
    for seed in 0..20 {
        let net = Simulation::new(seed);
        let caller = net.theater(Theater::builder().cluster("one").listen("127.0.0.1:0")).unwrap();
        let called = net.theater(Theater::builder().cluster("one").listen("127.0.0.1:0")).unwrap();
        let address = called.address().unwrap();
        let peer = caller.connect(address).unwrap();
        assert!(peer.call_error().is_none());
        net.kill(&called);
        // A killed theater is silent, which breaks the connection after 5 s.
        net.run_for(Duration::from_secs(7));
        assert!(matches!(peer.call_error(), Some(TheaterError::Io { .. })), "{:?}", peer.call_error());

        let (rejections, reasons) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (count, note) = (Arc::clone(&rejections), Arc::clone(&reasons));
        let hook = move |error: &TheaterError| {
            count.fetch_add(1, Ordering::Relaxed);
            note.lock().unwrap().push(error.to_string());
        };
        let other = Theater::builder().cluster("two").listen(address.to_string()).on_rejected_peer(hook);
        let _other = net.theater(other).unwrap();
        net.run_for(Duration::from_secs(20));
        // The pauses: 0.1, 0.2, 0.4, .. up to 5 s, and half of that at least.
        let calls = rejections.load(Ordering::Relaxed);
        assert!((8..=17).contains(&calls), "seed {seed}: {calls} calls");
        let why = r#"the called theater belongs to the cluster "two", and the caller to "one""#;
        assert!(reasons.lock().unwrap().iter().all(|reason| reason.contains(why)), "{reasons:?}");
        let error = peer.call_error().unwrap();
        assert!(matches!(&error, TheaterError::NotMember { why: said, .. } if said == why), "{error}");
        assert_ne!(peer.state().link, LinkState::Lost);
        net.run_for(Duration::from_secs(12));
        assert!(peer.is_lost() && matches!(peer.call_error(), Some(TheaterError::NotMember { .. })));
        assert!(matches!(caller.connect(address), Err(TheaterError::NotMember { .. })));
    }
}

#[test]
fn a_peer_whose_connection_is_restored_has_no_error() {
    let net = Simulation::new(1);
    let [caller, called] = [(); 2].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap());
    let peer = caller.connect(called.address().unwrap()).unwrap();
    net.cut(&caller, &called);
    net.run_for(Duration::from_secs(3));
    assert!(matches!(peer.call_error(), Some(TheaterError::Io { .. })));
    net.heal(&caller, &called);
    net.run_for(Duration::from_secs(3));
    assert_eq!(peer.state().link, LinkState::Linked);
    assert!(peer.call_error().is_none());
}

/// Only the end that called first restores a link. The other end would not notice that no theater listens any more.
#[test]
fn either_end_of_a_link_finds_out_that_the_other_one_has_ended() {
    let is_refused = |net: &Simulation, theater: &Theater, address| {
        let (tell, told) = std::sync::mpsc::channel();
        theater.is_refused_at(address, move |is_refused| tell.send(is_refused).unwrap());
        let mut found = None;
        net.run_until(|| {
            found = found.or_else(|| told.try_recv().ok());
            found.is_some()
        });
        found
    };
    for (seed, is_called) in (0..20).flat_map(|seed| [(seed, false), (seed, true)]) {
        let net = Simulation::new(seed);
        let [one, other] = [(); 2].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap());
        let [at, to] = [&one, &other].map(|theater| theater.address().unwrap());
        let _peer = if is_called { other.connect(at).unwrap() } else { one.connect(to).unwrap() };
        assert_eq!(is_refused(&net, &one, to), Some(false), "seed {seed}");
        assert!(one.is_connected_to(to), "seed {seed}");
        net.cut(&one, &other);
        assert_eq!(is_refused(&net, &one, to), Some(false), "seed {seed}: a network that is cut refuses nothing");
        net.heal(&one, &other);
        net.kill(&other);
        assert_eq!(is_refused(&net, &one, to), Some(true), "seed {seed}");
    }
}
