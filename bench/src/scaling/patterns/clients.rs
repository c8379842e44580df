//! Clients and servers: each client awaits the answer of one server before it asks the next one.

use std::sync::Arc;

use playhouse::prelude::*;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;

use super::{answer, results, spread};
use crate::harness::outcome::{Failure, check};
use crate::harness::random::Dice;
use crate::scaling::goal::Goal;
use crate::scaling::graph::dice;
use crate::scaling::load::Load;
use crate::scaling::pattern::Pattern;
use crate::scaling::stopwatch::Stopwatch;
use crate::scaling::threads::{Node, Outbox, Partition, with_threads};
use crate::scaling::work::Work;

pub(crate) const CLIENTS: Pattern = Pattern {
    name: "scaling-clients",
    op: "request",
    summary: "1,000 clients send requests to 64 servers at random; each client awaits an answer before its next request",
    playhouse: |system, watch, load| playhouse(system, watch, &Plan::of(load)),
    tokio: |runtime, watch, load| tokio(runtime, watch, &Plan::of(load)),
    threads: |count, watch, load| threads(count, watch, &Plan::of(load)),
};

/// The size of one run.
struct Plan {
    clients: u32,
    servers: u32,
    /// The number of requests of each client.
    requests: u64,
    work: Work,
}

impl Plan {
    fn of(load: &Load) -> Self {
        let (clients, servers) = load.size.pick((20, 4), (1_000, 64), (1_000, 64));
        Self { clients, servers, requests: (load.ops(600) / u64::from(clients)).max(1), work: load.work }
    }

    /// Checks the counts of the clients and the servers. A server answers `n` with `n + 1`, and a client asks for 1, 2, …
    fn check(&self, answers: u64, served: u64) -> Result<u64, Failure> {
        let clients = u64::from(self.clients);
        check("the sum of the answers", clients * self.requests * (self.requests + 3) / 2, answers)?;
        check("the requests that were served", clients * self.requests, served)?;
        Ok(served)
    }
}

struct Server {
    work: Work,
    served: u64,
}

impl Server {
    /// Does the work with a request, and returns the answer.
    fn serve(&mut self, number: u64) -> u64 {
        self.work.run();
        self.served += 1;
        number + 1
    }
}

#[actor]
impl Server {
    #[message]
    fn request(&mut self, number: u64) -> u64 {
        self.serve(number)
    }

    #[message]
    fn served(&self) -> u64 {
        self.served
    }
}

struct Client {
    servers: Arc<[ActorRef<Server>]>,
    dice: Dice,
    answers: u64,
    goal: Goal,
}

#[actor]
impl Client {
    #[message]
    async fn ask_all(&mut self, requests: u64) {
        for number in 1..=requests {
            let server = self.servers[self.dice.pick(self.servers.len())];
            // A failed ask shows in the sum.
            self.answers += server.ask(Request(number)).await.unwrap_or(0);
        }
        self.goal.part_done();
    }

    #[message]
    fn answers(&self) -> u64 {
        self.answers
    }
}

fn playhouse(system: &System, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let server = |_| system.spawn_with(spread(), Server { work: plan.work, served: 0 });
    let servers: Arc<[_]> = (0..plan.servers).map(server).collect();
    let client = |number| Client { servers: Arc::clone(&servers), dice: dice(number), answers: 0, goal: goal.clone() };
    let clients: Vec<_> = (0..plan.clients).map(|number| system.spawn_with(spread(), client(number))).collect();
    system.run_until_idle();
    watch.time(&goal, clients.len() as u64, || clients.iter().for_each(|client| client.tell(AskAll(plan.requests))))?;
    let (mut answers, mut served) = (0, 0);
    for client in &clients {
        answers += answer(client.ask(Answers).wait())?;
    }
    for server in &servers[..] {
        served += answer(server.ask(Served).wait())?;
    }
    plan.check(answers, served)
}

/// A request: a number, and the channel for the answer.
type Posted = (u64, oneshot::Sender<u64>);

async fn serve(mut server: Server, mut requests: UnboundedReceiver<Posted>) -> u64 {
    while let Some((number, back)) = requests.recv().await {
        // A missing answer shows in the sum.
        let _ = back.send(server.serve(number));
    }
    server.served
}

async fn ask_all(servers: Arc<[UnboundedSender<Posted>]>, mut dice: Dice, requests: u64, goal: Goal) -> u64 {
    let mut answers = 0;
    for number in 1..=requests {
        let (back, answer) = oneshot::channel();
        let _ = servers[dice.pick(servers.len())].send((number, back));
        answers += answer.await.unwrap_or(0);
    }
    goal.part_done();
    answers
}

fn tokio(runtime: &Runtime, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let (mut senders, mut servers, mut clients) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.servers {
        let (sender, requests) = mpsc::unbounded_channel();
        senders.push(sender);
        servers.push(runtime.spawn(serve(Server { work: plan.work, served: 0 }, requests)));
    }
    let senders: Arc<[_]> = senders.into();
    watch.time(&goal, plan.clients.into(), || {
        for number in 0..plan.clients {
            clients.push(runtime.spawn(ask_all(Arc::clone(&senders), dice(number), plan.requests, goal.clone())));
        }
    })?;
    // The servers end with the last sender.
    drop(senders);
    let answers = results(runtime, clients)?.into_iter().sum();
    plan.check(answers, results(runtime, servers)?.into_iter().sum())
}

#[derive(Clone, Copy)]
enum Letter {
    Begin,
    Request { client: u32, number: u64 },
    Answer(u64),
}

/// A node: the clients have the numbers before those of the servers.
enum Role {
    Client { first_server: u32, servers: u32, dice: Dice, requests: u64, asked: u64, answers: u64, goal: Goal },
    Server(Server),
}

impl Node for Role {
    type Message = Letter;

    fn handle(&mut self, me: u32, letter: Letter, out: &mut Outbox<'_, Letter>) {
        match (self, letter) {
            (Self::Server(server), Letter::Request { client, number }) => {
                out.send(client, Letter::Answer(server.serve(number)));
            }
            (Self::Client { first_server, servers, dice, requests, asked, answers, goal }, letter) => {
                if let Letter::Answer(number) = letter {
                    *answers += number;
                }
                if asked == requests {
                    return goal.part_done();
                }
                *asked += 1;
                let server = *first_server + dice.pick(*servers as usize) as u32;
                out.send(server, Letter::Request { client: me, number: *asked });
            }
            (Self::Server(_), Letter::Begin | Letter::Answer(_)) => {}
        }
    }
}

fn threads(count: usize, watch: &mut Stopwatch, plan: &Plan) -> Result<u64, Failure> {
    let goal = Goal::new();
    let client = |number| Role::Client {
        first_server: plan.clients,
        servers: plan.servers,
        dice: dice(number),
        requests: plan.requests,
        asked: 0,
        answers: 0,
        goal: goal.clone(),
    };
    let servers = (0..plan.servers).map(|_| Role::Server(Server { work: plan.work, served: 0 }));
    let nodes = (0..plan.clients).map(client).chain(servers).collect();
    let nodes = with_threads(count, Partition::RoundRobin, nodes, |injector| {
        watch.time(&goal, plan.clients.into(), || {
            injector.send((0..plan.clients).map(|client| (client, Letter::Begin)));
        })
    })?;
    let totals = nodes.iter().map(|node| match node {
        Role::Client { answers, .. } => (*answers, 0),
        Role::Server(server) => (0, server.served),
    });
    let (answers, served) = totals.fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    plan.check(answers, served)
}
