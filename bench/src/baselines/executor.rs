//! The baseline of executor, and of the balance workloads made from it.

use super::flat::Flat;
use crate::harness::outcome::{Failure, Outcome, check};
use crate::plans::executor::Plan;

struct Member {
    /// The first member of the group.
    group: u32,
    /// The next member of the group to receive a message.
    next: u32,
    sends_left: u32,
    recs_left: u32,
}

struct State {
    members: Vec<Member>,
    done: u64,
}

fn begin(flat: &mut Flat<State>, me: u32, _: u64) {
    for member in 0..Plan::GROUP as u32 {
        flat.send(token, me + member, 0);
    }
}

fn token(flat: &mut Flat<State>, me: u32, _: u64) {
    let member = &mut flat.state.members[me as usize];
    member.recs_left -= 1;
    let done = member.recs_left == 0;
    if member.sends_left > 0 {
        member.sends_left -= 1;
        let to = member.group + member.next;
        member.next = if member.next + 1 < Plan::GROUP as u32 { member.next + 1 } else { 0 };
        flat.send(token, to, 0);
    }
    flat.state.done += u64::from(done);
}

/// The baseline of `executor` and of the balance workloads, on one thread.
pub(crate) fn executor(plan: &Plan) -> Result<Outcome, Failure> {
    let group = Plan::GROUP as u32;
    let member = |number: u32| Member {
        group: number / group * group,
        next: 0,
        sends_left: plan.sends,
        recs_left: plan.sends + 1,
    };
    let mut flat = Flat::new(State { members: (0..plan.actors() as u32).map(member).collect(), done: 0 });
    let elapsed = flat.time(|flat| {
        for number in 0..plan.groups as u32 {
            flat.send(begin, number * group, 0);
        }
    });
    check("the actors that received all they should", plan.actors(), flat.state.done)?;
    Ok(Outcome::new(plan.sends_total(), elapsed))
}
