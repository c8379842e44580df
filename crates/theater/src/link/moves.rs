//! Migrating actors at a link: see [`crate::migration::host`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::TryLockError;

use playhouse_actor::away::Watched;
use playhouse_actor::wire::{
    ActorMetadata, Arrival, ArrivalRoute, MigrationVTable, New, PreparedActor, ReadTimer, Settled, Spawns,
};
use playhouse_actor::{GroupName, MigrateError};
use playhouse_executor::jitter::seam;
use playhouse_executor::{Crash, StubRoute};

use super::together::PreparedMember;
use super::*;
use crate::link::frame::{MetadataForm, RemoteSlot, TimerForm};
use crate::migration::arrivals::{Awaited, IncomingActor};
use crate::migration::authority::{Departing, Epoch, Host};
use crate::migration::drain::MigrationDeadline;
use crate::migration::host::Done;
use crate::migration::{Action, Attempt, Event, Word};
use crate::naming::{BadName, Key, RemoteActorId};
use crate::node::core::TheaterCore;
use crate::proxy::pending::PendingProxy;

/// The written form of a frozen actor, and its name.
pub(super) struct Ready {
    pub(super) kind: u32,
    pub(super) codec: Codec,
    pub(super) ref_codec: Arc<dyn RefCodec>,
    pub(super) metadata: MetadataForm,
    pub(super) born: RemoteActorId,
    pub(super) from: RemoteSlot,
}

/// Frozen actors that leave when the target has accepted them, and their sent messages are drained.
pub(crate) struct Departure {
    link: Arc<Link>,
    pending: Mutex<Option<Pending>>,
}

struct Pending {
    members: Vec<PreparedMember>,
    done: Done,
}

impl Departure {
    /// Takes the answer of the target: accepted, or refused.
    pub(super) fn answered(&self, accepted: Result<Vec<ActorLocation>, MigrateError>) {
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
        self.link.leave(members, &events, &locations, done);
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

/// An arrived actor, until it is in its cell.
struct Arriving(Arc<AtomicU64>);

impl Arriving {
    fn new(count: &Arc<AtomicU64>) -> Arriving {
        // Relaxed: the incoming actors are locked.
        count.fetch_add(1, Ordering::Relaxed);
        Arriving(Arc::clone(count))
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// The answer of a theater to an actor that was sent to it.
type Received = Result<ActorLocation, String>;

/// Reads the answer to an actor that was sent, if there is one.
pub(super) fn received<T: serde::de::DeserializeOwned>(
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
    pub(crate) fn theater_core(&self) -> Option<Arc<TheaterCore>> {
        self.directory.theater_core()
    }

    // -- leaving --------------------------------------------------------------------------------------------------------

    /// Sends a frozen actor to the other theater. Runs in the actor's stage.
    pub(crate) fn offer(
        self: &Arc<Self>,
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
        let departure =
            self.drain_for(vec![PreparedMember { at: 0, attempt: 0, id, moves, born, epoch: metadata.epoch }], done);
        let offered = Arc::clone(&departure);
        let answer: TakeAnswer = Box::new(move |answer| {
            let accepted = received::<Received>(answer).and_then(|location| location.map_err(MigrateError::Refused));
            departure.answered(accepted.map(|location| vec![location]));
        });
        let RemoteActorId { theater, slot, incarnation, capability, .. } = born;
        // On an error the answer says it, to the actor, too. It must not be told twice: it may be migrating again by the time it learns that it
        // stays, and would live in two theaters.
        let sent = self.ask_with(answer, Lane::Normal, |ask, out| {
            Head::Move { ask, kind, codec: codec.into(), theater, slot, incarnation, capability, from }.write(out)?;
            at_ref_codec(&ref_codec, || {
                Codec::Positional.write(&metadata, out)?;
                (pack.state)(codec, out)
            })
        });
        self.note_departure(&offered);
        if let Ok(true) = sent {
            // Other actors of this stage migrate when there is room.
            pause_stage(&self.gate);
        }
        Ok(())
    }

    /// Drains the messages of frozen actors that are to leave for the other theater. The worker that runs their stage calls this.
    pub(super) fn drain_for(self: &Arc<Self>, mut members: Vec<PreparedMember>, done: Done) -> Arc<Departure> {
        let theater_core = self.theater_core();
        let is_to_note = |theater_core: &Arc<TheaterCore>| {
            members.iter().any(|member| theater_core.authority.is_to_note(theater_core, &member.born, self.incarnation))
        };
        let to_note = theater_core.as_ref().is_some_and(is_to_note);
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
        let departure = Arc::new(Departure { link: Arc::clone(self), pending: Mutex::new(state) });
        let (drained, noted) = (Arc::clone(&departure), Arc::clone(&departure));
        let Some(theater_core) = theater_core else {
            departure.drained();
            return departure;
        };
        if to_note {
            let to = Host { theater: self.incarnation, address: self.advertised };
            theater_core.authority.note(&theater_core, leaving, to, Box::new(move || noted.noted()));
        }
        theater_core.drain(Box::new(move || drained.drained()));
        departure
    }

    /// Tells the other theater that these actors of it are about to leave for the theater `to`.
    pub(crate) fn say_departs(&self, to: Host, actors: Vec<(u64, u64, u64, Epoch)>, answer: TakeAnswer) {
        // On an error the answer says it.
        let _ = self.ask_with(answer, Lane::Normal, |ask, out| Head::Departs { ask, to, actors }.write(out));
    }

    /// Keeps offered actors if the migration takes too long. Called behind the offer, because the other theater must not learn that before.
    pub(super) fn note_departure(&self, departure: &Arc<Departure>) {
        if departure.is_early() {
            return departure.stay(MigrateError::Refused("it has arrived, and has not begun yet".to_owned()));
        }
        if let Some(theater_core) = self.theater_core() {
            theater_core.note_late(MigrationDeadline::Departure(Arc::downgrade(departure)));
        }
    }

    /// Thaws frozen actors: they stay.
    fn stay(&self, members: Vec<PreparedMember>, why: MigrateError, done: Done) {
        for PreparedMember { id, moves, born: RemoteActorId { theater, slot, incarnation, capability, .. }, .. } in
            members
        {
            self.directory.step(id, Event::GiveUp);
            let stays = Head::Stays { theater, slot, incarnation, capability };
            // This is the first step, because the actor may be offered again. If it cannot be sent, the other theater learns that the link is lost.
            let _ = self.send(Lane::Normal, |out| stays.write(out));
            (moves.abort)(id, why.clone());
        }
        done(Err(why));
    }

    /// Commits actors that are frozen, drained and accepted by the target: by these events they get these stubs in the target.
    fn leave(
        self: &Arc<Self>,
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
            self.directory.leave(member.id, *event, route);
        }
        let left = Arc::new(Left { to_begin: AtomicUsize::new(members.len()), done: Mutex::new(Some(done)) });
        if let Some(theater_core) = self.theater_core() {
            theater_core.note_late(MigrationDeadline::Left(Arc::downgrade(&left)));
        }
        for (PreparedMember { id, moves, born, .. }, (forwarder, route)) in members.into_iter().zip(routes) {
            seam(4);
            (moves.commit)(id, forwarder, route);
            let (link, left) = (Arc::clone(self), Arc::clone(&left));
            // Behind the mail that has waited for the actor.
            let begin = move || {
                let RemoteActorId { theater, slot, incarnation, capability, .. } = born;
                let before = lock(&link.left).insert(born.key(), left);
                drop(before);
                let sent = link.send_with(
                    Lane::Normal,
                    |out| out.departs,
                    |departs, out| match departs {
                        true => Head::Begin { theater, slot, incarnation, capability }.write(out),
                        false => Err(WireError::new("this theater has announced its shutdown")),
                    },
                );
                if sent.is_err() || link.is_lost() {
                    // Perhaps after the departed actors were examined.
                    let left = lock(&link.left).remove(&born.key());
                    drop(left);
                }
            };
            (moves.then)(id, Box::new(begin));
        }
    }

    /// Looks up the written form and the identity of a frozen actor.
    pub(super) fn make_ready(
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
        let birth = born.address.filter(|_| !self.directory.lost().contains(&born.theater));
        let noted = (birth, self.directory.next_epoch(id));
        let metadata = at_ref_codec(&ref_codec, || self.metadata(entry, pack, noted)).map_err(unwritable)?;
        let from = self.directory.with_capability(id).map_err(unwritable)?;
        Ok(Ready { kind, codec, ref_codec, metadata, born, from })
    }

    /// Notes that the actor with this birth name, which left for the other theater, has begun in it.
    pub(super) fn take_begun(&self, born: Key) {
        self.directory.note_begun(born, self.incarnation);
        let left = lock(&self.left).remove(&born);
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

    /// Removes the actor from this link, which is not its route any more. Returns its handle, and its watchers over that route. The other end does
    /// not [know](Link::unwatch) yet that they stop watching.
    pub(crate) fn release(&self, id: ActorId) -> Option<(Handle, Taken)> {
        // Most links are no route to it. The release does not wait for threads that write to them.
        self.handle_of(id)?;
        let mut out = lock(&self.out);
        let handle = lock(&self.stubs).handles.remove(&id)?;
        Some((handle, out.take_watching(handle)))
    }

    /// Returns the handle of the actor, if this link is its route.
    pub(crate) fn handle_of(&self, id: ActorId) -> Option<Handle> {
        lock(&self.stubs).handles.get(&id).copied()
    }

    /// Does the work of [`Link::release`] for an actor that may have another handle by now.
    pub(crate) fn release_handle(&self, id: ActorId, handle: Handle) -> Taken {
        let mut out = lock(&self.out);
        {
            let handles = &mut lock(&self.stubs).handles;
            if handles.get(&id) == Some(&handle) {
                handles.remove(&id);
            }
        }
        out.take_watching(handle)
    }

    /// Takes all watches of the actor with this handle over this link. Returns its former watchers.
    pub(crate) fn take_watches(&self, handle: Handle) -> Vec<(Watcher, Tell)> {
        let watched = lock(&self.out).take_watching(handle);
        let unwatched = |(watcher, watch, tell)| {
            self.unwatch(handle, watch);
            (watcher, tell)
        };
        watched.into_iter().map(unwatched).collect()
    }

    /// Tells the other end of a watch that this end has removed.
    pub(crate) fn unwatch(&self, handle: Handle, watch: u64) {
        // A failure does not matter: then the other end is lost.
        let _ = self.send(Lane::System, |out| Head::Unwatch { to: handle, watch }.write(out));
    }

    // -- coming ---------------------------------------------------------------------------------------------------------

    /// Checks that the other end may have an actor with this birth name.
    ///
    /// # Errors
    /// The name is invented, and the link is lost for that, or the other end has told too many names.
    pub(super) fn may_have(&self, born: &RemoteActorId) -> Result<(), WireError> {
        match self.directory.met(self.incarnation, born) {
            Ok(_) => Ok(()),
            Err(why) => {
                if why != BadName::TooMany {
                    self.fault(Fault::Name(why));
                }
                Err(why.into())
            }
        }
    }

    pub(super) fn take_move(
        &self,
        ask: u64,
        kind: (u32, Codec),
        (born, at): (RemoteActorId, RemoteActorId),
        bytes: &[u8],
    ) {
        // This comes before its state is read, because names in the state are taken.
        let incoming = self.may_have(&born).and_then(|()| self.read_actor(kind, (born, at), bytes));
        let accepted = incoming.map_err(|error| (0, error)).and_then(|incoming| self.accept(None, vec![incoming]));
        let received: Received = match accepted {
            Ok(locations) => locations.into_iter().next().ok_or_else(|| "it names no stub for the actor".to_owned()),
            Err((_, error)) => Err(error.to_string()),
        };
        self.say_received(ask, &received);
    }

    pub(super) fn say_received<T: serde::Serialize>(&self, ask: u64, received: &T) {
        let _ = self.send(Lane::Normal, |out| {
            Head::Answer { ask, codec: Codec::Positional.into() }.write(out)?;
            Codec::Positional.write(received, out)
        });
    }

    /// Reads an actor that is to come. If that panics, it does not come.
    pub(super) fn read_actor(
        &self,
        kind: (u32, Codec),
        names: (RemoteActorId, RemoteActorId),
        bytes: &[u8],
    ) -> Result<IncomingActor, WireError> {
        // A peer waits for the answer.
        catch_unwind(AssertUnwindSafe(|| self.read_parts(kind, names, bytes))).unwrap_or_else(|payload| {
            let why = Crash::Panic(payload.into()).describe();
            Err(WireError::new(format!("reading the actor's state panicked: {why}")))
        })
    }

    fn read_parts(
        &self,
        (kind, codec): (u32, Codec),
        (born, at): (RemoteActorId, RemoteActorId),
        bytes: &[u8],
    ) -> Result<IncomingActor, WireError> {
        let entry = self.registry.spawn(kind).and_then(|entry| Some((entry, entry.moves?)));
        let (entry, moves) = entry.ok_or_else(|| WireError::new("it does not know the type of the actor"))?;
        let metadata = postcard::take_from_bytes::<MetadataForm>(bytes);
        let (
            MetadataForm { name, supervisor_link, watching, last_timer, timers, receive_timeout, birth, epoch },
            state,
        ) = metadata.map_err(|error| WireError::new(error.to_string()))?;
        let timers = timers.into_iter().map(|timer| {
            let entry = self
                .registry
                .message(timer.kind)
                .ok_or_else(|| WireError::new("it does not know the type of a timer's message"))?;
            let start = (entry.timer)(&timer.message, timer.codec.into())?;
            Ok(ReadTimer { id: timer.id, left: timer.left, pace: timer.pace, kept: timer.kept, start })
        });
        let timers = timers.collect::<Result<Vec<ReadTimer>, WireError>>()?;
        let watching = watching.into_iter().filter_map(|watched| watched.0).collect();
        let metadata =
            ActorMetadata { name, supervisor_link, watching, last_timer, timers, receive_timeout, is_new: false };
        let install = (moves.read)(state, codec, metadata)?;
        let birth = if born.theater == self.incarnation { self.advertised } else { birth };
        let born = RemoteActorId { address: birth, ..born };
        Ok(IncomingActor { born, at, epoch, moves, entry, install, is_new: false })
    }

    /// Starts an actor that has this slot in the other theater, its birth theater and starter. Returns its stub. It comes like a migrated actor,
    /// because its name may have come before it.
    pub(super) fn start_mobile(
        &self,
        (entry, moves): (&'static Spawns, MigrationVTable),
        codec: Codec,
        (born, epoch, is_child): (RemoteActorId, Epoch, bool),
        bytes: &[u8],
    ) -> Option<ActorId> {
        let New { install, supervisor_link } = (moves.read_new)(bytes, codec, is_child).ok()?;
        let incoming = IncomingActor { born, at: born, epoch, moves, entry, install, is_new: true };
        let accepted = self.may_have(&born).map_err(|error| (0, error));
        let stub = accepted.and_then(|()| self.accept(None, vec![incoming])).map(|_| {
            self.take_begin(born.key());
            // The actor may have ended by now.
            self.directory.known_as(born.key())
        });
        stub.unwrap_or_else(|(_, why)| {
            supervisor_link.inspect(|supervisor_link| supervisor_link.not_started(why.to_string()));
            None
        })
    }

    /// Returns the stub of the actor with the birth name `born`.
    pub(super) fn stub_of(&self, born: &RemoteActorId) -> Option<ActorId> {
        let stub = self.directory.known_as(born.key()).or_else(|| {
            let here = born.theater == self.directory.incarnation;
            here.then(|| self.directory.own(born.slot, born.incarnation, born.capability)).flatten()
        });
        stub.filter(|id| !id.address().is_stale())
    }

    /// Accepts actors that come together: they begin when the other theater has committed all of them. Returns their stubs.
    ///
    /// # Errors
    /// Returns the position of a refused actor, and the reason. Then none comes.
    pub(super) fn accept(
        &self,
        group: Option<GroupName>,
        mut incoming_actors: Vec<IncomingActor>,
    ) -> Result<Vec<ActorLocation>, (u32, WireError)> {
        let theater_core = self.theater_core().ok_or_else(|| (0, WireError::new("it is closing")))?;
        let locations = {
            let mut awaited = self.directory.incoming_actors();
            if theater_core.refuses_incoming_actors() && incoming_actors.iter().any(|incoming| !incoming.is_new) {
                return Err((0, WireError::new("the theater lets no actors in: it is evacuated, or shuts down")));
            }
            let attempt = Attempt { from: self.incarnation, number: self.directory.next_number() };
            let locations = self.locations_for(&theater_core, group, &incoming_actors, attempt);
            // Refused actors are the user's values, and are dropped without the lock.
            locations.map(|locations| {
                let stubs = locations.iter().map(|(stub, _)| *stub);
                let member =
                    |(incoming, stub)| Awaited { incoming, stub, attempt, arrival_buffer: None, watchers: Vec::new() };
                awaited.keep(self.number, incoming_actors.drain(..).zip(stubs).map(member).collect());
                locations.into_iter().map(|(_, location)| location).collect()
            })
        };
        // The link may have been lost in between.
        if self.is_lost() {
            self.forget_incoming_actors();
        }
        locations
    }

    /// Accepts incoming actors that come together, if all of them may come. Returns their stubs.
    fn locations_for(
        &self,
        theater_core: &TheaterCore,
        group: Option<GroupName>,
        incoming_actors: &[IncomingActor],
        Attempt { from, number }: Attempt,
    ) -> Result<Vec<(ActorId, ActorLocation)>, (u32, WireError)> {
        let mut locations: Vec<(ActorId, ActorLocation)> = Vec::new();
        let mut location_for = |incoming: &IncomingActor| {
            let stub = self.stub_for(incoming, group)?;
            if !(incoming.moves.fits)(stub) {
                return Err(WireError::new("it knows the actor as one of another type"));
            }
            let location = self.directory.location(stub, theater_core.listens)?;
            match self.directory.step(stub, Event::Said { from, word: Word::Move { attempt: number } })[..] {
                [Action::Accept { .. }] => {
                    self.directory.note_epoch(stub, incoming.epoch);
                    self.directory.note_birth_address(stub, incoming.born.address);
                    locations.push((stub, location));
                }
                _ => return Err(WireError::new("it has the actor already")),
            }
            Ok(())
        };
        let refused =
            incoming_actors.iter().zip(0..).find_map(|(incoming, at)| Some((at, location_for(incoming).err()?)));
        match refused {
            None => Ok(locations),
            Some(why) => {
                for (stub, _) in locations {
                    self.directory.step(stub, Event::Said { from, word: Word::Stays { attempt: number } });
                }
                Err(why)
            }
        }
    }

    /// Returns the stub of an actor that is to come. An unknown actor gets one.
    fn stub_for(&self, incoming: &IncomingActor, group: Option<GroupName>) -> Result<ActorId, WireError> {
        if let Some(stub) = self.stub_of(&incoming.born) {
            return Ok(stub);
        }
        let stage = match group {
            Some(group) => self.directory.groups().stage_of(group, || self.core.next_stage()),
            None => self.core.next_stage(),
        };
        let (pending, route) = (PendingProxy::first(&self.directory, incoming.at), Arc::<StubRoute>::default());
        let id = (incoming.moves.make_stub)(
            &self.core,
            stage,
            Arc::clone(&pending) as Arc<dyn Forwarder>,
            Arc::clone(&route),
        );
        self.directory.drains.note_stage(&self.core, stage);
        pending.is_at(id);
        self.directory.note(self.incarnation, id, incoming.born)?;
        self.directory.note_stub(id, incoming.at, Some(route));
        if let Some(group) = group {
            self.directory.groups().join(group, id, (incoming.entry.actor_name)());
        }
        Ok(id)
    }

    /// Begins the actor with this birth name, because the other theater has committed it. A member of a group arrival waits for the others.
    pub(super) fn take_begin(&self, born: Key) {
        let Some(theater_core) = self.theater_core() else { return };
        // Under this lock, a query for the present actors of a group sees all of them or none.
        let mut incoming_actors = self.directory.incoming_actors();
        let members = incoming_actors.leave(self.number, born);
        let (mut ended, mut settled, mut not_taken) = (Vec::new(), Vec::new(), Vec::new());
        for Awaited { incoming, stub, attempt, arrival_buffer, mut watchers } in members {
            let (RemoteActorId { theater, slot, incarnation, capability, .. }, is_new) =
                (incoming.born, incoming.is_new);
            match theater_core.begin_arrival((stub, attempt), &incoming.moves, arrival_buffer) {
                Ok((settling, route)) => {
                    seam(4);
                    let settles = matches!(route, ArrivalRoute::Freely { is_settled: true });
                    let arriving = Arriving::new(&self.directory.arriving);
                    watchers.push((Watcher::Theater, self.directory.note_end_of(stub)));
                    settling.watched_by(watchers);
                    not_taken.extend((incoming.install)(stub, Arrival { settling, route }));
                    (incoming.moves.then)(stub, Box::new(move || drop(arriving)));
                    let count = if is_new { &self.directory.started } else { &self.directory.came };
                    // Relaxed: it is a counter only.
                    count.fetch_add(1, Ordering::Relaxed);
                    if let Some(arrival_buffer) = arrival_buffer.filter(|_| settles) {
                        self.close_arrival_buffer(arrival_buffer);
                        settled.push((
                            stub,
                            incoming.moves.settle,
                            arrival_buffer,
                            theater_core.note_settling(stub, true),
                        ));
                    }
                }
                Err(_) => ended.push(Awaited { incoming, stub, attempt, arrival_buffer, watchers }),
            }
            if !is_new {
                let _ =
                    self.send(Lane::Normal, |out| Head::Begun { theater, slot, incarnation, capability }.write(out));
            }
        }
        drop(incoming_actors);
        // The watchers of these actors are notified.
        drop(not_taken);
        for (stub, settle, arrival_buffer, settles) in settled {
            settle(stub, Settled::Begins { arrival_buffer: Some(arrival_buffer) }, settles);
        }
        // Their stubs have ended, because all actors of this theater end with the system. This ends the incoming actors, too.
        for awaited in ended {
            self.core.dead_letter((awaited.incoming.entry.actor_name)(), "the actor itself", Undelivered::Stopped);
            self.forget(vec![awaited]);
        }
    }

    /// Drops the incoming actors of a lost link: they do not begin.
    pub(super) fn forget_incoming_actors(&self) {
        let forgotten = self.directory.incoming_actors().take_of(self.number);
        self.forget(forgotten);
    }

    /// Drops these incoming actors: they do not begin.
    pub(super) fn forget(&self, incoming_actors: Vec<Awaited>) {
        for Awaited { incoming, stub, attempt: Attempt { from, number }, arrival_buffer, watchers } in incoming_actors {
            self.directory.step(stub, Event::Said { from, word: Word::Stays { attempt: number } });
            if let (Some(arrival_buffer), Some(theater_core)) = (arrival_buffer, self.theater_core()) {
                theater_core.forget_arrival_buffer(arrival_buffer);
            }
            // It is the user's value.
            contained(|| drop(incoming));
            watchers.into_iter().for_each(|(_, tell)| tell(StopReason::NotAlive.into()));
        }
    }

    /// Returns the target of the other end's `handle`. Mail to an incoming actor that was committed goes to an arrival buffer.
    pub(super) fn meaning(&self, handle: Handle) -> Option<Target> {
        let target = TARGETS.with_borrow(|targets| targets.get(handle))?;
        if !target.is_incoming {
            return Some(target);
        }
        let arrival_buffer = {
            let mut incoming_actors = self.directory.incoming_actors();
            match incoming_actors.at(self.number, target.id) {
                Some(incoming) => {
                    let made = || (incoming.incoming.moves.arrival_buffer)(&self.core, incoming.stub);
                    incoming.arrival_buffer = incoming.arrival_buffer.or_else(made);
                    incoming.arrival_buffer
                }
                // The actor has begun.
                None => self.directory.arrival_buffer_of(target.id),
            }
        };
        TARGETS.with_borrow_mut(|targets| targets.open_arrival_buffer(handle, arrival_buffer));
        TARGETS.with_borrow(|targets| targets.get(handle))
    }

    /// Calls `f` with the incoming actor of the other end's handle, if its source has committed it, according to this theater.
    pub(super) fn with_incoming<R>(&self, handle: Handle, f: impl FnOnce(&mut Awaited) -> R) -> Option<R> {
        let target = TARGETS.with_borrow(|targets| targets.get(handle))?;
        if !target.is_incoming && target.arrival_buffer.is_none() {
            return None;
        }
        self.directory.incoming_actors().at(self.number, target.id).map(f)
    }

    // -- what is read ---------------------------------------------------------------------------------------------------

    /// Returns whether another thread reads this link now.
    pub(crate) fn is_read_by_another_thread(&self) -> bool {
        READS.get() != Some(self.number) && matches!(self.inn.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Closes an arrival buffer in which nothing waits any more: later mail goes to the actor.
    pub(crate) fn close_arrival_buffer(&self, arrival_buffer: ActorId) {
        if READS.get() == Some(self.number) {
            TARGETS.with_borrow_mut(|targets| targets.close_arrival_buffer(arrival_buffer));
        } else {
            lock(&self.inn).targets.close_arrival_buffer(arrival_buffer);
        }
    }
}

pub(super) fn refused(error: WireError) -> MigrateError {
    MigrateError::Refused(error.to_string())
}

pub(super) fn unwritable(error: WireError) -> MigrateError {
    MigrateError::Unwritable(error.to_string())
}
