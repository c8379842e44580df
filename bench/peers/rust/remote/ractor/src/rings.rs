//! Tokens that go round over four processes.

use super::*;

/// The group of the member of a ring in another process, or in the first.
fn group(ring: u64, position: usize) -> String {
    format!("ring {ring} at {position}")
}

/// The position of the first process, behind all others.
const HEAD: usize = 3;

#[derive(RactorClusterMessage)]
enum Ring {
    /// The next one is known.
    Close,
    Hop(u64),
    #[rpc]
    AskSeen(RpcReplyPort<u64>),
}

struct Member {
    ring: u64,
    next: Option<ActorRef<Ring>>,
    /// That of the one in the first process.
    judge: Option<ActorRef<Done>>,
    hops: u64,
}

impl State for Member {
    type Msg = Ring;

    fn handle(&mut self, message: Ring) {
        match message {
            Ring::Close => self.next = Some(node::found(&group(self.ring, 0))),
            Ring::Hop(left) => {
                self.hops += 1;
                match (&self.judge, &self.next) {
                    (Some(judge), _) if left == 0 => tell(judge, Done),
                    (_, Some(next)) => tell(next, Ring::Hop(left - 1)),
                    _ => {}
                }
            }
            Ring::AskSeen(to) => answer(to, self.hops),
        }
    }
}

#[derive(RactorMessage)]
struct Done;

struct Judge(Tally);

impl State for Judge {
    type Msg = Done;

    fn handle(&mut self, _: Done) {
        self.0.done(0);
    }
}

/// Runs one of the other processes: its members learn the next one after their start.
pub async fn join(workload: &str, size: Size, position: usize) -> Result<(), String> {
    let (rings, _) = rrings(workload, size).ok_or("there are no such rings")?;
    for ring in 0..rings {
        let next = Some(node::find(&group(ring, position + 1)).await?);
        spawn_known(&group(ring, position), Member { ring, next, judge: None, hops: 0 });
    }
    Ok(())
}

pub fn run(stage: &Stage) -> Played {
    let (rings, rounds) = rrings(stage.workload, stage.size).ok_or("there are no such rings")?;
    let (finish, finished) = finish();
    let _entered = stage.runtime.enter();
    let judge = spawn(Judge(Tally::new(rings, finish)));
    let head = |ring| Member { ring, next: None, judge: Some(judge.clone()), hops: 0 };
    let heads: Vec<_> = (0..rings).map(|ring| spawn_known(&group(ring, HEAD), head(ring))).collect();
    let mut hoppers = Vec::new();
    for (head, ring) in heads.iter().zip(0..) {
        for position in 0..HEAD {
            hoppers.push(stage.find(&group(ring, position))?);
        }
        tell(head, Ring::Close);
    }
    let hops = rounds * (HEAD as u64 + 1);
    let played = finished.time(rings * hops, 0, || {
        for head in &heads {
            tell(head, Ring::Hop(hops));
        }
    })?;
    for hopper in &hoppers {
        check("the hops of a member", rounds, stage.ask(hopper, Ring::AskSeen)?)?;
    }
    Ok(played)
}
