//! Chameneos (Kaiser and Pradat-Peyre 2003): creatures meet in a mall, two at a time. Both take a colour that depends
//! on their former colours.

use playhouse::prelude::*;

const CREATURES: u8 = 3;
const MEETINGS: u8 = 2;

/// Returns the third colour if `a` and `b` differ, and their colour otherwise.
fn mixed(a: u8, b: u8) -> u8 {
    if a == b { a } else { 3 - a - b }
}

struct Mall {
    left: u8,
    waiting: Option<(ActorRef<Creature>, u8)>,
    /// The colours after each meeting.
    colours: [Vec<u8>; MEETINGS as usize],
}

struct Creature {
    mall: ActorRef<Mall>,
    colour: u8,
    bug: bool,
}

#[derive(Message)]
struct Come {
    who: ActorRef<Creature>,
    colour: u8,
}

#[derive(Message)]
struct Changed {
    meeting: u8,
    colour: u8,
}

#[derive(Message)]
#[message(reply = u64)]
struct Meetings;

#[derive(Message)]
struct Met {
    meeting: u8,
    other: ActorRef<Creature>,
    colour: u8,
}

#[derive(Message)]
struct Show {
    meeting: u8,
    colour: u8,
}

impl Actor for Mall {}

impl Handler<Come> for Mall {
    fn handle(&mut self, come: Come, _: &mut Context<Self>) {
        if self.left == 0 {
            return;
        }
        let Some((first, colour)) = self.waiting.take() else {
            self.waiting = Some((come.who, come.colour));
            return;
        };
        self.left -= 1;
        let meeting = self.left;
        first.tell(Met { meeting, other: come.who, colour: come.colour });
        come.who.tell(Met { meeting, other: first, colour });
    }
}

impl Handler<Changed> for Mall {
    fn handle(&mut self, changed: Changed, _: &mut Context<Self>) {
        self.colours[usize::from(changed.meeting)].push(changed.colour);
    }
}

impl Handler<Meetings> for Mall {
    fn handle(&mut self, _: Meetings, _: &mut Context<Self>) -> u64 {
        for (meeting, colours) in self.colours.iter().enumerate() {
            assert_eq!(colours.len(), 2, "two have met in meeting {meeting}");
            assert_eq!(colours[0], colours[1], "both take the same colour in meeting {meeting}");
        }
        self.colours.len() as u64
    }
}

impl Actor for Creature {
    fn started(&mut self, ctx: &mut Context<Self>) {
        self.mall.tell(Come { who: ctx.this(), colour: self.colour });
    }
}

impl Creature {
    fn change(&mut self, meeting: u8, other: u8, ctx: &mut Context<Self>) {
        self.colour = mixed(self.colour, other);
        self.mall.tell(Changed { meeting, colour: self.colour });
        // The last meeting is number 0.
        if meeting > 0 {
            self.mall.tell(Come { who: ctx.this(), colour: self.colour });
        }
    }
}

impl Handler<Met> for Creature {
    fn handle(&mut self, met: Met, ctx: &mut Context<Self>) {
        if self.bug {
            met.other.tell(Show { meeting: met.meeting, colour: self.colour });
        } else {
            self.change(met.meeting, met.colour, ctx);
        }
    }
}

impl Handler<Show> for Creature {
    fn handle(&mut self, show: Show, ctx: &mut Context<Self>) {
        self.change(show.meeting, show.colour, ctx);
    }
}

pub(super) fn meet(system: &System, bug: bool) -> u64 {
    let mall = system.spawn(Mall { left: MEETINGS, waiting: None, colours: Default::default() });
    for colour in 0..CREATURES {
        system.spawn(Creature { mall, colour, bug });
    }
    system.run_until_idle();
    mall.ask(Meetings).wait().expect("the mall does not end")
}
