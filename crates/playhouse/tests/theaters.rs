//! Theaters as a program sees them: actors made by the macros, names that cannot be forged, values that cannot be sent.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use playhouse::prelude::*;
use playhouse::serde::de::Error as _;
use playhouse::serde::ser::Error as _;
use playhouse::serde::{Deserialize, Deserializer, Serialize, Serializer};
use playhouse::wire::Codec;
use playhouse::{CrashedIn, TheaterError};
use playhouse_actor::away::RefName;

fn theater() -> Theater {
    Theater::builder().listen("127.0.0.1:0").system(System::builder().workers(2)).start().unwrap()
}

fn address(theater: &Theater) -> String {
    theater.address().unwrap().to_string()
}

fn end(theaters: [Theater; 2]) {
    for theater in theaters {
        theater.shutdown().unwrap();
    }
}

#[derive(Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Till {
    sum: i64,
}

#[actor(remote = "theaters.Till", spawn)]
impl Till {
    #[message]
    fn put(&mut self, amount: i64) {
        self.sum += amount;
    }

    #[message]
    fn sum(&self) -> i64 {
        self.sum
    }

    /// The handler's result is the answer, also if it is an error.
    #[message]
    async fn take_from(&mut self, other: ActorRef<Till>) -> Result<i64, String> {
        match other.ask(Sum).await.map_err(|error| error.to_string())? {
            0 => Err("it is empty".to_owned()),
            sum => {
                self.sum += sum;
                Ok(self.sum)
            }
        }
    }

    #[message]
    fn crash(&mut self) -> i64 {
        panic!("on purpose");
    }

    #[message(local)]
    fn edit(&mut self, edit: fn(&mut i64)) -> i64 {
        edit(&mut self.sum);
        self.sum
    }
}

// GUARANTEE: A remote actor is used like any other
#[test]
fn actors_made_by_macros_are_used_from_another_theater() {
    let (here, there) = (theater(), theater());
    let peer = here.connect(address(&there)).unwrap();
    let theirs = here.spawn_at(&peer, &Till { sum: 1 }).unwrap();
    let mine = here.system().spawn(Till { sum: 20 });
    for _ in 0..100 {
        theirs.tell(Put(3));
    }
    assert_eq!(theirs.ask(Sum).wait(), Ok(301));
    // The asks go to the other theater and back.
    assert_eq!(theirs.ask(TakeFrom(mine)).wait(), Ok(Ok(321)));
    assert_eq!(mine.ask(TakeFrom(theirs)).wait(), Ok(Ok(341)));
    let empty = here.system().spawn(Till { sum: 0 });
    assert_eq!(theirs.ask(TakeFrom(empty)).wait(), Ok(Err("it is empty".to_owned())));
    assert_eq!(theirs.ask(Crash).wait(), Err(AskError::Panicked));
    assert_eq!(theirs.ask(Sum).wait(), Err(AskError::Stopped));
    end([here, there]);
}

// GUARANTEE: Messages without a wire form are reported at once
#[test]
fn a_message_without_a_wire_form_does_not_leave_and_says_why() {
    let (here, there) = (theater(), theater());
    let peer = here.connect(address(&there)).unwrap();
    let theirs = here.spawn_at(&peer, &Till { sum: 1 }).unwrap();
    let error = theirs.ask(Edit(|sum| *sum = 7)).wait().unwrap_err();
    assert!(matches!(&error, AskError::Unreachable(why) if why.contains("Edit")), "{error:?}");
    theirs.tell(Edit(|sum| *sum = 7));
    assert_eq!(theirs.ask(Sum).wait(), Ok(1));
    assert_eq!(here.system().stats().total.dead_letters, 1);
    end([here, there]);
}

// GUARANTEE: Names in use are not reassigned
// GUARANTEE: Names of published actors
#[test]
fn an_actor_that_is_published_may_be_taken_back_and_replaced() {
    let (here, there) = (theater(), theater());
    let name = format!("playhouse://{}/till", address(&there));
    let [first, second] = [1, 2].map(|sum| there.system().spawn(Till { sum }));
    let sum_of_found = || here.find::<Till>(&name).wait().map(|till| till.ask(Sum).wait());
    there.publish("till", first).unwrap();
    assert_eq!(sum_of_found(), Ok(Ok(1)));
    // The same actor may be published again, or under another name. Another actor under the name is an error, and
    // changes nothing.
    there.publish("till", first).unwrap();
    there.publish("first", first).unwrap();
    let taken = there.publish("till", second).unwrap_err().to_string();
    let who = format!("theaters.Till{}", first.id());
    assert_eq!(
        taken,
        format!("the name \"till\" is taken by {who}: `replace` gives it to another actor, `unpublish` takes it back")
    );
    assert_eq!(sum_of_found(), Ok(Ok(1)));
    there.replace("till", second);
    assert_eq!(sum_of_found(), Ok(Ok(2)));
    assert!(there.unpublish("till"));
    assert!(!there.unpublish("till"));
    assert!(sum_of_found().is_err());
    // An actor that has ended is not found.
    there.publish("till", first).unwrap();
    assert_eq!(sum_of_found(), Ok(Ok(1)));
    first.stop();
    there.system().run_until_idle();
    assert!(sum_of_found().is_err());
    end([here, there]);
}

#[test]
fn theaters_of_different_clusters_do_not_talk() {
    let here = Theater::builder().cluster("one").start().unwrap();
    let there = Theater::builder().cluster("two").listen("127.0.0.1:0").start().unwrap();
    let error = here.connect(address(&there)).unwrap_err();
    assert!(matches!(error, TheaterError::NotMember { .. }), "{error}");
    end([here, there]);
}

// -- forged names -------------------------------------------------------------------------------------------------------

/// Lives in one theater. No actor in the other theater has its reference. The forger gets only its name.
struct Vault {
    gold: i64,
}

#[actor(remote = "theaters.Vault")]
impl Vault {
    #[message]
    fn gold(&self) -> i64 {
        self.gold
    }
}

/// Gives away the wire form of a reference.
struct Clerk {
    vault: ActorRef<Vault>,
}

#[actor(remote = "theaters.Clerk")]
impl Clerk {
    #[message]
    fn name_of_vault(&self) -> Name {
        Name { vault: Some(self.vault), written: Vec::new() }
    }
}

/// A reference that is written as the bytes of its name, and read as bytes.
struct Name {
    vault: Option<ActorRef<Vault>>,
    written: Vec<u8>,
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        Codec::Positional.write(&self.vault.unwrap(), &mut bytes).map_err(S::Error::custom)?;
        bytes.serialize(serializer)
    }
}

type Forge = fn(&mut RefName);

/// A change that the reader makes to the name, and the actor that the changed name stands for.
struct Forgery {
    forge: Forge,
    taken_for: Option<ActorRef<Vault>>,
}

static FORGERY: Mutex<Option<Forgery>> = Mutex::new(None);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Vec::<u8>::deserialize(deserializer)?;
        let mut forgery = FORGERY.lock().unwrap();
        if let Some(forgery) = &mut *forgery {
            let mut name = Codec::Positional.read(&written).map_err(D::Error::custom)?;
            (forgery.forge)(&mut name);
            let mut forged = Vec::new();
            Codec::Positional.write(&name, &mut forged).map_err(D::Error::custom)?;
            // The reader simulates the other theater: it decodes the forged name with the reference codec, as the link
            // does.
            forgery.taken_for = Some(Codec::Positional.read(&forged).map_err(D::Error::custom)?);
        }
        Ok(Name { vault: None, written })
    }
}

// GUARANTEE: References cannot be forged
#[test]
fn a_forged_name_reaches_nobody() {
    let forgeries: [(Forge, bool); 4] = [
        (|_| (), true),
        (
            |name| {
                if let RefName::Mine { capability, .. } = name {
                    *capability ^= 1
                }
            },
            false,
        ),
        (
            |name| {
                if let RefName::Mine { slot, .. } = name {
                    *slot += 1
                }
            },
            false,
        ),
        (
            |name| {
                if let RefName::Mine { incarnation, .. } = name {
                    *incarnation += 1
                }
            },
            false,
        ),
    ];
    for (at, (forge, is_right)) in forgeries.into_iter().enumerate() {
        let (here, there) = (theater(), theater());
        let vault = there.system().spawn(Vault { gold: 79 });
        there.publish("clerk", there.system().spawn(Clerk { vault })).unwrap();
        let clerk = here.find::<Clerk>(&format!("playhouse://{}/clerk", address(&there))).wait().unwrap();
        *FORGERY.lock().unwrap() = Some(Forgery { forge, taken_for: None });
        let name = clerk.ask(NameOfVault).wait().unwrap();
        assert!(!name.written.is_empty());
        let taken_for = FORGERY.lock().unwrap().take().unwrap().taken_for.expect("it was read");
        let expected = if is_right { Ok(79) } else { Err(AskError::Stopped) };
        assert_eq!(taken_for.ask(Gold).wait(), expected, "forgery {at}");
        end([here, there]);
    }
}

#[derive(Serialize, Deserialize, Default)]
#[serde(crate = "playhouse::serde")]
struct Traveller {
    seen: Vec<String>,
}

#[actor(remote = "theaters.Traveller", mobile)]
impl Traveller {
    #[message]
    fn seen(&self) -> Vec<String> {
        self.seen.clone()
    }

    #[migrating]
    fn leave(&mut self) {
        self.seen.push("departing".to_owned());
    }

    #[migrated]
    fn come(&mut self, _ctx: &mut Context<Self>) {
        self.seen.push("arrived".to_owned());
    }

    #[migration_failed]
    fn stay(&mut self, why: MigrateError) {
        self.seen.push(why.to_string());
    }
}

#[test]
fn a_mobile_actor_is_told_where_it_comes_to() {
    let (here, there) = (theater(), theater());
    let peer = here.connect(there.address().unwrap()).unwrap();
    let traveller = here.system().spawn(Traveller::default());
    here.migrate(traveller, &peer).wait().unwrap();
    assert_eq!(traveller.ask(Seen).wait(), Ok(vec!["departing".to_owned(), "arrived".to_owned()]));
    // A theater can also start it in another theater, like any actor under `spawn`.
    let started = here.spawn_at(&peer, &Traveller { seen: vec!["a".to_owned()] }).unwrap();
    assert_eq!(started.ask(Seen).wait(), Ok(vec!["a".to_owned()]));
    assert_eq!(here.migrate(started, &peer).wait(), Err(MigrateError::Elsewhere));
    end([here, there]);
}

/// Detects words that are lost, repeated, or out of order.
#[derive(Serialize, Deserialize, Default)]
#[serde(crate = "playhouse::serde")]
struct Listener {
    next: u64,
    wrong: Vec<(u64, u64)>,
}

#[actor(remote = "theaters.Listener", mobile)]
impl Listener {
    #[message]
    fn hear(&mut self, number: u64, _words: Vec<u8>) {
        if number != self.next {
            self.wrong.push((self.next, number));
        }
        self.next = number + 1;
    }

    #[message]
    fn heard(&self) -> (u64, Vec<(u64, u64)>) {
        (self.next, self.wrong.clone())
    }
}

/// Sends the listener one word after the other, as fast as it can.
struct Speaker {
    listener: ActorRef<Listener>,
    next: u64,
    last: u64,
}

#[actor]
impl Speaker {
    #[message]
    fn go_on(&mut self, ctx: &mut Context<Self>) {
        for _ in 0..100 {
            if self.next == self.last {
                return;
            }
            self.listener.tell(Hear(self.next, vec![0; 1024]));
            self.next += 1;
        }
        ctx.this().tell(GoOn);
    }

    #[message]
    fn said(&self) -> u64 {
        self.next
    }
}

// GUARANTEE: A slow reader slows the writer
/// The speaker's theater has no link yet to the listener's new theater. The speaker says many times more than a theater
/// queues for a link that is not yet there.
#[test]
fn a_listener_that_moves_to_a_theater_that_its_speaker_has_not_called_hears_all_in_order() {
    const WORDS: u64 = 60_000;
    for _ in 0..3 {
        let [a, b, c] = [(); 3].map(|()| theater());
        let at_b = b.system().spawn(Listener::default());
        b.publish("listener", at_b).unwrap();
        let listener = a.find::<Listener>(&format!("playhouse://{}/listener", address(&b))).wait().unwrap();
        let speaker = a.system().spawn(Speaker { listener, next: 0, last: WORDS });
        speaker.tell(GoOn);
        while speaker.ask(Said).wait().unwrap() < WORDS / 3 {}
        let to = b.connect(c.address().unwrap()).unwrap();
        b.migrate(at_b, &to).wait().unwrap();
        while speaker.ask(Said).wait().unwrap() < WORDS {}
        assert_eq!(listener.ask(Heard).wait(), Ok((WORDS, Vec::new())));
        assert_eq!(a.system().stats().total.dead_letters, 0);
        for theater in [a, b, c] {
            theater.shutdown().unwrap();
        }
    }
}

/// Crashes on arrival.
#[derive(Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Stumbler {
    panics: bool,
}

#[actor(remote = "theaters.Stumbler", mobile)]
impl Stumbler {
    #[migrated]
    fn come(&mut self, ctx: &mut Context<Self>) {
        assert!(!self.panics, "it stumbles");
        ctx.fail("it stumbles");
    }
}

#[test]
fn a_crash_where_an_actor_comes_to_is_told_as_such_in_groups_too() {
    let (here, there) = (theater(), theater());
    let peer = here.connect(there.address().unwrap()).unwrap();
    let (tell, told) = mpsc::channel();
    there.system().on_crash(move |crash| tell.send(crash.clone()).unwrap());
    let group = Group::new(here.system());
    for placement in [Placement::Near, Placement::Group(group)] {
        for panics in [true, false] {
            let options = SpawnOptions::new().placement(placement);
            let stumbler = here.system().spawn_with(options, Stumbler { panics });
            // The migration is complete before the crash.
            let _moved = here.migrate(stumbler, &peer).wait();
            let crash = told.recv_timeout(Duration::from_secs(60)).unwrap();
            assert_eq!(crash.during, Some(CrashedIn::Hook("migrated")), "{placement:?}, {panics}");
            assert!(crash.reason.to_string().contains("it stumbles"), "{crash}");
        }
    }
    end([here, there]);
}

/// The reference belongs to the theater that started the actor. The other theater has a reference of its own.
#[test]
fn only_a_reference_of_its_own_sends_an_actor_out_of_a_theater() {
    let net = playhouse::Simulation::new(1);
    let [here, there] = [(); 2].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap());
    let traveller = here.system().spawn(Traveller::default());
    let peers = [&there, &here].map(|to| to.address().unwrap());
    here.migrate(traveller, &here.connect(peers[0]).unwrap()).wait().unwrap();
    let back = there.connect(peers[1]).unwrap();
    assert_eq!(there.migrate(traveller, &back).wait(), Err(MigrateError::Elsewhere));
}

/// A member of a crowd that roams. Each asks others, and forwards, answers or drops its requests.
#[derive(Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Roamer {
    dice: u64,
    others: Vec<ActorRef<Roamer>>,
    theaters: Vec<String>,
    /// The numbers of asks: made, answered, unanswered, failed otherwise.
    counts: [u64; 4],
}

#[actor(mobile)]
impl Roamer {
    fn roll(&mut self, below: u64) -> u64 {
        // (A generator with 64 bits of state, by Knuth.)
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % below
    }

    fn random_roamer(&mut self) -> ActorRef<Roamer> {
        let at = self.roll(self.others.len() as u64);
        self.others[at as usize]
    }

    #[message]
    fn meet(&mut self, others: Vec<ActorRef<Roamer>>, theaters: Vec<String>) {
        (self.others, self.theaters) = (others, theaters);
    }

    #[message]
    fn want(&mut self, number: u64, reply: Reply<u64>) {
        let to = self.random_roamer();
        match self.roll(8) {
            0..4 => reply.send(number),
            4..7 => reply.forward(to, Want(number)),
            _ => drop(reply),
        }
    }

    #[message]
    async fn ask_on(&mut self, number: u64, ctx: &mut Context<Self>) {
        let to = self.random_roamer();
        self.counts[0] += 1;
        let at = match to.ask(Want(number)).within(Duration::from_secs(60)).await {
            Ok(answer) if answer == number => 1,
            Err(AskError::Unanswered) => 2,
            Err(AskError::Cycle(_)) => 3,
            other => panic!("{other:?}"),
        };
        self.counts[at] += 1;
        if self.roll(3) == 0 {
            let to = self.roll(self.theaters.len() as u64) as usize;
            let to = self.theaters[to].clone();
            ctx.migrate_to(to.parse().unwrap());
        }
    }

    #[message]
    fn counts(&self) -> [u64; 4] {
        self.counts
    }
}

// GUARANTEE: Forwarded requests
#[test]
fn replies_find_their_askers_while_both_roam_and_requests_are_forwarded_over_theaters() {
    let mut all = [0; 4];
    for seed in 0..30 {
        let net = playhouse::Simulation::new(seed);
        let theaters: Vec<Theater> =
            (0..3).map(|_| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap()).collect();
        let addresses: Vec<String> = theaters.iter().map(address).collect();
        let start = |at: usize| {
            let (dice, theater) = (seed * 100 + at as u64, &theaters[at % 3]);
            theater.system().spawn(Roamer { dice, others: Vec::new(), theaters: Vec::new(), counts: [0; 4] })
        };
        let roamers: Vec<_> = (0..9).map(start).collect();
        roamers.iter().for_each(|roamer| roamer.tell(Meet(roamers.clone(), addresses.clone())));
        for number in 0..180 {
            roamers[net.choose(9)].tell(AskOn(number));
        }
        let mut counts = [0; 4];
        for roamer in &roamers {
            for (sum, count) in counts.iter_mut().zip(roamer.ask(Counts).wait().unwrap()) {
                *sum += count;
            }
        }
        let [asked, ended @ ..] = counts;
        assert_eq!((asked, ended.iter().sum()), (180, 180), "seed {seed}: {counts:?}");
        all.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    let [_, answered, unanswered, _] = all;
    assert!(answered > 1_000 && unanswered > 300, "{all:?}");
}

/// Counts the items of a stream.
#[derive(Serialize, Deserialize, Default)]
#[serde(crate = "playhouse::serde")]
struct Meter {
    count: u32,
}

/// A stream without an end, which has an item at each poll. Reports its drop.
struct Endless(std::sync::mpsc::Sender<()>);

impl futures_core::Stream for Endless {
    type Item = u32;

    fn poll_next(self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Option<u32>> {
        cx.waker().wake_by_ref();
        std::task::Poll::Ready(Some(1))
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[actor(mobile)]
impl Meter {
    #[message]
    fn add(&mut self, by: u32) {
        self.count += by;
    }

    #[message(local)]
    fn measure(&mut self, dropped: std::sync::mpsc::Sender<()>, ctx: &mut Context<Self>) {
        ctx.attach(Endless(dropped), Add);
    }

    #[message]
    fn count(&self) -> u32 {
        self.count
    }
}

// GUARANTEE: Streams
#[test]
fn a_stream_without_an_end_leaves_others_their_turns_and_ends_where_its_actor_leaves() {
    let (here, there) = (theater(), theater());
    let peer = here.connect(there.address().unwrap()).unwrap();
    let meter = here.system().spawn(Meter::default());
    let (dropped, drops) = std::sync::mpsc::channel();
    meter.tell(Measure(dropped));
    while meter.ask(Count).wait().unwrap() < 1_000 {}
    here.migrate(meter, &peer).wait().unwrap();
    assert_eq!(drops.recv_timeout(Duration::from_secs(60)), Ok(()));
    // The items that were messages by then have migrated with the actor.
    let count = meter.ask(Count).wait().unwrap();
    assert!(count >= 1_000);
    assert_eq!(meter.ask(Count).wait(), Ok(count));
    end([here, there]);
}

/// Keeps replies.
#[derive(Default)]
struct Keeper {
    kept: Vec<Reply<u32>>,
    handled: u32,
}

#[actor(remote)]
impl Keeper {
    #[message]
    fn keep(&mut self, reply: Reply<u32>) {
        self.kept.push(reply);
    }

    #[message]
    fn handle_it(&mut self) -> u32 {
        self.handled += 1;
        self.handled
    }

    #[message]
    fn awaited(&self) -> usize {
        self.kept.iter().filter(|reply| reply.is_awaited()).count()
    }

    #[message]
    fn forward_all(&mut self, to: ActorRef<Keeper>) {
        self.kept.drain(..).for_each(|reply| reply.forward(to, HandleIt));
    }

    #[message]
    fn handled(&self) -> u32 {
        self.handled
    }
}

// GUARANTEE: Forwarded requests
#[test]
fn the_reply_to_a_remote_asker_that_gave_up_or_is_lost_is_not_awaited() {
    for is_lost in [false, true] {
        let net = playhouse::Simulation::new(3);
        let [here, there] = [(); 2].map(|()| net.theater(Theater::builder().listen("127.0.0.1:0")).unwrap());
        let [keeper, last] = [(); 2].map(|()| there.system().spawn(Keeper::default()));
        there.publish("keeper", keeper).unwrap();
        let found = here.find::<Keeper>(&format!("playhouse://{}/keeper", address(&there))).wait().unwrap();
        let asked = here.system().spawn(Asks { keeper: found });
        asked.tell(AskKeeper);
        net.run_for(Duration::from_secs(1));
        assert_eq!(keeper.ask(Awaited).wait(), Ok(1));
        if is_lost {
            net.kill(&here)
        } else {
            asked.kill()
        }
        net.run_for(Duration::from_secs(120));
        assert_eq!(keeper.ask(Awaited).wait(), Ok(0), "lost: {is_lost}");
        keeper.tell(ForwardAll(last));
        net.run_for(Duration::from_secs(1));
        assert_eq!(last.ask(Handled).wait(), Ok(0), "lost: {is_lost}");
    }
}

struct Asks {
    keeper: ActorRef<Keeper>,
}

#[actor]
impl Asks {
    #[message]
    async fn ask_keeper(&mut self) {
        let _never = self.keeper.ask(Keep).await;
    }
}
