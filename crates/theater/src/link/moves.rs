//! Actors that move, at a link: see [`crate::migration::host`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::TryLockError;

use playhouse_actor::away::Watched;
use playhouse_actor::wire::{ArrivalRoute, Arrival, ActorMetadata, MigrationVTable, New, PreparedActor, ReadTimer, Settled, Spawns};
use playhouse_actor::{GroupName, MigrateError};
use playhouse_executor::jitter::seam;
use playhouse_executor::{Crash, StubRoute};

use super::together::PreparedMember;
use super::*;
use crate::link::frame::{PackedTimer, RemoteSlot, MetadataForm};
use crate::migration::arrivals::{Awaited, IncomingActor};
use crate::migration::authority::{Departing, Epoch, Host};
use crate::migration::drain::MigrationDeadline;
use crate::migration::host::Done;
use crate::migration::{Action, Attempt, Event, Word};
use crate::naming::{BadName, RemoteActorId, Key};
use crate::node::core::TheaterCore;
use crate::proxy::pending::PendingProxy;

/// How a frozen actor is written, and its name.
pub(super) struct Ready {
    pub(super) kind: u32,
    pub(super) codec: Codec,
    pub(super) border: Arc<dyn RefCodec>,
    pub(super) trunk: MetadataForm,
    pub(super) born: RemoteActorId,
    pub(super) from: RemoteSlot,
}

/// Frozen actors that leave when the other theater has accepted them, and what they have sent is drained.
pub(crate) struct Departure {
    link: Arc<Link>,
    pending: Mutex<Option<Pending>>,
}

struct Pending {
    members: Vec<PreparedMember>,
    done: Done,
}

impl Departure {
    /// The other theater has accepted them, or not.
    pub(super) fn answered(&self, accepted: Result<Vec<ActorLocation>, MigrateError>) {
        match accepted {
            Ok(seats) => {
                let from = self.link.incarnation;
                self.take(|nth, attempt| {
                    let seat = seats.get(nth)?;
                    let at = RemoteActorId { address: self.link.advertised.or(seat.address), ..RemoteActorId::from(*seat) };
                    Some(Event::Said { from, word: Word::Accepted { attempt, at } })
                });
            }
            Err(why) => self.stay(why),
        }
    }

    /// It takes too long: they stay, if they have not left.
    pub(crate) fn give_up(&self) {
        let why =
            "a theater has not said that it has got the actor, or all that the actor had sent, or where the actor goes";
        self.stay(MigrateError::Unreachable(why.to_owned()));
    }

    fn noted(&self) {
        self.take(|_, attempt| Some(Event::Noted { attempt }));
    }

    fn drained(&self) {
        self.take(|_, attempt| Some(Event::Drained { attempt }));
    }

    /// Whether one of them is not to leave: it has come, and has not begun here.
    fn is_early(&self) -> bool {
        lock(&self.pending).as_ref().is_some_and(|pending| pending.members.iter().any(|member| member.attempt == 0))
    }

    fn stay(&self, why: MigrateError) {
        let pending = lock(&self.pending).take();
        if let Some(Pending { members, done }) = pending {
            self.link.stay(members, why, done);
        }
    }

    /// Each of them takes an event, by its number and that of its attempt. All leave by that, or none. They stay if there is none for one.
    fn take(&self, event: impl Fn(usize, u64) -> Option<Event<RemoteActorId>>) {
        let (members, events, seats, done) = {
            let directory = &self.link.directory;
            let mut pending = lock(&self.pending);
            let Some(Pending { members, .. }) = &*pending else { return };
            let events = members.iter().zip(0..).map(|(member, nth)| event(nth, member.attempt));
            let Some(events) = events.collect::<Option<Vec<Event<RemoteActorId>>>>() else {
                let count = members.len();
                drop(pending);
                return self.stay(MigrateError::Refused(format!("it names too few places for {count}")));
            };
            let taken = members.iter().zip(&events);
            let seats = taken.clone().map(|(member, event)| directory.view(member.id).leaves_by(*event));
            let Some(seats) = seats.collect::<Option<Vec<RemoteActorId>>>() else {
                return taken.for_each(|(member, event)| drop(directory.step(member.id, *event)));
            };
            let Some(Pending { members, done }) = pending.take() else { return };
            (members, events, seats, done)
        };
        self.link.leave(members, &events, &seats, done);
    }
}

/// Actors that leave together. When the last reference is dropped, it tells how their migration ended.
pub(crate) struct Left {
    /// So many have not begun in the other theater yet, as far as is known here.
    to_begin: AtomicUsize,
    done: Mutex<Option<Done>>,
}

impl Left {
    /// It takes too long. It is not known whether they have begun.
    pub(crate) fn give_up(&self) {
        let done = lock(&self.done).take();
        if let Some(done) = done {
            let why = "the actor has left, and the other theater does not say that it has begun there";
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

/// An actor that has come, until it is in its cell.
struct Arriving(Arc<AtomicU64>);

impl Arriving {
    fn new(count: &Arc<AtomicU64>) -> Arriving {
        // Relaxed: with the guests locked.
        count.fetch_add(1, Ordering::Relaxed);
        Arriving(Arc::clone(count))
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// What a theater says of an actor that was sent to it.
type Received = Result<ActorLocation, String>;

/// What is said of what was sent, if anything is.
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
    pub(crate) fn house(&self) -> Option<Arc<TheaterCore>> {
        self.directory.house()
    }

    // -- leaving --------------------------------------------------------------------------------------------------------

    /// Sends a frozen actor to the other theater. In the actor's stage.
    pub(crate) fn offer(
        self: &Arc<Self>,
        id: ActorId,
        (moves, entry): (MigrationVTable, &'static Spawns),
        pack: &PreparedActor<'_>,
        done: Done,
    ) -> Result<(), MigrateError> {
        let Ready { kind, codec, border, trunk, born, from } = match self.make_ready(id, entry, pack) {
            Ok(ready) => ready,
            Err(why) => {
                done(Err(MigrateError::clone(&why)));
                return Err(why);
            }
        };
        let departure = self.drain_for(vec![PreparedMember { at: 0, attempt: 0, id, moves, born, epoch: trunk.epoch }], done);
        let offered = Arc::clone(&departure);
        let answer: TakeAnswer = Box::new(move |answer| {
            let accepted = received::<Received>(answer).and_then(|seat| seat.map_err(MigrateError::Refused));
            departure.answered(accepted.map(|seat| vec![seat]));
        });
        let RemoteActorId { theater, slot, life, seal, .. } = born;
        // On an error the answer says it, to the actor too. It must not be told twice: it may be on its way again by the time
        // it hears that it stays, and would go on here and there.
        let sent = self.ask_with(answer, Lane::Normal, |ask, out| {
            Head::Move { ask, kind, codec: codec.into(), theater, slot, life, seal, from }.write(out)?;
            at_border(&border, || {
                Codec::Positional.write(&trunk, out)?;
                (pack.state)(codec, out)
            })
        });
        self.note_departure(&offered);
        if let Ok(true) = sent {
            // Others of this stage go when there is room.
            pause_stage(&self.gate);
        }
        Ok(())
    }

    /// Frozen actors are to leave for the other theater: what they have sent is drained. By the worker that runs their stage.
    pub(super) fn drain_for(self: &Arc<Self>, mut members: Vec<PreparedMember>, done: Done) -> Arc<Departure> {
        let house = self.house();
        let is_to_note = |house: &Arc<TheaterCore>| {
            members.iter().any(|member| house.authority.is_to_note(house, &member.born, self.incarnation))
        };
        let to_note = house.as_ref().is_some_and(is_to_note);
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
        let Some(house) = house else {
            departure.drained();
            return departure;
        };
        if to_note {
            let to = Host { theater: self.incarnation, address: self.advertised };
            house.authority.note(&house, leaving, to, Box::new(move || noted.noted()));
        }
        house.drain(Box::new(move || drained.drained()));
        departure
    }

    /// Tells the other theater that these actors of it are about to leave for the theater `to`.
    pub(crate) fn say_departs(&self, to: Host, actors: Vec<(u64, u64, u64, Epoch)>, answer: TakeAnswer) {
        // On an error the answer says it.
        let _ = self.ask_with(answer, Lane::Normal, |ask, out| Head::Departs { ask, to, actors }.write(out));
    }

    /// Actors that were offered stay if it takes too long. Behind the offer, because the other theater must not hear that before.
    pub(super) fn note_departure(&self, departure: &Arc<Departure>) {
        if departure.is_early() {
            return departure.stay(MigrateError::Refused("it has come, and has not begun".to_owned()));
        }
        if let Some(house) = self.house() {
            house.note_late(MigrationDeadline::Departure(Arc::downgrade(departure)));
        }
    }

    /// Actors that are frozen here stay.
    fn stay(&self, members: Vec<PreparedMember>, why: MigrateError, done: Done) {
        for PreparedMember { id, moves, born: RemoteActorId { theater, slot, life, seal, .. }, .. } in members {
            self.directory.step(id, Event::GiveUp);
            let stays = Head::Stays { theater, slot, life, seal };
            // First: it may be offered again. If it cannot be said, the other theater hears that the link is lost.
            let _ = self.send(Lane::Normal, |out| stays.write(out));
            (moves.abort)(id, why.clone());
        }
        done(Err(why));
    }

    /// The other theater has accepted actors that are frozen here and drained: they leave for these places there, by these events.
    fn leave(self: &Arc<Self>, members: Vec<PreparedMember>, events: &[Event<RemoteActorId>], seats: &[RemoteActorId], done: Done) {
        let way = |(member, far): (&PreparedMember, &RemoteActorId)| {
            // If that theater is lost, they go on from here.
            let proxy = self.adopt(member.id, far).map_err(|_| MigrateError::TheaterLost)?;
            Ok((proxy as Arc<dyn Forwarder>, Arc::default()))
        };
        let ways: Vec<(_, Arc<StubRoute>)> = match members.iter().zip(seats).map(way).collect() {
            Ok(ways) => ways,
            Err(why) => return self.stay(members, why, done),
        };
        for ((member, event), (_, way)) in members.iter().zip(events).zip(&ways) {
            self.directory.leave(member.id, *event, way);
        }
        let left = Arc::new(Left { to_begin: AtomicUsize::new(members.len()), done: Mutex::new(Some(done)) });
        if let Some(house) = self.house() {
            house.note_late(MigrationDeadline::Left(Arc::downgrade(&left)));
        }
        for (PreparedMember { id, moves, born, .. }, (carrier, way)) in members.into_iter().zip(ways) {
            seam(4);
            (moves.commit)(id, carrier, way);
            let (link, left) = (Arc::clone(self), Arc::clone(&left));
            // Behind what has waited for it here.
            let begin = move || {
                let RemoteActorId { theater, slot, life, seal, .. } = born;
                let before = lock(&link.left).insert(born.key(), left);
                drop(before);
                let sent = link.send_with(
                    Lane::Normal,
                    |out| out.departs,
                    |departs, out| match departs {
                        true => Head::Begin { theater, slot, life, seal }.write(out),
                        false => Err(WireError::new("this theater has taken leave")),
                    },
                );
                if sent.is_err() || link.is_lost() {
                    // Perhaps after those that have left were looked at.
                    let left = lock(&link.left).remove(&born.key());
                    drop(left);
                }
            };
            (moves.then)(id, Box::new(begin));
        }
    }

    /// Looks up how to write a frozen actor, and who it is.
    pub(super) fn make_ready(
        &self,
        id: ActorId,
        entry: &'static Spawns,
        pack: &PreparedActor<'_>,
    ) -> Result<Ready, MigrateError> {
        let (kind, codec) = self.table.spawn((entry.actor)(), (entry.actor_name)()).map_err(refused)?;
        self.may_name_more().map_err(refused)?;
        let border = self.border();
        let born = self.directory.identity(id).map_err(unwritable)?;
        // That of this theater is known to the other one. One that is lost is not to be called.
        let birth = born.address.filter(|_| !self.directory.lost().contains(&born.theater));
        let noted = (birth, self.directory.next_epoch(id));
        let trunk = at_border(&border, || self.trunk(entry, pack, noted)).map_err(unwritable)?;
        let from = self.directory.sealed(id).map_err(unwritable)?;
        Ok(Ready { kind, codec, border, trunk, born, from })
    }

    /// The actor that was born with this name, and left for the other theater, has begun there.
    pub(super) fn take_begun(&self, born: Key) {
        self.directory.note_begun(born, self.incarnation);
        let left = lock(&self.left).remove(&born);
        if let Some(left) = left {
            // AcqRel: only counted; what it is about is under locks.
            left.to_begin.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn trunk(
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
            Ok(PackedTimer { id, left, pace, kept, kind, codec: codec.into(), message })
        });
        let timers = timers.collect::<Result<_, WireError>>()?;
        let (last_timer, receive_timeout) = (pack.last_timer, pack.receive_timeout);
        let watching = pack.watching.iter().map(|watched| Watched(Some(*watched))).collect();
        let (name, ties) = (pack.name.map(str::to_owned), pack.ties);
        Ok(MetadataForm { name, ties, watching, last_timer, timers, receive_timeout, birth, epoch })
    }

    /// This link is not the way to the actor any more. Returns what the actor was called, and who watched it over that way: the other end
    /// does not [know](Link::unwatch) yet that they do not any more.
    pub(crate) fn release(&self, id: ActorId) -> Option<(Handle, Taken)> {
        // Most links are no way to it. Whoever writes to them is not waited for.
        self.handle_of(id)?;
        let mut out = lock(&self.out);
        let handle = lock(&self.places).handles.remove(&id)?;
        Some((handle, out.take_watching(handle)))
    }

    /// What the actor is called, if this link is the way to it.
    pub(crate) fn handle_of(&self, id: ActorId) -> Option<Handle> {
        lock(&self.places).handles.get(&id).copied()
    }

    /// As [`Link::release`], where it may be called something else by now.
    pub(crate) fn release_handle(&self, id: ActorId, handle: Handle) -> Taken {
        let mut out = lock(&self.out);
        {
            let handles = &mut lock(&self.places).handles;
            if handles.get(&id) == Some(&handle) {
                handles.remove(&id);
            }
        }
        out.take_watching(handle)
    }

    /// Nobody watches the actor that is called so over this link any more. Returns who did.
    pub(crate) fn take_watches(&self, handle: Handle) -> Vec<(Watcher, Tell)> {
        let watched = lock(&self.out).take_watching(handle);
        let unwatched = |(watcher, watch, tell)| {
            self.unwatch(handle, watch);
            (watcher, tell)
        };
        watched.into_iter().map(unwatched).collect()
    }

    /// Tells the other end of a watch that was taken here.
    pub(crate) fn unwatch(&self, handle: Handle, watch: u64) {
        // It does not matter if it cannot be said: then nobody is left to hear it.
        let _ = self.send(Lane::System, |out| Head::Unwatch { to: handle, watch }.write(out));
    }

    // -- coming ---------------------------------------------------------------------------------------------------------

    /// Checks that the other end may have an actor that was born with this name.
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

    pub(super) fn take_move(&self, ask: u64, kind: (u32, Codec), (born, at): (RemoteActorId, RemoteActorId), bytes: &[u8]) {
        // Before its state is read: names in that are taken.
        let guest = self.may_have(&born).and_then(|()| self.read_actor(kind, (born, at), bytes));
        let accepted = guest.map_err(|error| (0, error)).and_then(|guest| self.accept(None, vec![guest]));
        let received: Received = match accepted {
            Ok(seats) => seats.into_iter().next().ok_or_else(|| "it has no place".to_owned()),
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

    /// Reads an actor that is to come. Where that panics, it does not come.
    pub(super) fn read_actor(&self, kind: (u32, Codec), names: (RemoteActorId, RemoteActorId), bytes: &[u8]) -> Result<IncomingActor, WireError> {
        // A peer waits for what is said of it.
        catch_unwind(AssertUnwindSafe(|| self.unpack(kind, names, bytes))).unwrap_or_else(|payload| {
            let why = Crash::Panic(payload.into()).describe();
            Err(WireError::new(format!("reading the actor's state panicked: {why}")))
        })
    }

    fn unpack(&self, (kind, codec): (u32, Codec), (born, at): (RemoteActorId, RemoteActorId), bytes: &[u8]) -> Result<IncomingActor, WireError> {
        let entry = self.registry.spawn(kind).and_then(|entry| Some((entry, entry.moves?)));
        let (entry, moves) = entry.ok_or_else(|| WireError::new("it knows no such actors"))?;
        let trunk = postcard::take_from_bytes::<MetadataForm>(bytes);
        let (MetadataForm { name, ties, watching, last_timer, timers, receive_timeout, birth, epoch }, state) =
            trunk.map_err(|error| WireError::new(error.to_string()))?;
        let timers = timers.into_iter().map(|timer| {
            let entry = self.registry.message(timer.kind).ok_or_else(|| WireError::new("it knows no such message"))?;
            let start = (entry.timer)(&timer.message, timer.codec.into())?;
            Ok(ReadTimer { id: timer.id, left: timer.left, pace: timer.pace, kept: timer.kept, start })
        });
        let timers = timers.collect::<Result<Vec<ReadTimer>, WireError>>()?;
        let watching = watching.into_iter().filter_map(|watched| watched.0).collect();
        let luggage = ActorMetadata { name, ties, watching, last_timer, timers, receive_timeout, is_new: false };
        let install = (moves.read)(state, codec, luggage)?;
        let birth = if born.theater == self.incarnation { self.advertised } else { birth };
        let born = RemoteActorId { address: birth, ..born };
        Ok(IncomingActor { born, at, epoch, moves, entry, install, is_new: false })
    }

    /// Starts an actor that was born at this place of the other theater, which has started it here. Returns its place. It comes as one that moves,
    /// because its name may have come before it.
    pub(super) fn start_mobile(
        &self,
        (entry, moves): (&'static Spawns, MigrationVTable),
        codec: Codec,
        (born, epoch, is_child): (RemoteActorId, Epoch, bool),
        bytes: &[u8],
    ) -> Option<ActorId> {
        let New { install, ties } = (moves.read_new)(bytes, codec, is_child).ok()?;
        let guest = IncomingActor { born, at: born, epoch, moves, entry, install, is_new: true };
        let accepted = self.may_have(&born).map_err(|error| (0, error));
        let place = accepted.and_then(|()| self.accept(None, vec![guest])).map(|_| {
            self.take_begin(born.key());
            // It may have ended by now.
            self.directory.known_as(born.key())
        });
        place.unwrap_or_else(|(_, why)| {
            ties.inspect(|ties| ties.not_started(why.to_string()));
            None
        })
    }

    /// The place here of the actor that was born as `born`.
    pub(super) fn place_of(&self, born: &RemoteActorId) -> Option<ActorId> {
        let place = self.directory.known_as(born.key()).or_else(|| {
            let here = born.theater == self.directory.incarnation;
            here.then(|| self.directory.own(born.slot, born.life, born.seal)).flatten()
        });
        place.filter(|id| !id.address().is_stale())
    }

    /// Accepts actors that come together: they begin when the other theater has left all of them. Returns their places.
    ///
    /// # Errors
    /// The number of one that does not come, and why. Then none does.
    pub(super) fn accept(
        &self,
        group: Option<GroupName>,
        mut guests: Vec<IncomingActor>,
    ) -> Result<Vec<ActorLocation>, (u32, WireError)> {
        let house = self.house().ok_or_else(|| (0, WireError::new("it is closing")))?;
        let seats = {
            let mut awaited = self.directory.guests();
            if house.refuses_guests() && guests.iter().any(|guest| !guest.is_new) {
                return Err((0, WireError::new("the theater lets no actors in: it is evacuated, or shuts down")));
            }
            let attempt = Attempt { from: self.incarnation, number: self.directory.next_number() };
            let seats = self.seats_for(&house, group, &guests, attempt);
            // Guests that are refused are the user's, and are dropped without the lock.
            seats.map(|seats| {
                let places = seats.iter().map(|(place, _)| *place);
                let member =
                    |(guest, place)| Awaited { guest, place, attempt, antechamber: None, watchers: Vec::new() };
                awaited.keep(self.number, guests.drain(..).zip(places).map(member).collect());
                seats.into_iter().map(|(_, seat)| seat).collect()
            })
        };
        // The link may have been lost meanwhile.
        if self.is_lost() {
            self.forget_guests();
        }
        seats
    }

    /// Accepts guests that come together, if all of them may come. Returns their places.
    fn seats_for(
        &self,
        house: &TheaterCore,
        group: Option<GroupName>,
        guests: &[IncomingActor],
        Attempt { from, number }: Attempt,
    ) -> Result<Vec<(ActorId, ActorLocation)>, (u32, WireError)> {
        let mut seats: Vec<(ActorId, ActorLocation)> = Vec::new();
        let mut seat_for = |guest: &IncomingActor| {
            let place = self.place_for(guest, group)?;
            if !(guest.moves.fits)(place) {
                return Err(WireError::new("it is an actor of another type there"));
            }
            let seat = self.directory.seat(place, house.listens)?;
            match self.directory.step(place, Event::Said { from, word: Word::Move { attempt: number } })[..] {
                [Action::Accept { .. }] => {
                    self.directory.note_epoch(place, guest.epoch);
                    self.directory.note_birth_address(place, guest.born.address);
                    seats.push((place, seat));
                }
                _ => return Err(WireError::new("it is there already")),
            }
            Ok(())
        };
        let refused = guests.iter().zip(0..).find_map(|(guest, at)| Some((at, seat_for(guest).err()?)));
        match refused {
            None => Ok(seats),
            Some(why) => {
                for (place, _) in seats {
                    self.directory.step(place, Event::Said { from, word: Word::Stays { attempt: number } });
                }
                Err(why)
            }
        }
    }

    /// The place of an actor that is to come. If it was never heard of here, it has one from now on.
    fn place_for(&self, guest: &IncomingActor, group: Option<GroupName>) -> Result<ActorId, WireError> {
        if let Some(place) = self.place_of(&guest.born) {
            return Ok(place);
        }
        let stage = match group {
            Some(group) => self.directory.groups().stage_of(group, || self.core.next_stage()),
            None => self.core.next_stage(),
        };
        let (distant, way) = (PendingProxy::first(&self.directory, guest.at), Arc::<StubRoute>::default());
        let id = (guest.moves.make_stub)(&self.core, stage, Arc::clone(&distant) as Arc<dyn Forwarder>, Arc::clone(&way));
        self.directory.drains.note_stage(&self.core, stage);
        distant.is_at(id);
        self.directory.note(self.incarnation, id, guest.born)?;
        self.directory.note_place(id, guest.at, Some(way));
        if let Some(group) = group {
            self.directory.groups().join(group, id, (guest.entry.actor_name)());
        }
        Ok(id)
    }

    /// The other theater has left the actor that was born with this name: it begins here, if it did not come with others.
    pub(super) fn take_begin(&self, born: Key) {
        let Some(house) = self.house() else { return };
        // Whoever asks which actors of a group are here hears of all or of none.
        let mut guests = self.directory.guests();
        let members = guests.leave(self.number, born);
        let (mut ended, mut settled, mut not_taken) = (Vec::new(), Vec::new(), Vec::new());
        for Awaited { guest, place, attempt, antechamber, mut watchers } in members {
            let (RemoteActorId { theater, slot, life, seal, .. }, is_new) = (guest.born, guest.is_new);
            match house.begin_arrival((place, attempt), &guest.moves, antechamber) {
                Ok((settling, way)) => {
                    seam(4);
                    let settles = matches!(way, ArrivalRoute::Freely { is_settled: true });
                    let arriving = Arriving::new(&self.directory.arriving);
                    watchers.push((Watcher::Theater, self.directory.note_end_of(place)));
                    settling.watched_by(watchers);
                    not_taken.extend((guest.install)(place, Arrival { settling, way }));
                    (guest.moves.then)(place, Box::new(move || drop(arriving)));
                    let count = if is_new { &self.directory.started } else { &self.directory.came };
                    // Relaxed: it is counted only.
                    count.fetch_add(1, Ordering::Relaxed);
                    if let Some(antechamber) = antechamber.filter(|_| settles) {
                        self.close_antechamber(antechamber);
                        settled.push((place, guest.moves.settle, antechamber, house.note_settling(place, true)));
                    }
                }
                Err(_) => ended.push(Awaited { guest, place, attempt, antechamber, watchers }),
            }
            if !is_new {
                let _ = self.send(Lane::Normal, |out| Head::Begun { theater, slot, life, seal }.write(out));
            }
        }
        drop(guests);
        // The watchers of these actors are notified.
        drop(not_taken);
        for (place, settle, antechamber, settles) in settled {
            settle(place, Settled::Begins { antechamber: Some(antechamber) }, settles);
        }
        // Their places have ended, as all actors here do when the system does. That is their end, too.
        for awaited in ended {
            self.core.dead_letter((awaited.guest.entry.actor_name)(), "the actor itself", Undelivered::Stopped);
            self.forget(vec![awaited]);
        }
    }

    /// The link is lost: guests that came over it do not begin.
    pub(super) fn forget_guests(&self) {
        let forgotten = self.directory.guests().take_of(self.number);
        self.forget(forgotten);
    }

    /// These guests do not begin.
    pub(super) fn forget(&self, guests: Vec<Awaited>) {
        for Awaited { guest, place, attempt: Attempt { from, number }, antechamber, watchers } in guests {
            self.directory.step(place, Event::Said { from, word: Word::Stays { attempt: number } });
            if let (Some(antechamber), Some(house)) = (antechamber, self.house()) {
                house.forget_antechamber(antechamber);
            }
            // It is the user's.
            contained(|| drop(guest));
            watchers.into_iter().for_each(|(_, tell)| tell(StopReason::NotAlive.into()));
        }
    }

    /// What the other end's `handle` means. What is sent to a guest that was left goes to an antechamber.
    pub(super) fn meaning(&self, handle: Handle) -> Option<Target> {
        let target = TARGETS.with_borrow(|targets| targets.get(handle))?;
        if !target.is_guest {
            return Some(target);
        }
        let antechamber = {
            let mut guests = self.directory.guests();
            match guests.at(self.number, target.id) {
                Some(guest) => {
                    let made = || (guest.guest.moves.arrival_buffer)(&self.core, guest.place);
                    guest.antechamber = guest.antechamber.or_else(made);
                    guest.antechamber
                }
                // It has begun.
                None => self.directory.antechamber_of(target.id),
            }
        };
        TARGETS.with_borrow_mut(|targets| targets.open_antechamber(handle, antechamber));
        TARGETS.with_borrow(|targets| targets.get(handle))
    }

    /// The guest that the other end's handle means, if it has left it already, as far as is known.
    pub(super) fn with_guest<R>(&self, handle: Handle, f: impl FnOnce(&mut Awaited) -> R) -> Option<R> {
        let target = TARGETS.with_borrow(|targets| targets.get(handle))?;
        if !target.is_guest && target.antechamber.is_none() {
            return None;
        }
        self.directory.guests().at(self.number, target.id).map(f)
    }

    // -- what is read ---------------------------------------------------------------------------------------------------

    /// Whether another thread reads this link now.
    pub(crate) fn is_read_by_another_thread(&self) -> bool {
        READS.get() != Some(self.number) && matches!(self.inn.try_lock(), Err(TryLockError::WouldBlock))
    }

    /// Nothing waits in this antechamber any more: what comes for its actor goes to the actor.
    pub(crate) fn close_antechamber(&self, antechamber: ActorId) {
        if READS.get() == Some(self.number) {
            TARGETS.with_borrow_mut(|targets| targets.close_antechamber(antechamber));
        } else {
            lock(&self.inn).targets.close_antechamber(antechamber);
        }
    }
}

pub(super) fn refused(error: WireError) -> MigrateError {
    MigrateError::Refused(error.to_string())
}

pub(super) fn unwritable(error: WireError) -> MigrateError {
    MigrateError::Unwritable(error.to_string())
}
