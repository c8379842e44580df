//! A cycle of asks fails at once with its path, and other asks do not. The result of the short cut for asks to idle
//! actors is the same as that of the queue.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::{Dice, Log, finishes, threads};
use playhouse::prelude::*;

struct Node {
    others: Vec<ActorRef<Node>>,
    log: Log<String>,
}

impl Actor for Node {}

#[derive(Message)]
struct Meet(Vec<ActorRef<Node>>);

impl Handler<Meet> for Node {
    fn handle(&mut self, Meet(others): Meet, _: &mut Context<Self>) {
        self.others = others;
    }
}

/// Asks all others in turn, each for the depth below; the answer is the number of asks that came through.
#[derive(Message, Clone, Copy)]
#[message(reply = Result<u64, AskError>)]
struct Descend(u64);

impl AsyncHandler<Descend> for Node {
    async fn handle(&mut self, Descend(depth): Descend, _: &mut Context<Self>) -> Result<u64, AskError> {
        let mut sum = 1;
        if depth > 0 {
            for other in &self.others {
                sum += other.ask(Descend(depth - 1)).await??;
            }
        }
        self.log.push(format!("{depth}"));
        Ok(sum)
    }
}

/// `edges[i]` are the nodes that node `i` asks.
fn graph(system: &System, edges: &[&[usize]]) -> Vec<ActorRef<Node>> {
    let nodes: Vec<_> = edges.iter().map(|_| system.spawn(Node { others: Vec::new(), log: Log::new() })).collect();
    for (node, others) in nodes.iter().zip(edges) {
        node.tell(Meet(others.iter().map(|other| nodes[*other]).collect()));
    }
    nodes
}

// GUARANTEE: Cycles
#[test]
fn a_cycle_of_one_two_or_three_actors_fails_with_its_path() {
    for (edges, length) in
        [(&[&[0_usize][..]][..], 1), (&[&[1][..], &[0][..]][..], 2), (&[&[1][..], &[2][..], &[0][..]][..], 3)]
    {
        for seed in 0..50 {
            let system = System::builder().workers(3).stages(6).simulated(seed).start().unwrap();
            let nodes = graph(&system, edges);
            let answer = nodes[0].ask(Descend(100)).wait().unwrap();
            let Err(AskError::Cycle(path)) = &answer else { panic!("seed {seed}: {answer:?}") };
            assert_eq!(path.len(), length + 1, "{path:?}");
            assert_eq!(path.first(), path.last());
            for node in &nodes {
                assert!(path.contains(&node.to_string()), "{path:?} without {node}");
            }
            system.run_until_idle();
            // All actors are free again.
            for node in &nodes {
                assert_eq!(node.ask(Descend(0)).wait(), Ok(Ok(1)));
            }
        }
    }
}

// GUARANTEE: Cycles
#[test]
fn a_cycle_on_threads_fails_at_once() {
    finishes(|| {
        let system = threads(2);
        for _ in 0..200 {
            let nodes = graph(&system, &[&[1], &[2], &[0]]);
            let answer = nodes[0].ask(Descend(100)).wait().unwrap();
            assert!(matches!(answer, Err(AskError::Cycle(_))), "{answer:?}");
        }
        system.shutdown().unwrap();
    });
}

#[test]
fn crossing_asks_of_two_actors_end() {
    finishes(|| {
        let system = threads(2);
        let nodes = graph(&system, &[&[1], &[0]]);
        let failed = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for node in &nodes {
                scope.spawn(|| {
                    for _ in 0..500 {
                        match node.ask(Descend(1)).wait().unwrap() {
                            Ok(sum) => assert_eq!(sum, 2),
                            Err(AskError::Cycle(_)) => _ = failed.fetch_add(1, Ordering::Relaxed),
                            Err(other) => panic!("{other}"),
                        }
                    }
                });
            }
        });
        assert!(failed.into_inner() < 1000, "at least one of two crossing asks comes through");
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Cycles
#[test]
fn a_diamond_is_no_cycle() {
    for seed in 0..100 {
        let system = System::builder().workers(3).stages(6).simulated(seed).start().unwrap();
        let nodes = graph(&system, &[&[1, 2], &[3], &[3], &[]]);
        assert_eq!(nodes[0].ask(Descend(2)).wait(), Ok(Ok(5)), "seed {seed}");
    }
}

/// Answers, and asks back when it is poked. It asks after its answer, and therefore no cycle of waiting actors exists.
struct Server {
    client: Option<ActorRef<Client>>,
    outcomes: Log<Result<u64, AskError>>,
}

struct Client {
    server: ActorRef<Server>,
}

impl Actor for Server {}
impl Actor for Client {}

#[derive(Message)]
#[message(reply = u64)]
struct Serve;

#[derive(Message)]
struct Poke(ActorRef<Client>);

#[derive(Message)]
struct Begin;

#[derive(Message)]
#[message(reply = u64)]
struct Greet;

impl Handler<Serve> for Server {
    fn handle(&mut self, _: Serve, ctx: &mut Context<Self>) -> u64 {
        if let Some(client) = self.client {
            ctx.this().tell(Poke(client));
        }
        1
    }
}

impl AsyncHandler<Poke> for Server {
    async fn handle(&mut self, Poke(client): Poke, _: &mut Context<Self>) {
        let outcome = client.ask(Greet).await;
        self.outcomes.push(outcome);
    }
}

impl AsyncHandler<Begin> for Client {
    async fn handle(&mut self, _: Begin, _: &mut Context<Self>) {
        assert_eq!(self.server.ask(Serve).await, Ok(1));
    }
}

impl Handler<Greet> for Client {
    fn handle(&mut self, _: Greet, _: &mut Context<Self>) -> u64 {
        2
    }
}

#[derive(Message)]
struct Know(ActorRef<Client>);

impl Handler<Know> for Server {
    fn handle(&mut self, Know(client): Know, _: &mut Context<Self>) {
        self.client = Some(client);
    }
}

#[test]
fn an_asker_with_an_answer_does_not_wait_any_more() {
    for seed in 0..300 {
        let system = System::builder().workers(3).stages(3).simulated(seed).start().unwrap();
        let outcomes = Log::new();
        let server = Server { client: None, outcomes: outcomes.clone() };
        let server = system.spawn_with(crate::support::on_stage(0), server);
        let client = system.spawn_with(crate::support::on_stage(1), Client { server });
        server.tell(Know(client));
        for _ in 0..5 {
            client.tell(Begin);
            system.run_until_idle();
        }
        assert_eq!(outcomes.take(), [const { Ok(2) }; 5], "seed {seed}");
    }
}

/// A script of tells and asks between a caller and a few counters. The script logs all results and the order at each
/// counter.
struct Counter {
    id: usize,
    n: u64,
    log: Log<(usize, u64, u64)>,
}

struct Caller {
    counters: Vec<ActorRef<Counter>>,
}

impl Actor for Counter {}
impl Actor for Caller {}

#[derive(Message)]
#[message(reply = u64)]
struct Add(u64);

#[derive(Message)]
#[message(reply = u64)]
struct AddLater(u64);

impl Handler<Add> for Counter {
    fn handle(&mut self, Add(by): Add, _: &mut Context<Self>) -> u64 {
        self.n += by;
        self.log.push((self.id, by, self.n));
        self.n
    }
}

impl AsyncHandler<AddLater> for Counter {
    async fn handle(&mut self, AddLater(by): AddLater, _: &mut Context<Self>) -> u64 {
        self.n += by;
        self.log.push((self.id, by, self.n));
        self.n
    }
}

#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Play(u64);

impl AsyncHandler<Play> for Caller {
    async fn handle(&mut self, Play(seed): Play, _: &mut Context<Self>) -> Vec<u64> {
        let mut dice = Dice(seed);
        let mut answers = Vec::new();
        for by in 1..=60 {
            let counter = self.counters[dice.below(self.counters.len())];
            match dice.below(4) {
                0 => counter.tell(Add(by)),
                1 => counter.tell(AddLater(by)),
                2 => answers.push(counter.ask(Add(by)).await.unwrap()),
                _ => answers.push(counter.ask(AddLater(by)).await.unwrap()),
            }
        }
        answers
    }
}

type Seen = Vec<Vec<(u64, u64)>>;

/// Returns the answers, the order at each counter, and the number of short cuts.
fn play(workers: usize, seed: u64) -> (Vec<u64>, Seen, u64) {
    let system = System::builder().workers(workers).stages(8).stealing(Stealing::None).simulated(seed).start().unwrap();
    let log = Log::new();
    // With 2 workers the counters are on the other worker, and every ask is queued. With 1 worker, most asks take the
    // short cut.
    let stage = |id: usize| crate::support::on_stage(2 * (id % 3) as u16 + workers as u16 - 1);
    let counters = (0..4).map(|id| system.spawn_with(stage(id), Counter { id, n: 0, log: log.clone() })).collect();
    let caller = system.spawn_with(crate::support::on_stage(0), Caller { counters });
    let answers = caller.ask(Play(seed)).wait().unwrap();
    system.run_until_idle();
    let seen = log.take();
    let each = (0..4).map(|id| seen.iter().filter(|(at, ..)| *at == id).map(|(_, by, n)| (*by, *n)).collect());
    (answers, each.collect(), system.stats().total.short_circuits)
}

// GUARANTEE: Inline calls are not observable
#[test]
fn the_short_cut_cannot_be_told_from_the_queue() {
    let mut taken = 0;
    for seed in 0..200 {
        let (short, queued) = (play(1, seed), play(2, seed));
        assert_eq!((&short.0, &short.1), (&queued.0, &queued.1), "seed {seed}");
        assert_eq!(queued.2, 0);
        taken += short.2;
    }
    assert!(taken > 100, "the short cut was taken {taken} times");
}

/// Asks the next one, without end.
#[derive(Message, Clone, Copy)]
#[message(reply = Result<(), AskError>)]
struct GoRound;

impl AsyncHandler<GoRound> for Node {
    async fn handle(&mut self, _: GoRound, _: &mut Context<Self>) -> Result<(), AskError> {
        self.others[0].ask(GoRound).await?
    }
}

// GUARANTEE: Cycles
#[test]
fn a_request_that_would_close_a_cycle_is_not_sent_on_its_way() {
    finishes(|| {
        let system = threads(2);
        for _ in 0..200 {
            let nodes = graph(&system, &[&[1], &[2], &[0]]);
            let answer = nodes[0].ask(GoRound).wait().unwrap();
            assert!(matches!(answer, Err(AskError::Cycle(_))), "{answer:?}");
            // The system is not idle while a request goes round.
            system.run_until_idle();
        }
        system.shutdown().unwrap();
    });
}
