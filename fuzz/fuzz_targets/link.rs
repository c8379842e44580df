#![no_main]

use std::sync::OnceLock;

use playhouse_actor::wire::{Remote, WireForm};
use playhouse_actor::{Actor, ActorRef, Context, Handler, Message, System, remote};
use playhouse_theater::{Theater, fuzz};
use serde::{Deserialize, Serialize};

/// Takes whatever comes.
#[derive(Serialize, Deserialize)]
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

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static THEATER: OnceLock<Theater> = OnceLock::new();
    let theater = || Theater::builder().system(System::builder().workers(1)).start().expect("a theater");
    let theater = THEATER.get_or_init(theater);
    // The actor that there is to talk to: handle 0, by position. One byte says its kind.
    let kind = fuzz::kind_of_start(theater, Open::wire_name()).expect("it is listed") as u8;
    let begun = [&[5, 5, 0, kind, 0, 5], bytes].concat();
    fuzz::link(theater, &begun);
});
