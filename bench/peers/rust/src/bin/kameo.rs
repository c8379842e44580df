//! The workloads on kameo, over tokio's threads.
//!
//! Mailboxes are not bounded: with the default ones, of 64 messages, actors that send to each other in a circle stand still. So a
//! message is told without waiting for room in the mailbox.

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;

use kameo::mailbox;
use kameo::prelude::*;
use playhouse_peers::*;

fn main() -> ExitCode {
    run("kameo", env!("KAMEO_VERSION"), |workload, size, workers| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).build().expect("it starts");
        let _entered = runtime.enter();
        Some(match workload {
            "count" => count::run(size),
            "pingpong" => pingpong::run(size),
            "threadring" => rings::run(Rings::one(size)),
            "ringmulti" => rings::run(Rings::many(size)),
            "fjcreate" => fjcreate::run(size),
            "skynet" => skynet::run(size),
            "chameneos" => chameneos::run(size),
            "big" => big::run(size),
            "fib" => fib::run(size),
            "executor" => executor::run(size),
            "repeat" => repeat::run(size),
            _ => return None,
        })
    })
}

fn spawn<A: Actor<Args = A>>(actor: A) -> ActorRef<A> {
    A::spawn_with_mailbox(actor, mailbox::unbounded())
}

fn tell<A: Message<M>, M: Send + 'static>(actor: &ActorRef<A>, message: M) {
    actor.tell(message).try_send().unwrap_or_else(|error| panic!("it has stopped: {error}"));
}

/// Has one or more actors begin, or one go on.
struct Begin;

mod count {
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

mod pingpong {
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

mod rings {
    use super::*;

    struct Token(u64);

    struct Close(ActorRef<Member>);

    struct Arrived(u64);

    #[derive(Actor)]
    struct Member {
        next: Option<ActorRef<Member>>,
        position: u64,
        judge: ActorRef<Judge>,
    }

    impl Message<Close> for Member {
        type Reply = ();

        async fn handle(&mut self, Close(first): Close, _: &mut Context<Self, Self::Reply>) {
            self.next = Some(first);
        }
    }

    impl Message<Token> for Member {
        type Reply = ();

        async fn handle(&mut self, Token(left): Token, _: &mut Context<Self, Self::Reply>) {
            match &self.next {
                Some(next) if left > 0 => tell(&next, Token(left - 1)),
                _ => tell(&self.judge, Arrived(self.position)),
            }
        }
    }

    #[derive(Actor)]
    struct Judge {
        missing: u64,
        sum: u64,
        finish: Finish,
    }

    impl Message<Arrived> for Judge {
        type Reply = ();

        async fn handle(&mut self, Arrived(position): Arrived, _: &mut Context<Self, Self::Reply>) {
            self.sum += position;
            self.missing -= 1;
            if self.missing == 0 {
                self.finish.reached(self.sum);
            }
        }
    }

    pub fn run(plan: Rings) -> Played {
        let (finish, finished) = finish();
        let judge = spawn(Judge { missing: plan.rings, sum: 0, finish });
        let firsts: Vec<_> = (0..plan.rings)
            .map(|_| {
                let member = |next, position| spawn(Member { next, position, judge: judge.clone() });
                let last = member(None, plan.members - 1);
                let first = (0..plan.members - 1).rev().fold(last.clone(), |next, at| member(Some(next), at));
                tell(&last, Close(first.clone()));
                first
            })
            .collect();
        finished.time(plan.ops(), plan.positions_sum(), || {
            for first in &firsts {
                tell(&first, Token(plan.hops));
            }
        })
    }
}

mod fjcreate {
    use super::*;

    struct Work(u64);

    struct Done(u64);

    #[derive(Actor)]
    struct Child(ActorRef<Master>);

    impl Message<Work> for Child {
        type Reply = ();

        async fn handle(&mut self, Work(number): Work, ctx: &mut Context<Self, Self::Reply>) {
            tell(&self.0, Done(work(number)));
            ctx.stop();
        }
    }

    #[derive(Actor)]
    struct Master {
        actors: u64,
        children: Vec<ActorRef<Child>>,
        employed: u64,
        done: u64,
        sum: u64,
        finish: Finish,
    }

    impl Message<Begin> for Master {
        type Reply = ();

        async fn handle(&mut self, _: Begin, ctx: &mut Context<Self, Self::Reply>) {
            let created = self.children.len() as u64;
            if created < self.actors {
                let slice = created..(created + SLICE).min(self.actors);
                self.children.extend(slice.map(|_| spawn(Child(ctx.actor_ref().clone()))));
                return tell(ctx.actor_ref(), Begin);
            }
            let until = (self.employed + SLICE).min(self.actors);
            for number in self.employed..until {
                tell(&self.children[number as usize], Work(number));
            }
            self.employed = until;
            if until < self.actors {
                tell(ctx.actor_ref(), Begin);
            }
        }
    }

    impl Message<Done> for Master {
        type Reply = ();

        async fn handle(&mut self, Done(result): Done, _: &mut Context<Self, Self::Reply>) {
            self.sum += result;
            self.done += 1;
            if self.done == self.actors {
                self.finish.reached(self.sum);
            }
        }
    }

    pub fn run(size: Size) -> Played {
        let actors = playhouse_peers::fjcreate(size);
        let (finish, finished) = finish();
        let children = Vec::with_capacity(actors as usize);
        let master = Master { actors, children, employed: 0, done: 0, sum: 0, finish };
        let master = spawn(master);
        finished.time(actors, work_sum(actors), || tell(&master, Begin))
    }
}

/// Whom a node of a tree tells its result.
enum Above<A: Actor> {
    Parent(ActorRef<A>),
    Finish(Finish),
}

impl<A: Actor> Above<A> {
    fn tell<M: Send + 'static>(&self, result: u64, message: fn(u64) -> M)
    where
        A: Message<M>,
    {
        match self {
            Self::Parent(parent) => tell(parent, message(result)),
            Self::Finish(finish) => finish.reached(result),
        }
    }
}

mod skynet {
    use super::*;

    struct Sum(u64);

    struct Node {
        above: Above<Node>,
        number: u64,
        leaves: u64,
        missing: u64,
        sum: u64,
    }

    impl Actor for Node {
        type Args = Self;
        type Error = Infallible;

        async fn on_start(node: Self, actor: ActorRef<Self>) -> Result<Self, Infallible> {
            if node.leaves == 1 {
                node.above.tell(node.number, Sum);
                // It can only fail where the actor has ended already.
                let _ = actor.stop_gracefully().await;
                return Ok(node);
            }
            let leaves = node.leaves / DEGREE;
            for child in 0..DEGREE {
                let (above, number) = (Above::Parent(actor.clone()), node.number + child * leaves);
                spawn(Node { above, number, leaves, missing: DEGREE, sum: 0 });
            }
            Ok(node)
        }
    }

    impl Message<Sum> for Node {
        type Reply = ();

        async fn handle(&mut self, Sum(sum): Sum, ctx: &mut Context<Self, Self::Reply>) {
            self.sum += sum;
            self.missing -= 1;
            if self.missing == 0 {
                self.above.tell(self.sum, Sum);
                ctx.stop();
            }
        }
    }

    pub fn run(size: Size) -> Played {
        let leaves = playhouse_peers::skynet(size);
        let (finish, finished) = finish();
        let root = Node { above: Above::Finish(finish), number: 0, leaves, missing: DEGREE, sum: 0 };
        finished.time(skynet_actors(leaves), leaves * (leaves - 1) / 2, || {
            spawn(root);
        })
    }
}

mod chameneos {
    use super::*;

    struct Enter {
        who: ActorRef<Creature>,
        colour: Colour,
    }

    struct Left(u64);

    struct Meet(Colour);

    struct Closed;

    #[derive(Actor)]
    struct Mall {
        left: u64,
        waiting: Option<Enter>,
        creatures: u64,
        met: u64,
        finish: Finish,
    }

    impl Message<Enter> for Mall {
        type Reply = ();

        async fn handle(&mut self, second: Enter, _: &mut Context<Self, Self::Reply>) {
            if self.left == 0 {
                tell(&second.who, Closed);
            } else if let Some(first) = self.waiting.take() {
                tell(&first.who, Meet(second.colour));
                tell(&second.who, Meet(first.colour));
                self.left -= 1;
            } else {
                self.waiting = Some(second);
            }
        }
    }

    impl Message<Left> for Mall {
        type Reply = ();

        async fn handle(&mut self, Left(meetings): Left, _: &mut Context<Self, Self::Reply>) {
            self.met += meetings;
            self.creatures -= 1;
            if self.creatures == 0 {
                self.finish.reached(self.met);
            }
        }
    }

    #[derive(Actor)]
    struct Creature {
        mall: ActorRef<Mall>,
        colour: Colour,
        meetings: u64,
    }

    impl Creature {
        fn enter(&self, ctx: &Context<Self, ()>) {
            tell(&self.mall, Enter { who: ctx.actor_ref().clone(), colour: self.colour });
        }
    }

    impl Message<Begin> for Creature {
        type Reply = ();

        async fn handle(&mut self, _: Begin, ctx: &mut Context<Self, Self::Reply>) {
            self.enter(ctx);
        }
    }

    impl Message<Meet> for Creature {
        type Reply = ();

        async fn handle(&mut self, Meet(other): Meet, ctx: &mut Context<Self, Self::Reply>) {
            self.colour = self.colour.complement(other);
            self.meetings += 1;
            self.enter(ctx);
        }
    }

    impl Message<Closed> for Creature {
        type Reply = ();

        async fn handle(&mut self, _: Closed, _: &mut Context<Self, Self::Reply>) {
            tell(&self.mall, Left(self.meetings));
        }
    }

    pub fn run(size: Size) -> Played {
        let meetings = playhouse_peers::chameneos(size);
        let (finish, finished) = finish();
        let mall = spawn(Mall { left: meetings, waiting: None, creatures: CREATURES, met: 0, finish });
        let creature = |number| Creature { mall: mall.clone(), colour: Colour::of(number), meetings: 0 };
        let creatures: Vec<_> = (0..CREATURES).map(|number| spawn(creature(number))).collect();
        finished.time(meetings, 2 * meetings, || {
            for creature in &creatures {
                tell(&creature, Begin);
            }
        })
    }
}

mod big {
    use super::*;

    struct Meet(Arc<[ActorRef<Member>]>);

    struct Ping(ActorRef<Member>);

    struct Pong;

    /// Asks for the pings received.
    struct Report;

    /// A member has all its pongs (`None`), or has received so many pings.
    struct Done(Option<u64>);

    #[derive(Actor)]
    struct Member {
        members: Arc<[ActorRef<Member>]>,
        number: u32,
        dice: Dice,
        left: u64,
        pinged: u64,
        judge: ActorRef<Judge>,
    }

    impl Member {
        fn ping(&mut self, ctx: &Context<Self, ()>) {
            tell(&self.members[self.dice.other(self.number)], Ping(ctx.actor_ref().clone()));
        }
    }

    impl Message<Meet> for Member {
        type Reply = ();

        async fn handle(&mut self, Meet(members): Meet, _: &mut Context<Self, Self::Reply>) {
            self.members = members;
        }
    }

    impl Message<Begin> for Member {
        type Reply = ();

        async fn handle(&mut self, _: Begin, ctx: &mut Context<Self, Self::Reply>) {
            self.ping(ctx);
        }
    }

    impl Message<Ping> for Member {
        type Reply = ();

        async fn handle(&mut self, Ping(from): Ping, _: &mut Context<Self, Self::Reply>) {
            self.pinged += 1;
            tell(&from, Pong);
        }
    }

    impl Message<Pong> for Member {
        type Reply = ();

        async fn handle(&mut self, _: Pong, ctx: &mut Context<Self, Self::Reply>) {
            self.left -= 1;
            if self.left > 0 { self.ping(ctx) } else { tell(&self.judge, Done(None)) }
        }
    }

    impl Message<Report> for Member {
        type Reply = ();

        async fn handle(&mut self, _: Report, _: &mut Context<Self, Self::Reply>) {
            tell(&self.judge, Done(Some(self.pinged)));
        }
    }

    #[derive(Actor)]
    struct Judge {
        missing: u32,
        reports: u32,
        pinged: u64,
        finish: Finish,
        pinged_finish: Finish,
    }

    impl Message<Done> for Judge {
        type Reply = ();

        async fn handle(&mut self, Done(pinged): Done, _: &mut Context<Self, Self::Reply>) {
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

    pub fn run(size: Size) -> Played {
        let pings = playhouse_peers::big(size);
        let pings_total = u64::from(MEMBERS) * pings;
        let (finish, finished) = finish();
        let (pinged_finish, pinged_finished) = playhouse_peers::finish();
        let judge = spawn(Judge { missing: MEMBERS, reports: 0, pinged: 0, finish, pinged_finish });
        let nobody: Arc<[ActorRef<Member>]> = Arc::new([]);
        let member = |number| {
            let (members, judge) = (Arc::clone(&nobody), judge.clone());
            Member { members, number, dice: Dice::of(number), left: pings, pinged: 0, judge }
        };
        let members: Arc<[_]> = (0..MEMBERS).map(|number| spawn(member(number))).collect();
        for member in members.iter() {
            tell(&member, Meet(Arc::clone(&members)));
        }
        let played = finished.time(2 * pings_total, 0, || {
            for member in members.iter() {
                tell(&member, Begin);
            }
        })?;
        pinged_finished.time(0, pings_total, || {
            for member in members.iter() {
                tell(&member, Report);
            }
        })?;
        Ok(played)
    }
}

mod fib {
    use super::*;

    struct Value(u64);

    struct Fib {
        above: Above<Fib>,
        n: u64,
        missing: u64,
        value: u64,
    }

    impl Actor for Fib {
        type Args = Self;
        type Error = Infallible;

        async fn on_start(fib: Self, actor: ActorRef<Self>) -> Result<Self, Infallible> {
            if fib.n < 2 {
                fib.above.tell(fib.n, Value);
                // It can only fail where the actor has ended already.
                let _ = actor.stop_gracefully().await;
                return Ok(fib);
            }
            for n in [fib.n - 1, fib.n - 2] {
                spawn(Fib { above: Above::Parent(actor.clone()), n, missing: 2, value: 0 });
            }
            Ok(fib)
        }
    }

    impl Message<Value> for Fib {
        type Reply = ();

        async fn handle(&mut self, Value(value): Value, ctx: &mut Context<Self, Self::Reply>) {
            self.value += value;
            self.missing -= 1;
            if self.missing == 0 {
                self.above.tell(self.value, Value);
                ctx.stop();
            }
        }
    }

    pub fn run(size: Size) -> Played {
        let n = playhouse_peers::fib(size);
        let (value, actors) = fib_and_actors(n);
        let (finish, finished) = finish();
        let root = Fib { above: Above::Finish(finish), n, missing: 2, value: 0 };
        finished.time(actors, value, || {
            spawn(root);
        })
    }
}

mod executor {
    use super::*;

    struct Meet(Arc<[ActorRef<Member>]>);

    struct Token;

    struct Done(u64);

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

    #[derive(Actor)]
    struct Judge {
        missing: u64,
        sends_left: u64,
        finish: Finish,
    }

    impl Message<Done> for Judge {
        type Reply = ();

        async fn handle(&mut self, Done(sends_left): Done, _: &mut Context<Self, Self::Reply>) {
            self.sends_left += sends_left;
            self.missing -= 1;
            if self.missing == 0 {
                self.finish.reached(self.sends_left);
            }
        }
    }

    pub fn run(size: Size) -> Played {
        let (groups, sends) = playhouse_peers::executor(size);
        let (finish, finished) = finish();
        let judge = spawn(Judge { missing: groups * GROUP, sends_left: 0, finish });
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

mod repeat {
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
