//! Requests that are forwarded in other theaters than the asker's: the waits are known, and a cycle ends.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context as PollContext, Poll, Waker};
use std::time::Duration;

use playhouse_actor::wire::WireForm;
use playhouse_actor::*;
use playhouse_theater::{Simulation, Theater};
use serde::{Deserialize, Serialize};

/// Takes the steps of its messages, one after the other.
#[derive(Serialize, Deserialize, Default)]
struct Node {
    nodes: Vec<ActorRef<Node>>,
}

/// A step of a handler. Nodes are known by their numbers.
#[derive(Clone, Serialize, Deserialize, Debug)]
enum Step {
    Sleep(Duration),
    /// Awaits the answer of a node to these steps.
    Ask(usize, Vec<Step>),
    /// The same, but the first node forwards the request to the second.
    AskThrough(usize, usize, Vec<Step>),
}

#[derive(Serialize, Deserialize)]
struct Meet(Vec<ActorRef<Node>>);
impl Message for Meet {
    type Reply = ();
    const WIRE: Option<WireForm<Meet>> = Some(WireForm::of());
}

/// Answered with the number of handlers that have run for it, or with the error of the first failed ask.
#[derive(Serialize, Deserialize)]
struct Run(Vec<Step>);
impl Message for Run {
    type Reply = Result<u64, AskError>;
    const WIRE: Option<WireForm<Run>> = Some(WireForm::of());
}

/// To be forwarded to this node as a [`Run`].
#[derive(Serialize, Deserialize)]
struct Pass(usize, Vec<Step>);
impl Message for Pass {
    type Reply = Result<u64, AskError>;
    const WIRE: Option<WireForm<Pass>> = Some(WireForm::of());
}

#[derive(Serialize, Deserialize)]
struct GoTo(SocketAddr);
impl Message for GoTo {
    type Reply = ();
    const WIRE: Option<WireForm<GoTo>> = Some(WireForm::of());
}

impl Actor for Node {}
impl Handler<Meet> for Node {
    fn handle(&mut self, Meet(nodes): Meet, _: &mut Context<Self>) {
        self.nodes = nodes;
    }
}
impl Handler<GoTo> for Node {
    fn handle(&mut self, GoTo(theater): GoTo, ctx: &mut Context<Self>) {
        ctx.migrate_to(theater);
    }
}
impl AsyncHandler<Run> for Node {
    async fn handle(&mut self, Run(steps): Run, ctx: &mut Context<Self>) -> Result<u64, AskError> {
        let mut handlers = 1;
        for step in steps {
            match step {
                Step::Sleep(time) => ctx.sleep(time).await,
                Step::Ask(to, steps) => handlers += self.nodes[to].ask(Run(steps)).await??,
                Step::AskThrough(through, to, steps) => handlers += self.nodes[through].ask(Pass(to, steps)).await??,
            }
        }
        Ok(handlers)
    }
}
impl DeferredHandler<Pass> for Node {
    fn handle(&mut self, Pass(to, steps): Pass, reply: Reply<Result<u64, AskError>>, _: &mut Context<Self>) {
        reply.forward(self.nodes[to], Run(steps));
    }
}
remote!(mobile Node: Meet, Run, Pass, GoTo, BeginAt, BeginLater);

const NODES: usize = 4;

struct World {
    net: Simulation,
    theaters: Vec<Theater>,
    nodes: Vec<ActorRef<Node>>,
}

impl World {
    /// Starts node `i` in the theater `locations[i]`.
    fn new(seed: u64, locations: &[usize]) -> World {
        let net = Simulation::new(seed);
        let theater = || {
            let system = System::builder().workers(2).stages(4);
            net.theater(Theater::builder().listen("127.0.0.1:0").system(system)).unwrap()
        };
        let theaters: Vec<Theater> = (0..3).map(|_| theater()).collect();
        let start = |place: &usize| match place {
            0 => theaters[0].system().spawn(Node::default()),
            place => {
                let peer = theaters[0].connect(theaters[*place].address().unwrap()).unwrap();
                theaters[0].spawn_at(&peer, &Node::default()).unwrap()
            }
        };
        let nodes: Vec<_> = locations.iter().map(start).collect();
        for node in &nodes {
            node.ask(Meet(nodes.clone())).wait().unwrap();
        }
        World { net, theaters, nodes }
    }

    /// Begins to ask a node. The ask ends in virtual time only.
    fn ask(&self, node: usize, steps: Vec<Step>) -> Asked {
        let mut asked = Asked { ask: Box::pin(self.nodes[node].ask(Run(steps))), answer: None };
        asked.look();
        asked
    }

    fn move_one_by_chance(&self) {
        let (node, theater) = (self.net.choose(self.nodes.len()), self.net.choose(3));
        self.nodes[node].tell(GoTo(self.theaters[theater].address().unwrap()));
    }

    fn end(self) {
        self.theaters.into_iter().for_each(|theater| drop(theater.shutdown().unwrap()));
    }
}

struct Asked {
    ask: Pin<Box<Ask<Run>>>,
    answer: Option<Result<u64, AskError>>,
}

impl Asked {
    fn look(&mut self) {
        if self.answer.is_none()
            && let Poll::Ready(answer) = self.ask.as_mut().poll(&mut PollContext::from_waker(Waker::noop()))
        {
            self.answer = Some(answer.and_then(|answer| answer));
        }
    }

    /// Returns the answer if it has come.
    fn answer(mut self) -> Option<Result<u64, AskError>> {
        self.look();
        self.answer
    }
}

/// Returns all distributions of three nodes over three theaters.
fn all_locations() -> impl Iterator<Item = [usize; 3]> {
    (0..27).map(|at| [at / 9, at / 3 % 3, at % 3])
}

/// The time in which a cycle is found.
const SOON: Duration = Duration::from_secs(2);
/// Longer than that.
const LONG: Duration = Duration::from_secs(6);

// GUARANTEE: Forwarded requests
#[test]
fn the_forwarder_of_a_request_may_ask_the_asker_over_theaters() {
    for (locations, moves) in all_locations().flat_map(|locations| [(locations, false), (locations, true)]) {
        let world = World::new(locations.iter().sum::<usize>() as u64, &locations);
        let through = world.ask(0, vec![Step::AskThrough(1, 2, vec![Step::Sleep(LONG)])]);
        world.net.run_for(Duration::from_millis(100));
        if moves {
            // The node that has forwarded migrates to the asker.
            world.nodes[1].tell(GoTo(world.theaters[locations[0]].address().unwrap()));
            world.net.run_for(Duration::from_millis(100));
        }
        let back = world.ask(1, vec![Step::Ask(0, vec![])]);
        world.net.run_until_idle();
        assert_eq!((through.answer(), back.answer()), (Some(Ok(2)), Some(Ok(2))), "{locations:?}, moves: {moves}");
        world.end();
    }
}

// GUARANTEE: Forwarded requests
#[test]
fn a_cycle_over_a_forwarded_request_ends_and_names_its_actors() {
    for locations in all_locations() {
        for seed in 0..5 {
            let world = World::new(seed, &locations);
            let around = world.ask(0, vec![Step::AskThrough(1, 2, vec![Step::Ask(0, vec![])])]);
            // The node that has forwarded is not in the cycle.
            world.net.run_for(SOON);
            let answer = around.answer();
            let Some(Err(AskError::Cycle(path))) = &answer else { panic!("{answer:?}, seed {seed}, {locations:?}") };
            assert!(path.len() == 3 && path.first() == path.last(), "seed {seed}, {locations:?}: {path:?}");
            let before = world.ask(1, vec![]);
            world.net.run_until_idle();
            assert_eq!(before.answer(), Some(Ok(1)));
            world.end();
        }
    }
}

// GUARANTEE: Cycles over theaters
#[test]
fn a_request_that_was_forwarded_after_it_was_begun_can_fail_in_a_cycle() {
    for locations in all_locations() {
        // Node 2 has no time for the request of node 0, because it waits for that node itself. When the cycle closes, only that
        // request can be taken back.
        let world = World::new(1, &locations);
        let busy = world.ask(2, vec![Step::Sleep(Duration::from_secs(1)), Step::Ask(0, vec![])]);
        let around = world.ask(0, vec![Step::AskThrough(1, 2, vec![])]);
        world.net.run_for(Duration::from_secs(1) + SOON);
        let (busy, around) = (busy.answer(), around.answer());
        let fails = |answer: &Option<Result<u64, AskError>>| matches!(answer, Some(Err(AskError::Cycle(_))));
        assert_eq!(usize::from(fails(&busy)) + usize::from(fails(&around)), 1, "{locations:?}: {busy:?} {around:?}");
        assert!([&busy, &around].iter().all(|answer| answer.is_some()), "{locations:?}: {busy:?} {around:?}");
        world.end();
    }
}

/// Returns the steps of a random handler of `node`, or of one that is asked by it.
fn by_chance(net: &Simulation, node: usize, depth: u32, acyclic: bool) -> Vec<Step> {
    let other = |from: usize| if acyclic { from + 1 + net.choose(NODES - 1) } else { net.choose(NODES) };
    let steps = (0..net.choose(3)).map(|_| {
        let (through, to) = (other(node), other(node));
        if depth == 0 || through >= NODES || to >= NODES {
            return Step::Sleep(Duration::from_micros(net.choose(5_000) as u64));
        }
        let steps = by_chance(net, to, depth - 1, acyclic);
        if net.choose(3) == 0 { Step::Ask(to, steps) } else { Step::AskThrough(through, to, steps) }
    });
    steps.collect()
}

// GUARANTEE: Cycles over theaters
/// Random steps, asked for at several nodes at once, over connections that break, while the nodes move.
#[test]
fn every_ask_with_forwards_ends_and_what_is_no_cycle_comes_through_under_every_seed() {
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(400);
    let (mut cycles, mut through) = (0, 0);
    for seed in 0..seeds {
        let locations: Vec<usize> = {
            let net = Simulation::new(seed);
            (0..NODES).map(|_| net.choose(3)).collect()
        };
        let world = World::new(seed, &locations);
        let net = &world.net;
        let acyclic = net.choose(2) == 0;
        net.break_by_chance(Duration::from_millis(50));
        let steps: Vec<(usize, Vec<Step>)> =
            (0..4).map(|_| net.choose(NODES)).map(|node| (node, by_chance(net, node, 4, acyclic))).collect();
        let asks: Vec<Asked> = steps.iter().map(|(node, steps)| world.ask(*node, steps.clone())).collect();
        for _ in 0..net.choose(3) {
            net.run_for(Duration::from_micros(net.choose(20_000) as u64));
            world.move_one_by_chance();
        }
        net.run_for(Duration::from_millis(300));
        net.calm();
        net.run_until_idle();
        for ask in asks {
            match ask.answer() {
                Some(Ok(_)) => through += 1,
                Some(Err(AskError::Cycle(path))) if !acyclic => {
                    cycles += 1;
                    assert_eq!(path.first(), path.last(), "seed {seed}");
                }
                other => panic!("seed {seed}, acyclic: {acyclic}: {other:?} of {locations:?} {steps:?}"),
            }
        }
        world.end();
    }
    assert!(cycles > 50 && through > 100, "{cycles} cycles, {through} came through");
}

// GUARANTEE: Cycles over theaters
#[test]
fn a_theater_that_nobody_has_asked_makes_no_cycle() {
    for seed in 0..5 {
        let world = World::new(seed, &[0, 1, 0, 2]);
        let through = world.ask(0, vec![Step::AskThrough(1, 2, vec![Step::Sleep(LONG)])]);
        world.net.run_for(Duration::from_millis(100));
        world.nodes[1].tell(GoTo(world.theaters[0].address().unwrap()));
        world.net.run_for(Duration::from_millis(100));
        // The theater of node 3 has no link with the one over which the request of node 0 went.
        let onlooker = world.ask(3, vec![Step::Ask(2, vec![])]);
        let back = world.ask(1, vec![Step::Ask(0, vec![])]);
        world.net.run_until_idle();
        let got = (through.answer(), back.answer(), onlooker.answer());
        assert_eq!(got, (Some(Ok(2)), Some(Ok(2)), Some(Ok(2))), "seed {seed}");
        world.end();
    }
}

#[test]
fn more_forwarded_requests_than_are_told_make_no_cycle() {
    let world = World::new(1, &[0, 1, 2]);
    let busy = world.ask(2, vec![Step::Sleep(LONG)]);
    world.net.run_for(Duration::from_millis(10));
    let mut many: Vec<_> = (0..12_000).map(|_| Box::pin(world.nodes[1].ask(Pass(2, vec![])))).collect();
    for ask in &mut many {
        assert!(ask.as_mut().poll(&mut PollContext::from_waker(Waker::noop())).is_pending());
    }
    world.net.run_for(Duration::from_millis(500));
    let through = world.ask(0, vec![Step::AskThrough(1, 2, vec![])]);
    world.net.run_for(Duration::from_millis(100));
    let back = world.ask(1, vec![Step::Ask(0, vec![])]);
    world.net.run_until_idle();
    let got = (busy.answer(), through.answer(), back.answer());
    assert_eq!(got, (Some(Ok(1)), Some(Ok(2)), Some(Ok(2))));
    drop(many);
    world.end();
}

/// Lives in the theater of its start.
#[derive(Serialize, Deserialize, Default)]
struct Fixed {
    next: Vec<ActorRef<Fixed>>,
}
static OWN: std::sync::Mutex<Option<ActorRef<Fixed>>> = std::sync::Mutex::new(None);

#[derive(Serialize, Deserialize)]
struct Next(Vec<ActorRef<Fixed>>);
impl Message for Next {
    type Reply = ();
    const WIRE: Option<WireForm<Next>> = Some(WireForm::of());
}
/// The first node forwards to the next; the others are asked through.
#[derive(Serialize, Deserialize)]
struct Round(u32);
impl Message for Round {
    type Reply = Result<u64, AskError>;
    const WIRE: Option<WireForm<Round>> = Some(WireForm::of());
}
#[derive(Serialize, Deserialize)]
struct PassRound(u32);
impl Message for PassRound {
    type Reply = Result<u64, AskError>;
    const WIRE: Option<WireForm<PassRound>> = Some(WireForm::of());
}
impl Actor for Fixed {}
impl Handler<Next> for Fixed {
    fn handle(&mut self, Next(next): Next, ctx: &mut Context<Self>) {
        if next.is_empty() {
            *OWN.lock().unwrap() = Some(ctx.this());
        } else {
            self.next = next;
        }
    }
}
impl AsyncHandler<Round> for Fixed {
    async fn handle(&mut self, Round(left): Round, _: &mut Context<Self>) -> Result<u64, AskError> {
        if left == 0 {
            return Ok(1);
        }
        Ok(1 + self.next[0].ask(PassRound(left - 1)).await??)
    }
}
impl DeferredHandler<PassRound> for Fixed {
    fn handle(&mut self, PassRound(left): PassRound, reply: Reply<Result<u64, AskError>>, _: &mut Context<Self>) {
        reply.forward(self.next[0], Round(left));
    }
}
remote!(spawn Fixed: Next, Round, PassRound);

#[test]
fn a_cycle_over_two_forwards_is_found_where_only_neighbours_are_linked() {
    let net = Simulation::new(1);
    let theater = || {
        let system = System::builder().workers(2).stages(4);
        net.theater(Theater::builder().listen("127.0.0.1:0").system(system)).unwrap()
    };
    let theaters: Vec<Theater> = (0..4).map(|_| theater()).collect();
    let mut own = [None; 4];
    let mut far = [None; 4];
    for at in 0..4 {
        let peer = theaters[at].connect(theaters[(at + 1) % 4].address().unwrap()).unwrap();
        let next = theaters[at].spawn_at(&peer, &Fixed::default()).unwrap();
        next.ask(Next(vec![])).wait().unwrap();
        own[(at + 1) % 4] = OWN.lock().unwrap().take();
        far[at] = Some(next);
    }
    for at in 0..4 {
        own[at].unwrap().ask(Next(vec![far[at].unwrap()])).wait().unwrap();
    }
    let mut asked = Box::pin(own[0].unwrap().ask(Round(2)));
    let mut look = || asked.as_mut().poll(&mut PollContext::from_waker(Waker::noop()));
    assert!(look().is_pending());
    net.run_for(Duration::from_secs(60));
    let got = look();
    assert!(matches!(&got, Poll::Ready(Ok(Err(AskError::Cycle(_))))), "{got:?}");
    theaters.into_iter().for_each(|theater| drop(theater.shutdown().unwrap()));
}

#[derive(Serialize, Deserialize, Default)]
struct Keeper {
    #[serde(skip)]
    kept: Option<Reply<Result<u64, AskError>>>,
}
#[derive(Serialize, Deserialize)]
struct BeginAt(ActorRef<Keeper>);
impl Message for BeginAt {
    type Reply = Result<u64, AskError>;
    const WIRE: Option<WireForm<BeginAt>> = Some(WireForm::of());
}
#[derive(Serialize, Deserialize)]
struct Keep;
impl Message for Keep {
    type Reply = Result<u64, AskError>;
    const WIRE: Option<WireForm<Keep>> = Some(WireForm::of());
}
#[derive(Serialize, Deserialize)]
struct Go(ActorRef<Node>, ActorRef<Node>);
impl Message for Go {
    type Reply = Result<u64, AskError>;
    const WIRE: Option<WireForm<Go>> = Some(WireForm::of());
}
impl AsyncHandler<BeginAt> for Node {
    async fn handle(&mut self, BeginAt(keeper): BeginAt, _: &mut Context<Self>) -> Result<u64, AskError> {
        keeper.ask(Keep).await?
    }
}
#[derive(Serialize, Deserialize)]
struct Later(ActorRef<Node>);
impl Message for Later {
    type Reply = Result<u64, AskError>;
    const WIRE: Option<WireForm<Later>> = Some(WireForm::of());
}
impl DeferredHandler<Later> for Keeper {
    fn handle(&mut self, Later(node): Later, reply: Reply<Result<u64, AskError>>, ctx: &mut Context<Self>) {
        reply.send_when_ready(ctx, async move { node.ask(Run(vec![])).await? });
    }
}
#[derive(Serialize, Deserialize)]
struct BeginLater(ActorRef<Keeper>, ActorRef<Node>);
impl Message for BeginLater {
    type Reply = Result<u64, AskError>;
    const WIRE: Option<WireForm<BeginLater>> = Some(WireForm::of());
}
impl AsyncHandler<BeginLater> for Node {
    async fn handle(&mut self, BeginLater(keeper, me): BeginLater, _: &mut Context<Self>) -> Result<u64, AskError> {
        keeper.ask(Later(me)).await?
    }
}
impl Actor for Keeper {}
impl DeferredHandler<Keep> for Keeper {
    fn handle(&mut self, _: Keep, reply: Reply<Result<u64, AskError>>, _: &mut Context<Self>) {
        self.kept = Some(reply);
    }
}
impl AsyncHandler<Go> for Keeper {
    async fn handle(&mut self, Go(asker, other): Go, _: &mut Context<Self>) -> Result<u64, AskError> {
        let first = asker.ask(Run(vec![])).await;
        self.kept.take().unwrap().forward(other, Run(vec![]));
        first?
    }
}
remote!(spawn Keeper: Keep, Go, Later);

#[test]
fn the_path_of_a_cycle_is_that_of_the_last_one() {
    for seed in 0..12 {
        let world = World::new(seed, &[seed as usize % 3, 1, 2]);
        let peer = world.theaters[0].connect(world.theaters[1].address().unwrap()).unwrap();
        let keeper = world.theaters[0].spawn_at(&peer, &Keeper::default()).unwrap();
        let mut a = Box::pin(world.nodes[0].ask(BeginAt(keeper)));
        let mut noop = PollContext::from_waker(Waker::noop());
        assert!(a.as_mut().poll(&mut noop).is_pending());
        world.net.run_for(Duration::from_millis(50));
        let g = world.ask(2, vec![Step::Ask(0, vec![])]);
        world.net.run_for(Duration::from_millis(50));
        let mut k = Box::pin(keeper.ask(Go(world.nodes[0], world.nodes[2])));
        assert!(k.as_mut().poll(&mut noop).is_pending());
        world.net.run_for(Duration::from_secs(20));
        let (a, g, k) = (a.as_mut().poll(&mut noop), g.answer(), k.as_mut().poll(&mut noop));
        // The keeper has forwarded the request of node 0 after it was in a cycle with it.
        assert!(!format!("{a:?}").contains("Keeper"), "seed {seed}: {a:?} {g:?} {k:?}");
        assert!(a.is_ready() && g.is_some() && k.is_ready(), "seed {seed}: {a:?} {g:?} {k:?}");
        world.end();
    }
}

// GUARANTEE: Reentrant handlers
#[test]
fn a_cycle_over_a_reentrant_handler_in_another_theater_is_found() {
    for seed in 0..6 {
        let world = World::new(seed, &[0, 1, 2]);
        let peer = world.theaters[0].connect(world.theaters[1].address().unwrap()).unwrap();
        let keeper = world.theaters[0].spawn_at(&peer, &Keeper::default()).unwrap();
        let at = if seed < 3 { 0 } else { 2 };
        let mut a = Box::pin(world.nodes[at].ask(BeginLater(keeper, world.nodes[at])));
        let mut noop = PollContext::from_waker(Waker::noop());
        assert!(a.as_mut().poll(&mut noop).is_pending());
        world.net.run_for(Duration::from_secs(10));
        let answer = a.as_mut().poll(&mut noop);
        assert!(matches!(&answer, Poll::Ready(Ok(Err(AskError::Cycle(_))))), "seed {seed}: {answer:?}");
        world.end();
    }
}
