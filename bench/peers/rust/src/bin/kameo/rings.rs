//! Tokens that go round.

use super::*;

struct Token(u64);

struct Close(ActorRef<Member>);

#[derive(Actor)]
struct Member {
    next: Option<ActorRef<Member>>,
    position: u64,
    judge: ActorRef<Judge>,
}

impl Message<Close> for Member {
    type Reply = ();

    async fn handle(&mut self, Close(first): Close, _: &mut Context<Self, Self::Reply>) {
        self.next = Some(first);
    }
}

impl Message<Token> for Member {
    type Reply = ();

    async fn handle(&mut self, Token(left): Token, _: &mut Context<Self, Self::Reply>) {
        match &self.next {
            Some(next) if left > 0 => tell(&next, Token(left - 1)),
            _ => tell(&self.judge, Done(self.position)),
        }
    }
}

pub fn run(plan: Rings) -> Played {
    let (finish, finished) = finish();
    let judge = spawn(Judge(Tally::new(plan.rings, finish)));
    let firsts: Vec<_> = (0..plan.rings)
        .map(|_| {
            let member = |next, position| spawn(Member { next, position, judge: judge.clone() });
            let last = member(None, plan.members - 1);
            let first = (0..plan.members - 1).rev().fold(last.clone(), |next, at| member(Some(next), at));
            tell(&last, Close(first.clone()));
            first
        })
        .collect();
    finished.time(plan.ops(), plan.positions_sum(), || {
        for first in &firsts {
            tell(&first, Token(plan.hops));
        }
    })
}
