//! Actors that move, at a link: see [`crate::moves`].

use std::sync::{TryLockError, mpsc};
use std::time::Duration;

use playhouse_actor::MigrateError;
use playhouse_actor::away::Origin;
use playhouse_actor::wire::{Install, Luggage, Moves, Pack, ReadTimer, Spawns};

use playhouse_executor::jitter::seam;

use super::*;
use crate::directory::{BadName, Far, Key, Return, Unheard};
use crate::frame::{HOPS_MAX, PackedTimer, Trunk};
use crate::house::House;
use crate::moves::Done;
use crate::search::Gone;

/// An actor that comes, or a group.
pub(crate) enum Arrival {
    One(u64, Guest),
    Together(super::together::Guests),
}

/// An actor that comes, and was read.
pub(crate) struct Guest {
    /// The name that it was born with.
    pub(super) born: Far,
    pub(super) moves: Moves,
    pub(super) entry: &'static Spawns,
    pub(super) install: Install,
}

/// How a frozen actor is written, and its name.
pub(super) struct Ready {
    pub(super) kind: u32,
    pub(super) codec: Codec,
    pub(super) border: Arc<dyn Border>,
    pub(super) trunk: Trunk,
    pub(super) born: Far,
}

/// What a theater says of an actor that was sent to it.
type Received = Result<Seat, String>;

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

/// About as long as it takes for places to turn.
const TURNS_LAST: Duration = Duration::from_millis(1);

impl Link {
    pub(crate) fn house(&self) -> Option<Arc<House>> {
        self.directory.house()
    }

    pub(super) fn antechamber_of(&self, id: ActorId) -> Option<ActorId> {
        lock(&self.directory.turning).get(&id)?.antechamber
    }

    // -- leaving --------------------------------------------------------------------------------------------------------

    /// Sends a frozen actor to the other theater. In the actor's stage.
    pub(crate) fn offer(
        self: &Arc<Self>,
        id: ActorId,
        (moves, entry): (Moves, &'static Spawns),
        pack: &Pack<'_>,
        done: Done,
    ) -> Result<(), MigrateError> {
        let Ready { kind, codec, border, trunk, born } = match self.make_ready(id, entry, pack) {
            Ok(ready) => ready,
            Err(why) => {
                done(Err(MigrateError::clone(&why)));
                return Err(why);
            }
        };
        lock(&self.directory.leaving).insert(id, None);
        let link = Arc::clone(self);
        let answer: TakeAnswer = Box::new(move |answer| {
            let received = received::<Received>(answer).and_then(|received| received.map_err(MigrateError::Refused));
            let left = received.and_then(|seat| {
                let far = Far { address: link.advertised.or(seat.address), ..Far::from(seat) };
                // It has come there, and dies with that theater: then it goes on from here.
                let proxy = link.adopt(id, &far).map_err(|_| MigrateError::TheaterLost)?;
                Ok((far, Arc::new(proxy) as Arc<dyn Carrier>))
            });
            let way = Arc::default();
            let (left, back) = {
                // Who comes back finds it on its way, or elsewhere.
                let mut leaving = lock(&link.directory.leaving);
                let back = leaving.remove(&id).flatten();
                let left = match (left, &back) {
                    (Ok(left), _) => Ok(left),
                    // The theater that it was in for a moment is lost, and it was not.
                    (Err(_), Some(back)) => {
                        let at = Far { theater: back.link.incarnation, address: None, slot: 0, life: 0, seal: 0 };
                        Ok((at, Arc::new(Gone) as Arc<dyn Carrier>))
                    }
                    (Err(why), None) => Err(why),
                };
                if let Ok((at, _)) = &left {
                    link.directory.note_left(id, *at, &way);
                }
                (left, back)
            };
            let left = left.map(|(_, carrier)| {
                seam(4);
                (moves.leave)(id, carrier, way);
                // It does not matter if it cannot be said: then the other theater hears that the link is lost.
                let Far { theater, slot, life, seal, .. } = born;
                let _ = link.send(Lane::Normal, |out| Head::Heard { theater, slot, life, seal }.write(out));
            });
            if let Err(why) = &left {
                (moves.stay)(id, why.clone());
            }
            if let Some(Return { link, arrival }) = back {
                link.let_in(arrival);
            }
            done(left);
        });
        let Far { theater, slot, life, seal, .. } = born;
        let head = move |ask| Head::Move { ask, kind, codec: codec.into(), theater, slot, life, seal };
        let body = |out: &mut Vec<u8>| {
            at_border(&border, || {
                Codec::Positional.write(&trunk, out)?;
                (pack.state)(codec, out)
            })
        };
        if lock(&self.directory.unheard).contains_key(&born.key()) {
            let mut bytes = Vec::new();
            let written = body(&mut bytes);
            let link = Arc::clone(self);
            let send = move || {
                // On an error the answer says it.
                let _ = link.ask_with(answer, Lane::Normal, |ask, out| {
                    head(ask).write(out)?;
                    written?;
                    out.extend_from_slice(&bytes);
                    Ok(())
                });
            };
            let mut unheard = lock(&self.directory.unheard);
            if let Some(unheard) = unheard.get_mut(&born.key()) {
                unheard.sends = Some(Box::new(send));
            } else {
                drop(unheard);
                send();
            }
            return Ok(());
        }
        // On an error the answer says it, to the actor too. It must not be told twice: it may be on its way again by the time
        // it hears that it stays, and would go on here and there.
        let sent = self.ask_with(answer, Lane::Normal, |ask, out| {
            head(ask).write(out)?;
            body(out)
        });
        if let Ok(true) = sent {
            // Others of this stage go when there is room.
            pause_stage(&self.gate);
        }
        Ok(())
    }

    /// Looks up how to write a frozen actor, and who it is.
    pub(super) fn make_ready(
        &self,
        id: ActorId,
        entry: &'static Spawns,
        pack: &Pack<'_>,
    ) -> Result<Ready, MigrateError> {
        let (kind, codec) = self.table.spawn((entry.actor)(), (entry.actor_name)()).map_err(refused)?;
        self.may_name_more().map_err(refused)?;
        let border = self.border();
        let trunk = at_border(&border, || self.trunk(entry, pack)).map_err(unwritable)?;
        // It is noted under this lock who it is, if it has just come.
        let _unheard = lock(&self.directory.unheard);
        Ok(Ready { kind, codec, border, trunk, born: self.directory.identity(id).map_err(unwritable)? })
    }

    /// The other theater has heard that its actor has come.
    pub(super) fn note_heard(&self, born: Key) {
        let heard = {
            let mut unheard = lock(&self.directory.unheard);
            let is_its = unheard.get(&born).is_some_and(|unheard| unheard.link == self.number);
            is_its.then(|| unheard.remove(&born)).flatten()
        };
        let Some(Unheard { sends, company, .. }) = heard else { return };
        if let Some(send) = sends {
            send();
        }
        if let (Some(company), Some(house)) = (company, self.house()) {
            house.note_heard_of(&company);
        }
    }

    /// The other theater is lost: it goes on with no actor that has come from it.
    pub(super) fn note_all_heard(&self) {
        let heard: Vec<Key> = {
            let unheard = lock(&self.directory.unheard);
            unheard.iter().filter(|(_, unheard)| unheard.link == self.number).map(|(born, _)| *born).collect()
        };
        heard.into_iter().for_each(|born| self.note_heard(born));
    }

    /// The link may have been lost while an actor came over it.
    pub(super) fn note_heard_if_lost(&self) {
        if self.is_lost() {
            self.note_all_heard();
        }
    }

    fn trunk(&self, entry: &Spawns, pack: &Pack<'_>) -> Result<Trunk, WireError> {
        let timers = pack.timers.iter().map(|timer| {
            let (kind, codec) = self.table.message((entry.actor)(), timer.message, timer.name)?;
            let mut message = Vec::new();
            (timer.write)(codec, &mut message)?;
            let (id, left, pace, kept) = (timer.id, timer.left, timer.pace, timer.kept);
            Ok(PackedTimer { id, left, pace, kept, kind, codec: codec.into(), message })
        });
        let timers = timers.collect::<Result<_, WireError>>()?;
        let (last_timer, receive_timeout) = (pack.last_timer, pack.receive_timeout);
        Ok(Trunk { name: pack.name.map(str::to_owned), ties: pack.ties, last_timer, timers, receive_timeout })
    }

    /// This link is not the way to the actor any more. Returns who watched it over that way.
    pub(crate) fn release(&self, id: ActorId) -> Vec<(Watcher, Tell)> {
        let mut out = lock(&self.out);
        let Some(handle) = lock(&self.places).handles.remove(&id) else { return Vec::new() };
        let watched = out.take_watching(handle);
        drop(out);
        self.unwatch(handle, watched)
    }

    /// What the actor is called, if this link is the way to it.
    pub(crate) fn handle_of(&self, id: ActorId) -> Option<Handle> {
        lock(&self.places).handles.get(&id).copied()
    }

    /// As [`Link::release`], where it may be called something else by now.
    pub(crate) fn release_handle(&self, id: ActorId, handle: Handle) -> Vec<(Watcher, Tell)> {
        let mut out = lock(&self.out);
        {
            let handles = &mut lock(&self.places).handles;
            if handles.get(&id) == Some(&handle) {
                handles.remove(&id);
            }
        }
        let watched = out.take_watching(handle);
        drop(out);
        self.unwatch(handle, watched)
    }

    /// Nobody watches the actor that is called so over this link any more. Returns who did.
    pub(crate) fn take_watches(&self, handle: Handle) -> Vec<(Watcher, Tell)> {
        let watched = lock(&self.out).take_watching(handle);
        self.unwatch(handle, watched)
    }

    fn unwatch(&self, handle: Handle, watched: Vec<(Watcher, u64, Tell)>) -> Vec<(Watcher, Tell)> {
        watched
            .into_iter()
            .map(|(watcher, watch, tell)| {
                // It does not matter if it cannot be said: then nobody is left to hear it.
                let _ = self.send(Lane::System, |out| Head::Unwatch { to: handle, watch }.write(out));
                (watcher, tell)
            })
            .collect()
    }

    // -- coming ---------------------------------------------------------------------------------------------------------

    /// Checks that the other end may have an actor that was born with this name.
    ///
    /// # Errors
    /// The name is invented, and the link is lost for that, or the other end has told too many names.
    pub(super) fn may_have(&self, born: &Far) -> Result<(), WireError> {
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

    pub(super) fn take_move(&self, ask: u64, kind: (u32, Codec), born: Far, bytes: &[u8]) {
        // Before its state is read: names in that are taken.
        if let Err(error) = self.may_have(&born) {
            return self.say_received(ask, &Received::Err(error.to_string()));
        }
        match self.read_actor(kind, born, bytes, false) {
            Ok(guest) => {
                let arrival = Arrival::One(ask, guest);
                let place = self.place_of(&born);
                if let Some(place) = place
                    && let Some(back) = lock(&self.directory.leaving).get_mut(&place)
                {
                    *back = Some(Return { link: self.this(), arrival });
                    return;
                }
                self.let_in(arrival);
            }
            Err(error) => self.say_received(ask, &Received::Err(error.to_string())),
        }
    }

    pub(super) fn say_received<T: serde::Serialize>(&self, ask: u64, received: &T) {
        let _ = self.send(Lane::Normal, |out| {
            Head::Answer { ask, codec: Codec::Positional.into() }.write(out)?;
            Codec::Positional.write(received, out)
        });
    }

    /// Reads an actor that comes; one that is `held` begins when its group does.
    pub(super) fn read_actor(
        &self,
        (kind, codec): (u32, Codec),
        born: Far,
        bytes: &[u8],
        held: bool,
    ) -> Result<Guest, WireError> {
        let entry = self.registry.spawn(kind).and_then(|entry| Some((entry, entry.moves?)));
        let (entry, moves) = entry.ok_or_else(|| WireError::new("it knows no such actors"))?;
        let trunk = postcard::take_from_bytes::<Trunk>(bytes);
        let (Trunk { name, ties, last_timer, timers, receive_timeout }, state) =
            trunk.map_err(|error| WireError::new(error.to_string()))?;
        let timers = timers.into_iter().map(|timer| {
            let entry = self.registry.message(timer.kind).ok_or_else(|| WireError::new("it knows no such message"))?;
            let start = (entry.timer)(&timer.message, timer.codec.into())?;
            Ok(ReadTimer { id: timer.id, left: timer.left, pace: timer.pace, kept: timer.kept, start })
        });
        let timers = timers.collect::<Result<Vec<ReadTimer>, WireError>>()?;
        let luggage = Luggage { name, ties, last_timer, timers, receive_timeout, held };
        let install = (moves.read)(state, codec, luggage)?;
        Ok(Guest { born, moves, entry, install })
    }

    /// The place here of the actor that was born as `born`.
    pub(super) fn place_of(&self, born: &Far) -> Option<ActorId> {
        let place = self.directory.known_as(born.key()).or_else(|| {
            let here = born.theater == self.directory.incarnation;
            here.then(|| self.directory.own(born.slot, born.life, born.seal)).flatten()
        });
        place.filter(|id| !id.address().is_stale())
    }

    /// Lets in who was read, and says so.
    pub(super) fn let_in(&self, arrival: Arrival) {
        match arrival {
            Arrival::One(ask, guest) => {
                let received: Received = self.install(guest).map_err(|error| error.to_string());
                self.say_received(ask, &received);
            }
            Arrival::Together(company) => self.let_in_together(company),
        }
    }

    fn install(&self, Guest { born, moves, install, .. }: Guest) -> Result<Seat, WireError> {
        let house = self.house().ok_or_else(|| WireError::new("it is closing"))?;
        // Before it can go on from here.
        let mut unheard = lock(&self.directory.unheard);
        let key = born.key();
        let id = match self.place_of(&born) {
            Some(place) => {
                let was = self.directory.at(place);
                let coming = house.begin_arrival(place, &moves)?;
                seam(4);
                let installed = install(&self.core, Some((place, coming)));
                if installed.is_err() {
                    house.undo_arrival(place, was);
                }
                installed?
            }
            None => {
                let id = install(&self.core, None)?;
                self.directory.note(self.incarnation, id, born)?;
                self.directory.note_moved(id, None);
                id
            }
        };
        // Relaxed: it is counted only.
        self.directory.came.fetch_add(1, Ordering::Relaxed);
        unheard.insert(key, Unheard { link: self.number, sends: None, company: None });
        drop(unheard);
        self.note_heard_if_lost();
        self.directory.seat(id, house.listens)
    }

    // -- changing ways --------------------------------------------------------------------------------------------------

    pub(super) fn take_marker(&self, to: Handle, ask: u64, origin: Origin, hops: u16) {
        let link = self.this();
        let answer: TakeAnswer = Box::new(move |answer| match answer {
            Ok((codec, bytes)) => {
                let _ = link.send(Lane::Normal, |out| {
                    Head::Answer { ask, codec: codec.into() }.write(out)?;
                    out.extend_from_slice(bytes);
                    Ok(())
                });
            }
            Err(error) => link.fail(ask, &error),
        });
        let Some(house) = self.house() else { return answer(Err(AskError::Shutdown)) };
        let hops = hops.saturating_add(1);
        if hops > HOPS_MAX {
            return answer(Err(AskError::Unreachable(format!("a marker has come over more than {HOPS_MAX} links"))));
        }
        let is_own = origin.theater == self.directory.incarnation;
        if is_own && origin.seal != self.directory.seal_of_turn(origin.slot, origin.life, origin.turn) {
            return answer(Err(AskError::Unreachable("a marker that this theater has not sent".to_owned())));
        }
        if is_own && let Some(id) = house.turning_at(&origin) {
            // It has come round to the place that sent it, where the actor is by now. All that was before it is in the
            // antechamber.
            house.say_here(id, answer);
            return house.turned(id, origin.turn, house.seat(id).map(Far::from));
        }
        let target = TARGETS.with_borrow(|targets| targets.get(to));
        let moves = target.and_then(|target| Some((target, self.registry.moves(target.id)?.0)));
        match moves {
            None => answer(Err(AskError::Stopped)),
            // What was before it comes before all that waits for the actor.
            Some((target, _)) if target.antechamber.is_some() => house.say_here(target.id, answer),
            Some((target, moves)) => (moves.pass)(target.id, house.marker_with((origin, hops), answer)),
        }
    }

    /// Tells the other end that the actor that it calls `handle` is elsewhere.
    pub(super) fn tell_moved(&self, handle: Handle, id: ActorId) {
        if self.registry.moves(id).is_some() {
            let _ = self.send(Lane::Normal, |out| Head::Moved { handle }.write(out));
        }
    }

    pub(super) fn take_moved(&self, handle: Handle) {
        let id = {
            let places = lock(&self.places);
            let id = places.by_handle.get(handle as usize).copied();
            id.filter(|id| places.handles.get(id) == Some(&handle))
        };
        if let (Some(id), Some(house)) = (id, self.house()) {
            house.turn(id);
        }
    }

    // -- theaters that actors have left ---------------------------------------------------------------------------------

    /// Asks the other end not to send mail over this theater that is for actors elsewhere. `turned` is told how many ways have
    /// changed for that, or is dropped.
    pub(crate) fn say_leaving(&self, turned: mpsc::Sender<u64>) {
        let answer: TakeAnswer = Box::new(move |answer| {
            if let Ok(count) = answer.and_then(|(codec, bytes)| {
                codec.read::<u64>(bytes).map_err(|error| AskError::Unreachable(error.to_string()))
            }) {
                let _ = turned.send(count);
            }
        });
        // On an error, `turned` is dropped with the answer.
        let _ = self.ask_with(answer, Lane::Normal, |ask, out| Head::Leaving { ask }.write(out));
        self.flush(false);
    }

    pub(super) fn take_leaving(&self, ask: u64) {
        let (link, Some(house)) = (self.this(), self.house()) else { return };
        match &mut *lock(&self.leaving) {
            // One thread waits for the other end. What is asked after it has begun is answered behind that.
            Some(further) if further.len() >= LEAVINGS_MAX => return self.fault(Fault::Leavings),
            Some(further) => return further.push(ask),
            waits => *waits = Some(Vec::new()),
        }
        let mut over_there = lock(&self.places).in_order();
        let house_here = Arc::clone(&house);
        let (mut told, mut asks) = (false, vec![ask]);
        let wait = move || {
            if !std::mem::replace(&mut told, true) {
                over_there.iter().for_each(|id| house.turn(*id));
            }
            if !link.is_lost() && house.is_any_turning(&over_there) {
                return false;
            }
            let places = lock(&link.places);
            let turned = over_there.iter().filter(|id| !places.handles.contains_key(id)).count() as u64;
            drop(places);
            for ask in asks.drain(..) {
                let _ = link.send(Lane::Normal, |out| {
                    Head::Answer { ask, codec: Codec::Positional.into() }.write(out)?;
                    Codec::Positional.write(&turned, out)
                });
            }
            link.flush(false);
            let mut leaving = lock(&link.leaving);
            asks = leaving.as_mut().map(std::mem::take).unwrap_or_default();
            if asks.is_empty() {
                *leaving = None;
                return true;
            }
            drop(leaving);
            over_there = lock(&link.places).in_order();
            told = false;
            false
        };
        // If no thread can be had, the other end waits as long as it wants to.
        if house_here.until_done("turn", TURNS_LAST, wait).is_err() {
            *lock(&self.leaving) = None;
        }
    }

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
