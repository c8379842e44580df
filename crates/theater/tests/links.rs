//! Two theaters in one process, over the loopback.

mod support;

use std::sync::mpsc;

use playhouse_actor::wire::WireForm;
use playhouse_actor::*;
use playhouse_theater::{FindError, Theater};
use serde::{Deserialize, Serialize};
use support::{LIMIT, theater};

/// Two theaters; the first one knows the second.
fn two() -> (Theater, Theater, playhouse_theater::Peer) {
    let (here, there) = (theater(), theater());
    let peer = here.connect(&there.address().unwrap().to_string()).unwrap();
    (here, there, peer)
}

#[derive(Serialize, Deserialize, Default)]
struct Counter {
    n: u64,
}

#[derive(Serialize, Deserialize)]
struct Add(u64);
impl Message for Add {
    type Reply = ();
    const WIRE: Option<WireForm<Add>> = Some(WireForm::of());
}

#[derive(Serialize, Deserialize)]
struct Get;
impl Message for Get {
    type Reply = u64;
    const WIRE: Option<WireForm<Get>> = Some(WireForm::of());
}

/// Tells `to` the count.
#[derive(Serialize, Deserialize)]
struct Report {
    to: ActorRef<Clerk>,
}
impl Message for Report {
    type Reply = ();
    const WIRE: Option<WireForm<Report>> = Some(WireForm::of());
}

impl Actor for Counter {}
impl Handler<Add> for Counter {
    fn handle(&mut self, Add(n): Add, _: &mut Context<Self>) {
        self.n = if n > 0 { self.n + n } else { panic!("nothing to add") };
    }
}
impl Handler<Get> for Counter {
    fn handle(&mut self, _: Get, _: &mut Context<Self>) -> u64 {
        self.n
    }
}
impl Handler<Report> for Counter {
    fn handle(&mut self, report: Report, ctx: &mut Context<Self>) {
        report.to.tell(Counted { n: self.n, by: ctx.this() });
    }
}
remote!(spawn Counter: Add, Get, Report);

struct Clerk {
    out: mpsc::Sender<(u64, ActorRef<Counter>)>,
}

#[derive(Serialize, Deserialize)]
struct Counted {
    n: u64,
    by: ActorRef<Counter>,
}
impl Message for Counted {
    type Reply = ();
    const WIRE: Option<WireForm<Counted>> = Some(WireForm::of());
}

impl Actor for Clerk {}
impl Handler<Counted> for Clerk {
    fn handle(&mut self, counted: Counted, _: &mut Context<Self>) {
        self.out.send((counted.n, counted.by)).unwrap();
    }
}
remote!(Clerk: Counted);

#[test]
fn an_actor_started_elsewhere_is_told_and_asked_like_any_other() {
    let (here, there, peer) = two();
    let counter = here.spawn_at(&peer, &Counter { n: 5 }).unwrap();
    counter.tell(Add(2));
    counter.tell(Add(3));
    assert_eq!(counter.ask(Get).wait(), Ok(10));
    here.shutdown().unwrap();
    there.shutdown().unwrap();
}

#[test]
fn references_travel_and_come_home() {
    let (here, there, peer) = two();
    let (out, reports) = mpsc::channel();
    let clerk = here.system().spawn(Clerk { out });
    let counter = here.spawn_at(&peer, &Counter { n: 1 }).unwrap();
    counter.tell(Report { to: clerk });
    let (n, by) = reports.recv_timeout(LIMIT).unwrap();
    assert_eq!((n, by), (1, counter));
    by.tell(Add(1));
    counter.tell(Report { to: clerk });
    assert_eq!(reports.recv_timeout(LIMIT).unwrap(), (2, counter));
    here.shutdown().unwrap();
    there.shutdown().unwrap();
}

#[test]
fn a_published_actor_is_found_by_its_name() {
    let (here, there) = (theater(), theater());
    let counter = there.system().spawn(Counter { n: 7 });
    there.publish("counter", counter);
    let address = there.address().unwrap();
    let found = here.find::<Counter>(&format!("playhouse://{address}/counter")).wait().unwrap();
    assert_eq!(found.ask(Get).wait(), Ok(7));
    let again = here.find::<Counter>(&format!("playhouse://{address}/counter")).wait().unwrap();
    assert_eq!(found, again);
    let wrong = here.find::<Clerk>(&format!("playhouse://{address}/counter")).wait();
    assert!(matches!(wrong, Err(FindError::WrongType { .. })), "{wrong:?}");
    let unknown = here.find::<Counter>(&format!("playhouse://{address}/nobody")).wait();
    assert_eq!(unknown, Err(FindError::Unknown("nobody".to_owned())));
    let malformed = here.find::<Counter>("counter").wait();
    assert_eq!(malformed, Err(FindError::Malformed("counter".to_owned())));
    here.shutdown().unwrap();
    there.shutdown().unwrap();
}
