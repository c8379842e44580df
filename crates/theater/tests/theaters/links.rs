//! Two theaters in one process, over the loopback.

use std::sync::mpsc;

use crate::support::{LIMIT, theater};
use playhouse_actor::wire::WireForm;
use playhouse_actor::*;
use playhouse_theater::{FindError, Simulation, Theater};
use serde::{Deserialize, Serialize};

/// Returns two theaters; the first one knows the second.
fn two() -> (Theater, Theater, playhouse_theater::Peer) {
    let (here, there) = (theater(), theater());
    let peer = here.connect(there.address().unwrap()).unwrap();
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

// GUARANTEE: A remote actor is used like any other
#[test]
fn a_remotely_started_actor_is_told_and_asked_like_any_other() {
    let (here, there, peer) = two();
    let counter = here.spawn_at(&peer, &Counter { n: 5 }).unwrap();
    counter.tell(Add(2));
    counter.tell(Add(3));
    assert_eq!(counter.ask(Get).wait(), Ok(10));
    here.shutdown().unwrap();
    there.shutdown().unwrap();
}

// GUARANTEE: References travel
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

// GUARANTEE: Names of published actors
#[test]
fn a_published_actor_is_found_by_its_name() {
    let (here, there) = (theater(), theater());
    let counter = there.system().spawn(Counter { n: 7 });
    there.publish("counter", counter).unwrap();
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

/// Passes counters on to others.
#[derive(Serialize, Deserialize)]
struct Broker;

#[derive(Serialize, Deserialize)]
struct Introduce {
    counter: ActorRef<Counter>,
    clerk: ActorRef<Clerk>,
}
impl Message for Introduce {
    type Reply = ActorRef<Counter>;
    const WIRE: Option<WireForm<Introduce>> = Some(WireForm::of());
}

impl Actor for Broker {}
impl Handler<Introduce> for Broker {
    fn handle(&mut self, introduce: Introduce, _: &mut Context<Self>) -> ActorRef<Counter> {
        introduce.counter.tell(Add(10));
        introduce.counter.tell(Report { to: introduce.clerk });
        introduce.counter
    }
}
remote!(spawn Broker: Introduce);

#[test]
fn references_to_third_theaters_lead_to_them_directly() {
    let [here, there, third] = [theater(), theater(), theater()];
    let peers = [&there, &third].map(|other| here.connect(other.address().unwrap()).unwrap());
    let (out, reports) = mpsc::channel();
    let clerk = here.system().spawn(Clerk { out });
    let broker = here.spawn_at(&peers[0], &Broker).unwrap();
    let counter = here.spawn_at(&peers[1], &Counter { n: 1 }).unwrap();
    // Its name is known locally once it has answered.
    assert_eq!(counter.ask(Get).wait(), Ok(1));
    for n in 1..=3 {
        let back = broker.ask(Introduce { counter, clerk }).wait().unwrap();
        assert_eq!(back, counter, "one actor has one reference, whichever way that came");
        let (count, by) = reports.recv_timeout(LIMIT).unwrap();
        assert_eq!((count, by), (1 + 10 * n, counter));
    }
    // The broker's theater has called the counter's, and continues without this one.
    let counters = third.find::<Counter>("playhouse://127.0.0.1:1/nobody").wait();
    assert!(matches!(counters, Err(FindError::Unreachable(_))), "{counters:?}");
    for theater in [here, there, third] {
        theater.shutdown().unwrap();
    }
}

#[test]
fn a_reference_is_sent_on_before_its_name_is_known() {
    let [here, there, third] = [theater(), theater(), theater()];
    let peers = [&there, &third].map(|other| here.connect(other.address().unwrap()).unwrap());
    let (out, reports) = mpsc::channel();
    let clerk = here.system().spawn(Clerk { out });
    let broker = here.spawn_at(&peers[0], &Broker).unwrap();
    let counter = here.spawn_at(&peers[1], &Counter { n: 5 }).unwrap();
    broker.tell(Introduce { counter, clerk });
    assert_eq!(reports.recv_timeout(LIMIT).unwrap(), (15, counter));
    for theater in [here, there, third] {
        theater.shutdown().unwrap();
    }
}

#[test]
fn a_theater_finds_its_own_actors_by_their_names() {
    let here = theater();
    let counter = here.system().spawn(Counter { n: 3 });
    here.publish("mine", counter).unwrap();
    let address = here.address().unwrap();
    assert_eq!(here.find::<Counter>(&format!("playhouse://{address}/mine")).wait(), Ok(counter));
    let wrong = here.find::<Clerk>(&format!("playhouse://{address}/mine")).wait();
    assert!(matches!(wrong, Err(FindError::WrongType { .. })), "{wrong:?}");
    counter.stop();
    here.system().run_until_idle();
    let ended = here.find::<Counter>(&format!("playhouse://{address}/mine")).wait();
    assert_eq!(ended, Err(FindError::Unknown("mine".to_owned())));
    here.shutdown().unwrap();
}

#[test]
fn a_theater_with_a_timer_that_never_ends_shuts_down_in_time() {
    struct Clock;
    #[derive(Clone)]
    struct Tick;
    impl Message for Tick {
        type Reply = ();
    }
    impl Actor for Clock {
        fn started(&mut self, ctx: &mut Context<Self>) {
            ctx.send_every(std::time::Duration::from_millis(1), Tick);
        }
    }
    impl Handler<Tick> for Clock {
        fn handle(&mut self, _: Tick, _: &mut Context<Self>) {}
    }
    let here = theater();
    here.system().spawn(Clock);
    here.shutdown_within(std::time::Duration::from_millis(50)).unwrap();
}

#[test]
fn urgent_messages_overtake_normal_ones_over_a_link() {
    use std::sync::Mutex;
    static ACCEPTOR: Mutex<()> = Mutex::new(());

    #[derive(Serialize, Deserialize, Default)]
    struct Shop {
        served: Vec<u64>,
    }
    #[derive(Serialize, Deserialize)]
    struct Wait;
    #[derive(Serialize, Deserialize)]
    struct Serve(u64);
    #[derive(Serialize, Deserialize)]
    struct Served;
    impl Message for Wait {
        type Reply = ();
        const WIRE: Option<WireForm<Wait>> = Some(WireForm::of());
    }
    impl Message for Serve {
        type Reply = ();
        const WIRE: Option<WireForm<Serve>> = Some(WireForm::of());
    }
    impl Message for Served {
        type Reply = Vec<u64>;
        const WIRE: Option<WireForm<Served>> = Some(WireForm::of());
    }
    impl Actor for Shop {}
    impl Handler<Wait> for Shop {
        fn handle(&mut self, _: Wait, _: &mut Context<Self>) {
            drop(ACCEPTOR.lock());
        }
    }
    impl Handler<Serve> for Shop {
        fn handle(&mut self, Serve(n): Serve, _: &mut Context<Self>) {
            self.served.push(n);
        }
    }
    impl Handler<Served> for Shop {
        fn handle(&mut self, _: Served, _: &mut Context<Self>) -> Vec<u64> {
            self.served.clone()
        }
    }
    remote!(spawn Shop: Wait, Serve, Served);

    let (here, there, peer) = two();
    let shop = here.spawn_at(&peer, &Shop::default()).unwrap();
    let other = here.spawn_at(&peer, &Counter { n: 1 }).unwrap();
    let closed = ACCEPTOR.lock().unwrap();
    shop.tell(Wait);
    shop.tell(Serve(1));
    shop.tell(Serve(2));
    shop.tell_urgent(Serve(3));
    // Its answer comes after all earlier messages.
    assert_eq!(other.ask(Get).wait(), Ok(1));
    drop(closed);
    assert_eq!(shop.ask(Served).wait(), Ok(vec![3, 1, 2]));
    here.shutdown().unwrap();
    there.shutdown().unwrap();
}

/// Greets every actor that takes it.
#[derive(Serialize, Deserialize)]
struct Greet {
    to: Vec<Recipient<Add>>,
}
impl Message for Greet {
    type Reply = Vec<Recipient<Add>>;
    const WIRE: Option<WireForm<Greet>> = Some(WireForm::of());
}
impl Handler<Greet> for Counter {
    fn handle(&mut self, greet: Greet, _: &mut Context<Self>) -> Vec<Recipient<Add>> {
        for recipient in &greet.to {
            recipient.tell(Add(7));
        }
        greet.to
    }
}
remote!(also Counter: Greet);

// GUARANTEE: A remote actor is used like any other
#[test]
fn a_drained_remote_actor_handles_earlier_messages_first() {
    for seed in 0..50 {
        let net = Simulation::new(seed);
        let [here, there] = [(); 2].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap());
        let counter = here.spawn_at(&here.connect(there.address().unwrap()).unwrap(), &Counter::default()).unwrap();
        for _ in 0..100 {
            counter.tell(Add(1));
        }
        counter.drain();
        net.run_until_idle();
        assert!(counter.is_stopped() && counter.ask(Get).wait() == Err(AskError::Stopped));
        for theater in [&here, &there] {
            assert_eq!(theater.system().stats().total.dead_letters, 0, "seed {seed}");
        }
    }
}

/// Takes the messages of a counter, but only from its own system.
struct Shy;
impl Actor for Shy {}
impl Handler<Add> for Shy {
    fn handle(&mut self, _: Add, _: &mut Context<Self>) {}
}

// GUARANTEE: Recipients are asked
// GUARANTEE: References travel
#[test]
fn recipients_travel_and_come_home() {
    let (here, there, peer) = two();
    let home = here.system().spawn(Counter::default());
    let away = here.spawn_at(&peer, &Counter::default()).unwrap();
    let ended = here.system().spawn(Counter::default());
    ended.drain();
    while !ended.is_stopped() {
        std::thread::yield_now();
    }
    let to: Vec<Recipient<Add>> = vec![home.recipient(), away.recipient(), ended.recipient()];
    let back = away.ask(Greet { to: to.clone() }).within(LIMIT).wait().unwrap();
    assert_eq!(back[..2], to[..2]);
    assert!(back[2].try_tell(Add(1)).is_err(), "it has ended");
    assert_eq!(back[2].ask(Add(1)).wait(), Err(AskError::Stopped));
    assert_eq!(away.ask(Get).within(LIMIT).wait(), Ok(7));
    assert_eq!(back[1].ask(Add(1)).within(LIMIT).wait(), Ok(()));
    assert_eq!(away.ask(Get).within(LIMIT).wait(), Ok(8));
    back[0].tell(Add(1));
    while home.ask(Get).within(LIMIT).wait() != Ok(8) {}

    let shy = here.system().spawn(Shy).recipient();
    let why = away.ask(Greet { to: vec![shy] }).within(LIMIT).wait();
    assert!(matches!(&why, Err(AskError::Unreachable(_))), "{:?}", why.map(|to| to.len()));
    here.shutdown().unwrap();
    there.shutdown().unwrap();
}

#[test]
fn a_theater_is_called_by_its_address_with_and_without_the_scheme_and_by_its_name() {
    let there = Theater::builder().listen("playhouse://localhost:0").start().unwrap();
    let address = there.address().unwrap();
    let here = theater();
    for route in
        [format!("playhouse://{address}"), format!("playhouse://{address}/"), format!("localhost:{}", address.port())]
    {
        assert_eq!(
            here.connect(&route).map(|peer| peer.address()).map_err(|error| error.to_string()),
            Ok(Some(address)),
            "{route}"
        );
    }
    assert_eq!(here.peers().len(), 1, "each was the same link");
    here.shutdown().unwrap();
    there.shutdown().unwrap();
}

// GUARANTEE: Services
#[test]
fn a_start_hook_may_use_its_theater_and_a_failed_start_leaves_nothing() {
    let (tell, told) = std::sync::mpsc::channel();
    let system = System::builder().workers(1).on_start(move |system| {
        tell.send(Group::new(system))?;
        Ok(())
    });
    let here = Theater::builder().listen("127.0.0.1:0").system(system).start().unwrap();
    // A group has a name if it belongs to a theater.
    let (early, late) = (format!("{:?}", told.recv().unwrap()), format!("{:?}", Group::new(here.system())));
    assert_eq!((early.contains("Some"), late.contains("Some")), (true, true), "{early} {late}");
    let address = here.address().unwrap();
    here.shutdown().unwrap();

    let fails = System::builder().workers(1).on_start(|_| Err("no".into()));
    let error = Theater::builder().listen(address.to_string()).system(fails).start().unwrap_err();
    assert!(error.to_string().contains("`on_start` has failed: no"), "{error}");
    // The address is free again.
    Theater::builder().listen(address.to_string()).start().unwrap().shutdown().unwrap();
}

#[test]
fn an_invalid_address_is_answered_with_an_example_of_a_valid_one() {
    let here = theater();
    for wrong in [
        "nonsense",
        "127.0.0.1",
        "127.0.0.1:70000",
        "playhouse://127.0.0.1",
        "playhouse://127.0.0.1:1/name",
        "http://x:1",
        "",
    ] {
        let connected = here.connect(wrong).unwrap_err().to_string();
        let listening = Theater::builder().listen(wrong).start().unwrap_err().to_string();
        for words in [connected, listening] {
            assert!(words.starts_with(wrong) && words.contains("HOST:PORT") && words.contains("65,535"), "{words}");
        }
    }
    here.shutdown().unwrap();
}
