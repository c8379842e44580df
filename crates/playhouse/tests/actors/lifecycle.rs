//! How actors and systems begin and end.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::support::{Adder, Do, Gate, Increment, Log, Puppet, Scribe, Write, finishes, simulated, threads};
use playhouse::Undelivered;
use playhouse::prelude::*;

/// Logs its life cycle.
struct Diary {
    log: Log<String>,
}

impl Actor for Diary {
    fn started(&mut self, _: &mut Context<Self>) {
        self.log.push("started".into());
    }
    fn stopped(&mut self, _: &mut Context<Self>) {
        self.log.push("stopped".into());
    }
}

impl Drop for Diary {
    fn drop(&mut self) {
        self.log.push("dropped".into());
    }
}

#[derive(Message)]
enum Entry {
    Number(u64),
    StopYourself,
}

impl Handler<Entry> for Diary {
    fn handle(&mut self, entry: Entry, ctx: &mut Context<Self>) {
        match entry {
            Entry::Number(n) => self.log.push(n.to_string()),
            Entry::StopYourself => ctx.stop(),
        }
    }
}

type End = fn(ActorRef<Diary>);

fn diary(system: &System) -> (ActorRef<Diary>, Log<String>) {
    let log = Log::new();
    (system.spawn(Diary { log: log.clone() }), log)
}

// GUARANTEE: Start and end
#[test]
fn started_comes_first_and_stopped_and_drop_last() {
    for seed in 0..20 {
        let system = simulated(seed);
        let (diary, log) = diary(&system);
        diary.tell(Entry::Number(1));
        diary.tell(Entry::StopYourself);
        diary.tell(Entry::Number(2));
        system.run_until_idle();
        assert_eq!(log.take(), ["started", "1", "stopped", "dropped"], "seed {seed}");
        assert!(diary.is_stopped());
        assert_eq!(system.stats().total.dead_letters, 1);
    }
}

// GUARANTEE: Stop, drain, kill
#[test]
fn stop_leaves_what_is_queued_and_drain_handles_it_and_kill_skips_the_hook() {
    for seed in 0..20 {
        let system = simulated(seed);
        let ends: [(End, &[&str]); 3] = [
            (ActorRef::stop, &["stopped", "dropped"]),
            (ActorRef::drain, &["1", "2", "stopped", "dropped"]),
            (ActorRef::kill, &["dropped"]),
        ];
        for (end, expected) in ends {
            let (diary, log) = diary(&system);
            system.run_until_idle();
            assert_eq!(log.take(), ["started"]);
            diary.tell(Entry::Number(1));
            diary.tell(Entry::Number(2));
            end(diary);
            diary.tell(Entry::Number(3));
            system.run_until_idle();
            assert_eq!(log.take(), expected, "seed {seed}");
        }
    }
}

#[test]
fn stopping_twice_stops_once() {
    let system = simulated(5);
    let (diary, log) = diary(&system);
    diary.drain();
    diary.stop();
    diary.stop();
    diary.kill();
    diary.drain();
    system.run_until_idle();
    assert_eq!(log.take().iter().filter(|entry| *entry == "dropped").count(), 1);
}

/// An actor with a number, which detects messages for another actor.
struct Numbered {
    number: u64,
    mistaken: Arc<AtomicU64>,
}

impl Actor for Numbered {}

#[derive(Message)]
struct ForNumber(u64);

impl Handler<ForNumber> for Numbered {
    fn handle(&mut self, ForNumber(number): ForNumber, _: &mut Context<Self>) {
        if number != self.number {
            self.mistaken.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// GUARANTEE: Addresses
#[test]
fn an_old_reference_never_reaches_a_new_actor_in_the_same_cell() {
    finishes(|| {
        let system = threads(2);
        let mistaken = Arc::new(AtomicU64::new(0));
        let mut refs: Vec<(u64, ActorRef<Numbered>)> = Vec::new();
        let mut number = 0;
        for _ in 0..50 {
            let living: Vec<_> = (0..100)
                .map(|_| {
                    number += 1;
                    (number, system.spawn(Numbered { number, mistaken: Arc::clone(&mistaken) }))
                })
                .collect();
            for (number, old_or_new) in refs.iter().chain(&living) {
                old_or_new.tell(ForNumber(*number));
            }
            for (_, living) in &living {
                living.drain();
            }
            refs.extend(living);
            system.run_until_idle();
        }
        let distinct: HashSet<_> = refs.iter().map(|(_, actor)| actor.id()).collect();
        assert_eq!(distinct.len(), refs.len(), "an id was given twice");
        assert_eq!(mistaken.load(Ordering::Relaxed), 0);
        assert_eq!(system.stats().total.dead_letters, 100 * (0..50).sum::<u64>());
        system.shutdown().unwrap();
    });
}

#[test]
fn dead_letters_tell_the_names_of_actor_and_message() {
    let system = simulated(0);
    let letters = Log::new();
    let log = letters.clone();
    system.on_dead_letter(move |letter| log.push((letter.actor, letter.message, letter.why)));
    let (diary, _) = diary(&system);
    diary.stop();
    system.run_until_idle();
    diary.tell(Entry::Number(1));
    diary.tell_urgent(Entry::Number(2));
    system.run_until_idle();
    let letters = letters.take();
    assert_eq!(letters.len(), 2);
    for (actor, message, why) in letters {
        assert!(actor.ends_with("Diary") && message.ends_with("Entry") && why == Undelivered::Stopped);
    }
}

#[test]
fn shutdown_runs_the_stopped_hooks() {
    for simulate in [false, true] {
        let builder = System::builder().workers(2);
        let system = if simulate { builder.simulated(1) } else { builder }.start().unwrap();
        let (_, log) = diary(&system);
        let report = system.shutdown().unwrap();
        assert_eq!(report.actors_stopped, 1);
        assert_eq!(log.take(), ["started", "stopped", "dropped"]);
    }
}

#[test]
fn an_owned_actor_stops_when_its_owner_goes() {
    let system = simulated(2);
    let log = Log::new();
    let owned = system.spawn_owned(Diary { log: log.clone() });
    owned.tell(Entry::Number(1));
    system.run_until_idle();
    let kept: ActorRef<Diary> = *owned;
    drop(owned);
    system.run_until_idle();
    assert_eq!(log.take(), ["started", "1", "stopped", "dropped"]);
    assert!(kept.is_stopped());
}

/// An actor whose child ends with it.
struct Owner {
    log: Log<String>,
    _child: Option<OwnedActor<Diary>>,
}

impl Actor for Owner {
    fn started(&mut self, ctx: &mut Context<Self>) {
        self._child = Some(ctx.spawn_owned(Diary { log: self.log.clone() }));
    }
}

#[derive(Message)]
struct Panic;

impl Handler<Panic> for Owner {
    fn handle(&mut self, _: Panic, _: &mut Context<Self>) {
        panic!("the owner crashes");
    }
}

#[test]
fn an_owned_child_ends_with_its_parent_whatever_ends_that() {
    let system = simulated(3);
    for end in [ActorRef::stop, ActorRef::kill, |owner: ActorRef<Owner>| owner.tell(Panic)] {
        let log = Log::new();
        let owner = system.spawn(Owner { log: log.clone(), _child: None });
        system.run_until_idle();
        assert_eq!(log.take(), ["started"]);
        end(owner);
        system.run_until_idle();
        assert_eq!(log.take(), ["stopped", "dropped"]);
    }
}

// GUARANTEE: Addresses
#[test]
fn a_reference_is_a_plain_value_of_16_bytes() {
    fn plain<T: Copy + Send + Sync + Eq + Ord + std::hash::Hash + std::fmt::Debug + std::fmt::Display>() {}
    plain::<ActorRef<Diary>>();
    plain::<ActorId>();
    assert_eq!(size_of::<ActorRef<Diary>>(), 16);
    let system = simulated(0);
    let (one, _) = diary(&system);
    let (two, _) = diary(&system);
    let hash = |actor: ActorRef<Diary>| {
        let mut hasher = DefaultHasher::new();
        actor.hash(&mut hasher);
        hasher.finish()
    };
    assert!(one == one && one != two && hash(one) == hash(one) && hash(one) != hash(two));
    assert!(format!("{one:?}").starts_with("Diary#"), "{one:?}");
    assert_ne!(format!("{one}"), format!("{two}"));
    let recipient: Recipient<Entry> = one.recipient();
    assert_eq!(recipient.id(), one.id());
    assert!(format!("{recipient:?}").contains("Entry"), "{recipient:?}");
}

#[test]
fn a_recipient_hides_the_actors_type() {
    let system = simulated(0);
    let log = Log::new();
    let recipient: Recipient<Write> = system.spawn(Scribe(log.clone())).recipient();
    recipient.tell(Write(4));
    system.run_until_idle();
    assert_eq!(log.take(), [4]);
}

#[test]
fn a_dedicated_actor_has_a_thread_of_its_own() {
    finishes(|| {
        let system = threads(1);
        for _ in 0..3 {
            let (gate, turnstile) = Gate::new();
            let dedicated = system.spawn_with(SpawnOptions::new().placement(Placement::Dedicated), Puppet);
            dedicated.tell(Do::this(move |ctx| {
                turnstile.pass();
                ctx.stop();
            }));
            gate.wait_entered();
            assert_eq!(system.spawn(Adder).ask(Increment(1)).wait(), Ok(2));
            gate.open();
            system.run_until_idle();
            assert!(dedicated.is_stopped());
        }
        system.shutdown().unwrap();
    });
}

#[repr(align(64))]
struct Aligned(u8);

struct Odd {
    _large: [u64; 100],
    aligned: Aligned,
}

impl Actor for Odd {}

#[derive(Message)]
#[message(reply = (usize, u8))]
struct Peculiar {
    aligned: Aligned,
    _large: [u8; 1000],
}

impl Handler<Peculiar> for Odd {
    fn handle(&mut self, message: Peculiar, _: &mut Context<Self>) -> (usize, u8) {
        let misplaced = (&raw const message.aligned as usize | &raw const self.aligned as usize) % 64;
        (misplaced, message.aligned.0 + self.aligned.0)
    }
}

#[test]
fn states_and_messages_of_any_size_and_alignment_arrive_whole() {
    let system = simulated(0);
    let odd = system.spawn(Odd { _large: [7; 100], aligned: Aligned(3) });
    let ask = odd.ask(Peculiar { aligned: Aligned(4), _large: [1; 1000] });
    assert_eq!(ask.wait(), Ok((0, 7)));
}

#[test]
fn a_timer_of_a_stopped_hook_does_not_outlive_the_actor() {
    struct Lingering;
    impl Actor for Lingering {
        fn stopped(&mut self, ctx: &mut Context<Self>) {
            ctx.send_every(Duration::from_millis(1), Write(1));
        }
    }
    impl Handler<Write> for Lingering {
        fn handle(&mut self, _: Write, _: &mut Context<Self>) {}
    }
    finishes(|| {
        let system = threads(1);
        system.spawn(Lingering).stop();
        // The system is not idle before the periodic timer has gone with its actor.
        system.run_until_idle();
        system.shutdown().unwrap();
    });
}

// GUARANTEE: A dedicated actor may block
#[test]
fn the_group_of_a_dedicated_actor_is_on_a_common_stage() {
    finishes(|| {
        let system = System::builder().workers(1).stages(3).start().unwrap();
        let (groups, answers) = (Log::new(), Log::new());
        for _ in 0..2 {
            let dedicated = system.spawn_with(SpawnOptions::new().placement(Placement::Dedicated), Puppet);
            let (gate, turnstile) = Gate::new();
            let (groups, adders) = (groups.clone(), answers.clone());
            dedicated.tell(Do::this(move |ctx| {
                let group = ctx.group();
                groups.push(group);
                assert_eq!(ctx.group(), group);
                let adder = ctx.spawn_with(SpawnOptions::new().placement(Placement::Group(group)), Adder);
                adders.push(adder);
                turnstile.pass();
                ctx.stop();
            }));
            gate.wait_entered();
            // The dedicated actor blocks its thread, and its group goes on.
            for adder in answers.take() {
                assert_eq!(adder.ask(Increment(1)).wait(), Ok(2));
            }
            gate.open();
            system.run_until_idle();
            assert_eq!(system.stats().total.crashes, 0);
        }
        assert_eq!(groups.take().len(), 2);
        system.shutdown().unwrap();
    });
}

#[test]
fn the_group_of_an_actor_is_its_own_stage() {
    let system = System::builder().workers(2).stages(5).simulated(0).start().unwrap();
    for _ in 0..20 {
        let group = Group::new(&system);
        let options = SpawnOptions::new().placement(Placement::Group(group));
        let log = Log::new();
        let into = log.clone();
        system.spawn_with(options, Puppet).tell(Do::this(move |ctx| into.push(ctx.group())));
        system.run_until_idle();
        assert_eq!(log.take(), [group]);
    }
}
