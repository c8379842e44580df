//! Groups that move.
//!
//! # How a group moves
//!
//! An actor of a group moves as any other ([`moves`](crate::migration::host)), but with all that live beside it, as one *journey*:
//!
//! 1. *Gathering.* All members that live here are frozen at one moment, when none of them is in a handler. They share a stage,
//!    so a request to one of them can look at all, and freeze all or none (`playhouse-executor`, `migration/freeze.rs`). Where one is not
//!    between two messages, none is frozen, and the next attempt is made by that one, when it is. It cannot be frozen
//!    beforehand who is ready: it may be the one that the other waits for.
//! 2. *Packing.* Each of them is told that it departs, and is written into a frame of its own
//!    ([`Head::Member`](crate::link::frame::Head::Member)). If one cannot go, all are told that they stay, and the other theater that
//!    what it has is of no use ([`Head::Apart`](crate::link::frame::Head::Apart)).
//! 3. *Going.* Behind the frames goes the word that these are all ([`Head::Together`](crate::link::frame::Head::Together)). The other
//!    theater accepts all of them as [guests](crate::migration::arrivals), or none. It says where their places are, or who does not come and why.
//! 4. *Leaving.* When all that they have sent is [drained](crate::migration::drain), the cells here become places, all of them; or all thaw. What waited in a
//!    cell goes after its actor, and behind that [`Head::Begin`](crate::link::frame::Head::Begin).
//! 5. *Beginning.* When that has been said of all, they begin over there.
//!
//! ```text
//!          one is busy              one cannot be written
//!         ┌────────────┐        ┌──────────────────────────┐
//!         ▼            │        │                          ▼
//!     gathering ───────┴──▶ packing ──▶ going ─────▶ they stay here
//!                                         │  refused, lost
//!                                         └────▶ leaving ──▶ they begin there
//!                                 accepted, drained     all were left
//! ```
//!
//! # All or none
//!
//! *Who is a member.* Whoever was noted as one when all are frozen ([`groups`](crate::migration::groups)). Members that others start here
//! from then on stay behind. (A member starts nobody while it is frozen.) That a member *lives here* is what the directory says,
//! not its cell, which may not have heard yet: of a group that comes or goes the directory says it of all members at one
//! time (under the lock of the [guests](crate::migration::arrivals)), or they are frozen.
//!
//! *Lost theaters.* There is one answer for all, and they begin at one time. If the other theater is lost before they leave, all go on here. If
//! this one is lost before all were left, none begins there.
//!
//! *One journey at a time.* Who wants a group to move while it does waits until it has come to rest; then that may be
//! elsewhere.
//!
//! # One stage
//!
//! All places of a group's actors in a theater are on one stage from the beginning, since references tell the group. So wherever they
//! come, they come to that. Watchers, markers and antechambers are each member's own.
//!
//! # Order
//!
//! For each member it is as for any actor that moves. What one of them has sent to another waits in the cells here when they are frozen (it was
//! sent to their own stage). It is sent on when they leave, before `Begin`, and nobody begins there before that has come of all. Where
//! one of them comes behind its own marker as well, it begins when that is there.
//!
//! # Why nothing waits for ever
//!
//! While it gathers, nobody is frozen. While it packs, each member is at rest, and is asked once. Attempts end after
//! [`GATHER_MAX`], at the next one. (Who awaits something for ever never is between two messages: as with one actor, that is
//! waited for.)

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use playhouse_actor::wire::{Freeze, PreparedActor};
use playhouse_actor::{ActorId, GroupName, MigrateError, Undelivered};

use crate::link::{Link, PreparedMember};
use crate::migration::groups::QueuedMigration;
use crate::migration::host::Done;
use crate::node::core::TheaterCore;

/// Attempts to find all members of a group between two messages begin for so long.
const GATHER_MAX: Duration = Duration::from_secs(10);

/// A group on its way.
struct GroupMigration {
    theater_core: Arc<TheaterCore>,
    group: GroupName,
    link: Arc<Link>,
    number: u64,
    /// No attempts begin after this, in the system's time.
    until: Duration,
    done: Mutex<Option<Done>>,
    packing: Mutex<Packing>,
}

#[derive(Default)]
struct Packing {
    /// So many have not been asked yet.
    left: usize,
    packed: Vec<PreparedMember>,
    failed: Option<MigrateError>,
}

impl TheaterCore {
    /// Has a group taken to the theater behind `link`: all members that live here.
    pub(crate) fn migrate_group(self: &Arc<Self>, group: GroupName, link: Arc<Link>, done: Done) {
        let queued = self.directory.groups().begin(group, (link, done));
        if let Some(queued) = queued {
            self.set_out(group, queued);
        }
    }

    fn set_out(self: &Arc<Self>, group: GroupName, (link, done): QueuedMigration) {
        let group_migration = Arc::new(GroupMigration {
            theater_core: Arc::clone(self),
            group,
            link,
            number: self.directory.next_number(),
            until: self.now() + GATHER_MAX,
            done: Mutex::new(Some(done)),
            packing: Mutex::default(),
        });
        let (here, elsewhere) = self.members(group);
        match here.first().or(elsewhere.first()) {
            Some(first) => group_migration.gather_at(*first),
            None => group_migration.end(Err(MigrateError::Stopped)),
        }
    }

    /// The theaters that some of a group have gone to, as far as is known.
    pub(crate) fn gone_to(&self, group: GroupName) -> Vec<u64> {
        let gone = self.members(group).1;
        gone.into_iter().filter_map(|member| self.directory.at(member)).map(|at| at.theater).collect()
    }

    /// The actor itself, or the one that stands for its group: the first that lives here.
    pub(crate) fn first_of(&self, actor: ActorId) -> ActorId {
        let group = self.directory.groups().of(actor);
        group.and_then(|group| self.members(group).0.first().copied()).unwrap_or(actor)
    }

    /// The members of a group that live here, as far as is known, and the others.
    pub(crate) fn members(&self, group: GroupName) -> (Vec<ActorId>, Vec<ActorId>) {
        // So that none comes while it is looked.
        let _incoming_actors = self.directory.incoming_actors();
        let members = self.directory.groups().members(group);
        members.into_iter().partition(|member| !self.directory.is_remote(*member))
    }
}

impl GroupMigration {
    fn packing(&self) -> MutexGuard<'_, Packing> {
        self.packing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks whether all can go when this member is between two messages.
    fn gather_at(self: Arc<Self>, member: ActorId) {
        match self.theater_core.registry.migration_vtable(member).map(|(moves, _)| moves.when_freezable) {
            Some(gather) => gather(member, Box::new(move |freeze| self.look(freeze))),
            None => self.fail(member, MigrateError::Immobile),
        }
    }

    fn look(self: Arc<Self>, freeze: Result<Freeze<'_>, Undelivered>) {
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
        let Ok(freeze) = freeze else { return self.gather_at(*first) };
        match freeze(&here) {
            Ok(frozen) => self.pack(frozen),
            Err(busy) if self.theater_core.now() > self.until => self.fail(busy, MigrateError::Busy),
            Err(busy) => self.gather_at(busy),
        }
    }

    /// Nobody was frozen, and nobody goes.
    fn fail(self: Arc<Self>, member: ActorId, why: MigrateError) {
        let why = self.theater_core.directory.of_member(member, why);
        for member in self.theater_core.members(self.group).0 {
            if let Some((moves, _)) = self.theater_core.registry.migration_vtable(member) {
                (moves.failed)(member, why.clone());
            }
        }
        self.end(Err(why));
    }

    fn pack(self: Arc<Self>, frozen: Vec<ActorId>) {
        self.packing().left = frozen.len();
        for (member, at) in frozen.into_iter().zip(0..) {
            let group_migration = Arc::clone(&self);
            match self.theater_core.registry.migration_vtable(member).map(|(moves, _)| moves.prepare_frozen) {
                Some(pack) => pack(member, Box::new(move |pack| group_migration.packed(member, at, pack))),
                None => drop(group_migration.packed(member, at, Err(MigrateError::Stopped))),
            }
        }
    }

    /// A member is ready to go, or does not go. On an error it goes on here, and is told; it must not be told twice.
    fn packed(
        self: Arc<Self>,
        member: ActorId,
        at: u32,
        pack: Result<PreparedActor<'_>, MigrateError>,
    ) -> Result<(), MigrateError> {
        let failed = self.packing().failed.clone();
        let packed = match (failed, pack, self.theater_core.registry.migration_vtable(member)) {
            (Some(why), ..) => Err(why),
            (None, Ok(pack), Some(moves)) => self.link.pack_member((self.number, at), member, *moves, &pack),
            (None, Err(why), _) => Err(why),
            (None, Ok(_), None) => Err(MigrateError::Stopped),
        };
        let told = {
            let mut packing = self.packing();
            packing.left -= 1;
            let told = match packed {
                Ok(packed) => {
                    packing.packed.push(packed);
                    Ok(())
                }
                Err(why) => {
                    let why = packing.failed.get_or_insert_with(|| self.theater_core.directory.of_member(member, why));
                    Err(why.clone())
                }
            };
            if packing.left > 0 {
                return told;
            }
            told
        };
        self.go();
        told
    }

    /// All have been asked.
    fn go(self: Arc<Self>) {
        let Packing { mut packed, failed, .. } = std::mem::take(&mut *self.packing());
        packed.sort_by_key(|member| member.at);
        if let Some(why) = failed {
            self.link.say_apart(self.number);
            packed.iter().for_each(|member| (member.moves.abort)(member.id, why.clone()));
            return self.end(Err(why));
        }
        let (link, group, number) = (Arc::clone(&self.link), self.group, self.number);
        link.send_together(group, number, packed, Box::new(move |gone| self.end(gone)));
    }

    fn end(&self, ended: Result<(), MigrateError>) {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(done) = done {
            done(ended);
        }
        let next = self.theater_core.directory.groups().end(self.group);
        if let Some(queued) = next {
            self.theater_core.set_out(self.group, queued);
        }
    }
}
