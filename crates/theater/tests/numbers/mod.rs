//! Actors that notice lost, repeated or reordered messages.

use std::sync::atomic::Ordering;
use std::sync::mpsc;

use playhouse_actor::wire::WireForm;
use playhouse_actor::*;
use playhouse_theater::Theater;
use serde::{Deserialize, Serialize};

use crate::faulty::{Between, Fault};
use crate::support::LIMIT;

/// Checks that numbers come in order, and sends each back.
#[derive(Serialize, Deserialize)]
pub struct Echo {
    pub expected: u64,
}

#[derive(Serialize, Deserialize)]
pub struct Number {
    pub n: u64,
    pub back: ActorRef<Asker>,
    pub padding: Vec<u8>,
}
impl Message for Number {
    type Reply = ();
    const WIRE: Option<WireForm<Number>> = Some(WireForm::of());
}

#[derive(Serialize, Deserialize)]
pub struct Seen;
impl Message for Seen {
    type Reply = u64;
    const WIRE: Option<WireForm<Seen>> = Some(WireForm::of());
}

impl Actor for Echo {}
impl Handler<Number> for Echo {
    fn handle(&mut self, number: Number, _: &mut Context<Self>) {
        assert_eq!(number.n, self.expected, "lost, repeated or out of order");
        self.expected += 1;
        number.back.tell(Back(number.n));
    }
}
impl Handler<Seen> for Echo {
    fn handle(&mut self, _: Seen, _: &mut Context<Self>) -> u64 {
        self.expected
    }
}
remote!(spawn Echo: Number, Seen);

/// Sends numbers, and checks that they come back in order.
pub struct Asker {
    pub to: ActorRef<Echo>,
    pub sent: u64,
    pub came: u64,
    pub last: u64,
    pub done: mpsc::Sender<()>,
}

#[derive(Serialize, Deserialize)]
pub struct Back(u64);
impl Message for Back {
    type Reply = ();
    const WIRE: Option<WireForm<Back>> = Some(WireForm::of());
}
pub struct Go;
impl Message for Go {
    type Reply = ();
}

impl Asker {
    fn send(&mut self, ctx: &mut Context<Self>) {
        while self.sent < self.last && self.sent < self.came + 500 {
            // Now and then a message takes several packets.
            let padding = vec![7; if self.sent.is_multiple_of(997) { 200_000 } else { (self.sent % 50) as usize }];
            self.to.tell(Number { n: self.sent, back: ctx.this(), padding });
            self.sent += 1;
        }
    }
}

impl Actor for Asker {}
impl Handler<Go> for Asker {
    fn handle(&mut self, _: Go, ctx: &mut Context<Self>) {
        self.send(ctx);
    }
}
impl Handler<Back> for Asker {
    fn handle(&mut self, Back(n): Back, ctx: &mut Context<Self>) {
        assert_eq!(n, self.came, "lost, repeated or out of order on the way back");
        self.came += 1;
        self.send(ctx);
        if self.came == self.last {
            self.done.send(()).unwrap();
        }
    }
}
remote!(Asker: Back);

/// Lets actors in two theaters, with `between` between them, send each other numbers: `each` of `actors`.
pub fn exchange(here: Theater, there: Theater, between: Between, actors: usize, each: u64) {
    exchange_by(&here, &there, between.address(), actors, each);
    drop(between);
    let (here, there) = (here.shutdown(), there.shutdown());
    here.unwrap();
    there.unwrap();
}

/// Does the same, but calls the remote theater by this address.
pub fn exchange_by(here: &Theater, there: &Theater, address: String, actors: usize, each: u64) {
    let peer = here.connect(address).unwrap();
    let (done, all) = mpsc::channel();
    let mut echoes = Vec::new();
    for _ in 0..actors {
        let to = here.spawn_at(&peer, &Echo { expected: 0 }).unwrap();
        let asker = Asker { to, sent: 0, came: 0, last: each, done: done.clone() };
        here.system().spawn(asker).tell(Go);
        echoes.push(to);
    }
    for _ in 0..actors {
        all.recv_timeout(LIMIT).expect("all come back");
    }
    for echo in echoes {
        assert_eq!(echo.ask(Seen).wait(), Ok(each));
    }
    for system in [here.system(), there.system()] {
        let total = system.stats().total;
        assert_eq!((total.dead_letters, total.crashes), (0, 0));
    }
}

/// Does the same over connections that are cut again and again.
pub fn over_cuts(here: Theater, there: Theater, seed: u64) {
    let between = Between::new(there.address().unwrap(), seed, Fault::Cut(1..400_000));
    let cuts = between.counter();
    exchange(here, there, between, 4, 5_000);
    let cuts = cuts.load(Ordering::Relaxed);
    assert!(cuts > 5, "only {cuts} cuts");
}
