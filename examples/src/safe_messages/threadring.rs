//! A token goes round a ring of 503 actors (section 5.2.1).

use playhouse::prelude::*;

use super::passing::pass;

const MEMBERS: usize = 503;

#[derive(Default)]
struct Member {
    next: Option<ActorRef<Member>>,
    last: bool,
}

#[actor]
impl Member {
    #[message]
    fn join(&mut self, next: ActorRef<Member>) {
        self.next = Some(next);
    }

    #[message]
    fn token(&mut self, hops: u64) {
        match self.next {
            Some(next) if hops > 0 => next.tell(Token(pass(hops - 1))),
            _ => self.last = true,
        }
    }

    #[message]
    fn is_last(&self) -> bool {
        self.last
    }
}

pub(super) fn run(system: &System, hops: usize) -> playhouse::Result<bool> {
    let members: Vec<_> = (0..MEMBERS).map(|_| system.spawn(Member::default())).collect();
    for (number, member) in members.iter().enumerate() {
        member.tell(Join(pass(members[(number + 1) % MEMBERS])));
    }
    system.run_until_idle();
    members[0].tell(Token(pass(hops as u64)));
    system.run_until_idle();
    Ok(members[hops % MEMBERS].ask(IsLast).wait()?)
}
