//! The members of a migrating group at a link: sent one by one, and accepted together. See [`crate::migration::group`].

use std::sync::Arc;

use playhouse_actor::away::{ActorLocation, TakeAnswer, at_ref_codec};
use playhouse_actor::wire::{Codec, MigrationVTable, PreparedActor, Spawns};
use playhouse_actor::{ActorId, GroupName, MigrateError};
use playhouse_executor::{Lane, pause_stage};
use rustc_hash::FxHashMap;

use crate::link::frame::Head;
use crate::link::{Fault, Link, MEMBER_WINDOWS_MAX, MEMBERS_MAX, RESERVE_BYTES};
use crate::lock::lock;
use crate::migration::commit::{Ready, received, unwritable};
use crate::migration::host::Done;
use crate::naming::arrivals::IncomingActor;
use crate::naming::{Epoch, RemoteActorId};
use crate::node::core::TheaterCore;

/// Members of groups that were sent, and wait for the others.
#[derive(Default)]
pub(crate) struct PendingGroups {
    by_group_migration: FxHashMap<u64, PendingGroup>,
    /// Members that are kept, and groups that were refused.
    pub(crate) members: usize,
    pub(crate) bytes: usize,
}

/// The members of a group that are kept, or the refusal of the group.
enum PendingGroup {
    /// Members that were read, by position, or the reason why one cannot be read; with their bytes.
    Kept(FxHashMap<u32, (Result<IncomingActor, String>, usize)>),
    /// The group is too large. The position is that of the refused member.
    Refused(u32),
}

impl PendingGroups {
    /// Returns whether a member of `bytes` bytes is kept of this group.
    fn has_room(&self, of: u64, bytes: usize, bytes_max: usize) -> bool {
        let is_refused = matches!(self.by_group_migration.get(&of), Some(PendingGroup::Refused(_)));
        !is_refused && self.members < MEMBERS_MAX && self.bytes + bytes <= bytes_max
    }

    /// Keeps a member, if its group is not refused. Returns an earlier member with its position.
    fn keep(
        &mut self,
        of: u64,
        at: u32,
        incoming: Result<IncomingActor, String>,
        bytes: usize,
    ) -> Option<Result<IncomingActor, String>> {
        let pending_group =
            self.by_group_migration.entry(of).or_insert_with(|| PendingGroup::Kept(FxHashMap::default()));
        let PendingGroup::Kept(incoming_actors) = pending_group else { return Some(incoming) };
        let before = incoming_actors.insert(at, (incoming, bytes));
        (self.members, self.bytes) = (self.members + 1, self.bytes + bytes);
        let (incoming, bytes) = before?;
        (self.members, self.bytes) = (self.members - 1, self.bytes - bytes);
        Some(incoming)
    }

    /// Keeps only the refusal of this group. Returns the former entry.
    fn refuse(&mut self, of: u64, at: u32) -> Option<PendingGroup> {
        if matches!(self.by_group_migration.get(&of), Some(PendingGroup::Refused(_))) {
            return None;
        }
        let pending_group = self.remove(of);
        self.by_group_migration.insert(of, PendingGroup::Refused(at));
        self.members += 1;
        pending_group
    }

    fn remove(&mut self, of: u64) -> Option<PendingGroup> {
        let pending_group = self.by_group_migration.remove(&of)?;
        match &pending_group {
            PendingGroup::Kept(incoming_actors) => {
                self.members -= incoming_actors.len();
                self.bytes -= incoming_actors.values().map(|(_, bytes)| bytes).sum::<usize>();
            }
            PendingGroup::Refused(_) => self.members -= 1,
        }
        Some(pending_group)
    }
}

/// The answer of a theater to a group that was sent to it: the locations of its members, or the position of a refused
/// member, and the reason.
type Received = Result<Vec<ActorLocation>, (u32, String)>;

/// An actor that is frozen, and was written.
pub(crate) struct PreparedMember {
    pub(crate) at: u32,
    /// The number of the attempt, if the other members migrate, too.
    pub(super) attempt: u64,
    pub(crate) id: ActorId,
    pub(crate) moves: MigrationVTable,
    pub(super) born: RemoteActorId,
    pub(super) epoch: Epoch,
}

impl Link {
    // -- leaving --------------------------------------------------------------------------------------------------------

    /// Sends the `at`th member of a frozen group, as part of the group migration `of`. Runs in its stage.
    pub(crate) fn prepare_member(
        &self,
        (of, at): (u64, u32),
        id: ActorId,
        (moves, entry): (MigrationVTable, &'static Spawns),
        pack: &PreparedActor<'_>,
    ) -> Result<PreparedMember, MigrateError> {
        let Ready { kind, codec, ref_codec, metadata, born, from } = self.make_ready(id, entry, pack)?;
        let epoch = metadata.epoch;
        let write = |out: &mut Vec<u8>| {
            Head::Member { of, at, kind, codec: codec.into(), born: born.birth_name(), from }.write(out)?;
            at_ref_codec(&ref_codec, || {
                Codec::Positional.write(&metadata, out)?;
                (pack.state)(codec, out)
            })
        };
        let lost = |error| if self.is_lost() { MigrateError::TheaterLost } else { unwritable(error) };
        if self.send(Lane::Normal, write).map_err(lost)? {
            // The other members are written when there is room.
            pause_stage(&self.gate);
        }
        Ok(PreparedMember { at, attempt: 0, id, moves, born, epoch })
    }

    /// Tells the target that the members of this group migration do not come.
    pub(crate) fn say_abort(&self, of: u64) {
        // A failure does not matter: then the target forgets them with the link.
        let _ = self.send(Lane::Normal, |out| Head::Apart { of }.write(out));
    }

    /// Sends a group whose members have been prepared.
    pub(crate) fn send_together(
        self: &Arc<Self>,
        theater_core: &Arc<TheaterCore>,
        (group, of): (GroupName, u64),
        members: Vec<PreparedMember>,
        done: Done,
    ) {
        let count = members.len() as u32;
        let (link, ids): (_, Vec<ActorId>) = (Arc::clone(self), members.iter().map(|member| member.id).collect());
        let departure = self.drain_for(theater_core, members, done);
        let offered = Arc::clone(&departure);
        let answer: TakeAnswer = Box::new(move |answer| {
            let accepted = received::<Received>(answer).and_then(|locations| {
                locations.map_err(|(at, why)| {
                    let why = MigrateError::Refused(why);
                    match ids.get(at as usize) {
                        Some(member) => link.directory.of_member(*member, why),
                        None => why,
                    }
                })
            });
            departure.answered(accepted);
        });
        // On an error the answer says it.
        let _ = self.ask_with(answer, Lane::Normal, |ask, out| Head::Together { ask, of, group, count }.write(out));
        self.note_departure(theater_core, &offered);
    }

    // -- coming ---------------------------------------------------------------------------------------------------------

    pub(crate) fn take_member(
        &self,
        (of, at): (u64, u32),
        kind: (u32, Codec),
        names: (RemoteActorId, RemoteActorId),
        bytes: &[u8],
    ) {
        let size = bytes.len() + size_of::<IncomingActor>();
        let bytes_max = MEMBER_WINDOWS_MAX * self.window_bytes + RESERVE_BYTES;
        {
            let mut pending_groups = lock(&self.migrations().pending_groups);
            if !pending_groups.has_room(of, size, bytes_max) {
                let pending_group = pending_groups.refuse(of, at);
                if pending_groups.members > 2 * MEMBERS_MAX {
                    self.fault(Fault::Members);
                }
                drop(pending_groups);
                return drop(pending_group);
            }
        }
        let incoming = self.may_have(&names.0).and_then(|()| self.read_actor(kind, names, bytes));
        // Only the thread that reads the link keeps members.
        let before =
            lock(&self.migrations().pending_groups).keep(of, at, incoming.map_err(|error| error.to_string()), size);
        drop(before);
    }

    pub(crate) fn forget_pending_group(&self, of: u64) {
        let pending_group = lock(&self.migrations().pending_groups).remove(of);
        drop(pending_group);
    }

    pub(crate) fn take_together(
        &self,
        theater_core: &Arc<TheaterCore>,
        ask: u64,
        of: u64,
        group: GroupName,
        count: u32,
    ) {
        let pending_group = lock(&self.migrations().pending_groups).remove(of);
        let mut incoming_actors = match pending_group {
            Some(PendingGroup::Kept(incoming_actors)) => incoming_actors,
            Some(PendingGroup::Refused(at)) => {
                let why = "it keeps no more members of incomplete groups".to_owned();
                return self.reply(ask, &Received::Err((at, why)));
            }
            None => FxHashMap::default(),
        };
        let incoming = |at| match incoming_actors.remove(&at) {
            Some((incoming, _)) => incoming.map_err(|why| (at, why)),
            None => Err((at, "the member was not sent".to_owned())),
        };
        match (0..count).map(incoming).collect::<Result<Vec<IncomingActor>, _>>() {
            Ok(incoming_actors) => {
                let received: Received = self
                    .accept(theater_core, Some(group), incoming_actors)
                    .map_err(|(at, error)| (at, error.to_string()));
                self.reply(ask, &received);
            }
            Err(why) => self.reply(ask, &Received::Err(why)),
        }
    }
}
