//! Workloads of existing actors that send messages.

use super::*;

pub mod count {
    use super::*;

    struct Increment;

    struct Get;

    #[derive(Actor)]
    struct Counter(u64);

    impl Message<Increment> for Counter {
        type Reply = ();

        async fn handle(&mut self, _: Increment, _: &mut Context<Self, Self::Reply>) {
            self.0 += 1;
        }
    }

    impl Message<Get> for Counter {
        type Reply = u64;

        async fn handle(&mut self, _: Get, _: &mut Context<Self, Self::Reply>) -> u64 {
            self.0
        }
    }

    #[derive(Actor)]
    struct Producer {
        counter: ActorRef<Counter>,
        left: u64,
        finish: Finish,
    }

    impl Message<Begin> for Producer {
        type Reply = ();

        async fn handle(&mut self, _: Begin, ctx: &mut Context<Self, Self::Reply>) {
            let slice = self.left.min(SLICE);
            for _ in 0..slice {
                tell(&self.counter, Increment);
            }
            self.left -= slice;
            if self.left > 0 {
                return tell(ctx.actor_ref(), Begin);
            }
            self.finish.reached(self.counter.ask(Get).await.unwrap_or(0));
        }
    }

    pub fn run(size: Size) -> Played {
        let increments = playhouse_peers::count(size);
        let (finish, finished) = finish();
        let counter = spawn(Counter(0));
        let producer = spawn(Producer { counter, left: increments, finish });
        finished.time(increments, increments, || tell(&producer, Begin))
    }
}

pub mod pingpong {
    use super::*;

    struct Ping;

    struct Meet(ActorRef<Player>);

    #[derive(Actor)]
    struct Player {
        other: Option<ActorRef<Player>>,
        received: u64,
        rounds: u64,
        finish: Option<Finish>,
    }

    impl Message<Meet> for Player {
        type Reply = ();

        async fn handle(&mut self, Meet(other): Meet, _: &mut Context<Self, Self::Reply>) {
            self.other = Some(other);
        }
    }

    impl Message<Ping> for Player {
        type Reply = ();

        async fn handle(&mut self, _: Ping, _: &mut Context<Self, Self::Reply>) {
            self.received += 1;
            match (&self.finish, &self.other) {
                (Some(finish), _) if self.received > self.rounds => finish.reached(self.received - 1),
                (_, Some(other)) => tell(&other, Ping),
                _ => {}
            }
        }
    }

    /// The first message, which starts it, is not counted.
    pub fn run(size: Size) -> Played {
        let rounds = playhouse_peers::pingpong(size);
        let (finish, finished) = finish();
        let pinger = spawn(Player { other: None, received: 0, rounds, finish: Some(finish) });
        let ponger = spawn(Player { other: Some(pinger.clone()), received: 0, rounds, finish: None });
        tell(&pinger, Meet(ponger));
        finished.time(2 * rounds, rounds, || tell(&pinger, Ping))
    }
}

pub mod executor {
    use super::*;

    struct Meet(Arc<[ActorRef<Member>]>);

    struct Token;

    #[derive(Actor)]
    struct Member {
        group: Arc<[ActorRef<Member>]>,
        next: usize,
        sends_left: u64,
        /// Messages still to come: one per send of this actor's share, and the start message.
        recs_left: u64,
        judge: ActorRef<Judge>,
    }

    impl Message<Meet> for Member {
        type Reply = ();

        async fn handle(&mut self, Meet(group): Meet, _: &mut Context<Self, Self::Reply>) {
            self.group = group;
        }
    }

    impl Message<Begin> for Member {
        type Reply = ();

        async fn handle(&mut self, _: Begin, _: &mut Context<Self, Self::Reply>) {
            for member in self.group.iter() {
                tell(&member, Token);
            }
        }
    }

    impl Message<Token> for Member {
        type Reply = ();

        async fn handle(&mut self, _: Token, _: &mut Context<Self, Self::Reply>) {
            if self.sends_left > 0 {
                self.sends_left -= 1;
                tell(&self.group[self.next], Token);
                self.next = (self.next + 1) % self.group.len();
            }
            self.recs_left -= 1;
            if self.recs_left == 0 {
                tell(&self.judge, Done(self.sends_left));
            }
        }
    }

    pub fn run(size: Size) -> Played {
        let (groups, sends) = playhouse_peers::executor(size);
        let (finish, finished) = finish();
        let judge = spawn(Judge(Tally::new(groups * GROUP, finish)));
        let nobody: Arc<[ActorRef<Member>]> = Arc::new([]);
        let mut firsts = Vec::new();
        for _ in 0..groups {
            let member = || {
                let (group, judge) = (Arc::clone(&nobody), judge.clone());
                Member { group, next: 0, sends_left: sends, recs_left: sends + 1, judge }
            };
            let group: Arc<[_]> = (0..GROUP).map(|_| spawn(member())).collect();
            for member in group.iter() {
                tell(&member, Meet(Arc::clone(&group)));
            }
            firsts.push(group[0].clone());
        }
        finished.time(groups * GROUP * sends, 0, || {
            for first in &firsts {
                tell(&first, Begin);
            }
        })
    }
}

pub mod repeat {
    use super::*;

    struct Request;

    struct Reply(u64);

    struct Meet(Vec<ActorRef<Server>>);

    #[derive(Actor)]
    struct Server {
        client: ActorRef<Client>,
        requests: u64,
    }

    impl Message<Request> for Server {
        type Reply = ();

        async fn handle(&mut self, _: Request, _: &mut Context<Self, Self::Reply>) {
            self.requests += 1;
            tell(&self.client, Reply(self.requests));
        }
    }

    #[derive(Actor)]
    struct Client {
        servers: Vec<ActorRef<Server>>,
        sent: usize,
        replies: usize,
        rounds_left: u64,
        sum: u64,
        finish: Finish,
    }

    impl Message<Meet> for Client {
        type Reply = ();

        async fn handle(&mut self, Meet(servers): Meet, _: &mut Context<Self, Self::Reply>) {
            self.servers = servers;
        }
    }

    impl Message<Begin> for Client {
        type Reply = ();

        async fn handle(&mut self, _: Begin, ctx: &mut Context<Self, Self::Reply>) {
            let until = (self.sent + SLICE as usize).min(self.servers.len());
            for server in &self.servers[self.sent..until] {
                tell(&server, Request);
            }
            self.sent = until;
            if until < self.servers.len() {
                tell(ctx.actor_ref(), Begin);
            }
        }
    }

    impl Message<Reply> for Client {
        type Reply = ();

        async fn handle(&mut self, Reply(requests): Reply, ctx: &mut Context<Self, Self::Reply>) {
            self.sum += requests;
            self.replies += 1;
            if self.replies < self.servers.len() {
                return;
            }
            (self.sent, self.replies) = (0, 0);
            self.rounds_left -= 1;
            if self.rounds_left > 0 { tell(ctx.actor_ref(), Begin) } else { self.finish.reached(self.sum) }
        }
    }

    pub fn run(size: Size) -> Played {
        let (servers, rounds) = playhouse_peers::repeat(size);
        let (finish, finished) = finish();
        let client = Client { servers: Vec::new(), sent: 0, replies: 0, rounds_left: rounds, sum: 0, finish };
        let client = spawn(client);
        let server = |_| spawn(Server { client: client.clone(), requests: 0 });
        tell(&client, Meet((0..servers).map(server).collect()));
        finished.time(2 * servers * rounds, requests_sum(servers, rounds), || tell(&client, Begin))
    }
}
