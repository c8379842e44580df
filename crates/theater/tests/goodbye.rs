//! The end of a theater, while connections break.

use std::time::Duration;

use playhouse_theater::{Simulation, Theater};

#[test]
fn a_theater_that_was_called_takes_leave_at_once_though_connections_break_under_every_seed() {
    for seed in 0..100 {
        let net = Simulation::new(seed);
        let [leaves, one] = [(); 2].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap());
        // It cannot be called.
        let other = net.theater(Theater::builder()).unwrap();
        let [peer, _] = [&one, &other].map(|theater| theater.connect(leaves.address().unwrap()).unwrap());
        net.break_by_chance(Duration::from_millis(2));
        let begun = net.now();
        leaves.shutdown().unwrap();
        let took = net.now() - begun;
        assert!(took < Duration::from_secs(4), "seed {seed}: it took {took:?}");
        net.calm();
        net.run_for(Duration::from_secs(1));
        assert!(peer.is_lost(), "seed {seed}: it has not said goodbye");
    }
}
