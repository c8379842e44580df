//! The service of a theater for its actors: migrations, and groups.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::actor::group::GroupName;
use crate::actor::migrate_error::MigrateError;
use crate::actor::of_system::migration_host_of;
use crate::actor::{ActorId, Watcher};

/// The migration service of a theater for its actors: sends them to other theaters, and records their groups.
pub trait MigrationHost: Send + Sync + 'static {
    /// Returns the name of a new group, or `None` if the theater is closing.
    fn new_group(&self) -> Option<GroupName>;
    /// Returns the stage of a group in this theater. It is `own` if this theater made the group.
    fn stage_of(&self, group: GroupName, own: u16) -> u16;
    /// Records that `actor`, of the type `kind`, was started in a group.
    fn join(&self, group: GroupName, actor: ActorId, kind: &'static str);
    /// Returns the group that the actor is a member of.
    fn group_of(&self, actor: ActorId) -> Option<GroupName>;
    /// Begins the migration of `actor` to the theater at `to`. `failed` is called if it fails early.
    fn migrate(&self, actor: ActorId, to: SocketAddr, failed: Box<dyn FnOnce(MigrateError) + Send>);
    /// Ends a watch on `actor` that the actor's stub has not recorded.
    fn forget_watch(&self, actor: ActorId, watcher: Watcher);
}

pub(crate) fn migration_host() -> Option<Arc<dyn MigrationHost>> {
    playhouse_executor::with_current_system(|system| {
        migration_host_of(system.expect("a handler runs on a worker")).cloned()
    })
}

/// Ends a watch on this actor. The actor's stub may have been about to record it.
pub(crate) fn forget_watch(actor: ActorId, watcher: Watcher) {
    if let Some(migration_host) = migration_host() {
        migration_host.forget_watch(actor, watcher);
    }
}
