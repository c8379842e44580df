//! The routes of stubs: a stub reroutes when its actor has moved, and settles when the reroute is over.

use std::sync::{Arc, Mutex, MutexGuard};

use playhouse_actor::away::{ActorLocation, Forwarder, TakeAnswer};
use playhouse_actor::wire::{ArrivalRoute, Codec, MigrationVTable, Settle, Settled, WireError};
use playhouse_actor::{ActorId, AskError, Notify, StopReason, Tell, Watcher};
use playhouse_executor::jitter::seam;

use crate::link::frame::Handle;
use crate::link::{Link, Taken, is_reading};
use crate::lock::lock;
use crate::naming::migration_protocol::{Action, Attempt, Event, Request, View};
use crate::naming::{RemoteActorId, Settling, SettlingStub};
use crate::node::core::TheaterCore;
use crate::proxy::pending_proxy::PendingProxy;

/// A guard that lives until the cell of a stub has learned that its reroute has ended.
pub(crate) struct Settles {
    theater_core: Arc<TheaterCore>,
    number: u64,
    id: ActorId,
    /// Whether an actor has come to the stub.
    begins: bool,
    /// The watchers that watched the actor over the old route.
    watchers: Arc<Mutex<Vec<(Watcher, Tell)>>>,
}

impl Settles {
    /// Adds watchers of the actor, which its cell is to note.
    pub(crate) fn watched_by(&self, watchers: impl IntoIterator<Item = (Watcher, Tell)>) {
        self.watchers().extend(watchers);
    }

    fn watchers(&self) -> MutexGuard<'_, Vec<(Watcher, Tell)>> {
        lock(&self.watchers)
    }

    /// Takes the watchers of the actor over `links`, which are not its route any more: `release` takes them from one link.
    fn release(&self, links: &[Arc<Link>], release: impl Fn(&Link) -> Option<(Handle, Taken)>) {
        let mut unwatched = Vec::new();
        {
            // Under the lock, because a removed watch is found at its old route, or in this guard.
            let mut watchers = self.watchers();
            for link in links {
                if let Some((handle, watched)) = release(link) {
                    for (watcher, watch, tell) in watched {
                        watchers.push((watcher, tell));
                        unwatched.push((link, handle, watch));
                    }
                }
            }
        }
        unwatched.into_iter().for_each(|(link, handle, watch)| link.unwatch(handle, watch));
    }
}

impl Settle for Settles {
    fn take_watchers(&mut self) -> Vec<(Watcher, Notify)> {
        let watchers = std::mem::take(&mut *self.watchers());
        watchers.into_iter().map(|(watcher, tell)| (watcher, Notify::Call(tell))).collect()
    }
}

impl Drop for Settles {
    fn drop(&mut self) {
        self.theater_core.settling().stubs.remove(&self.number);
        let watchers = std::mem::take(&mut *self.watchers());
        for (_, tell) in watchers {
            self.theater_core.directory.telling_end(self.id, tell)(StopReason::NotAlive.into());
        }
        if self.begins {
            self.theater_core.say_rerouted(self.id);
        }
    }
}

impl TheaterCore {
    /// Returns the location of an actor of this theater.
    pub(crate) fn location(&self, id: ActorId) -> Option<ActorLocation> {
        self.directory.location(id, self.listens).ok()
    }

    /// Answers a marker, because the actor is in this theater.
    pub(crate) fn answer_marker(&self, id: ActorId, answer: TakeAnswer) {
        let mut bytes = Vec::with_capacity(size_of::<ActorLocation>());
        match self.location(id).map(|location| Codec::Positional.write(&location, &mut bytes)) {
            Some(Ok(())) => answer(Ok((Codec::Positional, &bytes))),
            _ => answer(Err(AskError::Stopped)),
        }
    }

    /// Calls [`TheaterCore::answer_marker`]. If the actor has come and waits for the end of a reroute, the answer follows that end.
    pub(crate) fn say_settled(&self, id: ActorId, answer: TakeAnswer) {
        {
            let mut settling = self.settling();
            if self.directory.view(id).is_arriving() || settling.answers.contains_key(&id) {
                settling.answers.entry(id).or_default().push(answer);
                return;
            }
        }
        self.answer_marker(id, answer);
    }

    pub(crate) fn settling(&self) -> MutexGuard<'_, Settling> {
        lock(&self.directory.settling)
    }

    /// Answers markers that waited: the arrived actor begins, or it has not come after all.
    fn say_rerouted(&self, id: ActorId) {
        let answers = self.settling().answers.remove(&id);
        answers.into_iter().flatten().for_each(|answer| self.answer_marker(id, answer));
    }

    /// Notes that the reroute of this stub has ended, and its cell is about to learn it. Until then, drains wait for the mail at the stub.
    pub(crate) fn note_settling(self: &Arc<Self>, id: ActorId, begins: bool) -> Box<Settles> {
        let mut settling = self.settling();
        settling.last_number += 1;
        let number = settling.last_number;
        let watchers = Arc::default();
        settling.stubs.insert(number, SettlingStub { id, watchers: Arc::clone(&watchers) });
        if begins {
            settling.answers.entry(id).or_default();
        }
        Box::new(Settles { theater_core: Arc::clone(self), number, id, begins, watchers })
    }

    /// Returns the stubs where mail waits because they reroute or have rerouted, ordered by the end or begin of the reroute.
    pub(crate) fn rerouting_stubs(&self) -> Vec<ActorId> {
        // The settling ones are read later, because a stub settles before its reroute is over.
        let rerouting = self.directory.rerouting();
        self.settling().stubs.values().map(|stub| stub.id).chain(rerouting).collect()
    }

    /// Reroutes the stub `id`, unless it does already: the actor is not in the theater `from`.
    pub(crate) fn reroute(self: &Arc<Self>, id: ActorId, from: u64) {
        let Some((moves, _)) = self.registry.migration_vtable(id) else { return };
        if let [Action::Ask(Request::Reroute { reroute })] = self.directory.step(id, Event::Moved { from })[..] {
            seam(4);
            (moves.begin_reroute)(id, reroute, self.marker(id, reroute));
        }
    }

    /// Begins the arrival of an incoming actor at its stub `id`. Returns the watchers from this theater, which its cell is to note, and the mail
    /// before the actor.
    pub(crate) fn begin_arrival(
        self: &Arc<Self>,
        (id, attempt): (ActorId, Attempt),
        moves: &MigrationVTable,
        arrival_buffer: Option<ActorId>,
    ) -> Result<(Box<Settles>, ArrivalRoute), WireError> {
        if !(moves.fits)(id) {
            return Err(WireError::new("its stub of the actor has ended"));
        }
        if self.directory.begin_freely(id, attempt) {
            let settling = self.note_settling(id, false);
            settling.release(&self.link_table.all_links(), |link| link.release(id));
            return Ok((settling, ArrivalRoute::Freely { is_settled: arrival_buffer.is_some() }));
        }
        let arrival_buffer = arrival_buffer.or_else(|| (moves.arrival_buffer)(&self.directory.core, id));
        let arrival_buffer =
            arrival_buffer.ok_or_else(|| WireError::new("it knows the actor as one of another type"))?;
        let Some((reroute, is_new)) = self.directory.begin_behind(id, attempt, arrival_buffer) else {
            self.registry.forget_arrival_buffer(arrival_buffer);
            return Err(WireError::new("it has the actor already"));
        };
        // If the stub reroutes already, the marker of that reroute is on its way, and is as good. If the stub was locating its actor, the marker goes
        // behind the kept mail. The actor waits for that marker instead of answers of other theaters.
        Ok((self.note_settling(id, false), ArrivalRoute::Behind(is_new.then(|| self.marker(id, reroute)))))
    }

    /// Handles the answer to the marker of the stub `id`: the actor is `at`, or the marker is lost.
    pub(crate) fn rerouted(self: &Arc<Self>, id: ActorId, reroute: u64, at: Option<RemoteActorId>) {
        // While the stub gets another route, no actor comes to it.
        let incoming_actors = self.directory.incoming_actors();
        let view = self.directory.view(id);
        if view.reroute() != Some(reroute) {
            // The marker was answered before.
            return;
        }
        let links = self.link_table.all_links();
        let Some((moves, _)) = self.registry.migration_vtable(id) else {
            let arrival_buffer = self.directory.take_arrival_buffer(id);
            self.directory.step(id, Event::CameRound { reroute });
            drop(incoming_actors);
            // The actor has come, and ended before it began.
            if let Some(arrival_buffer) = arrival_buffer {
                links.iter().for_each(|link| link.close_arrival_buffer(arrival_buffer));
                self.registry.forget_arrival_buffer(arrival_buffer);
            }
            return self.say_rerouted(id);
        };
        let (mut forwarder, mut settles) = (None, None);
        let event = match at {
            None => Event::MarkerLost { reroute },
            Some(at) if at.theater == self.incarnation => Event::CameRound { reroute },
            Some(at) if view.is_arriving() => Event::Answered { reroute, at },
            // The old route is good until that theater is reached.
            Some(at)
                if view
                    .route()
                    .and_then(|old| self.link_table.link(old.theater))
                    .is_some_and(|old| old.reaches(&at)) =>
            {
                Event::MarkerLost { reroute }
            }
            Some(at) => {
                let settles = settles.insert(self.note_settling(id, false));
                forwarder = self.route_to(id, &at, &links, settles);
                seam(4);
                // If there is no new route, the old one is kept.
                if forwarder.is_some() { Event::Answered { reroute, at } } else { Event::MarkerLost { reroute } }
            }
        };
        if matches!(View::clone(&view).step(event, &mut || 0)[..], [Action::Ask(Request::MarkAgain { .. })]) {
            let actions = self.directory.step(id, event);
            drop(incoming_actors);
            if let [Action::Ask(Request::MarkAgain { reroute })] = actions[..] {
                (moves.begin_reroute)(id, reroute, self.marker(id, reroute));
            }
            return;
        }
        // This comes first, because a drain or a marker that finds no reroute any more must find it.
        let settles = settles.unwrap_or_else(|| self.note_settling(id, view.is_arriving()));
        let arrival_buffer = self.directory.take_arrival_buffer(id);
        if let [Action::Settle { search }] = self.directory.step(id, event)[..] {
            // The others are not asked: mail that had passed the lost theater may come late.
            self.directory.step(id, Event::Settled { search });
        }
        if view.is_arriving() {
            drop(incoming_actors);
            seam(4);
            // This includes links that were made since: names that came over them lead to the arrival buffer.
            let links = self.link_table.all_links();
            for link in &links {
                arrival_buffer.inspect(|arrival_buffer| link.close_arrival_buffer(*arrival_buffer));
            }
            settles.release(&links, |link| link.release(id));
            let (settle, begins) = (moves.settle, Settled::Begins { arrival_buffer });
            self.behind_what_was_read(Box::new(move || settle(id, begins, settles)));
        } else {
            (moves.settle)(id, Settled::Turned { number: Some(reroute), forwarder }, settles);
            drop(incoming_actors);
        }
    }

    /// Calls `act`, which sends something that must come behind all that was read from links before. The poller's last reads may still be on their
    /// way to the mail of other workers. They may also be in the mail of this worker, which comes after the worker's own messages.
    pub(crate) fn behind_what_was_read(&self, act: Box<dyn FnOnce() + Send>) {
        if is_reading() {
            return act();
        }
        self.poller.demand_act(act);
    }

    /// Returns a new route from the stub `id` to the actor; `settles` takes the watchers over an old route.
    fn route_to(
        &self,
        id: ActorId,
        remote: &RemoteActorId,
        links: &[Arc<Link>],
        settles: &Settles,
    ) -> Option<Arc<dyn Forwarder>> {
        let link = self.link_table.link(remote.theater);
        if link.is_none() && remote.address.is_none() {
            return None;
        }
        // The old routes stay the same if there is no new one.
        let old: Vec<_> = links.iter().filter_map(|link| Some((link.number(), link.handle_of(id)?))).collect();
        let forwarder: Arc<dyn Forwarder> = match link {
            Some(link) => link.adopt(id, remote).ok()?,
            None => {
                let pending = PendingProxy::new(&self.proxies, *remote);
                pending.is_at(id);
                pending
            }
        };
        settles.release(links, |link| {
            let (_, handle) = old.iter().find(|(number, _)| *number == link.number())?;
            Some((*handle, link.release_handle(id, *handle)))
        });
        Some(forwarder)
    }
}
