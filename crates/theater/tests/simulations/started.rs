//! Actors that are started in other theaters, and references to them that are passed on before their theaters know of
//! them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::seeds::Seed;
use playhouse_actor::*;
use playhouse_theater::{Simulation, Theater};
use serde::{Deserialize, Serialize};

/// Counts the messages of each holder, and sends the holder its own reference.
#[derive(Clone, Serialize, Deserialize)]
struct Worker {
    holders: Vec<ActorRef<Holder>>,
    /// The theater that it goes to after its start.
    goes: Option<SocketAddr>,
    starts: u32,
    last: BTreeMap<u32, u64>,
    late: u64,
}

#[derive(Serialize, Deserialize)]
struct Number {
    from: u32,
    number: u64,
}
remote_message!(Number -> ());

/// Answered with: its number of starts, the last number of each holder, and the number of late messages.
#[derive(Serialize, Deserialize)]
struct Read;
remote_message!(Read -> (u32, BTreeMap<u32, u64>, u64));

impl Actor for Worker {
    fn started(&mut self, ctx: &mut Context<Self>) {
        self.starts += 1;
        let this = ctx.this();
        self.holders.iter().for_each(|holder| holder.tell(Know { worker: this, others: Vec::new() }));
        if let Some(goes) = self.goes {
            ctx.migrate_to(goes);
        }
    }
}
impl Handler<Number> for Worker {
    fn handle(&mut self, Number { from, number }: Number, _: &mut Context<Self>) {
        let last = self.last.insert(from, number).unwrap_or(0);
        self.late += u64::from(number != last + 1);
    }
}
impl Handler<Read> for Worker {
    fn handle(&mut self, _: Read, _: &mut Context<Self>) -> (u32, BTreeMap<u32, u64>, u64) {
        (self.starts, self.last.clone(), self.late)
    }
}
remote!(mobile Worker: Number, Read);

/// Tells the worker one number for each reference to it that it gets.
struct Holder {
    id: u32,
    known: Vec<ActorRef<Worker>>,
    sent: u64,
    unequal: u64,
}

/// Makes the holder pass the reference on to the other holders, too.
#[derive(Serialize, Deserialize)]
struct Know {
    worker: ActorRef<Worker>,
    others: Vec<ActorRef<Holder>>,
}
remote_message!(Know -> ());

/// Answered with the numbers that it has sent, and the number of references unequal to the first one.
#[derive(Serialize, Deserialize)]
struct Told;
remote_message!(Told -> (u64, u64));

impl Actor for Holder {}
impl Holder {
    fn tell(&mut self, worker: ActorRef<Worker>) {
        self.sent += 1;
        worker.tell(Number { from: self.id, number: self.sent });
    }
}
impl Handler<Know> for Holder {
    fn handle(&mut self, Know { worker, mut others }: Know, _: &mut Context<Self>) {
        self.unequal += u64::from(self.known.first().is_some_and(|known| *known != worker));
        self.known.push(worker);
        self.tell(worker);
        if let Some(next) = others.pop() {
            next.tell(Know { worker, others });
        }
    }
}
impl Handler<Told> for Holder {
    fn handle(&mut self, _: Told, _: &mut Context<Self>) -> (u64, u64) {
        self.known.clone().into_iter().for_each(|worker| self.tell(worker));
        (self.sent, self.unequal)
    }
}
remote!(Holder: Know, Told);

/// Starts an actor of the first theater in the last one, and tells the others of it at once, by different routes. After that it
/// migrates, and its theater ends.
fn play(seed: u64) -> bool {
    let _seed = Seed(seed);
    let net = Simulation::new(seed);
    net.vary_latencies();
    let theaters: Vec<Theater> =
        (0..4).map(|_| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap()).collect();
    let (home, last) = (&theaters[0], &theaters[3]);
    let holders: Vec<ActorRef<Holder>> = (0..4)
        .map(|at| {
            let holder = theaters[at].system().spawn(Holder { id: at as u32, known: Vec::new(), sent: 0, unequal: 0 });
            theaters[at].publish("holder", holder).unwrap();
            let url = format!("playhouse://{}/holder", theaters[at].address().unwrap());
            if at == 0 { holder } else { home.find(&url).wait().unwrap() }
        })
        .collect();
    let peers: Vec<_> = theaters[1..3].iter().map(|to| last.connect(to.address().unwrap()).unwrap()).collect();
    let goes = (net.choose(3) == 0).then(|| theaters[net.choose(3)].address().unwrap());
    let told = if net.choose(2) == 0 { holders.clone() } else { Vec::new() };
    let worker = Worker { holders: told, goes, starts: 0, last: BTreeMap::new(), late: 0 };
    let there = home.connect(last.address().unwrap()).unwrap();
    let worker = home.spawn_at(&there, &worker).unwrap();
    let mut others = holders.clone();
    others.rotate_left(net.choose(4));
    let alone = others.pop().unwrap();
    alone.tell(Know { worker, others: Vec::new() });
    let first = others.pop().unwrap();
    first.tell(Know { worker, others });
    for _ in 0..net.choose(20) {
        net.run_for(std::time::Duration::from_micros(50));
    }
    let moved = last.evacuate(&peers).moved;
    holders.iter().take(3).for_each(|holder| drop(holder.ask(Told)));
    last.clone().shutdown().unwrap();
    let sent: BTreeMap<u32, u64> = (0..3)
        .map(|at| {
            let (told, unequal) = holders[at].ask(Told).wait().unwrap();
            assert_eq!(unequal, 0, "holder {at}");
            (at as u32, told)
        })
        .collect();
    net.run_until_idle();
    let (starts, mut handled, late) = worker.ask(Read).wait().unwrap();
    handled.remove(&3);
    assert_eq!((starts, late), (1, 0));
    for (at, told) in sent {
        assert!(handled[&at] >= told, "holder {at}: {} of {told}", handled[&at]);
    }
    moved == 1
}

// GUARANTEE: References travel
#[test]
fn a_remotely_started_actor_is_one_actor_to_all_theaters() {
    let seeds = crate::seeds::range(250);
    let moved = seeds.clone().filter(|seed| play(*seed)).count() as u64;
    assert!(moved > (seeds.end - seeds.start) / 2, "{moved}");
}
