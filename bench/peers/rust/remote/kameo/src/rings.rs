//! Tokens that go round over four processes.

use super::*;

#[derive(Serialize, Deserialize)]
pub struct WantMember(pub RemoteActorRef<Member>);

#[derive(Serialize, Deserialize)]
struct Hop {
    left: u64,
}

/// Closes the ring.
struct Close(RemoteActorRef<Member>);

/// Of a ring.
#[derive(Actor, RemoteActor)]
pub struct Member {
    next: Option<RemoteActorRef<Member>>,
    /// That of the one in this process.
    judge: Option<ActorRef<Judge>>,
    hops: u64,
}

impl Member {
    fn head(judge: ActorRef<Judge>) -> Self {
        Self { next: None, judge: Some(judge), hops: 0 }
    }

    pub fn hopper(next: RemoteActorRef<Member>) -> Self {
        Self { next: Some(next), judge: None, hops: 0 }
    }
}

impl Message<Close> for Member {
    type Reply = ();

    async fn handle(&mut self, Close(first): Close, _: &mut Context<Self, Self::Reply>) {
        self.next = Some(first);
    }
}

#[remote_message]
impl Message<Hop> for Member {
    type Reply = ();

    async fn handle(&mut self, Hop { left }: Hop, _: &mut Context<Self, Self::Reply>) {
        self.hops += 1;
        match (&self.judge, &self.next) {
            (Some(judge), _) if left == 0 => tell(judge, Done),
            (_, Some(next)) => tell_remote(next, Hop { left: left - 1 }),
            _ => {}
        }
    }
}

#[remote_message]
impl Message<AskSeen> for Member {
    type Reply = u64;

    async fn handle(&mut self, _: AskSeen, _: &mut Context<Self, Self::Reply>) -> u64 {
        self.hops
    }
}

struct Done;

#[derive(Actor)]
struct Judge(Tally);

impl Message<Done> for Judge {
    type Reply = ();

    async fn handle(&mut self, _: Done, _: &mut Context<Self, Self::Reply>) {
        self.0.done(0);
    }
}

pub fn run(stage: &Stage) -> Played {
    let (rings, rounds) = rrings(stage.workload, stage.size).ok_or("there are no such rings")?;
    let (finish, finished) = finish();
    let _entered = stage.runtime.enter();
    let judge = spawn(Judge(Tally::new(rings, finish)));
    let (mut heads, mut hoppers) = (Vec::new(), Vec::new());
    stage.runtime.block_on(async {
        for _ in 0..rings {
            let head = spawn(Member::head(judge.clone()));
            let mut next = head.into_remote_ref().await;
            for host in (0..stage.hosts.len()).rev() {
                next = stage.start(host, WantMember(next)).await?;
                hoppers.push(next.clone());
            }
            tell(&head, Close(next));
            heads.push(head);
        }
        Ok::<_, String>(())
    })?;
    let hops = rounds * (stage.hosts.len() as u64 + 1);
    let played = finished.time(rings * hops, 0, || {
        for head in &heads {
            tell(head, Hop { left: hops });
        }
    })?;
    for hopper in &hoppers {
        let seen = stage.runtime.block_on(async { hopper.ask(&AskSeen).await }).map_err(|error| error.to_string())?;
        check("the hops of a member", rounds, seen)?;
    }
    Ok(played)
}
