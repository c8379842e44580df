//! The input of rejected peers, in short: some 10,000 inputs each. `fuzz/` runs millions.

mod support;

use playhouse_actor::wire::{Remote, WireForm};
use playhouse_actor::*;
use playhouse_theater::fuzz;
use serde::{Deserialize, Serialize};

/// Takes every message.
#[derive(Serialize, Deserialize, Default)]
struct Open {
    heard: u64,
}

#[derive(Serialize, Deserialize)]
struct Anything {
    number: u64,
    text: String,
    list: Vec<u8>,
    of: Option<ActorRef<Open>>,
}
impl Message for Anything {
    type Reply = Option<ActorRef<Open>>;
    const WIRE: Option<WireForm<Anything>> = Some(WireForm::of());
}
impl Actor for Open {}
impl Handler<Anything> for Open {
    fn handle(&mut self, said: Anything, _: &mut Context<Self>) -> Option<ActorRef<Open>> {
        self.heard = self.heard.wrapping_add(said.number).wrapping_add((said.text.len() + said.list.len()) as u64);
        said.of
    }
}
remote!(spawn Open: Anything);

/// The same, but it migrates to the theater in the message.
#[derive(Serialize, Deserialize)]
struct Mobile(Open);
impl Actor for Mobile {}
impl Handler<Anything> for Mobile {
    fn handle(&mut self, said: Anything, ctx: &mut Context<Self>) -> Option<ActorRef<Open>> {
        ctx.migrate_to(([127, 0, 0, 1], 1).into());
        said.of
    }
}
remote!(mobile Mobile: Anything);

/// xorshift64* (Vigna).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end
    }

    /// Returns mostly small numbers, because kinds, lengths and handles are valid more often in that case.
    fn byte(&mut self) -> u8 {
        match self.below(4) {
            0 => self.below(256) as u8,
            1 => self.below(20) as u8,
            _ => self.below(3) as u8,
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        (0..self.below(80)).map(|_| self.byte()).collect()
    }

    /// Returns frames of each kind, each after its length. An actor is started first, to have a receiver.
    fn frames(&mut self, kind: u8) -> Vec<u8> {
        // A spawn: handle 0, the given kind by position, a place of birth, an epoch, and 5 as its state.
        let slot = self.below(128) as u8;
        let mut all = vec![10, 5, 0, kind, 0, slot, 1, 7, 0, 0, 5];
        for _ in 0..self.below(8) {
            let mut frame = vec![self.below(24) as u8];
            frame.extend(self.bytes());
            frame.truncate(255);
            all.push(frame.len() as u8);
            all.extend(frame);
        }
        all
    }
}

/// Returns the number of inputs; more, if the environment says it.
fn inputs() -> u64 {
    std::env::var("PLAYHOUSE_FUZZ_INPUTS").map_or(10_000, |inputs| inputs.parse().expect("a number"))
}

// GUARANTEE: Rejected peers harm no theater
#[test]
fn greetings_and_frames_of_unknown_peers_are_read_or_refused() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for _ in 0..inputs() {
        let bytes = random.bytes();
        fuzz::greeting(&bytes);
        fuzz::frame(&bytes);
        fuzz::session(&bytes);
    }
}

// GUARANTEE: Rejected peers harm no theater
#[test]
fn a_link_survives_all_frames_of_an_unknown_peer() {
    let theater = support::theater();
    let mut random = Random(0xD1B5_4A32_D192_ED03);
    let kinds = [Open::wire_name(), Mobile::wire_name()].map(|actor| {
        let kind = fuzz::kind_of_start(&theater, actor).and_then(|kind| u8::try_from(kind).ok());
        kind.filter(|kind| *kind < 128).expect("one byte says it")
    });
    for input in 0..inputs() {
        fuzz::link(&theater, &random.frames(kinds[input as usize % 2]));
    }
    theater.system().run_until_idle();
    let total = theater.system().stats().total;
    // A mobile actor may have the name of one that is about to end.
    assert!(total.spawned >= inputs() / 2, "{} started", total.spawned);
    assert_eq!(theater.system().stats().total.crashes, 0);
    theater.shutdown_within(support::LIMIT).unwrap();
}
