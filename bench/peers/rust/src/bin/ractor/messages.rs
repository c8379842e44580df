//! Workloads of existing actors that send messages.

use super::*;

pub mod count {
    use super::*;

    enum Count {
        Increment,
        Get(ActorRef<Produce>),
    }

    struct Counter(u64);

    impl State for Counter {
        type Msg = Count;

        fn handle(&mut self, _: &ActorRef<Count>, message: Count) {
            match message {
                Count::Increment => self.0 += 1,
                Count::Get(producer) => tell(&producer, Produce::Counted(self.0)),
            }
        }
    }

    enum Produce {
        Slice,
        Counted(u64),
    }

    struct Producer {
        counter: ActorRef<Count>,
        left: u64,
        finish: Finish,
    }

    impl State for Producer {
        type Msg = Produce;

        fn handle(&mut self, myself: &ActorRef<Produce>, message: Produce) {
            if let Produce::Counted(count) = message {
                return self.finish.reached(count);
            }
            let slice = self.left.min(SLICE);
            for _ in 0..slice {
                tell(&self.counter, Count::Increment);
            }
            self.left -= slice;
            if self.left > 0 {
                tell(myself, Produce::Slice);
            } else {
                tell(&self.counter, Count::Get(myself.clone()));
            }
        }
    }

    pub fn run(size: Size) -> Played {
        let increments = playhouse_peers::count(size);
        let (finish, finished) = finish();
        let producer = spawn(Producer { counter: spawn(Counter(0)), left: increments, finish });
        finished.time(increments, increments, || tell(&producer, Produce::Slice))
    }
}

pub mod pingpong {
    use super::*;

    enum Play {
        Meet(ActorRef<Play>),
        Ping,
    }

    struct Player {
        other: Option<ActorRef<Play>>,
        received: u64,
        rounds: u64,
        finish: Option<Finish>,
    }

    impl State for Player {
        type Msg = Play;

        fn handle(&mut self, _: &ActorRef<Play>, message: Play) {
            if let Play::Meet(other) = message {
                self.other = Some(other);
                return;
            }
            self.received += 1;
            match (&self.finish, &self.other) {
                (Some(finish), _) if self.received > self.rounds => finish.reached(self.received - 1),
                (_, Some(other)) => tell(other, Play::Ping),
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
        tell(&pinger, Play::Meet(ponger));
        finished.time(2 * rounds, rounds, || tell(&pinger, Play::Ping))
    }
}

pub mod executor {
    use super::*;

    enum Flood {
        Meet(Arc<[ActorRef<Flood>]>),
        Begin,
        Token,
    }

    struct Member {
        group: Arc<[ActorRef<Flood>]>,
        next: usize,
        sends_left: u64,
        /// Messages still to come: one per send of this actor's share, and the start message.
        recs_left: u64,
        judge: ActorRef<Done>,
    }

    impl State for Member {
        type Msg = Flood;

        fn handle(&mut self, _: &ActorRef<Flood>, message: Flood) {
            match message {
                Flood::Meet(group) => self.group = group,
                Flood::Begin => self.group.iter().for_each(|member| tell(member, Flood::Token)),
                Flood::Token => {
                    if self.sends_left > 0 {
                        self.sends_left -= 1;
                        tell(&self.group[self.next], Flood::Token);
                        self.next = (self.next + 1) % self.group.len();
                    }
                    self.recs_left -= 1;
                    if self.recs_left == 0 {
                        tell(&self.judge, Done(self.sends_left));
                    }
                }
            }
        }
    }

    pub fn run(size: Size) -> Played {
        let (groups, sends) = playhouse_peers::executor(size);
        let (finish, finished) = finish();
        let judge = spawn(Judge(Tally::new(groups * GROUP, finish)));
        let nobody: Arc<[ActorRef<Flood>]> = Arc::new([]);
        let member = |_| {
            let (group, judge) = (Arc::clone(&nobody), judge.clone());
            spawn(Member { group, next: 0, sends_left: sends, recs_left: sends + 1, judge })
        };
        let mut firsts = Vec::new();
        for _ in 0..groups {
            let group: Arc<[_]> = (0..GROUP).map(member).collect();
            for member in group.iter() {
                tell(member, Flood::Meet(Arc::clone(&group)));
            }
            firsts.push(group[0].clone());
        }
        finished.time(groups * GROUP * sends, 0, || {
            for first in &firsts {
                tell(first, Flood::Begin);
            }
        })
    }
}

pub mod repeat {
    use super::*;

    struct Request;

    enum Gather {
        Meet(Vec<ActorRef<Request>>),
        Slice,
        Reply(u64),
    }

    struct Server {
        client: ActorRef<Gather>,
        requests: u64,
    }

    impl State for Server {
        type Msg = Request;

        fn handle(&mut self, _: &ActorRef<Request>, _: Request) {
            self.requests += 1;
            tell(&self.client, Gather::Reply(self.requests));
        }
    }

    struct Client {
        servers: Vec<ActorRef<Request>>,
        sent: usize,
        replies: usize,
        rounds_left: u64,
        sum: u64,
        finish: Finish,
    }

    impl State for Client {
        type Msg = Gather;

        fn handle(&mut self, myself: &ActorRef<Gather>, message: Gather) {
            match message {
                Gather::Meet(servers) => self.servers = servers,
                Gather::Slice => {
                    let until = (self.sent + SLICE as usize).min(self.servers.len());
                    for server in &self.servers[self.sent..until] {
                        tell(server, Request);
                    }
                    self.sent = until;
                    if until < self.servers.len() {
                        tell(myself, Gather::Slice);
                    }
                }
                Gather::Reply(requests) => {
                    self.sum += requests;
                    self.replies += 1;
                    if self.replies < self.servers.len() {
                        return;
                    }
                    (self.sent, self.replies) = (0, 0);
                    self.rounds_left -= 1;
                    if self.rounds_left > 0 { tell(myself, Gather::Slice) } else { self.finish.reached(self.sum) }
                }
            }
        }
    }

    pub fn run(size: Size) -> Played {
        let (servers, rounds) = playhouse_peers::repeat(size);
        let (finish, finished) = finish();
        let client = spawn(Client { servers: Vec::new(), sent: 0, replies: 0, rounds_left: rounds, sum: 0, finish });
        let server = |_| spawn(Server { client: client.clone(), requests: 0 });
        tell(&client, Gather::Meet((0..servers).map(server).collect()));
        finished.time(2 * servers * rounds, requests_sum(servers, rounds), || tell(&client, Gather::Slice))
    }
}
