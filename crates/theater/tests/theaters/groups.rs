//! Groups that migrate between theaters in one process, over the loopback.

use std::collections::HashMap;
use std::sync::mpsc;
use std::time::Duration;

use crate::clerks::{Clerk, Entry, Sum, Write, ask, theaters};
use crate::faulty::{Between, Fault, eventually};
use crate::support::theater;
use playhouse_actor::*;
use playhouse_theater::{Peer, Simulation, Theater};
use serde::{Deserialize, Serialize};

/// Keeps its messages by their senders, in order, and knows another member.
#[derive(Serialize, Deserialize, Default)]
struct Member {
    last: HashMap<u32, u64>,
    taken: u64,
    wrong: Vec<(u32, u64, u64)>,
    arrivals: u32,
    stays: Vec<String>,
    friend: Option<ActorRef<Member>>,
    unreadable: Unreadable,
}

/// If true, its owner can be written, and not read.
#[derive(Clone, Copy, Default, Serialize, PartialEq)]
struct Unreadable(bool);

impl<'de> Deserialize<'de> for Unreadable {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if bool::deserialize(deserializer)? {
            Err(serde::de::Error::custom("it will not"))
        } else {
            Ok(Unreadable(false))
        }
    }
}

/// Answered with the system and the stage that it is in.
#[derive(Serialize, Deserialize)]
struct Place;
remote_message!(Place -> (u16, u16));

#[derive(Serialize, Deserialize)]
struct Stays;
remote_message!(Stays -> Vec<String>);

#[derive(Serialize, Deserialize)]
struct Befriend(ActorRef<Member>);
remote_message!(Befriend -> ());

/// Asks its friend this number of times, and awaits each answer.
#[derive(Serialize, Deserialize)]
struct Chat(u32);
remote_message!(Chat -> ());

/// Starts another member in its group.
#[derive(Serialize, Deserialize)]
struct Bear;
remote_message!(Bear -> ActorRef<Member>);

/// Sends this number of entries to its friend.
#[derive(Serialize, Deserialize)]
struct Relay(u64);
remote_message!(Relay -> ());

#[derive(Serialize, Deserialize)]
struct GoTo(std::net::SocketAddr);
remote_message!(GoTo -> ());

impl Actor for Member {
    fn migrated(&mut self, _: &mut Context<Self>) {
        self.arrivals += 1;
    }

    fn migration_failed(&mut self, why: MigrateError, _: &mut Context<Self>) {
        self.stays.push(why.to_string());
    }
}
impl Handler<Entry> for Member {
    fn handle(&mut self, entry: Entry, _: &mut Context<Self>) {
        let last = self.last.entry(entry.from).or_default();
        if entry.number != *last + 1 {
            self.wrong.push((entry.from, *last, entry.number));
        }
        *last = entry.number;
        self.taken += 1;
    }
}
impl Handler<Sum> for Member {
    fn handle(&mut self, _: Sum, _: &mut Context<Self>) -> (u64, Vec<(u32, u64, u64)>, u32) {
        (self.taken, self.wrong.clone(), self.arrivals)
    }
}
fn here<A: Actor>(ctx: &Context<A>) -> (u16, u16) {
    (ctx.system().core().id(), ctx.this().id().address().stage())
}
impl Handler<Place> for Member {
    fn handle(&mut self, _: Place, ctx: &mut Context<Self>) -> (u16, u16) {
        here(ctx)
    }
}
impl Handler<Stays> for Member {
    fn handle(&mut self, _: Stays, _: &mut Context<Self>) -> Vec<String> {
        self.stays.clone()
    }
}
impl Handler<Befriend> for Member {
    fn handle(&mut self, Befriend(friend): Befriend, _: &mut Context<Self>) {
        self.friend = Some(friend);
    }
}
impl AsyncHandler<Chat> for Member {
    async fn handle(&mut self, Chat(times): Chat, ctx: &mut Context<Self>) {
        let friend = self.friend.expect("it has one");
        self.taken += u64::from(friend.ask(Sum).await.is_ok());
        if times > 1 {
            ctx.this().tell(Chat(times - 1));
        }
    }
}
impl Handler<Bear> for Member {
    fn handle(&mut self, _: Bear, ctx: &mut Context<Self>) -> ActorRef<Member> {
        let group = ctx.group();
        ctx.spawn_with(SpawnOptions::new().placement(Placement::Group(group)), Member::default())
    }
}
impl Handler<Relay> for Member {
    fn handle(&mut self, Relay(entries): Relay, _: &mut Context<Self>) {
        for _ in 0..entries {
            self.taken += 1;
            self.friend.expect("it has one").tell(Entry { from: 0, number: self.taken });
        }
    }
}
impl Handler<GoTo> for Member {
    fn handle(&mut self, GoTo(theater): GoTo, ctx: &mut Context<Self>) {
        ctx.migrate_to(theater);
    }
}
remote!(mobile Member: Entry, Sum, Place, Stays, Befriend, Chat, Bear, Relay, GoTo);

/// Cannot move.
struct Fixed;
impl Actor for Fixed {}
impl Handler<Place> for Fixed {
    fn handle(&mut self, _: Place, ctx: &mut Context<Self>) -> (u16, u16) {
        here(ctx)
    }
}

/// Never answers.
struct Silent;
impl Actor for Silent {}
impl AsyncHandler<Place> for Silent {
    async fn handle(&mut self, _: Place, _: &mut Context<Self>) -> (u16, u16) {
        std::future::pending().await
    }
}

/// Waits for this time for an actor that does not answer, again and again.
#[derive(Serialize, Deserialize)]
struct Waits(Duration);
#[derive(Serialize, Deserialize)]
struct Wait;
remote_message!(Wait -> ());
impl Actor for Waits {
    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.this().tell(Wait);
    }
}
impl AsyncHandler<Wait> for Waits {
    async fn handle(&mut self, _: Wait, ctx: &mut Context<Self>) {
        let silent = ctx.spawn(Silent);
        let _ = silent.ask(Place).within(self.0).await;
        silent.kill();
        ctx.this().tell(Wait);
    }
}
remote!(mobile Waits: Wait);

fn grouped(group: Group) -> SpawnOptions {
    SpawnOptions::new().placement(Placement::Group(group))
}

/// Starts members of a group, which are published as `0`, `1` and so on.
fn members(home: &Theater, group: Group, count: usize) -> Vec<ActorRef<Member>> {
    let start = |nth: usize| {
        let member = home.system().spawn_with(grouped(group), Member::default());
        home.replace(nth.to_string(), member);
        member
    };
    (0..count).map(start).collect()
}

/// Returns the members as they are known in `theater`.
fn known_in(theater: &Theater, home: &Theater, count: usize) -> Vec<ActorRef<Member>> {
    let name = |nth| format!("playhouse://{}/{nth}", home.address().unwrap());
    (0..count).map(|nth| theater.find(&name(nth)).wait().unwrap()).collect()
}

/// Returns the one system and stage that all of them are in.
fn location(members: &[ActorRef<Member>]) -> (u16, u16) {
    let mut locations: Vec<(u16, u16)> = members.iter().map(|member| ask(*member, Place)).collect();
    locations.dedup();
    assert_eq!(locations.len(), 1, "they are apart");
    locations[0]
}

fn system(theater: &Theater) -> u16 {
    theater.system().core().id()
}

// GUARANTEE: A group migrates as one
#[test]
fn a_group_moves_as_one_and_shares_a_stage_wherever_it_is() {
    let (theaters, peers) = theaters(3);
    let [a, b, c] = &theaters[..] else { unreachable!() };
    let group = Group::new(a.system());
    let in_a = members(a, group, 6);
    // In b, others come between. The theater c learns of them when they are in b, and of some only from b.
    let in_b: Vec<_> = known_in(b, a, 6);
    for member in &in_a {
        ask(*member, Entry { from: 1, number: 1 });
    }
    a.migrate_group(group, peers[0][1].as_ref().unwrap()).wait().unwrap();
    assert_eq!(location(&in_a).0, system(b));
    assert_eq!(b.group_of(in_b[0]), b.group_of(in_b[5]));
    let in_c = known_in(c, a, 6);
    assert_eq!(location(&in_c), location(&in_b));
    for (member, nth) in in_c.iter().zip(0..) {
        ask(*member, Entry { from: 1, number: 2 });
        assert_eq!(ask(in_a[nth], Sum), (2, vec![], 1));
    }

    // One of them gets the order to migrate, and all migrate.
    ask(in_a[3], GoTo(c.address().unwrap()));
    eventually(|| (ask(in_a[5], Sum).2 == 2).then_some(()));
    assert_eq!(location(&in_b).0, system(c));
    // Home again, to the stage that they were started on.
    let in_c_group = c.group_of(in_c[0]).unwrap();
    c.migrate_group(in_c_group, peers[2][0].as_ref().unwrap()).wait().unwrap();
    let home = location(&in_c);
    assert_eq!(home, (system(a), in_a[0].id().address().stage()));
    for member in in_b {
        assert_eq!(ask(member, Sum), (2, vec![], 3));
    }
    assert_eq!(c.migrate_group(in_c_group, peers[2][0].as_ref().unwrap()).wait(), Err(MigrateError::Elsewhere));
}

// GUARANTEE: A group migrates as one
#[test]
fn a_child_of_a_member_joins_the_group_and_a_remote_member_stays_behind() {
    let (theaters, peers) = theaters(3);
    let [a, b, c] = &theaters[..] else { unreachable!() };
    let group = Group::new(a.system());
    let mut all = members(a, group, 2);
    all.push(ask(all[0], Bear));
    a.migrate_group(group, peers[0][1].as_ref().unwrap()).wait().unwrap();
    // It was started in b, and comes to a from b, as a reference and after that as itself.
    all.push(ask(all[1], Bear));
    assert_eq!(location(&all).0, system(b));
    let in_b = b.group_of(known_in(b, a, 1)[0]).unwrap();
    b.migrate_group(in_b, peers[1][2].as_ref().unwrap()).wait().unwrap();
    assert_eq!(location(&all).0, system(c));

    // The value of the group that was kept in a: a member started with it lives in a, and follows the others after an order.
    let late = a.system().spawn_with(grouped(group), Member::default());
    assert_eq!(ask(late, Place).0, system(a));
    assert_eq!(location(&all).0, system(c));
    a.migrate(late, peers[0][2].as_ref().unwrap()).wait().unwrap();
    all.push(late);
    assert_eq!(location(&all).0, system(c));
    ask(late, GoTo(a.address().unwrap()));
    eventually(|| (ask(all[0], Place).0 == system(a)).then_some(()));
    assert_eq!(location(&all), (system(a), late.id().address().stage()));
}

// GUARANTEE: A group migrates as one
#[test]
fn a_group_with_a_member_that_cannot_migrate_stays_and_works_on() {
    let (theaters, peers) = theaters(2);
    let [a, b] = &theaters[..] else { unreachable!() };
    let to_b = peers[0][1].as_ref().unwrap();
    let stays = |members: &[ActorRef<Member>], times: usize, expected: &str| {
        assert_eq!(location(members).0, system(a));
        for member in members {
            assert_eq!(ask(*member, Sum), (0, vec![], 0));
            let stays = ask(*member, Stays);
            assert_eq!(stays.len(), times, "{stays:?}");
            assert!(stays.iter().all(|why| why.contains(expected)), "{stays:?}");
        }
    };

    // It is not mobile.
    let group = Group::new(a.system());
    let all = members(a, group, 4);
    let known = known_in(b, a, 4);
    let fixed = a.system().spawn_with(grouped(group).name("door"), Fixed);
    let why = a.migrate_group(group, to_b).wait().unwrap_err();
    let MigrateError::Member { who, why } = why else { panic!("{why}") };
    assert_eq!((&*who, *why), ("Fixed \"door\"", MigrateError::Immobile));
    stays(&all, 1, "Fixed \"door\", of the group, cannot migrate: ");
    assert_eq!(fixed.ask(Place).wait(), Ok(ask(all[0], Place)));
    fixed.stop();
    eventually(|| fixed.is_stopped().then_some(()));
    a.migrate_group(group, to_b).wait().unwrap();
    assert_eq!(location(&known).0, system(b));

    // It is too large to be written, after the others have been.
    let group = Group::new(a.system());
    let all = members(a, group, 3);
    let last = HashMap::from_iter((0..4_000_000).map(|from| (from, u64::MAX)));
    let large = a.system().spawn_with(grouped(group).name("large"), Member { last, ..Member::default() });
    let why = a.migrate_group(group, to_b).wait().unwrap_err();
    assert!(matches!(&why, MigrateError::Member { who, .. } if who == "Member \"large\""), "{why}");
    stays(&all, 1, "\"large\", of the group, cannot migrate: the actor cannot be written");
    large.stop();

    // The other theater cannot read it, after it has read the others.
    let unreadable = Member { unreadable: Unreadable(true), ..Member::default() };
    let odd = a.system().spawn_with(grouped(group).name("odd"), unreadable);
    eventually(|| large.is_stopped().then_some(()));
    let why = a.migrate_group(group, to_b).wait().unwrap_err();
    let MigrateError::Member { who, why } = why else { panic!("{why}") };
    assert_eq!(&*who, "Member \"odd\"");
    assert!(matches!(&*why, MigrateError::Refused(_)), "{why}");
    assert_eq!(location(&all).0, system(a));
    assert!(ask(all[0], Stays)[1].contains("\"odd\", of the group, cannot migrate: the other theater does not take"));
    odd.kill();
    eventually(|| odd.is_stopped().then_some(()));
    a.migrate_group(group, to_b).wait().unwrap();
    assert_eq!(location(&all).0, system(b));
}

// GUARANTEE: A group migrates as one
#[test]
fn an_actor_without_a_group_or_an_empty_group_does_not_migrate() {
    let (theaters, peers) = theaters(2);
    let [a, _] = &theaters[..] else { unreachable!() };
    let to_b = peers[0][1].as_ref().unwrap();
    let alone = a.system().spawn(Member::default());
    let child = ask(alone, Bear);
    assert_eq!((a.group_of(alone), a.group_of(child)), (None, None));
    assert_eq!(ask(alone, Place), ask(child, Place));
    a.migrate(alone, to_b).wait().unwrap();
    assert_ne!(ask(alone, Place).0, ask(child, Place).0);
    assert_eq!(a.migrate_group(Group::new(a.system()), to_b).wait(), Err(MigrateError::Stopped));
    let plain = System::builder().workers(1).start().unwrap();
    assert_eq!(a.migrate_group(Group::new(&plain), to_b).wait(), Err(MigrateError::NoGroup));
}

// GUARANTEE: A group does not block its own migration
#[test]
fn a_group_whose_members_wait_for_each_other_moves() {
    let (theaters, peers) = theaters(2);
    let group = Group::new(theaters[0].system());
    let all = members(&theaters[0], group, 4);
    // A ring would be a cycle of asks now and then.
    for pair in all.windows(2) {
        ask(pair[0], Befriend(pair[1]));
    }
    for member in &all[..3] {
        member.tell(Chat(3_000));
    }
    for turn in 0..20 {
        let (from, to) = (turn % 2, (turn + 1) % 2);
        theaters[from].migrate_group(group, peers[from][to].as_ref().unwrap()).wait().unwrap();
    }
    for member in &all[..3] {
        eventually(|| (ask(*member, Sum).0 == 3_000).then_some(()));
        assert_eq!(ask(*member, Sum).2, 20);
    }
    assert_eq!(location(&all).0, system(&theaters[0]));
}

// GUARANTEE: A group does not block its own migration
#[test]
fn a_migration_awaits_a_briefly_waiting_member_and_names_a_stuck_one() {
    let net = Simulation::new(1);
    let start = || net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap();
    let (a, b) = (start(), start());
    let to_b = a.connect(b.address().unwrap()).unwrap();
    let group = Group::new(a.system());
    let waits = |time: Duration| a.system().spawn_with(grouped(group).name("patient"), Waits(time));
    let one = waits(Duration::from_millis(700));
    net.run_for(Duration::from_millis(300));
    a.migrate_group(group, &to_b).wait().unwrap();

    // At each moment, one of the two waits.
    let group = Group::new(b.system());
    let to_a = b.connect(a.address().unwrap()).unwrap();
    let waits = |time: Duration| b.system().spawn_with(grouped(group).name("patient"), Waits(time));
    let two = [waits(Duration::from_millis(700)), waits(Duration::from_millis(500))];
    net.run_for(Duration::from_millis(300));
    let began = net.now();
    let why = b.migrate_group(group, &to_a).wait().unwrap_err();
    let MigrateError::Member { who, why } = why else { panic!("{why}") };
    assert_eq!((&*who, *why), ("Waits \"patient\"", MigrateError::Busy));
    let took = net.now() - began;
    assert!(took > Duration::from_secs(10) && took < Duration::from_secs(12), "{took:?}");
    two[1].kill();
    net.run_for(Duration::from_millis(1));
    b.migrate_group(group, &to_a).wait().unwrap();
    for waits in [one, two[0]] {
        waits.kill();
    }
    net.run_until_idle();
}

/// Lets clerks in all theaters write to all members while the group migrates around.
fn migrate_around(theaters: &[Theater], peers: &[Vec<Option<Peer>>], entries: u64) {
    const MEMBERS: usize = 4;
    let group = Group::new(theaters[0].system());
    let all = members(&theaters[0], group, MEMBERS);
    let (done, finished) = mpsc::channel();
    let mut clerks = 0;
    for theater in theaters {
        for known in known_in(theater, &theaters[0], MEMBERS) {
            clerks += 1;
            let clerk = Clerk { to: known, number: clerks, sent: 0, total: entries, done: done.clone() };
            theater.system().spawn(clerk).tell(Write);
        }
    }
    let (mut moves, mut at, mut open) = (0, 0, clerks);
    while open > 0 {
        let to = (at + 1 + moves as usize % (theaters.len() - 1)) % theaters.len();
        theaters[at].migrate_group(group, peers[at][to].as_ref().unwrap()).wait().unwrap();
        (at, moves) = (to, moves + 1);
        open -= finished.try_iter().count() as u32;
    }
    for member in &all {
        let taken = u64::from(clerks) / MEMBERS as u64 * entries;
        eventually(|| (ask(*member, Sum).0 == taken).then_some(()));
        assert_eq!(ask(*member, Sum), (taken, vec![], moves));
    }
    assert_eq!(location(&all).0, system(&theaters[at]));
    assert!(moves > 5, "{moves}");
}

// GUARANTEE: Order holds while a group migrates
#[test]
fn nothing_is_lost_repeated_or_reordered_while_a_group_moves() {
    let (theaters, peers) = theaters(3);
    migrate_around(&theaters, &peers, 3_000);
}

/// Makes a member send to another this number of times, one after the other.
struct Prompter {
    to: ActorRef<Member>,
    left: u32,
    done: mpsc::Sender<()>,
}
impl Actor for Prompter {}
impl Handler<Write> for Prompter {
    fn handle(&mut self, _: Write, ctx: &mut Context<Self>) {
        if self.left == 0 {
            let _ = self.done.send(());
            return;
        }
        self.left -= 1;
        ctx.ask(self.to, Relay(RELAYED)).then(|_, answer, ctx| {
            answer.unwrap();
            ctx.this().tell(Write);
        });
    }
}
/// Number of entries that are sent at one time.
const RELAYED: u64 = 5;

// GUARANTEE: Order holds while a group migrates
#[test]
fn messages_between_members_keep_their_order_while_both_migrate() {
    const PROMPTS: u32 = 3_000;
    let (theaters, peers) = theaters(3);
    let group = Group::new(theaters[0].system());
    let all = members(&theaters[0], group, 2);
    ask(all[0], Befriend(all[1]));
    let (done, finished) = mpsc::channel();
    for theater in &theaters {
        let prompter = Prompter { to: known_in(theater, &theaters[0], 1)[0], left: PROMPTS, done: done.clone() };
        theater.system().spawn(prompter).tell(Write);
    }
    let (mut at, mut open) = (0, theaters.len());
    while open > 0 {
        let to = (at + 1) % theaters.len();
        theaters[at].migrate_group(group, peers[at][to].as_ref().unwrap()).wait().unwrap();
        at = to;
        open -= finished.try_iter().count();
    }
    let sent = 3 * u64::from(PROMPTS) * RELAYED;
    eventually(|| (ask(all[1], Sum).0 == sent).then_some(()));
    assert_eq!(ask(all[1], Sum).1, vec![]);
}

// GUARANTEE: Order holds while a group migrates
#[test]
fn a_group_moves_while_connections_are_cut() {
    for seed in 0..4 {
        let theaters: Vec<Theater> = (0..3).map(|_| theater()).collect();
        let mut betweens = Vec::new();
        let mut peers: Vec<Vec<Option<Peer>>> = vec![vec![None; 3]; 3];
        for from in 0..3 {
            for to in from + 1..3 {
                let seed = seed * 3 + betweens.len() as u64;
                let between = Between::new(theaters[to].address().unwrap(), seed, Fault::Cut(1..100_000));
                peers[from][to] = Some(theaters[from].connect(between.address()).unwrap());
                // The existing link.
                peers[to][from] = Some(theaters[to].connect(theaters[from].address().unwrap()).unwrap());
                betweens.push(between);
            }
        }
        migrate_around(&theaters, &peers, 1_500);
        assert!(betweens.iter().map(Between::faults).sum::<usize>() > 0, "nothing was cut");
    }
}

// GUARANTEE: A group migrates as one
#[test]
fn a_theater_is_emptied_of_groups_which_stay_together() {
    let (mut theaters, mut peers) = theaters(3);
    let groups: Vec<Group> = (0..20).map(|_| Group::new(theaters[0].system())).collect();
    let all: Vec<Vec<_>> = groups
        .iter()
        .map(|group| {
            let member = |_| theaters[0].system().spawn_with(grouped(*group), Member::default());
            (0..30).map(member).collect()
        })
        .collect();
    // One of the groups is not on the regular route of the others: it follows those that have left.
    theaters[0].migrate_group(groups[7], peers[0][2].as_ref().unwrap()).wait().unwrap();
    let late = theaters[0].system().spawn_with(grouped(groups[7]), Member::default());
    let to: Vec<Peer> = peers[0].drain(1..).flatten().collect();
    let evacuation = theaters[0].evacuate(&to);
    assert_eq!((evacuation.moved, evacuation.stayed.len()), (19 * 30 + 1, 0));
    let mut systems: Vec<u16> = all.iter().map(|group| location(group).0).collect();
    assert_eq!(ask(late, Place), location(&all[7]));
    systems.sort_unstable();
    systems.dedup();
    assert_eq!(systems.len(), 2);
    peers.clear();
    theaters.remove(0).shutdown().unwrap();
}
