//! Tokens that go round.

use super::*;

#[derive(Message)]
#[rtype(result = "()")]
struct Token(u64);

#[derive(Message)]
#[rtype(result = "()")]
struct Close(Addr<Member>);

struct Member {
    next: Option<Addr<Member>>,
    position: u64,
    judge: Addr<Judge>,
}

impl Actor for Member {
    type Context = Context<Self>;
}

impl Handler<Close> for Member {
    type Result = ();

    fn handle(&mut self, Close(first): Close, _: &mut Context<Self>) {
        self.next = Some(first);
    }
}

impl Handler<Token> for Member {
    type Result = ();

    fn handle(&mut self, Token(left): Token, _: &mut Context<Self>) {
        match &self.next {
            Some(next) if left > 0 => next.do_send(Token(left - 1)),
            _ => self.judge.do_send(Done(self.position)),
        }
    }
}

pub fn run(stage: &Stage, plan: Rings) -> Played {
    let (finish, finished) = finish();
    let judge = stage.start(0, Judge(Tally::new(plan.rings, finish)));
    let firsts: Vec<_> = (0..plan.rings)
        .map(|ring| {
            let member = |next, position| stage.start(ring, Member { next, position, judge: judge.clone() });
            let last = member(None, plan.members - 1);
            let first = (0..plan.members - 1).rev().fold(last.clone(), |next, at| member(Some(next), at));
            last.do_send(Close(first.clone()));
            first
        })
        .collect();
    finished.time(plan.ops(), plan.positions_sum(), || {
        for first in &firsts {
            first.do_send(Token(plan.hops));
        }
    })
}
