//! The election of a leader in a ring, after Chang and Roberts: the greatest identity goes all the way round.

use playhouse::prelude::*;

use super::passing::pass;

#[derive(Default)]
struct Process {
    id: u64,
    next: Option<ActorRef<Process>>,
    leader: Option<u64>,
}

#[actor]
impl Process {
    #[message]
    fn join(&mut self, next: ActorRef<Process>) {
        self.next = Some(next);
    }

    #[message]
    fn start(&mut self) {
        if let Some(next) = self.next {
            next.tell(Candidate(pass(self.id)));
        }
    }

    #[message]
    fn candidate(&mut self, id: u64) {
        match self.next {
            Some(next) if id > self.id => next.tell(Candidate(pass(id))),
            Some(next) if id == self.id => next.tell(Elected(pass(id))),
            _ => {}
        }
    }

    #[message]
    fn elected(&mut self, id: u64) {
        self.leader = Some(id);
        if let (Some(next), true) = (self.next, id != self.id) {
            next.tell(Elected(pass(id)));
        }
    }

    #[message]
    fn leader(&self) -> Option<u64> {
        self.leader
    }
}

pub(super) fn run(system: &System, processes: usize) -> playhouse::Result<bool> {
    // An odd factor: all identities differ.
    let id = |number: usize| (number as u32).wrapping_mul(2_654_435_761).into();
    let process = |number| Process { id: id(number), ..Process::default() };
    let ring: Vec<_> = (0..processes).map(|number| system.spawn(process(number))).collect();
    for (number, process) in ring.iter().enumerate() {
        process.tell(Join(pass(ring[(number + 1) % processes])));
    }
    system.run_until_idle();
    for process in &ring {
        process.tell(Start);
    }
    system.run_until_idle();
    let greatest = (0..processes).map(id).max();
    for process in &ring {
        if process.ask(Leader).wait()? != greatest {
            return Ok(false);
        }
    }
    Ok(greatest.is_some())
}
