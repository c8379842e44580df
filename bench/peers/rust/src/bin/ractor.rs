//! The workloads on ractor, over tokio's threads.
//!
//! Actors are started by `spawn_instant`, which does not wait until they run, and messages go by `cast`: mailboxes are not bounded.
//! Actors are not linked: a link is a lock and an entry in a table, and nobody looks after anybody here.

use std::marker::PhantomData;
use std::process::ExitCode;
use std::sync::Arc;

use playhouse_peers::*;
use ractor::{Actor, ActorProcessingErr, ActorRef, ActorRuntime, Message};

fn main() -> ExitCode {
    run("ractor", env!("RACTOR_VERSION"), |workload, size, workers| {
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

/// An actor whose state is what it is started with.
struct Stateful<S>(PhantomData<S>);

/// What such an actor does with a message.
trait State: Send + Sync + 'static {
    type Msg: Message;

    fn started(&mut self, _myself: &ActorRef<Self::Msg>) {}

    fn handle(&mut self, myself: &ActorRef<Self::Msg>, message: Self::Msg);
}

impl<S: State> Actor for Stateful<S> {
    type Msg = S::Msg;
    type State = S;
    type Arguments = S;

    async fn pre_start(&self, myself: ActorRef<S::Msg>, mut state: S) -> Result<S, ActorProcessingErr> {
        state.started(&myself);
        Ok(state)
    }

    async fn handle(&self, myself: ActorRef<S::Msg>, message: S::Msg, state: &mut S) -> Result<(), ActorProcessingErr> {
        state.handle(&myself, message);
        Ok(())
    }
}

fn spawn<S: State>(state: S) -> ActorRef<S::Msg> {
    ActorRuntime::spawn_instant(None, Stateful(PhantomData), state).expect("it has no name that could be taken").0
}

fn tell<M: Message>(actor: &ActorRef<M>, message: M) {
    actor.cast(message).expect("it has not stopped");
}

mod count {
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

mod pingpong {
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

mod rings {
    use super::*;

    enum Ring {
        Token(u64),
        Close(ActorRef<Ring>),
    }

    struct Member {
        next: Option<ActorRef<Ring>>,
        position: u64,
        judge: ActorRef<Arrived>,
    }

    impl State for Member {
        type Msg = Ring;

        fn handle(&mut self, _: &ActorRef<Ring>, message: Ring) {
            match (message, &self.next) {
                (Ring::Close(first), _) => self.next = Some(first),
                (Ring::Token(left), Some(next)) if left > 0 => tell(next, Ring::Token(left - 1)),
                (Ring::Token(_), _) => tell(&self.judge, Arrived(self.position)),
            }
        }
    }

    struct Arrived(u64);

    struct Judge {
        missing: u64,
        sum: u64,
        finish: Finish,
    }

    impl State for Judge {
        type Msg = Arrived;

        fn handle(&mut self, _: &ActorRef<Arrived>, Arrived(position): Arrived) {
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
}

mod fjcreate {
    use super::*;

    struct Work(u64);

    struct Child(ActorRef<Employ>);

    impl State for Child {
        type Msg = Work;

        fn handle(&mut self, myself: &ActorRef<Work>, Work(number): Work) {
            tell(&self.0, Employ::Done(work(number)));
            myself.stop(None);
        }
    }

    enum Employ {
        Slice,
        Done(u64),
    }

    struct Master {
        actors: u64,
        children: Vec<ActorRef<Work>>,
        employed: u64,
        done: u64,
        sum: u64,
        finish: Finish,
    }

    impl State for Master {
        type Msg = Employ;

        fn handle(&mut self, myself: &ActorRef<Employ>, message: Employ) {
            if let Employ::Done(result) = message {
                self.sum += result;
                self.done += 1;
                if self.done == self.actors {
                    self.finish.reached(self.sum);
                }
                return;
            }
            let created = self.children.len() as u64;
            if created < self.actors {
                let slice = created..(created + SLICE).min(self.actors);
                self.children.extend(slice.map(|_| spawn(Child(myself.clone()))));
                return tell(myself, Employ::Slice);
            }
            let until = (self.employed + SLICE).min(self.actors);
            for number in self.employed..until {
                tell(&self.children[number as usize], Work(number));
            }
            self.employed = until;
            if until < self.actors {
                tell(myself, Employ::Slice);
            }
        }
    }

    pub fn run(size: Size) -> Played {
        let actors = playhouse_peers::fjcreate(size);
        let (finish, finished) = finish();
        let children = Vec::with_capacity(actors as usize);
        let master = spawn(Master { actors, children, employed: 0, done: 0, sum: 0, finish });
        finished.time(actors, work_sum(actors), || tell(&master, Employ::Slice))
    }
}

/// Whom a node of a tree tells its result.
enum Above<M> {
    Parent(ActorRef<M>),
    Finish(Finish),
}

impl<M: Message> Above<M> {
    fn tell(&self, result: u64, message: fn(u64) -> M) {
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
        above: Above<Sum>,
        number: u64,
        leaves: u64,
        missing: u64,
        sum: u64,
    }

    impl State for Node {
        type Msg = Sum;

        fn started(&mut self, myself: &ActorRef<Sum>) {
            if self.leaves == 1 {
                self.above.tell(self.number, Sum);
                return myself.stop(None);
            }
            let leaves = self.leaves / DEGREE;
            for child in 0..DEGREE {
                let (above, number) = (Above::Parent(myself.clone()), self.number + child * leaves);
                spawn(Node { above, number, leaves, missing: DEGREE, sum: 0 });
            }
        }

        fn handle(&mut self, myself: &ActorRef<Sum>, Sum(sum): Sum) {
            self.sum += sum;
            self.missing -= 1;
            if self.missing == 0 {
                self.above.tell(self.sum, Sum);
                myself.stop(None);
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

    enum AtMall {
        Enter { who: ActorRef<Live>, colour: Colour },
        Left(u64),
    }

    enum Live {
        Begin,
        Meet(Colour),
        Closed,
    }

    struct Mall {
        left: u64,
        waiting: Option<(ActorRef<Live>, Colour)>,
        creatures: u64,
        met: u64,
        finish: Finish,
    }

    impl State for Mall {
        type Msg = AtMall;

        fn handle(&mut self, _: &ActorRef<AtMall>, message: AtMall) {
            match message {
                AtMall::Enter { who, .. } if self.left == 0 => tell(&who, Live::Closed),
                AtMall::Enter { who, colour } => match self.waiting.take() {
                    None => self.waiting = Some((who, colour)),
                    Some((first, first_colour)) => {
                        tell(&first, Live::Meet(colour));
                        tell(&who, Live::Meet(first_colour));
                        self.left -= 1;
                    }
                },
                AtMall::Left(meetings) => {
                    self.met += meetings;
                    self.creatures -= 1;
                    if self.creatures == 0 {
                        self.finish.reached(self.met);
                    }
                }
            }
        }
    }

    struct Creature {
        mall: ActorRef<AtMall>,
        colour: Colour,
        meetings: u64,
    }

    impl State for Creature {
        type Msg = Live;

        fn handle(&mut self, myself: &ActorRef<Live>, message: Live) {
            match message {
                Live::Begin => {}
                Live::Meet(other) => {
                    self.colour = self.colour.complement(other);
                    self.meetings += 1;
                }
                Live::Closed => return tell(&self.mall, AtMall::Left(self.meetings)),
            }
            tell(&self.mall, AtMall::Enter { who: myself.clone(), colour: self.colour });
        }
    }

    pub fn run(size: Size) -> Played {
        let meetings = playhouse_peers::chameneos(size);
        let (finish, finished) = finish();
        let mall = spawn(Mall { left: meetings, waiting: None, creatures: CREATURES, met: 0, finish });
        let creature = |number| spawn(Creature { mall: mall.clone(), colour: Colour::of(number), meetings: 0 });
        let creatures: Vec<_> = (0..CREATURES).map(creature).collect();
        finished.time(meetings, 2 * meetings, || {
            for creature in &creatures {
                tell(creature, Live::Begin);
            }
        })
    }
}

mod big {
    use super::*;

    enum Talk {
        Meet(Arc<[ActorRef<Talk>]>),
        Begin,
        Ping(ActorRef<Talk>),
        Pong,
        Report,
    }

    /// A member has all its pongs, or has received so many pings.
    enum Done {
        Pongs,
        Pinged(u64),
    }

    struct Member {
        members: Arc<[ActorRef<Talk>]>,
        number: u32,
        dice: Dice,
        left: u64,
        pinged: u64,
        judge: ActorRef<Done>,
    }

    impl Member {
        fn ping(&mut self, myself: &ActorRef<Talk>) {
            tell(&self.members[self.dice.other(self.number)], Talk::Ping(myself.clone()));
        }
    }

    impl State for Member {
        type Msg = Talk;

        fn handle(&mut self, myself: &ActorRef<Talk>, message: Talk) {
            match message {
                Talk::Meet(members) => self.members = members,
                Talk::Begin => self.ping(myself),
                Talk::Ping(from) => {
                    self.pinged += 1;
                    tell(&from, Talk::Pong);
                }
                Talk::Pong => {
                    self.left -= 1;
                    if self.left > 0 { self.ping(myself) } else { tell(&self.judge, Done::Pongs) }
                }
                Talk::Report => tell(&self.judge, Done::Pinged(self.pinged)),
            }
        }
    }

    struct Judge {
        missing: u32,
        reports_missing: u32,
        pinged: u64,
        finish: Finish,
        pinged_finish: Finish,
    }

    impl State for Judge {
        type Msg = Done;

        fn handle(&mut self, _: &ActorRef<Done>, message: Done) {
            match message {
                Done::Pongs => {
                    self.missing -= 1;
                    if self.missing == 0 {
                        self.finish.reached(0);
                    }
                }
                Done::Pinged(pinged) => {
                    self.pinged += pinged;
                    self.reports_missing -= 1;
                    if self.reports_missing == 0 {
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
        let judge = spawn(Judge { missing: MEMBERS, reports_missing: MEMBERS, pinged: 0, finish, pinged_finish });
        let nobody: Arc<[ActorRef<Talk>]> = Arc::new([]);
        let member = |number| {
            let (members, judge) = (Arc::clone(&nobody), judge.clone());
            spawn(Member { members, number, dice: Dice::of(number), left: pings, pinged: 0, judge })
        };
        let members: Arc<[_]> = (0..MEMBERS).map(member).collect();
        for member in members.iter() {
            tell(member, Talk::Meet(Arc::clone(&members)));
        }
        let played = finished.time(2 * pings_total, 0, || {
            for member in members.iter() {
                tell(member, Talk::Begin);
            }
        })?;
        pinged_finished.time(0, pings_total, || {
            for member in members.iter() {
                tell(member, Talk::Report);
            }
        })?;
        Ok(played)
    }
}

mod fib {
    use super::*;

    struct Value(u64);

    struct Fib {
        above: Above<Value>,
        n: u64,
        missing: u64,
        value: u64,
    }

    impl State for Fib {
        type Msg = Value;

        fn started(&mut self, myself: &ActorRef<Value>) {
            if self.n < 2 {
                self.above.tell(self.n, Value);
                return myself.stop(None);
            }
            for n in [self.n - 1, self.n - 2] {
                spawn(Fib { above: Above::Parent(myself.clone()), n, missing: 2, value: 0 });
            }
        }

        fn handle(&mut self, myself: &ActorRef<Value>, Value(value): Value) {
            self.value += value;
            self.missing -= 1;
            if self.missing == 0 {
                self.above.tell(self.value, Value);
                myself.stop(None);
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

    enum Flood {
        Meet(Arc<[ActorRef<Flood>]>),
        Begin,
        Token,
    }

    struct Done(u64);

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

    struct Judge {
        missing: u64,
        sends_left: u64,
        finish: Finish,
    }

    impl State for Judge {
        type Msg = Done;

        fn handle(&mut self, _: &ActorRef<Done>, Done(sends_left): Done) {
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

mod repeat {
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
