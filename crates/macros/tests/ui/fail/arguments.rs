#![allow(unused)]
use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};

struct Counter;

#[actor(movable)]
impl Counter {
    #[message]
    fn add(&mut self, by: u64) {}
}

struct Second;

#[actor(name = "second", remote, more(and, more))]
impl Second {}

struct Third;

#[actor(remote, remote = "third")]
impl Third {}

struct Fourth;

#[actor(spawn)]
impl Fourth {}

#[derive(Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Fifth;

#[actor(remote = 5, spawn = "fifth")]
impl Fifth {}

#[derive(Serialize, Deserialize)]
#[serde(crate = "playhouse::serde")]
struct Sixth;

#[actor(remote = sixth, spawn, spawn)]
impl Sixth {}

struct Seventh;

#[actor(remote("seventh"))]
impl Seventh {}

struct Eighth;

#[actor(remote = "")]
impl Eighth {}

struct Ninth<T>(T);

#[actor(remote, spawn)]
impl<T: Send + 'static> Ninth<T> {
    #[message(local)]
    fn put(&mut self, value: T) {}
}

struct Tenth;

#[actor("tenth")]
impl Tenth {}

struct Eleventh;

#[actor(remote spawn)]
impl Eleventh {}

fn main() {
    // The other messages are still understood.
    System::start().unwrap().spawn(Counter).tell(Add(1));
}
