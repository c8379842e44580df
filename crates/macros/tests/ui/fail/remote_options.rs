#![allow(unused)]
use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};

struct Counter;

#[actor(remote)]
impl Counter {
    #[message(remote = 5)]
    fn a(&mut self) {}

    #[message(remote("b"))]
    fn b(&mut self) {}

    #[message(remote, remote = "c")]
    fn c(&mut self) {}

    #[message(local = "d")]
    fn d(&mut self) {}

    #[message(local, local)]
    fn e(&mut self) {}

    #[message(local, remote = "f")]
    fn f(&mut self) {}

    #[message(derive(Debug, Serialize))]
    fn g(&mut self) {}

    #[message(remote = "")]
    fn h(&mut self) {}

    #[message(remote = "one")]
    fn i(&mut self) {}

    #[message(remote = "one")]
    fn j(&mut self) {}

    #[message]
    fn k(&mut self, name: &'static str) -> Option<&'static [u8]> {
        None
    }
}

struct Local;

#[actor]
impl Local {
    #[message(remote = "l")]
    fn l(&mut self) {}

    #[message(local)]
    fn m(&mut self) {}
}

#[derive(Message, Serialize, Deserialize)]
#[message(remote = "many")]
#[serde(crate = "playhouse::serde")]
struct Many<T>(T);

#[derive(Message, Serialize, Deserialize)]
#[message(remote = Order)]
#[serde(crate = "playhouse::serde")]
struct Order;

#[derive(Message, Serialize, Deserialize)]
#[message(remote)]
#[message(remote)]
#[serde(crate = "playhouse::serde")]
struct Twice;

#[derive(Message, Serialize, Deserialize)]
#[message(local)]
#[serde(crate = "playhouse::serde")]
struct LocalByDefault;

#[derive(Message, Serialize, Deserialize)]
#[message(remote, reply = &'static str)]
#[serde(crate = "playhouse::serde")]
struct Borrowed;

fn main() {}
