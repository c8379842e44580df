//! The workloads on actix: an actor lives on the arbiter, a thread with its own event loop, on which it was started.
//!
//! Who talks to each other is on one arbiter, and what is independent is dealt to all of them. Messages go by `do_send`, which is
//! not bounded; a long list is sent in slices, or the receiver on the same arbiter would not run.

use std::process::ExitCode;
use std::sync::Arc;

use actix::prelude::*;
use playhouse_peers::*;

fn main() -> ExitCode {
    run("actix", env!("ACTIX_VERSION"), |workload, size, workers| {
        // Arbiters belong to a system, which here only holds them together.
        let _system = System::new();
        let stage = Stage((0..workers).map(|_| Arbiter::new().handle()).collect());
        Some(match workload {
            "count" => count::run(&stage, size),
            "pingpong" => pingpong::run(&stage, size),
            "threadring" => rings::run(&stage, Rings::one(size)),
            "ringmulti" => rings::run(&stage, Rings::many(size)),
            "fjcreate" => fjcreate::run(&stage, size),
            "skynet" => skynet::run(&stage, size),
            "chameneos" => chameneos::run(&stage, size),
            "big" => big::run(&stage, size),
            "fib" => fib::run(&stage, size),
            "executor" => executor::run(&stage, size),
            "repeat" => repeat::run(&stage, size),
            _ => return None,
        })
    })
}

/// The arbiters.
#[derive(Clone)]
struct Stage(Arc<[ArbiterHandle]>);

impl Stage {
    /// Starts an actor on one of them, dealt by `number`.
    fn start<A: Actor<Context = Context<A>> + Send>(&self, number: u64, actor: A) -> Addr<A> {
        A::start_in_arbiter(&self.0[number as usize % self.0.len()], |_| actor)
    }
}

/// Has one or more actors begin, or one go on.
#[derive(Message)]
#[rtype(result = "()")]
struct Begin;

mod count {
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

mod pingpong {
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

mod rings {
    use super::*;

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Token(u64);

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Close(Addr<Member>);

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Arrived(u64);

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
                _ => self.judge.do_send(Arrived(self.position)),
            }
        }
    }

    struct Judge {
        missing: u64,
        sum: u64,
        finish: Finish,
    }

    impl Actor for Judge {
        type Context = Context<Self>;
    }

    impl Handler<Arrived> for Judge {
        type Result = ();

        fn handle(&mut self, Arrived(position): Arrived, _: &mut Context<Self>) {
            self.sum += position;
            self.missing -= 1;
            if self.missing == 0 {
                self.finish.reached(self.sum);
            }
        }
    }

    pub fn run(stage: &Stage, plan: Rings) -> Played {
        let (finish, finished) = finish();
        let judge = stage.start(0, Judge { missing: plan.rings, sum: 0, finish });
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
}

mod fjcreate {
    use super::*;

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Work(u64);

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Done(u64);

    struct Child(Addr<Master>);

    impl Actor for Child {
        type Context = Context<Self>;
    }

    impl Handler<Work> for Child {
        type Result = ();

        fn handle(&mut self, Work(number): Work, ctx: &mut Context<Self>) {
            self.0.do_send(Done(work(number)));
            ctx.stop();
        }
    }

    struct Master {
        stage: Stage,
        actors: u64,
        children: Vec<Addr<Child>>,
        employed: u64,
        done: u64,
        sum: u64,
        finish: Finish,
    }

    impl Actor for Master {
        type Context = Context<Self>;
    }

    impl Handler<Begin> for Master {
        type Result = ();

        fn handle(&mut self, _: Begin, ctx: &mut Context<Self>) {
            let created = self.children.len() as u64;
            if created < self.actors {
                for number in created..(created + SLICE).min(self.actors) {
                    self.children.push(self.stage.start(number / SLICE, Child(ctx.address())));
                }
                return ctx.notify(Begin);
            }
            let until = (self.employed + SLICE).min(self.actors);
            for number in self.employed..until {
                self.children[number as usize].do_send(Work(number));
            }
            self.employed = until;
            if until < self.actors {
                ctx.notify(Begin);
            }
        }
    }

    impl Handler<Done> for Master {
        type Result = ();

        fn handle(&mut self, Done(result): Done, _: &mut Context<Self>) {
            self.sum += result;
            self.done += 1;
            if self.done == self.actors {
                self.finish.reached(self.sum);
            }
        }
    }

    pub fn run(stage: &Stage, size: Size) -> Played {
        let actors = playhouse_peers::fjcreate(size);
        let (finish, finished) = finish();
        let children = Vec::with_capacity(actors as usize);
        let master = Master { stage: stage.clone(), actors, children, employed: 0, done: 0, sum: 0, finish };
        let master = stage.start(0, master);
        finished.time(actors, work_sum(actors), || master.do_send(Begin))
    }
}

mod skynet {
    use super::*;

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Sum(u64);

    enum Above {
        Parent(Addr<Node>),
        Finish(Finish, Stage),
    }

    struct Node {
        above: Above,
        number: u64,
        leaves: u64,
        missing: u64,
        sum: u64,
    }

    impl Node {
        fn new(above: Above, number: u64, leaves: u64) -> Self {
            Self { above, number, leaves, missing: DEGREE, sum: 0 }
        }

        fn end(&self, sum: u64, ctx: &mut Context<Self>) {
            match &self.above {
                Above::Parent(parent) => parent.do_send(Sum(sum)),
                Above::Finish(finish, _) => finish.reached(sum),
            }
            ctx.stop();
        }
    }

    impl Actor for Node {
        type Context = Context<Self>;

        fn started(&mut self, ctx: &mut Context<Self>) {
            if self.leaves == 1 {
                return self.end(self.number, ctx);
            }
            let leaves = self.leaves / DEGREE;
            for child in 0..DEGREE {
                let node = Node::new(Above::Parent(ctx.address()), self.number + child * leaves, leaves);
                // The first level is dealt to the arbiters; what is below stays there.
                match &self.above {
                    Above::Finish(_, stage) => stage.start(child, node),
                    Above::Parent(_) => node.start(),
                };
            }
        }
    }

    impl Handler<Sum> for Node {
        type Result = ();

        fn handle(&mut self, Sum(sum): Sum, ctx: &mut Context<Self>) {
            self.sum += sum;
            self.missing -= 1;
            if self.missing == 0 {
                self.end(self.sum, ctx);
            }
        }
    }

    pub fn run(stage: &Stage, size: Size) -> Played {
        let leaves = playhouse_peers::skynet(size);
        let (finish, finished) = finish();
        let root = Node::new(Above::Finish(finish, stage.clone()), 0, leaves);
        finished.time(skynet_actors(leaves), leaves * (leaves - 1) / 2, || {
            stage.start(0, root);
        })
    }
}

mod chameneos {
    use super::*;

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Enter {
        who: Addr<Creature>,
        colour: Colour,
    }

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Left(u64);

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Meet(Colour);

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Closed;

    struct Mall {
        left: u64,
        waiting: Option<Enter>,
        creatures: u64,
        met: u64,
        finish: Finish,
    }

    impl Actor for Mall {
        type Context = Context<Self>;
    }

    impl Handler<Enter> for Mall {
        type Result = ();

        fn handle(&mut self, second: Enter, _: &mut Context<Self>) {
            if self.left == 0 {
                second.who.do_send(Closed);
            } else if let Some(first) = self.waiting.take() {
                first.who.do_send(Meet(second.colour));
                second.who.do_send(Meet(first.colour));
                self.left -= 1;
            } else {
                self.waiting = Some(second);
            }
        }
    }

    impl Handler<Left> for Mall {
        type Result = ();

        fn handle(&mut self, Left(meetings): Left, _: &mut Context<Self>) {
            self.met += meetings;
            self.creatures -= 1;
            if self.creatures == 0 {
                self.finish.reached(self.met);
            }
        }
    }

    struct Creature {
        mall: Addr<Mall>,
        colour: Colour,
        meetings: u64,
    }

    impl Creature {
        fn enter(&self, ctx: &Context<Self>) {
            self.mall.do_send(Enter { who: ctx.address(), colour: self.colour });
        }
    }

    impl Actor for Creature {
        type Context = Context<Self>;
    }

    impl Handler<Begin> for Creature {
        type Result = ();

        fn handle(&mut self, _: Begin, ctx: &mut Context<Self>) {
            self.enter(ctx);
        }
    }

    impl Handler<Meet> for Creature {
        type Result = ();

        fn handle(&mut self, Meet(other): Meet, ctx: &mut Context<Self>) {
            self.colour = self.colour.complement(other);
            self.meetings += 1;
            self.enter(ctx);
        }
    }

    impl Handler<Closed> for Creature {
        type Result = ();

        fn handle(&mut self, _: Closed, _: &mut Context<Self>) {
            self.mall.do_send(Left(self.meetings));
        }
    }

    pub fn run(stage: &Stage, size: Size) -> Played {
        let meetings = playhouse_peers::chameneos(size);
        let (finish, finished) = finish();
        let mall = stage.start(0, Mall { left: meetings, waiting: None, creatures: CREATURES, met: 0, finish });
        let creature = |number| Creature { mall: mall.clone(), colour: Colour::of(number), meetings: 0 };
        let creatures: Vec<_> = (0..CREATURES).map(|number| stage.start(0, creature(number))).collect();
        finished.time(meetings, 2 * meetings, || {
            for creature in &creatures {
                creature.do_send(Begin);
            }
        })
    }
}

mod big {
    use super::*;

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Meet(Arc<[Addr<Member>]>);

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Ping(Addr<Member>);

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Pong;

    /// Asks for the pings received.
    #[derive(Message)]
    #[rtype(result = "()")]
    struct Report;

    /// A member has all its pongs (`None`), or has received so many pings.
    #[derive(Message)]
    #[rtype(result = "()")]
    struct Done(Option<u64>);

    struct Member {
        members: Arc<[Addr<Member>]>,
        number: u32,
        dice: Dice,
        left: u64,
        pinged: u64,
        judge: Addr<Judge>,
    }

    impl Member {
        fn ping(&mut self, ctx: &Context<Self>) {
            self.members[self.dice.other(self.number)].do_send(Ping(ctx.address()));
        }
    }

    impl Actor for Member {
        type Context = Context<Self>;
    }

    impl Handler<Meet> for Member {
        type Result = ();

        fn handle(&mut self, Meet(members): Meet, _: &mut Context<Self>) {
            self.members = members;
        }
    }

    impl Handler<Begin> for Member {
        type Result = ();

        fn handle(&mut self, _: Begin, ctx: &mut Context<Self>) {
            self.ping(ctx);
        }
    }

    impl Handler<Ping> for Member {
        type Result = ();

        fn handle(&mut self, Ping(from): Ping, _: &mut Context<Self>) {
            self.pinged += 1;
            from.do_send(Pong);
        }
    }

    impl Handler<Pong> for Member {
        type Result = ();

        fn handle(&mut self, _: Pong, ctx: &mut Context<Self>) {
            self.left -= 1;
            if self.left > 0 { self.ping(ctx) } else { self.judge.do_send(Done(None)) }
        }
    }

    impl Handler<Report> for Member {
        type Result = ();

        fn handle(&mut self, _: Report, _: &mut Context<Self>) {
            self.judge.do_send(Done(Some(self.pinged)));
        }
    }

    struct Judge {
        missing: u32,
        reports: u32,
        pinged: u64,
        finish: Finish,
        pinged_finish: Finish,
    }

    impl Actor for Judge {
        type Context = Context<Self>;
    }

    impl Handler<Done> for Judge {
        type Result = ();

        fn handle(&mut self, Done(pinged): Done, _: &mut Context<Self>) {
            match pinged {
                None => {
                    self.missing -= 1;
                    if self.missing == 0 {
                        self.finish.reached(0);
                    }
                }
                Some(pinged) => {
                    self.pinged += pinged;
                    self.reports += 1;
                    if self.reports == MEMBERS {
                        self.pinged_finish.reached(self.pinged);
                    }
                }
            }
        }
    }

    pub fn run(stage: &Stage, size: Size) -> Played {
        let pings = playhouse_peers::big(size);
        let pings_total = u64::from(MEMBERS) * pings;
        let (finish, finished) = finish();
        let (pinged_finish, pinged_finished) = playhouse_peers::finish();
        let judge = stage.start(0, Judge { missing: MEMBERS, reports: 0, pinged: 0, finish, pinged_finish });
        let nobody: Arc<[Addr<Member>]> = Arc::new([]);
        let member = |number| {
            let (members, judge) = (Arc::clone(&nobody), judge.clone());
            Member { members, number, dice: Dice::of(number), left: pings, pinged: 0, judge }
        };
        let members: Arc<[_]> = (0..MEMBERS).map(|number| stage.start(0, member(number))).collect();
        for member in members.iter() {
            member.do_send(Meet(Arc::clone(&members)));
        }
        let played = finished.time(2 * pings_total, 0, || {
            for member in members.iter() {
                member.do_send(Begin);
            }
        })?;
        pinged_finished.time(0, pings_total, || {
            for member in members.iter() {
                member.do_send(Report);
            }
        })?;
        Ok(played)
    }
}

mod fib {
    use super::*;

    /// From here on a call stays on the arbiter of its caller.
    const DEALT: u64 = 20;

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Value(u64);

    enum Above {
        Parent(Addr<Fib>),
        Finish(Finish),
    }

    struct Fib {
        above: Above,
        stage: Stage,
        n: u64,
        missing: u64,
        value: u64,
    }

    impl Fib {
        fn end(&self, value: u64, ctx: &mut Context<Self>) {
            match &self.above {
                Above::Parent(parent) => parent.do_send(Value(value)),
                Above::Finish(finish) => finish.reached(value),
            }
            ctx.stop();
        }
    }

    impl Actor for Fib {
        type Context = Context<Self>;

        fn started(&mut self, ctx: &mut Context<Self>) {
            if self.n < 2 {
                return self.end(self.n, ctx);
            }
            for n in [self.n - 1, self.n - 2] {
                let above = Above::Parent(ctx.address());
                let child = Fib { above, stage: self.stage.clone(), n, missing: 2, value: 0 };
                if n >= DEALT {
                    self.stage.start(n, child);
                } else {
                    child.start();
                }
            }
        }
    }

    impl Handler<Value> for Fib {
        type Result = ();

        fn handle(&mut self, Value(value): Value, ctx: &mut Context<Self>) {
            self.value += value;
            self.missing -= 1;
            if self.missing == 0 {
                self.end(self.value, ctx);
            }
        }
    }

    pub fn run(stage: &Stage, size: Size) -> Played {
        let n = playhouse_peers::fib(size);
        let (value, actors) = fib_and_actors(n);
        let (finish, finished) = finish();
        let root = Fib { above: Above::Finish(finish), stage: stage.clone(), n, missing: 2, value: 0 };
        finished.time(actors, value, || {
            stage.start(0, root);
        })
    }
}

mod executor {
    use super::*;

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Meet(Arc<[Addr<Member>]>);

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Token;

    #[derive(Message)]
    #[rtype(result = "()")]
    struct Done(u64);

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

    struct Judge {
        missing: u64,
        sends_left: u64,
        finish: Finish,
    }

    impl Actor for Judge {
        type Context = Context<Self>;
    }

    impl Handler<Done> for Judge {
        type Result = ();

        fn handle(&mut self, Done(sends_left): Done, _: &mut Context<Self>) {
            self.sends_left += sends_left;
            self.missing -= 1;
            if self.missing == 0 {
                self.finish.reached(self.sends_left);
            }
        }
    }

    pub fn run(stage: &Stage, size: Size) -> Played {
        let (groups, sends) = playhouse_peers::executor(size);
        let (finish, finished) = finish();
        let judge = stage.start(0, Judge { missing: groups * GROUP, sends_left: 0, finish });
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

mod repeat {
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
