//! Actors that tell and ask each other numbered messages, roam, and keep the errors that they find.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use playhouse_actor::*;
use playhouse_executor::Choices;
use serde::{Deserialize, Serialize};

/// Numbers its messages to each of the others, and sends a reference to any of them along. Theaters therefore learn of actors
/// in theaters without a link to them, and never send anything to these actors.
#[derive(Clone, Serialize, Deserialize)]
pub struct Gossip {
    pub id: u32,
    pub others: Vec<ActorRef<Gossip>>,
    pub theaters: Vec<SocketAddr>,
    pub dice: u64,
    pub sent: BTreeMap<u32, u64>,
    pub heard: BTreeMap<u32, u64>,
    pub asked: u64,
    pub answered: u64,
    pub wrong: Vec<String>,
    pub is_quiet: bool,
    /// Arrivals.
    pub moves: u64,
}

#[derive(Serialize, Deserialize)]
pub struct Meet(pub Vec<ActorRef<Gossip>>, pub Vec<SocketAddr>);
remote_message!(Meet -> ());

#[derive(Serialize, Deserialize)]
pub struct Say {
    from: u32,
    number: u64,
    of: u32,
    whom: ActorRef<Gossip>,
}
remote_message!(Say -> ());

#[derive(Serialize, Deserialize)]
pub struct Question(u32);
remote_message!(Question -> u32);

#[derive(Serialize, Deserialize)]
pub struct Answered(u32, Result<u32, AskError>);
remote_message!(Answered -> ());

#[derive(Clone, Serialize, Deserialize)]
pub struct Speak;
remote_message!(Speak -> ());

#[derive(Serialize, Deserialize)]
pub struct Hush;
remote_message!(Hush -> ());

/// Answered with a copy of the actor.
#[derive(Serialize, Deserialize)]
pub struct Look;
remote_message!(Look -> Gossip);

impl Gossip {
    pub fn new(id: u32, run: u64) -> Gossip {
        Gossip {
            id,
            others: Vec::new(),
            theaters: Vec::new(),
            dice: run << 32 | u64::from(id),
            sent: BTreeMap::new(),
            heard: BTreeMap::new(),
            asked: 0,
            answered: 0,
            wrong: Vec::new(),
            is_quiet: false,
            moves: 0,
        }
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.dice = Choices::new(self.dice).next();
        (self.dice % sides as u64) as usize
    }

    pub fn is_settled(all: &[Gossip]) -> bool {
        let sent: u64 = all.iter().flat_map(|one| one.sent.values()).sum();
        let heard: u64 = all.iter().flat_map(|one| one.heard.values()).sum();
        sent == heard && all.iter().all(|one| one.asked == one.answered)
    }
}
impl Actor for Gossip {
    fn migrated(&mut self, _: &mut Context<Self>) {
        self.moves += 1;
    }
}
impl Handler<Meet> for Gossip {
    fn handle(&mut self, Meet(others, theaters): Meet, ctx: &mut Context<Self>) {
        (self.others, self.theaters) = (others, theaters);
        ctx.send_every(Duration::from_millis(5), Speak);
    }
}
impl Handler<Speak> for Gossip {
    fn handle(&mut self, _: Speak, ctx: &mut Context<Self>) {
        if self.is_quiet {
            return;
        }
        for _ in 0..2 {
            let [to, of] = [(); 2].map(|()| self.roll(self.others.len()));
            let number = self.sent.entry(to as u32).or_default();
            *number += 1;
            self.others[to].tell(Say { from: self.id, number: *number, of: of as u32, whom: self.others[of] });
        }
        if self.roll(3) == 0 {
            let to = self.roll(self.others.len());
            self.asked += 1;
            ctx.ask(self.others[to], Question(to as u32)).pipe_to_self(move |answer| Answered(to as u32, answer));
        }
        if self.roll(10) == 0 {
            let to = self.roll(self.theaters.len());
            ctx.migrate_to(self.theaters[to]);
        }
    }
}
impl Handler<Say> for Gossip {
    fn handle(&mut self, Say { from, number, of, whom }: Say, _: &mut Context<Self>) {
        let last = self.heard.insert(from, number).unwrap_or(0);
        if number != last + 1 {
            self.wrong.push(format!("{number} of {from} came behind {last}"));
        }
        if self.others.get(of as usize).is_some_and(|known| *known != whom) {
            self.wrong.push(format!("{from} knows another {of}"));
        }
    }
}
impl Handler<Question> for Gossip {
    fn handle(&mut self, Question(whom): Question, _: &mut Context<Self>) -> u32 {
        assert_eq!(whom, self.id);
        whom
    }
}
impl Handler<Answered> for Gossip {
    fn handle(&mut self, Answered(by, answer): Answered, _: &mut Context<Self>) {
        self.answered += 1;
        if answer != Ok(by) {
            self.wrong.push(format!("{by} answered {answer:?}"));
        }
    }
}
impl Handler<Hush> for Gossip {
    fn handle(&mut self, _: Hush, _: &mut Context<Self>) {
        self.is_quiet = true;
    }
}
impl Handler<Look> for Gossip {
    fn handle(&mut self, _: Look, _: &mut Context<Self>) -> Gossip {
        self.clone()
    }
}
remote!(mobile Gossip: Meet, Say, Question, Answered, Speak, Hush, Look);
