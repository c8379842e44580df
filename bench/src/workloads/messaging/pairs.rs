//! Many pairs of actors that bounce messages between them, at once.
//!
//! `pingpong-grouped` forces the two of each pair onto different workers, and every message crosses. `pingpong-bulk` places all
//! actors at random and keeps a hundred messages per pair in flight.

use playhouse::prelude::*;

use crate::baselines;
use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::placement::{placed, stage_of};
use crate::plans::pairs::Plan;

pub(crate) const PINGPONG_GROUPED: Benchmark = Benchmark {
    name: "pingpong-grouped",
    op: "message",
    source: "actor4j §VII.B",
    summary: "100 pairs, the two of each forced onto different workers, one message each, 50,000 bounces",
    stealing: Some(Stealing::None),
    workers_min: 2,
    family: Family::Local,
    workload: |system, size, _| {
        run(system, size, Plan::grouped(size), |number| {
            let (pair, player) = (number / 2, number % 2);
            stage_of(system, pair + player, pair / system.workers())
        })
    },
    baseline: Some(Baseline::Hand(|size| baselines::cross::pairs(&Plan::grouped(size)))),
    target: None,
};

pub(crate) const PINGPONG_BULK: Benchmark = Benchmark {
    name: "pingpong-bulk",
    op: "message",
    source: "actor4j §VII.C",
    summary: "100 pairs placed at random, 100 messages in flight in each, 1,000 bounces",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| {
        run(system, size, Plan::bulk(size), |number| {
            let dice = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
            stage_of(system, (dice & 0xFFFF) as usize, (dice >> 16) as usize)
        })
    },
    baseline: Some(Baseline::Hand(|size| baselines::rings::pairs(&Plan::bulk(size)))),
    target: None,
};

#[derive(Message)]
struct Meet {
    partner: ActorRef<Player>,
}

/// Tells a player to serve this number of balls.
#[derive(Message)]
struct Serve {
    balls: u32,
    bounces: u64,
}

/// A ball with this number of bounces left.
#[derive(Message)]
struct Ball(u64);

#[derive(Message)]
#[message(reply = u64)]
struct Hits;

struct Player {
    partner: Option<ActorRef<Player>>,
    judge: ActorRef<Judge>,
    hits: u64,
}

impl Actor for Player {}

impl Handler<Meet> for Player {
    fn handle(&mut self, meet: Meet, _: &mut Context<Self>) {
        self.partner = Some(meet.partner);
    }
}

impl Handler<Serve> for Player {
    fn handle(&mut self, serve: Serve, _: &mut Context<Self>) {
        if let Some(partner) = self.partner {
            for _ in 0..serve.balls {
                partner.tell(Ball(serve.bounces - 1));
            }
        }
    }
}

impl Handler<Ball> for Player {
    fn handle(&mut self, Ball(left): Ball, _: &mut Context<Self>) {
        self.hits += 1;
        match self.partner {
            Some(partner) if left > 0 => partner.tell(Ball(left - 1)),
            _ => self.judge.tell(Dropped),
        }
    }
}

impl Handler<Hits> for Player {
    fn handle(&mut self, _: Hits, _: &mut Context<Self>) -> u64 {
        self.hits
    }
}

/// A ball has no bounces left.
#[derive(Message)]
struct Dropped;

struct Judge {
    expected: u64,
    finish: Finish<()>,
}

impl Actor for Judge {}

impl Handler<Dropped> for Judge {
    fn handle(&mut self, _: Dropped, _: &mut Context<Self>) {
        self.expected -= 1;
        if self.expected == 0 {
            self.finish.reached(());
        }
    }
}

/// Runs `plan` with player `n` (players `2 p` and `2 p + 1` are pair `p`) placed by `placement`.
fn run(system: &System, size: Size, plan: Plan, placement: impl Fn(usize) -> Placement) -> Result<Outcome, Failure> {
    let (finish, finished) = finish(size);
    let judge = system.spawn(Judge { expected: plan.balls_total(), finish });
    let players: Vec<_> = (0..2 * plan.pairs as usize)
        .map(|number| system.spawn_with(placed(placement(number)), Player { partner: None, judge, hits: 0 }))
        .collect();
    for pair in players.chunks_exact(2) {
        pair[0].tell(Meet { partner: pair[1] });
        pair[1].tell(Meet { partner: pair[0] });
    }
    system.run_until_idle();

    let (elapsed, ()) = finished.time(|| {
        for pair in players.chunks_exact(2) {
            pair[0].tell(Serve { balls: plan.balls, bounces: plan.bounces });
        }
    })?;
    let mut hits = 0;
    for player in &players {
        hits += player.ask(Hits).wait().map_err(|error| Failure::new(format!("a player does not answer: {error}")))?;
    }
    check("the bounces that the players counted", plan.bounces_total(), hits)?;
    Ok(Outcome::new(plan.bounces_total(), elapsed))
}
