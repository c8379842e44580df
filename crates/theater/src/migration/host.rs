//! Requests of actors: to migrate, and to be in a group.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use playhouse_actor::wire::MigrationHost;
use playhouse_actor::{ActorId, GroupName, MigrateError, Watcher};

use crate::error::TheaterError;
use crate::link::Link;
use crate::node::core::TheaterCore;

/// The longest time from the arrival of an actor until its cell learns of it. It is as long as a worker takes for a gulp.
const ARRIVAL_MAX: Duration = Duration::from_secs(10);

/// Called with the result of a migration.
pub(crate) type Done = Box<dyn FnOnce(Result<(), MigrateError>) + Send>;

impl TheaterCore {
    /// Migrates an actor to the theater behind `link`, with its group if it is in one.
    pub(crate) fn migrate(self: &Arc<Self>, id: ActorId, link: Arc<Link>, done: Done) {
        if id.address().system() != self.system.core().id() {
            // The name belongs to another theater of this process.
            return done(Err(MigrateError::Elsewhere));
        }
        self.migrate_until(self.now() + ARRIVAL_MAX, id, link, done);
    }

    /// Does the work of [`TheaterCore::migrate`]. Until then, a cell may have to learn that its actor has come.
    fn migrate_until(self: &Arc<Self>, until: Duration, id: ActorId, link: Arc<Link>, done: Done) {
        let group = self.directory.groups().of(id);
        if let Some(group) = group {
            return self.migrate_group(group, link, done);
        }
        let Some(moves) = self.registry.migration_vtable(id).copied() else { return done(Err(MigrateError::Stopped)) };
        let theater_core = Arc::clone(self);
        let offer = move |actor: Result<playhouse_actor::wire::PreparedActor<'_>, MigrateError>| match actor {
            Ok(actor) => link.offer(&theater_core, id, moves, &actor, done),
            Err(MigrateError::Elsewhere)
                if theater_core.directory.lives_in_this_theater(id) && theater_core.now() < until =>
            {
                // The actor has begun in this theater, and the request that tells its cell is still with the worker that sends it.
                theater_core.migrate_until(until, id, link, done);
                Err(MigrateError::Elsewhere)
            }
            Err(why) => {
                done(Err(why.clone()));
                Err(why)
            }
        };
        (moves.0.prepare)(id, Box::new(offer));
    }
}

/// A theater, as its actors see it.
pub(crate) struct TheaterMigrationHost(pub(crate) Weak<TheaterCore>);

impl MigrationHost for TheaterMigrationHost {
    fn new_group(&self) -> Option<GroupName> {
        let theater_core = self.0.upgrade()?;
        let number = theater_core.directory.groups().make();
        Some(GroupName { theater: theater_core.incarnation, number })
    }

    fn stage_of(&self, group: GroupName, own: u16) -> u16 {
        let Some(theater_core) = self.0.upgrade() else { return own };
        let choose =
            || if group.theater == theater_core.incarnation { own } else { theater_core.system.core().next_stage() };
        theater_core.directory.groups().stage_of(group, choose)
    }

    fn join(&self, group: GroupName, actor: ActorId, kind: &'static str) {
        if let Some(theater_core) = self.0.upgrade() {
            theater_core.directory.groups().join(group, actor, kind);
        }
    }

    fn group_of(&self, actor: ActorId) -> Option<GroupName> {
        self.0.upgrade()?.directory.groups().of(actor)
    }

    fn forget_watch(&self, actor: ActorId, watcher: Watcher) {
        if let Some(theater_core) = self.0.upgrade() {
            theater_core.directory.forget_watch(actor, watcher);
        }
    }

    fn migrate(&self, actor: ActorId, to: SocketAddr, failed: Box<dyn FnOnce(MigrateError) + Send>) {
        let Some(theater_core) = self.0.upgrade() else { return failed(MigrateError::Stopped) };
        if theater_core.listens == Some(to) {
            return;
        }
        // The actor itself is told the result.
        let done: Done = Box::new(drop);
        if let Some(link) = theater_core.known_link(to) {
            return theater_core.migrate(actor, link, done);
        }
        let there = Arc::clone(&theater_core);
        let called = move |link: Result<Arc<Link>, TheaterError>| match link {
            Ok(link) => there.migrate(actor, link, done),
            Err(error) => failed(MigrateError::Unreachable(error.to_string())),
        };
        // Calling may take a while.
        theater_core.reach_later(to, Duration::ZERO, Box::new(called));
    }
}
