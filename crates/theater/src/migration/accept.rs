//! The target's side of a migration at a link: an incoming actor is read, accepted, and begins, or it is forgotten.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use playhouse_actor::away::{ActorLocation, Forwarder};
use playhouse_actor::wire::{ActorMetadata, Arrival, ArrivalRoute, Codec, New, ReadTimer, Settled, WireError};
use playhouse_actor::{ActorId, GroupName, StopReason, Watcher};
use playhouse_executor::jitter::seam;
use playhouse_executor::{Crash, Lane, StubRoute, Undelivered, contained};

use crate::link::frame::{Head, MetadataForm};
use crate::link::node::MobileStart;
use crate::link::{Fault, Link};
use crate::migration::commit::Received;
use crate::naming::arrivals::{Awaited, IncomingActor};
use crate::naming::migration_protocol::{Action, Attempt, Event, Word};
use crate::naming::{BadName, BirthName, RemoteActorId};
use crate::node::core::TheaterCore;
use crate::proxy::pending_proxy::PendingProxy;

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

impl Link {
    /// Checks that the other end may have an actor with this birth name.
    ///
    /// # Errors
    /// The name is invented, and the link is lost for that, or the other end has told too many names.
    pub(crate) fn may_have(&self, born: &RemoteActorId) -> Result<(), WireError> {
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

    pub(crate) fn take_move(
        &self,
        theater_core: &Arc<TheaterCore>,
        ask: u64,
        kind: (u32, Codec),
        (born, at): (RemoteActorId, RemoteActorId),
        bytes: &[u8],
    ) {
        // This comes before its state is read, because names in the state are taken.
        let incoming = self.may_have(&born).and_then(|()| self.read_actor(kind, (born, at), bytes));
        let accepted =
            incoming.map_err(|error| (0, error)).and_then(|incoming| self.accept(theater_core, None, vec![incoming]));
        let received: Received = match accepted {
            Ok(locations) => locations.into_iter().next().ok_or_else(|| "it names no stub for the actor".to_owned()),
            Err((_, error)) => Err(error.to_string()),
        };
        self.reply(ask, &received);
    }

    /// Reads an actor that is to come. If that panics, it does not come.
    pub(crate) fn read_actor(
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
    pub(crate) fn start_mobile(
        &self,
        theater_core: &Arc<TheaterCore>,
        MobileStart { entry, moves, codec, born, epoch, is_child, bytes }: MobileStart<'_>,
    ) -> Option<ActorId> {
        let New { install, supervisor_link } = (moves.read_new)(bytes, codec, is_child).ok()?;
        let incoming = IncomingActor { born, at: born, epoch, moves, entry, install, is_new: true };
        let accepted = self.may_have(&born).map_err(|error| (0, error));
        let stub = accepted.and_then(|()| self.accept(theater_core, None, vec![incoming])).map(|_| {
            self.take_begin(theater_core, born.birth_name());
            // The actor may have ended by now.
            self.directory.known_as(born.birth_name())
        });
        stub.unwrap_or_else(|(_, why)| {
            supervisor_link.inspect(|supervisor_link| supervisor_link.not_started(why.to_string()));
            None
        })
    }

    /// Returns the stub of the actor with the birth name `born`.
    pub(crate) fn stub_of(&self, born: &RemoteActorId) -> Option<ActorId> {
        let stub = self.directory.known_as(born.birth_name()).or_else(|| {
            let here = born.theater == self.directory.incarnation;
            here.then(|| self.directory.own(born.slot_name())).flatten()
        });
        stub.filter(|id| !id.address().is_stale())
    }

    /// Accepts actors that come together: they begin when the other theater has committed all of them. Returns their stubs.
    ///
    /// # Errors
    /// Returns the position of a refused actor, and the reason. Then none comes.
    pub(crate) fn accept(
        &self,
        theater_core: &TheaterCore,
        group: Option<GroupName>,
        mut incoming_actors: Vec<IncomingActor>,
    ) -> Result<Vec<ActorLocation>, (u32, WireError)> {
        let locations = {
            let mut awaited = self.directory.incoming_actors();
            if theater_core.refuses_incoming_actors() && incoming_actors.iter().any(|incoming| !incoming.is_new) {
                return Err((0, WireError::new("the theater lets no actors in: it is evacuated, or shuts down")));
            }
            let attempt = Attempt { from: self.incarnation, number: self.directory.next_number() };
            let locations = self.locations_for(theater_core, group, &incoming_actors, attempt);
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
            let stub = self.stub_for(theater_core, incoming, group)?;
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
    fn stub_for(
        &self,
        theater_core: &TheaterCore,
        incoming: &IncomingActor,
        group: Option<GroupName>,
    ) -> Result<ActorId, WireError> {
        if let Some(stub) = self.stub_of(&incoming.born) {
            return Ok(stub);
        }
        let stage = match group {
            Some(group) => self.directory.groups().stage_of(group, || self.core.next_stage()),
            None => self.core.next_stage(),
        };
        let pending = PendingProxy::first(&theater_core.proxies, incoming.at);
        let route = Arc::<StubRoute>::default();
        let id = (incoming.moves.make_stub)(
            &self.core,
            stage,
            Arc::clone(&pending) as Arc<dyn Forwarder>,
            Arc::clone(&route),
        );
        self.link_table.turnstiles.note_stage(&self.core, stage);
        pending.is_at(id);
        self.directory.note(self.incarnation, id, incoming.born)?;
        self.directory.note_stub(id, incoming.at, Some(route));
        if let Some(group) = group {
            self.directory.groups().join(group, id, (incoming.entry.actor_name)());
        }
        Ok(id)
    }

    /// Begins the actor with this birth name, because the other theater has committed it. A member of a group arrival waits for the others.
    pub(crate) fn take_begin(&self, theater_core: &Arc<TheaterCore>, born: BirthName) {
        // Under this lock, a query for the present actors of a group sees all of them or none.
        let mut incoming_actors = self.directory.incoming_actors();
        let members = incoming_actors.leave(self.number, born);
        let (mut ended, mut settled, mut not_taken) = (Vec::new(), Vec::new(), Vec::new());
        for Awaited { incoming, stub, attempt, arrival_buffer, mut watchers } in members {
            let (born, is_new) = (incoming.born.birth_name(), incoming.is_new);
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
                let _ = self.send(Lane::Normal, |out| Head::Begun { born }.write(out));
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
    pub(crate) fn forget_incoming_actors(&self) {
        let forgotten = self.directory.incoming_actors().take_of(self.number);
        self.forget(forgotten);
    }

    /// Drops these incoming actors: they do not begin.
    pub(crate) fn forget(&self, incoming_actors: Vec<Awaited>) {
        for Awaited { incoming, stub, attempt: Attempt { from, number }, arrival_buffer, watchers } in incoming_actors {
            self.directory.step(stub, Event::Said { from, word: Word::Stays { attempt: number } });
            if let Some(arrival_buffer) = arrival_buffer {
                self.registry.forget_arrival_buffer(arrival_buffer);
            }
            // It is the user's value.
            contained(|| drop(incoming));
            watchers.into_iter().for_each(|(_, tell)| tell(StopReason::NotAlive.into()));
        }
    }
}
