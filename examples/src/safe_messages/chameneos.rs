//! Creatures meet two at a time, and change their colours (Chameneos-redux, section 6.2): a set of three and one of ten, each
//! with a broker.

use playhouse::prelude::*;

use super::passing::{pass, scalars};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Colour {
    Blue,
    Red,
    Yellow,
}

scalars!(Colour);

impl Colour {
    const ALL: [Colour; 3] = [Colour::Blue, Colour::Red, Colour::Yellow];

    /// Returns the colour that a creature of this colour has after it meets `other`.
    fn complement(self, other: Colour) -> Colour {
        match Colour::ALL.into_iter().find(|third| *third != self && *third != other) {
            Some(third) if self != other => third,
            _ => self,
        }
    }
}

struct Broker {
    left: u64,
    waiting: Option<(ActorRef<Creature>, Colour)>,
}

#[actor]
impl Broker {
    #[message]
    fn enter(&mut self, second: ActorRef<Creature>, colour: Colour) {
        if self.left == 0 {
            return;
        }
        match self.waiting.take() {
            None => self.waiting = Some((second, colour)),
            Some((first, other)) => {
                self.left -= 1;
                first.tell(Meet(pass(colour)));
                second.tell(Meet(pass(other)));
            }
        }
    }
}

struct Creature {
    broker: ActorRef<Broker>,
    colour: Colour,
    meetings: u64,
}

#[actor]
impl Creature {
    #[message]
    fn start(&mut self, ctx: &mut Context<Self>) {
        self.broker.tell(Enter(pass(ctx.this()), pass(self.colour)));
    }

    #[message]
    fn meet(&mut self, other: Colour, ctx: &mut Context<Self>) {
        self.meetings += 1;
        self.colour = self.colour.complement(other);
        self.start(ctx);
    }

    #[message]
    fn meetings(&self) -> u64 {
        self.meetings
    }
}

pub(super) fn run(system: &System, meetings: usize) -> playhouse::Result<bool> {
    let mut met = Vec::new();
    for creatures in [3_usize, 10] {
        let broker = system.spawn(Broker { left: meetings as u64, waiting: None });
        let creature = |number| Creature { broker, colour: Colour::ALL[number % 3], meetings: 0 };
        let creatures: Vec<_> = (0..creatures).map(|number| system.spawn(creature(number))).collect();
        for creature in &creatures {
            creature.tell(Start);
        }
        system.run_until_idle();
        let mut sum = 0;
        for creature in &creatures {
            sum += creature.ask(Meetings).wait()?;
        }
        met.push(sum);
    }
    Ok(met == [2 * meetings as u64; 2])
}
