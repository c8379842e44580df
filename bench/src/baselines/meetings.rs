//! Baselines of the workloads in which every actor talks to every other: chameneos and big.

use super::flat::Flat;
use crate::harness::outcome::{Failure, Outcome, check};
use crate::plans::big::{self, Dice};
use crate::plans::chameneos::{self, Colour};

/// The baseline of `chameneos`.
pub(crate) fn chameneos(plan: &chameneos::Plan) -> Result<Outcome, Failure> {
    struct Creature {
        colour: Colour,
        meetings: u64,
    }

    struct State {
        creatures: Vec<Creature>,
        left: u64,
        waiting: Option<(u32, u64)>,
        met: u64,
    }

    const COLOURS: [Colour; 3] = [Colour::Blue, Colour::Red, Colour::Yellow];

    /// A message to the mall: a creature (high half) of a colour (low half) enters.
    fn enter(flat: &mut Flat<State>, mall: u32, second: u64) {
        let (who, colour) = ((second >> 32) as u32, second & 0xFFFF_FFFF);
        if flat.state.left == 0 {
            flat.send(closed, who, u64::from(mall));
        } else if let Some((first, first_colour)) = flat.state.waiting.take() {
            flat.send(meet, first, colour);
            flat.send(meet, who, first_colour);
            flat.state.left -= 1;
        } else {
            flat.state.waiting = Some((who, colour));
        }
    }

    fn meet(flat: &mut Flat<State>, me: u32, other: u64) {
        let creature = &mut flat.state.creatures[me as usize];
        creature.colour = creature.colour.complement(COLOURS[other as usize]);
        creature.meetings += 1;
        let message = u64::from(me) << 32 | creature.colour as u64;
        flat.send(enter, 0, message);
    }

    fn closed(flat: &mut Flat<State>, me: u32, mall: u64) {
        let meetings = flat.state.creatures[me as usize].meetings;
        flat.send(left, mall as u32, meetings);
    }

    fn left(flat: &mut Flat<State>, _: u32, meetings: u64) {
        flat.state.met += meetings;
    }

    let creatures = (0..plan.creatures).map(|number| Creature { colour: Colour::of(number), meetings: 0 }).collect();
    let mut flat = Flat::new(State { creatures, left: plan.meetings, waiting: None, met: 0 });
    let elapsed = flat.time(|flat| {
        for number in 0..plan.creatures {
            flat.send(enter, 0, number << 32 | Colour::of(number) as u64);
        }
    });
    check("the meetings that the creatures remember", 2 * plan.meetings, flat.state.met)?;
    Ok(Outcome::new(plan.meetings, elapsed))
}

/// The baseline of `big`, on one thread.
pub(crate) fn big(plan: &big::Plan) -> Result<Outcome, Failure> {
    struct Member {
        dice: Dice,
        left: u32,
        pinged: u64,
    }

    struct State {
        members: Vec<Member>,
        done: u32,
    }

    fn begin(flat: &mut Flat<State>, me: u32, _: u64) {
        let members = flat.state.members.len() as u32;
        let other = flat.state.members[me as usize].dice.other(me, members);
        flat.send(ping, other, u64::from(me));
    }

    fn ping(flat: &mut Flat<State>, me: u32, from: u64) {
        flat.state.members[me as usize].pinged += 1;
        flat.send(pong, from as u32, 0);
    }

    fn pong(flat: &mut Flat<State>, me: u32, _: u64) {
        let member = &mut flat.state.members[me as usize];
        member.left -= 1;
        if member.left > 0 {
            begin(flat, me, 0);
        } else {
            flat.state.done += 1;
        }
    }

    let members =
        (0..plan.members).map(|number| Member { dice: Dice::of(number), left: plan.pings, pinged: 0 }).collect();
    let mut flat = Flat::new(State { members, done: 0 });
    let elapsed = flat.time(|flat| {
        for number in 0..plan.members {
            flat.send(begin, number, 0);
        }
    });
    check("the members that are done", plan.members, flat.state.done)?;
    let pinged = flat.state.members.iter().map(|member| member.pinged).sum();
    check("the pings received", plan.pings_total(), pinged)?;
    Ok(Outcome::new(2 * plan.pings_total(), elapsed))
}
