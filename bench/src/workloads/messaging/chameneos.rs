//! Ten chameneos that meet two at a time in one mall: everything goes through one busy actor.

use playhouse::prelude::*;

use crate::baselines;
use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::harness::placement::placed;
use crate::harness::steps::Steps;
use crate::plans::chameneos::{Colour, Plan};
use crate::report::Target;

pub(crate) const CHAMENEOS: Benchmark = Benchmark {
    name: "chameneos",
    op: "meeting",
    source: "Savina `chameneos` (Run, Actor, Run! §4.1.1; Kumar §6.2)",
    summary: "10 chameneos of one group and their mall, 2,000,000 meetings of four messages each",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run(system, size, Plan::of(size)),
    baseline: Some(Baseline::Hand(|size| baselines::meetings::chameneos(&Plan::of(size)))),
    target: Target::ns(50.0),
};

/// A creature enters the mall.
#[derive(Message)]
struct Enter {
    who: ActorRef<Creature>,
    colour: Colour,
}

/// A creature has left for good after this number of meetings.
#[derive(Message)]
struct Left {
    meetings: u64,
}

struct Mall {
    left: u64,
    waiting: Option<Enter>,
    creatures: u64,
    met: u64,
    finish: Finish<u64>,
}

impl Actor for Mall {}

impl Handler<Enter> for Mall {
    fn handle(&mut self, second: Enter, _: &mut Context<Self>) {
        if self.left == 0 {
            second.who.tell(Closed);
        } else if let Some(first) = self.waiting.take() {
            first.who.tell(Meet(second.colour));
            second.who.tell(Meet(first.colour));
            self.left -= 1;
        } else {
            self.waiting = Some(second);
        }
    }
}

impl Handler<Left> for Mall {
    fn handle(&mut self, creature: Left, _: &mut Context<Self>) {
        self.met += creature.meetings;
        self.creatures -= 1;
        if self.creatures == 0 {
            self.finish.reached(self.met);
        }
    }
}

#[derive(Message)]
struct Begin;

/// The other creature has this colour.
#[derive(Message)]
struct Meet(Colour);

#[derive(Message)]
struct Closed;

struct Creature {
    mall: ActorRef<Mall>,
    colour: Colour,
    meetings: u64,
    work: Steps,
}

impl Creature {
    fn enter(&self, ctx: &Context<Self>) {
        self.mall.tell(Enter { who: ctx.this(), colour: self.colour });
    }
}

impl Actor for Creature {}

impl Handler<Begin> for Creature {
    fn handle(&mut self, _: Begin, ctx: &mut Context<Self>) {
        self.enter(ctx);
    }
}

impl Handler<Meet> for Creature {
    fn handle(&mut self, Meet(other): Meet, ctx: &mut Context<Self>) {
        self.colour = self.colour.complement(other);
        self.meetings += 1;
        self.work.work();
        self.enter(ctx);
    }
}

impl Handler<Closed> for Creature {
    fn handle(&mut self, _: Closed, _: &mut Context<Self>) {
        self.mall.tell(Left { meetings: self.meetings });
    }
}

pub(crate) fn run(system: &System, size: Size, plan: Plan) -> Result<Outcome, Failure> {
    let (finish, finished) = finish(size);
    let group = Placement::Group(Group::new(system));
    let mall = Mall { left: plan.meetings, waiting: None, creatures: plan.creatures, met: 0, finish };
    let mall = system.spawn_with(placed(group), mall);
    let creatures: Vec<_> = (0..plan.creatures)
        .map(|number| {
            let creature = Creature { mall, colour: Colour::of(number), meetings: 0, work: plan.work };
            system.spawn_with(placed(group), creature)
        })
        .collect();
    let (elapsed, met) = finished.time(|| {
        for creature in &creatures {
            creature.tell(Begin);
        }
    })?;
    check("the meetings that the creatures remember", 2 * plan.meetings, met)?;
    Ok(Outcome::new(plan.meetings, elapsed))
}
