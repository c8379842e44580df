//! Tokens that nodes pass to random neighbours.

use playhouse::prelude::*;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::{answer, results};
use crate::harness::outcome::{Failure, check};
use crate::harness::random::Dice;
use crate::scaling::goal::Goal;
use crate::scaling::graph::{DEGREE, Graph, dice};
use crate::scaling::load::Load;
use crate::scaling::pattern::Pattern;
use crate::scaling::stopwatch::Stopwatch;
use crate::scaling::threads::{Node, Outbox, Partition, with_threads};
use crate::scaling::work::Work;

pub(crate) const GOSSIP_10000: Pattern = Pattern {
    name: "scaling-gossip-10000",
    op: "message",
    summary: "10,000 actors pass 10,000 tokens to random neighbours (8 each); with long work there are fewer tokens, with 5 visits each",
    playhouse: |system, watch, load| playhouse(system, watch, &Plan::uniform(load, 10_000)),
    tokio: |runtime, watch, load| tokio(runtime, watch, &Plan::uniform(load, 10_000)),
    threads: |count, watch, load| threads(count, watch, &Plan::uniform(load, 10_000)),
};

pub(crate) const GOSSIP_100: Pattern = Pattern {
    name: "scaling-gossip-100",
    summary: "100 actors pass 100 tokens to random neighbours (8 each)",
    playhouse: |system, watch, load| playhouse(system, watch, &Plan::uniform(load, 100)),
    tokio: |runtime, watch, load| tokio(runtime, watch, &Plan::uniform(load, 100)),
    threads: |count, watch, load| threads(count, watch, &Plan::uniform(load, 100)),
    ..GOSSIP_10000
};

/// The distance between two long messages, in messages, if a plan has long ones.
const LONG_EVERY: u64 = 100;

/// The size of one run.
pub(super) struct Plan {
    pub(super) graph: Graph,
    pub(super) tokens: u64,
    /// The number of visits of each token.
    pub(super) visits: u64,
    pub(super) work: Work,
    /// The work with each 100th message. `None` if it is the same as with the others.
    pub(super) long_work: Option<Work>,
}

impl Plan {
    fn uniform(load: &Load, actors: usize) -> Self {
        let graph = Graph::uniform(load.size.pick(actors.min(200), actors, actors));
        let tokens = graph.nodes() as u64;
        Self::of_ops(graph, tokens, load.ops(200), load.work, None)
    }

    /// Plans at most `tokens_max` tokens, with at least 5 visits each if the operations suffice.
    pub(super) fn of_ops(graph: Graph, tokens_max: u64, ops: u64, work: Work, long_work: Option<Work>) -> Self {
        let tokens = (ops / 5).clamp(1, tokens_max);
        Self { graph, tokens, visits: (ops / tokens).max(1), work, long_work }
    }

    fn ops(&self) -> u64 {
        self.tokens * self.visits
    }

    fn player(&self, number: u32) -> Player {
        Player { dice: dice(number), work: self.work, long_work: self.long_work, got: 0, got_long: 0 }
    }

    /// Returns the first node of a token, the number of its first message, and the number of later visits.
    fn start(&self, token: u64) -> (u32, u64, u64) {
        ((token % self.graph.nodes() as u64) as u32, token * self.visits, self.visits - 1)
    }

    fn check(&self, players: impl IntoIterator<Item = (u64, u64)>) -> Result<u64, Failure> {
        let sum = |sum: (u64, u64), of: (u64, u64)| (sum.0 + of.0, sum.1 + of.1);
        let (got, got_long) = players.into_iter().fold((0, 0), sum);
        check("the messages handled", self.ops(), got)?;
        let long = self.long_work.map_or(0, |_| self.ops() / LONG_EVERY);
        check("the long messages handled", long, got_long)?;
        Ok(got)
    }
}

/// The state of a node, the same in all implementations.
struct Player {
    dice: Dice,
    work: Work,
    long_work: Option<Work>,
    got: u64,
    got_long: u64,
}

impl Player {
    /// Does the work with the message of this number.
    fn receive(&mut self, number: u64) {
        self.got += 1;
        match self.long_work {
            Some(work) if number % LONG_EVERY == LONG_EVERY - 1 => {
                self.got_long += 1;
                work.run();
            }
            _ => self.work.run(),
        }
    }

    /// Chooses the neighbour that gets the token.
    fn choose(&mut self) -> usize {
        self.dice.pick(DEGREE)
    }

    fn totals(&self) -> (u64, u64) {
        (self.got, self.got_long)
    }
}

struct Gossip {
    player: Player,
    neighbours: Vec<ActorRef<Gossip>>,
    goal: Goal,
}

#[actor]
impl Gossip {
    #[message]
    fn meet(&mut self, neighbours: Vec<ActorRef<Gossip>>) {
        self.neighbours = neighbours;
    }

    #[message]
    fn token(&mut self, number: u64, left: u64) {
        self.player.receive(number);
        if left > 0 {
            self.neighbours[self.player.choose()].tell(Token(number + 1, left - 1));
        } else {
            self.goal.part_done();
        }
    }

    #[message]
    fn totals(&self) -> (u64, u64) {
        self.player.totals()
    }
}

/// Runs the program as actors.
pub(super) fn playhouse(system: &System, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let actor = |number| Gossip { player: plan.player(number), neighbours: Vec::new(), goal: goal.clone() };
    let actors: Vec<_> = (0..plan.graph.nodes() as u32).map(|number| system.spawn(actor(number))).collect();
    for (actor, neighbours) in actors.iter().zip(&plan.graph.0) {
        actor.tell(Meet(neighbours.iter().map(|&other| actors[other as usize]).collect()));
    }
    system.run_until_idle();
    watch.time(&goal, plan.tokens, || {
        for (first, number, left) in (0..plan.tokens).map(|token| plan.start(token)) {
            actors[first as usize].tell(Token(number, left));
        }
    })?;
    let asks: Vec<_> = actors.iter().map(|actor| actor.ask(Totals)).collect();
    let totals: Result<Vec<_>, _> = asks.into_iter().map(|ask| answer(ask.wait())).collect();
    plan.check(totals?)
}

/// A token, or the request to end.
enum Mail {
    Token(u64, u64),
    End,
}

async fn node(
    mut player: Player,
    mut mail: UnboundedReceiver<Mail>,
    neighbours: Vec<UnboundedSender<Mail>>,
    goal: Goal,
) -> (u64, u64) {
    while let Some(Mail::Token(number, left)) = mail.recv().await {
        player.receive(number);
        if left > 0 {
            // A lost message shows in the counts.
            let _ = neighbours[player.choose()].send(Mail::Token(number + 1, left - 1));
        } else {
            goal.part_done();
        }
    }
    player.totals()
}

/// Runs the program as tokio tasks.
pub(super) fn tokio(runtime: &Runtime, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..plan.graph.nodes()).map(|_| mpsc::unbounded_channel()).unzip();
    let tasks = receivers.into_iter().zip(&plan.graph.0).zip(0..).map(|((mail, neighbours), number)| {
        let neighbours = neighbours.iter().map(|&other| senders[other as usize].clone()).collect();
        runtime.spawn(node(plan.player(number), mail, neighbours, goal.clone()))
    });
    let tasks: Vec<_> = tasks.collect();
    watch.time(&goal, plan.tokens, || {
        for (first, number, left) in (0..plan.tokens).map(|token| plan.start(token)) {
            let _ = senders[first as usize].send(Mail::Token(number, left));
        }
    })?;
    for sender in &senders {
        let _ = sender.send(Mail::End);
    }
    plan.check(results(runtime, tasks)?)
}

struct Place {
    player: Player,
    neighbours: [u32; DEGREE],
    goal: Goal,
}

impl Node for Place {
    type Message = (u64, u64);

    fn handle(&mut self, _: u32, (number, left): (u64, u64), out: &mut Outbox<'_, Self::Message>) {
        self.player.receive(number);
        if left > 0 {
            out.send(self.neighbours[self.player.choose()], (number + 1, left - 1));
        } else {
            self.goal.part_done();
        }
    }
}

/// Runs the program as hand-written threads.
pub(super) fn threads(count: usize, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let places = plan.graph.0.iter().zip(0..).map(|(&neighbours, number)| Place {
        player: plan.player(number),
        neighbours,
        goal: goal.clone(),
    });
    let places = with_threads(count, Partition::RoundRobin, places.collect(), |injector| {
        watch.time(&goal, plan.tokens, || {
            injector.send(
                (0..plan.tokens).map(|token| plan.start(token)).map(|(first, number, left)| (first, (number, left))),
            );
        })
    })?;
    plan.check(places.iter().map(|place| place.player.totals()))
}
