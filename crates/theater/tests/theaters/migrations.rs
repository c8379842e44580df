//! Actors that migrate between theaters in one process, over the loopback.

mod evacuated;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::clerks::{Clerk, Entry, Sum, Write, ask, theaters};
use crate::faulty::{Between, Fault, eventually};
use crate::support::{LIMIT, theater};
use playhouse_actor::*;
use playhouse_theater::{Peer, Theater};
use serde::{Deserialize, Serialize};

/// Keeps its messages by their senders, in order.
#[derive(Serialize, Deserialize, Default)]
struct Ledger {
    last: HashMap<u32, u64>,
    taken: u64,
    wrong: Vec<(u32, u64, u64)>,
    arrivals: u32,
    departures: u32,
    stays: u32,
    ticks: u32,
    /// Theaters that it goes to by itself, after this number of messages each time.
    tour: Vec<std::net::SocketAddr>,
    every: u64,
    /// Number of times that it migrates on as soon as it has arrived.
    restless: u32,
    extra: Vec<u8>,
}

impl Ledger {
    fn go_on(&mut self, ctx: &mut Context<Self>) {
        let next = self.tour.remove(0);
        self.tour.push(next);
        ctx.migrate_to(next);
    }
}

#[derive(Serialize, Deserialize, Clone)]
struct Tick;
remote_message!(Tick -> ());

#[derive(Serialize, Deserialize)]
struct Ticks;
remote_message!(Ticks -> u32);

#[derive(Serialize, Deserialize)]
struct StartTicking;
remote_message!(StartTicking -> ());

#[derive(Serialize, Deserialize)]
struct GetRef;
remote_message!(GetRef -> ActorRef<Ledger>);

#[derive(Serialize, Deserialize)]
struct Hooks;
remote_message!(Hooks -> (u32, u32, u32));

#[derive(Serialize, Deserialize)]
struct WhichLife;
remote_message!(WhichLife -> u64);

#[derive(Serialize, Deserialize)]
struct GoTo(std::net::SocketAddr);
remote_message!(GoTo -> ());

impl Actor for Ledger {
    fn migrating(&mut self, _: &mut Context<Self>) {
        self.departures += 1;
    }

    fn migrated(&mut self, ctx: &mut Context<Self>) {
        self.arrivals += 1;
        if self.restless > 0 {
            self.restless -= 1;
            self.go_on(ctx);
        }
    }

    fn migration_failed(&mut self, _: MigrateError, _: &mut Context<Self>) {
        self.stays += 1;
    }
}
impl Handler<Entry> for Ledger {
    fn handle(&mut self, entry: Entry, ctx: &mut Context<Self>) {
        let last = self.last.entry(entry.from).or_default();
        if entry.number != *last + 1 {
            self.wrong.push((entry.from, *last, entry.number));
        }
        *last = entry.number;
        self.taken += 1;
        if !self.tour.is_empty() && self.taken.is_multiple_of(self.every) {
            self.go_on(ctx);
        }
    }
}
impl Handler<Sum> for Ledger {
    fn handle(&mut self, _: Sum, _: &mut Context<Self>) -> (u64, Vec<(u32, u64, u64)>, u32) {
        (self.taken, self.wrong.clone(), self.arrivals)
    }
}
impl Handler<Tick> for Ledger {
    fn handle(&mut self, _: Tick, _: &mut Context<Self>) {
        self.ticks += 1;
    }
}
impl Handler<Ticks> for Ledger {
    fn handle(&mut self, _: Ticks, _: &mut Context<Self>) -> u32 {
        self.ticks
    }
}
impl Handler<StartTicking> for Ledger {
    fn handle(&mut self, _: StartTicking, ctx: &mut Context<Self>) {
        ctx.send_every(Duration::from_millis(2), Tick);
        ctx.send_after(Duration::from_millis(30), Entry { from: 9, number: 1 });
    }
}
impl Handler<GetRef> for Ledger {
    fn handle(&mut self, _: GetRef, ctx: &mut Context<Self>) -> ActorRef<Ledger> {
        ctx.this()
    }
}
impl Handler<Hooks> for Ledger {
    fn handle(&mut self, _: Hooks, _: &mut Context<Self>) -> (u32, u32, u32) {
        (self.departures, self.arrivals, self.stays)
    }
}
impl Handler<GoTo> for Ledger {
    fn handle(&mut self, GoTo(theater): GoTo, ctx: &mut Context<Self>) {
        ctx.migrate_to(theater);
    }
}
impl Handler<WhichLife> for Ledger {
    fn handle(&mut self, _: WhichLife, ctx: &mut Context<Self>) -> u64 {
        ctx.incarnation()
    }
}
remote!(mobile Ledger: Entry, Sum, Tick, Ticks, StartTicking, GetRef, Hooks, WhichLife, GoTo);

/// Returns the ledger as it is known in `theater`.
fn known_in(theater: &Theater, home: &Theater, name: &str) -> ActorRef<Ledger> {
    theater.find(&format!("playhouse://{}/{name}", home.address().unwrap())).wait().unwrap()
}

// GUARANTEE: An actor migrates completely
#[test]
fn an_actor_moves_with_its_state_and_references_to_it_stay_good() {
    let (theaters, peers) = theaters(3);
    let [a, b, c] = &theaters[..] else { unreachable!() };
    let ledger = a.system().spawn(Ledger::default());
    a.publish("ledger", ledger).unwrap();
    let (in_b, in_c) = (known_in(b, a, "ledger"), known_in(c, a, "ledger"));
    ask(ledger, Entry { from: 1, number: 1 });
    ask(in_c, Entry { from: 2, number: 1 });

    a.migrate(ledger, peers[0][1].as_ref().unwrap()).wait().unwrap();
    ask(in_b, Entry { from: 3, number: 1 });
    ask(ledger, Entry { from: 1, number: 2 });
    ask(in_c, Entry { from: 2, number: 2 });
    assert_eq!(ask(in_b, Sum), (5, vec![], 1));
    assert_eq!(ask(ledger, Hooks), (1, 1, 0));
    assert_eq!(a.migrate(ledger, peers[0][1].as_ref().unwrap()).wait(), Err(MigrateError::Elsewhere));

    // On to c, and home again; each theater has one reference to it, regardless of the sender.
    b.migrate(in_b, peers[1][2].as_ref().unwrap()).wait().unwrap();
    assert_eq!(ask(ledger, GetRef), ledger);
    assert_eq!(ask(in_b, GetRef), in_b);
    assert_eq!(ask(in_c, GetRef), in_c);
    assert_eq!(known_in(c, a, "ledger"), in_c);
    c.migrate(in_c, peers[2][0].as_ref().unwrap()).wait().unwrap();
    ask(in_c, Entry { from: 2, number: 3 });
    assert_eq!(ask(in_c, GetRef), in_c);
    assert_eq!(ask(ledger, Sum), (6, vec![], 3));
    assert_eq!(ask(in_b, Sum).0, 6);
}

/// Lets clerks in three theaters write into a ledger that migrates around between the theaters.
fn migrate_around(theaters: &[Theater], entries: u64, every: u64, bytes: usize) {
    let ledger = Ledger { tour: round(theaters), every, extra: vec![7; bytes], ..Ledger::default() };
    let arrivals = write_into(theaters, ledger, entries);
    // Every `every` messages order a migration, which begins unless one is in progress.
    let sent_away = 9 * entries / every;
    assert!(u64::from(arrivals) > sent_away / 10, "it has moved {arrivals} times only, of {sent_away}");
}

fn round(theaters: &[Theater]) -> Vec<std::net::SocketAddr> {
    let addresses: Vec<_> = theaters.iter().map(|theater| theater.address().unwrap()).collect();
    vec![addresses[1], addresses[2], addresses[0], addresses[2], addresses[1], addresses[0]]
}

/// Returns the number of its migrations when everything is written.
fn write_into(theaters: &[Theater], ledger: Ledger, entries: u64) -> u32 {
    let restless = ledger.restless;
    let ledger = theaters[0].system().spawn(ledger);
    if restless > 0 {
        ledger.tell(GoTo(theaters[1].address().unwrap()));
    }
    theaters[0].replace("ledger", ledger);
    let (done, finished) = mpsc::channel();
    let mut clerks = 0;
    for theater in theaters {
        let to = known_in(theater, &theaters[0], "ledger");
        for _ in 0..3 {
            clerks += 1;
            let clerk = Clerk { to, number: clerks, sent: 0, total: entries, done: done.clone() };
            theater.system().spawn(clerk).tell(Write);
        }
    }
    for _ in 0..clerks {
        finished.recv_timeout(LIMIT).unwrap();
    }
    // Everything was sent, but may still be in transit.
    let (_, wrong, arrivals) = eventually(|| {
        let sum = ask(ledger, Sum);
        (sum.0 >= u64::from(clerks) * entries && (restless == 0 || sum.2 > restless)).then_some(sum)
    });
    assert_eq!(wrong, vec![], "out of order, after {arrivals} arrivals");
    arrivals
}

// GUARANTEE: Order holds while actors migrate
#[test]
fn nothing_is_lost_repeated_or_reordered_while_the_receiver_moves() {
    migrate_around(&theaters(3).0, 3_000, 20, 0);
}

#[test]
fn an_actor_that_is_never_idle_is_written_to_in_order() {
    let (theaters, _peers) = theaters(3);
    for moves in [6, 60, 600] {
        let mut tour = round(&theaters);
        tour.rotate_left(1);
        let ledger = Ledger { tour, every: u64::MAX, restless: moves, ..Ledger::default() };
        // Few actors write to it in between; without writers it need not wait.
        assert_eq!(write_into(&theaters, ledger, 30), moves + 1);
    }
}

// GUARANTEE: An actor migrates completely
#[test]
fn a_large_actor_moves_under_load() {
    migrate_around(&theaters(3).0, 600, 200, 1 << 20);
}

// GUARANTEE: Order holds while actors migrate
#[test]
fn an_actor_moves_while_connections_are_cut() {
    for seed in 0..4 {
        let theaters: Vec<Theater> = (0..3).map(|_| theater()).collect();
        let mut betweens = Vec::new();
        for (number, from) in theaters.iter().enumerate() {
            for to in &theaters[number + 1..] {
                let seed = seed * 3 + betweens.len() as u64;
                let between = Between::new(to.address().unwrap(), seed, Fault::Cut(1..200_000));
                from.connect(between.address()).unwrap();
                betweens.push(between);
            }
        }
        migrate_around(&theaters, 1_500, 50, 2_000);
        assert!(betweens.iter().map(Between::faults).sum::<usize>() > 0, "nothing was cut");
    }
}

/// Reports the end of a ledger.
struct Watch(ActorRef<Ledger>, mpsc::Sender<StopReason>);
impl Actor for Watch {
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.watch(self.0);
    }

    fn terminated(&mut self, terminated: Terminated, _: &mut Context<Self>) {
        let _ = self.1.send(terminated.reason);
    }
}

// GUARANTEE: An actor migrates completely
#[test]
fn timers_watchers_and_the_name_move_along() {
    let (theaters, peers) = theaters(3);
    let [a, b, c] = &theaters[..] else { unreachable!() };
    let ledger = a.system().spawn_with(SpawnOptions::new().name("main"), Ledger::default());
    a.publish("ledger", ledger).unwrap();
    let (in_b, in_c) = (known_in(b, a, "ledger"), known_in(c, a, "ledger"));
    let (ended, ends) = mpsc::channel();
    for (theater, known) in [(a, ledger), (b, in_b), (c, in_c)] {
        theater.system().spawn(Watch(known, ended.clone()));
    }
    ask(ledger, StartTicking);
    a.migrate(ledger, peers[0][1].as_ref().unwrap()).wait().unwrap();
    ask(in_b, GetRef);
    b.migrate(in_b, peers[1][2].as_ref().unwrap()).wait().unwrap();
    // It ticks in c, and the single message is sent once.
    let before = ask(in_c, Ticks);
    eventually(|| (ask(in_c, Ticks) >= before + 5 && ask(in_c, Sum).0 > 0).then_some(()));
    assert_eq!(ask(in_c, Sum), (1, vec![], 2));
    assert!(format!("{in_c}").contains("\"main\""), "{in_c}");

    // Nothing depends on the theaters that it has left.
    ask(ledger, GetRef);
    ask(in_b, GetRef);
    in_b.stop();
    for _ in 0..3 {
        assert_eq!(ends.recv_timeout(LIMIT).unwrap(), StopReason::Stopped);
    }
}

#[test]
fn a_watcher_of_an_actor_that_comes_home_is_told_of_its_end_once() {
    let (theaters, peers) = theaters(2);
    let [a, b] = &theaters[..] else { unreachable!() };
    let ledger = a.system().spawn(Ledger::default());
    a.publish("ledger", ledger).unwrap();
    let in_b = known_in(b, a, "ledger");
    let (ended, ends) = mpsc::channel();
    let watch = a.system().spawn(Watch(ledger, ended));
    a.system().run_until_idle();
    // No local actor writes to it while it is in the other theater.
    a.migrate(ledger, peers[0][1].as_ref().unwrap()).wait().unwrap();
    b.migrate(in_b, peers[1][0].as_ref().unwrap()).wait().unwrap();
    assert_eq!(ask(ledger, Hooks), (2, 2, 0));
    ledger.stop();
    assert_eq!(ends.recv_timeout(LIMIT).unwrap(), StopReason::Stopped);
    a.system().run_until_idle();
    watch.stop();
    assert_eq!(ends.recv_timeout(LIMIT), Err(mpsc::RecvTimeoutError::Disconnected), "told twice");
}

/// Watches ledgers, and migrates too.
#[derive(Serialize, Deserialize, Default)]
struct Sentry(Vec<(ActorRef<Ledger>, String)>);

#[derive(Serialize, Deserialize)]
struct Guard(ActorRef<Ledger>);
remote_message!(Guard -> ());

#[derive(Serialize, Deserialize)]
struct Leave(ActorRef<Ledger>);
remote_message!(Leave -> ());

#[derive(Serialize, Deserialize)]
struct Told;
remote_message!(Told -> Vec<(ActorRef<Ledger>, String)>);

impl Actor for Sentry {
    fn terminated(&mut self, terminated: Terminated, _: &mut Context<Self>) {
        let known = self.0.iter().position(|(who, reason)| who.id() == terminated.who && reason.is_empty());
        let at = known.expect("it is told once of those that it watches, by the references that it has");
        self.0[at].1 = terminated.reason.to_string();
    }
}
impl Handler<Guard> for Sentry {
    fn handle(&mut self, Guard(who): Guard, ctx: &mut Context<Self>) {
        ctx.watch(who);
        self.0.push((who, String::new()));
    }
}
impl Handler<Leave> for Sentry {
    fn handle(&mut self, Leave(who): Leave, ctx: &mut Context<Self>) {
        ctx.unwatch(who);
        self.0.retain(|(watched, _)| *watched != who);
    }
}
impl Handler<Told> for Sentry {
    fn handle(&mut self, _: Told, _: &mut Context<Self>) -> Vec<(ActorRef<Ledger>, String)> {
        self.0.clone()
    }
}
remote!(mobile Sentry: Guard, Leave, Told);

// GUARANTEE: Watches migrate with the watcher
#[test]
fn an_actor_that_moves_watches_from_where_it_is() {
    let (mut theaters, peers) = theaters(3);
    // One that lives in each theater, one that migrates, and one that it does not watch any more.
    let homes = [0, 1, 2, 1, 2];
    let ledgers = homes.map(|home| theaters[home].system().spawn(Ledger::default()));
    let sentry = theaters[0].system().spawn(Sentry::default());
    theaters[0].publish("sentry", sentry).unwrap();
    let mut known = Vec::new();
    for (nth, (home, ledger)) in homes.into_iter().zip(ledgers).enumerate() {
        theaters[home].publish(format!("ledger {nth}"), ledger).unwrap();
        known.push(known_in(&theaters[0], &theaters[home], &format!("ledger {nth}")));
        sentry.ask(Guard(known[nth])).wait().unwrap();
    }
    let address = |at: usize| theaters[at].address().unwrap();
    let in_b = theaters[1].find::<Sentry>(&format!("playhouse://{}/sentry", address(0))).wait().unwrap();
    let told = |from: ActorRef<Sentry>, ended: usize| {
        eventually(|| {
            let told: Vec<String> = from.ask(Told).wait().unwrap().into_iter().map(|(_, reason)| reason).collect();
            (told.iter().filter(|reason| !reason.is_empty()).count() == ended).then_some(told)
        })
    };

    // The sentry's requests to watch from this theater precede this.
    let is_watched = |from: ActorRef<Sentry>, at: usize, nth: usize| {
        from.ask(Told).wait().unwrap();
        ask(known_in(&theaters[at], &theaters[homes[nth]], &format!("ledger {nth}")), Sum);
    };

    theaters[0].migrate(sentry, peers[0][1].as_ref().unwrap()).wait().unwrap();
    theaters[1].migrate(ledgers[3], peers[1][2].as_ref().unwrap()).wait().unwrap();
    sentry.ask(Leave(known[4])).wait().unwrap();
    is_watched(in_b, 1, 0);
    ledgers[4].stop();
    ledgers[0].stop();
    assert_eq!(told(in_b, 1), ["it was stopped", "", "", ""]);
    // It goes home, and is notified of ends in all theaters.
    theaters[1].migrate(in_b, peers[1][0].as_ref().unwrap()).wait().unwrap();
    is_watched(sentry, 0, 1);
    ledgers[1].stop();
    assert_eq!(told(sentry, 2), ["it was stopped", "it was stopped", "", ""]);
    // Nothing depends on the theater that it has left.
    theaters[0].migrate(sentry, peers[0][1].as_ref().unwrap()).wait().unwrap();
    is_watched(in_b, 1, 2);
    is_watched(in_b, 1, 3);
    theaters.remove(0).shutdown().unwrap();
    ledgers[2].stop();
    ledgers[3].kill();
    assert_eq!(told(in_b, 4), ["it was stopped", "it was stopped", "it was stopped", "it was killed"]);
}

// GUARANTEE: Watches migrate with the watcher
#[test]
fn a_migrating_actor_is_told_once_of_each_end_that_it_watches() {
    let (theaters, peers) = theaters(2);
    let [a, b] = &theaters[..] else { unreachable!() };
    let sentry = a.system().spawn(Sentry::default());
    a.publish("sentry", sentry).unwrap();
    let in_b = b.find::<Sentry>(&format!("playhouse://{}/sentry", a.address().unwrap())).wait().unwrap();
    for round in 0..50 {
        let ledger = a.system().spawn(Ledger::default());
        sentry.ask(Guard(ledger)).wait().unwrap();
        let (from, which, peer) = if round % 2 == 0 { (a, sentry, &peers[0][1]) } else { (b, in_b, &peers[1][0]) };
        let moved = from.migrate(which, peer.as_ref().unwrap());
        ledger.stop();
        moved.wait().unwrap();
        eventually(|| sentry.ask(Told).wait().unwrap().iter().all(|(_, reason)| !reason.is_empty()).then_some(()));
    }
    // The sentry panics at a second notification.
    let reasons = sentry.ask(Told).wait().unwrap().into_iter().map(|(_, reason)| reason);
    assert!(reasons.clone().all(|reason| reason == "it was stopped" || reason == "it had ended before it was watched"));
    assert_eq!(reasons.count(), 50);
}

/// Its state cannot be written.
#[derive(Deserialize)]
struct Stubborn;
impl Serialize for Stubborn {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("it will not"))
    }
}
impl Actor for Stubborn {}
impl Handler<Ticks> for Stubborn {
    fn handle(&mut self, _: Ticks, _: &mut Context<Self>) -> u32 {
        1
    }
}
remote!(mobile Stubborn: Ticks);

// GUARANTEE: An actor that cannot migrate stays
#[test]
fn an_actor_that_cannot_go_stays_as_it_was() {
    let (theaters, peers) = theaters(2);
    let [a, _] = &theaters[..] else { unreachable!() };
    let to_b = peers[0][1].as_ref().unwrap();
    let stubborn = a.system().spawn(Stubborn);
    let Err(MigrateError::Unwritable(why)) = a.migrate(stubborn, to_b).wait() else { panic!("it has gone") };
    assert!(why.contains("it will not"), "{why}");
    assert_eq!(stubborn.ask(Ticks).wait(), Ok(1));

    let large = a.system().spawn(Ledger { extra: vec![0; 32 << 20], ..Ledger::default() });
    let why = a.migrate(large, to_b).wait().unwrap_err();
    assert!(matches!(&why, MigrateError::Unwritable(why) if why.contains("bytes")), "{why}");
    assert_eq!(ask(large, Hooks), (1, 0, 1));

    let nowhere = a.system().spawn(Ledger::default());
    ask(nowhere, GoTo("127.0.0.1:1".parse().unwrap()));
    eventually(|| (ask(nowhere, Hooks) == (0, 0, 1)).then_some(()));

    let ended = a.system().spawn(Ledger::default());
    ended.drain();
    eventually(|| ended.is_stopped().then_some(()));
    assert_eq!(a.migrate(ended, to_b).wait(), Err(MigrateError::Stopped));
}

/// Knows a ledger.
#[derive(Serialize, Deserialize)]
struct Holder(ActorRef<Ledger>);
#[derive(Serialize, Deserialize)]
struct Held;
remote_message!(Held -> ActorRef<Ledger>);
impl Actor for Holder {}
impl Handler<Held> for Holder {
    fn handle(&mut self, _: Held, _: &mut Context<Self>) -> ActorRef<Ledger> {
        self.0
    }
}
remote!(mobile Holder: Held);

#[test]
fn an_actor_that_knows_one_that_has_ended_can_go_all_the_same() {
    let (theaters, peers) = theaters(3);
    let [a, b, c] = &theaters[..] else { unreachable!() };
    let ledger = b.system().spawn(Ledger::default());
    b.publish("ledger", ledger).unwrap();
    let holder = c.system().spawn(Holder(known_in(c, b, "ledger")));
    c.publish("holder", holder).unwrap();
    let name = format!("playhouse://{}/holder", c.address().unwrap());
    let in_a = a.find::<Holder>(&name).wait().unwrap();
    ledger.stop();
    while !ledger.is_stopped() {
        std::thread::yield_now();
    }
    // The theater c did not know it before its end.
    c.migrate(holder, peers[2][0].as_ref().unwrap()).wait().unwrap();
    a.migrate(in_a, peers[0][1].as_ref().unwrap()).wait().unwrap();
    let held = in_a.ask(Held).within(LIMIT).wait().unwrap();
    assert_eq!(held.ask(Sum).within(LIMIT).wait(), Err(AskError::Stopped));
}

/// Goes back to the previous theater as soon as it has arrived.
#[derive(Serialize, Deserialize)]
struct Shuttle {
    stops: [std::net::SocketAddr; 2],
    moves: u32,
    until: u32,
    stayed: Option<String>,
    load: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Shuttled;
remote_message!(Shuttled -> (u32, Option<String>));

#[derive(Serialize, Deserialize)]
struct Begin;
remote_message!(Begin -> ());

impl Actor for Shuttle {
    fn migrated(&mut self, ctx: &mut Context<Self>) {
        self.moves += 1;
        if self.moves < self.until {
            ctx.migrate_to(self.stops[(self.moves as usize + 1) % 2]);
        }
    }

    fn migration_failed(&mut self, why: MigrateError, _: &mut Context<Self>) {
        self.stayed = Some(why.to_string());
    }
}
impl Handler<Begin> for Shuttle {
    fn handle(&mut self, _: Begin, ctx: &mut Context<Self>) {
        ctx.migrate_to(self.stops[1]);
    }
}
impl Handler<Shuttled> for Shuttle {
    fn handle(&mut self, _: Shuttled, _: &mut Context<Self>) -> (u32, Option<String>) {
        (self.moves, self.stayed.clone())
    }
}
remote!(mobile Shuttle: Begin, Shuttled);

#[test]
fn an_actor_that_has_come_back_has_another_incarnation() {
    let (theaters, peers) = theaters(2);
    let [a, b] = &theaters[..] else { unreachable!() };
    let ledger = a.system().spawn(Ledger::default());
    a.publish("ledger", ledger).unwrap();
    let in_b = known_in(b, a, "ledger");
    let mut lives = vec![ask(ledger, WhichLife)];
    for _ in 0..2 {
        a.migrate(ledger, peers[0][1].as_ref().unwrap()).wait().unwrap();
        ask(in_b, WhichLife);
        b.migrate(in_b, peers[1][0].as_ref().unwrap()).wait().unwrap();
        lives.push(ask(ledger, WhichLife));
    }
    assert!(lives.is_sorted_by(|one, next| one < next), "{lives:?}");
}

#[test]
fn an_actor_goes_straight_back() {
    let (theaters, _peers) = theaters(2);
    let stops = [theaters[0].address().unwrap(), theaters[1].address().unwrap()];
    for bytes in [0, 1 << 20] {
        let until = if bytes == 0 { 2_000 } else { 50 };
        let shuttles: Vec<_> = (0..4)
            .map(|_| {
                let load = vec![7; bytes];
                theaters[0].system().spawn(Shuttle { stops, moves: 0, until, stayed: None, load })
            })
            .collect();
        for shuttle in &shuttles {
            shuttle.tell(Begin);
        }
        let started = std::time::Instant::now();
        for shuttle in shuttles {
            loop {
                let (moves, stayed) = shuttle.ask(Shuttled).within(LIMIT).wait().unwrap();
                assert_eq!(stayed, None, "after {moves} moves");
                if moves == until {
                    break;
                }
                assert!(started.elapsed() < LIMIT, "after {moves} moves");
            }
        }
    }
}

/// The cell that the actor has come to may learn of it a moment after the theater that it has left.
#[test]
fn an_actor_whose_migration_has_ended_can_be_sent_on_at_once() {
    let steps = std::env::var("ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1_000);
    let (theaters, peers) = theaters(2);
    let stops = [0, 1].map(|at| theaters[at].address().unwrap());
    let shuttle = theaters[0].system().spawn(Shuttle { stops, moves: 0, until: 0, stayed: None, load: Vec::new() });
    theaters[0].publish("shuttle", shuttle).unwrap();
    let there = theaters[1].find::<Shuttle>(&format!("playhouse://{}/shuttle", stops[0])).wait().unwrap();
    let clerks = [0, 1].map(|at| {
        let clerk = theaters[at].system().spawn(Ledger::default());
        theaters[at].publish("clerk", clerk).unwrap();
        known_in(&theaters[1 - at], &theaters[at], "clerk")
    });
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Other workers write to the link in between. They also send answers earlier than the worker that has read the requests.
        for (clerk, ends) in clerks.into_iter().zip([&ends; 2]) {
            scope.spawn(move || {
                while !ends.load(Ordering::Relaxed) {
                    ask(clerk, WhichLife);
                }
            });
        }
        let moved = (0..steps).try_for_each(|step| {
            let (at, known, from_afar) = if step % 2 == 0 { (0, shuttle, there) } else { (1, there, shuttle) };
            if step % 3 > 0 {
                // Its answer comes back after this.
                drop(ask(from_afar, Shuttled));
            }
            theaters[at].migrate(known, peers[at][1 - at].as_ref().unwrap()).wait().map_err(|why| (step, why))
        });
        ends.store(true, Ordering::Relaxed);
        assert_eq!(moved, Ok(()));
    });
}
