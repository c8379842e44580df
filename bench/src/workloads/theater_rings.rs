//! Rings of actors over four processes: SALSA Lite's TheaterRings.

use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};

use super::finish::{Finish, finish};
use crate::outcome::{Failure, Outcome, Size, check};
use crate::partner::Partner;
use crate::registry::{Benchmark, Target};

/// Processes, this one among them: members of a ring.
const PROCESSES: u64 = 4;

pub(crate) const RRINGS_1: Benchmark = Benchmark {
    name: "rrings-1",
    op: "hop",
    source: "SALSA Lite, TheaterRings (salsa-lite-migration §4)",
    summary: "one ring of four actors in four processes, a token goes round 1,000 times",
    stealing: None,
    workers_min: 1,
    workload: |system, size| run(system, size, 1),
    limit: None,
    target: Target::any_machine(None, 13_000.0),
};

pub(crate) const RRINGS_32: Benchmark = Benchmark {
    name: "rrings-32",
    summary: "32 rings of four actors in four processes, each with a token that goes round 1,000 times",
    workload: |system, size| run(system, size, 32),
    target: Target::any_machine(None, 2_000.0),
    ..RRINGS_1
};

pub(crate) const RRINGS_320: Benchmark = Benchmark {
    name: "rrings-320",
    summary: "320 rings of four actors in four processes, each with a token that goes round 1,000 times",
    workload: |system, size| run(system, size, 320),
    target: Target::any_machine(None, 800.0),
    ..RRINGS_1
};

/// The member of a ring in this process.
struct Head {
    next: Option<ActorRef<Member>>,
    judge: ActorRef<Judge>,
}

#[actor(remote = "bench.rings.Head")]
impl Head {
    #[message(local)]
    fn close(&mut self, next: ActorRef<Member>) {
        self.next = Some(next);
    }

    #[message]
    fn came_round(&mut self, left: u64) {
        match self.next {
            Some(next) if left > 0 => next.tell(Hop(left - 1)),
            _ => self.judge.tell(Arrived),
        }
    }
}

/// One in another process.
#[derive(Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Member {
    next: Option<ActorRef<Member>>,
    head: ActorRef<Head>,
    hops: u64,
}

#[actor(remote = "bench.rings.Member", spawn)]
impl Member {
    #[message]
    fn join(&mut self, next: Option<ActorRef<Member>>) -> bool {
        self.next = next;
        true
    }

    #[message]
    fn hop(&mut self, left: u64) {
        self.hops += 1;
        match self.next {
            Some(next) => next.tell(Hop(left - 1)),
            None => self.head.tell(CameRound(left - 1)),
        }
    }

    #[message]
    fn hops(&self) -> u64 {
        self.hops
    }
}

struct Judge {
    expected: u64,
    finish: Finish<()>,
}

#[actor]
impl Judge {
    #[message]
    fn arrived(&mut self) {
        self.expected -= 1;
        if self.expected == 0 {
            self.finish.reached(());
        }
    }
}

fn run(system: &System, size: Size, rings: u64) -> Result<Outcome, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
    let (rings, rounds) = (size.pick(rings.min(4), rings, rings), size.pick(20, 1_000, 1_000));
    let partners: Vec<Partner> =
        (1..PROCESSES).map(|_| Partner::start(system.workers())).collect::<Result<_, Failure>>()?;
    let here = crate::partner::theater(system.workers())?;
    let mut peers = Vec::new();
    for partner in &partners {
        peers.push(partner.join(&here)?);
    }
    let (finish, finished) = finish(size);
    let judge = here.system().spawn(Judge { expected: rings, finish });
    let (mut heads, mut members) = (Vec::new(), Vec::new());
    for _ in 0..rings {
        let head = here.system().spawn(Head { next: None, judge });
        let mut ring = Vec::new();
        for peer in &peers {
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
        heads.push(head);
        members.extend(ring);
    }
    here.system().run_until_idle();
    let (elapsed, ()) = finished.time(|| {
        for head in heads {
            head.tell(CameRound(rounds * PROCESSES));
        }
    })?;
    for member in members {
        check("the hops of a member", Ok(rounds), member.ask(Hops).wait())?;
    }
    here.shutdown().map_err(|error| failed(&error))?;
    Ok(Outcome::new(rings * rounds * PROCESSES, elapsed))
}
