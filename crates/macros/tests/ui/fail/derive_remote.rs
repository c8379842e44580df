#![allow(unused)]
use playhouse::prelude::*;
use playhouse::serde::{Deserialize, Serialize};

// A type without a wire form.
struct Socket;

#[derive(Message)]
#[message(remote)]
struct Underived;

#[derive(Message, Serialize)]
#[message(remote, reply = u64)]
#[serde(crate = "playhouse::serde")]
struct Unread;

#[derive(Message, Serialize, Deserialize)]
#[message(remote = "open", reply = Socket)]
#[serde(crate = "playhouse::serde")]
struct Open;

#[derive(Message, Serialize, Deserialize)]
#[message(remote)]
#[serde(crate = "playhouse::serde")]
struct Generic<T>(T);

fn send<M: Message>(message: M) {}

fn main() {
    send(Generic(1));
    send(Generic(Socket));
}
// GUARANTEE: Messages without a wire form are reported at once
