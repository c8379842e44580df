//! A subscriber gets the published messages in order, while it lives and keeps up.

mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};
use playhouse::topic::{Topic, WhenOverloaded};
use support::{Do, Gate, Log, Puppet, Turnstile, finishes, simulated, threads};

use WhenOverloaded::{DropNewest, SlowPublisher, Unsubscribe};

/// Logs the messages that it gets.
struct Reader {
    name: &'static str,
    log: Log<(&'static str, u64, u64)>,
}

impl Actor for Reader {}

/// Numbered news of a publisher.
#[derive(Message, Clone)]
struct News(u64, u64);

impl Handler<News> for Reader {
    fn handle(&mut self, News(publisher, number): News, _: &mut Context<Self>) {
        self.log.push((self.name, publisher, number));
    }
}

// GUARANTEE: Topics keep order
#[test]
fn each_subscriber_gets_what_one_publisher_publishes_in_that_order() {
    for seed in 0..100 {
        let system = System::builder().workers(3).simulated(seed).start().unwrap();
        let log = Log::new();
        let topic = Topic::new(&system);
        for (name, policy) in [("a", SlowPublisher), ("b", DropNewest), ("c", Unsubscribe)] {
            topic.subscribe(system.spawn(Reader { name, log: log.clone() }), policy);
        }
        for publisher in 0..2 {
            let topic = topic.clone();
            system.spawn(Puppet).tell(Do::this(move |_| {
                for number in 0..50 {
                    assert_eq!(topic.publish(News(publisher, number)).sent, 3);
                }
            }));
        }
        system.run_until_idle();
        let mut got: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (name, publisher, number) in log.take() {
            got.entry((name, publisher)).or_default().push(number);
        }
        assert_eq!(got.len(), 6);
        assert!(got.values().all(|numbers| *numbers == (0..50).collect::<Vec<_>>()), "seed {seed}: {got:?}");
    }
}

// GUARANTEE: Topics keep order
#[test]
fn patterns_narrow_what_a_subscriber_gets() {
    for seed in 0..20 {
        let system = simulated(seed);
        let log = Log::new();
        let topic = Topic::new(&system);
        let subscribe = |name, pattern: Option<&str>| {
            let reader = system.spawn(Reader { name, log: log.clone() });
            match pattern {
                None => topic.subscribe(reader, SlowPublisher),
                Some(pattern) => topic.subscribe_to(pattern, reader, SlowPublisher).unwrap(),
            }
        };
        subscribe("all", None);
        subscribe("europe", Some("orders.*.eu"));
        subscribe("orders", Some("orders.>"));
        assert_eq!(topic.publish_to("orders.7.eu", News(0, 1)).unwrap().sent, 3);
        assert_eq!(topic.publish_to("orders.7.us", News(0, 2)).unwrap().sent, 2);
        assert_eq!(topic.publish_to("bills.7.eu", News(0, 3)).unwrap().sent, 1);
        assert_eq!(topic.publish(News(0, 4)).sent, 1);
        system.run_until_idle();
        let mut got = log.take();
        got.sort_unstable();
        let expected = [
            ("all", 0, 1),
            ("all", 0, 2),
            ("all", 0, 3),
            ("all", 0, 4),
            ("europe", 0, 1),
            ("orders", 0, 1),
            ("orders", 0, 2),
        ];
        assert_eq!(got, expected, "seed {seed}");
        // A wrong pattern changes nothing.
        let reader = system.spawn(Reader { name: "none", log: log.clone() });
        let error = topic.subscribe_to("orders..eu", reader, SlowPublisher).unwrap_err().to_string();
        assert!(error.starts_with("\"orders..eu\" is no pattern: "), "{error}");
        let error = topic.publish_to("orders.*", News(0, 5)).unwrap_err().to_string();
        assert!(error.starts_with("\"orders.*\" is no subject: "), "{error}");
        assert_eq!(topic.subscriptions(), 3);
        system.run_until_idle();
        assert_eq!(log.take(), []);
    }
}

// GUARANTEE: Slow subscribers
#[test]
fn a_subscriber_that_ends_or_cancels_gets_nothing_more() {
    for seed in 0..50 {
        let system = simulated(seed);
        let log = Log::new();
        let topic = Topic::new(&system);
        let readers = ["a", "b", "c"].map(|name| system.spawn(Reader { name, log: log.clone() }));
        let subscriptions = readers.map(|reader| topic.subscribe(reader, SlowPublisher));
        let ended = system.spawn(Puppet);
        ended.stop();
        readers[0].stop();
        system.run_until_idle();
        assert_eq!(topic.subscriptions(), 2);
        subscriptions[1].cancel();
        assert_eq!(subscriptions.each_ref().map(|subscription| subscription.is_active()), [false, false, true]);
        assert_eq!(topic.publish(News(0, 1)).sent, 1);
        system.run_until_idle();
        assert_eq!(log.take(), [("c", 0, 1)]);
        assert_eq!(system.stats().total.dead_letters, 0, "seed {seed}");
        // A subscriber that ended before its subscription leaves, too.
        topic.subscribe(readers[0], SlowPublisher);
        system.run_until_idle();
        assert_eq!(topic.subscriptions(), 1);
        // A subscription does not keep its topic.
        drop(topic);
        subscriptions[2].cancel();
    }
}

#[test]
fn two_subscriptions_of_an_actor_are_two() {
    let system = simulated(1);
    let log = Log::new();
    let topic = Topic::new(&system);
    let reader = system.spawn(Reader { name: "a", log: log.clone() });
    let narrow = topic.subscribe_to("x.*", reader, SlowPublisher).unwrap();
    topic.subscribe(reader, SlowPublisher);
    assert_eq!(topic.publish_to("x.y", News(0, 1)).unwrap().sent, 2);
    narrow.cancel();
    assert_eq!(topic.publish_to("x.y", News(0, 2)).unwrap().sent, 1);
    reader.stop();
    system.run_until_idle();
    assert_eq!(topic.subscriptions(), 0);
}

/// Stands in a gate with its first message.
struct Sleeper {
    gate: Option<Turnstile>,
    log: Log<u64>,
}

impl Actor for Sleeper {}

/// A message of the largest size that fits into the queue.
#[derive(Message, Clone)]
struct Large(u64, #[expect(dead_code, reason = "it is there to be large")] [u64; 24]);

impl Handler<Large> for Sleeper {
    fn handle(&mut self, Large(number, _): Large, _: &mut Context<Self>) {
        if let Some(gate) = self.gate.take() {
            gate.pass();
        }
        self.log.push(number);
    }
}

// GUARANTEE: Slow subscribers
#[test]
fn a_slow_subscriber_is_treated_as_its_subscription_says() {
    finishes(|| {
        let system = threads(2);
        let topic = Topic::new(&system);
        let alone = || SpawnOptions::new().placement(Placement::Dedicated);
        let slow = |policy| {
            let (gate, turnstile) = Gate::new();
            let log = Log::new();
            let sleeper = system.spawn_with(alone(), Sleeper { gate: Some(turnstile), log: log.clone() });
            (gate, log, topic.subscribe(sleeper, policy))
        };
        let quick_log = Log::new();
        topic.subscribe(system.spawn(Sleeper { gate: None, log: quick_log.clone() }), SlowPublisher);
        let (dropper, dropped_log, dropping) = slow(DropNewest);
        let (leaver, left_log, leaving) = slow(Unsubscribe);
        topic.publish(Large(0, [0; 24]));
        dropper.wait_entered();
        leaver.wait_entered();
        let (mut published, mut sent, mut dropped, mut unsubscribed) = (1, 3, 0, 0);
        while dropped < 100 {
            let outcome = topic.publish(Large(published, [0; 24]));
            published += 1;
            sent += outcome.sent as u64;
            dropped += outcome.dropped as u64;
            unsubscribed += outcome.unsubscribed as u64;
            assert!(published < 200_000, "a subscriber that never reads is overloaded some time");
        }
        assert_eq!((dropping.dropped(), dropping.is_active()), (dropped, true));
        assert_eq!((unsubscribed, leaving.is_active(), topic.subscriptions()), (1, false, 2));
        dropper.open();
        leaver.open();
        system.run_until_idle();
        // A reader that has caught up gets the messages published after that.
        let last = topic.publish(Large(published, [0; 24]));
        assert_eq!((last.sent, last.dropped), (2, 0));
        published += 1;
        sent += 2;
        system.run_until_idle();
        let (quick, dropped_log, left) = (quick_log.take(), dropped_log.take(), left_log.take());
        assert_eq!(quick, (0..published).collect::<Vec<_>>());
        assert_eq!(dropped_log.len() as u64, published - dropped);
        assert!(dropped_log.is_sorted() && dropped_log.last() == Some(&(published - 1)));
        // The reader has missed no message up to its end.
        assert_eq!(left, (0..left.len() as u64).collect::<Vec<_>>());
        assert_eq!(sent, (quick.len() + dropped_log.len() + left.len()) as u64);
        system.shutdown().unwrap();
    });
}

// GUARANTEE: Slow subscribers
#[test]
fn a_publisher_that_is_slowed_loses_nothing() {
    finishes(|| {
        const NUMBERS: u64 = 30_000;
        let system = threads(2);
        let topic = Topic::new(&system);
        let (gate, turnstile) = Gate::new();
        let log = Log::new();
        let alone = SpawnOptions::new().placement(Placement::Dedicated);
        let sleeper = system.spawn_with(alone, Sleeper { gate: Some(turnstile), log: log.clone() });
        let subscription = topic.subscribe(sleeper, SlowPublisher);
        let published = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..NUMBERS {
                    assert_eq!(topic.publish(Large(number, [0; 24])).sent, 1);
                    published.fetch_add(1, Ordering::Relaxed);
                }
            });
            gate.wait_entered();
            // The queue would not take more. The publisher cannot come to its end before the gate is open.
            while sleeper.try_tell(Large(NUMBERS, [0; 24])).is_ok() {
                std::thread::yield_now();
            }
            assert!(published.load(Ordering::Relaxed) < NUMBERS);
            gate.open();
        });
        system.run_until_idle();
        let mut got = log.take();
        got.retain(|number| *number < NUMBERS);
        assert_eq!(got, (0..NUMBERS).collect::<Vec<_>>());
        assert_eq!(subscription.dropped(), 0);
        system.shutdown().unwrap();
    });
}

// -- theaters -----------------------------------------------------------------------------------------------------------

#[derive(Default)]
struct Board {
    notes: Vec<u64>,
}

#[derive(Message, Clone, Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
#[message(remote = "topic.Note")]
struct Note(u64);

#[actor(remote = "topic.Board")]
impl Board {
    #[message]
    fn notes(&self) -> Vec<u64> {
        self.notes.clone()
    }

    #[message]
    fn close(&mut self, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

impl Handler<Note> for Board {
    fn handle(&mut self, Note(note): Note, _: &mut Context<Self>) {
        self.notes.push(note);
    }
}

playhouse::remote!(also Board: Note);

// GUARANTEE: Topics keep order
#[test]
fn actors_of_another_theater_subscribe_and_leave_when_they_end() {
    finishes(|| {
        let theater = || Theater::builder().listen("127.0.0.1:0").system(System::builder().workers(1)).start().unwrap();
        let (here, there) = (theater(), theater());
        there.publish("board", there.system().spawn(Board::default())).unwrap();
        let address = there.address().unwrap();
        let board = here.find::<Board>(&format!("playhouse://{address}/board")).wait().unwrap();
        let topic = Topic::new(here.system());
        let mine = here.system().spawn(Board::default());
        let subscription = topic.subscribe_to("notes.>", board, SlowPublisher).unwrap();
        topic.subscribe(mine, DropNewest);
        for note in 0..100 {
            assert_eq!(topic.publish_to("notes.here", Note(note)).unwrap().sent, 2);
        }
        for reader in [board, mine] {
            assert_eq!(reader.ask(Notes).wait(), Ok((0..100).collect()));
        }
        // The watcher of the topic gets the notice of the end over the link.
        board.tell(Close);
        while subscription.is_active() {
            std::thread::yield_now();
        }
        assert_eq!(topic.publish_to("notes.here", Note(100)).unwrap().sent, 1);
        for theater in [here, there] {
            theater.shutdown().unwrap();
        }
    });
}
