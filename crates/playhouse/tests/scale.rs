//! Many actors, many times.

mod support;

use playhouse::prelude::*;
use support::{Increment, finishes, threads};

struct Small(u64);

impl Actor for Small {}

impl Handler<Increment> for Small {
    fn handle(&mut self, Increment(by): Increment, ctx: &mut Context<Self>) -> u64 {
        self.0 += by;
        if by == 0 {
            ctx.stop();
        }
        self.0
    }
}

/// Returns the resident memory of this process in KiB, if the system reports it.
fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

const WAVE: u64 = 50_000;

// GUARANTEE: Memory of actors
/// Memory grows by no more than a tenth after the first waves. The program has one test only, because the memory is the
/// whole program's.
#[test]
fn waves_of_actors_do_not_grow_memory() {
    finishes(|| {
        let system = threads(2);
        let mut peak_early = 0;
        for wave in 0..12 {
            // The test's thread spawns half of them, and an actor the other half.
            let outside: Vec<_> = (0..WAVE / 2).map(|n| system.spawn(Small(n))).collect();
            system.spawn(support::Puppet).tell(support::Do::this(|ctx| {
                for n in 0..WAVE / 2 {
                    ctx.spawn(Small(n)).tell(Increment(0));
                }
                ctx.stop();
            }));
            for actor in outside {
                actor.tell(Increment(0));
            }
            system.run_until_idle();
            let stats = system.stats().total;
            assert_eq!(stats.spawned, stats.stopped);
            let Some(resident) = resident_kib() else { continue };
            if wave < 4 {
                peak_early = peak_early.max(resident);
            } else {
                assert!(
                    resident < peak_early + peak_early / 10 + 2048,
                    "wave {wave}: {resident} KiB, after {peak_early} KiB in the first waves"
                );
            }
        }
        assert_eq!(system.stats().total.stopped, 12 * (WAVE + 1));
        system.shutdown().unwrap();
    });
}
