//! Two-phase commit.

use playhouse::prelude::*;

const PARTICIPANTS: usize = 3;

struct Coordinator {
    participants: Vec<ActorRef<Participant>>,
    votes: Vec<bool>,
    has_decided: bool,
    bug: bool,
}

struct Participant {
    is_for: bool,
    committed: Option<bool>,
}

#[derive(Message)]
struct Begin;

#[derive(Message)]
struct Vote(bool);

#[derive(Message)]
struct Prepare(ActorRef<Coordinator>);

#[derive(Message)]
struct Decided(bool);

#[derive(Message)]
#[message(reply = Option<bool>)]
struct Outcome;

impl Actor for Coordinator {}

impl Handler<Begin> for Coordinator {
    fn handle(&mut self, _: Begin, ctx: &mut Context<Self>) {
        for participant in &self.participants {
            participant.tell(Prepare(ctx.this()));
        }
    }
}

impl Handler<Vote> for Coordinator {
    fn handle(&mut self, vote: Vote, _: &mut Context<Self>) {
        self.votes.push(vote.0);
        let needed = if self.bug { PARTICIPANTS / 2 + 1 } else { PARTICIPANTS };
        if !self.has_decided && self.votes.len() == needed {
            let commits = self.votes.iter().all(|vote| *vote);
            self.has_decided = true;
            for participant in &self.participants {
                participant.tell(Decided(commits));
            }
        }
    }
}

impl Actor for Participant {}

impl Handler<Prepare> for Participant {
    fn handle(&mut self, prepare: Prepare, _: &mut Context<Self>) {
        if !self.is_for {
            // A participant that votes no can abort at once.
            self.committed = Some(false);
        }
        prepare.0.tell(Vote(self.is_for));
    }
}

impl Handler<Decided> for Participant {
    fn handle(&mut self, decided: Decided, _: &mut Context<Self>) {
        let before = *self.committed.get_or_insert(decided.0);
        assert_eq!(before, decided.0, "what was aborted is not committed");
    }
}

impl Handler<Outcome> for Participant {
    fn handle(&mut self, _: Outcome, _: &mut Context<Self>) -> Option<bool> {
        self.committed
    }
}

pub(super) fn decide(system: &System, bug: bool) -> u64 {
    let participants: Vec<_> = (0..PARTICIPANTS)
        .map(|n| {
            let name = SpawnOptions::new().name(format!("{n}"));
            system.spawn_with(name, Participant { is_for: n != 1, committed: None })
        })
        .collect();
    let begin = Coordinator { participants: participants.clone(), votes: Vec::new(), has_decided: false, bug };
    system.spawn(begin).tell(Begin);
    system.run_until_idle();
    let committed = |participant: &ActorRef<Participant>| participant.ask(Outcome).wait() == Ok(Some(true));
    participants.iter().filter(|participant| committed(participant)).count() as u64
}
