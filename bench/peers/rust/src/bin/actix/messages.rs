//! Workloads of existing actors that send messages.

use super::*;

pub mod count {
    use super::*;

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Increment;

    #[derive(Message)]
    #[rtype(result = "u64")]
    struct Get;

    struct Counter(u64);

    impl Actor for Counter {
        type Context = Context<Self>;
    }

    impl Handler<Increment> for Counter {
        type Result = ();

        fn handle(&mut self, _: Increment, _: &mut Context<Self>) {
            self.0 += 1;
        }
    }

    impl Handler<Get> for Counter {
        type Result = u64;

        fn handle(&mut self, _: Get, _: &mut Context<Self>) -> u64 {
            self.0
        }
    }

    struct Producer {
        counter: Addr<Counter>,
        left: u64,
        finish: Finish,
    }

    impl Actor for Producer {
        type Context = Context<Self>;
    }

    impl Handler<Begin> for Producer {
        type Result = ();

        fn handle(&mut self, _: Begin, ctx: &mut Context<Self>) {
            let slice = self.left.min(SLICE);
            for _ in 0..slice {
                self.counter.do_send(Increment);
            }
            self.left -= slice;
            if self.left > 0 {
                return ctx.notify(Begin);
            }
            let count = self.counter.send(Get).into_actor(self);
            ctx.spawn(count.map(|count, this, _| this.finish.reached(count.unwrap_or(0))));
        }
    }

    pub fn run(stage: &Stage, size: Size) -> Played {
        let increments = playhouse_peers::count(size);
        let (finish, finished) = finish();
        let counter = stage.start(0, Counter(0));
        let producer = stage.start(0, Producer { counter, left: increments, finish });
        finished.time(increments, increments, || producer.do_send(Begin))
    }
}

pub mod pingpong {
    use super::*;

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Ping;

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Meet(Addr<Player>);

    struct Player {
        other: Option<Addr<Player>>,
        received: u64,
        rounds: u64,
        finish: Option<Finish>,
    }

    impl Actor for Player {
        type Context = Context<Self>;
    }

    impl Handler<Meet> for Player {
        type Result = ();

        fn handle(&mut self, Meet(other): Meet, _: &mut Context<Self>) {
            self.other = Some(other);
        }
    }

    impl Handler<Ping> for Player {
        type Result = ();

        fn handle(&mut self, _: Ping, _: &mut Context<Self>) {
            self.received += 1;
            match (&self.finish, &self.other) {
                (Some(finish), _) if self.received > self.rounds => finish.reached(self.received - 1),
                (_, Some(other)) => other.do_send(Ping),
                _ => {}
            }
        }
    }

    /// The first message, which starts it, is not counted.
    pub fn run(stage: &Stage, size: Size) -> Played {
        let rounds = playhouse_peers::pingpong(size);
        let (finish, finished) = finish();
        let pinger = stage.start(0, Player { other: None, received: 0, rounds, finish: Some(finish) });
        let ponger = stage.start(0, Player { other: Some(pinger.clone()), received: 0, rounds, finish: None });
        pinger.do_send(Meet(ponger));
        finished.time(2 * rounds, rounds, || pinger.do_send(Ping))
    }
}

pub mod executor {
    use super::*;

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Meet(Arc<[Addr<Member>]>);

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Token;

    struct Member {
        group: Arc<[Addr<Member>]>,
        next: usize,
        sends_left: u64,
        /// Messages still to come: one per send of this actor's share, and the start message.
        recs_left: u64,
        judge: Addr<Judge>,
    }

    impl Actor for Member {
        type Context = Context<Self>;
    }

    impl Handler<Meet> for Member {
        type Result = ();

        fn handle(&mut self, Meet(group): Meet, _: &mut Context<Self>) {
            self.group = group;
        }
    }

    impl Handler<Begin> for Member {
        type Result = ();

        fn handle(&mut self, _: Begin, _: &mut Context<Self>) {
            for member in self.group.iter() {
                member.do_send(Token);
            }
        }
    }

    impl Handler<Token> for Member {
        type Result = ();

        fn handle(&mut self, _: Token, _: &mut Context<Self>) {
            if self.sends_left > 0 {
                self.sends_left -= 1;
                self.group[self.next].do_send(Token);
                self.next = (self.next + 1) % self.group.len();
            }
            self.recs_left -= 1;
            if self.recs_left == 0 {
                self.judge.do_send(Done(self.sends_left));
            }
        }
    }

    pub fn run(stage: &Stage, size: Size) -> Played {
        let (groups, sends) = playhouse_peers::executor(size);
        let (finish, finished) = finish();
        let judge = stage.start(0, Judge(Tally::new(groups * GROUP, finish)));
        let nobody: Arc<[Addr<Member>]> = Arc::new([]);
        let mut firsts = Vec::new();
        for number in 0..groups {
            let member = || {
                let (group, judge) = (Arc::clone(&nobody), judge.clone());
                Member { group, next: 0, sends_left: sends, recs_left: sends + 1, judge }
            };
            let group: Arc<[_]> = (0..GROUP).map(|_| stage.start(number, member())).collect();
            for member in group.iter() {
                member.do_send(Meet(Arc::clone(&group)));
            }
            firsts.push(group[0].clone());
        }
        finished.time(groups * GROUP * sends, 0, || {
            for first in &firsts {
                first.do_send(Begin);
            }
        })
    }
}

pub mod repeat {
    use super::*;

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Request;

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Reply(u64);

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Meet(Vec<Addr<Server>>);

    struct Server {
        client: Addr<Client>,
        requests: u64,
    }

    impl Actor for Server {
        type Context = Context<Self>;
    }

    impl Handler<Request> for Server {
        type Result = ();

        fn handle(&mut self, _: Request, _: &mut Context<Self>) {
            self.requests += 1;
            self.client.do_send(Reply(self.requests));
        }
    }

    struct Client {
        servers: Vec<Addr<Server>>,
        sent: usize,
        replies: usize,
        rounds_left: u64,
        sum: u64,
        finish: Finish,
    }

    impl Actor for Client {
        type Context = Context<Self>;
    }

    impl Handler<Meet> for Client {
        type Result = ();

        fn handle(&mut self, Meet(servers): Meet, _: &mut Context<Self>) {
            self.servers = servers;
        }
    }

    impl Handler<Begin> for Client {
        type Result = ();

        fn handle(&mut self, _: Begin, ctx: &mut Context<Self>) {
            let until = (self.sent + SLICE as usize).min(self.servers.len());
            for server in &self.servers[self.sent..until] {
                server.do_send(Request);
            }
            self.sent = until;
            if until < self.servers.len() {
                ctx.notify(Begin);
            }
        }
    }

    impl Handler<Reply> for Client {
        type Result = ();

        fn handle(&mut self, Reply(requests): Reply, ctx: &mut Context<Self>) {
            self.sum += requests;
            self.replies += 1;
            if self.replies < self.servers.len() {
                return;
            }
            (self.sent, self.replies) = (0, 0);
            self.rounds_left -= 1;
            if self.rounds_left > 0 { ctx.notify(Begin) } else { self.finish.reached(self.sum) }
        }
    }

    pub fn run(stage: &Stage, size: Size) -> Played {
        let (servers, rounds) = playhouse_peers::repeat(size);
        let (finish, finished) = finish();
        let client = Client { servers: Vec::new(), sent: 0, replies: 0, rounds_left: rounds, sum: 0, finish };
        let client = stage.start(0, client);
        let server = |_| stage.start(0, Server { client: client.clone(), requests: 0 });
        client.do_send(Meet((0..servers).map(server).collect()));
        finished.time(2 * servers * rounds, requests_sum(servers, rounds), || client.do_send(Begin))
    }
}
