//! Groups that migrate.
//!
//! # The steps of a group migration
//!
//! An actor of a group migrates like any other ([`migration`](crate::migration)), but with all members that live beside it, as one *group
//! migration*:
//!
//! 1. *Freeze.* All members that live in this theater are frozen at one moment, when none of them is in a handler. They share a stage, so a request
//!    to one of them can examine all, and freeze all or none (`playhouse-executor`, `migration/freeze.rs`). If a member is not between two messages,
//!    no member is frozen. That member makes the next attempt, when it is between two messages. Idle members are not frozen early, because a busy
//!    member may be waiting for one.
//! 2. *Prepare.* Each member is told that it migrates, and is written into a frame of its own ([`Head::Member`](crate::link::frame::Head::Member)).
//!    If one cannot be prepared, all members are told that they stay. The target is told to drop the members that it has
//!    ([`Head::Apart`](crate::link::frame::Head::Apart)).
//! 3. *Send.* A frame behind the members says that these are all ([`Head::Together`](crate::link::frame::Head::Together)). The target accepts all of
//!    them as [incoming actors](crate::naming::arrivals), or none. It answers with their stubs, or with the refused member and the reason.
//! 4. *Commit.* When all that they have sent is [drained](crate::migration::drain), all cells in the source become stubs, or all of them thaw. The
//!    mail that waited in a cell goes after its actor, and [`Head::Begin`](crate::link::frame::Head::Begin) goes behind that.
//! 5. *Begin.* When that frame has come for all members, they begin in the target.
//!
//! ```text
//!          one is busy             one cannot be prepared
//!         ┌───────────┐        ┌──────────────────────────┐
//!         ▼           │        │                          ▼
//!     freeze ─────────┴──▶ prepare ──▶ send ──────▶ all stay in the source
//!                                       │  refused, lost
//!                                       └────▶ commit ──▶ all begin in the target
//!                               accepted, drained   all were committed
//! ```
//!
//! # All or none
//!
//! *Members.* The members are the actors that are noted as members when all are frozen ([`groups`](crate::naming::groups)). Members that other
//! actors start in this theater from then on stay behind. (A member starts no actor while it is frozen.) The directory says which members *live in
//! this theater*. Their cells do not, because a cell may not have learned it yet. For an arriving or departing group, the directory changes all
//! members at one time (under the lock of the [incoming actors](crate::naming::arrivals)), or the members are frozen.
//!
//! *Lost theaters.* There is one answer for all, and they begin at one time. If the target is lost before the commit, all continue in the source. If
//! the source is lost before it has committed all members, none begins in the target.
//!
//! *One group migration at a time.* A migration of a group that already migrates is queued until the group has arrived. By then the group may be in
//! another theater.
//!
//! # One stage
//!
//! All stubs of a group's actors in a theater are on one stage from the beginning, because references name the group. Therefore the members come to
//! that stage. Watchers, markers and arrival buffers are each member's own.
//!
//! # Order
//!
//! The order for each member is that of any migrating actor. A message from one member to another waits in the source's cells when the members are
//! frozen, because it was sent to their own stage. It is forwarded at the commit, before `Begin`, and no member begins in the target before that
//! frame has come for all. A member that also comes behind its own marker begins when that marker has come.
//!
//! # Why nothing waits for ever
//!
//! While the group waits for the freeze, no member is frozen. During the preparation, each member is idle, and is asked once. Attempts end after
//! [`FREEZE_MAX`], at the next one. (An actor that awaits something for ever is never between two messages: the migration waits for it, as for a
//! single actor.)

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use playhouse_actor::wire::{Freeze, PreparedActor};
use playhouse_actor::{ActorId, GroupName, MigrateError, Undelivered};

use crate::link::Link;
use crate::lock::lock;
use crate::migration::group_members::PreparedMember;
use crate::migration::host::Done;
use crate::node::core::TheaterCore;

/// The time in which attempts to find all members of a group between two messages begin.
const FREEZE_MAX: Duration = Duration::from_secs(10);

/// The migration of one group.
struct GroupMigration {
    theater_core: Arc<TheaterCore>,
    group: GroupName,
    link: Arc<Link>,
    number: u64,
    /// The end of the attempts, in the system's time.
    until: Duration,
    done: Mutex<Option<Done>>,
    preparation: Mutex<Preparation>,
}

#[derive(Default)]
struct Preparation {
    /// The number of members that have not been asked yet.
    left: usize,
    prepared: Vec<PreparedMember>,
    failed: Option<MigrateError>,
}

impl TheaterCore {
    /// Migrates a group to the theater behind `link`: all members that live in this theater.
    pub(crate) fn migrate_group(self: &Arc<Self>, group: GroupName, link: Arc<Link>, done: Done) {
        let theater_core = Arc::downgrade(self);
        let begin = move || {
            if let Some(theater_core) = theater_core.upgrade() {
                theater_core.begin_group(group, link, done);
            }
        };
        let queued = self.directory.groups().begin(group, Box::new(begin));
        if let Some(begin) = queued {
            begin();
        }
    }

    fn begin_group(self: &Arc<Self>, group: GroupName, link: Arc<Link>, done: Done) {
        let group_migration = Arc::new(GroupMigration {
            theater_core: Arc::clone(self),
            group,
            link,
            number: self.directory.next_number(),
            until: self.now() + FREEZE_MAX,
            done: Mutex::new(Some(done)),
            preparation: Mutex::default(),
        });
        let (here, elsewhere) = self.members(group);
        match here.first().or(elsewhere.first()) {
            Some(first) => group_migration.freeze_at(*first),
            None => group_migration.end(Err(MigrateError::Stopped)),
        }
    }

    /// Returns the theaters that members of the group have gone to, according to the directory.
    pub(crate) fn gone_to(&self, group: GroupName) -> Vec<u64> {
        let gone = self.members(group).1;
        gone.into_iter().filter_map(|member| self.directory.at(member)).map(|at| at.theater).collect()
    }

    /// Returns the actor itself, or the representative of its group: the first member that lives in this theater.
    pub(crate) fn first_of(&self, actor: ActorId) -> ActorId {
        let group = self.directory.groups().of(actor);
        group.and_then(|group| self.members(group).0.first().copied()).unwrap_or(actor)
    }

    /// Returns the members of a group that live in this theater according to the directory, and the others.
    pub(crate) fn members(&self, group: GroupName) -> (Vec<ActorId>, Vec<ActorId>) {
        // The lock admits no member during the look-up.
        let _incoming_actors = self.directory.incoming_actors();
        let members = self.directory.groups().members(group);
        members.into_iter().partition(|member| !self.directory.is_remote(*member))
    }
}

impl GroupMigration {
    fn preparation(&self) -> MutexGuard<'_, Preparation> {
        lock(&self.preparation)
    }

    /// Checks whether all members can be frozen when this member is between two messages.
    fn freeze_at(self: Arc<Self>, member: ActorId) {
        match self.theater_core.registry.migration_vtable(member).map(|(moves, _)| moves.when_freezable) {
            Some(when_freezable) => when_freezable(member, Box::new(move |freeze| self.try_freeze(freeze))),
            None => self.fail(member, MigrateError::Immobile),
        }
    }

    fn try_freeze(self: Arc<Self>, freeze: Result<Freeze<'_>, Undelivered>) {
        if matches!(freeze, Err(Undelivered::Shutdown)) {
            return self.end(Err(MigrateError::Stopped));
        }
        let (here, elsewhere) = self.theater_core.members(self.group);
        let Some(first) = here.first() else {
            let none = if elsewhere.is_empty() { MigrateError::Stopped } else { MigrateError::Elsewhere };
            return self.end(Err(none));
        };
        if let Some(stuck) = here.iter().find(|member| self.theater_core.registry.migration_vtable(**member).is_none())
        {
            return self.fail(*stuck, MigrateError::Immobile);
        }
        let Ok(freeze) = freeze else { return self.freeze_at(*first) };
        match freeze(&here) {
            Ok(frozen) => self.prepare(frozen),
            Err(busy) if self.theater_core.now() > self.until => self.fail(busy, MigrateError::Busy),
            Err(busy) => self.freeze_at(busy),
        }
    }

    /// Ends the migration before the freeze: all members stay.
    fn fail(self: Arc<Self>, member: ActorId, why: MigrateError) {
        let why = self.theater_core.directory.of_member(member, why);
        for member in self.theater_core.members(self.group).0 {
            if let Some((moves, _)) = self.theater_core.registry.migration_vtable(member) {
                (moves.failed)(member, why.clone());
            }
        }
        self.end(Err(why));
    }

    fn prepare(self: Arc<Self>, frozen: Vec<ActorId>) {
        self.preparation().left = frozen.len();
        for (member, at) in frozen.into_iter().zip(0..) {
            let group_migration = Arc::clone(&self);
            match self.theater_core.registry.migration_vtable(member).map(|(moves, _)| moves.prepare_frozen) {
                Some(prepare) => prepare(member, Box::new(move |actor| group_migration.prepared(member, at, actor))),
                None => drop(group_migration.prepared(member, at, Err(MigrateError::Stopped))),
            }
        }
    }

    /// Takes a member that is prepared, or cannot be. After an error the member continues in the source, and has been told; it must not be told
    /// twice.
    fn prepared(
        self: Arc<Self>,
        member: ActorId,
        at: u32,
        actor: Result<PreparedActor<'_>, MigrateError>,
    ) -> Result<(), MigrateError> {
        let failed = self.preparation().failed.clone();
        let prepared = match (failed, actor, self.theater_core.registry.migration_vtable(member)) {
            (Some(why), ..) => Err(why),
            (None, Ok(actor), Some(moves)) => self.link.prepare_member((self.number, at), member, *moves, &actor),
            (None, Err(why), _) => Err(why),
            (None, Ok(_), None) => Err(MigrateError::Stopped),
        };
        let told = {
            let mut preparation = self.preparation();
            preparation.left -= 1;
            let told = match prepared {
                Ok(prepared) => {
                    preparation.prepared.push(prepared);
                    Ok(())
                }
                Err(why) => {
                    let why =
                        preparation.failed.get_or_insert_with(|| self.theater_core.directory.of_member(member, why));
                    Err(why.clone())
                }
            };
            if preparation.left > 0 {
                return told;
            }
            told
        };
        self.send();
        told
    }

    /// Sends the group, because all members have been asked.
    fn send(self: Arc<Self>) {
        let Preparation { mut prepared, failed, .. } = std::mem::take(&mut *self.preparation());
        prepared.sort_by_key(|member| member.at);
        if let Some(why) = failed {
            self.link.say_abort(self.number);
            prepared.iter().for_each(|member| (member.moves.abort)(member.id, why.clone()));
            return self.end(Err(why));
        }
        let (link, group, number) = (Arc::clone(&self.link), self.group, self.number);
        link.send_together(
            &Arc::clone(&self.theater_core),
            (group, number),
            prepared,
            Box::new(move |gone| self.end(gone)),
        );
    }

    fn end(&self, ended: Result<(), MigrateError>) {
        let done = lock(&self.done).take();
        if let Some(done) = done {
            done(ended);
        }
        let next = self.theater_core.directory.groups().end(self.group);
        if let Some(begin) = next {
            begin();
        }
    }
}
