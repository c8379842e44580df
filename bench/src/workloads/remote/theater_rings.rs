//! Rings of actors over four processes: SALSA Lite's TheaterRings, with remote actors; with mobile ones they are in `mobile_rings`.

use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};

use crate::harness::benchmark::{Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::remote_peer::RemotePeer;
use crate::report::Target;

/// Processes, this one among them: members of a ring.
const PROCESSES: u64 = 4;

pub(crate) const RRINGS_1: Benchmark = Benchmark {
    name: "rrings-1",
    op: "hop",
    source: "SALSA Lite, TheaterRings (salsa-lite-migration §4.5)",
    summary: "one ring of four actors in four processes, a token goes round 1,000 times",
    stealing: None,
    workers_min: 1,
    family: Family::Remote,
    workload: |system, size, _| run(system, size, 1, remote::build),
    baseline: None,
    target: Target::any_machine(None, 13_000.0),
};

pub(crate) const RRINGS_32: Benchmark = Benchmark {
    name: "rrings-32",
    summary: "32 rings of four actors in four processes, each with a token that goes round 1,000 times",
    workload: |system, size, _| run(system, size, 32, remote::build),
    target: Target::any_machine(None, 2_000.0),
    ..RRINGS_1
};

pub(crate) const RRINGS_320: Benchmark = Benchmark {
    name: "rrings-320",
    summary: "320 rings of four actors in four processes, each with a token that goes round 1,000 times",
    workload: |system, size, _| run(system, size, 320, remote::build),
    target: Target::any_machine(None, 800.0),
    ..RRINGS_1
};

pub(crate) struct Judge {
    expected: u64,
    finish: Finish<()>,
}

#[actor(remote = "bench.rings.Judge")]
impl Judge {
    #[message(remote = "playhouse_bench::workloads::theater_rings::Arrived")]
    pub(crate) fn arrived(&mut self) {
        self.expected -= 1;
        if self.expected == 0 {
            self.finish.reached(());
        }
    }
}

/// The actors of a ring, of one kind.
macro_rules! actors {
    ($module:ident, [$($head:tt)*], [$($member:tt)*], [$came_round:tt, $join:tt, $hop:tt, $hops:tt]) => {
        mod $module {
            use super::*;

            /// The member of a ring in this process.
            #[derive(Serialize, Deserialize)]
            #[serde(crate = "playhouse::serde")]
            struct Head {
                next: Option<ActorRef<Member>>,
                judge: ActorRef<Judge>,
            }

            #[actor($($head)*)]
            impl Head {
                #[message(local)]
                fn close(&mut self, next: ActorRef<Member>) {
                    self.next = Some(next);
                }

                #[message(remote = $came_round)]
                fn came_round(&mut self, left: u64) {
                    match self.next {
                        Some(next) if left > 0 => next.tell(Hop(left - 1)),
                        _ => self.judge.tell(Arrived),
                    }
                }
            }

            /// A member in another process.
            #[derive(Serialize, Deserialize)]
            #[serde(crate = "playhouse::serde")]
            struct Member {
                next: Option<ActorRef<Member>>,
                head: ActorRef<Head>,
                hops: u64,
            }

            #[actor($($member)*)]
            impl Member {
                #[message(remote = $join)]
                fn join(&mut self, next: Option<ActorRef<Member>>) -> bool {
                    self.next = next;
                    true
                }

                #[message(remote = $hop)]
                fn hop(&mut self, left: u64) {
                    self.hops += 1;
                    match self.next {
                        Some(next) => next.tell(Hop(left - 1)),
                        None => self.head.tell(CameRound(left - 1)),
                    }
                }

                #[message(remote = $hops)]
                fn hops(&self) -> u64 {
                    self.hops
                }
            }

            /// Builds one ring.
            pub(super) fn build(here: &Theater, peers: &[Peer], judge: ActorRef<Judge>) -> Result<Ring, Failure> {
                let failed = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
                let head = here.system().spawn(Head { next: None, judge });
                let mut ring = Vec::new();
                for peer in peers {
                    let member = Member { next: None, head, hops: 0 };
                    ring.push(here.spawn_at(peer, &member).map_err(|error| failed(&error))?);
                }
                // Their names are known when they have answered.
                for member in &ring {
                    member.ask(Hops).wait().map_err(|error| failed(&error))?;
                }
                for (member, next) in ring.iter().zip(ring[1..].iter().map(|next| Some(*next)).chain([None])) {
                    member.ask(Join(next)).wait().map_err(|error| failed(&error))?;
                }
                head.tell(Close(ring[0]));
                Ok(Ring {
                    start: Box::new(move |hops| head.tell(CameRound(hops))),
                    hops: Box::new(move || ring.iter().map(|member| member.ask(Hops).wait()).collect()),
                })
            }
        }
    };
}

#[cfg(feature = "whole")]
pub(crate) use actors;

actors!(
    remote,
    [remote = "bench.rings.Head"],
    [remote = "bench.rings.Member", spawn],
    [
        "playhouse_bench::workloads::theater_rings::remote::CameRound",
        "playhouse_bench::workloads::theater_rings::remote::Join",
        "playhouse_bench::workloads::theater_rings::remote::Hop",
        "playhouse_bench::workloads::theater_rings::remote::Hops"
    ]
);

/// A ring of actors of any kind.
pub(crate) struct Ring {
    /// Starts a token with this number of hops.
    pub(crate) start: Box<dyn Fn(u64)>,
    /// Asks each of the members in other processes for its number of hops.
    pub(crate) hops: Box<dyn Fn() -> Result<Vec<u64>, AskError>>,
}

/// Builds one ring.
pub(crate) type Build = fn(&Theater, &[Peer], ActorRef<Judge>) -> Result<Ring, Failure>;

pub(crate) fn run(system: &System, size: Size, rings: u64, build: Build) -> Result<Outcome, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
    let (rings, rounds) = (size.pick(rings.min(4), rings, rings), size.pick(20, 1_000, 1_000));
    let remote_peers: Vec<RemotePeer> =
        (1..PROCESSES).map(|_| RemotePeer::start(system.workers())).collect::<Result<_, Failure>>()?;
    let here = crate::harness::remote_peer::theater(system.workers())?;
    let mut peers = Vec::new();
    for remote_peer in &remote_peers {
        peers.push(remote_peer.join(&here)?);
    }
    let (finish, finished) = finish(size);
    let judge = here.system().spawn(Judge { expected: rings, finish });
    let built: Vec<Ring> = (0..rings).map(|_| build(&here, &peers, judge)).collect::<Result<_, Failure>>()?;
    here.system().run_until_idle();
    let (elapsed, ()) = finished.time(|| {
        for ring in &built {
            (ring.start)(rounds * PROCESSES);
        }
    })?;
    for ring in &built {
        check("the hops of the members", Ok(vec![rounds; peers.len()]), (ring.hops)())?;
    }
    here.shutdown().map_err(|error| failed(&error))?;
    Ok(Outcome::new(rings * rounds * PROCESSES, elapsed))
}
