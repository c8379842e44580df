//! The source's side of a migration at a link: an actor is offered to the target, drained and committed, or it stays.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use playhouse_actor::away::{ActorLocation, Forwarder, RefCodec, TakeAnswer, Watched, at_ref_codec};
use playhouse_actor::wire::{Codec, MigrationVTable, PreparedActor, Spawns, WireError};
use playhouse_actor::{ActorId, AskError, MigrateError};
use playhouse_executor::jitter::seam;
use playhouse_executor::{Lane, StubRoute, pause_stage};

use crate::link::Link;
use crate::link::frame::{Head, MetadataForm, TimerForm};
use crate::lock::lock;
use crate::migration::authority::Departing;
use crate::migration::drain::MigrationDeadline;
use crate::migration::group_members::PreparedMember;
use crate::migration::host::Done;
use crate::naming::migration_protocol::{Action, Event, Word};
use crate::naming::{BirthName, Epoch, Host, RemoteActorId, SlotName};
use crate::node::core::TheaterCore;

/// The written form of a frozen actor, and its name.
pub(crate) struct Ready {
    pub(super) kind: u32,
    pub(super) codec: Codec,
    pub(super) ref_codec: Arc<dyn RefCodec>,
    pub(super) metadata: MetadataForm,
    pub(super) born: RemoteActorId,
    pub(super) from: SlotName,
}

/// Frozen actors that leave when the target has accepted them, and their sent messages are drained.
pub(crate) struct Departure {
    link: Arc<Link>,
    theater_core: Weak<TheaterCore>,
    pending: Mutex<Option<Pending>>,
}

struct Pending {
    members: Vec<PreparedMember>,
    done: Done,
}

impl Departure {
    /// Takes the answer of the target: accepted, or refused.
    pub(crate) fn answered(&self, accepted: Result<Vec<ActorLocation>, MigrateError>) {
        match accepted {
            Ok(locations) => {
                let from = self.link.incarnation;
                self.take(|nth, attempt| {
                    let location = locations.get(nth)?;
                    let at = RemoteActorId {
                        address: self.link.advertised.or(location.address),
                        ..RemoteActorId::from(*location)
                    };
                    Some(Event::Said { from, word: Word::Accepted { attempt, at } })
                });
            }
            Err(why) => self.stay(why),
        }
    }

    /// Keeps the actors in the source because the migration takes too long, unless they have left.
    pub(crate) fn give_up(&self) {
        let why = "no answer in time that the actor is accepted, its messages have arrived, and its departure is noted";
        self.stay(MigrateError::Unreachable(why.to_owned()));
    }

    fn noted(&self) {
        self.take(|_, attempt| Some(Event::Noted { attempt }));
    }

    fn drained(&self) {
        self.take(|_, attempt| Some(Event::Drained { attempt }));
    }

    /// Returns whether an actor must not leave: it has come, and has not begun in this theater.
    fn is_early(&self) -> bool {
        lock(&self.pending).as_ref().is_some_and(|pending| pending.members.iter().any(|member| member.attempt == 0))
    }

    fn stay(&self, why: MigrateError) {
        let pending = lock(&self.pending).take();
        if let Some(Pending { members, done }) = pending {
            self.link.stay(members, why, done);
        }
    }

    /// Applies an event to each actor, by its position and the number of its attempt. All leave by that, or none. All stay if an actor has no event.
    fn take(&self, event: impl Fn(usize, u64) -> Option<Event<RemoteActorId>>) {
        let (members, events, locations, done) = {
            let directory = &self.link.directory;
            let mut pending = lock(&self.pending);
            let Some(Pending { members, .. }) = &*pending else { return };
            let events = members.iter().zip(0..).map(|(member, nth)| event(nth, member.attempt));
            let Some(events) = events.collect::<Option<Vec<Event<RemoteActorId>>>>() else {
                let count = members.len();
                drop(pending);
                return self.stay(MigrateError::Refused(format!("it names too few stubs for {count} actors")));
            };
            let taken = members.iter().zip(&events);
            let locations = taken.clone().map(|(member, event)| directory.view(member.id).leaves_by(*event));
            let Some(locations) = locations.collect::<Option<Vec<RemoteActorId>>>() else {
                return taken.for_each(|(member, event)| drop(directory.step(member.id, *event)));
            };
            let Some(Pending { members, done }) = pending.take() else { return };
            (members, events, locations, done)
        };
        self.link.leave(&self.theater_core, members, &events, &locations, done);
    }
}

/// Actors that leave together. Dropping the last reference tells the result of their migration.
pub(crate) struct Left {
    /// The number of actors that have not begun in the target yet, according to this theater.
    to_begin: AtomicUsize,
    done: Mutex<Option<Done>>,
}

impl Left {
    /// Ends the wait because the migration takes too long. It is not known whether the actors have begun.
    pub(crate) fn give_up(&self) {
        let done = lock(&self.done).take();
        if let Some(done) = done {
            let why = "the actor has left, and the target has not confirmed that it has begun";
            done(Err(MigrateError::Unreachable(why.to_owned())));
        }
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        let done = lock(&self.done).take();
        if let Some(done) = done {
            let all_begun = *self.to_begin.get_mut() == 0;
            done(if all_begun { Ok(()) } else { Err(MigrateError::TheaterLost) });
        }
    }
}

/// The answer of a theater to an actor that was sent to it.
pub(crate) type Received = Result<ActorLocation, String>;

/// Reads the answer to an actor that was sent, if there is one.
pub(crate) fn received<T: serde::de::DeserializeOwned>(
    answer: Result<(Codec, &[u8]), AskError>,
) -> Result<T, MigrateError> {
    match answer {
        Ok((codec, bytes)) => codec.read(bytes).map_err(refused),
        Err(AskError::TheaterLost { .. }) => Err(MigrateError::TheaterLost),
        Err(AskError::Unreachable(why)) => Err(MigrateError::Unwritable(why)),
        Err(error) => Err(MigrateError::Unreachable(error.to_string())),
    }
}

impl Link {
    /// Sends a frozen actor to the other theater. Runs in the actor's stage.
    pub(crate) fn offer(
        self: &Arc<Self>,
        theater_core: &Arc<TheaterCore>,
        id: ActorId,
        (moves, entry): (MigrationVTable, &'static Spawns),
        pack: &PreparedActor<'_>,
        done: Done,
    ) -> Result<(), MigrateError> {
        let Ready { kind, codec, ref_codec, metadata, born, from } = match self.make_ready(id, entry, pack) {
            Ok(ready) => ready,
            Err(why) => {
                done(Err(MigrateError::clone(&why)));
                return Err(why);
            }
        };
        let departure = self.drain_for(
            theater_core,
            vec![PreparedMember { at: 0, attempt: 0, id, moves, born, epoch: metadata.epoch }],
            done,
        );
        let offered = Arc::clone(&departure);
        let answer: TakeAnswer = Box::new(move |answer| {
            let accepted = received::<Received>(answer).and_then(|location| location.map_err(MigrateError::Refused));
            departure.answered(accepted.map(|location| vec![location]));
        });
        let born = born.birth_name();
        // On an error the answer says it, to the actor, too. It must not be told twice: it may be migrating again by the time it learns that it
        // stays, and would live in two theaters.
        let sent = self.ask_with(answer, Lane::Normal, |ask, out| {
            Head::Move { ask, kind, codec: codec.into(), born, from }.write(out)?;
            at_ref_codec(&ref_codec, || {
                Codec::Positional.write(&metadata, out)?;
                (pack.state)(codec, out)
            })
        });
        self.note_departure(theater_core, &offered);
        if let Ok(true) = sent {
            // Other actors of this stage migrate when there is room.
            pause_stage(&self.gate);
        }
        Ok(())
    }

    /// Drains the messages of frozen actors that are to leave for the other theater. The worker that runs their stage calls this.
    pub(crate) fn drain_for(
        self: &Arc<Self>,
        theater_core: &Arc<TheaterCore>,
        mut members: Vec<PreparedMember>,
        done: Done,
    ) -> Arc<Departure> {
        let is_to_note = |member: &PreparedMember| {
            theater_core.migrations().authority.is_to_note(theater_core, &member.born, self.incarnation)
        };
        let to_note = members.iter().any(is_to_note);
        for member in &mut members {
            let migrate = Event::Migrate { to: self.incarnation, noted: !to_note };
            if let [.., Action::Drain { attempt }] = self.directory.step(member.id, migrate)[..] {
                member.attempt = attempt;
                self.directory.note_epoch(member.id, member.epoch);
            }
        }
        let leaving: Vec<Departing> = if to_note {
            let leaving = |member: &PreparedMember| Departing { born: member.born, epoch: member.epoch };
            members.iter().filter(|member| member.attempt > 0).map(leaving).collect()
        } else {
            Vec::new()
        };
        let state = Some(Pending { members, done });
        let (link, weak) = (Arc::clone(self), Arc::downgrade(theater_core));
        let departure = Arc::new(Departure { link, theater_core: weak, pending: Mutex::new(state) });
        let (drained, noted) = (Arc::clone(&departure), Arc::clone(&departure));
        if to_note {
            let to = Host { theater: self.incarnation, address: self.advertised };
            theater_core.migrations().authority.note(theater_core, leaving, to, Box::new(move || noted.noted()));
        }
        theater_core.drain(Box::new(move || drained.drained()));
        departure
    }

    /// Tells the other theater that these actors of it are about to leave for the theater `to`.
    pub(crate) fn say_departs(&self, to: Host, actors: Vec<(SlotName, Epoch)>, answer: TakeAnswer) {
        // On an error the answer says it.
        let _ = self.ask_with(answer, Lane::Normal, |ask, out| Head::Departs { ask, to, actors }.write(out));
    }

    /// Keeps offered actors if the migration takes too long. Called behind the offer, because the other theater must not learn that before.
    pub(crate) fn note_departure(&self, theater_core: &TheaterCore, departure: &Arc<Departure>) {
        if departure.is_early() {
            return departure.stay(MigrateError::Refused("it has arrived, and has not begun yet".to_owned()));
        }
        theater_core.note_late(MigrationDeadline::Departure(Arc::downgrade(departure)));
    }

    /// Thaws frozen actors: they stay.
    fn stay(&self, members: Vec<PreparedMember>, why: MigrateError, done: Done) {
        for PreparedMember { id, moves, born, .. } in members {
            self.directory.step(id, Event::GiveUp);
            let stays = Head::Stays { born: born.birth_name() };
            // This is the first step, because the actor may be offered again. If it cannot be sent, the other theater learns that the link is lost.
            let _ = self.send(Lane::Normal, |out| stays.write(out));
            (moves.abort)(id, why.clone());
        }
        done(Err(why));
    }

    /// Commits actors that are frozen, drained and accepted by the target: by these events they get these stubs in the target.
    fn leave(
        self: &Arc<Self>,
        theater_core: &Weak<TheaterCore>,
        members: Vec<PreparedMember>,
        events: &[Event<RemoteActorId>],
        locations: &[RemoteActorId],
        done: Done,
    ) {
        let route = |(member, remote): (&PreparedMember, &RemoteActorId)| {
            // If that theater is lost, the actors continue in the source.
            let proxy = self.adopt(member.id, remote).map_err(|_| MigrateError::TheaterLost)?;
            Ok((proxy as Arc<dyn Forwarder>, Arc::default()))
        };
        let routes: Vec<(_, Arc<StubRoute>)> = match members.iter().zip(locations).map(route).collect() {
            Ok(routes) => routes,
            Err(why) => return self.stay(members, why, done),
        };
        for ((member, event), (_, route)) in members.iter().zip(events).zip(&routes) {
            self.link_table.turnstiles.note_stage(&self.core, member.id.address().stage());
            self.directory.leave(member.id, *event, route);
        }
        let left = Arc::new(Left { to_begin: AtomicUsize::new(members.len()), done: Mutex::new(Some(done)) });
        if let Some(theater_core) = theater_core.upgrade() {
            theater_core.note_late(MigrationDeadline::Left(Arc::downgrade(&left)));
        }
        for (PreparedMember { id, moves, born, .. }, (forwarder, route)) in members.into_iter().zip(routes) {
            seam(4);
            (moves.commit)(id, forwarder, route);
            let (link, left) = (Arc::clone(self), Arc::clone(&left));
            // Behind the mail that has waited for the actor.
            (moves.then)(id, Box::new(move || link.say_begin(born, left)));
        }
    }

    /// Has a committed actor begin at the other end.
    fn say_begin(&self, born: RemoteActorId, left: Arc<Left>) {
        let born = born.birth_name();
        let before = lock(&self.migrations().left).insert(born, left);
        drop(before);
        let sent = self.send_before_shutdown(&Head::Begin { born });
        if sent.is_err() || self.is_lost() {
            // Perhaps after the departed actors were examined.
            let left = lock(&self.migrations().left).remove(&born);
            drop(left);
        }
    }

    /// Looks up the written form and the identity of a frozen actor.
    pub(crate) fn make_ready(
        &self,
        id: ActorId,
        entry: &'static Spawns,
        pack: &PreparedActor<'_>,
    ) -> Result<Ready, MigrateError> {
        let (kind, codec) = self.table.spawn((entry.actor)(), (entry.actor_name)()).map_err(refused)?;
        self.may_name_more().map_err(refused)?;
        let ref_codec = self.ref_codec();
        let born = self.directory.identity(id).map_err(unwritable)?;
        // The other theater knows the birth address of this one. A lost theater is not to be called.
        let birth = born.address.filter(|_| !self.link_table.lost().contains(&born.theater));
        let noted = (birth, self.directory.next_epoch(id));
        let metadata = at_ref_codec(&ref_codec, || self.metadata(entry, pack, noted)).map_err(unwritable)?;
        let from = self.directory.slot_name(id).map_err(unwritable)?;
        Ok(Ready { kind, codec, ref_codec, metadata, born, from })
    }

    /// Notes that the actor with this birth name, which left for the other theater, has begun in it.
    pub(crate) fn take_begun(&self, born: BirthName) {
        self.directory.note_begun(born, self.incarnation);
        let left = lock(&self.migrations().left).remove(&born);
        if let Some(left) = left {
            // AcqRel: it is only a counter; its subject is under locks.
            left.to_begin.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn metadata(
        &self,
        entry: &Spawns,
        pack: &PreparedActor<'_>,
        (birth, epoch): (Option<SocketAddr>, Epoch),
    ) -> Result<MetadataForm, WireError> {
        let timers = pack.timers.iter().map(|timer| {
            let (kind, codec) = self.table.message((entry.actor)(), timer.message, timer.name)?;
            let mut message = Vec::new();
            (timer.write)(codec, &mut message)?;
            let (id, left, pace, kept) = (timer.id, timer.left, timer.pace, timer.kept);
            Ok(TimerForm { id, left, pace, kept, kind, codec: codec.into(), message })
        });
        let timers = timers.collect::<Result<_, WireError>>()?;
        let (last_timer, receive_timeout) = (pack.last_timer, pack.receive_timeout);
        let watching = pack.watching.iter().map(|watched| Watched(Some(*watched))).collect();
        let (name, supervisor_link) = (pack.name.map(str::to_owned), pack.supervisor_link);
        Ok(MetadataForm { name, supervisor_link, watching, last_timer, timers, receive_timeout, birth, epoch })
    }
}

pub(crate) fn refused(error: WireError) -> MigrateError {
    MigrateError::Refused(error.to_string())
}

pub(crate) fn unwritable(error: WireError) -> MigrateError {
    MigrateError::Unwritable(error.to_string())
}
