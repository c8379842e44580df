//! Writers to actors that migrate, and theaters for the migrations.

use std::sync::mpsc;

use playhouse_actor::*;
use playhouse_theater::{Peer, Theater};
use serde::{Deserialize, Serialize};

use crate::support::{LIMIT, theater};

#[derive(Serialize, Deserialize)]
pub struct Entry {
    pub from: u32,
    pub number: u64,
}
remote_message!(Entry -> ());

/// Answered with: entries taken, entries out of order, arrivals.
#[derive(Serialize, Deserialize)]
pub struct Sum;
remote_message!(Sum -> (u64, Vec<(u32, u64, u64)>, u32));

/// Sends entries to an actor: some at a time, and more once the last of them is answered.
pub struct Clerk<A: Actor> {
    pub to: ActorRef<A>,
    pub number: u32,
    pub sent: u64,
    pub total: u64,
    pub done: mpsc::Sender<()>,
}

pub struct Write;
impl Message for Write {
    type Reply = ();
}
impl<A: Actor> Actor for Clerk<A> {}
impl<A: Handler<Entry>> Handler<Write> for Clerk<A> {
    fn handle(&mut self, _: Write, ctx: &mut Context<Self>) {
        if self.sent >= self.total {
            let _ = self.done.send(());
            return;
        }
        let mut next = || {
            self.sent += 1;
            Entry { from: self.number, number: self.sent }
        };
        self.to.tell(next());
        self.to.tell(next());
        let last = next();
        ctx.ask(self.to, last).then(|_, answer, ctx| {
            answer.unwrap();
            ctx.this().tell(Write);
        });
    }
}

/// Returns theaters and their peers: `peers[a][b]` is b, as a knows it.
pub fn theaters(count: usize) -> (Vec<Theater>, Vec<Vec<Option<Peer>>>) {
    let theaters: Vec<Theater> = (0..count).map(|_| theater()).collect();
    let peers = theaters
        .iter()
        .map(|from| {
            let peer =
                |to: &Theater| (from.address() != to.address()).then(|| from.connect(to.address().unwrap()).unwrap());
            theaters.iter().map(peer).collect()
        })
        .collect();
    (theaters, peers)
}

pub fn ask<A, M, Mode>(to: ActorRef<A>, message: M) -> M::Reply
where
    A: Actor,
    M: HandledBy<A, Mode>,
{
    to.ask(message).within(LIMIT).wait().unwrap()
}
