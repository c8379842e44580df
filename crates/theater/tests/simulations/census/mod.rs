//! A census of the members of groups, by their own reports. A simulation is one thread.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use playhouse_actor::{Actor, Context};

/// A group and one of its members.
pub type MemberId = (u32, u32);

/// A system and a stage of it.
pub type Location = (u16, u16);

#[derive(Default)]
pub struct Census {
    /// The locations of each member. More than one location is one too many.
    pub lives: BTreeMap<MemberId, BTreeSet<Location>>,
    /// The stages that the members of each group were on in each system.
    pub stages: BTreeMap<(u32, u16), BTreeSet<u16>>,
    pub moves: BTreeMap<MemberId, u64>,
    pub stays: u64,
    pub twice: Vec<MemberId>,
}

thread_local! {
    pub static CENSUS: RefCell<Census> = RefCell::default();
}

fn location<A: Actor>(ctx: &Context<A>) -> Location {
    let system = playhouse_executor::current_system().expect("in an actor").id();
    (system, ctx.this().id().address().stage())
}

/// Notes that a member has been started, or continues.
pub fn lives<A: Actor>(who: MemberId, ctx: &Context<A>) {
    let (system, stage) = location(ctx);
    CENSUS.with_borrow_mut(|census| {
        census.stages.entry((who.0, system)).or_default().insert(stage);
        let lives = census.lives.entry(who).or_default();
        lives.insert((system, stage));
        if lives.len() > 1 {
            census.twice.push(who);
        }
    });
}

pub fn departs<A: Actor>(who: MemberId, ctx: &Context<A>) {
    let location = location(ctx);
    CENSUS.with_borrow_mut(|census| census.lives.entry(who).or_default().remove(&location));
}

pub fn has_arrived<A: Actor>(who: MemberId, ctx: &Context<A>) {
    CENSUS.with_borrow_mut(|census| *census.moves.entry(who).or_default() += 1);
    lives(who, ctx);
}

pub fn stays<A: Actor>(who: MemberId, ctx: &Context<A>) {
    CENSUS.with_borrow_mut(|census| census.stays += 1);
    lives(who, ctx);
}

impl Census {
    /// Checks that each of these groups has been on one stage of each theater, and is in one theater, where each member lives
    /// once.
    pub fn check_together(&self, groups: std::ops::Range<u32>) {
        assert_eq!(self.twice, vec![]);
        for (group, stages) in &self.stages {
            assert_eq!(stages.len(), 1, "{group:?} is on the stages {stages:?}");
        }
        for group in groups {
            let members = || self.lives.iter().filter(|((of, _), _)| *of == group);
            let locations: BTreeSet<Location> = members().flat_map(|(_, lives)| lives).copied().collect();
            assert_eq!(locations.len(), 1, "group {group} is at {:?}", members().collect::<Vec<_>>());
            assert!(members().all(|(_, lives)| lives.len() == 1), "{:?}", members().collect::<Vec<_>>());
        }
    }
}
