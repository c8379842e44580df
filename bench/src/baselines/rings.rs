//! Baselines of the workloads in which tokens go round: rings, and pairs as rings of two.

use super::flat::Flat;
use crate::harness::outcome::{Failure, Outcome, check};
use crate::plans::{pairs, rings};

/// An actor of a ring.
struct Member {
    next: u32,
    position: u32,
    hits: u64,
}

struct State {
    members: Vec<Member>,
    positions_sum: u64,
}

fn token(flat: &mut Flat<State>, me: u32, left: u64) {
    let member = &mut flat.state.members[me as usize];
    member.hits += 1;
    if left > 0 {
        let next = member.next;
        flat.send(token, next, left - 1);
    } else {
        flat.state.positions_sum += u64::from(member.position);
    }
}

/// Builds `rings` rings of this number of members.
fn build(rings: u32, members: u32) -> Flat<State> {
    let member = |number: u32| {
        let (ring, position) = (number / members, number % members);
        Member { next: ring * members + (position + 1) % members, position, hits: 0 }
    };
    Flat::new(State { members: (0..rings * members).map(member).collect(), positions_sum: 0 })
}

/// The baseline of `threadring`, `ringmulti` and `nfold-ring`, on one thread.
pub(crate) fn rings(plan: &rings::Plan) -> Result<Outcome, Failure> {
    let mut flat = build(plan.rings, plan.members);
    let elapsed = flat.time(|flat| {
        for ring in 0..plan.rings {
            for _ in 0..plan.tokens {
                flat.send(token, ring * plan.members, plan.hops);
            }
        }
    });
    let positions_sum = flat.state.positions_sum;
    check("the sum of the positions at which the tokens stop", plan.positions_sum(), positions_sum)?;
    Ok(Outcome::new(plan.hops_total(), elapsed))
}

/// The baseline of `pingpong-bulk`, on one thread.
pub(crate) fn pairs(plan: &pairs::Plan) -> Result<Outcome, Failure> {
    let mut flat = build(plan.pairs, 2);
    let elapsed = flat.time(|flat| {
        for pair in 0..plan.pairs {
            for _ in 0..plan.balls {
                flat.send(token, 2 * pair + 1, plan.bounces - 1);
            }
        }
    });
    let hits = flat.state.members.iter().map(|member| member.hits).sum();
    check("the bounces that the players counted", plan.bounces_total(), hits)?;
    Ok(Outcome::new(plan.bounces_total(), elapsed))
}
