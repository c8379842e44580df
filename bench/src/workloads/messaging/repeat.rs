//! Scatter and gather: one client asks many servers, again and again, and all answers come to one mailbox.

use playhouse::prelude::*;

use crate::baselines;
use crate::harness::benchmark::{Baseline, Benchmark, Family};
use crate::harness::finish::{Finish, finish};
use crate::harness::outcome::{Failure, Outcome, Size, check};
use crate::plans::repeat::Plan;
use crate::report::Target;

pub(crate) const REPEAT: Benchmark = Benchmark {
    name: "repeat",
    op: "message",
    source: "cforall-actors, Performance, Executor (repeat)",
    summary: "one client sends a message to each of 100,000 servers, each replies; 40 rounds",
    stealing: None,
    workers_min: 1,
    family: Family::Local,
    workload: |system, size, _| run(system, size),
    baseline: Some(Baseline::Hand(|size| baselines::messages::repeat(&Plan::of(size)))),
    target: Target::new(2.5, 15.0),
};

#[derive(Message)]
struct Request;

struct Server {
    client: ActorRef<Client>,
    requests: u64,
}

impl Actor for Server {}

impl Handler<Request> for Server {
    fn handle(&mut self, _: Request, _: &mut Context<Self>) {
        self.requests += 1;
        self.client.tell(Reply { requests: self.requests });
    }
}

/// Sends the next slice of requests.
#[derive(Message)]
struct Scatter;

/// The number of requests to the server.
#[derive(Message)]
struct Reply {
    requests: u64,
}

struct Client {
    plan: Plan,
    servers: Vec<ActorRef<Server>>,
    sent: u64,
    replies: u64,
    rounds: u64,
    requests_sum: u64,
    finish: Finish<u64>,
}

impl Actor for Client {
    fn started(&mut self, ctx: &mut Context<Self>) {
        let client = ctx.this();
        self.servers.extend((0..self.plan.servers).map(|_| ctx.spawn(Server { client, requests: 0 })));
    }
}

impl Handler<Scatter> for Client {
    fn handle(&mut self, _: Scatter, ctx: &mut Context<Self>) {
        let until = (self.sent + Plan::SLICE).min(self.plan.servers);
        for server in &self.servers[self.sent as usize..until as usize] {
            server.tell(Request);
        }
        self.sent = until;
        if until < self.plan.servers {
            ctx.this().tell(Scatter);
        }
    }
}

impl Handler<Reply> for Client {
    fn handle(&mut self, reply: Reply, ctx: &mut Context<Self>) {
        self.requests_sum += reply.requests;
        self.replies += 1;
        if self.replies < self.plan.servers {
            return;
        }
        (self.sent, self.replies) = (0, 0);
        self.rounds += 1;
        if self.rounds < self.plan.rounds {
            ctx.this().tell(Scatter);
        } else {
            self.finish.reached(self.requests_sum);
        }
    }
}

fn run(system: &System, size: Size) -> Result<Outcome, Failure> {
    let plan = Plan::of(size);
    let (expected, ops) = (plan.requests_sum(), 2 * plan.servers * plan.rounds);
    let (finish, finished) = finish(size);
    let servers = Vec::with_capacity(plan.servers as usize);
    let client = Client { plan, servers, sent: 0, replies: 0, rounds: 0, requests_sum: 0, finish };
    let client = system.spawn(client);
    system.run_until_idle();

    let (elapsed, requests_sum) = finished.time(|| client.tell(Scatter))?;
    check("the sum of the requests that the servers counted", expected, requests_sum)?;
    Ok(Outcome::new(ops, elapsed))
}
