//! The state that migrations keep at a link, and the frames of migrations.

use std::any::Any;
use std::sync::{Arc, Mutex};

use playhouse_executor::contained;
use rustc_hash::FxHashMap;

use crate::link::frame::Head;
use crate::link::{Link, MigrationSlot};
use crate::lock::lock;
use crate::migration::announce_evacuation::Leaving;
use crate::migration::commit::Left;
use crate::migration::group_members::PendingGroups;
use crate::naming::{BirthName, Host};
use crate::node::core::TheaterCore;

/// The state that migrations keep at a link.
#[derive(Default)]
pub(crate) struct MigrationsAtLink {
    /// Members of groups that were sent, and wait for the others, by group migration.
    pub(crate) pending_groups: Mutex<PendingGroups>,
    /// Actors that have left for the other theater, and have not begun in it, according to this end.
    pub(crate) left: Mutex<FxHashMap<BirthName, Arc<Left>>>,
    /// Requests to the one thread that waits for the shutdown of the other end, if there is one.
    pub(crate) leaving: Mutex<Option<Leaving>>,
}

impl MigrationSlot for MigrationsAtLink {
    fn forget_incoming_actors(&self, link: &Link) {
        link.forget_incoming_actors();
    }

    fn lose(&self) {
        let left = std::mem::take(&mut *lock(&self.left));
        contained(|| drop(left));
        let pending_groups = std::mem::take(&mut *lock(&self.pending_groups));
        drop(pending_groups);
    }
}

impl Link {
    /// Returns the state of migrations at this link.
    pub(crate) fn migrations(&self) -> &MigrationsAtLink {
        let slot: &dyn Any = &*self.migration_slot;
        slot.downcast_ref().expect("the node gives it to each link")
    }
}

impl TheaterCore {
    /// Takes a frame of a migration.
    pub(crate) fn take_migration_frame(self: &Arc<Self>, link: &Link, head: Head, rest: &[u8]) {
        let named = |born: BirthName| born.slot_name().of(born.theater, None);
        match head {
            Head::Marker { to, ask, origin, hops } => link.take_marker(self, to, ask, origin, hops),
            Head::Move { ask, kind, codec, born, from } => {
                link.take_move(self, ask, (kind, codec.into()), (named(born), link.its(from)), rest);
            }
            Head::Member { of, at, kind, codec, born, from } => {
                link.take_member((of, at), (kind, codec.into()), (named(born), link.its(from)), rest);
            }
            Head::Together { ask, of, group, count } => link.take_together(self, ask, of, group, count),
            Head::Apart { of } => link.forget_pending_group(of),
            Head::Moved { handle } => link.take_moved(self, handle),
            Head::Begin { born } => link.take_begin(self, born),
            Head::Stays { born } => {
                let staying = self.directory.incoming_actors().stay(link.number(), born);
                link.forget(staying);
            }
            Head::Begun { born } => link.take_begun(born),
            Head::Leaving { ask } => link.take_leaving(self, ask),
            Head::Departs { ask, to, actors } => {
                let from = Host { theater: link.incarnation, address: link.advertised };
                for (name, epoch) in actors {
                    self.directory.note_departure(name, epoch, [from, to]);
                }
                link.reply(ask, &());
            }
            // The link passes on no other frames.
            _ => {}
        }
    }
}
