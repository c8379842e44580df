//! Tokens that go round.

use super::*;

enum Ring {
    Token(u64),
    Close(ActorRef<Ring>),
}

struct Member {
    next: Option<ActorRef<Ring>>,
    position: u64,
    judge: ActorRef<Done>,
}

impl State for Member {
    type Msg = Ring;

    fn handle(&mut self, _: &ActorRef<Ring>, message: Ring) {
        match (message, &self.next) {
            (Ring::Close(first), _) => self.next = Some(first),
            (Ring::Token(left), Some(next)) if left > 0 => tell(next, Ring::Token(left - 1)),
            (Ring::Token(_), _) => tell(&self.judge, Done(self.position)),
        }
    }
}

pub fn run(plan: Rings) -> Played {
    let (finish, finished) = finish();
    let judge = spawn(Judge(Tally::new(plan.rings, finish)));
    let member = |next, position| spawn(Member { next, position, judge: judge.clone() });
    let ring = |_| {
        let last = member(None, plan.members - 1);
        let first = (0..plan.members - 1).rev().fold(last.clone(), |next, position| member(Some(next), position));
        tell(&last, Ring::Close(first.clone()));
        first
    };
    let firsts: Vec<_> = (0..plan.rings).map(ring).collect();
    finished.time(plan.ops(), plan.positions_sum(), || {
        for first in &firsts {
            tell(first, Ring::Token(plan.hops));
        }
    })
}
