//! A directory: knows which client has which id, and sees to its clients in each phase.

use std::collections::HashMap;
use std::sync::Arc;

use playhouse::prelude::*;
use rustc_hash::FxBuildHasher;
use serde::{Deserialize, Serialize};

use super::client::Client;
use super::counts::Totals;
use super::driven::Act;
use super::local_context::LocalContext;
use super::messages::{
    Answer, Begin, Closed, Direct, Done, Found, LogOut, Lookup, MakeMove, Meet, Offline, Perform, Phase, PhaseDone,
};
use super::migration_plan::{MigrateOne, MigrationEnded, MigrationPlan};
use super::world::World;

/// Holds the clients whose ids leave its index as the remainder of a division by the number of directories.
///
/// It also collects the phases: it starts its clients, and tells the world when all of them are done.
#[derive(Serialize, Deserialize)]
pub(super) struct Directory {
    index: u32,
    world: ActorRef<World>,
    /// The indices in `clients`, by id, of the clients that are online.
    by_id: HashMap<u32, u32, IdHash>,
    /// The clients in the order of their ids.
    clients: Vec<ActorRef<Client>>,
    /// Clients that are not done with the current phase.
    waiting: usize,
    /// Clients that were told to log out.
    logged_out: usize,
    /// Messages sent on behalf of the clients in the current phase.
    sent: u64,
    totals: Totals,
    plan: Option<MigrationPlan>,
}

/// Clients of a directory that log out at the same time. Their final counts are large: a million of them at once would be the
/// largest data of the whole world.
const LOG_OUTS_AT_ONCE: usize = 64;

impl Directory {
    pub(super) fn new(index: u32, world: ActorRef<World>) -> Directory {
        Directory {
            index,
            world,
            by_id: HashMap::default(),
            clients: Vec::new(),
            waiting: 0,
            logged_out: 0,
            sent: 0,
            totals: Totals::default(),
            plan: None,
        }
    }

    fn open(&mut self, context: &Arc<LocalContext>, ctx: &mut Context<Self>) {
        self.plan = MigrationPlan::of(context);
        let ids = (self.index..context.scenario.clients).step_by(context.directories.len());
        self.clients.reserve_exact(ids.len());
        self.by_id.reserve(ids.len());
        for id in ids {
            self.by_id.insert(id, self.clients.len() as u32);
            self.clients.push(ctx.spawn(Client::new(Arc::clone(context), id)));
        }
        self.totals.messages.phase_done += 1;
        self.world.tell(PhaseDone { sent: 0 });
    }

    fn log_out_another(&mut self) {
        if let Some(client) = self.clients.get(self.logged_out) {
            self.logged_out += 1;
            self.totals.messages.log_out += 1;
            client.tell(LogOut);
        }
    }

    fn client_done(&mut self, sent: u64) -> bool {
        self.sent += sent;
        self.waiting -= 1;
        self.waiting == 0
    }
}

impl Actor for Directory {
    fn migrating(&mut self, _: &mut Context<Self>) {
        self.plan.iter_mut().for_each(MigrationPlan::departing);
    }

    fn migrated(&mut self, _: &mut Context<Self>) {
        self.plan.iter_mut().for_each(MigrationPlan::arrived);
    }

    fn migration_failed(&mut self, why: MigrateError, _: &mut Context<Self>) {
        self.plan.iter_mut().for_each(|plan| plan.stayed(&why));
    }
}

impl Handler<Begin> for Directory {
    fn handle(&mut self, begin: Begin, ctx: &mut Context<Self>) {
        self.waiting = self.clients.len();
        self.sent = 0;
        let messages = &mut self.totals.messages;
        let count = self.clients.len() as u64;
        match begin.0 {
            Phase::Open(context) => self.open(&context, ctx),
            Phase::Meet => {
                messages.meet += count;
                self.clients.iter().for_each(|client| client.tell(Meet));
            }
            Phase::Turn(turn) => {
                messages.make_move += count;
                self.clients.iter().for_each(|client| client.tell(MakeMove { turn }));
            }
            Phase::Close => {
                for _ in 0..LOG_OUTS_AT_ONCE {
                    self.log_out_another();
                }
            }
        }
    }
}

impl Handler<Direct> for Directory {
    fn handle(&mut self, direct: Direct, _: &mut Context<Self>) {
        self.waiting = self.clients.len();
        self.sent = 0;
        let count = self.clients.len() as u64;
        match direct {
            Direct::Meet(engagements) => {
                self.totals.messages.meet += count;
                for (client, (_, engage)) in self.clients.iter().zip(engagements) {
                    client.tell(engage);
                }
            }
            Direct::Turn(turn, acts) => {
                self.totals.messages.make_move += count;
                let mut acts = acts.into_iter().map(|(id, act)| (self.by_id[&id], act)).peekable();
                for (at, client) in (0..).zip(&self.clients) {
                    let act = acts.next_if(|(next, _)| *next == at).map_or(Act::Nothing, |(_, act)| act);
                    client.tell(Perform { turn, act });
                }
            }
        }
    }
}

impl Handler<Lookup> for Directory {
    fn handle(&mut self, lookup: Lookup, _: &mut Context<Self>) {
        let at = self.by_id.get(&lookup.id).expect("INVARIANT: clients are asked for while they are online");
        let client = self.clients[*at as usize];
        self.totals.messages.found += 1;
        lookup.from.tell(Found { client });
    }
}

impl Handler<Done> for Directory {
    fn handle(&mut self, done: Done, _: &mut Context<Self>) {
        if self.client_done(done.sent) {
            self.totals.messages.phase_done += 1;
            self.world.tell(PhaseDone { sent: self.sent });
        }
    }
}

impl Handler<Offline> for Directory {
    fn handle(&mut self, offline: Offline, _: &mut Context<Self>) {
        self.by_id.remove(&offline.id);
        self.totals += &offline.totals;
        self.log_out_another();
        if self.client_done(offline.sent) {
            self.totals.messages.phase_done += 1;
            self.world.tell(Closed { sent: self.sent, totals: Box::new(self.totals) });
        }
    }
}

impl Handler<Answer> for Directory {
    fn handle(&mut self, _: Answer, _: &mut Context<Self>) {}
}

impl Handler<MigrateOne> for Directory {
    fn handle(&mut self, mut migrate: MigrateOne, ctx: &mut Context<Self>) {
        match (migrate.choose(self.clients.len()), &mut self.plan) {
            (Some(client), _) => self.clients[client].tell(migrate),
            (None, Some(plan)) => plan.begin(&migrate).into_iter().for_each(|to| ctx.migrate_to(to)),
            (None, None) => migrate.migrator.tell(MigrationEnded::NotNeeded),
        }
    }
}

playhouse::remote!(mobile Directory: Answer, Begin, Lookup, Done, Offline, MigrateOne);

/// The hash of the ids of the world, the same in every process.
pub(super) type IdHash = FxBuildHasher;
