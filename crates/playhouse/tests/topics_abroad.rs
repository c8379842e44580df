//! Topics that several theaters have joined. A message published in any theater reaches all, in the order of its publisher, once
//! over each link, also with broken connections. A disconnected theater knows that it is.

mod support;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize, Serializer};
use playhouse::topic::{JoinError, Published, RemoteTopic, Topic, TopicEndpoint, WhenOverloaded};
use playhouse::{Simulation, TheaterBuilder, remote_topic};
use support::{Do, Log, Puppet, finishes};

use WhenOverloaded::{DropNewest, SlowPublisher, Unsubscribe};

/// Numbered news of a publisher.
#[derive(Message, Clone, Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct News(u64, u64);

remote_topic!(News = "topics_abroad.News");

/// The messages that readers got: the reader's name, a publisher, a number.
type Notes = Log<(&'static str, u64, u64)>;

struct Reader {
    name: &'static str,
    log: Notes,
}

impl Actor for Reader {}

impl Handler<News> for Reader {
    fn handle(&mut self, News(publisher, number): News, _: &mut Context<Self>) {
        self.log.push((self.name, publisher, number));
    }
}

fn builder() -> TheaterBuilder {
    Theater::builder().listen("127.0.0.1:0").system(System::builder().workers(2))
}

fn reader(theater: &Theater, name: &'static str, log: &Notes) -> ActorRef<Reader> {
    theater.system().spawn(Reader { name, log: log.clone() })
}

/// Returns the endpoint of `topic`, which lives in `home`, as `theater` finds it.
fn found<M: RemoteTopic>(theater: &Theater, home: &Theater, topic: &Topic<M>) -> ActorRef<TopicEndpoint<M>> {
    home.replace("topic", topic.endpoint());
    theater.find(&format!("playhouse://{}/topic", home.address().unwrap())).wait().unwrap()
}

fn joined<M: RemoteTopic>(theater: &Theater, home: &Theater, topic: &Topic<M>, way: WhenOverloaded) -> Topic<M> {
    Topic::join(theater.system(), found(theater, home, topic), way).wait().unwrap()
}

fn sorted(log: &Notes) -> Vec<(&'static str, u64, u64)> {
    let mut got = log.take();
    got.sort_unstable();
    got
}

/// Two simulated theaters and a topic. The topic's home is the first theater. The second one has joined it and has a
/// reader.
struct Pair {
    net: Simulation,
    home: Theater,
    away: Theater,
    topic: Topic<News>,
    joined: Topic<News>,
    log: Notes,
}

impl Pair {
    fn new(seed: u64, way: WhenOverloaded) -> Pair {
        let net = Simulation::new(seed);
        let [home, away] = [(); 2].map(|()| net.theater(builder().window(4096)).unwrap());
        let topic = Topic::new(home.system());
        let joined = joined(&away, &home, &topic, way);
        let log = Log::new();
        joined.subscribe(reader(&away, "away", &log), SlowPublisher);
        Pair { net, home, away, topic, joined, log }
    }

    /// Publishes at home while the network is cut, until `done`. Returns the numbers of published and of sent messages.
    fn publish_into_the_void(&self, mut done: impl FnMut(Published) -> bool) -> (u64, u64) {
        self.net.cut(&self.home, &self.away);
        let (mut published, mut sent) = (0, 0);
        loop {
            let outcome = self.topic.publish(News(0, published));
            published += 1;
            sent += outcome.elsewhere as u64;
            if done(outcome) {
                break;
            }
            assert!(published < 100_000, "a way where nothing passes is overloaded some time");
            self.net.run_for(Duration::from_micros(100));
        }
        self.net.heal(&self.home, &self.away);
        self.net.run_until_idle();
        (published, sent)
    }
}

// GUARANTEE: Topics over theaters
#[test]
fn a_message_published_in_any_theater_reaches_all_matching_subscribers() {
    finishes(|| {
        let [home, away] = [(); 2].map(|()| builder().start().unwrap());
        let topic = Topic::new(home.system());
        let joined = joined(&away, &home, &topic, SlowPublisher);
        assert_eq!((topic.joined(), topic.subscriptions(), joined.joined(), joined.subscriptions()), (1, 0, 0, 0));
        let log = Log::new();
        for (theater, topic, all, europe) in
            [(&home, &topic, "all", "europe"), (&away, &joined, "all away", "europe away")]
        {
            topic.subscribe(reader(theater, all, &log), SlowPublisher);
            topic.subscribe_to("orders.*.eu", reader(theater, europe, &log), SlowPublisher).unwrap();
        }
        let narrow = joined.subscribe_to("orders.>", reader(&away, "cancelled", &log), SlowPublisher).unwrap();
        narrow.cancel();
        assert_eq!((narrow.is_active(), joined.subscriptions()), (false, 2));

        let published = topic.publish_to("orders.7.eu", News(0, 1)).unwrap();
        assert_eq!((published.sent, published.elsewhere), (2, 1));
        let published = topic.publish_to("orders.7.us", News(0, 2)).unwrap();
        assert_eq!((published.sent, published.elsewhere), (1, 1));
        topic.publish(News(0, 3));
        let published = joined.publish_to("orders.8.eu", News(1, 1)).unwrap();
        assert_eq!((published.sent, published.elsewhere), (0, 1));
        joined.publish(News(1, 2));
        let error = joined.publish_to("orders..eu", News(1, 3)).unwrap_err().to_string();
        assert!(error.starts_with("\"orders..eu\" is no subject"), "{error}");

        let all = ["all", "all away"].map(|name| [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2)].map(|(by, n)| (name, by, n)));
        let europe = ["europe", "europe away"].map(|name| [(0, 1), (1, 1)].map(|(by, n)| (name, by, n)));
        let expected: Vec<_> = all.into_iter().flatten().chain(europe.into_iter().flatten()).collect();
        while log.lock().len() < expected.len() {
            std::thread::yield_now();
        }
        assert_eq!(sorted(&log), expected);
        home.shutdown().unwrap();
        away.shutdown().unwrap();
    });
}

/// Publishes numbered messages, some at each turn.
struct Press<M: RemoteTopic> {
    topic: Topic<M>,
    make: fn(u64, u64) -> M,
    by: u64,
    next: u64,
    numbers: u64,
    printed: Arc<AtomicU64>,
}

impl<M: RemoteTopic> Actor for Press<M> {}

#[derive(Message)]
struct Turn;

impl<M: RemoteTopic> Handler<Turn> for Press<M> {
    fn handle(&mut self, _: Turn, ctx: &mut Context<Self>) {
        for _ in 0..4 {
            if self.next == self.numbers {
                return;
            }
            self.topic.publish((self.make)(self.by, self.next));
            self.next += 1;
            self.printed.store(self.next, Ordering::Relaxed);
        }
        ctx.this().tell(Turn);
    }
}

/// Has an actor publish. Returns its progress.
fn press<M: RemoteTopic>(
    theater: &Theater,
    topic: &Topic<M>,
    make: fn(u64, u64) -> M,
    (by, numbers): (u64, u64),
) -> Arc<AtomicU64> {
    let printed = Arc::new(AtomicU64::new(0));
    let press = Press { topic: topic.clone(), make, by, next: 0, numbers, printed: Arc::clone(&printed) };
    theater.system().spawn(press).tell(Turn);
    printed
}

// GUARANTEE: Topics over theaters
#[test]
fn three_theaters_see_the_order_of_each_publisher_though_connections_break_under_every_seed() {
    const NUMBERS: u64 = 60;
    let mut cuts = 0;
    for seed in 0..100 {
        let net = Simulation::new(seed);
        let theaters = [(); 3].map(|()| net.theater(builder()).unwrap());
        let topic = Topic::new(theaters[0].system());
        let [second, third] = [1, 2].map(|n: usize| joined(&theaters[n], &theaters[0], &topic, SlowPublisher));
        let topics = [topic, second, third];
        let log = Log::new();
        for ((theater, topic), name) in theaters.iter().zip(&topics).zip(["first", "second", "third"]) {
            topic.subscribe(reader(theater, name, &log), SlowPublisher);
        }
        net.break_by_chance(Duration::from_millis(15));
        for ((theater, topic), by) in theaters.iter().zip(&topics).zip(0..) {
            for by in [2 * by, 2 * by + 1] {
                press(theater, topic, News, (by, NUMBERS));
            }
        }
        net.run_until(|| log.lock().len() as u64 >= 3 * 6 * NUMBERS);
        net.calm();
        net.run_until_idle();
        let mut got: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (name, by, number) in log.take() {
            got.entry((name, by)).or_default().push(number);
        }
        assert_eq!(got.len(), 3 * 6, "seed {seed}");
        assert!(got.values().all(|numbers| *numbers == (0..NUMBERS).collect::<Vec<_>>()), "seed {seed}: {got:?}");
        cuts += net.happened().cuts;
    }
    assert!(cuts > 100, "{cuts} connections were broken");
}

thread_local! {
    /// The number of times that a [`Counted`] was written. A simulation is one thread.
    static WRITTEN: Cell<u64> = const { Cell::new(0) };
}

/// Counts its serializations.
#[derive(Message, Clone, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Counted(u64);

impl Serialize for Counted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        WRITTEN.set(WRITTEN.get() + 1);
        serializer.serialize_newtype_struct("Counted", &self.0)
    }
}

remote_topic!(Counted);

impl Handler<Counted> for Reader {
    fn handle(&mut self, Counted(number): Counted, _: &mut Context<Self>) {
        self.log.push((self.name, 0, number));
    }
}

// GUARANTEE: Topics over theaters
#[test]
fn one_copy_of_a_message_goes_to_each_theater() {
    let net = Simulation::new(1);
    let [home, away] = [(); 2].map(|()| net.theater(builder()).unwrap());
    let topic = Topic::new(home.system());
    let joined = joined(&away, &home, &topic, SlowPublisher);
    let log = Log::new();
    for _ in 0..5 {
        joined.subscribe(reader(&away, "away", &log), SlowPublisher);
        topic.subscribe(reader(&home, "home", &log), SlowPublisher);
    }
    for number in 0..10 {
        assert_eq!(topic.publish(Counted(number)).elsewhere, 1);
    }
    net.run_until_idle();
    assert_eq!((log.take().len(), WRITTEN.take()), (100, 10));
    // The messages go to the other theater and back.
    joined.publish(Counted(10));
    net.run_until_idle();
    assert_eq!((log.take().len(), WRITTEN.take()), (10, 2));
}

// GUARANTEE: Slow theaters
#[test]
fn messages_that_an_overloaded_link_drops_are_counted_at_both_ends() {
    for seed in 0..20 {
        let pair = Pair::new(seed, DropNewest);
        let mut dropped = 0;
        let (published, sent) = pair.publish_into_the_void(|outcome| {
            dropped += outcome.dropped as u64;
            dropped == 100
        });
        assert_eq!(published, sent + dropped);
        let last = pair.topic.publish(News(0, published));
        assert_eq!((last.elsewhere, last.dropped), (1, 0), "seed {seed}");
        pair.net.run_until_idle();
        let got: Vec<u64> = pair.log.take().into_iter().map(|(_, _, number)| number).collect();
        assert_eq!(got.len() as u64, sent + 1, "seed {seed}");
        assert!(got.is_sorted() && got.last() == Some(&published));
        assert_eq!((pair.joined.missed(), pair.topic.missed()), (100, 0));
        assert_eq!((pair.joined.is_disconnected(), pair.topic.joined()), (false, 1));
    }
}

// GUARANTEE: Slow theaters
#[test]
fn a_theater_behind_an_overloaded_link_is_disconnected_by_its_policy() {
    for seed in 0..20 {
        let pair = Pair::new(seed, Unsubscribe);
        let mut unsubscribed = 0;
        let (published, sent) = pair.publish_into_the_void(|outcome| {
            unsubscribed += outcome.unsubscribed;
            unsubscribed > 0
        });
        assert_eq!((unsubscribed, published), (1, sent + 1));
        assert!(pair.joined.is_disconnected() && pair.joined.endpoint().is_stopped(), "seed {seed}");
        assert_eq!(pair.topic.joined(), 0);
        assert_eq!(pair.topic.publish(News(0, published)).elsewhere, 0);
        // The topic still publishes to the other theaters.
        pair.topic.subscribe(reader(&pair.home, "home", &pair.log), SlowPublisher);
        assert_eq!(pair.joined.publish(News(1, 0)).elsewhere, 1);
        pair.net.run_until_idle();
        let got = pair.log.take();
        let expected = (0..sent).map(|number| ("away", 0, number)).chain([("home", 1, 0)]);
        assert!(got.into_iter().eq(expected), "seed {seed}: up to then, nothing is missing");
        // The theater may join again.
        let again = joined(&pair.away, &pair.home, &pair.topic, Unsubscribe);
        again.subscribe(reader(&pair.away, "again", &pair.log), SlowPublisher);
        pair.topic.publish(News(0, 7));
        pair.net.run_until_idle();
        assert_eq!(sorted(&pair.log), [("again", 0, 7), ("home", 0, 7)]);
    }
}

/// A message of the largest size that fits into a queue.
#[derive(Message, Clone, Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Large(u64, u64, [u64; 20]);

remote_topic!(Large);

impl Handler<Large> for Reader {
    fn handle(&mut self, Large(by, number, _): Large, _: &mut Context<Self>) {
        self.log.push((self.name, by, number));
    }
}

/// An actor of one theater publishes for a slow theater, which has joined in the first theater.
fn slows_publishers(seeds: u64, publishes: impl Fn(&Pair, &Topic<Large>) -> (Theater, Topic<Large>)) {
    const NUMBERS: u64 = 20_000;
    for seed in 0..seeds {
        let pair = Pair::new(seed, SlowPublisher);
        let topic = Topic::new(pair.home.system());
        let slow = joined(&pair.away, &pair.home, &topic, SlowPublisher);
        slow.subscribe(reader(&pair.away, "away", &pair.log), SlowPublisher);
        let (theater, topic) = publishes(&pair, &topic);
        pair.net.slow(&pair.away, Duration::from_millis(20));
        let printed = press(&theater, &topic, |by, number| Large(by, number, [0; 20]), (0, NUMBERS));
        let mut ahead = 0;
        pair.net.run_until(|| {
            let read = pair.log.lock().len() as u64;
            ahead = ahead.max(printed.load(Ordering::Relaxed) - read);
            read == NUMBERS
        });
        let got = pair.log.take();
        assert!(got.into_iter().eq((0..NUMBERS).map(|number| ("away", 0, number))), "seed {seed}");
        // The in-flight messages, and 2 MiB of messages in each theater but the slow one.
        assert!(ahead < NUMBERS * 2 / 3, "seed {seed}: the publisher was {ahead} ahead");
    }
}

// GUARANTEE: Slow theaters
#[test]
fn a_slow_theater_slows_publishers_at_home() {
    slows_publishers(20, |pair, topic| (pair.home.clone(), topic.clone()));
}

// GUARANTEE: Slow theaters
#[test]
fn a_slow_theater_slows_publishers_in_a_third_one() {
    slows_publishers(5, |pair, topic| {
        let third = pair.net.theater(builder().window(4096)).unwrap();
        let joined = joined(&third, &pair.home, topic, SlowPublisher);
        (third, joined)
    });
}

/// Has an actor of `theater` watch `who`. Logs how `who` ended.
fn mourn<A: Actor>(theater: &Theater, who: ActorRef<A>) -> Log<Terminated> {
    let log = Log::new();
    let mourner = theater.system().spawn(support::Mourner(log.clone()));
    mourner.tell(support::Mourn(who));
    log
}

// GUARANTEE: Topics track the joined theaters
#[test]
fn a_joined_topic_receives_all_messages_and_the_end_of_its_home() {
    for seed in 0..100 {
        let Pair { net, home, away, topic, joined, log } = Pair::new(seed, SlowPublisher);
        let desk = found(&away, &home, &topic);
        let terminated = mourn(&away, joined.endpoint());
        net.run_until_idle();
        for number in 0..50 {
            topic.publish(News(0, number));
        }
        drop(topic);
        net.run_until_idle();
        assert_eq!(log.take(), (0..50).map(|number| ("away", 0, number)).collect::<Vec<_>>(), "seed {seed}");
        assert!(joined.is_disconnected() && terminated.take().len() == 1, "seed {seed}");
        // After that, a published message reaches no reader, and the result says it.
        let dead = away.system().stats().total.dead_letters;
        let published = joined.publish(News(1, 0));
        net.run_until_idle();
        assert_eq!((published.sent, published.elsewhere, log.take()), (0, 0, vec![]), "seed {seed}");
        assert_eq!(away.system().stats().total.dead_letters, dead + 1);
        assert_eq!(joined.subscriptions(), 1);
        // An actor that has found the endpoint before cannot join it any more.
        let join = Topic::join(away.system(), desk, SlowPublisher).wait();
        assert_eq!(join.unwrap_err(), JoinError::Ended);
    }
}

// GUARANTEE: Topics track the joined theaters
#[test]
fn a_joined_topic_is_told_that_the_theater_of_its_home_is_lost() {
    for seed in 0..20 {
        let Pair { net, home, away, topic, joined, log } = Pair::new(seed, SlowPublisher);
        let desk = found(&away, &home, &topic);
        let terminated = mourn(&away, joined.endpoint());
        net.run_until_idle();
        net.kill(&home);
        let error = Topic::join(away.system(), desk, SlowPublisher).wait().unwrap_err();
        assert!(matches!(error, JoinError::NoAnswer(AskError::TheaterLost { .. })), "seed {seed}: {error}");
        assert!(net.run_until(|| joined.is_disconnected()), "seed {seed}");
        net.run_until_idle();
        assert_eq!(terminated.take().len(), 1);
        // The home may live on. After its loss, a published message reaches no reader, and the result says it.
        let dead = away.system().stats().total.dead_letters;
        assert_eq!(joined.publish(News(1, 0)).sent, 0, "seed {seed}");
        net.run_until_idle();
        assert_eq!((log.take(), away.system().stats().total.dead_letters), (vec![], dead + 1), "seed {seed}");
        let join = Topic::join(away.system(), desk, SlowPublisher).wait();
        let is_lost = JoinError::NoAnswer(AskError::TheaterLost { may_have_run: false });
        assert_eq!(join.unwrap_err(), is_lost, "seed {seed}");
        drop(topic);
    }
}

// GUARANTEE: Topics track the joined theaters
#[test]
fn the_home_forgets_lost_theaters_and_dropped_topics() {
    for seed in 0..20 {
        let Pair { net, home, away, topic, joined, .. } = Pair::new(seed, SlowPublisher);
        let third = net.theater(builder()).unwrap();
        let other = self::joined(&third, &home, &topic, SlowPublisher);
        assert_eq!(topic.joined(), 2);
        let clone = joined.clone();
        drop(joined);
        net.run_until_idle();
        assert_eq!(topic.joined(), 2, "there is a handle still");
        drop(clone);
        net.run_until_idle();
        assert_eq!(topic.joined(), 1, "seed {seed}");
        net.kill(&third);
        assert!(net.run_until(|| topic.joined() == 0), "seed {seed}");
        let published = topic.publish(News(0, 0));
        assert_eq!((published.sent, published.elsewhere, published.dropped), (0, 0, 0));
        net.run_until_idle();
        drop((away, other));
    }
}

// GUARANTEE: Topics over theaters
#[test]
fn a_topic_that_has_joined_is_joined_in_turn() {
    for seed in 0..20 {
        let Pair { net, home, away, topic, joined, log } = Pair::new(seed, SlowPublisher);
        let third = net.theater(builder()).unwrap();
        let leaf = self::joined(&third, &away, &joined, SlowPublisher);
        leaf.subscribe_to("orders.>", reader(&third, "third", &log), SlowPublisher).unwrap();
        topic.subscribe(reader(&home, "home", &log), SlowPublisher);
        assert_eq!((topic.joined(), joined.joined(), leaf.joined()), (1, 1, 0));
        for (topic, by) in [(&topic, 0), (&joined, 1), (&leaf, 2)] {
            topic.publish_to("orders.1", News(by, 0)).unwrap();
            topic.publish(News(by, 1));
        }
        net.run_until_idle();
        let all = ["away", "home"].map(|name| [0, 1, 2].map(|by| [0, 1].map(|number| (name, by, number))));
        let third = [0, 1, 2].map(|by| ("third", by, 0));
        let expected: Vec<_> = all.into_iter().flatten().flatten().chain(third).collect();
        assert_eq!(sorted(&log), expected, "seed {seed}");
        // The end goes through to the leaf.
        drop(topic);
        net.run_until_idle();
        assert!(joined.is_disconnected() && leaf.is_disconnected(), "seed {seed}");
    }
}

// GUARANTEE: Topics over theaters
#[test]
fn actors_join_and_get_what_is_published_from_then_on() {
    for seed in 0..20 {
        let net = Simulation::new(seed);
        let [home, away] = [(); 2].map(|()| net.theater(builder()).unwrap());
        let topic: Topic<News> = Topic::new(home.system());
        let desk = found(&away, &home, &topic);
        let (log, joined) = (Log::new(), Log::new());
        let (reader, told) = (reader(&away, "away", &log), joined.clone());
        away.system().spawn(Puppet).tell(Do::this(move |ctx| {
            Topic::join(&ctx.system(), desk, SlowPublisher).then(ctx, move |_, topic, _| {
                let topic = topic.unwrap();
                topic.subscribe(reader, SlowPublisher);
                told.push(topic);
            });
        }));
        assert!(net.run_until(|| !joined.lock().is_empty()), "seed {seed}");
        topic.publish(News(0, 1));
        net.run_until_idle();
        assert_eq!(log.take(), [("away", 0, 1)], "seed {seed}");
    }
}

/// A message as a program of another version has it: the program knows the topic, and its endpoint takes no such
/// message.
#[derive(Message, Clone, Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Unlisted;

impl RemoteTopic for Unlisted {
    fn endpoint_name() -> &'static str {
        "topics_abroad.Unlisted"
    }
}

/// Theaters of earlier versions find the endpoints of topics by these names.
#[test]
fn endpoints_of_topics_keep_their_names_on_the_wire() {
    use playhouse::wire::Remote;

    assert_eq!(TopicEndpoint::<News>::wire_name(), "playhouse.Desk<topics_abroad.News>");
    assert_eq!(TopicEndpoint::<Counted>::wire_name(), std::any::type_name::<Counted>());
}

// GUARANTEE: Topics track the joined theaters
#[test]
fn the_stop_of_a_topic_endpoint_disconnects_the_joined_theaters() {
    let Pair { net, home, topic, joined, log, .. } = Pair::new(1, SlowPublisher);
    topic.publish(News(0, 0));
    topic.endpoint().stop();
    net.run_until_idle();
    assert!(joined.is_disconnected());
    assert_eq!((topic.joined(), topic.publish(News(0, 1)).elsewhere), (0, 0));
    net.run_until_idle();
    assert_eq!(log.take(), [("away", 0, 0)]);
    drop(home);
}

// GUARANTEE: Topics track the joined theaters
#[test]
fn joining_a_topic_with_unlisted_messages_is_an_error() {
    let net = Simulation::new(1);
    let [home, away] = [(); 2].map(|()| net.theater(builder()).unwrap());
    let topic: Topic<Unlisted> = Topic::new(home.system());
    let desk = found(&away, &home, &topic);
    let error = Topic::join(away.system(), desk, SlowPublisher).wait().unwrap_err();
    let JoinError::NoAnswer(AskError::Unreachable(why)) = &error else { panic!("{error}") };
    assert!(why.contains("JoinRequest"), "{error}");
    net.run_until_idle();
    assert_eq!(topic.joined(), 0);
}
