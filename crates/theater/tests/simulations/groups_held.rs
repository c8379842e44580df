//! Groups that have arrived and have not begun, under many seeds: their earlier messages, and their fate if the theater that they
//! came from is lost.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::Waker;
use std::time::Duration;

use crate::census::CENSUS;
use crate::seeds::Seed;
use playhouse_actor::*;
use playhouse_theater::{Simulation, Theater};
use serde::{Deserialize, Serialize};

/// Returns the number of seeds of each test.
fn seeds() -> u64 {
    crate::seeds::or(500)
}

/// The time after which a theater gives another up.
const LOST_AFTER: Duration = Duration::from_secs(60);
/// The shorter time of one of the theaters.
const LOST_EARLY: Duration = Duration::from_secs(20);

// -- voices -------------------------------------------------------------------------------------------------------------

/// Speaks to another member of its group on command. Keeps whether orders and words come in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Voice {
    number: u32,
    to: Option<ActorRef<Voice>>,
    /// The theaters that it takes the group to after each arrival; the last one first.
    tour: Vec<SocketAddr>,
    told: u64,
    said: u64,
    heard: u64,
    /// Orders and words that it has not received.
    missed: Vec<String>,
    /// Messages that came twice or late.
    wrong: Vec<String>,
}

/// The number of this order, the number of words to be said, and the theater to go to after that.
#[derive(Serialize, Deserialize)]
struct Speak {
    number: u64,
    words: usize,
    goes: Option<SocketAddr>,
    padding: Vec<u8>,
}
remote_message!(Speak -> ());

#[derive(Serialize, Deserialize)]
struct Word {
    number: u64,
    padding: Vec<u8>,
}
remote_message!(Word -> ());

/// The member to speak to.
#[derive(Serialize, Deserialize)]
struct Meet(ActorRef<Voice>);
remote_message!(Meet -> ());

#[derive(Serialize, Deserialize)]
struct Read;
remote_message!(Read -> Voice);

impl Voice {
    fn member_id(&self) -> crate::census::MemberId {
        (0, self.number)
    }

    fn note(&mut self, what: &str, number: u64, last: u64) {
        let kept = if number <= last { &mut self.wrong } else { &mut self.missed };
        if number != last + 1 {
            kept.push(format!("{what} {number} after {last}"));
        }
    }
}

impl Actor for Voice {
    fn started(&mut self, ctx: &mut Context<Self>) {
        crate::census::lives(self.member_id(), ctx);
    }

    fn migrating(&mut self, ctx: &mut Context<Self>) {
        crate::census::departs(self.member_id(), ctx);
    }

    fn migrated(&mut self, ctx: &mut Context<Self>) {
        crate::census::has_arrived(self.member_id(), ctx);
        if let Some(next) = self.tour.pop() {
            ctx.migrate_to(next);
        }
    }

    fn migration_failed(&mut self, _: MigrateError, ctx: &mut Context<Self>) {
        crate::census::stays(self.member_id(), ctx);
    }
}
impl Handler<Meet> for Voice {
    fn handle(&mut self, Meet(other): Meet, _: &mut Context<Self>) {
        self.to = Some(other);
    }
}
impl Handler<Speak> for Voice {
    fn handle(&mut self, Speak { number, words, goes, .. }: Speak, ctx: &mut Context<Self>) {
        self.note("told", number, self.told);
        self.told = number;
        if let Some(to) = self.to {
            for _ in 0..words {
                self.said += 1;
                to.tell(Word { number: self.said, padding: vec![0; self.said as usize % 300] });
            }
        }
        if let Some(there) = goes {
            ctx.migrate_to(there);
        }
    }
}
impl Handler<Word> for Voice {
    fn handle(&mut self, Word { number, .. }: Word, _: &mut Context<Self>) {
        self.note("heard", number, self.heard);
        self.heard = number;
    }
}
impl Handler<Read> for Voice {
    fn handle(&mut self, _: Read, _: &mut Context<Self>) -> Voice {
        self.clone()
    }
}
remote!(mobile Voice: Meet, Speak, Word, Read);

// -- choirs -------------------------------------------------------------------------------------------------------------

fn start(net: &Simulation, lost_after: Duration) -> Theater {
    let system = System::builder().workers(2).stages(8);
    net.theater(Theater::builder().listen("127.0.0.1:0").system(system).lost_after(lost_after)).unwrap()
}

/// A group with members that speak to each other in a ring.
struct Choir {
    net: Simulation,
    group: Group,
    voices: Vec<ActorRef<Voice>>,
    told: u64,
}

impl Choir {
    fn new(net: &Simulation, home: &Theater, voices: u32, tour: &[SocketAddr]) -> Choir {
        let group = Group::new(home.system());
        let start = |number| {
            let options = SpawnOptions::new().placement(Placement::Group(group));
            let tour = if number == 0 { tour.to_vec() } else { Vec::new() };
            let voice = Voice { number, to: None, tour, told: 0, said: 0, heard: 0, missed: vec![], wrong: vec![] };
            home.system().spawn_with(options, voice)
        };
        let voices: Vec<_> = (0..voices).map(start).collect();
        for (voice, next) in voices.iter().zip(voices.iter().cycle().skip(1)) {
            voice.tell(Meet(*next));
        }
        net.run_until_idle();
        Choir { net: net.clone(), group, voices, told: 0 }
    }

    /// Tells all members to speak.
    fn speak(&mut self, goes: Option<SocketAddr>) {
        self.told += 1;
        for voice in &self.voices {
            // More than some wires take at one time.
            let padding = vec![0; self.net.choose(3_000)];
            voice.tell(Speak { number: self.told, words: self.net.choose(6), goes, padding });
        }
    }

    /// Returns whether some members live in this theater.
    fn lives_in(&self, theater: &Theater) -> bool {
        let system = theater.system().core().id();
        CENSUS.with_borrow(|census| census.lives.values().flatten().any(|(lives, _)| *lives == system))
    }

    /// Checks that nothing came twice or out of order, and that all members are together. `all`: also that nothing was lost.
    fn check(&self, all: bool) {
        CENSUS.with_borrow(|census| census.check_together(0..1));
        let voices: Vec<Voice> = self.voices.iter().map(|voice| voice.ask(Read).wait().unwrap()).collect();
        for (voice, next) in voices.iter().zip(voices.iter().cycle().skip(1)) {
            assert_eq!(voice.wrong, Vec::<String>::new(), "voice {}", voice.number);
            if all {
                assert_eq!((&voice.missed, voice.told), (&vec![], self.told), "voice {}", voice.number);
                assert_eq!(next.heard, voice.said, "what voice {} has said", voice.number);
            }
        }
    }
}

// GUARANTEE: Order holds while a group migrates
#[test]
fn a_group_begins_behind_what_its_members_sent_each_other_before_under_every_seed() {
    for seed in crate::seeds::range(500) {
        let _seed = Seed(seed);
        CENSUS.take();
        let net = Simulation::new(seed);
        let [here, there] = [LOST_AFTER; 2].map(|time| start(&net, time));
        let peer = here.connect(there.address().unwrap()).unwrap();
        let mut choir = Choir::new(&net, &here, 3, &[]);
        for (voice, number) in choir.voices.iter_mut().zip(0..) {
            here.publish(format!("{number}"), *voice).unwrap();
            *voice = there.find(&format!("playhouse://{}/{number}", here.address().unwrap())).wait().unwrap();
        }
        for _ in 0..3 {
            // Nothing is in transit: no member waits for a marker when they come back.
            here.migrate_group(choir.group, &peer).wait().unwrap();
            net.run_until_idle();
            net.slow(&there, Duration::from_micros(net.choose(1_000) as u64));
            // They migrate while they speak and get orders.
            for turn in 0..10 {
                choir.speak(here.address().filter(|_| turn == 1));
                net.run_for(Duration::from_micros(net.choose(300) as u64));
            }
            net.run_until_idle();
            choir.check(true);
        }
    }
}

// GUARANTEE: A group is lost as one
#[test]
fn a_group_between_disconnecting_theaters_lives_once_or_not_at_all() {
    let (mut stayed, mut lost, mut beyond, mut through) = (0, 0, 0, 0);
    for seed in crate::seeds::range(500) {
        let _seed = Seed(seed);
        CENSUS.take();
        let net = Simulation::new(seed);
        let [a, b, c] = [LOST_AFTER, LOST_EARLY, LOST_AFTER].map(|time| start(&net, time));
        let (to_b, to_c) = (a.connect(b.address().unwrap()).unwrap(), a.connect(c.address().unwrap()).unwrap());
        b.connect(c.address().unwrap()).unwrap();
        // If the group arrives, it goes back at once, over the third theater.
        let mut choir = Choir::new(&net, &a, 3, &[a.address().unwrap(), c.address().unwrap()]);
        choir.speak(None);
        // Slow enough that some words are still unsent, and some unread.
        net.slow(&a, Duration::from_micros(200));
        net.run_for(Duration::from_micros(net.choose(3_000) as u64));
        net.slow(&a, Duration::ZERO);
        let mut goes = a.migrate_group(choir.group, &to_b);
        let mut has_gone = || Pin::new(&mut goes).poll(&mut std::task::Context::from_waker(Waker::noop())).is_ready();
        net.run_for(Duration::from_micros(net.choose(1_200) as u64));
        choir.speak(None);
        let mut are_apart = false;
        if !has_gone() {
            net.cut(&a, &b);
            // Some bytes in transit may still arrive.
            net.run_for(Duration::from_millis(100));
            are_apart = net.choose(4) > 0;
            if !are_apart {
                // This is before one theater gives the other up.
                net.run_for(Duration::from_millis(net.choose(2_000) as u64));
                net.heal(&a, &b);
            }
        }
        for _ in 0..4 {
            choir.speak(None);
            net.run_for(Duration::from_secs(30));
        }
        if net.choose(2) == 0 {
            net.heal(&a, &b);
        }
        net.run_until_idle();
        if !are_apart {
            through += 1;
            choir.check(true);
        } else if !choir.lives_in(&a) && !choir.lives_in(&c) {
            // The group had left its theater, and not begun in the other one. Or it has begun in the other one, which is lost to
            // this one.
            let has_begun = choir.lives_in(&b);
            CENSUS.with_borrow(|census| {
                assert_eq!(census.twice, vec![]);
                assert!(census.lives.values().all(|lives| lives.len() == usize::from(has_begun)), "{:?}", census.lives);
            });
            *if has_begun { &mut beyond } else { &mut lost } += 1;
            for voice in &choir.voices {
                voice.ask(Read).wait().unwrap_err();
            }
            continue;
        } else {
            // Messages in transit between the two may be lost.
            stayed += 1;
            choir.check(false);
        }
        // The group is idle, and can migrate on.
        a.migrate_group(choir.group, &to_c).wait().unwrap();
        choir.speak(None);
        net.run_until_idle();
        choir.check(!are_apart);
    }
    let few = seeds() as usize / 50;
    assert!(stayed > few && lost > few && beyond > 0 && through > few, "{stayed} {lost} {beyond} {through}");
}
