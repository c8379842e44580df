//! Where the members of groups live, as they say themselves. A simulation is one thread.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use playhouse_actor::{Actor, Context};

/// A group and one of its members.
pub type Who = (u32, u32);

/// A system and a stage of it.
pub type Seat = (u16, u16);

#[derive(Default)]
pub struct Census {
    /// Where each lives. More than one is one too many.
    pub lives: BTreeMap<Who, BTreeSet<Seat>>,
    /// By group and system: the stages that its members were on.
    pub stages: BTreeMap<(u32, u16), BTreeSet<u16>>,
    pub moves: BTreeMap<Who, u64>,
    pub stays: u64,
    pub twice: Vec<Who>,
}

thread_local! {
    pub static CENSUS: RefCell<Census> = RefCell::default();
}

fn location<A: Actor>(ctx: &Context<A>) -> Seat {
    let system = playhouse_executor::current_system().expect("in an actor").id();
    (system, ctx.this().id().address().stage())
}

/// It has been started, or goes on.
pub fn lives<A: Actor>(who: Who, ctx: &Context<A>) {
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

pub fn departs<A: Actor>(who: Who, ctx: &Context<A>) {
    let location = location(ctx);
    CENSUS.with_borrow_mut(|census| census.lives.entry(who).or_default().remove(&location));
}

pub fn has_arrived<A: Actor>(who: Who, ctx: &Context<A>) {
    CENSUS.with_borrow_mut(|census| *census.moves.entry(who).or_default() += 1);
    lives(who, ctx);
}

pub fn stays<A: Actor>(who: Who, ctx: &Context<A>) {
    CENSUS.with_borrow_mut(|census| census.stays += 1);
    lives(who, ctx);
}

impl Census {
    /// Each of these groups has been on one stage of each theater, and is in one of them, where each member lives once.
    pub fn check_together(&self, groups: std::ops::Range<u32>) {
        assert_eq!(self.twice, vec![]);
        for (group, stages) in &self.stages {
            assert_eq!(stages.len(), 1, "{group:?} is on the stages {stages:?}");
        }
        for group in groups {
            let members = || self.lives.iter().filter(|((of, _), _)| *of == group);
            let locations: BTreeSet<Seat> = members().flat_map(|(_, lives)| lives).copied().collect();
            assert_eq!(locations.len(), 1, "group {group} is at {:?}", members().collect::<Vec<_>>());
            assert!(members().all(|(_, lives)| lives.len() == 1), "{:?}", members().collect::<Vec<_>>());
        }
    }
}
